"""Which account of the books can stand for one of a bank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cleared.base.errors import Place, PolicyError
from cleared.base.file_source import FileSource
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.chart import parse_chart
from cleared.books.ledger.transfers import CLEARING_ACCOUNT
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config

_HELD: Final = ("asset", "liability")


def find_setting_faults(layout: Layout, config: Config, source: FileSource) -> Mapping[str, PolicyError]:
    """The settings that give a bank account one that is none of a bank: key → why it cannot be."""
    path = locate_books(layout).chart
    chart, faults = parse_chart(source.read(path), path).accounts, dict[str, PolicyError]()
    for bank in config.bank_accounts:
        known = chart.get(bank.ledger_account)
        if known is not None and (problem := find_fault(known.account_id, known.account_name, known.account_type)):
            key = f"bank_accounts.{bank.id}.ledger_account"
            faults[key] = PolicyError(
                problem,
                place=Place(layout.config_file, field=key),
                remedy=f"Name an asset or a liability that is one: cleared config set {key} NUMBER.",
            )
    return faults


def find_fault(number: int, name: str, kind: str) -> str:
    """Why an account of this type cannot be a bank account's, empty where it can: expenses or equity would be taken for
    what the bank holds."""
    if number != CLEARING_ACCOUNT and kind in _HELD:
        return ""
    what = "between your own accounts" if number == CLEARING_ACCOUNT else kind
    return f"account {number} {name} ({what}) cannot be a bank account’s"
