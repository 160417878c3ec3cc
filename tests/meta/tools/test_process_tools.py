"""H7, H2: commands of a session: off by default, confined, ended with all that they start."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Workspace, unchanged
from patience import PATIENCE
from tool_session import Session

from cleared.processes.confinement import landlock_abi

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="commands need Landlock")
PYTHON = "/usr/bin/python3"
needs_python = pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs the system's Python")


@pytest.fixture
def shell(ws: Workspace, start: Callable[[Workspace], Session]) -> Session:
    ws.config("llm.shell=true")
    return start(ws)


def processes_with(marker: str) -> list[int]:
    """The live processes that have this text in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if marker.encode() in line and state != "Z":
                found.append(int(entry.name))
    return found


def wait_until_there(marker: str) -> None:
    end = time.monotonic() + PATIENCE
    while not processes_with(marker):
        assert time.monotonic() < end, "it does not begin"
        time.sleep(0.02)


def wait_until_gone(marker: str) -> None:
    end = time.monotonic() + PATIENCE
    while processes_with(marker):
        assert time.monotonic() < end, "it is still there"
        time.sleep(0.02)


def test_commands_are_off_until_the_owner_allows_them(session: Session) -> None:
    calls = [
        ("shell_command", {"command": "id"}),
        ("spawn_process", {"command": "id"}),
        ("kill_process", {"pid": 1}),
        ("wait_for_port", {"port": 80}),
        ("wait_for_file", {"path": "x"}),
        ("run_until_file", {"command": "id", "file_path": "x"}),
    ]
    for name, arguments in calls:
        session.failed(name, "llm.shell", "cleared config set llm.shell true", **arguments)
    assert not (session.folder / "tree").exists()


def test_a_command_works_in_a_copy_and_its_scripts_become_the_draft(shell: Session) -> None:
    with unchanged(shell.ws):
        shell.ok("write_file", file_path="agents/one.py", content="1\n")
        text = shell.ok(
            "shell_command",
            command="cat agents/one.py; echo 2 > agents/two.py; rm agents/one.py; "
            "echo x > books.txt; mkdir -p scratch/deep; echo y > scratch/deep/note; echo z >> README.md; "
            "ls -d .git; pwd",
        )
    assert text.startswith("It ended with exit code 0.\nTaken into your draft: agents/one.py, agents/two.py, ")
    assert "| 1" in text and "No such file" in text
    assert shell.overlay.files == {"agents/one.py": None, "agents/two.py": b"2\n", "scratch/deep/note": b"y\n"}
    shell.ok("write_file", file_path="agents/two.py", content="3\n")
    assert "| 3" in shell.ok("shell_command", command="cat two.py", workdir="agents")
    assert "| x" in shell.ok("shell_command", command="cat books.txt"), "the copy stays as long as the session"
    shell.failed("shell_command", "exit code 3", "| oh", command="echo oh >&2; exit 3")


def test_at_its_limit_a_command_ends_with_all_it_started(shell: Session) -> None:
    """Row H7: whole group and what left the group, too; what it wrote until then is kept."""
    marker = f"31536.{os.getpid()}"
    command = f"echo begun; sleep {marker} & (setsid sleep {marker} &) ; trap '' TERM; sleep {marker}; sleep {marker}"
    shell.failed("shell_command", "ended at its limit of 4 seconds", "| begun", command=command, timeout_ms=4_000)
    wait_until_gone(marker)
    shell.ok("shell_command", command=f"(setsid sleep {marker} >/dev/null 2>&1 &) ; sleep {marker} & echo done")
    wait_until_gone(marker)


def test_output_without_end_is_bounded(shell: Session) -> None:
    result = shell.tools.call("shell_command", {"command": "head -c 3000000 /dev/zero | tr '\\0' 'é'; echo END"})
    assert result.outcome == "ok" and len(result.text.encode()) <= 10_000 and "END" in result.text


def test_only_own_processes_can_be_ended(shell: Session) -> None:
    """Row H7."""
    with subprocess.Popen(["/bin/sleep", "600"]) as foreign:
        try:
            for pid in (foreign.pid, os.getpid(), 1, 0, -1, -foreign.pid, 2**40):
                shell.failed("kill_process", "no process of this session", pid=pid, signal="KILL")
            assert foreign.poll() is None
        finally:
            foreign.kill()
    marker = f"31537.{os.getpid()}"
    text = shell.ok("spawn_process", command=f"echo up; sleep {marker}; true")
    pid = int(text.split()[1])
    wait_until_there(marker)
    shell.ok("wait_for_file", path="scratch/process-1.log", min_size_bytes=3)
    assert "\tup" in shell.ok("read_file", file_path="scratch/process-1.log")
    assert "it has ended" in shell.ok("kill_process", pid=pid, signal="KILL")
    wait_until_gone(marker)
    assert "has ended already" in shell.ok("kill_process", pid=pid)


def test_the_end_of_a_session_ends_its_processes(shell: Session) -> None:
    marker = f"31538.{os.getpid()}"
    shell.ok("spawn_process", command=f"(setsid sleep {marker} &) ; sleep {marker}; true")
    wait_until_there(marker)
    shell.tools.close()
    wait_until_gone(marker)
    assert not (shell.folder / "tree").exists() and not (shell.folder / "run").exists()


def test_a_killed_program_leaves_no_processes(ws: Workspace) -> None:
    """kill -9 of the session's own process: its commands end, too."""
    ws.config("llm.shell=true")
    marker = f"31539.{os.getpid()}"
    program = (
        "import sys, time; sys.path[:0] = ['tests/support', 'tests']\n"
        "from harness import Workspace; from tool_session import Session; from pathlib import Path\n"
        f"s = Session(Workspace(Path({str(ws.root)!r})))\n"
        f"print(s.ok('spawn_process', command='(setsid sleep {marker} &) ; sleep {marker}; true'), flush=True)\n"
        "time.sleep(600)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen([sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and b"runs" in process.stdout.readline()
        wait_until_there(marker)
        process.kill()
    wait_until_gone(marker)


@needs_python
def test_processes_talk_on_a_loopback_of_their_own(shell: Session) -> None:
    serve = f"{PYTHON} -u -m http.server --bind 127.0.0.1 38471"
    answer = shell.tools.call("spawn_process", {"command": serve})
    waited = shell.tools.call("wait_for_port", {"port": 38471, "timeout_sec": 60})
    if "no network here at all" in waited.text:
        pytest.skip("this kernel gives no namespaces")
    assert waited.text == "Port 38471 is open.", (waited, answer)
    fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:38471/config.yaml').status)"
    assert "| 200" in shell.ok("shell_command", command=f'{PYTHON} -c "{fetch}"')
    shell.failed("wait_for_port", "nothing listens on port 38472", port=38472, timeout_sec=0)
    shell.invalid("wait_for_port", "host must be one of", port=80, host="example.com")


def test_a_command_runs_until_its_file_is_there(shell: Session) -> None:
    marker = f"31540.{os.getpid()}"
    text = shell.ok("run_until_file", command=f"echo x > scratch/done; sleep {marker}; true", file_path="scratch/done")
    assert text.startswith("scratch/done is there; the command was ended")
    wait_until_gone(marker)
    shell.failed("run_until_file", "is not there; the command had ended", command="true", file_path="scratch/no")
    shell.failed("wait_for_file", "is not there", path="scratch/no", timeout_sec=0)
