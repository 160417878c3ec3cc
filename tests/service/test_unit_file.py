"""``cleared service``: units that systemd itself accepts, for folders of any name; and what the manager is told."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Done, Workspace, here, refused, trust_books
from unit_files import verify_unit

from cleared.base.errors import WorkspaceError
from cleared.service.unit_file import ServiceDefinition, launchd_agent, systemd_unit

ODD = [
    "plain",
    "with space",
    "100%",
    "%h %n %%",
    "a\"b'c",
    "back\\slash\\",
    "x\\n\\x41",
    "$HOME",
    "${HOME} $$ $",
    "käse €",
    "книги",
    ";",
    "- @!+:",
    "#;",
    "tail ",
    " {} [] * ? ~ & | < >",
    "\u202egpj\u2028",
]
PYTHON = Path(sys.executable)


def unquoted(line: str) -> list[str]:
    """The words of a unit's line by the rules of systemd.syntax(7) and systemd.service(5), for what is written here."""
    words = re.findall(r'"((?:[^"\\]|\\.)*)"(?:\s+|$)|(\S+)(?:\s+|$)', line)
    found = [re.sub(r"\\(.)", r"\1", quoted) if quoted else bare for quoted, bare in words]
    assert not [w for w in found if re.search(r"(?<!%)(?:%%)*%(?!%)", w)], "a specifier"
    return [w.replace("%%", "%") for w in found]


def setting(text: str, key: str) -> list[str]:
    return [line.partition("=")[2] for line in text.split("\n") if line.startswith(f"{key}=")]


def arguments(words: list[str]) -> list[str]:
    assert not [w for w in words if re.search(r"(?<!\$)(?:\$\$)*\$(?!\$)", w)], "a variable"
    return [w.replace("$$", "$") for w in words]


@pytest.mark.parametrize("name", ODD)
def test_systemd_takes_units_for_folders_of_any_name(tmp_path: Path, name: str) -> None:
    root = tmp_path / name / "books" / name
    root.mkdir(parents=True)
    python = tmp_path / name / "python"
    python.symlink_to(PYTHON)
    unit = systemd_unit(ServiceDefinition(root, python, {"CLEARED_HOME": str(root), "A": name}), tmp_path / "config")
    program, *words = unquoted(setting(unit.text, "ExecStart")[0])
    words = arguments(words)
    if set(str(python)) & set("\"'\\$"):
        shown = subprocess.run(["/bin/sh", *words[:2], "/bin/echo", *words[2:]], capture_output=True, check=True)
        assert program == "/bin/sh" and shown.stdout.decode() == f"{' '.join(words[2:])}\n"
        program, words = words[2], words[3:]
    assert program == str(python)
    assert words == ["-P", "-m", "cleared", "-C", str(root), "up"]
    assert [unquoted(e) for e in setting(unit.text, "Environment")] == [[f"A={name}"], [f"CLEARED_HOME={root}"]]
    assert re.fullmatch(r"cleared-[a-z0-9-]+-[0-9a-f]{8}\.service", unit.name)
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze here")
    unit.path.parent.mkdir(parents=True)
    unit.path.write_text(unit.text, encoding="utf-8")
    assert verify_unit(unit.path, tmp_path) == ""
    if "/bin/sh" not in unit.text:
        python.unlink()  # then it says which program it looked for
        assert str(python) in verify_unit(unit.path, tmp_path)


def test_a_unit_lets_a_run_end_and_does_not_loosen_or_forbid_its_sandbox(tmp_path: Path) -> None:
    text = systemd_unit(ServiceDefinition(tmp_path, PYTHON, {}, stop_seconds=330), tmp_path).text
    wanted = {
        "Type=exec",
        "Restart=on-failure",
        "RestartSec=5",
        "KillSignal=SIGTERM",
        "KillMode=mixed",
        "TimeoutStopSec=330",
        "NoNewPrivileges=yes",
        "LockPersonality=yes",
        "WantedBy=default.target",
    }
    assert wanted <= set(text.splitlines())
    assert "RestrictNamespaces" not in text and "SystemCallFilter" not in text and "MemoryDenyWriteExecute" not in text


@pytest.mark.parametrize("name", ODD)
def test_a_property_list_holds_any_name_as_it_is(tmp_path: Path, name: str) -> None:
    service = ServiceDefinition(tmp_path / name, PYTHON, {"CLEARED_HOME": name}, stop_seconds=100)
    unit = launchd_agent(service, tmp_path)
    data = plistlib.loads(unit.text.encode())
    assert data["ProgramArguments"] == [str(PYTHON), "-P", "-m", "cleared", "-C", str(tmp_path / name), "up"]
    assert data["EnvironmentVariables"] == {"CLEARED_HOME": name} and data["KeepAlive"] == {"SuccessfulExit": False}
    assert data["RunAtLoad"] is True and data["ExitTimeOut"] == 100
    assert unit.path == tmp_path / "Library/LaunchAgents" / f"{data['Label']}.plist"


