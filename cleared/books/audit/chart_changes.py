"""What a commit changes of accounts that were in the chart: figures of all months follow from it, closed ones too."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from cleared.base.errors import WorkspaceError
from cleared.books.ledger.chart import Account, parse_chart

if TYPE_CHECKING:
    from cleared.git import Snapshot

_NAMES: Final = {
    "account_name": "name",
    "account_type": "type",
    "parent_id": "parent",
    "tax_line": "tax line",
    "closed_on": "closed on",
}


def describe_chart_changes(before: Snapshot, after: Snapshot, path: str) -> list[str]:
    """Each account that is gone, or of which the chart says something else; new ones are in nobody's way. Where one of
    them cannot be read, that is said: what is altered could hide behind it.
    """
    if before.find_entry(path) is None:
        return []
    try:
        charts = [parse_chart(each.read_file(path), path) for each in (before, after)]
    except WorkspaceError as error:
        return [f"the chart before or after it cannot be read ({error.message})"]
    old, new = (chart.accounts for chart in charts)
    changed = [
        f"{number} {account.account_name} {_describe_change(account, new.get(number))}"
        for number, account in old.items()
        if new.get(number) != account
    ]
    headings = charts[1].parents - charts[0].parents
    return changed + [
        f"{number} {account.account_name} is a heading now: nothing can be posted to it"
        for number, account in old.items()
        if number in headings
    ]


def _describe_change(old: Account, new: Account | None) -> str:
    if new is None:
        return "is gone"
    pairs = ((each.name, getattr(old, each.name), getattr(new, each.name)) for each in dataclasses.fields(Account))
    texts = [f"{_NAMES.get(name, name)} {a or 'none'} → {b or 'none'}" for name, a, b in pairs if a != b]
    return f"({', '.join(texts)})"
