"""Receipts and the entries that they prove (``books/bank/receipts.csv``); the files lie in ``receipts/`` by digest.

Append-only: the last row of a receipt and an entry counts. A row without an entry says that the receipt is kept, or was
removed. A link says which entry of its number it means: git may take one back, and another gets the number. Amounts and
days are those that were read in the file, so that it can be matched where it is not at hand. A match is proposed to a
person, never linked by itself.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.csv_text import format_record
from cleared.base.errors import Place, RestoreRemedy, UsageError
from cleared.books.ledger.bank_lines import append_rows, damage_error, read_rows
from cleared.books.ledger.entry import Entry
from cleared.domains.record_audit import Violation

FOLDER: Final = "receipts"
INBOX: Final = f"{FOLDER}/inbox"
HEADER: Final = ("sha256", "entry_id", "state", "file", "name", "bytes", "amounts", "days", "by", "at")
KEPT, LINKED, UNLINKED, REMOVED = "kept", "linked", "unlinked", "removed"
_STATES: Final = frozenset({KEPT, LINKED, UNLINKED, REMOVED})
_SHA256: Final = r"(?a)[0-9a-f]{64}"
_ENDING: Final = r"(?a)\.([A-Za-z0-9]{1,8})"


FindEntry = Callable[[str], Entry | None]


class Receipt(Struct, frozen=True):
    """One kept file. ``file``: where it lies, relative to the workspace; ``name``: what it was called when it came."""

    sha256: str
    file: str
    name: str
    size: int
    by: str
    at: str
    amounts: tuple[Decimal, ...] = ()
    """Amounts that it names, the likeliest total first."""
    days: tuple[date, ...] = ()
    """Days that it names."""
    links: Mapping[str, str] = {}
    """The numbers of the entries that it was given to → what tells each from others (``Entry.digest_posting``)."""

    def has_content(self, data: bytes) -> bool:
        """Whether this is what was kept."""
        return hashlib.sha256(data).hexdigest() == self.sha256

    def proves(self, entry: Entry) -> bool:
        """Whether it was given to this entry, and not to another one that had its number."""
        posting = self.links.get(entry.entry_id)
        return posting == "" or (posting is not None and posting == entry.digest_posting())

    def list_proved(self, find_entry: FindEntry) -> list[Entry]:
        """The entries that it was given to, as far as they are there."""
        found = (find_entry(entry_id) for entry_id in self.links)
        return [entry for entry in found if entry is not None and self.proves(entry)]

    def add_link(self, entry: Entry) -> Receipt:
        """The same, given to this entry."""
        return replace(self, links={**self.links, entry.entry_id: entry.digest_posting()})

    def format_row(self, state: str, by: str, at: str, entry_id: str = "") -> str:
        """The line that records a state of it, or of its link to this entry."""
        amounts, days = ";".join(map(str, self.amounts)), ";".join(map(str, self.days))
        posting = self.links.get(entry_id, "") if state == LINKED else ""
        said = f"{state}:{posting}" if posting else state  # rows of earlier versions name no posting
        return format_record((self.sha256, entry_id, said, self.file, self.name, str(self.size), amounts, days, by, at))


def place_receipt(digest: str, name: str) -> str:
    """Where a receipt with this SHA-256 lies; only a plain ending of its name is kept."""
    match = re.fullmatch(_ENDING, name[name.rfind(".") :]) if "." in name else None
    return f"{FOLDER}/{digest[:2]}/{digest}{f'.{match[1].lower()}' if match else ''}"


def list_inbox(root: Path) -> list[Path]:
    """The files that lie in the inbox, by name; neither folders nor hidden files."""
    folder = root / INBOX
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_dir())


def parse_receipts(data: bytes | None, file: str) -> dict[str, Receipt]:
    """SHA-256 → the receipts that are kept, in the order in which they came. Raises ``WorkspaceError`` with the damaged
    line."""
    receipts: dict[str, Receipt] = {}
    links: dict[str, dict[str, str]] = {}
    for line, row in read_rows(data, file, HEADER):
        receipt, state, entry_id, posting = _parse_row(row, file, line)
        if state == REMOVED:
            receipts.pop(receipt.sha256, None)
            links.pop(receipt.sha256, None)
            continue
        receipts.setdefault(receipt.sha256, receipt)
        of_receipt = links.setdefault(receipt.sha256, {})
        if state == LINKED:
            of_receipt[entry_id] = posting
        elif state == UNLINKED:
            of_receipt.pop(entry_id, None)
    return {digest: replace(each, links=links[digest]) for digest, each in receipts.items()}


def _parse_row(row: list[str], file: str, line: int) -> tuple[Receipt, str, str, str]:
    state, _, posting = row[2].partition(":")
    try:
        amounts = tuple(Decimal(text) for text in row[6].split(";") if text)
        days = tuple(date.fromisoformat(text) for text in row[7].split(";") if text)
        receipt = Receipt(row[0], row[3], row[4], int(row[5]), row[8], row[9], amounts, days)
    except (ValueError, InvalidOperation):
        raise damage_error(file, line, "a receipt is not readable") from None
    is_placed = re.fullmatch(_SHA256, receipt.sha256) and receipt.file == place_receipt(receipt.sha256, receipt.file)
    if not is_placed or state not in _STATES or not all(amount.is_finite() for amount in amounts):
        raise damage_error(file, line, "a receipt is not readable")
    return receipt, state, row[1], posting


def append_receipt_rows(data: bytes | None, rows: Iterable[str]) -> bytes:
    """The file with these rows at its end."""
    return append_rows(data, HEADER, rows)


def find_receipt(receipts: Mapping[str, Receipt], text: str) -> Receipt:
    """The receipt of that digest (its beginning is enough), place or name. Raises ``UsageError`` where none or several
    are meant."""
    known = [
        each
        for each in receipts.values()
        if text in (each.file, each.name) or (len(text) >= 4 and each.sha256.startswith(text.lower()))
    ]
    if len(known) != 1:
        raise UsageError(
            f"{'no receipt is' if not known else f'{len(known)} receipts are'} {text!r}",
            remedy="Take the digest, or its beginning, from: cleared receipt list",
        )
    return known[0]


def group_by_entry(receipts: Iterable[Receipt]) -> dict[str, list[Receipt]]:
    """Number of an entry → the receipts that were given to it, or to another that had its number."""
    groups: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        for entry_id in receipt.links:
            groups.setdefault(entry_id, []).append(receipt)
    return groups


def find_altered_receipts(receipts: Iterable[Receipt], read_file: Callable[[str], bytes | None]) -> Iterator[Violation]:
    """Receipts that git keeps and that are not those that were filed."""
    for receipt in receipts:
        data = read_file(receipt.file)
        if data is not None and not receipt.has_content(data):
            yield Violation(
                "receipts",
                f"the receipt {receipt.name!r} is not the file that was kept",
                RestoreRemedy(receipt.file),
                Place(receipt.file),
            )


def find_stray_links(receipts: Iterable[Receipt], find_entry: FindEntry, file: str) -> Iterator[Violation]:
    """Links to entries that are gone, whoever has their numbers now. ``file``: where the links are."""
    for receipt in receipts:
        for entry_id in receipt.links:
            entry, name = find_entry(entry_id), f"{receipt.sha256[:8]} {entry_id}"
            if entry is None:
                why, what = f"is linked to {entry_id}, which is not there", ""
            elif not receipt.proves(entry):
                why = f"was given to another entry than {entry_id} is now ({entry.description[:60]!r})"
                what = f"; where it proves this one: cleared receipt link {name}"
            else:
                continue
            remedy = f"Take the link back: cleared receipt unlink {name}{what}"
            yield Violation("receipts", f"the receipt {receipt.name!r} {why}", remedy, Place(file))


DAYS_BEFORE: Final = 3
"""A bank line may be so much older than the receipt's day."""
DAYS_AFTER: Final = 10
"""Or so much younger: a card is charged days later."""
DAYS_UNDATED: Final = 45
"""How old an entry may be for a receipt that names no day."""


