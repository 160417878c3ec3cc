"""Having the system's service manager (systemd, launchd) keep a command of cleared running."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.base.programs import find_program
from cleared.base.safe_files import write_atomic
from cleared.base.terminal import print_json, print_line, print_message
from cleared.service.unit_file import ServiceDefinition, UnitFile, launchd_agent, systemd_unit
from cleared.trust.clone_marks import UNATTENDED
from cleared.trust.keys import cleared_home
from cleared.workspace.location import config_home, user_home

CALL_SECONDS: Final = 30
_FOLDERS: Final = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Where a service's programs are looked for if nothing is said."""


class ManagerUnreachable(Exception):
    """The service manager did not do it; the text says why."""


class Systemd:
    def __init__(self, service: ServiceDefinition) -> None:
        self.unit = systemd_unit(service, config_home())
        self.wait = service.stop_seconds + CALL_SECONDS
        name = self.unit.name
        self.by_hand = f"systemctl --user daemon-reload && systemctl --user enable --now {name}"
        self.off_by_hand = f"systemctl --user stop {name}; systemctl --user daemon-reload"
        self.more = "It runs while you are logged in. To have it run always: loginctl enable-linger"

    def start_unit(self, *, replaced: bool) -> None:
        self._systemctl("daemon-reload")
        self._systemctl("enable", "--now", self.unit.name)
        if replaced:  # what runs was started by the file before
            self._systemctl("restart", self.unit.name)

    def stop_unit(self) -> None:
        self._systemctl("disable", "--now", self.unit.name)

    def forget_unit(self) -> None:
        # What ``disable`` takes away; where systemd cannot be reached, nobody has.
        (self.unit.path.parent / "default.target.wants" / self.unit.name).unlink(missing_ok=True)
        self._systemctl("daemon-reload")

    def read_state(self) -> tuple[bool, str, int | None]:
        answer = self._systemctl("show", "--property=ActiveState,SubState,MainPID", self.unit.name)
        facts = dict(line.split("=", 1) for line in answer.splitlines() if "=" in line)
        pid = facts.get("MainPID", "0")
        running = facts.get("ActiveState") in ("active", "reloading", "deactivating")
        state = f"{facts.get('ActiveState', 'unknown')} ({facts.get('SubState', 'unknown')})"
        return running, state, int(pid) if pid.isdecimal() and pid != "0" else None

    def _systemctl(self, *argv: str) -> str:
        return _run_manager(["systemctl", "--user", *argv], self.wait)


class Launchd:
    def __init__(self, service: ServiceDefinition) -> None:
        self.unit = launchd_agent(service, user_home())
        self.wait = service.stop_seconds
        self.domain = f"gui/{os.getuid()}"
        self.target = f"{self.domain}/{self.unit.name}"
        self.by_hand = f"launchctl bootstrap {self.domain} {self.unit.path}"
        self.off_by_hand = f"launchctl bootout {self.target}"
        self.more = "It runs while you are logged in."

    def start_unit(self, *, replaced: bool) -> None:
        _run_manager(["launchctl", "enable", self.target])
        if self._is_loaded():
            if not replaced:
                return
            self.stop_unit()
        _run_manager(["launchctl", "bootstrap", self.domain, str(self.unit.path)])

    def stop_unit(self) -> None:
        import time

        if not self._is_loaded():
            return
        _run_manager(["launchctl", "bootout", self.target])
        for _ in range(self.wait * 2):  # it goes when its run has ended, and cannot come back before
            if not self._is_loaded():
                return
            time.sleep(0.5)
        raise ManagerUnreachable(f"it did not end within {self.wait} seconds")

    def forget_unit(self) -> None:
        """There is nothing to be told."""

    def read_state(self) -> tuple[bool, str, int | None]:
        try:
            answer = _run_manager(["launchctl", "print", self.target])
        except ProgramMissing:
            raise
        except ManagerUnreachable:
            return False, "not loaded", None
        facts = dict(line.strip().split(" = ", 1) for line in answer.splitlines() if " = " in line)
        pid, state = facts.get("pid", ""), facts.get("state", "unknown")
        return state == "running", state, int(pid) if pid.isdecimal() else None

    def _is_loaded(self) -> bool:
        return self.read_state()[1] != "not loaded"


class ProgramMissing(ManagerUnreachable):
    """There is no such program."""


