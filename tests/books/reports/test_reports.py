"""B18: every report of small books, and what holds for reports of any books."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_samples import entry, make_books, sample_entries
from test_financial_statements import shown

from cleared.base.date_spans import month_span
from cleared.base.errors import CheckFailed, UsageError
from cleared.books.ledger.entry import Entry
from cleared.books.reports.catalogue import REPORTS, ReportRequest, make_report
from cleared.books.reports.report import Report, Row
from cleared.books.reports.report_books import ReportBooks
from cleared.books.reports.tax_report import list_tax_years, read_tax_lines
from cleared.workspace.template import ENTITY_TYPES, read_starter_chart


def report(name: str, period: str = "2025", books: ReportBooks | None = None, **wanted: object) -> Report:
    return make_report(books or make_books(sample_entries()), ReportRequest(name, period, **wanted))  # type: ignore[arg-type]


def lines(found: Report) -> list[str]:
    """Label and all cells."""
    return [" ".join([row.label, *(str(c) for c in row.cells if c is not None)]).rstrip() for row in found.rows]


def test_cash_flow_by_bank_account() -> None:
    assert lines(report("cash-flow", "2025-Q1")) == [
        "Cash at the beginning 1550.00 0.00 1550.00",
        "Received and paid for the business",
        "Service revenue 2000.00 0.00 2000.00",
        "Software and subscriptions -30.00 0.00 -30.00",
        "Uncategorised expense -19.99 0.00 -19.99",
        "Meals -12.50 0.00 -12.50",
        "Contract labour -650.00 0.00 -650.00",
        "Total received and paid for the business 1287.51 0.00 1287.51",
        "Cards, loans and other debts",
        "Credit card -80.01 0.00 -80.01",
        "Total cards, loans and other debts -80.01 0.00 -80.01",
        "Owners",
        "Member draws -300.00 0.00 -300.00",
        "Total owners -300.00 0.00 -300.00",
        "Between own bank accounts -500.00 500.00 0.00",
        "Change 407.50 500.00 907.50",
        "Cash at the end 1957.50 500.00 2457.50",
    ]


def test_corrections_move_cash_to_where_they_post_it() -> None:
    """Corrections move no bank account themselves; nor does what takes one back, in a later month or in a circle."""
    books = make_books(
        [
            entry("2025-01-10", "Computer", {5030: "1800.00", 1010: "-1800.00"}),
            entry("2025-01-11", "Groceries", {5030: "42.50", 1010: "-42.50"}),
            entry("2025-01-12", "From checking", {1020: "300.00", 4010: "-300.00"}),
            entry("2025-01-13", "Card lunch", {5030: "9.00", 2010: "-9.00"}),
            entry("2025-01-10", "Correct", {1500: "1800.00", 5030: "-1800.00"}, tags="@corrects=2025-01-001"),
            entry(
                "2025-01-11", "Split", {5060: "30.00", 5070: "12.50", 5030: "-42.50"}, tags="x;@corrects=2025-01-002"
            ),
            entry("2025-02-01", "Correct", {4010: "300.00", 1090: "-300.00"}, tags="@corrects=2025-01-003"),
            entry("2025-02-02", "Correct", {5070: "9.00", 5030: "-9.00"}, tags="@corrects=2025-01-004"),
            entry("2025-02-03", "Correct", {5050: "7.00", 5030: "-7.00"}, tags="@corrects=2025-02-004"),
            entry("2025-02-03", "Correct", {5050: "7.00", 5030: "-7.00"}, tags="@corrects=2025-02-003"),
            entry("2025-02-04", "Correct", {5050: "7.00", 5030: "-7.00"}, tags="@corrects=2024-12-001"),
            entry("2025-03-01", "Void", {5030: "1800.00", 1500: "-1800.00"}, tags="@rev=2025-01-005"),
        ]
    )
    january = lines(report("cash-flow", "2025-01", books))
    assert {
        "Equipment -1800.00 0.00 -1800.00",
        "Office supplies -30.00 0.00 -30.00",
        "Meals -12.50 0.00 -12.50",
        "Service revenue 0.00 300.00 300.00",
        "Change -1842.50 300.00 -1542.50",
    } <= {*january}
    assert not any(line.startswith("Uncategorised") for line in january)
    whole = lines(report("cash-flow", "2025", books))
    assert {"Uncategorised expense -1800.00 0.00 -1800.00", "Transfers in transit 0.00 300.00 300.00"} <= {*whole}
    assert not any(line.startswith(("Equipment", "Service revenue", "Travel")) for line in whole)
    check_totals(list(report("cash-flow", "2025", books).rows))
    assert lines(report("vendors", "2025-01", books))[-1] == "Total 2 51.50 42.50"


def test_cash_that_goes_by_way_of_the_clearing_account_is_shown_where_it_arrives() -> None:
    """Also where the other side comes a month later, or a correction says so; what has no other side is in transit."""
    books = make_books(
        [
            entry("2025-01-05", "Deposit", {1010: "5000.00", 4010: "-5000.00"}),
            entry("2025-01-30", "Card payment", {1090: "900.00", 1010: "-900.00"}),
            entry("2025-02-02", "Payment, thank you", {2010: "900.00", 1090: "-900.00"}),
            entry("2025-02-10", "To savings", {1090: "500.00", 1010: "-500.00"}),
            entry("2025-02-11", "From checking", {1020: "500.00", 1090: "-500.00"}),
            entry("2025-02-12", "Online payment", {5030: "75.00", 1010: "-75.00"}),
            entry("2025-02-13", "Payment, thank you", {2010: "75.00", 1090: "-75.00"}),
            entry("2025-02-20", "To somewhere", {1090: "33.00", 1010: "-33.00"}),
            entry("2025-02-21", "Twice", {1090: "44.00", 1010: "-44.00"}),
            entry("2025-02-21", "Payment, thank you", {2010: "44.00", 1090: "-44.00"}),
            entry("2025-02-22", "Void", {1010: "44.00", 1090: "-44.00"}, tags="@rev=2025-02-007"),
            entry("2025-03-01", "Correct", {1090: "75.00", 5030: "-75.00"}, tags="@corrects=2025-02-004"),
        ]
    )
    assert lines(report("cash-flow", "2025-01", books))[5:8] == [
        "Credit card -900.00 0.00 -900.00",
        "Total cards, loans and other debts -900.00 0.00 -900.00",
        "Change 4100.00 0.00 4100.00",
    ]
    february = lines(report("cash-flow", "2025-02", books))
    assert {
        "Between own bank accounts -500.00 500.00 0.00",
        "Uncategorised expense -75.00 0.00 -75.00",
        "Transfers in transit -33.00 0.00 -33.00",
    } <= {*february}
    assert not any(line.startswith("Credit card") for line in february)
    march = lines(report("cash-flow", "2025-03", books))
    assert {"Uncategorised expense 75.00 0.00 75.00", "Credit card -75.00 0.00 -75.00"} <= {*march}
    whole = lines(report("cash-flow", "2025", books))
    assert {
        "Credit card -975.00 0.00 -975.00",
        "Transfers in transit -33.00 0.00 -33.00",
        "Between own bank accounts -500.00 500.00 0.00",
    } <= {*whole}
    assert not any(line.startswith("Uncategorised") for line in whole)
    check_totals(list(report("cash-flow", "2025", books).rows))


def test_opening_balances_are_cash_at_the_beginning() -> None:
    assert lines(report("cash-flow", "2023"))[:2] == [
        "Cash at the beginning 1000.00 0.00 1000.00",
        "Change 0.00 0.00 0.00",
    ]


def test_the_ledger_has_a_running_balance() -> None:
    assert lines(report("ledger", "2025-02..2025-03", account=2010)) == [
        "Credit card",
        "Balance before 0.00",
        "Lunch 2025-02-03 2025-02-001 Cafe 0.00 80.01 -80.01",
        "Card paid 2025-02-14 2025-02-002  80.01 0.00 0.00",
        "Contract 2025-03-05 2025-03-001 Card Contractor 0.00 900.00 -900.00",
        "Total 2010 Credit card 80.01 980.01 -900.00",
    ]
    whole = report("ledger", "2025")
    assert lines(whole) == lines(whole), "it can be gone through again"
    assert "Total 4010 Service revenue 0.00 2000.00 -2000.00" in lines(whole)


def test_a_bill_that_is_paid_later_counts_for_the_1099_of_the_year_of_payment() -> None:
    books = make_books(
        [
            entry("2025-08-31", "Joe invoice", {5110: "5000.00", 2100: "-5000.00"}, who="Joe"),
            entry("2025-09-20", "CHECK 900", {2100: "5000.00", 1010: "-5000.00"}, who="Joe"),
            entry("2025-12-31", "Joe invoice", {5110: "2900.00", 2100: "-2900.00"}, who="Joe"),
            entry("2026-01-20", "CHECK 901", {5030: "2900.00", 1010: "-2900.00"}, who="Joe"),
            entry(
                "2026-01-20", "Correct", {2100: "2900.00", 5030: "-2900.00"}, who="Joe", tags="@corrects=2026-01-001"
            ),
        ]
    )
    assert lines(report("vendors", "2025", books))[0] == "Joe 2 7900.00 5000.00 yes"
    assert lines(report("vendors", "2026", books)) == ["Joe 0 0.00 2900.00 yes", "Total 0 0.00 2900.00"]


def test_vendors_and_who_needs_a_1099() -> None:
    """Payments by card do not count, and the threshold is that of the year."""
    found = report("vendors")
    assert lines(found) == [
        "Card Contractor 1 900.00 0.00",
        "Jo Freelance 1 650.00 650.00 yes",
        "Cafe 2 122.51 42.50",
        "(no counterparty) 1 19.99 19.99",
        "Total 5 1692.50 712.49",
    ]
    later = [
        entry("2026-01-05", "Work", {5110: "1999.99", 1010: "-1999.99"}, who="Jo"),
        entry("2026-01-06", "Work", {5110: "2000.00", 1010: "-2000.00"}, who="Ann"),
        entry("2027-01-06", "Work", {5110: "2000.00", 1010: "-2000.00"}, who="Ann"),
    ]
    assert lines(report("vendors", "2026", make_books(later)))[:2] == [
        "Ann 1 2000.00 2000.00 yes",
        "Jo 1 1999.99 1999.99",
    ]
    assert (
        "The threshold of 2027 is not known to this version; that of 2026 is used."
        in report("vendors", "2027", make_books(later)).notes
    )
    abroad = make_books(
        [entry("2026-01-05", "Work", {5110: "9.00", 1010: "-9.00"}, who="Jo")],
        entity="generic",
        accounts=make_books([]).chart,
    )
    assert [c.key for c in report("vendors", "2026", abroad).columns] == ["entries", "spent"]


def test_months_beside_each_other() -> None:
    found = report("monthly", "2025-Q1")
    assert [c.title for c in found.columns] == ["2025-01", "2025-02", "2025-03", "total"]
    assert "Meals 0.00 80.01 12.50 92.51" in lines(found)
    assert lines(found)[-1] == "Net income 1350.00 -80.01 -962.49 307.50"
    with pytest.raises(UsageError, match="too wide"):
        report("monthly", "2020..2025")


def test_taxes_by_the_lines_of_the_form() -> None:
    with pytest.raises(CheckFailed, match=r"1 entry of 19\.99 USD waits for review"):
        report("tax")
    found = report("tax", draft=True)
    assert lines(found) == [
        "Schedule C (Form 1040), 2025",
        "Service revenue 2000.00 100 % 2000.00",
        "1  Gross receipts or sales 2000.00 2000.00",
        "Contract labour -1550.00 100 % -1550.00",
        "11  Contract labor -1550.00 -1550.00",
        "Meals -92.51 50 % -46.26",
        "24b  Deductible meals -92.51 -46.26",
        "Software and subscriptions -30.00 100 % -30.00",
        "27b  Other expenses (from line 48) -30.00 -30.00",
        "Uncategorised expense -19.99 100 % -19.99",
        "Without a line on the form -19.99 -19.99",
        "Revenue less expenses 307.50 353.75",
    ]
    assert "DRAFT" in found.title
    meals = next(row for row in found.rows if row.account_id == 5070)
    assert meals.entries == ("2025-02-001", "2025-03-002")
    assert lines(report("tax", "2024"))[-2].startswith("8  Advertising")
    assert read_tax_lines(2024)["sched_c.other"].line == "27a"
    final = make_books([e for e in sample_entries() if e.status != "pending-review"])
    assert "DRAFT" not in report("tax", books=final).title


def test_every_key_of_the_shipped_charts_is_on_a_form() -> None:
    from cleared.books.ledger.chart import parse_chart

    for entity in ENTITY_TYPES:
        keys = {a.tax_line for a in parse_chart(read_starter_chart(entity), "").accounts.values()} - {""}
        for year in list_tax_years():
            assert keys <= set(read_tax_lines(year)), (entity, year)


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        (ReportRequest("profit"), "no report"),
        (ReportRequest("pnl", "soon"), "not a period"),
        (ReportRequest("pnl", "2025-13"), "not a period"),
        (ReportRequest("pnl", "2025-03..2025-01"), "ends before"),
        (ReportRequest("pnl", "2025", "last"), "--compare"),
        (ReportRequest("tax", "2025", "year"), "compared"),
        (ReportRequest("pnl", "0001", "year"), "before the year 1"),
        (ReportRequest("pnl", account=1010), "ledger"),
        (ReportRequest("ledger", account=99), "does not exist"),
        (ReportRequest("pnl", draft=True), "tax"),
    ],
)
def test_what_there_is_not_is_refused(wanted: ReportRequest, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        make_report(make_books(sample_entries()), wanted)


def test_reports_of_empty_books() -> None:
    for name in REPORTS:
        assert all(not cell for row in report(name, books=make_books([])).rows for cell in row.cells if cell != "")
    with pytest.raises(UsageError, match="nothing is booked"):
        make_report(make_books([]), ReportRequest("pnl"))


def test_accounts_stand_below_their_headings_however_the_chart_is() -> None:
    """A heading that is its own grandchild, and one of another type, are no headings."""
    from cleared.books.index.current_books import AccountRow

    chart = [
        AccountRow(1, "All", "expense"),
        AccountRow(2, "Office", "expense", 1),
        AccountRow(3, "Paper", "expense", 2),
        AccountRow(4, "Ring", "expense", 5),
        AccountRow(5, "Ring too", "expense", 4),
        AccountRow(6, "Till", "asset", 1),
        *(AccountRow(100 + n, f"Deep {n}", "expense", 99 + n if n else 1) for n in range(60)),
    ]
    books = make_books(
        [entry("2025-01-01", "x", {3: "1.00", 2: "2.00", 4: "4.00", 159: "8.00", 6: "-15.00"})], accounts=chart
    )
    found = shown(report("pnl", books=books))
    assert found[:3] == ["Revenue", "Total revenue 0.00", "Expenses"]
    assert "- - 2 Total Office 3.00" in found and "- - - 3 Paper 1.00" in found
    assert found[-2:] == ["Total expenses 15.00", "Net income -15.00"]


# -- what holds for any books -----------------------------------------------------------------------------------------

_ACCOUNTS = (1010, 1020, 2010, 2500, 3010, 3200, 4010, 4090, 5010, 5030, 5070, 5110)


@st.composite
def any_entries(draw: st.DrawFn) -> list[Entry]:
    made = []
    for n in range(draw(st.integers(1, 12))):
        day = date(2024, 1, 1) + timedelta(days=draw(st.integers(0, 800)))
        accounts = draw(st.lists(st.sampled_from(_ACCOUNTS), min_size=2, max_size=4, unique=True))
        units = [draw(st.integers(-(10**6), 10**6).filter(bool)) for _ in accounts[1:]]
        if not sum(units):
            units[0] += 1 if units[0] != -1 else 2
        legs = dict(zip(accounts, [f"{Decimal(u).scaleb(-2):f}" for u in (-sum(units), *units)], strict=True))
        made.append(
            entry(str(day), f"e{n}", legs, pending=draw(st.booleans()), who=draw(st.sampled_from(["", "A", "B"])))
        )
    if draw(st.booleans()):
        made.append(entry("2024-12-31", "Close", {4010: "5.00", 3010: "-5.00"}, tags="@kind=closing"))
    return made


def figure(found: Report, key: str) -> Decimal:
    cell = next(row for row in found.rows if row.key == key).cells[0]
    assert isinstance(cell, Decimal)
    return cell


@settings(max_examples=12)
@given(any_entries(), st.integers(0, 900), st.sampled_from([1, 4, 7, 12]))
def test_the_statements_agree_with_each_other(entries: list[Entry], after: int, start_month: int) -> None:
    """B18: assets are liabilities and equity, on any day; months sum to the year; sides are equal; lines of tax forms
    sum to the P&L; cash at the end is what the accounts hold."""
    books = make_books(entries, start_month=start_month)
    day = date(2024, 1, 1) + timedelta(days=after)
    sheet = report("balance-sheet", str(day), books)
    assert figure(sheet, "asset") == figure(sheet, "both")
    sides = next(row for row in report("trial-balance", str(day), books).rows if row.key == "total").cells
    assert sides[0] == sides[1]
    income = report("pnl", "2024", books)
    months = [report("pnl", month_span(2024, m).label, books) for m in range(1, 13)]
    assert figure(income, "net-income") == sum(figure(month, "net-income") for month in months)
    assert list(report("monthly", "2024", books).rows)[-1].cells[-1] == figure(income, "net-income")
    assert figure(report("tax", "2024", books, draft=True), "net") == figure(income, "net-income")
    flow = [row for row in report("cash-flow", str(day.year), books).rows if row.kind == "total"]
    held = books.balances(None, date(day.year, 12, 31))
    assert flow[-1].cells[:2] == (held.get(1010, books.zero), held.get(1020, books.zero))
    for found in (sheet, income, report("tax", "2024", books, draft=True), report("cash-flow", "2024", books)):
        check_totals(list(found.rows))


def check_totals(rows: list[Row]) -> None:
    """Each total is the sum of the rows that it says it sums."""
    by_key = {row.key: row for row in rows if row.key}
    for row in rows:
        for n, cell in enumerate(row.cells if row.parts else ()):
            if isinstance(cell, Decimal):
                parts = [sign * by_key[key].cells[n] for key, sign in row.parts]  # type: ignore[operator]
                assert cell == sum(parts), row
