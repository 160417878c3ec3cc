"""How a refused call is told: the primitive's name once, the argument, and what to do."""

from __future__ import annotations

import pytest
from harness import Workspace


def message_of(ws: Workspace, call: str) -> str:
    """What ``agent run`` prints of the failed call."""
    ws.agent("refused", call, "")
    done = ws("agent", "run", "refused", "--json")
    assert done.json["status"] == "failed", done
    return str(done.err)


@pytest.mark.parametrize(
    "call",
    [
        'journal_add_double("2025-01-03", "x", 5020, 1010, -4)',
        'journal_add_double("2025-01-32", "x", 5020, 1010, -4)',
        'journal_add_double("2025-01-03", "x", 5020, 5020, 4)',
        'journal_add_double("2025-01-03", "x", 9999, 1010, 4)',
        'journal_add_many([{"date": "2025-01-03", "description": "x", "lines": []}])',
        'queue_add_review("pending", "x", confidence=7)',
    ],
)
def test_the_primitive_is_named_once(ws: Workspace, call: str) -> None:
    name = call.partition("(")[0]
    message = message_of(ws, call)
    assert message.count(f"{name}: ") == 1, message


def test_the_dry_run_of_the_gate_names_it_once_too(ws: Workspace) -> None:
    ws.agent("refused", 'journal_add_double("2025-01-03", "x", 5020, 1010, -4)', "")
    done = ws("agent", "check", "refused", "--json")
    assert "journal_add_double: amount: " in done.out and done.out.count("journal_add_double: journal") == 0


def test_an_amount_that_is_finer_than_the_currency_names_money_allocate(ws: Workspace) -> None:
    message = message_of(ws, 'journal_add_double("2025-01-03", "x", 5020, 1010, 100 / 3)')
    assert "finer than the currency's 2 decimal places; money_allocate" in message


def test_a_negative_amount_names_abs(ws: Workspace) -> None:
    assert "pass abs(amount)" in message_of(ws, 'journal_add_double("2025-01-03", "x", 5020, 1010, -4)')
    assert "abs(" not in message_of(ws, 'journal_add_double("2025-01-03", "x", 5020, 1010, 0)')
