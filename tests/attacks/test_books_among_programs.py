"""Books, keys or a home folder below a folder of the system, which any program may read."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, copy_books
from held_jobs import holding
from tasking import Tasks, task
from tool_session import Session

from cleared.processes.confinement import landlock_abi
from cleared.trust.keys import cleared_home
from cleared.work.loop import job_confinement

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has nothing to hold a program with")
AMONG_PROGRAMS = "/opt"
SECRET = "MARKER-of-the-owner"
in_opt = pytest.mark.skipif(not os.access(AMONG_PROGRAMS, os.W_OK), reason="this user may not write there")


def place_books(folder: str, starting_point: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, list[Path]]:
    """A workspace, the keys and the home below a folder, and files of each with a secret."""
    home = Path(folder, "anna")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLEARED_HOME", f"{folder}/keys")
    ws = Workspace(copy_books(starting_point, Path(folder, "books")))
    secrets = [ws.root / ".env", ws.root / ".git/note", ws.root / ".cleared/note", ws.root / "note", home / ".ssh/id"]
    for path in [*secrets, Path(folder, "keys/note")]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    Path(folder, "beside").write_text("a program's")
    return ws, [*secrets, Path(folder, "keys/note")]


@pytest.fixture
def opt() -> Iterator[str]:
    with tempfile.TemporaryDirectory(dir=AMONG_PROGRAMS) as folder:
        yield folder


@in_opt
@pytest.mark.parametrize("wall", [True, False])
def test_a_verification_command_reads_nothing_of_them(
    opt: str, starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """With the fence switched off it reads all."""
    ws, secrets = place_books(opt, starting_point, monkeypatch)
    tasks = Tasks(ws)
    command = f"cat {opt}/beside; ls {ws.root}; cat {' '.join(map(str, secrets))}"
    tasks.planned(task(1, verification_command=command))
    if not wall:
        ws.config("sandbox.confine=off")
    tasks.ok("claim", "T-001")
    ws.put("docs/T-001.txt", "x")
    said = tasks("verify", "T-001", "--json").json["output"]
    assert "a program's" in said, "the system's own folders are open"
    assert said.count(SECRET) == (0 if wall else len(secrets)) and ("config.yaml" in said) is not wall, said


@in_opt
def test_a_command_of_a_session_reads_nothing_of_them(
    opt: str, starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws, secrets = place_books(opt, starting_point, monkeypatch)
    ws.config("llm.shell=true")
    session = Session(ws)
    try:
        said = session.tools.call("shell_command", {"command": f"cat {opt}/beside {' '.join(map(str, secrets))}"}).text
    finally:
        session.tools.close()
    assert "a program's" in said and SECRET not in said, said


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_reads_nothing_of_them_where_its_python_lies(
    starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """The interpreter's folder is opened whole, but for them; of the workspace it reads what any job reads."""
    if not wall:  # no job starts that can read the key
        monkeypatch.setattr(job_confinement, "list_closed", lambda root: (cleared_home(),))
    with tempfile.TemporaryDirectory(dir=sys.prefix) as folder:
        ws, files = place_books(folder, starting_point, monkeypatch)
        secrets = [path for path in files if path.name == ".env" or not path.is_relative_to(ws.root)]
        with holding(ws, monkeypatch) as jobs:
            found = jobs.run(
                f"for path in {[f'{folder}/beside', *map(str, secrets)]!r}:\n"
                "    try:\n"
                "        said[path] = open(path).read()\n"
                "    except OSError:\n"
                "        said[path] = ''\n"
            )
    assert found.pop(f"{folder}/beside") == "a program's" and found.pop(f"{folder}/keys/note") == ""
    assert set(found.values()) == ({""} if wall else {SECRET}), found
