"""B32: a taught row says which of its lines it is about (direction, amount, bank account), and how they are split."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest
from harness import Workspace, chase, refused, unchanged
from hypothesis import given
from hypothesis import strategies as st

from cleared.books.teaching.row_limits import NO_LIMITS, RowLimits
from cleared.books.teaching.vendor_table import VendorRow, find_vendor_table, teach_row
from cleared.sandbox.source_edits import remove_item

pytestmark = pytest.mark.slow

ZELLE = chase(
    ("02/03/2025", "ZELLE TO BOB", "-100.00"),
    ("02/04/2025", "ZELLE FROM BIG CLIENT", "5000.00"),
    ("02/05/2025", "ZELLE TO A LANDLORD", "-2000.00"),
)


def booked(ws: Workspace) -> dict[str, tuple[str, list[int]]]:
    """Text → status and accounts of the entries of February."""
    entries = ws.entries("--month", "2025-02")
    return {e["description"]: (e["status"], [line["account_id"] for line in e["lines"]]) for e in entries}


def test_b32_money_in_is_left_alone_by_a_row_of_money_out(posted: Workspace) -> None:
    before = posted.read("agents/ingest.py")
    limits = ("--out", "--account", "1010", "--min", "10", "--max", "500")
    done = posted.ok("teach", "ZELLE", "5110", *limits, "--vendor", "Helpers", "--yes")
    assert "No past line has ZELLE (money out, bank 1010, from 10, up to 500)." in done.out
    row = '    ("ZELLE", "Helpers", 5110, 0.99, {"money": "out", "bank": 1010, "min": 10, "max": 500}),\n'
    assert posted.read("agents/ingest.py").replace(row, "") == before, "every other byte stays"
    posted.drop("february.csv", ZELLE)
    posted.run("ingest")
    assert booked(posted) == {
        "ZELLE TO BOB": ("auto-confirmed", [5110, 1010]),
        "ZELLE FROM BIG CLIENT": ("pending-review", [1010, 4010]),
        "ZELLE TO A LANDLORD": ("pending-review", [5030, 1010]),
    }
    bob = next(e["entry_id"] for e in posted.entries("--month", "2025-02") if e["description"] == "ZELLE TO BOB")
    why = posted.ok("why", bob).out
    assert "vendor table: ZELLE (money out, bank 1010, min 10, max 500)" in why
    listed = [row for row in posted.json("teach", "--list") if row["words"] == "ZELLE"]
    assert [(r["only"], r["lines"], r["last"]) for r in listed] == [
        ("money out, bank 1010, from 10, up to 500", 1, "2025-02-03")
    ]
    shown = posted.ok("teach", "--list").out
    assert "money out, bank 1010" in shown and "never" in shown
    taken = posted.ok("teach", "zelle", "--remove", "--yes").out
    assert "1 past line has ZELLE" in taken and "ingest forgets Helpers" in taken
    assert posted.read("agents/ingest.py") == before
    refused(posted("teach", "ZELLE", "--remove"), 2, "has no row 'ZELLE'")
    posted.in_order()


def test_b32_a_split_takes_its_parts_and_leaves_the_rest(posted: Workspace) -> None:
    posted.ok("teach", "LENDER", "2500", "--out", "--split", "5150=200.00", "--split", "5060=10%", "--yes")
    posted.drop("february.csv", chase(("02/03/2025", "LENDER 1", "-1000.01"), ("02/04/2025", "LENDER 2", "-150.00")))
    posted.run("ingest")
    entries = {e["description"]: e for e in posted.entries("--month", "2025-02")}
    legs = [(x["account_id"], x["debit"], x["credit"]) for x in entries["LENDER 1"]["lines"]]
    assert legs == [
        (5150, "200.00", "0.00"),
        (5060, "100.00", "0.00"),
        (2500, "700.01", "0.00"),
        (1010, "0.00", "1000.01"),
    ]
    small = entries["LENDER 2"]
    assert small["status"] == "pending-review" and small["evidence"].endswith("but the parts do not fit")
    posted.in_order()


def test_b32_blanks_are_folded_on_both_sides(posted: Workspace) -> None:
    """As ``UBER   *TRIP``: the row's words are known, and fire."""
    posted.ok("teach", "UBER  *TRIP", "5070", "--yes")
    posted.drop("february.csv", chase(("02/03/2025", "UBER   *TRIP 17", "-12.00")))
    posted.run("ingest")
    assert booked(posted) == {"UBER   *TRIP 17": ("auto-confirmed", [5070, 1010])}


