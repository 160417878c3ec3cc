"""Bank facts: identity, matches, check 7; the chart."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from ledger_samples import CHART, JAN5, JOURNAL, bank, books, journal, leg_row, legs, pair

from cleared.base.csv_text import format_record
from cleared.base.errors import PrimitiveError, WorkspaceError
from cleared.books.audit.books_check import check_books
from cleared.books.ledger.bank_lines import (
    LINE_COLUMNS,
    MATCH_COLUMNS,
    OUTCOME_COLUMNS,
    append_rows,
    identify_rows,
    make_bank_line,
    make_line_id,
    normalise_description,
)
from cleared.books.ledger.bank_row import BankRow
from cleared.books.ledger.chart import parse_chart
from cleared.books.ledger.checks import check_draft
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.staged_bank_lines import BankBook

LEDGER = {"checking": 1010}


def row(
    text: str = "SHOP", amount: str = "-4.00", day: date = JAN5, bank_id: str = "", state: str = "posted"
) -> BankRow:
    return BankRow(2, day, text, Decimal(amount), bank_id=bank_id, state=state)  # type: ignore[arg-type]


def recorded(*rows: BankRow) -> tuple[dict[str, bytes], list[str]]:
    lines = [make_bank_line(r, n, i, "sha", "USD") for r, n, i in identify_rows("checking", rows)]
    text = "".join(line.to_csv() for line in lines)
    return {"books/bank/checking/2025-01.csv": append_rows(None, LINE_COLUMNS, text)}, [line.line_id for line in lines]


def test_identity_is_what_the_bank_said_not_how() -> None:
    assert normalise_description("  caf\u0065\u0301  ﬁn\u00a0") == normalise_description("CAFÉ FIN")
    first = make_line_id("checking", row("Shop  1"), 1)
    assert first == make_line_id("checking", row("SHOP 1"), 1)
    for other in (
        row("SHOP 2"),
        row("Shop 1", "-4.01"),
        row("Shop 1", day=date(2025, 1, 6)),
        row("Shop 1", bank_id="7"),
    ):
        assert make_line_id("checking", other, 1) != first
    assert make_line_id("card", row("Shop 1"), 1) != first
    assert make_line_id("checking", row("Shop 1"), 2) != first
    by_id = make_line_id("checking", row("a", bank_id="7"), 1)
    assert by_id == make_line_id("checking", row("b", day=date(2025, 2, 1), bank_id="7"), 1)
    assert by_id != make_line_id("checking", row("a", "-5.00", bank_id="7"), 1)


def test_equal_rows_are_counted() -> None:
    found = identify_rows("checking", [row(), row(), row("OTHER"), row()])
    assert [n for _, n, _ in found] == [1, 2, 1, 3]
    assert len({i for _, _, i in found}) == 4


def test_posting_a_line_twice_gives_the_first_entry() -> None:
    files, (line,) = recorded(row())
    b, facts = books(), bank(files)
    entry, duplicate = post_entry(b, facts, LEDGER, JAN5, "x", legs(), reference=line)
    assert not duplicate
    again, duplicate = post_entry(b, facts, LEDGER, JAN5, "x", legs(), reference=line)
    assert duplicate and again.entry_id == entry.entry_id
    assert len(list(b.iter_entries())) == 1
    assert check_draft(b, facts) == []


@pytest.mark.parametrize(
    ("posting", "text"),
    [
        (legs(credit=4010), "posts to"),
        (legs(debit=1010, credit=5030), "the entry moves"),
        (legs("4.01"), "the entry moves"),
    ],
)
def test_an_entry_that_does_not_fit_its_line(posting: object, text: str) -> None:
    files, (line,) = recorded(row())
    b, facts = books(), bank(files)
    with pytest.raises(PrimitiveError, match=text):
        post_entry(b, facts, LEDGER, JAN5, "x", posting, reference=line)  # type: ignore[arg-type]
    assert not b.staged and not facts.new_matches


def test_references_that_are_no_lines() -> None:
    b, facts = books(), bank()
    assert post_entry(b, facts, LEDGER, JAN5, "x", legs(), reference="invoice 7")[1] is False
    with pytest.raises(PrimitiveError, match="names no bank line"):
        post_entry(b, facts, LEDGER, JAN5, "x", legs(), reference="f1:nothing")
    files, (line,) = recorded(row(state="pending"))
    with pytest.raises(PrimitiveError, match="pending"):
        post_entry(b, bank(files), LEDGER, JAN5, "x", legs(), reference=line)


def test_a_line_in_parts_must_sum_to_it() -> None:
    """Check 7 at the seal: half of a line is not enough."""
    files, (line,) = recorded(row())
    b, facts = books(), bank(files)
    post_entry(b, facts, LEDGER, JAN5, "x", legs("1.00"), reference=line)
    assert [v.check for v in check_draft(b, facts)] == ["lines_accounted"]
    post_entry(b, facts, LEDGER, JAN5, "x", legs("3.00"), reference=line)
    assert check_draft(b, facts) == []
    assert facts.posted_amount(line) == Decimal("-4.00")


def test_ignoring_half_of_a_line_is_no_outcome() -> None:
    files, (line,) = recorded(row())
    b, facts = books(), bank(files)
    post_entry(b, facts, LEDGER, JAN5, "x", legs("1.00"), reference=line)
    facts.set_line_aside(line, "ignored", "why")
    assert [v.check for v in check_draft(b, facts)] == ["lines_accounted"]


def facts_of(line: str, leg: str, amount: str, outcome: str = "") -> dict[str, bytes]:
    out = {"books/bank/matches.csv": append_rows(None, MATCH_COLUMNS, format_record((line, leg, amount)))}
    if outcome:
        out["books/bank/outcomes.csv"] = append_rows(
            None, OUTCOME_COLUMNS, format_record((line, outcome, "why", "run"))
        )
    return out


def test_facts_and_journal_must_agree() -> None:
    """Every way in which a match can be wrong is told."""
    files, (line,) = recorded(row())
    good = {JOURNAL: journal(*pair())}
    leg = "2025-01-001b"
    assert check_books(books(good), bank(files | facts_of(line, leg, "-4.00"))) == []
    for wrong in (
        files,
        files | facts_of(line, "2025-01-009b", "-4.00"),
        files | facts_of(line, leg, "-3.00"),
        facts_of("f1:gone", leg, "-4.00"),
        files
        | facts_of(line, leg, "-4.00")
        | {"books/bank/card/2025-01.csv": files["books/bank/checking/2025-01.csv"]},
    ):
        found = check_books(books(good), bank(wrong))
        assert {v.check for v in found} == {"lines_accounted"}, wrong


def test_other_files_beside_the_facts_are_nobodys_business() -> None:
    files, (line,) = recorded(row())
    for name in ("notes.txt", "2025-01.csv~", ".2025-01.csv.swp", "2025-13.csv", "old/2025-01.csv"):
        files[f"books/bank/checking/{name}"] = b"\xff not ours\n"
    facts: BankBook = bank(files)
    assert facts.find_line(line) is not None
    assert facts.find_line("f1:other") is None


@pytest.mark.parametrize(
    "text", ["", "x\n", "a,b\n", format_record(LINE_COLUMNS) + "short\n", format_record(LINE_COLUMNS) + "," * 13 + "\n"]
)
def test_damaged_facts_name_the_line(text: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        bank({"books/bank/checking/2025-01.csv": text.encode()}).find_line("f1:x")
    assert caught.value.place and caught.value.place.line and caught.value.remedy


# -- the chart --------------------------------------------------------------------------------------------------

HEAD = CHART.split(b"\n")[0] + b"\n"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("x,N,asset,,,,,,,", "account_id"),
        ("0,N,asset,,,,,,,", "account_id"),
        ("-1,N,asset,,,,,,,", "account_id"),
        ("1" * 5000 + ",N,asset,,,,,,,", "account_id"),
        ("١,N,asset,,,,,,,", "account_id"),
        ("1,N,money,,,,,,,", "account_type"),
        ("1,N,asset,x,,,,,,", "parent_id"),
        ("1,N,asset,9,,,,,,", "parent_id"),
        ("1,N,asset," + "1" * 5000 + ",,,,,,", "parent_id"),
        ("1,N,asset,,,,,,shut,", "status"),
        ("1,N,asset,,,,,,closed,soon", "closed_on"),
        ("1,N,asset,,,,,,,\n1,M,asset,,,,,,,", "account_id"),
    ],
)
def test_a_wrong_account_is_told_by_line_and_column(line: str, field: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        parse_chart(HEAD + line.encode() + b"\n", "chart")
    place = caught.value.place
    assert place and place.field == field and place.line == 2 + line.count("\n")


def test_no_chart_is_told() -> None:
    with pytest.raises(WorkspaceError, match="missing"):
        parse_chart(None, "chart")
    assert "The nearest is 5030" in parse_chart(CHART, "chart").why_not_postable(5031, JAN5)[1]  # type: ignore[index]


def test_leg_rows_of_samples_are_what_is_written() -> None:
    b = books()
    b.add_entry(JAN5, "x", legs(), confidence="0.50", status="auto-confirmed")
    assert b.render_files()[JOURNAL] == journal(leg_row("2025-01-001a"), leg_row("2025-01-001b", "1010", "", "4.00"))
