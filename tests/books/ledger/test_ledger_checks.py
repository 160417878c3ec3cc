"""The checks of a draft, each on its own: what gets past staging is refused by them; and what they let through."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from closed_books import digest_entries
from ledger_samples import (
    JAN5,
    JOURNAL,
    ZERO,
    bank,
    books,
    entry_of,
    journal,
    leg_row,
    legs,
    make_line,
    pair,
    read_files,
)
from msgspec import structs

from cleared.base.csv_text import format_record
from cleared.books.audit.books_check import check_books
from cleared.books.ledger.bank_lines import LINE_COLUMNS, MATCH_COLUMNS, OUTCOME_COLUMNS, append_rows
from cleared.books.ledger.checks import check_against_commit, check_draft
from cleared.books.ledger.entry import Bounds, Entry, Leg
from cleared.books.ledger.periods import PeriodMark, append_mark
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books


def stage_unchecked(draft: Books, entry: Entry) -> None:
    """Into the draft past ``add_entry``, which would refuse it."""
    draft.staged.setdefault(entry.month, []).append(entry)


def closed(through: date, digest: str = "", data: bytes | None = None) -> dict[str, bytes]:
    return {"books/periods.csv": append_mark(data, PeriodMark(through, "closed", "me", "t", "", digest))}


SMALL = Bounds(min_date=date(2025, 1, 5), max_date=date(2025, 1, 20), max_amount=Decimal(10))


@pytest.mark.parametrize(
    ("entry", "check", "message"),
    [
        (entry_of(date(2025, 1, 4)), "month", "2025-01-04 is out of bounds"),
        (entry_of(date(2025, 1, 21)), "month", "2025-01-21 is out of bounds"),
        (entry_of(posting=legs(debit=1000)), "account_exists", "account 1000 Cash is a heading, not postable"),
        (entry_of(posting=legs(debit=9999)), "account_exists", "account 9999 is not in the chart of accounts"),
        (
            entry_of(posting=[Leg(5030, Decimal(12), ZERO), *[Leg(1010, ZERO, Decimal(6))] * 2]),
            "exact",
            "12.00 is larger than limits.max_amount",
        ),
        (
            entry_of(posting=[Leg(1010, ZERO, Decimal(12)), *[Leg(5030, Decimal(6), ZERO)] * 2]),
            "exact",
            "12.00 is larger than limits.max_amount",
        ),
        (entry_of(posting=legs()[:1]), "balanced", "debits 4.00 and credits 0 differ"),
    ],
)
def test_a_draft_entry_that_staging_would_refuse(entry: Entry, check: str, message: str) -> None:
    draft = books(bounds=SMALL)
    stage_unchecked(draft, entry)
    (violation,) = check_draft(draft, bank())
    assert (violation.check, violation.record_id) == (check, "2025-01-001")
    assert violation.message == message
    assert violation.place and (violation.place.file, violation.place.line) == (JOURNAL, 2)


@pytest.mark.parametrize("day", [date(2025, 1, 5), date(2025, 1, 20)])
def test_a_draft_entry_at_the_very_bounds(day: date) -> None:
    draft = books(bounds=SMALL)
    stage_unchecked(draft, entry_of(day, legs("10")))
    assert check_draft(draft, bank()) == []


@pytest.mark.parametrize(("day", "is_closed"), [(4, True), (5, True), (6, False)])
def test_a_new_entry_in_a_closed_period(day: int, is_closed: bool) -> None:
    draft = books(closed(JAN5))
    stage_unchecked(draft, entry_of(date(2025, 1, day)))
    assert [(v.check, v.record_id, v.remedy) for v in check_draft(draft, bank())] == (
        [("period_open", "2025-01-001", "Date it 2025-01-06 or later.")] if is_closed else []
    )


def test_an_account_closed_meanwhile_may_be_used_up_to_its_last_day() -> None:
    draft = books()
    stage_unchecked(draft, entry_of(date(2025, 1, 31), legs(credit=1030)))
    february = Entry("2025-02-001", date(2025, 2, 1), "x", tuple(legs(credit=1030)))
    stage_unchecked(draft, february)
    assert [(v.check, v.record_id) for v in check_draft(draft, bank())] == [("account_exists", "2025-02-001")]


def test_committed_entries_are_not_held_against_bounds_and_periods_of_today() -> None:
    """They were right when they were committed; only what is new is checked."""
    committed = {JOURNAL: journal(*pair(), *pair("2025-01-002", amount="99.00"))} | closed(JAN5)
    draft = books(committed, Bounds(min_date=date(2025, 1, 6), max_amount=Decimal(10)))
    draft.add_entry(date(2025, 1, 6), "x", legs())
    assert check_draft(draft, bank()) == []


def test_damage_in_a_month_that_the_draft_touches_is_a_violation_of_the_draft() -> None:
    damaged = {JOURNAL: journal(leg_row("2025-01-001a"), leg_row("2025-01-001b", "1010", "", "4.01"))}
    draft = books(damaged)
    assert check_draft(draft, bank()) == []  # nothing of it is committed
    draft.add_entry(JAN5, "x", legs())
    assert [(v.check, v.record_id) for v in check_draft(draft, bank())] == [("balanced", "2025-01-001")]


def test_a_draft_is_checked_again_after_something_was_staged() -> None:
    draft = books()
    draft.add_entry(JAN5, "x", legs())
    assert check_draft(draft, bank()) == []
    stage_unchecked(draft, entry_of(posting=legs(debit=1000), number="002"))
    assert [v.record_id for v in check_draft(draft, bank())] == ["2025-01-002"]
    del draft.staged[2025, 1][1]
    assert check_draft(draft, bank()) == []


# -- bank lines -----------------------------------------------------------------------------------------------------


def unaccounted(facts: BankBook) -> list[str | None]:
    violations = check_draft(books(), facts)
    assert {v.check for v in violations} <= {"lines_accounted"}
    return [v.place.field for v in violations if v.place]


def test_every_line_of_a_processed_file_is_accounted_for() -> None:
    facts = read_files(make_line("f1:a"), make_line("f1:b"), make_line("f1:p", state="pending"), make_line("f1:c"))
    assert unaccounted(facts) == ["f1:a", "f1:b", "f1:c"]
    facts.set_line_aside("f1:b", "ignored", "why")
    facts.set_line_aside("f1:c", "held", "why")
    assert unaccounted(facts) == ["f1:a"]
    (violation,) = check_draft(books(), facts)
    assert violation.message.endswith("(row 2): it is neither posted, held nor ignored")


def test_an_outcome_of_a_line_that_is_not_recorded_is_no_fault_of_the_draft() -> None:
    facts = bank()
    facts.set_line_aside("f1:gone", "ignored", "why")
    assert unaccounted(facts) == []


def test_lines_of_a_file_that_is_not_marked_processed_may_wait() -> None:
    assert unaccounted(read_files(make_line(), processed=False)) == []


def test_a_line_posted_in_part_is_a_violation_though_its_file_is_not_marked() -> None:
    facts = read_files(make_line("f1:a"), make_line("f1:b"), processed=False)
    facts.match_entry(make_line("f1:a"), 1010, entry_of(posting=legs("1.00")))
    assert unaccounted(facts) == ["f1:a"]
    assert check_draft(books(), facts)[0].message.endswith("only -1.00 of it is posted")


@pytest.mark.parametrize(
    ("posted", "outcome", "is_accounted"),
    [
        ("4.00", "", True),
        ("1.00", "", False),
        ("1.00", "voided", True),
        ("1.00", "held", False),
        ("1.00", "ignored", False),
        ("5.00", "voided", False),
        ("-1.00", "voided", False),
        ("", "held", True),
        ("", "voided", True),
        ("", "", False),
        ("4.00", "held", True),
    ],
)
def test_what_accounts_for_a_line(posted: str, outcome: str, is_accounted: bool) -> None:
    """Posted whole, or set aside unposted; a part is enough only where another posting of the line was voided."""
    line = make_line()
    facts = read_files(line)
    if posted:
        amount = Decimal(posted)
        credit, debit = (amount, ZERO) if amount > 0 else (ZERO, -amount)
        facts.match_entry(line, 1010, entry_of(posting=[Leg(1010, debit, credit)]))
    if outcome:
        facts.set_line_aside(line.line_id, outcome, "why")
    assert facts.is_accounted(line, facts.posted_amount(line.line_id)) is is_accounted
    assert unaccounted(facts) == ([] if is_accounted else [line.line_id])


def test_money_in_is_judged_as_out_words() -> None:
    line = make_line(amount="1.00")
    facts = read_files(line)
    facts.match_entry(line, 1010, entry_of(posting=legs("0.50", debit=1010, credit=4010)))
    facts.set_line_aside(line.line_id, "voided", "why")
    assert facts.is_accounted(line, facts.posted_amount(line.line_id))


def test_a_line_of_zero_is_accounted_for_by_a_reason_only() -> None:
    facts = read_files(make_line(amount="0.00"))
    assert unaccounted(facts) == ["f1:a"]
    facts.set_line_aside("f1:a", "ignored", "why")
    assert unaccounted(facts) == []


# -- all the books --------------------------------------------------------------------------------------------------


def test_the_trial_balance_of_the_newest_closing_counts() -> None:
    files = {JOURNAL: journal(*pair(), *pair("2025-01-002", day="2025-01-20"))}
    right = digest_entries(books(files), date(2025, 1, 31))
    first = closed(JAN5, "of an earlier closing")
    both = closed(date(2025, 1, 31), right, first["books/periods.csv"])
    assert check_books(books(files | both), bank()) == []
    wrong = closed(date(2025, 1, 31), "wrong", both["books/periods.csv"])
    assert [(v.check, v.place and v.place.file) for v in check_books(books(files | wrong), bank())] == [
        ("period_open", "books/periods.csv")
    ]
    mended = closed(date(2025, 1, 31), right, wrong["books/periods.csv"])
    assert check_books(books(files | mended), bank()) == []
    assert check_books(books(files | closed(JAN5)), bank()) == []  # closed before digests were kept
    later = closed(date(2025, 1, 31), "", first["books/periods.csv"])
    assert check_books(books(files | later), bank()) == []  # an earlier day's digest says nothing of this one


def test_the_digest_leaves_out_zero_balances_and_what_comes_after() -> None:
    back = [
        leg_row("2025-01-002a", "1010", day="2025-01-20"),
        leg_row("2025-01-002b", "5030", "", "4.00", "2025-01-20"),
    ]
    files = {JOURNAL: journal(*pair(), *back)}
    assert digest_entries(books(files), date(2025, 1, 31)) == digest_entries(books(), date(2025, 1, 31))
    assert digest_entries(books(files), date(2025, 1, 19)) == digest_entries(books({JOURNAL: journal(*pair())}), JAN5)


@pytest.mark.parametrize(
    "field", ["description", "counterparty", "reference", "confidence", "evidence", "receipt_hash", "tags", "notes"]
)
def test_a_changed_field_is_named_with_both_values(field: str) -> None:
    entry = entry_of()
    before = books({JOURNAL: journal(entry.to_csv(2))})
    after = books({JOURNAL: journal(structs.replace(entry, **{field: "0.77"}).to_csv(2))})
    (violation,) = check_against_commit(after, before.source, [(2025, 1)])
    assert (violation.check, violation.record_id) == ("unchanged", "2025-01-001")
    assert violation.message == f"{field} was {getattr(entry, field)!r}, now '0.77'"


@pytest.mark.parametrize(
    ("leg", "line_amount", "match_amount", "message"),
    [
        ("2025-01-001b", "-4.00", "-4.00", None),
        ("2025-01-001b", "-3.00", "-3.00", "2025-01-001b moves -4.00, its match says -3.00"),
        ("2025-01-002b", "-4.00", "-4.00", "the bank line f1:a is matched to 2025-01-002b, which is not there"),
        ("2025-01-001c", "-4.00", "-4.00", "the bank line f1:a is matched to 2025-01-001c, which is not there"),
    ],
)
def test_a_match_and_its_leg_agree(leg: str, line_amount: str, match_amount: str, message: str | None) -> None:
    facts = bank(
        {
            "books/bank/checking/2025-01.csv": append_rows(None, LINE_COLUMNS, make_line(amount=line_amount).to_csv()),
            "books/bank/matches-2025-01.csv": append_rows(
                None, MATCH_COLUMNS, format_record(("f1:a", leg, match_amount))
            ),
        }
    )
    violations = check_books(books({JOURNAL: journal(*pair())}), facts)
    assert [v.message for v in violations] == ([message] if message else [])


def test_a_recorded_line_that_nobody_accounted_for_is_named_once() -> None:
    recorded = append_rows(None, LINE_COLUMNS, make_line("f1:a").to_csv() + make_line("f1:b").to_csv())
    outcomes = append_rows(None, OUTCOME_COLUMNS, format_record(("f1:b", "ignored", "why", "run")))
    files = {"books/bank/checking/2025-01.csv": recorded, "books/bank/outcomes.csv": outcomes}
    (violation,) = check_books(books(), bank(files))
    assert violation.place and violation.place.field == "f1:a"
    assert violation.message.endswith("0 of it is posted, and nobody set it aside")


def test_a_changed_posting_is_shown_before_and_after() -> None:
    before, after = (books({JOURNAL: journal(*pair(amount=amount))}) for amount in ("4.00", "5.00"))
    (violation,) = check_against_commit(after, before.source, [(2025, 1)])
    assert violation.message == "the posting was 5030:4.00 1010:-4.00, now 5030:5.00 1010:-5.00"


def test_lines_of_a_large_file_that_is_not_done_are_passed_over_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is staged is gathered once, not for each of the file's lines."""
    facts = bank()
    facts.new_lines = {f"f1:{n}": ("checking", make_line(f"f1:{n}")) for n in range(50)}
    gathered: list[int] = []
    gather = facts.staged_line_ids
    monkeypatch.setattr(facts, "staged_line_ids", lambda: gathered.append(1) or gather())
    assert check_draft(books(), facts) == [] and len(gathered) == 1