def test_b32_what_it_would_have_booked_otherwise_comes_first(posted: Workspace) -> None:
    posted.ok("queue", "correct", "2025-01-004", "--account", "5060")
    posted.drop("february.csv", chase(("02/03/2025", "COFFEE 2", "-4.80"), ("02/04/2025", "COFFEE 3", "-5.00")))
    posted.run("ingest")
    posted.ok("queue", "correct", *(f"2025-02-00{n}" for n in (1, 2)), "--account", "5070")
    lines = posted.ok("teach", "COFFEE", "5070", "--out").out.splitlines()
    assert lines[:5] == [
        "3 past lines have COFFEE (money out):",
        "  2025-01-10  -4.50  5060  COFFEE  (booked otherwise)",
        "  2025-02-03  -4.80  5070  COFFEE 2",
        "  2025-02-04  -5.00  5070  COFFEE 3",
        "It would have booked 3 past lines, 1 otherwise than they are booked.",
    ]


UBER = chase(("02/05/2025", "UBER TRIP", "-20.00"), ("02/06/2025", "UBER TRIP", "-10.01"))


def shown_commands(said: str) -> list[list[str]]:
    """The commands that ``teach`` shows for what waits, as their words."""
    _, _, rest = said.partition("Still to decide, in review or:")
    return [shlex.split(line)[1:] for line in rest.split("\n") if line.strip().startswith("cleared ")]


def test_b32_what_waits_is_put_right_as_taught_by_the_commands_that_are_shown(posted: Workspace) -> None:
    """Of two lines each its own amounts; the agent goes on so."""
    posted.drop("february.csv", UBER)
    posted.run("ingest")
    said = posted.ok("teach", "UBER", "5050", "--split", "3200=40%", "--vendor", "A driver", "--yes").out
    assert "2 entries would have gone to 5050 and 3200, 2 cards fewer" in said
    commands = shown_commands(said)
    assert [command[:4] for command in commands] == [
        ["split", "2025-02-001", "3200=8.00", "5050=12.00"],
        ["split", "2025-02-002", "3200=4.00", "5050=6.01"],
    ]
    for command in commands:
        posted.ok(*command)
    posted.drop("march.csv", chase(("03/05/2025", "UBER TRIP 3", "-20.00")))
    posted.run("ingest")
    (entry,) = posted.entries("--month", "2025-03")
    assert {line["account_id"] for line in entry["lines"]} == {1010, 3200, 5050}
    posted.in_order()


def test_b32_parts_that_do_not_fit_are_said(posted: Workspace) -> None:
    posted.drop("february.csv", UBER)
    posted.run("ingest")
    said = posted.ok("teach", "UBER", "5050", "--split", "5150=15.00", "--yes").out
    assert "  2025-02-06  -10.01  5030  UBER TRIP  (the parts do not fit)\n" in said
    assert "The parts do not fit 1 past line: a person is asked about such." in said
    assert "1 entry would have gone to 5050 and 5150, 1 would have waited at 5050, as the parts do not fit" in said
    assert "cleared split 2025-02-001 5150=15.00 5050=5.00 --counterparty Uber\n" in said
    assert said.endswith("Still to decide, in review: 2025-02-002\n")


def test_b32_what_waits_split_goes_to_one_account_as_taught(posted: Workspace) -> None:
    posted.ok("teach", "UBER", "5050", "--split", "3200=40%", "--yes")
    posted.put(
        "agents/ingest.py", posted.read("agents/ingest.py").replace('5050, 0.99, {"split"', '5050, 0.50, {"split"')
    )
    posted.commit("agents/ingest.py", *posted.approve("agents/ingest.py"))
    posted.drop("february.csv", UBER)
    posted.run("ingest")
    waiting = {entry["status"] for entry in posted.entries("--month", "2025-02")}
    assert waiting == {"pending-review"}
    same = posted.ok("teach", "UBER", "5050", "--split", "3200=40%", "--yes").out
    assert "or: cleared queue approve 2025-02-001 2025-02-002\n" in same
    for command in shown_commands(posted.ok("teach", "UBER", "5070", "--yes").out):
        posted.ok(*command)
    assert {each[0] for each in booked(posted).values()} == {"user-corrected"}
    assert [row["balance"] for row in posted.json("journal", "balance", "5070")] == ["30.01"]
    posted.in_order()


def test_b32_an_earlier_starter_gets_room_for_limits_with_its_table(posted: Workspace) -> None:
    """Its rows have four columns: the proposal brings today's script, with the table as it was."""
    path = "agents/ingest.py"
    today = posted.read(path)
    table = find_vendor_table(today)
    assert table is not None
    older = earlier_ingest()
    posted.put(path, older)
    posted.commit(path)
    posted.ok("teach", "COFFEE", "5070", "--yes")
    assert '("COFFEE", "Coffee", 5070, 0.99),' in posted.read(path)
    data = posted.json("teach", "ZELLE", "5110", "--out", "--yes")
    assert data["commit"] is None and "the starter of this version, with your table" in data["doubts"][0]
    text = posted.ok("agent", "diff", data["proposal"]).out
    assert '+    ("ZELLE", "Zelle", 5110, 0.99, {"money": "out"}),' in text and '"COFFEE"' in text
    posted.put(path, posted.read(path).replace("UNKNOWN_EXPENSE = 5030", "UNKNOWN_EXPENSE = 5060"))
    posted.commit(path, *posted.approve(path))
    with unchanged(posted):
        refused(posted("teach", "ZELLE", "5110", "--out"), 2, "has four columns")


