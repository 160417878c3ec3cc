"""H16, H1: whatever a model asks of its tools, nothing happens but what ``propose`` carries to a person."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, unchanged
from patience import PATIENCE
from tool_session import Session

from cleared.meta.tools import confined_processes
from cleared.processes import fences
from cleared.processes.confinement import landlock_abi
from cleared.processes.kept_programs import ProgramKeeper
from cleared.processes.namespaces import OfferedNamespaces
from cleared.processes.program import Ending
from cleared.trust.keys import KEY, cleared_home

confined = pytest.mark.skipif(not landlock_abi(), reason="commands need Landlock")
PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs the system's Python")


@pytest.fixture
def session(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    ws.config("llm.shell=true")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef0123456789abcdef")
    opened = Session(ws)
    yield opened
    opened.tools.close()


@pytest.fixture(params=["namespaces", "none"])
def fenced(request: pytest.FixtureRequest, session: Session, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Commands with namespaces of their own, and as on a kernel that gives none."""
    if request.param == "none":
        monkeypatch.setattr(confined_processes, "offered_namespaces", OfferedNamespaces)
    return session


def keys() -> dict[str, tuple[str, int]]:
    """Path → digest and mode of everything that lies where the keys are."""
    return {
        str(p): (hashlib.sha256(p.read_bytes()).hexdigest(), p.stat().st_mode)
        for p in cleared_home().rglob("*")
        if p.is_file()
    }


def command_lines() -> list[bytes]:
    """The command lines of all processes."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                lines.append((entry / "cmdline").read_bytes())
    return lines


def run(session: Session, command: str, timeout_ms: int = 60_000) -> str:
    return session.tools.call("shell_command", {"command": command, "timeout_ms": timeout_ms}).text


@confined
def test_a_command_reaches_no_key_and_no_workspace(fenced: Session) -> None:
    root, key = fenced.ws.root, cleared_home() / KEY
    secret = key.read_text().strip().splitlines()[-1][-20:]
    ours = [
        key,
        cleared_home(),
        root / "config.yaml",
        root / ".git/config",
        root / "agents",
        fenced.folder / "run/outside",
        fenced.folder / "overlay/index.json",
    ]
    others = ["/proc/1/environ", f"/proc/{os.getpid()}/cmdline", f"/proc/{os.getppid()}/fd", "/root"]
    if not confined_processes.offered_namespaces().processes:  # else it has a /proc that shows its own processes only
        others += ["/proc/self/environ", "/proc/self/fd"]
    fenced.ok("write_file", file_path="scratch/x", content="x")
    before = keys()
    with unchanged(fenced.ws):
        for name in [*(shlex.quote(str(path)) for path in ours), *others]:
            text = run(fenced, f"cat {name} 2>/dev/null || ls -A {name}/. 2>/dev/null || echo CLOSED")
            assert text.endswith("\n| CLOSED"), (name, text)
        for name in (shlex.quote(str(path)) for path in ours):
            run(
                fenced,
                f"echo evil > {name}; rm -rf {name}; chmod 777 {name}; mv {name} .; ln {name} scratch/; "
                f"ln -s {name} scratch/link; touch {name}/evil",
            )
        assert secret not in run(fenced, "cat scratch/* 2>/dev/null; env; set")
        assert "sk-ant" not in run(fenced, "env") and "CLEARED_HOME" not in run(fenced, "env")
    assert keys() == before


@confined
@needs_python
def test_a_command_reaches_no_network(fenced: Session) -> None:
    program = """
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_INET, ("1.1.1.1", 53)),
                        (socket.AF_INET6, ("::1", PORT)), (socket.AF_UNIX, "/run/x"), (16, None), (17, None)):
    try:
        made = socket.socket(family, socket.SOCK_STREAM if address else socket.SOCK_RAW)
        made.settimeout(5)
        made.connect(address)
        print("REACHED", family, address)
    except Exception as error:
        print("refused", type(error).__name__)
