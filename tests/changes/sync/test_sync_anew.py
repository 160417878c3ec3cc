"""Files that are imported again after their import was taken back, in two clones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, chase
from synced import SHOP, follow

pytestmark = pytest.mark.slow

Two = tuple[Workspace, Workspace]
UNDO = ("import", "undo", "shop.csv", "--reason", "no")
WIDER = chase(("02/03/2025", "CORNER SHOP", "-5.00"), ("02/08/2025", "CAKE", "-3.00"))


@pytest.fixture
def two(ws: Workspace, tmp_path: Path) -> Iterator[Two]:
    """Two clones of books in which an import was taken back. The other one has pushed an entry by hand."""
    ws.drop("shop.csv", SHOP)
    ws.run("ingest")
    ws.ok(*UNDO)
    own, other, _ = follow(ws, tmp_path)
    other.ok("journal", "add", "2025-02-05", "theirs", "5070=9", "1590=-9")
    other.ok("sync")
    yield own, other


def bring(ws: Workspace, data: str = SHOP, name: str = "shop.csv") -> None:
    ws.drop(name, data)
    ws.run("ingest")


def list_waiting(ws: Workspace) -> list[str]:
    return sorted(e["description"] for e in ws.entries() if e["status"] == "pending-review")


def list_left_out(ws: Workspace) -> list[str]:
    return [step["left_out"] for step in ws.json("sync")["steps"] if step["left_out"]]


@pytest.mark.parametrize(("data", "found"), [(SHOP, ["CORNER SHOP"]), (WIDER, ["CAKE", "CORNER SHOP"])])
def test_a_file_that_was_taken_back_before_is_imported_again(two: Two, data: str, found: list[str]) -> None:
    """It may be another file, too, that has the same line."""
    ws, other = two
    bring(ws, data)
    ws.ok("queue", "approve", next(e["entry_id"] for e in ws.entries() if e["status"] == "pending-review"))
    (gone,) = {*found} - {*list_waiting(ws)}
    assert not list_left_out(ws)
    assert sorted([*list_waiting(ws), gone]) == found
    other.ok("sync")
    for each in two:
        each.in_order()


def test_an_undoing_that_is_not_pushed_is_before_it_too(two: Two) -> None:
    """The file is taken back and brought again twice, before it is pushed."""
    ws, _ = two
    bring(ws)
    ws.ok(*UNDO)
    bring(ws)
    assert not list_left_out(ws)
    assert list_waiting(ws) == ["CORNER SHOP"]
    ws.in_order()
    ws.ok(*UNDO)
    assert list_waiting(ws) == []
    ws.in_order()


def test_what_both_bring_again_is_booked_once(two: Two) -> None:
    ws, other = two
    bring(other)
    other.ok("sync")
    bring(ws)
    ws.drop("cake.csv", WIDER)
    ws.run("ingest")
    assert not list_left_out(ws)
    assert list_waiting(ws) == ["CAKE", "CORNER SHOP"]
    ws.in_order()


def test_what_others_bring_again_and_take_back_does_not_matter(two: Two) -> None:
    """As with a file that is imported for the first time."""
    ws, other = two
    bring(other)
    other.ok(*UNDO)
    other.ok("sync")
    bring(ws)
    assert not list_left_out(ws)
    assert list_waiting(ws) == ["CORNER SHOP"]
    ws.in_order()


def test_what_others_take_back_since_is_left_out(two: Two) -> None:
    """The line stood in both clones: of it others have decided."""
    ws, other = two
    bring(other)
    other.ok("sync")
    ws.ok("sync")
    other.ok(*UNDO)
    other.ok("sync")
    bring(ws, WIDER, "wider.csv")
    (why,) = list_left_out(ws)
    assert "whose import was taken back there" in why
    ws.in_order()


def test_what_others_brought_again_is_not_taken_back_from_them(two: Two) -> None:
    ws, other = two
    bring(other, WIDER, "wider.csv")
    other.ok("sync")
    bring(ws)
    ws.ok(*UNDO)
    (why,) = list_left_out(ws)
    assert "a file of others has the bank line" in why
    assert list_waiting(ws) == ["CAKE", "CORNER SHOP"]
    ws.in_order()


def test_a_line_that_is_set_aside_when_it_comes_again_stays_so(two: Two) -> None:
    ws, _ = two
    bring(ws)
    (entry,) = [e["entry_id"] for e in ws.entries() if e["status"] == "pending-review"]
    ws.ok("queue", "reject", entry, "--reason", "no", "--outcome", "personal")
    assert not list_left_out(ws)
    assert list_waiting(ws) == []
    ws.in_order()


def test_both_take_back_what_came_again(two: Two) -> None:
    ws, other = two
    bring(other)
    other.ok("sync")
    ws.ok("sync")
    for each in (other, ws):
        each.ok(*UNDO)
        each.ok("journal", "add", "2025-02-05", each.root.name, "5070=9", "1590=-9")
        assert not list_left_out(each)
    assert list_waiting(ws) == []
    ws.in_order()
    bring(ws)
    assert list_waiting(ws) == ["CORNER SHOP"]
    ws.in_order()


def test_a_row_that_is_not_booked_yet_comes_again_in_another_file(ws: Workspace, tmp_path: Path) -> None:
    tea = chase(("02/07/2025", "TEA", "-2.00")).replace("\nDEBIT,", "\nPENDING,")
    bring(ws, tea)
    ws.ok(*UNDO)
    ws, other, _ = follow(ws, tmp_path)
    other.ok("journal", "add", "2025-02-05", "theirs", "5070=9", "1590=-9")
    other.ok("sync")
    bring(ws, tea + chase(("02/08/2025", "CAKE", "-3.00")).partition("\n")[2], "wider.csv")
    assert not list_left_out(ws)
    assert list_waiting(ws) == ["CAKE"]
    ws.in_order()


def test_a_part_of_a_line_is_booked_again_beside_the_other_one(ws: Workspace, tmp_path: Path) -> None:
    """Its other part was booked in both clones already."""
    ws.script(
        'for f in importer_scan():\n    for t in importer_parse(f["name"]):\n        for part in ("2.00", "3.00"):\n'
        '            journal_add_double(date=t["date"], description="part " + part, debit_account=5070,'
        ' credit_account=1010, amount=part, reference=t["reference"], confidence=1, status="auto-confirmed",'
        ' evidence="sure")\n    importer_mark_processed(f["name"])\ngit_commit("agent: parts")\n',
        name="parts",
    )
    ws.drop("shop.csv", SHOP)
    ws.run("parts")
    ws, other, _ = follow(ws, tmp_path)
    other.ok("journal", "add", "2025-02-05", "theirs", "5070=9", "1590=-9")
    other.ok("sync")
    (entry,) = [e["entry_id"] for e in ws.entries() if e["description"] == "part 3.00"]
    ws.ok("journal", "void", entry, "--reason", "no")
    ws.ok("queue", "undo")
    assert not list_left_out(ws)
    standing = [e["description"] for e in ws.entries() if e["status"] != "voided"]
    assert sorted(standing) == ["part 2.00", "part 3.00", "theirs"]
    ws.in_order()
