"""Fault 12: a file that is written to after it was imported loses nothing. Rows C3, B8.

A writer that still has the file open writes on, wherever the file's name has gone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import pytest
from harness import JANUARY, Workspace, chase, refused
from world import World

from cleared.changes import imported_files as holding

MORE = "DEBIT,01/31/2025,LATE,-7.00,ACH_DEBIT,2439.40,,\n"
LATE = JANUARY + MORE


@contextmanager
def writing(ws: Workspace, text: str = JANUARY, name: str = "january.csv") -> Iterator[BinaryIO]:
    """A program that has written so much of a file, and has it open still."""
    with (ws.root / "import" / name).open("wb", buffering=0) as file:
        file.write(text.encode())
        yield file


def grown(ws: Workspace) -> list[dict[str, object]]:
    return [c for c in ws.cards() if c["kind"] == "grown_file"]


def dropped(ws: Workspace) -> list[str]:
    return sorted(p.name for p in (ws.root / "import").iterdir() if p.is_file() and not p.name.startswith("."))


def held(ws: Workspace) -> list[Path]:
    return sorted((ws.root / ".cleared/taken").iterdir())


@pytest.fixture(params=["git", "local", "no hard links", "local, no hard links"])
def kept(request: pytest.FixtureRequest, ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Whatever becomes of the file itself: removed, renamed; with and without second names."""
    if "local" in request.param:
        ws.config("import.keep=local")
    if "no hard links" in request.param:
        monkeypatch.setattr(holding, "_link_file", lambda *_: None)
    return ws


def test_rows_that_come_after_the_import_are_booked(kept: Workspace) -> None:
    """The writer pauses for longer than the settle time; its last row comes by itself, and is asked about."""
    with writing(kept) as file:
        kept.run("ingest")
        file.write(MORE.encode())
        assert not kept.entries("--text", "LATE")
        kept.run("ingest")
    assert [e["amount"] for e in kept.entries("--text", "LATE")] == ["7.00"]
    assert len(kept.entries()) == 5, "and nothing twice"
    [card] = grown(kept)
    assert "january.csv grew by" in str(card["title"]) and "january-grown-" in str(card["title"])
    kept.run("ingest")
    assert len(kept.entries()) == 5 and len(grown(kept)) == 1 and dropped(kept) == []
    kept.in_order()


def test_it_may_grow_again_and_again(ws: Workspace) -> None:
    with writing(ws) as file:
        ws.run("ingest")
        for number in range(3):
            file.write(f"DEBIT,01/31/2025,LATE {number},-7.0{number},ACH_DEBIT,,,\n".encode())
            ws.run("ingest")
    assert [e["description"] for e in ws.entries("--text", "LATE")] == ["LATE 0", "LATE 1", "LATE 2"]
    assert len(grown(ws)) == 3


def test_c3_the_service_brings_it_back_by_itself(ws: Workspace) -> None:
    """C3: found at a scan, and at the next start where it grew while nothing ran."""
    world = World(ws)
    with writing(ws) as file:
        with world:
            world.settle()
            assert len(world.ran("ingest")) == 1
            file.write(MORE.encode())
            world.forward(minutes=2)
            assert [e["amount"] for e in ws.entries("--text", "LATE")] == ["7.00"]
        file.write(MORE.replace("LATE", "LATER").encode())
        with world:
            world.settle()
            assert [e["amount"] for e in ws.entries("--text", "LATER")] == ["7.00"]
    ws.in_order()