def _run_manager(argv: list[str], seconds: float = CALL_SECONDS) -> str:
    """What the manager's program prints. Raises ``ManagerUnreachable`` where it fails."""
    program = find_program(argv[0])
    if program is None:
        raise ProgramMissing(f"{argv[0]} is not installed")
    try:
        process = subprocess.run(
            [program, *argv[1:]],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise ManagerUnreachable(f"{' '.join(argv)} did not end within {seconds:g} seconds") from None
    except OSError as error:
        raise ManagerUnreachable(f"{argv[0]}: {error.strerror}") from None
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()]
        raise ManagerUnreachable(lines[-1].strip() if lines else f"{' '.join(argv)} failed ({process.returncode})")
    return process.stdout


def choose_manager(
    root: Path,
    stop_seconds: int,
    *,
    arguments: tuple[str, ...] = ("up",),
    installed_by: str = "cleared service",
    named_by: str = "",
    variables: Mapping[str, str] | None = None,
) -> Systemd | Launchd:
    """The service manager of this system, for a command of cleared. ``variables``: more for its environment;
    ``named_by``: the option with which ``installed_by`` means this one.

    Raises ``WorkspaceError`` where there is none that is known.
    """
    import platform

    system = platform.system()
    if system not in ("Linux", "Darwin"):
        raise WorkspaceError(
            f"there is no service manager here that cleared knows ({system or 'an unknown system'})",
            remedy=f"Have cleared {' '.join(arguments)} started by whatever starts programs there.",
        )
    python = Path(os.path.abspath(sys.executable))  # noqa: PTH100  (links are not followed: they lead out of a venv)
    environment = {**_service_environment(), **(variables or {})}
    service = ServiceDefinition(root, python, environment, stop_seconds, arguments, installed_by, named_by)
    return Systemd(service) if system == "Linux" else Launchd(service)


def _service_environment() -> dict[str, str]:
    """What the service must have from here: where the key is, and git where it is in no usual place."""
    environment: dict[str, str] = {}
    if os.environ.get("CLEARED_HOME") or os.environ.get("XDG_CONFIG_HOME"):
        environment["CLEARED_HOME"] = str(cleared_home())
    if UNATTENDED in os.environ:
        environment[UNATTENDED] = os.environ[UNATTENDED]
    git = find_program("git")
    folder = str(Path(git).absolute().parent) if git else _FOLDERS[0]
    if folder not in _FOLDERS:
        environment["PATH"] = os.pathsep.join((folder, *_FOLDERS))
    return environment


def read_unit_file(unit: UnitFile) -> bytes | None:
    """The file as it is; None where there is none."""
    try:
        return unit.path.read_bytes()
    except FileNotFoundError:
        return None


def install_unit(manager: Systemd | Launchd, *, only_print: bool, json: bool) -> None:
    """Write the file and start the service; print what was done. Raises ``WorkspaceError`` where it does not start."""
    before = read_unit_file(manager.unit)
    unit, text = manager.unit, manager.unit.text.encode()
    if only_print:
        if sys.stdout.isatty():
            print_line(unit.text.rstrip("\n"))
        else:
            sys.stdout.write(unit.text)
        return
    changed = before != text
    if changed:
        write_atomic(unit.path, text)
    try:
        manager.start_unit(replaced=changed and before is not None)
    except ManagerUnreachable as error:
        raise WorkspaceError(
            f"{unit.path} is written, but the service could not be started: {error}",
            remedy=f"In a session of yours run: {manager.by_hand}",
        ) from None
    if json:
        print_json({"name": unit.name, "file": str(unit.path), "written": changed})
        return
    print_line(f"{unit.name} runs{'' if changed else '; its file was as it should be'} ({unit.path}).")
    print_message(manager.more)


def uninstall_unit(manager: Systemd | Launchd, *, json: bool) -> None:
    """Stop the service and remove its file; print what was done. Raises ``WorkspaceError`` where it does not stop."""
    before = read_unit_file(manager.unit)
    unit = manager.unit
    problem = None
    if before is not None:
        try:
            manager.stop_unit()
        except ManagerUnreachable as error:
            problem = str(error)
        unit.path.unlink(missing_ok=True)
        try:
            manager.forget_unit()
        except ManagerUnreachable as error:
            problem = problem or str(error)
    if problem is not None:
        raise WorkspaceError(
            f"{unit.path} is removed, but the service could not be stopped: {problem}",
            remedy=f"If it runs, stop it in a session of yours: {manager.off_by_hand}",
        )
    if json:
        print_json({"name": unit.name, "file": str(unit.path), "removed": before is not None})
    else:
        print_line(f"{unit.name} is {'stopped and removed' if before is not None else 'not installed'}.")
