"""The commands of a session: each confined to a copy of the workspace, all in one network of their own."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.jobs.signing import KEY_NAME
from cleared.meta.tools.tool import ToolFailed
from cleared.processes.confinement import ConfinementUnavailable, landlock_abi
from cleared.processes.fences import Fence, make_fence, require_walls
from cleared.processes.keeper import Surroundings
from cleared.processes.kept_programs import ProgramKeeper
from cleared.processes.namespaces import OfferedNamespaces, offered_namespaces
from cleared.processes.program import Program
from cleared.trust.keys import KEY, RUN_KEY, cleared_home
from cleared.work.loop.job_confinement import list_closed
from cleared.work.loop.supervisor import job_environment

MAX_PROCESSES: Final = 16
"""Processes of one session at a time."""
_END_SECONDS: Final = 60.0
_MAX_KEPT: Final = 256 << 10
"""Bytes of a command's output that are read: so many from its beginning, and from its end."""
_SHARED: Final = Surroundings(largest_file=64 << 20, most_files=1_024, most_processes=256)
_SHELL: Final = "/bin/sh"


class ConfinedProcesses:
    """Processes that run in ``tree`` and can reach nothing else. ``run``: a folder for what they need besides."""

    def __init__(self, host: Host, tree: Path, run: Path, session_id: str) -> None:
        self._host, self._tree, self._run, self._session_id = host, tree, run, session_id
        self._keeper: ProgramKeeper | None = None
        self._fence: Fence | None = None
        self._count = 0
        self._scratch: dict[int, Path] = {}
        self.has_network = False
        """Whether they have a network of their own, with loopback in it; else they have none."""

    @property
    def is_started(self) -> bool:
        return self._keeper is not None

    def start_keeper(self) -> None:
        """Start what starts processes. Raises ``ToolFailed`` where they cannot be confined."""
        confine = self._host.config.sandbox.confine
        if not landlock_abi() and confine != "off":
            raise ToolFailed(
                "this machine cannot confine commands (its kernel has no Landlock), so they are off",
                "Use the other tools. The owner can allow commands that nothing holds back: sandbox.confine: off.",
            )
        with suppress(OSError):
            remove_tree(self._run)
        for folder in ("home", "tmp", "logs"):
            (self._run / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        offered = offered_namespaces()
        try:
            self._keeper = ProgramKeeper(replace(_SHARED, own_network=offered.mounts))
            self.has_network = offered.mounts
        except ConfinementUnavailable:  # the kernel gives no network
            self._keeper, self.has_network = ProgramKeeper(_SHARED), False
        self._fence = self._make_fence(offered) if landlock_abi() else None

    def start_command(self, command: str, workdir: str, *, output: str = "") -> tuple[int, Path]:
        """Start a command in a shell; its number, and where its output goes: to a file of the run folder, or of the
        tree where ``output`` names one."""
        alive = sum(code is None for code in self.list_processes().values())
        if alive >= MAX_PROCESSES:
            raise ToolFailed(f"{alive} processes of this session run", "End one with kill_process first.")
        self._count += 1
        scratch = self._run / "tmp" / str(self._count)
        scratch.mkdir(mode=0o700)
        log = self._run / "logs" / f"{self._count}-{secrets.token_hex(4)}"
        environment = job_environment(self._session_id, scratch, own=False) | {
            "HOME": str(self._run / "home"),
            "GIT_CEILING_DIRECTORIES": str(self._tree.parent),
        }
        if output:
            environment["CLEARED_OUTPUT"] = str(self._tree / output)
            command = f'exec >"$CLEARED_OUTPUT" 2>&1\n{command}'
        folder = self._tree / (workdir or ".")
        program = Program([_SHELL, "-c", command], folder, environment, self._fence, log=log)
        try:
            pid = self._get_keeper().start(program)
        except ConfinementUnavailable as error:
            raise ToolFailed(f"the command was not started: {error.message}", "Use the other tools.") from None
        except OSError as error:
            raise ToolFailed(f"{workdir}: {error.strerror}", "Name a folder that is there.") from None
        except WorkspaceError as error:
            raise ToolFailed(f"the commands of this session cannot go on: {error}", "Use the other tools.") from None
        except BaseException:  # Ctrl-C: the answer would be taken for the next one's
            self.close()
            raise
        self._scratch[pid] = scratch
        return pid, log

    def wait_for(self, pid: int, seconds: float) -> int | None:
        """The exit code of a process, or None where it still runs after so many seconds."""
        try:
            ending = self._get_keeper().wait(pid, seconds)
        except BaseException:  # Ctrl-C
            self.close()
            raise
        code = None if ending is None else ending.code
        if code is not None and pid in self._scratch:
            shutil.rmtree(self._scratch.pop(pid), ignore_errors=True)
        return code

    def end_process(self, pid: int) -> int:
        """End a process and all that it has started; its exit code."""
        self._get_keeper().end(pid, "ended")
        code = self.wait_for(pid, _END_SECONDS)
        return -9 if code is None else code

    def send_signal(self, pid: int, number: int) -> str:
        """``sent``; ``ended`` where the process has ended; ``unknown`` where the session never started it."""
        processes = self.list_processes()
        if pid not in processes:
            return "unknown"
        if processes[pid] is not None:
            return "ended"
        self._get_keeper().send_signal(pid, number)
        return "sent"

    def is_port_open(self, host: str, port: int) -> bool:
        return self._get_keeper().is_port_open(host, port)

    def list_processes(self) -> dict[int, int | None]:
        """Number → exit code, None while it runs."""
        if self._keeper is None:
            return {}
        self._keeper.listen()
        return {pid: None if ending is None else ending.code for pid, ending in self._keeper.endings.items()}

    def read_output(self, log: Path) -> str:
        """What a process has written, without secrets; of much, the beginning and the end."""
        with log.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(_MAX_KEPT)
            if size > 2 * _MAX_KEPT:
                file.seek(size - _MAX_KEPT)
                data += f"\n[… {size - 2 * _MAX_KEPT:,} bytes are not kept …]\n".encode()
            data += file.read()
        return self._host.redactor.redact_output(data.decode("utf-8", "replace"))

    def close(self) -> None:
        """End every process, and remove what they needed."""
        keeper, self._keeper = self._keeper, None
        if keeper is None:
            return
        keeper.close()
        for folder in (self._run, self._tree):
            with suppress(OSError):
                remove_tree(folder)

    def _get_keeper(self) -> ProgramKeeper:
        if self._keeper is None:
            raise ToolFailed("no process of this session runs", "Start one first.")
        return self._keeper

    def _make_fence(self, offered: OfferedNamespaces) -> Fence | None:
        """Raises ``ToolFailed`` where the kernel lacks a wall that every fence has, or one of all that are required."""
        outside = self._run / "outside"
        write_atomic(outside, b"No command of a session can read this.\n", mode=0o600)
        keys = [cleared_home() / name for name in (KEY, RUN_KEY, KEY_NAME)]
        fence = make_fence(
            list_closed(self._host.root),
            [],
            [self._tree, self._run / "home", self._run / "tmp"],
            outside=next((key for key in keys if key.exists()), outside),
            network="own" if self.has_network else "none",
            namespaces=offered,
        )
        problem = "" if fence is not None else "no filter of system calls is written for this machine"
        if self._host.config.sandbox.confine == "require":
            try:
                require_walls(fence, "require")
            except ConfinementUnavailable as error:
                problem = error.message
        if problem:
            self.close()
            raise ToolFailed(f"commands cannot be confined here, so they are off: {problem}", "Use the other tools.")
        return fence
