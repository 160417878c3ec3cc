"""Adding a bank account by one of its files: what is understood of the file, and writing it into the settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cleared.base.errors import ClearedError, UsageError
from cleared.books.decisions import book_subjects
from cleared.books.decisions.account_changes import add_account
from cleared.books.importing.bank_setup import LIABILITIES, BankSetup
from cleared.books.importing.handed_files import sort_files
from cleared.books.importing.new_bank_files import understand_file
from cleared.books.queries import read_accounts
from cleared.changes.host import Host
from cleared.gate.proposals.setting_changes import SettingsOutcome, add_settings
from cleared.workspace.settings.loading import load_config


def is_describable(host: Host, name: str, data: bytes) -> bool:
    """Whether somebody could say what a file is: it has a known format, or is a table of transactions."""
    try:
        understand_file(host.config, host.decimal_places, name, data, {}, "unknown", is_card=False)
    except ClearedError:
        return False
    return True


def refuse_unreadable(host: Host, file: Path, edit: Callable[[str], str]) -> None:
    """Raises ``UsageError`` where the file could not be imported with what ``edit`` would write, such as a second
    description of the same columns."""
    text = (host.root / host.layout.config_file).read_text(encoding="utf-8-sig")
    config = load_config(edit(text))
    for left in sort_files([file], config, host.decimal_places)[1]:
        ids = ", ".join(account.id for account in host.config.bank_accounts)
        raise UsageError(
            f"nothing was written, since with that {left.source.name} could not be imported: {left.error.message}",
            remedy=f"Is it of a bank account that is there already? --account ID ({ids}) describes its files anew. For "
            "another account at the same bank leave out what describes the columns.",
        )


def add_bank_accounts(host: Host, edit: Callable[[str], str], setup: BankSetup, format: str) -> SettingsOutcome:
    """Write what ``edit`` makes of the settings, and the accounts of the books that are missing into the chart. What is
    there already, after a command that was killed, is left."""
    numbers = {row["account_id"] for row in read_accounts(host)}
    for entry in setup.new:
        number = int(entry["ledger_account"])
        if number not in numbers:
            title = str(entry.get("name") or entry["id"]).replace("_", " ")
            add_account(
                host, number, title[:1].upper() + title[1:], "liability" if entry["type"] in LIABILITIES else "asset"
            )
    return add_settings(host, edit, book_subjects.bank_added(setup.account_ids or [format], format))