def earlier_ingest() -> str:
    """The starter before rows had limits: as today's, with the loop that it had."""
    return (Path(__file__).parent.parent / "workspace/second_ingest.txt").read_text()


REFUSED = {
    "both directions": (["X1 ZELLE", "5110", "--out", "--in"], "are all lines"),
    "no bank account": (["ZELLE", "5110", "--account", "5020"], "5020 is no bank account"),
    "no amount": (["ZELLE", "5110", "--min", "ten"], "--min"),
    "a sign": (["ZELLE", "5110", "--max", "-10"], "less than nothing"),
    "the wrong way round": (["ZELLE", "5110", "--min", "10", "--max", "5"], "no amount is from 10"),
    "no part": (["ZELLE", "5110", "--split", "5150"], "is no part"),
    "all of it": (["ZELLE", "5110", "--split", "5150=60%", "--split", "5060=40%"], "leave nothing"),
    "itself": (["ZELLE", "5110", "--split", "5110=60%"], "leave nothing"),
    "an unknown account": (["ZELLE", "5110", "--split", "5999=60%"], "does not exist"),
    "no account": (["ZELLE"], "an account where it is taught"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_limits_that_cannot_be_are_refused(ws: Workspace, name: str) -> None:
    argv, text = REFUSED[name]
    with unchanged(ws):
        refused(ws("teach", *argv), 2, text)


def numbers() -> st.SearchStrategy[Decimal | None]:
    return st.none() | st.decimals(0, 1000, places=2)


def limits() -> st.SearchStrategy[RowLimits]:
    return st.builds(
        RowLimits,
        st.sampled_from(["", "in", "out"]),
        st.none() | st.sampled_from([1010, 2010]),
        numbers(),
        numbers(),
        st.lists(st.tuples(st.sampled_from([5150, 5060]), st.sampled_from(["20.00", "40%"])), max_size=1).map(tuple),
    )


@given(limits(), limits(), st.decimals(-1000, 1000, places=2), st.sampled_from([1010, 2010]))
def test_a_row_reads_back_and_the_narrower_stands_first(a: RowLimits, b: RowLimits, amount: Decimal, bank: int) -> None:
    source = "VENDORS = [\n    # mine\n]\nx = [row for row in VENDORS]\n"
    rows = [VendorRow("ZELLE", "z", 5110, each) for each in (a, b)]
    for row in rows:
        table = find_vendor_table(source)
        assert table is not None and table.has_limits
        source = teach_row(source, table, row)
    after = find_vendor_table(source)
    assert after is not None
    read = [row for row, _ in after.rows]
    assert set(read) == (set(rows[1:]) if a.scope == b.scope else set(rows))
    if a.is_within(b) and b.fits(amount, bank) is False:
        assert not a.fits(amount, bank)
    for first, second in pairwise(read):
        assert not second.is_more_special(first)
    for _ in read:
        found = find_vendor_table(source)
        assert found is not None
        source = remove_item(source, found.rows[-1][1])
    assert source == "VENDORS = [\n    # mine\n]\nx = [row for row in VENDORS]\n"


def test_the_most_special_row_stands_before_a_more_general_one() -> None:
    source = 'VENDORS = [\n    ("ZELLE", "z", 1, 0.9),\n]\nx = [row for row in VENDORS]\n'

    def taught(rows: Iterator[VendorRow]) -> list[tuple[str, str]]:
        text = source
        for row in rows:
            table = find_vendor_table(text)
            assert table is not None
            text = teach_row(text, table, row)
        table = find_vendor_table(text)
        assert table is not None
        return [(row.words, row.limits.money) for row, _ in table.rows]

    rows = [
        VendorRow("ZELLE", "z", 2, RowLimits("out")),
        VendorRow("ZELLE TO BOB", "bob", 3, NO_LIMITS),
        VendorRow("ZELLE TO BOB", "bob", 4, RowLimits("out")),
    ]
    wanted = [("ZELLE TO BOB", "out"), ("ZELLE TO BOB", ""), ("ZELLE", "out"), ("ZELLE", "")]
    assert taught(iter(rows)) == wanted and taught(iter(rows[::-1])) == wanted