class Payment(Struct, frozen=True):
    """What of an entry a receipt can prove: money that left or reached a bank account."""

    entry_id: str
    day: date
    amount: Decimal
    """Positive; what the bank accounts moved in all."""
    is_out: bool
    text: str


def list_payments(entries: Iterable[Entry], bank_accounts: Collection[int]) -> Iterator[Payment]:
    """The payments among entries: what stands, and moved money of a bank account; not transfers between them, nor what
    they held when the books began. A correction is one where it was posted for the bank's line again."""
    for entry in entries:
        if entry.status == "voided" or entry.is_opening:
            continue
        moved = sum((leg.amount for leg in entry.legs if leg.account_id in bank_accounts), Decimal(0))
        if moved:
            yield Payment(entry.entry_id, entry.date, abs(moved), moved < 0, entry.counterparty or entry.description)


def find_likely(receipt: Receipt, payments: Collection[Payment], today: date) -> list[Payment]:
    """The payments that a receipt is most likely about: none, one, or several that are as likely."""
    ranked: list[tuple[int, int, Payment]] = []
    for payment in payments:
        if payment.amount in receipt.amounts and (days := _days_between(receipt, payment.day, today)) is not None:
            ranked.append((receipt.amounts.index(payment.amount), days, payment))
    ranked.sort(key=lambda each: each[:2])
    if not receipt.days:
        return [payment for *_, payment in ranked]
    return [payment for *likely, payment in ranked if tuple(likely) == ranked[0][:2]]


def _days_between(receipt: Receipt, paid: date, today: date) -> int | None:
    """How far a payment is from the nearest day of the receipt; None where it is too far."""
    if not receipt.days:
        return 0 if timedelta(0) <= today - paid <= timedelta(DAYS_UNDATED) else None
    near = [abs((paid - day).days) for day in receipt.days if -DAYS_BEFORE <= (paid - day).days <= DAYS_AFTER]
    return min(near) if near else None


def first_day(receipts: Iterable[Receipt], today: date) -> date:
    """The first day of which a payment can be meant by any of these receipts."""
    spans = [(day, DAYS_BEFORE) for receipt in receipts for day in receipt.days] + [(today, DAYS_UNDATED)]
    return min(day - min(timedelta(before), day - date.min) for day, before in spans)
