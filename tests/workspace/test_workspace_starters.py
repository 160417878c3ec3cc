"""The small starter agents do what their descriptions say, in the sandbox's own interpreter."""

from decimal import Decimal
from typing import Any

import pydantic_monty
import pytest

from cleared.workspace import template


def run(path: str, inputs: dict[str, Any] | None = None, **primitives: Any) -> Any:
    with pydantic_monty.Monty() as pool, pool.checkout() as session:
        return session.feed_run(template.starter_files()[path].decode(), inputs=inputs, external_lookup=primitives)


def vendor_name(name: str, description: str) -> Any:
    return run(f"scripts/{name}.py", {"description": description})


def line(account_id: int, debit: str = "", credit: str = "") -> dict[str, Any]:
    sides = (Decimal(side) if side else None for side in (debit, credit))
    return {"leg_id": "a", "account_id": account_id, **dict(zip(("debit", "credit"), sides, strict=True))}


def entry(number: int, status: str, lines: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    base = {"entry_id": f"2024-12-{number:03d}", "description": "SQ *BLUE BOTTLE 1234", "counterparty": None}
    return {**base, "status": status, "tags": [], "lines": lines, **more}


def test_the_summary_is_of_last_month() -> None:
    asked: list[dict[str, Any]] = []
    said: list[str] = []

    def journal_query(**filters: Any) -> list[dict[str, Any]]:
        asked.append(filters)
        return [
            entry(1, "pending-review", [line(5030, "4.50"), line(1010, credit="4.50")]),
            entry(2, "auto-confirmed", [line(1010, "100.10"), line(4010, credit="100.10")], counterparty="Acme"),
            entry(3, "auto-confirmed", [line(5020, "20.00"), line(1010, credit="20.00")], counterparty="GitHub"),
            entry(4, "auto-confirmed", [line(1010, "5.00"), line(5020, credit="5.00")], counterparty="GitHub"),
            entry(5, "user-confirmed", [line(4010, "99.00"), line(3010, credit="99.00")], tags=["@kind=closing"]),
        ]

    types = {1010: "asset", 3010: "equity", 4010: "revenue", 5020: "expense", 5030: "expense"}
    result = run(
        "agents/monthly_summary.py",
        ctx_today=lambda: "2025-01-31",
        accounts_list=lambda: [
            {"account_id": i, "account_name": f"N{i}", "account_type": kind} for i, kind in types.items()
        ],
        journal_query=journal_query,
        script_run=vendor_name,
        ctx_log=said.append,
    )
    assert asked == [{"year": 2024, "month": 12}]
    assert result == {
        "month": "2024-12",
        "income": "100.10",
        "expenses": {"5020 N5020": "15.00", "5030 N5030": "4.50"},
        "expenses_total": "19.50",
        "net": "80.60",
        "largest": [
            {"entry_id": "2024-12-003", "vendor": "GitHub", "amount": "20.00"},
            {"entry_id": "2024-12-001", "vendor": "Blue Bottle", "amount": "4.50"},
        ],
        "waiting_for_review": 1,
    }
    assert said == ["2024-12: income 100.10, expenses 19.50, net 80.60, waiting for review 1"]


@pytest.mark.parametrize(
    ("oldest", "now", "days"),
    [
        ("2025-02-27T23:59:59Z", "2025-03-01T00:00:00Z", 2),
        ("2024-02-28T00:00:00Z", "2024-03-01T00:00:00Z", 2),
        ("2023-12-31T00:00:00Z", "2025-01-01T00:00:00Z", 367),
        ("2025-01-01T00:00:00Z", "2025-01-01T23:00:00Z", 0),
    ],
)
def test_the_reminder_says_how_long_the_oldest_waits(oldest: str, now: str, days: int) -> None:
    emitted: list[tuple[Any, ...]] = []
    run(
        "agents/review_reminder.py",
        queue_pending=lambda: [{"created_at": now}, {"created_at": oldest}],
        ctx_now=lambda: now,
        ctx_log=lambda message: None,
        ctx_emit=lambda *args: emitted.append(args),
    )
    assert emitted == [("review.waiting", {"count": 2, "oldest_days": days})]


def test_the_reminder_is_silent_when_nothing_waits() -> None:
    run("agents/review_reminder.py", queue_pending=list, ctx_log=lambda message: None)


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("SQ *BLUE BOTTLE 1234", "Blue Bottle"),
        ("ORIG CO NAME:GUSTO PAY 12345 CO ENTRY", "Gusto PAY"),
        ("GITHUB, INC. 12/03", "Github INC"),
        ("Zoom.us 888-799-9666", "Zoom.us"),
        ("1234", "1234"),
        ("", ""),
    ],
)
def test_vendor_names(description: str, expected: str) -> None:
    assert vendor_name("vendor_name", description) == expected
