"""What comes month after month: late, doubled and dearer charges are found, and nothing else is said."""

from __future__ import annotations

import csv
from datetime import date, timedelta
from decimal import Decimal
from operator import attrgetter

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from cleared.books.import_findings import RecurringFinding, find_recurring
from cleared.books.index.month_charges import select_charges
from cleared.books.ledger.bank_lines import BankLine
from cleared.cli.demo.sample_firm import bank_files

RENT = "DOWNTOWN PROPERTIES RENT 0117"


def line(day: date, amount: str, text: str = RENT, name: str = "") -> BankLine:
    return BankLine(
        name or f"f1:{day}{amount}{text}", day, None, Decimal(amount), "USD", text, "", None, "posted", "", 1, 1
    )


def months(count: int, day: int = 3, amount: str = "-900.00", text: str = RENT) -> list[BankLine]:
    return [line(date(2025, n, day), amount, text) for n in range(1, count + 1)]


def found(lines: list[BankLine], new: list[BankLine], through: date) -> list[RecurringFinding]:
    return list(find_recurring("checking", lines, {each.line_id for each in new}, through, {}))


def test_rent_that_did_not_come_is_said_once_it_is_late() -> None:
    rent = months(4)
    assert found(rent, [], date(2025, 5, 10)) == []
    (late,) = found(rent, [], date(2025, 5, 11))
    assert (late.what, late.due, late.about) == ("missing", date(2025, 5, 3), rent[-1].line_id)
    (still,) = found(rent, [], date(2025, 7, 30))
    assert (still.series, still.about) == (late.series, late.about), "the same matter, not another one"
    assert found(months(2), [], date(2025, 5, 11)) == [], "two are no series"


def test_rent_that_came_under_a_new_text_is_not_missing() -> None:
    """Another format of the bank breaks the text elsewhere; a second tenant of the same amount hides nothing."""
    rent, renamed = months(4), line(date(2025, 5, 2), "-900.00", "DOWNTOWN PROP. 5/25")
    assert found([*rent, renamed], [], date(2025, 5, 20)) == []
    assert [f.what for f in found([*rent, line(date(2025, 5, 2), "-901.00", "SHOP")], [], date(2025, 5, 20))] == [
        "missing"
    ]
    other = months(5, text="UPTOWN GARAGE")
    assert [f.payee for f in found([*rent, *other], [], date(2025, 5, 20))] == ["DOWNTOWN PROPERTIES RENT"]


def test_a_second_charge_and_a_price_up_by_a_fifth() -> None:
    rent = months(4)
    twice = line(date(2025, 4, 9), "-900.00")
    assert [f.what for f in found([*rent, twice], [twice], date(2025, 4, 30))] == ["doubled"]
    assert found([*rent, twice], [], date(2025, 4, 30)) == [], "it came before"
    other = line(date(2025, 4, 9), "-40.00")
    assert found([*rent, other], [other], date(2025, 4, 30)) == [], "another amount is another matter"
    for amount, expected in (("-1080.00", ["dearer"]), ("-1079.99", []), ("-700.00", [])):
        new = line(date(2025, 5, 3), amount)
        assert [f.what for f in found([*rent, new], [new], date(2025, 5, 4))] == expected
    power = [line(date(2025, n, 5), amount) for n, amount in ((1, "-80"), (2, "-120"), (3, "-95"), (4, "-140"))]
    assert found(power, power[-1:], date(2025, 4, 20)) == [], "it was never steady"


def test_coffee_salaries_and_money_in_are_no_series() -> None:
    coffee = [line(date(2025, 1, 2) + timedelta(days=n), "-4.50", "COFFEE", f"f1:{n}") for n in range(0, 90, 2)]
    coffee += [structs.replace(coffee[-1], line_id="f1:again")]
    assert found(coffee, coffee, date(2025, 6, 30)) == []
    assert found(months(5, amount="900.00"), [], date(2025, 12, 1)) == []


def test_of_the_sample_firm_nothing_wrong_is_said() -> None:
    """Imported month after month, or all at once: half a year of a business with rent, phones and subscriptions."""
    for account, day_column in (("4821", "Posting Date"), ("7733", "Post Date")):
        known: dict[str, BankLine] = {}
        for name, data in sorted(bank_files().items()):
            if account not in name:
                continue
            new = []
            for n, row in enumerate(csv.DictReader(data.decode().splitlines())):
                month, day, year = row[day_column].split("/")
                on = date(int(year), int(month), int(day))
                each = line(on, row["Amount"], row["Description"], f"f1:{on}{row['Amount']}{row['Description']}{n}")
                facts = attrgetter("posted_date", "amount", "description")
                if facts(each) not in map(facts, known.values()):
                    new.append(each)
            known |= {each.line_id: each for each in new}
            through = max(each.posted_date for each in known.values())
            assert found(list(known.values()), new, through) == [], name


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.dates(date(1, 1, 1), date(9999, 12, 31)), st.integers(-500, 500), st.text(max_size=20)),
        max_size=30,
    ),
    st.dates(),
)
def test_any_texts_and_days_are_taken(rows: list[tuple[date, int, str]], through: date) -> None:
    lines = [line(day, str(cents), text, f"f1:{n}") for n, (day, cents, text) in enumerate(rows)]
    first = found(lines, lines, through)
    assert found(lines[::-1], lines, through) == first
    assert len({(f.what, f.series, f.about) for f in first}) == len(first)


SHOP_DAYS = ((120, "-12.00"), (121, "-9.00"), (139, "-12.00"), (140, "-12.00"), (141, "-12.00"))


@given(
    st.lists(
        st.tuples(st.sampled_from(["RENT", "SHOP", "GYM"]), st.integers(0, 200), st.sampled_from(["-9.00", "-12.00"])),
        max_size=60,
    ),
    st.integers(0, 60),
)
@example([*(("RENT", day, "-9.00") for day in (31, 60, 90)), *(("SHOP", *each) for each in SHOP_DAYS)], 0)
@settings(max_examples=200, deadline=None)
def test_of_past_months_the_first_and_the_newest_charges_of_a_payee_say_enough(
    charges: list[tuple[str, int, str]], span: int
) -> None:
    """What is kept of a month that is over finds what all its charges find; what came under another name, of a payee
    with many charges in a month, may be missed."""
    lines = [
        line(date(2025, 1, 1) + timedelta(days=day), amount, text, f"f{n}:{day:03d}")
        for n, (text, day, amount) in enumerate(charges)
    ]
    first_new = date(2025, 6, 1)
    new = [each for each in lines if each.posted_date >= first_new]
    past: dict[str, list[BankLine]] = {}
    for each in lines:
        if each.posted_date < first_new:
            past.setdefault(each.posted_date.isoformat()[:7], []).append(each)
    kept = [each for month in past.values() for _, each in select_charges(month)]
    through = max([first_new, *(each.posted_date for each in new)]) + timedelta(days=span)
    some, all_ = found([*kept, *new], new, through), found(lines, new, through)
    assert [each for each in some if each in all_] == all_
    assert all(each.what == "missing" for each in some if each not in all_)
