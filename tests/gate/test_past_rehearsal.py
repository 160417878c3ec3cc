"""The past rehearsed by several processes: they find what one finds, whatever becomes of the others."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from harness import Workspace, chase, unchanged

from cleared.gate import past_rehearsal


@pytest.fixture
def past(ws: Workspace) -> Workspace:
    """Books with three runs, and a script that would do otherwise in each."""
    for month in range(1, 4):
        ws.drop(
            f"{month}.csv", chase((f"0{month}/03/2025", "GITHUB *PRO", "-4.00"), (f"0{month}/06/2025", "AWS", "-3.00"))
        )
        ws.run("ingest")
    return ws


def count_here(monkeypatch: pytest.MonkeyPatch, processes: int) -> list[str]:
    """Let so many processes compute; fills with the runs that this one rehearses."""
    here: list[str] = []
    real = past_rehearsal.rehearse_run

    def counted(*args: Any, **options: Any) -> Any:
        here.append(args[3].run)
        return real(*args, **options)

    monkeypatch.setattr(past_rehearsal, "LEAST_SHARE", 1)
    monkeypatch.setattr(past_rehearsal, "count_cores", lambda: processes)
    monkeypatch.setattr(past_rehearsal, "rehearse_run", counted)
    return here


def compare(ws: Workspace, monkeypatch: pytest.MonkeyPatch, processes: int) -> tuple[Any, int]:
    """The differences that a changed script makes, and how many runs this process rehearsed."""
    path = ws.root / "agents/ingest.py"
    approved = path.read_text()
    path.write_text(approved.replace('config_get("thresholds.auto_confirm")', "0.97"))
    with monkeypatch.context() as patch:
        here = count_here(patch, processes)
        found = ws.json("agent", "diff", "ingest")
    path.write_text(approved)
    assert (found["runs"], found["changed"]) == (3, 3)
    return found, len(set(here))


def test_several_processes_find_what_one_finds(past: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, all_here = compare(past, monkeypatch, 1)
    shared, some_here = compare(past, monkeypatch, 2)
    assert (all_here, some_here) == (3, 2) and shared == alone
    assert compare(past, monkeypatch, 3) == (alone, 1)


@pytest.mark.parametrize("program", ["import os; os.kill(os.getpid(), 9)", "raise SystemExit(1)"])
def test_what_a_process_does_not_bring_is_rehearsed_here(
    past: Workspace, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    alone = compare(past, monkeypatch, 1)
    monkeypatch.setattr(past_rehearsal, "_PROGRAM", program)
    assert compare(past, monkeypatch, 2) == alone


def test_on_a_full_disk_all_is_rehearsed_here(past: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = compare(past, monkeypatch, 1)

    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(past_rehearsal.tempfile, "TemporaryFile", refuse)
    assert compare(past, monkeypatch, 2) == alone


def test_changed_settings_hold_in_the_other_process_too(past: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    path = past.root / "config.yaml"
    path.write_text(path.read_text().replace("auto_confirm: 0.95", "auto_confirm: 0.97"))
    count_here(monkeypatch, 2)
    past.ok("agent", "propose", "config.yaml")
    (card,) = (each for each in past.json("queue", "list") if each["kind"] == "proposal")
    said = past.json("queue", "show", card["id"])["details"]["says"]
    assert "Over the last 3 runs of ingest, 3 entries would differ." in said


def test_ctrl_c_ends_the_other_process_too(past: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    count_here(monkeypatch, 2)
    started: list[Any] = []
    real = past_rehearsal.subprocess.Popen

    def start(*args: Any, **options: Any) -> Any:
        started.append(real(*args, **options))
        return started[-1]

    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(past_rehearsal.subprocess, "Popen", start)
    monkeypatch.setattr(past_rehearsal, "_rehearse_here", interrupt)
    with unchanged(past):
        assert past("agent", "diff", "ingest").code == 130
    (other,) = (each for each in started if past_rehearsal._PROGRAM in each.args)
    assert other.poll() is not None