"""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as outside:
        fenced.ok(
            "write_file", file_path="scratch/net.py", content=program.replace("PORT", str(outside.getsockname()[1]))
        )
        text = run(fenced, f"{PYTHON} scratch/net.py")
    assert "REACHED" not in text and text.count("refused") == 6, text


@confined
def test_a_command_ends_nobody_else(fenced: Session) -> None:
    """Not the test, not what watches over it, not what starts commands."""
    fenced.ok("shell_command", command="true")
    text = run(fenced, f"kill -9 {os.getpid()} {os.getppid()}; kill -9 -1; kill -9 $PPID; echo SURVIVED")
    assert "SURVIVED" in text or "[failed]" in text
    assert "| 1" in fenced.ok("shell_command", command="echo 1"), "the next command runs"


@confined
def test_what_hides_ends_with_its_command_or_with_the_session(fenced: Session) -> None:
    """In another session and process group, without the environment it was given, without its parent."""
    marker = f"31541.{os.getpid()}"
    hidden = f"(setsid env -i /bin/sleep {marker} >/dev/null 2>&1 &)"
    run(fenced, f"{hidden}; (setsid sleep {marker} &) ; sleep {marker}", timeout_ms=300)
    run(fenced, f"{hidden}; nohup sleep {marker} >/dev/null 2>&1 & echo done")
    fenced.tools.close()
    end = time.monotonic() + PATIENCE
    while any(marker.encode() in line for line in command_lines()):
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.02)


@confined
def test_ctrl_c_in_a_command_ends_it_and_the_session_goes_on(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = f"31542.{os.getpid()}"
    session.ok("shell_command", command="echo 1 > scratch/before")

    def interrupt(self: ProgramKeeper, pid: int, seconds: float) -> Ending | None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProgramKeeper, "wait", interrupt)
        with pytest.raises(KeyboardInterrupt):
            session.tools.call("shell_command", {"command": f"sleep {marker}; true"})
    assert not any(marker.encode() in line for line in command_lines())
    assert "| 1" in session.ok("shell_command", command="cat scratch/before")


@confined
def test_a_tree_full_of_traps_is_read_and_written_in_place(fenced: Session) -> None:
    """Links to the live workspace, hard links, pipes, and files that are too large or have odd names."""
    live = shlex.quote(str(fenced.ws.root))
    with unchanged(fenced.ws):
        fenced.ok("shell_command", command="true")
        text = run(
            fenced,
            f"rm -rf agents scripts tests; ln -s {live}/agents agents; ln -s / scripts; "
            "rm config.yaml; mkfifo config.yaml; mkdir -p scratch; mkfifo scratch/pipe; "
            "echo a > scratch/a; ln scratch/a scratch/b; head -c 9000000 /dev/zero > scratch/big; "
            "echo x > 'scratch/\u202e'; printf x > 'scratch/con.py'; mkdir rules; "
            "echo y > rules/y.md; mkdir -p templates/t.md",
        )
        assert "agents is no folder any more" in text and "hard link" in text and "more than 8,388,608 bytes" in text
        assert "'config.yaml' was not taken" in text and "rules/y.md" in text
        assert fenced.overlay.files == {"rules/y.md": b"y\n"}
        fenced.ok("write_file", file_path="agents/evil.py", content="1\n")
        fenced.ok("write_file", file_path="scripts/etc.py", content="1\n")
        fenced.ok("write_file", file_path="templates/t.md", content="1\n")
        text = fenced.ok("shell_command", command="ls -ld agents scripts; cat agents/evil.py templates/t.md")
        assert "->" not in text and text.endswith("| 1\n| 1")
    assert not (fenced.ws.root / "agents/evil.py").exists() and not Path("/etc.py").exists()


@confined
def test_a_command_has_no_more_rights_than_it_shows(fenced: Session) -> None:
    text = run(
        fenced,
        "unshare -Urm true && echo NEW; mount -t tmpfs x scratch && echo MOUNTED; "
        "chroot . /bin/true && echo ROOT; mknod scratch/dev b 8 0 && echo DEVICE; "
        "for n in 3 4 5 6 7 8 9; do (: >&$n) 2>/dev/null && echo OPEN $n; done; echo over",
    )
    assert text.endswith("| over"), text
    assert not [word for word in ("NEW", "MOUNTED", "ROOT", "DEVICE", "OPEN") if f"| {word}" in text]


@confined
def test_where_the_fence_fails_nothing_is_started(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in a folder that commands may read: the fence is tried on it before each command."""
    monkeypatch.setattr(confined_processes, "KEY", "../../../../../../../../../../../../../etc/passwd")
    monkeypatch.setattr(confined_processes, "cleared_home", lambda: Path("/usr/share"))
    marker = session.folder / "tree/scratch/started"
    text = run(session, "touch scratch/started")
    assert "[failed]" in text and "confined" in text and not marker.exists()


@confined
def test_where_all_walls_are_required_none_is_started_without_one(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = OfferedNamespaces(problem="this kernel gives none")
    monkeypatch.setattr(confined_processes, "offered_namespaces", lambda: lacking)
    monkeypatch.setattr(fences, "offered_namespaces", lambda: lacking)
    assert "| 1" in session.ok("shell_command", command="echo 1")
    session.tools.close()
    session.ws.config("sandbox.confine=require")
    opened = Session(session.ws)
    opened.failed("shell_command", "this kernel gives none", "sandbox.confine is require", command="echo 1")
    opened.tools.close()


def test_without_confinement_commands_are_off(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_processes, "landlock_abi", lambda: 0)
    session.failed("shell_command", "no Landlock", "sandbox.confine: off", command="true")


def test_the_owner_can_allow_commands_that_nothing_holds_back(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.ws.config("sandbox.confine=off")
    opened = Session(session.ws)
    monkeypatch.setattr(confined_processes, "landlock_abi", lambda: 0)
    assert "| 1" in opened.ok("shell_command", command="echo 1")
    opened.tools.close()


def test_arguments_of_every_shape_are_answers_not_errors(session: Session) -> None:
    """H6: a call that is none does nothing, whatever it holds."""
    shapes: list[object] = [
        None,
        "",
        "{",
        "[]",
        "null",
        b"\xff",
        7,
        [],
        {"file_path": 3},
        {"x": 1},
        {"file_path": "a" * 10_000},
        {"file_path": "\ud800"},
        {"pattern": float("nan")},
        '{"a":' * 10_000,
        {"steps": [[]]},
        {"message": "\0" * 5_000},
    ]
    with unchanged(session.ws):
        for name in (*session.tools.tools, "approve", "agent_approve", "config_set", "", "\x00"):
            for shape in shapes:
                result = session.tools.call(name, shape)
                assert result.outcome in ("invalid", "failed", "ok") and len(result.text.encode()) <= 10_000
    assert not session.overlay.files


def test_no_tool_decides(session: Session) -> None:
    words = ("approve", "reject", "trust", "sign", "answer", "decide", "config_set", "run_agent", "agent_run")
    assert not [name for name in session.tools.tools if any(word in name for word in words)]
