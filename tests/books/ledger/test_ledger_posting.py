"""Posting against bank lines: what is matched, found again, taken back; similar lines; corrections; files written."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from ledger_samples import JAN5, ZERO, bank, books, entry_of, legs, make_line, read_files

from cleared.base.csv_text import format_record
from cleared.base.errors import PrimitiveError
from cleared.books.ledger.bank_lines import (
    LINE_COLUMNS,
    MATCH_COLUMNS,
    OUTCOME_COLUMNS,
    Outcome,
    append_rows,
    parse_outcomes,
)
from cleared.books.ledger.corrections import effective_legs, find_corrections, make_leg
from cleared.books.ledger.entry import Leg
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.voided_lines import unmatch_entries

LEDGER = {"checking": 1010}


def test_a_line_whose_bank_account_left_the_configuration() -> None:
    draft, facts = books(), read_files(make_line())
    with pytest.raises(PrimitiveError, match=r"'checking', which config\.yaml no longer has"):
        post_entry(draft, facts, {"card": 1010}, JAN5, "x", legs(), reference="f1:a")
    assert not draft.staged and not facts.new_matches


@pytest.mark.parametrize(
    ("posting", "is_refused"),
    [
        (legs("4.00"), False),
        (legs("3.99"), False),
        (legs("4.01"), True),
        (legs("1.00", debit=1010, credit=5030), True),
        ([Leg(5030, Decimal("4.00"), ZERO), *[Leg(1010, ZERO, Decimal("2.00"))] * 2], False),
        ([Leg(5030, Decimal("6.00"), ZERO), *[Leg(1010, ZERO, Decimal("3.00"))] * 2], True),
        ([Leg(1010, Decimal("4.00"), ZERO), Leg(1010, ZERO, Decimal("4.00"))], True),
    ],
)
def test_an_entry_moves_no_more_than_is_left_of_the_line(posting: list[Leg], is_refused: bool) -> None:
    draft, facts = books(), read_files(make_line())
    if is_refused:
        with pytest.raises(PrimitiveError):
            post_entry(draft, facts, LEDGER, JAN5, "x", posting, reference="f1:a")
    else:
        post_entry(draft, facts, LEDGER, JAN5, "x", posting, reference="f1:a")
    assert bool(draft.staged) is not is_refused


def test_what_is_left_shrinks_with_each_part() -> None:
    draft, facts = books(), read_files(make_line(amount="4.00"))
    parts = [legs(amount, debit=1010, credit=4010) for amount in ("3.00", "1.01", "1.00")]
    post_entry(draft, facts, LEDGER, JAN5, "x", parts[0], reference="f1:a")
    with pytest.raises(PrimitiveError, match=r"\(1.00 not yet posted\), the entry moves 1.01"):
        post_entry(draft, facts, LEDGER, JAN5, "x", parts[1], reference="f1:a")
    last, duplicate = post_entry(draft, facts, LEDGER, JAN5, "x", parts[2], reference="f1:a")
    assert not duplicate
    again, duplicate = post_entry(draft, facts, LEDGER, JAN5, "x", parts[2], reference="f1:a")
    assert duplicate and again == last  # the newest of the two


def test_a_line_of_zero_is_never_posted() -> None:
    draft, facts = books(), read_files(make_line(amount="0.00"))
    with pytest.raises(PrimitiveError, match=r"the bank moved 0\.00"):
        post_entry(draft, facts, LEDGER, JAN5, "x", legs(), reference="f1:a")


def test_posting_the_rest_of_a_line_takes_its_outcome_back() -> None:
    draft, facts = books(), read_files(make_line())
    facts.set_line_aside("f1:a", "held", "why")
    post_entry(draft, facts, LEDGER, JAN5, "x", legs("1.00"), reference="f1:a")
    assert facts.find_outcome("f1:a") == Outcome("held", "why")
    post_entry(draft, facts, LEDGER, JAN5, "x", legs("3.00"), reference="f1:a")
    assert facts.find_outcome("f1:a") is None


def test_a_line_whose_posting_is_voided_is_open_again() -> None:
    draft, facts = books(), read_files(make_line("f1:a"), make_line("f1:b"))
    first, _ = post_entry(draft, facts, LEDGER, JAN5, "x", legs(), reference="f1:a")
    post_entry(draft, facts, LEDGER, JAN5, "x", legs(), reference="f1:b")
    original, reversal = draft.void_entry(first.entry_id, "wrong")
    assert unmatch_entries(facts, [(original, reversal)], "wrong") == [make_line("f1:a")]
    assert facts.posted_amount("f1:a") == 0 and facts.posted_amount("f1:b") == Decimal("-4.00")
    assert facts.find_outcome("f1:a") == Outcome("voided", "wrong") and facts.find_outcome("f1:b") is None
    assert facts.matches["f1:a"] == (
        (f"{first.entry_id}b", Decimal("-4.00")),
        (f"{reversal.entry_id}b", Decimal("4.00")),
    )
    second, duplicate = post_entry(draft, facts, LEDGER, JAN5, "x", legs(), reference="f1:a")
    assert not duplicate
    # The newest entry that stands is the one that is found; neither the voided one nor its reversal.
    assert post_entry(draft, facts, LEDGER, JAN5, "x", legs(), reference="f1:a") == (second, True)


def test_a_match_to_an_entry_that_is_gone_is_refused() -> None:
    facts = read_files(make_line())
    facts.match_entry(make_line(), 1010, entry_of(number="009"))
    with pytest.raises(PrimitiveError, match="matched to an entry that is not in the journal"):
        post_entry(books(), facts, LEDGER, JAN5, "x", legs(), reference="f1:a")


# -- recorded lines and facts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("day", "amount", "state", "is_similar"),
    [
        ("2025-02-02", "-4.00", "posted", True),
        ("2025-01-28", "-4.00", "posted", True),
        ("2025-02-07", "-4.00", "posted", True),
        ("2025-01-27", "-4.00", "posted", False),
        ("2025-02-08", "-4.00", "posted", False),
        ("2025-02-02", "4.00", "posted", False),
        ("2025-02-02", "-4.00", "pending", False),
    ],
)
def test_similar_lines_have_the_amount_and_are_five_days_apart_at_most(
    day: str, amount: str, state: str, is_similar: bool
) -> None:
    recorded = make_line("f1:old", amount, state, date.fromisoformat(day))
    text = append_rows(None, LINE_COLUMNS, recorded.to_csv())
    facts = bank({f"books/bank/checking/{day[:7]}.csv": text})
    new = make_line(day=date(2025, 2, 2))
    assert facts.find_similar_lines("checking", new) == ([recorded] if is_similar else [])
    assert facts.find_similar_lines("card", new) == []


def test_lines_are_found_in_every_account_and_month() -> None:
    lines = {
        "checking/2025-01": make_line("f1:a"),
        "checking/2025-02": make_line("f1:b", day=date(2025, 2, 1)),
        "card/2025-01": make_line("f1:c"),
    }
    files = {f"books/bank/{k}.csv": append_rows(None, LINE_COLUMNS, line.to_csv()) for k, line in lines.items()}
    facts = bank(files | {"books/bank/matches.csv": format_record(MATCH_COLUMNS).encode()})
    assert facts.list_accounts() == ["card", "checking"]
    assert [line.line_id for line in facts.iter_account_lines("checking")] == ["f1:a", "f1:b"]
    for line_id, account in (("f1:b", "checking"), ("f1:c", "card"), ("f1:a", "checking")):
        resolved = bank(files).find_line(line_id)
        assert resolved is not None and (resolved[0], resolved[1].line_id) == (account, line_id)
    assert facts.find_line("f1:none") is None


def test_committed_outcomes_hold_until_a_newer_one() -> None:
    rows = format_record(("f1:a", "held", "first", "r1")) + format_record(("f1:a", "ignored", "second", "r2"))
    facts = bank({"books/bank/outcomes.csv": append_rows(None, OUTCOME_COLUMNS, rows)})
    assert facts.find_outcome("f1:a") == Outcome("ignored", "second", run="r2")
    assert facts.find_outcome("f1:b") is None
    facts.set_line_aside("f1:a", "held", "third")
    assert facts.find_outcome("f1:a") == Outcome("held", "third")


def test_only_the_program_says_which_line_counts_instead() -> None:
    """The file names it at the end of the reason, as it always has; a reason that somebody ends so names none."""
    other = f"f1:{'0' * 24}"
    facts = read_files(make_line("f1:a"), make_line("f1:b"))
    facts.set_line_aside("f1:a", "ignored", "why", other)
    facts.set_line_aside("f1:b", "ignored", f"why ({other})")
    path = "books/bank/outcomes-2025-01.csv"
    data = facts.render_files("run")[path]
    assert data.decode().splitlines()[1:] == [f"f1:a,ignored,why ({other}),run", f"f1:b,ignored,why ({other}).,run"]
    assert parse_outcomes(data, path) == {
        "f1:a": Outcome("ignored", "why", other, "run"),
        "f1:b": Outcome("ignored", f"why ({other}).", "", "run"),
    }


def test_only_processed_lines_and_those_of_the_draft_are_written() -> None:
    names = ("f1:processed", "f1:posted", "f1:held", "f1:other")
    lines = {name: make_line(name) for name in names}
    facts = read_files(*lines.values(), processed=False)
    assert facts.render_files("run") == {}
    facts.processed_line_ids = {"f1:processed"}
    facts.match_entry(lines["f1:posted"], 1010, entry_of())
    facts.set_line_aside("f1:held", "held", "why")
    files = {path: data.decode().splitlines()[1:] for path, data in facts.render_files("run").items()}
    assert files == {
        "books/bank/checking/2025-01.csv": [lines[name].to_csv().rstrip("\n") for name in names[:3]],
        "books/bank/matches-2025-01.csv": ["f1:posted,2025-01-001b,-4.00"],
        "books/bank/outcomes-2025-01.csv": ["f1:held,held,why,run"],
    }


# -- corrections ----------------------------------------------------------------------------------------------------


def test_legs_from_amounts() -> None:
    assert make_leg(1, Decimal(1)) == Leg(1, Decimal(1), ZERO)
    assert make_leg(1, Decimal(-4)) == Leg(1, ZERO, Decimal(4))


def test_an_entry_after_the_corrections_that_stand() -> None:
    draft = books()
    entry = draft.add_entry(JAN5, "x", legs("4.00"))
    assert find_corrections(draft, entry) == [] and effective_legs(draft, entry) == entry.legs
    split = draft.add_entry(JAN5, "x", [Leg(5030, Decimal("4.00"), ZERO), *[Leg(1010, ZERO, Decimal("2.00"))] * 2])
    assert effective_legs(draft, split) == split.legs  # as they were written, nothing added up
    tag = f"@corrects={entry.entry_id}"
    moved = [Leg(5030, ZERO, Decimal("4.00")), Leg(4010, Decimal("4.00"), ZERO)]
    first = draft.add_entry(JAN5, "x", moved, tags=f"a;{tag}")
    draft.add_entry(JAN5, "x", moved, tags=f"{tag}0")  # of another entry
    assert find_corrections(draft, entry) == [first]
    assert effective_legs(draft, entry) == (make_leg(1010, Decimal("-4.00")), make_leg(4010, Decimal("4.00")))
    second = draft.add_entry(JAN5, "x", legs("1.00", debit=5030, credit=4010), tags=tag)
    assert find_corrections(draft, entry) == [first, second]
    assert effective_legs(draft, entry) == (
        make_leg(5030, Decimal("1.00")),
        make_leg(1010, Decimal("-4.00")),
        make_leg(4010, Decimal("3.00")),
    )
    draft.void_entry(first.entry_id, "wrong")
    draft.void_entry(second.entry_id, "wrong")
    assert find_corrections(draft, entry) == []
    assert effective_legs(draft, entry) == entry.legs