def test_a_file_that_is_being_written_to_waits(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not before it has been still for the settle time: no half of a row comes."""
    with writing(ws) as file:
        ws.run("ingest")
        file.write(MORE[:20].encode())
        now = os.fstat(file.fileno()).st_mtime
        for after, there in ((1.0, []), (3.0, ["january-grown"])):
            monkeypatch.setenv("CLEARED_CLOCK", datetime.fromtimestamp(now + after, UTC).isoformat())
            ws.run("review_reminder")
            assert [name[:13] for name in dropped(ws)] == there


def test_a_row_that_was_cut_short_is_named(ws: Workspace) -> None:
    """Half a row can pass for a whole one: the card says which it was."""
    config = ws.read("config.yaml").replace("format: chase_checking", "format: plain")
    columns = "columns: { date: Day, description: Text, amount: Amount }"
    ws.put_config(config.replace("  # profiles:\n", f"  profiles:\n    plain:\n      {columns}\n", 1))
    whole = "Day,Text,Amount\n2025-01-03,GITHUB,-4\n2025-01-04,SHOES,-52.18\n"  # no places that the cut row lacks
    cut = whole[: whole.index("52.18") + 2]
    with writing(ws, cut) as file:
        ws.run("ingest")
        assert [e["amount"] for e in ws.entries("--text", "SHOES")] == ["52.00"]
        file.write(whole[len(cut) :].encode())
        ws.run("ingest")
    [card] = grown(ws)
    assert "line 3 was not whole" in str(card["title"])
    assert card["details"]["whole_row"] == whole.splitlines()[2]  # type: ignore[index]


def test_a_file_that_is_written_anew_or_emptied(ws: Workspace) -> None:
    with writing(ws) as file:
        ws.run("ingest")
        file.seek(0)
        file.truncate()
        ws.run("review_reminder")
        assert "was emptied" in str(grown(ws)[0]["title"]) and dropped(ws) == []
        file.write(chase(("01/30/2025", "OTHER", "-1.00")).encode())
        ws.run("ingest")
    assert "was written anew" in str(grown(ws)[1]["title"])
    assert [e["amount"] for e in ws.entries("--text", "OTHER")] == ["1.00"] and len(ws.entries()) == 5


def test_a_file_that_nobody_writes_to_costs_nothing(ws: Workspace) -> None:
    ws.drop("january.csv")
    ws.run("ingest")
    head = ws.head()
    os.utime(held(ws)[0])
    ws.run("monthly_summary")
    ws.run("monthly_summary")
    assert not grown(ws) and dropped(ws) == [] and ws.git("status", "--porcelain") == ""
    assert ws.head() == head


def test_a_run_that_fails_leaves_the_file_where_it_is_and_holds_nothing(ws: Workspace) -> None:
    ws.drop("january.csv")
    text = ws.read("import/january.csv")
    ws.script(
        "for f in importer_scan():\n    importer_parse(f['name'])\n    importer_mark_processed(f['name'])", code=1
    )
    assert ws.read("import/january.csv") == text
    assert not (ws.root / ".cleared/taken").exists() or held(ws) == []


def test_killed_while_it_was_brought_back(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the file in import/ and the card, between the card and the note of it: one file, one card."""
    from cleared.changes.decisions import grown_files

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    with writing(ws) as file:
        ws.run("ingest")
        file.write(MORE.encode())
        for name in ("_stage_card", "save_record"):
            with monkeypatch.context() as patch, pytest.raises(Killed):
                patch.setattr(grown_files, name, die)
                ws("agent", "run", "review_reminder")
        ws.run("ingest")
        ws.run("ingest")
    assert len(ws.entries("--text", "LATE")) == 1 and len(grown(ws)) == 1 and dropped(ws) == []


def test_files_are_let_go_of_after_a_week(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not one that was written to meanwhile."""
    with writing(ws) as file:
        ws.run("ingest")
        ws.drop("other.csv", chase(("01/11/2025", "OTHER", "-1.00")))
        ws.run("ingest")
        assert len(held(ws)) == 4
        file.write(MORE.encode())
        monkeypatch.setenv("CLEARED_CLOCK", "2025-03-10T06:00:00Z")
        ws.drop("third.csv", chase(("01/12/2025", "THIRD", "-1.00")))
        ws.run("ingest")
        names = {p.name for p in held(ws)}
    assert len(ws.entries("--text", "LATE")) == 1
    assert len(names) == 6 and sum("20250210" in name for name in names) == 2, "the one that grew, and this run's two"


def test_a_larger_file_than_may_be_read_is_told(ws: Workspace) -> None:
    with writing(ws) as file:
        ws.run("ingest")
        ws.config("import.max_bytes=1024")
        file.write(b"x" * 2_000)
        ws.run("review_reminder")
        ws.run("review_reminder")
    [card] = grown(ws)
    assert "is not read again" in str(card["title"]) and dropped(ws) == []


def test_records_that_somebody_made_up_lead_nowhere(ws: Workspace) -> None:
    """What is held is looked up below ``.cleared/taken`` and ``import/`` only."""
    ws.drop("january.csv")
    ws.run("ingest")
    record = next(p for p in held(ws) if p.suffix == ".json")
    text = record.read_text()
    secret = ws.put("../outside.csv", LATE)
    for path in ("../outside.csv", str(secret), ".cleared/taken/../../../outside.csv", "config.yaml"):
        record.write_text(text.replace(record.stem, "x").replace(".cleared/taken/x", path))
        ws.run("ingest")
        assert not grown(ws) and dropped(ws) == []
    record.write_text("{")
    ws.run("ingest")


def test_without_holding_on_to_it_the_rows_are_lost(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall switched off: the proof that these tests can fail."""
    monkeypatch.setattr(holding, "hold_files", lambda host, moves, *_: (tuple(moves), []))
    with writing(ws) as file:
        ws.run("ingest")
        file.write(MORE.encode())
        ws.run("ingest")
    assert not ws.entries("--text", "LATE") and not grown(ws)
    refused(ws("queue", "show", "nosuch"), 2)


def test_of_very_many_held_files_the_oldest_are_released(posted: Workspace) -> None:
    taken = posted.root / ".cleared/taken"
    [record] = taken.glob("*.json")
    found = json.loads(record.read_text())
    for number in range(1_200):
        name = f"{found['id']}-{number:04}"
        held = {**found, "id": name, "held": f".cleared/taken/{name}"}
        (taken / f"{name}.json").write_text(json.dumps(held))
    posted.drop("later.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00", "2442.40")))
    posted.run("ingest")
    left = sorted(path.stem for path in taken.glob("*.json"))
    assert len(left) == 1_001 and f"{found['id']}-1199" in left and f"{found['id']}-0100" not in left