@pytest.mark.parametrize("name", ["a\nExecStart=evil", "a\rb", "a\tb", "\x1b[2J", "\x7f", "\x85", os.fsdecode(b"\xff")])
def test_control_characters_are_refused(tmp_path: Path, name: str) -> None:
    for service in ((tmp_path / name, PYTHON, {}), (tmp_path, tmp_path / name, {}), (tmp_path, PYTHON, {"A": name})):
        with pytest.raises(WorkspaceError, match="cannot have"):
            ServiceDefinition(*service)


def test_workspaces_of_the_same_name_have_services_of_their_own(tmp_path: Path) -> None:
    one, other = (ServiceDefinition(tmp_path / folder / "Books & Co", PYTHON, {}).name for folder in ("a", "b"))
    assert one != other and one.startswith("cleared-books-co-") and other.startswith("cleared-books-co-")


# -- the commands -----------------------------------------------------------------------------------------------------


class Manager:
    """A ``systemctl`` or ``launchctl`` on the PATH that keeps what it was told."""

    def __init__(self, folder: Path, name: str) -> None:
        self.kept = folder / "calls"
        self.answers = folder / "answers"
        self.answers.mkdir(parents=True)
        program = folder / "bin" / name
        program.parent.mkdir()
        program.write_text(
            f'#!/bin/sh\necho "$*" >> "{self.kept}"\n'
            f'for verb in $*; do if [ -e "{self.answers}/$verb" ]; then . "{self.answers}/$verb"; fi; done\n'
        )
        program.chmod(0o755)
        self.program = program

    def answer(self, verb: str, script: str) -> None:
        (self.answers / verb).write_text(script)

    def calls(self) -> list[str]:
        found = self.kept.read_text().splitlines() if self.kept.exists() else []
        self.kept.unlink(missing_ok=True)
        return found


@pytest.fixture
def manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ws: Workspace) -> Manager:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "key"))
    trust_books(ws.root)
    found = Manager(tmp_path / "manager", "systemctl")
    monkeypatch.setenv("PATH", f"{found.program.parent}:{os.environ['PATH']}")
    return found


def service(ws: Workspace, *argv: str) -> Done:
    return here("service", *argv, "-C", str(ws.root))


def status(ws: Workspace) -> dict[str, Any]:
    done = service(ws, "status", "--json")
    assert done.code == 0, done
    return dict(done.json)


def test_c8_install_writes_starts_and_can_be_repeated(ws: Workspace, manager: Manager, tmp_path: Path) -> None:
    done = service(ws, "install", "--json")
    assert done.code == 0, done
    name, file = done.json["name"], Path(done.json["file"])
    assert file == tmp_path / "home/systemd/user" / name and done.json["written"]
    assert manager.calls() == ["--user daemon-reload", f"--user enable --now {name}"]
    text = file.read_text()
    assert unquoted(setting(text, "ExecStart")[0]) == [sys.executable, "-P", "-m", "cleared", "-C", str(ws.root), "up"]
    assert f'Environment="CLEARED_HOME={tmp_path}/key"' in text and "TimeoutStopSec=90" in text
    again = service(ws, "install")
    assert again.code == 0 and name in again.out and "loginctl enable-linger" in again.err
    assert manager.calls() == ["--user daemon-reload", f"--user enable --now {name}"]
    file.write_text("[Service]\n")
    assert service(ws, "install", "--json").json["written"] and file.read_text() == text
    assert manager.calls()[-1] == f"--user restart {name}"
    ws.config("sandbox.timeout=600")
    assert "TimeoutStopSec=630" in service(ws, "install", "--print").out


def test_print_writes_and_starts_nothing(ws: Workspace, manager: Manager, tmp_path: Path) -> None:
    done = service(ws, "install", "--print")
    assert done.code == 0 and "ExecStart=" in done.out
    assert manager.calls() == [] and not (tmp_path / "home/systemd").exists()


def test_what_was_installed_with_work_is_that_afterwards(ws: Workspace, manager: Manager) -> None:
    text = Path(service(ws, "install", "--work", "--allow-ai", "--json").json["file"]).read_text()
    assert '"up" "--work" "--allow-ai"' in text and status(ws)["current"]
    assert "--work" not in Path(service(ws, "install", "--json").json["file"]).read_text() and status(ws)["current"]
    refused(ws("up", "--allow-ai"), 2, "--work")


def test_the_written_unit_is_one_that_systemd_takes(ws: Workspace, manager: Manager, tmp_path: Path) -> None:
    file = Path(service(ws, "install", "--json").json["file"])
    assert verify_unit(file, tmp_path) == ""


