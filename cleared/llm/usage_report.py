"""What was asked and what it cost, for a person."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from cleared.llm.model_door import OpenWorkspace
from cleared.llm.spending import find_business_day
from cleared.llm.usage_store import UsageRow, UsageStore


class UsageReport(Struct, frozen=True):
    """Amounts are US dollars. ``total`` is of ``rows``, newest day first."""

    rows: list[UsageRow]
    total: Decimal
    daily_budget: Decimal
    left_today: Decimal

    def describe(self) -> dict[str, Any]:
        """The same as plain values; amounts are texts."""
        rows = [{**asdict(row), "cost": str(row.cost)} for row in self.rows]
        for row in rows:
            del row["nano_dollars"]
        return {
            "rows": rows,
            "total": str(self.total),
            "daily_budget": str(self.daily_budget),
            "left_today": str(self.left_today),
        }


def report_usage(host: OpenWorkspace, days: int) -> UsageReport:
    """The usage of today and of so many days before it. Raises ``WorkspaceError`` where it cannot be read."""
    zone, now, budget = host.config.business.timezone, host.clock.now(), host.config.llm.daily_budget
    store = UsageStore(host.layout.state_dir)
    rows = store.list_usage(find_business_day(now - timedelta(days=days), zone))
    today = store.sum_spent("", find_business_day(now, zone)).day
    total = sum((row.cost for row in rows), Decimal(0))
    return UsageReport(rows, total, budget, max(Decimal(0), budget - today))
