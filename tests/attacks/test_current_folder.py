"""Fault 6: modules in a workspace that have the names of Python's own. Nothing that is started there imports them."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness import Workspace, command
from looped import eventually

from cleared.base import programs
from cleared.base.clock import FixedClock
from cleared.changes.workspace_opening import open_workspace
from cleared.service.notify.notifications import Notifier
from cleared.work.loop import supervisor
from cleared.workspace import process_lock

NIGHT = datetime(2025, 2, 10, 2, tzinfo=UTC)
NAMES = ("json", "typing", "dataclasses", "subprocess", "typer", "yaml", "sqlite3", "git", "croniter", "watchdog")


@pytest.fixture
def trapped(ws: Workspace, tmp_path: Path) -> Workspace:
    """Modules that leave a mark, and then are not there."""
    for name in NAMES:
        ws.put(f"{name}.py", f"open({str(tmp_path / 'mark')!r}, 'a').write('{name} ')\nraise ImportError('a trap')\n")
    return ws


def marked(tmp_path: Path) -> bool:
    return (tmp_path / "mark").exists()


@pytest.mark.parametrize("path", [None, "", ":/nowhere", ".", ".:"])
def test_the_command_itself(trapped: Workspace, tmp_path: Path, path: str | None) -> None:
    """Fault 6: ``python -m cleared``, which has Python look for modules where one is."""
    environment = dict(os.environ) if path is None else os.environ | {"PYTHONPATH": path}
    done = command("journal", "list", cwd=trapped.root, env=environment)
    assert done.code == 0 and not marked(tmp_path), done


@pytest.mark.parametrize("wall", [True, False])
def test_the_command_itself_and_its_wall(trapped: Workspace, tmp_path: Path, wall: bool) -> None:
    """Fault 6"""
    off = "" if wall else "cleared.cli._leave_current_folder_out = lambda: None; "
    start = f"import sys, cleared.cli; {off}sys.argv[1:] = ['journal', 'list']; cleared.cli.main()"
    done = subprocess.run([sys.executable, "-c", start], cwd=trapped.root, capture_output=True, check=False)
    assert (done.returncode == 0) is wall and marked(tmp_path) is not wall, done


def told(ws: Workspace) -> str:
    box = Notifier(open_workspace(ws.root, clock=FixedClock(NIGHT)))
    box.record_failure("run-1", "ingest", "no", NIGHT)
    box.send_due_messages(NIGHT + timedelta(minutes=1))
    return str(box.status_data()["last_error"])


@pytest.mark.parametrize("argv", ["-c, import json", "-m, json.tool"])
@pytest.mark.parametrize("wall", [True, False])
def test_a_notification(
    trapped: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: str, wall: bool
) -> None:
    """Fault 6: the command's words are approved, what lies in the workspace is not."""
    trapped.config(f"notifications.command={sys.executable}, {argv}", "notifications.method=exec")
    if not wall:
        start = subprocess.Popen
        monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: start(*a, **k | {"cwd": trapped.root}))
    told(trapped)
    assert marked(tmp_path) is not wall


@pytest.mark.parametrize("argv", ["python3, {root}", "env, -C, {root}, python3"])
def test_a_notification_that_names_the_workspace(trapped: Workspace, argv: str) -> None:
    """Fault 6: a folder is run as its ``__main__.py``."""
    trapped.config(f"notifications.command={argv.format(root=trapped.root)}", "notifications.method=exec")
    assert "lies in the workspace" in told(trapped)


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("what", ["loop", "service"])
def test_what_is_started_in_the_background(
    trapped: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, wall: bool
) -> None:
    """Fault 6: ``loop start`` and ``up --detach``."""
    monkeypatch.delenv("CLEARED_CLOCK")
    start, stop = (
        (("loop", "start", "--sleep", "60"), ("loop", "stop")) if what == "loop" else (("up", "-d"), ("down",))
    )
    if not wall:
        monkeypatch.setattr(process_lock, "own_command", lambda *argv: [sys.executable, "-c", "import json"])
    done = trapped(*start)
    try:
        assert (done.code == 0) is wall, done
        eventually(lambda: wall or marked(tmp_path))
    finally:
        trapped(*stop)
    assert marked(tmp_path) is not wall


@pytest.mark.parametrize("wall", [True, False])
def test_a_plug_ins_job(trapped: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wall: bool) -> None:
    """Fault 6: jobs begin in the workspace."""
    if not wall:
        before = supervisor.job_environment
        monkeypatch.setattr(
            supervisor,
            "job_environment",
            lambda *a, **k: {n: v for n, v in before(*a, **k).items() if n != "PYTHONSAFEPATH"},
        )
    environment = supervisor.job_environment("job", tmp_path, own=False)
    done = subprocess.run([sys.executable, "-c", "import json"], cwd=trapped.root, env=environment)
    assert (done.returncode == 0) is wall and marked(tmp_path) is not wall


@pytest.mark.parametrize("path", [".", ":/nowhere", "tools"])
@pytest.mark.parametrize("wall", [True, False])
def test_programs_are_found_in_absolute_folders_only(
    trapped: Workspace, monkeypatch: pytest.MonkeyPatch, path: str, wall: bool
) -> None:
    """A ``PATH`` with a relative or an empty part has programs looked for in the current folder."""
    for name in ("git-trap", "tools/git-trap"):
        trapped.put(name, "#!/bin/sh\n").chmod(0o755)
    monkeypatch.chdir(trapped.root)
    monkeypatch.setenv("PATH", path)
    if not wall:
        monkeypatch.setattr(programs, "search_path", lambda given: given or path)
    assert (programs.find_program("git-trap") is None) is wall