def test_status_tells_installed_from_running(ws: Workspace, manager: Manager) -> None:
    assert status(ws)["installed"] is False and status(ws)["running"] is False
    assert "is not installed" in service(ws, "status").out
    service(ws, "install")
    manager.answer("show", "printf 'MainPID=4711\\nActiveState=active\\nSubState=running\\n'")
    found = status(ws)
    assert found["installed"] and found["current"] and found["running"] and found["pid"] == 4711
    assert "It runs: active (running), process 4711." in service(ws, "status").out
    manager.answer("show", "printf 'MainPID=0\\nActiveState=failed\\nSubState=failed\\n'")
    assert status(ws)["running"] is False and status(ws)["state"] == "failed (failed)" and status(ws)["pid"] is None
    Path(found["file"]).write_text("[Service]\n")
    done = service(ws, "status")
    assert "It does not run" in done.out and "cleared service install" in done.err


def test_uninstall_stops_disables_and_removes(ws: Workspace, manager: Manager) -> None:
    assert "is not installed" in service(ws, "uninstall").out and manager.calls() == []
    name = service(ws, "install", "--json").json["name"]
    manager.calls()
    file = Path(status(ws)["file"])
    manager.calls()
    ws.put("config.yaml", "broken: [")  # a workspace that cannot be opened can still be left alone
    done = service(ws, "uninstall", "--json")
    assert done.code == 0 and done.json == {"name": name, "file": str(file), "removed": True}
    assert manager.calls() == [f"--user disable --now {name}", "--user daemon-reload"] and not file.exists()


@pytest.mark.parametrize("missing", [True, False])
def test_where_systemd_cannot_be_reached_the_file_is_there_and_the_remedy_says_what_to_run(
    ws: Workspace, manager: Manager, monkeypatch: pytest.MonkeyPatch, missing: bool
) -> None:
    why = "systemctl is not installed" if missing else "Failed to connect to bus: No medium found"
    if missing:
        folder = manager.program.parent
        for tool in ("git",):
            (folder / tool).symlink_to(str(shutil.which(tool)))
        manager.program.unlink()
        monkeypatch.setenv("PATH", str(folder))
    else:
        manager.answer("--user", f"echo '{why}' >&2; exit 1")
    done = service(ws, "install")
    refused(done, 4, why, "is written", "systemctl --user daemon-reload && systemctl --user enable --now cleared-")
    found = status(ws)
    file = Path(found["file"])
    assert file.exists() and found["installed"] and found["running"] is None and found["problem"] == why
    assert f"could not be asked: {why}" in service(ws, "status").out
    wanted = file.parent / "default.target.wants" / file.name
    wanted.parent.mkdir()
    wanted.symlink_to(file)
    refused(service(ws, "uninstall"), 4, "is removed", why, "systemctl --user stop cleared-")
    assert not file.exists() and not wanted.is_symlink()


def test_a_refusal_of_systemd_is_told_in_its_words(ws: Workspace, manager: Manager) -> None:
    manager.answer("enable", "printf 'one\\nJob for x failed.\\n\\n' >&2; exit 3")
    refused(service(ws, "install"), 4, "Job for x failed.")


def test_on_macos_launchd_is_told(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    manager = Manager(tmp_path / "manager", "launchctl")
    monkeypatch.setenv("PATH", f"{manager.program.parent}:{os.environ['PATH']}")
    manager.answer("print", "exit 113")
    done = service(ws, "install", "--json")
    assert done.code == 0, done
    name, file = done.json["name"], done.json["file"]
    domain = f"gui/{os.getuid()}"
    assert file == str(tmp_path / "home/Library/LaunchAgents" / f"{name}.plist")
    assert plistlib.loads(Path(file).read_bytes())["Label"] == name
    assert manager.calls() == [f"enable {domain}/{name}", f"print {domain}/{name}", f"bootstrap {domain} {file}"]
    assert status(ws)["running"] is False
    manager.answer("print", "printf 'x = {\\n\\tstate = running\\n\\tpid = 4711\\n}\\n'")
    assert status(ws)["running"] is True and status(ws)["pid"] == 4711
    manager.calls()
    service(ws, "install")
    assert manager.calls() == [f"enable {domain}/{name}", f"print {domain}/{name}"], "it runs as it should"
    manager.answer("bootout", f'echo "exit 113" > "{manager.answers}/print"')
    assert service(ws, "uninstall", "--json").json["removed"] and not Path(file).exists()
    assert f"bootout {domain}/{name}" in manager.calls()


def test_elsewhere_it_is_refused(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Windows")
    for verb in ("install", "uninstall", "status"):
        refused(service(ws, verb), 4, "no service manager here that cleared knows (Windows)", "cleared up")


def test_git_in_an_unusual_place_is_found_by_the_service_too(
    ws: Workspace, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert setting(service(ws, "install", "--print").out, "Environment")[0].startswith('"CLEARED_HOME=')
    (manager.program.parent / "git").symlink_to(str(shutil.which("git")))
    shown = setting(service(ws, "install", "--print").out, "Environment")
    assert f'"PATH={manager.program.parent}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"' in shown
