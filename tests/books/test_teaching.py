"""Teaching a vendor (``cleared teach``): a row of the script's own table, shown on the user's history, by one key."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace, chase, refused, take_ok, unchanged
from hypothesis import given, settings
from hypothesis import strategies as st
from reviewers import People

from cleared.books.teaching.vendor_table import (
    VendorRow,
    contains_words,
    find_vendor_table,
    propose_words,
    teach_row,
)

pytestmark = pytest.mark.slow

FIRST_INGEST = Path(__file__).parent.parent / "workspace/first_ingest.txt"


def test_a_taught_vendor_is_booked_from_then_on(posted: Workspace) -> None:
    done = posted.ok("teach", "coffee", "5070", "--vendor", "The coffee shop", "--yes")
    assert "1 past line has COFFEE:" in done.out and "5030  COFFEE" in done.out
    assert "1 entry would have gone to 5070, 1 card fewer; nothing else changes." in done.out
    assert "ingest knows The coffee shop from now on" in done.out
    assert "--account 5070 --counterparty 'The coffee shop'\n" in done.out, "so that the vendors report has it"
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE 0231", "-4.80"), ("02/04/2025", "COFFEES", "-5.00")))
    posted.run("ingest")
    by_text = {e["description"]: e for e in posted.entries("--month", "2025-02")}
    assert (by_text["COFFEE 0231"]["status"], by_text["COFFEE 0231"]["counterparty"]) == (
        "auto-confirmed",
        "The coffee shop",
    )
    assert by_text["COFFEES"]["status"] == "pending-review", "whole words only"
    posted.in_order()


def test_every_other_byte_of_the_script_stays(posted: Workspace) -> None:
    before = posted.read("agents/ingest.py")
    posted.ok("teach", "COFFEE", "5070", "--yes")
    after = posted.read("agents/ingest.py")
    row = '    ("COFFEE", "Coffee", 5070, 0.99),\n'
    assert after.replace(row, "") == before and after.count(row) == 1
    posted.ok("teach", "COFFEE", "5060", "--vendor", 'Joe\'s "Beans"', "--yes")
    assert after.replace(row, '    ("COFFEE", "Joe\'s \\"Beans\\"", 5060, 0.99),\n') == posted.read("agents/ingest.py")


def test_without_a_terminal_it_waits_as_a_card(posted: Workspace) -> None:
    done = posted.ok("teach", "COFFEE", "5070")
    assert "P1 waits as a card" in done.out
    assert [c["kind"] for c in posted.cards()].count("proposal") == 1
    take_ok(posted, "agent", "approve", "P1")
    assert '("COFFEE", "Coffee", 5070, 0.99)' in posted.read("agents/ingest.py")
    posted.in_order()


def test_more_than_was_said_waits_as_a_card(posted: Workspace) -> None:
    """The script looks for the words in its own way: what it would do beyond them is no matter of a key."""
    path = "agents/ingest.py"
    posted.put(path, posted.read(path).replace("if says(text, words) and", "if words[:1] in text and"))
    posted.commit(path, *posted.approve(path))
    data = posted.json("teach", "COFFEE", "5070", "--yes")
    assert data["commit"] is None and "would be others than it says" in data["doubts"][0]


def test_with_reviewers_it_waits_as_a_card(posted: Workspace, tmp_path: Path) -> None:
    people = People(posted, tmp_path)
    assert people.json("ana", "teach", "COFFEE", "5070", "--yes")["doubts"] == ["reviewers decide here"]


def test_an_old_starter_without_a_table_gets_one_as_a_proposal(posted: Workspace) -> None:
    posted.put("agents/ingest.py", FIRST_INGEST.read_text())
    posted.commit("agents/ingest.py")
    data = posted.json("teach", "COFFEE", "5070", "--yes")
    assert data["commit"] is None and "had no vendor table" in data["doubts"][0]


REFUSED = {
    "an unknown account": (["COFFEE", "5999"], "does not exist"),
    "the bank itself": (["COFFEE", "1010"], "is the bank account"),
    "no word": (["#1", "5070"], "names nobody"),
    "two lines' worth": (["x" * 81, "5070"], "cannot stand in a vendor table"),
    "what hides": (["COFFEE\u202e", "5070"], "cannot stand in a vendor table"),
    "an unknown agent": (["COFFEE", "5070", "--agent", "nobody"], "no approved agent"),
    "one without a table": (["COFFEE", "5070", "--agent", "monthly_summary"], "has no vendor table"),
    "what it knows": (["GITHUB", "5020", "--vendor", "GitHub"], "knows that already"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_row_can_be_is_refused(ws: Workspace, name: str) -> None:
    argv, text = REFUSED[name]
    with unchanged(ws):
        refused(ws("teach", *argv), 2, text)


TABLES = {
    "a line each": 'VENDORS = [\n    # mine\n    ("B", "b", 1, 0.9),\n]\nx = 1\n',
    "one line": 'VENDORS = [("B", "b", 1, 0.9)]\nx = 1\n',
    "nothing yet": "VENDORS = []\nx = 1\n",
    "nothing yet, open": "VENDORS = [\n]\nx = 1\n",
    "another name, wide characters": 'é = "ü"; known = [  # first\n  ("ÜB", "b", 1, 1), ("C", "c", 2, 0.5)]\nx = 1\n',
}
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=15)
@given(words=TEXT, vendor=TEXT)
def test_a_row_that_was_taught_is_there_and_all_else_stays(name: str, words: str, vendor: str) -> None:
    source = TABLES[name].replace("é = ", "a = ")
    table = find_vendor_table(source)
    assert table is not None
    row = VendorRow(words, vendor, 5070)
    taught = teach_row(source, table, row)
    after = find_vendor_table(taught)
    assert after is not None and row in [each for each, _ in after.rows]
    assert teach_row(taught, after, row) == taught
    kept = [each for each, _ in table.rows if each.words != words]
    assert [each for each, _ in after.rows if each != row][: len(kept)] == kept or len(after.rows) == len(table.rows)


def test_more_special_rows_stay_first() -> None:
    source = 'VENDORS = [\n    ("BLUE BOTTLE COFFEE", "a", 1, 0.9),\n    ("X", "x", 2, 0.9),\n]\n'
    table = find_vendor_table(source)
    assert table is not None
    after = find_vendor_table(teach_row(source, table, VendorRow("COFFEE", "c", 3)))
    assert after is not None
    assert [row.words for row, _ in after.rows] == ["BLUE BOTTLE COFFEE", "COFFEE", "X"]


def test_words_of_their_own_and_the_words_that_are_proposed() -> None:
    assert contains_words("AWS*EMEA", "aws") and contains_words("pay AWS1234", "AWS")
    assert not contains_words("LAWSON", "AWS") and not contains_words("X", "")
    texts = ("BLUE BOTTLE COFFEE #113", "SQ *LUMEN & CO", "UBER   TRIP HELP.UBER.COM", "7 11")
    assert [propose_words(text) for text in texts] == [
        "BLUE BOTTLE COFFEE",
        "LUMEN & CO",
        "UBER TRIP HELP.UBER.COM",
        "7 11",
    ]


@pytest.mark.parametrize(
    "source", ["VENDORS = 1\n", "x = []\n", "VENDORS = [1]\n", "a = [(1, 2, 3, 4)]\n", "VENDORS = [\n"]
)
def test_what_is_no_table(source: str) -> None:
    assert find_vendor_table(source) is None


def test_a_row_that_is_not_sure_enough_becomes_sure(posted: Workspace) -> None:
    """As the starter's row of transfers, whose lines ask each month."""
    row = '("ONLINE TRANSFER", "Own account", 1090, 0.80)'
    assert row in posted.read("agents/ingest.py")
    posted.ok("teach", "ONLINE TRANSFER", "1090", "--vendor", "Own account", "--yes")
    assert row.replace("0.80", "0.99") in posted.read("agents/ingest.py")
    refused(posted("teach", "ONLINE TRANSFER", "1090", "--vendor", "Own account", "--yes"), 2, "knows that already")


