"""Staging: what is refused, by which argument; what is given an id; what a void and a status do."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from closed_books import digest_entries
from ledger_samples import JAN5, JOURNAL, ZERO, bank, books, journal, leg_row, legs, pair

from cleared.base.errors import PrimitiveError
from cleared.books.audit.books_check import check_books
from cleared.books.ledger.checks import check_against_commit, check_draft
from cleared.books.ledger.entry import STATUSES, TRANSITIONS, Bounds, Leg
from cleared.books.ledger.periods import PeriodMark, append_mark, parse_periods


def closed(through: date, digest: str = "") -> dict[str, bytes]:
    return {"books/periods.csv": append_mark(None, PeriodMark(through, "closed", "me", "t", "", digest))}


@pytest.mark.parametrize(
    ("posting", "text"),
    [
        (legs(debit=9999), "does not exist"),
        (legs(debit=1000), "heading"),
        (legs()[:1], "two lines"),
        ([], "two lines"),
        ([Leg(5030, Decimal("4.00"), ZERO), Leg(1010, ZERO, Decimal("4.01"))], "do not balance"),
        ([Leg(5030, ZERO, ZERO), Leg(1010, ZERO, ZERO)], "exactly one"),
        ([Leg(5030, Decimal(-4), ZERO), Leg(1010, ZERO, Decimal(-4))], "exactly one"),
        ([Leg(5030, Decimal(4), Decimal(4)), Leg(1010, Decimal(4), Decimal(4))], "exactly one"),
        (legs("1000000000001"), "larger than"),
    ],
)
def test_a_posting_that_is_refused_leaves_nothing(posting: list[Leg], text: str) -> None:
    """B1: unknown and heading accounts, one leg, unbalanced, not positive, too large."""
    b = books()
    with pytest.raises(PrimitiveError, match=text) as caught:
        b.add_entry(JAN5, "x", posting)
    assert caught.value.place and caught.value.remedy
    assert not b.staged and b.render_files() == {}
    assert b.add_entry(JAN5, "x", legs()).entry_id == "2025-01-001"  # no number was taken


@pytest.mark.parametrize("day", [date(1969, 12, 31), date(2200, 1, 1), date(1, 1, 1), date(9999, 12, 31)])
def test_days_out_of_bounds(day: date) -> None:
    with pytest.raises(PrimitiveError, match="outside"):
        books().add_entry(day, "x", legs())


def test_an_account_is_open_until_it_is_closed() -> None:
    assert books().add_entry(date(2025, 1, 31), "x", legs(credit=1030))
    with pytest.raises(PrimitiveError, match="closed since 2025-02-01"):
        books().add_entry(date(2025, 2, 1), "x", legs(credit=1030))


def test_ids_follow_on_from_the_file_month_by_month() -> None:
    b = books({JOURNAL: journal(*pair())})
    assert b.add_entry(JAN5, "x", legs()).entry_id == "2025-01-002"
    assert b.add_entry(date(2025, 2, 1), "x", legs()).entry_id == "2025-02-001"
    assert b.add_entry(JAN5, "x", legs()).entry_id == "2025-01-003"
    assert [e.entry_id for e in b.iter_entries()] == ["2025-01-001", "2025-01-002", "2025-01-003", "2025-02-001"]
    found = b.find_entry("2025-01-003b")
    assert found is not None and found.entry_id == "2025-01-003"
    for no in ("2025-01-004", "2025-01-003c", "2025-13-001", "x", ""):
        assert b.find_entry(no) is None
    assert b.render_files()[JOURNAL].startswith(journal(*pair()))


def test_sums_by_month_year_and_day() -> None:
    b = books({JOURNAL: journal(*pair())})
    b.add_entry(date(2025, 1, 20), "x", legs("1.50"))
    b.add_entry(date(2025, 3, 1), "x", legs("2.00"))
    assert b.account_balance(5030) == Decimal("7.50")
    assert b.account_balance(1010, year=2025, month=1) == Decimal("-5.50")
    assert b.account_balance(5030, as_of=date(2025, 1, 19)) == Decimal("4.00")
    assert b.account_balance(5030, as_of=date(2025, 2, 28)) == Decimal("5.50")
    assert b.account_balance(5030, year=2024) == 0
    assert b.trial_balance(date(2025, 1, 31)) == {1010: Decimal("-5.50"), 5030: Decimal("5.50")}


def test_a_void_is_a_reversal_that_names_what_it_reverses() -> None:
    b = books({JOURNAL: journal(*pair())})
    original, reversal = b.void_entry("2025-01-001a", "wrong")
    assert (original.status, reversal.status) == ("voided", "voided")
    assert reversal.tags == "@rev=2025-01-001" and reversal.date == original.date
    assert b.account_balance(5030) == 0
    for again in (original.entry_id, reversal.entry_id):
        with pytest.raises(PrimitiveError, match="voided already"):
            b.void_entry(again, "again")


def test_what_was_in_a_closed_period_is_reversed_after_it() -> None:
    b = books({JOURNAL: journal(*pair())} | closed(date(2025, 1, 31)))
    with pytest.raises(PrimitiveError, match="Date it 2025-02-01 or later"):
        b.add_entry(JAN5, "x", legs())
    _, reversal = b.void_entry("2025-01-001", "wrong")
    assert reversal.date == date(2025, 2, 1)
    assert reversal.tags == "@rev=2025-01-001;@orig_date=2025-01-05"
    assert check_draft(b, bank()) == []


@pytest.mark.parametrize("before", STATUSES)
@pytest.mark.parametrize("after", STATUSES)
def test_a_status_goes_forwards_only(before: str, after: str) -> None:
    data = journal(leg_row("2025-01-001a", status=before), leg_row("2025-01-001b", "1010", "", "4.00", status=before))
    b = books({JOURNAL: data})
    if after == before:
        assert b.set_status("2025-01-001", after).status == after and b.render_files() == {}
    elif after in TRANSITIONS[before]:
        assert b.set_status("2025-01-001", after).status == after
        assert b.render_files()[JOURNAL] == data.replace(before.encode(), after.encode())
        assert check_draft(b, bank()) == []
    else:
        with pytest.raises(PrimitiveError, match="cannot become"):
            b.set_status("2025-01-001", after)


def test_bounds_are_the_configurations() -> None:
    small = Bounds(places=0, max_amount=Decimal(10), min_date=date(2025, 1, 1), max_date=date(2025, 1, 31))
    b = books(bounds=small)
    b.add_entry(JAN5, "x", legs("10"))
    assert b.render_files()[JOURNAL].decode().splitlines()[1].split(",")[4] == "10"
    with pytest.raises(PrimitiveError):
        b.add_entry(date(2025, 2, 1), "x", legs("1"))


@pytest.mark.parametrize(
    ("rows", "check"),
    [
        ([leg_row("2025-01-001a")], "balanced"),
        ([leg_row("2025-01-001a"), leg_row("2025-01-001b", "1010", "", "4.01")], "balanced"),
        ([leg_row("2025-01-001a", credit="4.00"), leg_row("2025-01-001b", "1010", "", "4.00")], "one_side"),
        ([leg_row("2025-01-001a", debit=""), leg_row("2025-01-001b", "1010", "", "4.00")], "one_side"),
        ([*pair()[:1], leg_row("2025-01-001b", "7777", "", "4.00")], "account_exists"),
        ([*pair()[:1], leg_row("2025-01-001b", "abc", "", "4.00")], "account_exists"),
        (pair(day="2025-02-01"), "month"),
        (pair(day="2025-01-32"), "month"),
        (pair("2025-02-001"), "month"),
        (pair("2025-01-002"), "ids"),
        (pair() + pair(), "ids"),
        ([*pair(), leg_row("x")], "ids"),
        ([leg_row("2025-01-001a"), leg_row("2025-01-001c", "1010", "", "4.00")], "ids"),
        (pair(amount="4.0"), "exact"),
        (pair(amount="4e0"), "exact"),
        (pair(amount="0.00"), "exact"),
        (
            [leg_row("2025-01-001a", status="done"), leg_row("2025-01-001b", "1010", "", "4.00", status="done")],
            "format",
        ),
        ([*pair(), "torn"], "format"),
        ([*pair(), '"torn\n'], "format"),
    ],
)
def test_damage_is_named_by_check_entry_and_line(rows: list[str], check: str) -> None:
    """B2: what a hand can do to a journal."""
    found = check_books(books({JOURNAL: journal(*rows)}), bank())
    assert check in {v.check for v in found}
    assert all(v.place and v.place.file == JOURNAL and v.remedy for v in found)


def test_all_violations_are_told_not_only_the_first() -> None:
    rows = [leg_row("2025-01-001a"), *pair("2025-01-002", amount="1.0"), *pair("2025-01-003", day="2025-03-01")]
    checks = {v.check for v in check_books(books({JOURNAL: journal(*rows)}), bank())}
    assert {"balanced", "exact", "month"} <= checks


def test_what_a_hand_changed_is_seen_against_the_commit() -> None:
    before = books({JOURNAL: journal(*pair(), *pair("2025-01-002"))})
    for rows, text in (
        (pair(), "is gone"),
        ([*pair(amount="5.00"), *pair("2025-01-002")], "posting was"),
        ([*pair(), *pair("2025-01-002", day="2025-01-06")], "date was"),
        ([*pair(), *pair("2025-01-002"), *pair("2025-01-003")], "written by hand"),
    ):
        after = books({JOURNAL: journal(*rows)})
        found = check_against_commit(after, before.source, [(2025, 1)])
        assert [v for v in found if text in v.message], (rows, found)


def test_a_closed_period_keeps_its_trial_balance() -> None:
    good = {JOURNAL: journal(*pair())}
    digest = digest_entries(books(good), date(2025, 1, 31))
    assert check_books(books(good | closed(date(2025, 1, 31), digest)), bank()) == []
    changed = {JOURNAL: journal(*pair(amount="5.00"))} | closed(date(2025, 1, 31), digest)
    assert [v.check for v in check_books(books(changed), bank())] == ["period_open"]


def test_periods_close_and_open_again() -> None:
    data = append_mark(None, PeriodMark(date(2025, 1, 31), "closed", "me", "t", "", "d"))
    periods = parse_periods(data, "p")
    assert periods.is_closed(date(2025, 1, 31)) and not periods.is_closed(date(2025, 2, 1))
    assert periods.first_open(date(2024, 1, 1)) == date(2025, 2, 1)
    data = append_mark(data, PeriodMark(date.min, "open", "me", "t", 'why, "really"', ""))
    periods = parse_periods(data, "p")
    assert periods.closed_through is None and periods.marks[-1].reason == 'why, "really"'


BACKWARDS = [(old, new) for old in STATUSES for new in STATUSES if new != old and new not in TRANSITIONS[old]]


@pytest.mark.parametrize(("old", "new"), BACKWARDS)
def test_the_checks_themselves_refuse_a_status_that_moves_backwards(old: str, new: str) -> None:
    """Whatever let it through before: the last check reads the bytes that are to be committed."""
    rows = [leg_row("2025-01-001a", status=old), leg_row("2025-01-001b", "1010", "", "4.00", status=old)]
    draft = books({JOURNAL: journal(*rows)})
    draft.statuses["2025-01-001"] = new  # past set_status, which refuses it
    found = check_draft(draft, bank())
    assert [(v.check, v.record_id, v.message) for v in found] == [
        ("unchanged", "2025-01-001", f"the status went from {old} to {new}")
    ]
    assert found[0].place and (found[0].place.file, found[0].place.line) == (JOURNAL, 2)


@pytest.mark.parametrize(("old", "new"), [(old, new) for old in STATUSES for new in sorted(TRANSITIONS[old])])
def test_the_checks_let_a_status_move_forwards(old: str, new: str) -> None:
    rows = [leg_row("2025-01-001a", status=old), leg_row("2025-01-001b", "1010", "", "4.00", status=old)]
    draft = books({JOURNAL: journal(*rows)})
    draft.set_status("2025-01-001", new)
    assert check_draft(draft, bank()) == []
    after = books(draft.render_files())
    assert check_against_commit(after, draft.source, [(2025, 1)]) == []


def test_a_hand_that_sets_a_status_back_is_seen_against_the_commit() -> None:
    before = books({JOURNAL: journal(*[row.replace("auto-confirmed", "user-confirmed") for row in pair()])})
    found = check_against_commit(books({JOURNAL: journal(*pair())}), before.source, [(2025, 1)])
    assert [v.message for v in found] == ["the status went from user-confirmed to auto-confirmed"]
