"""What the books know of how an entry came about: its bank line, the file of that, its receipts."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from cleared.books.ledger.entry import Entry
from cleared.books.ledger.entry_json import entry_to_json
from cleared.books.ledger.receipts import parse_receipts
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.opened_books import open_books
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.review.record_review import RecordOrigin, RecordPlace
from cleared.workspace.location import Layout


def trace_entry(host: Host, snapshot: Snapshot, name: str) -> RecordOrigin | None:
    """What is known of an entry of a commit; None where there is none of this id."""
    books, bank = open_books(host.layout, CommittedSource(snapshot))
    entry = books.find_entry(name)
    if entry is None:
        return None
    facts = {
        "entry": entry_to_json(entry),
        "bank_line": _describe_line(bank, entry),
        "receipts": _list_receipts(host, bank, entry),
    }
    reversal = _find_reversal(books, entry)
    return RecordOrigin(
        entry.entry_id,
        locate_entry(host.layout, entry),
        facts,
        _put_in_words(facts),
        locate_entry(host.layout, reversal) if reversal is not None else None,
    )


def locate_entry(layout: Layout, entry: Entry) -> RecordPlace:
    """Where an entry lies: its first leg stays as it is."""
    return RecordPlace(layout.journal_path(*entry.month), f"\n{entry.entry_id}a,".encode())


def _describe_line(bank: BankBook, entry: Entry) -> dict[str, Any] | None:
    found = bank.find_line(entry.reference) if entry.reference else None
    if found is None:
        return None
    account, fact = found
    records = [*bank.imports, *bank.all_imports]  # of an undone import, too
    source = next((r for r in records if r.file_sha256 == fact.file_sha256), None)
    return {
        "account": account,
        "line": fact.line_id,
        "file": source.name if source else None,
        "row": fact.row,
        "date": fact.posted_date.isoformat(),
        "amount": str(fact.amount),
        "text": fact.description,
    }


def _list_receipts(host: Host, bank: BankBook, entry: Entry) -> list[dict[str, Any]]:
    """The receipts of an entry; ``is_here``: whether this clone has the file."""
    path = bank.paths.receipts
    receipts = parse_receipts(bank.source.read(path), path).values()
    return [
        {"name": r.name, "file": r.file, "sha256": r.sha256, "is_here": (host.root / r.file).is_file()}
        for r in receipts
        if entry.entry_id in r.entries
    ]


def _find_reversal(books: Books, entry: Entry) -> Entry | None:
    """The entry that took a voided one back: where it was one of many, the commit of that does not name it."""
    if entry.status != "voided":
        return None
    mark = f"@rev={entry.entry_id}"
    months = [month for month in books.list_months() if month >= entry.month]
    reversals = (e for month in months for e in books.iter_entries(*month) if mark in e.tags.split(";"))
    return next(reversals, None)


def _put_in_words(facts: dict[str, Any]) -> list[tuple[str, str]]:
    entry, line = facts["entry"], facts["bank_line"]
    legs = "\n".join(
        f"{x['account_id']}  {x['debit'] if Decimal(x['debit']) else '-' + x['credit']}" for x in entry["lines"]
    )
    words = [
        ("entry", f"{entry['entry_id']}  {entry['date']}  {entry['amount']}  {entry['description']}"),
        ("legs", legs),
        ("status", entry["status"]),
    ]
    if line:
        text = f"{line['file']}, row {line['row']}: {line['date']} {line['amount']} {line['text']}"
        words.append(("bank line", text))
    for receipt in facts["receipts"]:
        missing = "" if receipt["is_here"] else " (not in this clone)"
        words.append(("receipt", f"{receipt['name']}: {receipt['file']}{missing}"))
    return words