def test_a_vendor_of_the_past_is_taught_an_account_of_today(posted: Workspace) -> None:
    posted.ok("accounts", "add", "5270", "Coffee and tea", "--type", "expense")
    posted.ok("accounts", "add", "5071", "Meals with customers", "--type", "expense", "--parent", "5070")
    done = posted.ok("teach", "COFFEE", "5270", "--yes")
    assert "Over 1 past run: 1 entry would have gone to 5270, 1 card fewer; nothing else changes.\n" in done.out
    assert "ingest knows Coffee from now on" in done.out
    posted.in_order()


def test_a_past_run_that_nothing_can_repeat_is_named(posted: Workspace) -> None:
    """Both versions fail over it today: that is no run without a difference."""
    path = "agents/ingest.py"
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE 0231", "-4.80")))
    posted.run("ingest")
    failing = "        if f['name'] == 'january.csv':\n            accounts_get(bank + 7991)\n"
    posted.put(
        path, posted.read(path).replace("        txns = importer_parse", failing + "        txns = importer_parse", 1)
    )
    posted.commit(path, *posted.approve(path))
    done = posted.ok("teach", "COFFEE", "5070", "--yes")
    assert (
        "Over 1 past run: 1 entry would have gone to 5070, 1 card fewer; nothing else changes. 1 more run cannot be "
        "compared: the files are not in the repository, or both versions fail over them today.\n"
    ) in done.out
