"""Fault 17: the card of a file that could not be read is settled by what was imported instead of it. Row B10."""

from __future__ import annotations

from typing import Any

import pytest
from harness import JANUARY, Workspace, chase

BAD = JANUARY.replace("-45.10", "-45.1O")


def bad(ws: Workspace, status: str = "open") -> list[dict[str, Any]]:
    return [c for c in ws.cards("--status", status) if c["kind"] == "bad_file"]


@pytest.fixture
def refused_file(ws: Workspace) -> Workspace:
    """january.csv has a row that cannot be read: a card, nothing posted."""
    ws.drop("january.csv", BAD)
    ws.run("ingest")
    assert len(bad(ws)) == 1 and "line 4" in bad(ws)[0]["title"] and not ws.entries()
    return ws


def test_b10_the_same_name_imported(refused_file: Workspace) -> None:
    ws = refused_file
    ws.drop("january.csv", JANUARY)
    ran = ws.run("ingest")
    assert not bad(ws) and len(ws.entries()) == 4
    [card] = bad(ws, "resolved")
    assert card["resolution"] == f"it was imported by {ran['run_id']}" and card["resolved_by"] == "cleared"


def test_b10_another_name_with_all_its_other_lines(refused_file: Workspace) -> None:
    ws = refused_file
    (ws.root / "import/january.csv").unlink()
    ws.drop("january-corrected.csv", JANUARY)
    ws.run("ingest")
    assert not bad(ws)
    assert "all its other lines were imported from import/january-corrected.csv" in bad(ws, "resolved")[0]["resolution"]


def test_b10_not_while_it_still_lies_there(refused_file: Workspace) -> None:
    """It would be refused again at the next look."""
    ws = refused_file
    ws.drop("january-corrected.csv", JANUARY)
    ws.run("ingest")
    assert len(bad(ws)) == 1 and len(ws.entries()) == 4


def test_b10_not_by_a_file_that_lacks_a_row_of_it(refused_file: Workspace) -> None:
    """What of it is in the books cannot be known then: a person says."""
    ws = refused_file
    (ws.root / "import/january.csv").unlink()
    ws.drop("other.csv", "".join(JANUARY.splitlines(keepends=True)[:-1]))
    ws.run("ingest")
    assert len(bad(ws)) == 1


def test_b10_refused_once_more_is_one_card(refused_file: Workspace) -> None:
    """Corrected, but not well: the card of the old cause is past."""
    ws = refused_file
    ws.drop("january.csv", BAD.replace("01/03/2025", "01/33/2025").replace("-45.1O", "-45.10"))
    ws.run("ingest")
    [card] = bad(ws)
    assert "line 2" in card["title"]
    assert bad(ws, "resolved")[0]["resolution"] == f"it is refused for another reason now: {card['id']}"


def test_b10_an_account_that_was_added_since(ws: Workspace) -> None:
    """The file was right, the settings were not; it may have another name by now."""
    config = ws.read("config.yaml")
    ws.put_config(config.replace("format: chase_checking", "format: chase_card"))
    ws.drop("january.csv")
    ws.run("ingest")
    assert len(bad(ws)) == 1
    ws.put_config(config)
    (ws.root / "import/january.csv").rename(ws.root / "import/jan.csv")
    ws.run("ingest")
    assert not bad(ws) and len(ws.entries()) == 4


def test_b10_many_files_of_one_kind_are_settled_when_all_are_imported(ws: Workspace) -> None:
    """One card for all of them: it waits for the last."""
    names = ["a.csv", "b.csv"]
    for number, name in enumerate(names):
        ws.drop(name, BAD.replace("COFFEE", f"COFFEE {number}"))
    ws.run("ingest")
    assert len(bad(ws)) == 1
    for number, name in enumerate(names):
        ws.drop(name, JANUARY.replace("COFFEE", f"COFFEE {number}"))
        if not number:
            ws.drop("b.csv", BAD)
        ws.run("ingest")
        assert len(bad(ws)) == 1 - number
    ws.in_order()


def test_b10_more_files_than_the_card_names_wait_for_a_person(ws: Workspace) -> None:
    """Of those that it does not name nobody knows whether they were imported."""
    for number in range(51):
        ws.drop(f"part-{number}.csv", BAD)
    ws.run("ingest")
    assert len(bad(ws)) == 1 and bad(ws)[0]["title"].startswith("51 files")
    ws.drop("january.csv", JANUARY)
    ws.run("ingest")
    assert len(bad(ws)) == 1 and len(ws.entries()) == 4


def test_b10_what_it_is_known_by_is_not_shown(refused_file: Workspace) -> None:
    assert "_known_by" not in refused_file.ok("queue", "show", bad(refused_file)[0]["id"]).out


def test_a_year_that_was_mistyped_is_refused_whole(ws: Workspace) -> None:
    ws.drop("a.csv", chase(("02/03/2125", "GITHUB *PRO", "-4.00"), ("02/04/2025", "COFFEE", "-4.50")))
    ws.run("ingest")
    (card,) = ws.cards()
    assert "dated 2125-02-03, more than a year ahead" in card["title"] and not ws.entries()
    ws.drop("b.csv", chase(("02/03/2026", "GITHUB *PRO", "-4.00")))
    ws.run("ingest")
    assert [entry["date"] for entry in ws.entries()] == ["2026-02-03"], "within a year: the bank may know"
