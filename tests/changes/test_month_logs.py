"""What scripts emit, and which files they had, is in a file of the month of the run; one of all months, as earlier
versions wrote it, is read, too, and never written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import Workspace
from synced import follow, part

from cleared.base import file_source
from cleared.changes.consumed_events import files_handled_by, iter_emitted_events
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot

FEBRUARY, MARCH = "logs/events-2025-02.jsonl", "logs/events-2025-03.jsonl"
TELL = 'ctx_emit("said", "{}")'


def list_said(ws: Workspace) -> list[object]:
    """What events of the last commit say, newest first."""
    with open_workspace(ws.root).open_for_reading() as repo:
        return [event["payload"] for event in iter_emitted_events(CommittedSource(Snapshot(repo, repo.read_head())))]


def test_events_are_in_the_file_of_the_month_of_their_run(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.script(TELL.format("one"))
    text = ws.read(FEBRUARY)
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-01T06:00:00Z")
    ws.script(TELL.format("two"))
    assert ws.read(FEBRUARY) == text and json.loads(ws.read(MARCH))["payload"] == "two"
    assert not (ws.root / "logs/events.jsonl").exists()
    assert list_said(ws) == ["two", "one"]
    ws.in_order()


def test_events_that_an_earlier_version_wrote_come_before_all_others(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.script(TELL.format("one"))
    ws.git("mv", FEBRUARY, "logs/events.jsonl")
    ws.git("commit", "-qm", "as before")
    text = ws.read("logs/events.jsonl")
    ws.script(TELL.format("two"))
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-01T06:00:00Z")
    ws.script(TELL.format("three"))
    assert list_said(ws) == ["three", "two", "one"]
    assert ws.read("logs/events.jsonl") == text


def test_a_log_that_another_version_began_goes_on_in_its_next_part(ws: Workspace) -> None:
    """Fault: rows of another width than its header were added to it."""
    ws.script(TELL.format("one"))
    log = "logs/agent-log-2025-02.csv"
    ws.put(log, "".join(f"{line},{'note' * (not at)}\n" for at, line in enumerate(ws.read(log).splitlines())))
    ws.ok("accept", ws.commit(log), "--reason", "another version wrote it")
    text, rows = ws.read(log), ws.read("logs/agent-log-2025-02_002.csv").splitlines()
    assert rows[0] == text.splitlines()[0].removesuffix(",note") and "accept" in rows[1]
    ws.script(TELL.format("two"))
    assert ws.read(log) == text and len(ws.read("logs/agent-log-2025-02_002.csv").splitlines()) > len(rows)
    ws.in_order()


def test_an_event_is_no_part_of_a_line_that_somebody_has_cut(ws: Workspace) -> None:
    """Fault: it was added to that line, and nobody was told of it."""
    ws.script(TELL.format("one"))
    ws.put(FEBRUARY, ws.read(FEBRUARY)[:-9])
    ws.ok("accept", ws.commit(FEBRUARY), "--reason", "cut")
    ws.script(TELL.format("two"))
    assert list_said(ws) == ["two"]


def test_events_of_a_full_month_go_on_in_its_next_part(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "MAX_PART_BYTES", 100)
    for word in ("one", "two", "three"):
        ws.script(TELL.format(word))
    assert list_said(ws) == ["three", "two", "one"]
    assert json.loads(ws.read("logs/events-2025-02_003.jsonl"))["payload"] == "three"
    ws.in_order()


@pytest.mark.parametrize("name", ["events-2025-13", "events-2025-1", "events-2025-01_2", "x/events-2025-01"])
def test_a_file_that_is_of_no_month_is_not_read(ws: Workspace, name: str) -> None:
    ws.script(TELL.format("one"))
    path = f"logs/{name}.jsonl"
    ws.put(path, ws.read(FEBRUARY).replace("one", "two"))
    ws.commit(path)
    assert list_said(ws) == ["one"]


def test_only_files_of_events_that_are_asked_for_are_read(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for month in (2, 3, 4):
        monkeypatch.setenv("CLEARED_CLOCK", f"2025-0{month}-20T06:00:00Z")
        ws.script(TELL.format(month))
    read = []

    class Reads(CommittedSource, eq=False):
        def read(self, path: str) -> bytes | None:
            read.append(path)
            return super().read(path)

    with open_workspace(ws.root).open_for_reading() as repo:
        assert next(iter_emitted_events(Reads(Snapshot(repo, repo.read_head()))))["payload"] == "4"
    assert read == ["logs/events-2025-04.jsonl"]


def test_events_of_two_clones_are_joined(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ws.script(TELL.format("one"))
    _, other = part(follow(ws, tmp_path))
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-01T06:00:00Z")
    other.script(TELL.format("theirs"), name="theirs")
    other.ok("sync")
    ws.script(TELL.format("mine"), name="mine")
    ws.ok("sync")
    assert list_said(ws) == ["mine", "theirs", "one"]
    assert ws.read(MARCH).count("\n") == 2 and ws.read(FEBRUARY).count("\n") == 1
    ws.in_order()


def test_files_that_an_agent_has_had_are_known_from_every_month(ws: Workspace) -> None:
    header = "sha256,agent,file,run\n"
    for path, row in (
        ("logs/files.csv", "aa,look,letters/a.txt,r"),
        ("logs/files-2024-12.csv", "bb,look,letters/b.txt,r"),
        ("logs/files-2025-02_002.csv", "cc,look,letters/c.txt,r"),
        ("logs/files-2025-03.csv", "dd,other,letters/d.txt,r"),
        ("logs/files-2025-00.csv", "ee,look,letters/e.txt,r"),
    ):
        ws.put(path, header + row + "\n")
    ws.commit("logs")
    with open_workspace(ws.root).open_for_reading() as repo:
        found = files_handled_by(CommittedSource(Snapshot(repo, repo.read_head())), "look")
    assert found == {"aa": "letters/a.txt", "bb": "letters/b.txt", "cc": "letters/c.txt"}
