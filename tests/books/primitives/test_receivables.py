"""What customers owe, and entries between two days: by scripts, over books that hold invoices and payments."""

from __future__ import annotations

import pytest
from harness import Workspace, fails

INVOICE = 'journal_add_double("{day}", "Invoice", 1200, 4010, "{amount}", counterparty="{who}")\n'
PAYMENT = 'journal_add_double("{day}", "Paid", 1010, 1200, "{amount}", counterparty="{who}")\n'


@pytest.fixture
def invoiced(ws: Workspace) -> Workspace:
    """Miller paid the first of two invoices and half of the second; Ames all; Young paid without an invoice."""
    ws.script(
        INVOICE.format(day="2025-01-03", amount="100", who="Miller")
        + INVOICE.format(day="2025-01-10", amount="60", who="Miller")
        + INVOICE.format(day="2025-01-05", amount="75", who="Ames")
        + INVOICE.format(day="2025-01-08", amount="20", who="Bauer")
        + PAYMENT.format(day="2025-01-20", amount="130", who="MILLER")
        + PAYMENT.format(day="2025-01-21", amount="75", who="Ames")
        + PAYMENT.format(day="2025-01-22", amount="5", who="Young")
    )
    return ws


def test_payments_settle_the_oldest_invoices_first(invoiced: Workspace) -> None:
    found = invoiced.script(
        '[[r["counterparty"], str(r["amount"]), r["since"], r["days"]] for r in receivables("2025-01-31")]'
    )
    assert found["result"] == [
        ["Bauer", "20.00", "2025-01-08", 23],
        ["Miller", "30.00", "2025-01-10", 21],
        ["Young", "-5.00", "2025-01-22", 9],
    ]


def test_what_comes_after_the_day_does_not_count(invoiced: Workspace) -> None:
    found = invoiced.script(
        '[[r["counterparty"], str(r["amount"]), r["since"]] for r in receivables(as_of="2025-01-06")]'
    )
    assert found["result"] == [["Miller", "100.00", "2025-01-03"], ["Ames", "75.00", "2025-01-05"]]
    assert invoiced.script('receivables(as_of="2024-12-31")')["result"] == []


def test_a_voided_invoice_is_owed_by_nobody(invoiced: Workspace) -> None:
    entry = invoiced.script('journal_query(text="bauer")[0]["entry_id"]')["result"]
    invoiced.ok("journal", "void", entry, "--reason", "never sent")
    found = invoiced.script('[r["counterparty"] for r in receivables("2025-12-31")]')
    assert found["result"] == ["Miller", "Young"]


def test_another_account_can_be_named_and_one_that_is_not_is_refused(invoiced: Workspace) -> None:
    assert invoiced.script('[str(r["amount"]) for r in receivables("2025-01-31", account=1010)]')["result"]
    fails(invoiced, 'receivables("2025-01-31", account=1299)', "1299")


def test_entries_between_two_days_both_included(invoiced: Workspace) -> None:
    days = '[e["date"] for e in journal_query({})]'
    ask = lambda text: invoiced.script(days.format(text))["result"]  # noqa: E731
    assert ask('date_from="2025-01-08", date_to="2025-01-20"') == ["2025-01-10", "2025-01-08", "2025-01-20"]
    assert ask('date_from="2025-01-21"') == ["2025-01-21", "2025-01-22"]
    assert ask('date_to="2025-01-03"') == ["2025-01-03"]
    assert ask('date_from="2025-01-06", text="miller", account=1010') == ["2025-01-20"]
    assert ask('date_from="2025-02-01"') == []


def test_the_states_of_tasks_are_not_taken_for_those_of_entries(ws: Workspace) -> None:
    """The rule about statuses read every argument of that name."""
    ws.agent("probe", 'task_list(status="in-progress")')
    assert "unknown-status" not in ws("agent", "check", "probe").out
    ws.agent("probe", 'journal_query(status="in-progress")')
    assert "unknown-status" in ws("agent", "check", "probe").out
