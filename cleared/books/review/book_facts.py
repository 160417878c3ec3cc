"""What the books say of open cards, read once, so that moving from card to card is instant.

Texts are as they came from the bank or a script: whoever shows them escapes them.
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property, lru_cache, partial
from string import digits
from typing import Final

from cleared.base import money
from cleared.books.card_kinds import ENTRY, LINE, TRANSFER
from cleared.books.entry_cards import find_asked
from cleared.books.index.standing_books import StandingBooks, read_standing_books
from cleared.books.ledger.all_booked_lines import AllBookedLines, GroupKey, KeptMonths, list_parts_between
from cleared.books.ledger.bank_lines import LINE_ID_PREFIX, BankLine, normalise_description
from cleared.books.ledger.booked_lines import OpenLine, clean_payee
from cleared.books.ledger.categoriser import Categoriser, Suggestion
from cleared.books.ledger.chart import Chart
from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.ledger.grouped_items import GroupedItems
from cleared.books.ledger.import_records import ImportRecord
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.standing_entries import list_of_size
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.books.teaching.decided_rows import DecidedHistory, LearnedRow
from cleared.books.transfer_cards import refused_transfers
from cleared.cards.card import Card
from cleared.cards.known_cards import KnownCards
from cleared.changes.decisions.attested_decisions import list_decided_records
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.workspace.sealed_files import SealedFiles, digest_sources

_SOURCES: Final = ("base", "books/index", "books/ledger", "books/teaching", "workspace")
"""The folders of the program that decide what is found in a month."""
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_NAMING: Final = ("counterparty", "description")
"""The fields that say who it is."""
_WITHOUT_DIGITS: Final = str.maketrans(digits, " " * len(digits))
EntryTheme = tuple[str, tuple[int, ...]]


@dataclass
class BookFacts:
    """What is needed of the books to show open cards, and to choose what is decided about them."""

    standing: StandingBooks
    chart: Chart
    banks: Mapping[str, int]
    """Bank account → its account in the books."""
    _bank: BankBook
    """What the bank said; read, month by month, when a card is shown that is about it."""
    refused_transfers: set[tuple[str, str]]
    """Texts of what left and what arrived, where somebody said that it was no transfer."""
    find_attested: Callable[[Collection[str]], Collection[str]]
    """Which of some records a person has decided about, as attested here."""
    kept: KeptMonths | None = None
    """Where a process that ends with its answer keeps what it found in months that are over."""
    _reading: threading.RLock = field(default_factory=threading.RLock)
    """The bank's lines are read by one thread at a time."""
    _months_read: set[str] = field(default_factory=set)
    _learned: dict[str, LearnedRow | None] = field(default_factory=dict)
    _suggested: dict[str, Suggestion | None] = field(default_factory=dict)

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries by id."""
        return self.standing.entries

    def entry_of(self, card: Card) -> Entry | None:
        asked = find_asked(card, self.entries.get) if card.record_id else None
        return asked[0] if asked else None

    def line_of(self, card: Card) -> tuple[str, BankLine] | None:
        """The bank line that the card is about, behind its bank account's name."""
        entry = self.entry_of(card)
        asked = str(card.details.get("line", "")) if card.kind == LINE.name else ""
        reference = entry.reference if entry is not None else asked
        if not reference.startswith(LINE_ID_PREFIX):
            return None
        with self._reading:
            if entry is not None:  # nearly always the line is of its month
                self._read_month(entry.entry_id[:7])
            return self._bank.find_line(reference) if reference not in self._bank.released_line_ids else None

    def _read_month(self, month: str) -> None:
        if month not in self._months_read:
            self._months_read.add(month)
            for account in self._bank.list_accounts():
                self._bank.read_month(account, month)

    def posts_line(self, card: Card) -> bool:
        """Whether its entry posts a bank line: then rejecting it needs an outcome for the line."""
        entry, line = self.entry_of(card), self.line_of(card)
        return entry is not None and line is not None and self.posted_amount(line[1].line_id) != 0

    def posted_amount(self, line_id: str) -> Decimal:
        """How much of a bank line is posted."""
        with self._reading:
            return self._bank.posted_amount(line_id)

    @cached_property
    def imports(self) -> Mapping[str, ImportRecord]:
        """Imported files by digest: of one that came again the first time, of an undone one what stands."""
        with self._reading:
            return {record.file_sha256: record for record in reversed([*self._bank.imports, *self._bank.all_imports])}

    # -- accounts and legs ----------------------------------------------------------------------------------------

    def account_label(self, number: int) -> str:
        """``5070 Meals``"""
        account = self.chart.find_account(number)
        return f"{number} {account.account_name}" if account else str(number)

    def account_summary(self, entry: Entry) -> str:
        """The entry's first account that is not a bank's, and how many more there are."""
        legs = self.changeable_legs(entry) or list(self.effective_legs(entry))
        labels = [self.account_label(leg.account_id) for leg in legs]
        return labels[0] if len(labels) == 1 else f"{labels[0]} + {len(labels) - 1} more" if labels else ""

    def effective_legs(self, entry: Entry) -> tuple[Leg, ...]:
        """The entry's legs with its corrections that stand."""
        counted = self.standing.find_standing(entry.entry_id)
        return counted.legs if counted is not None else entry.legs

    def changeable_legs(self, entry: Entry) -> list[Leg]:
        """The effective legs that are not a bank's."""
        bank_accounts = set(self.banks.values())
        return [leg for leg in self.effective_legs(entry) if leg.account_id not in bank_accounts]

    # -- vendors ----------------------------------------------------------------------------------------------------

    @cached_property
    def uses(self) -> Counter[int]:
        """How many entries that are decided use each account."""
        return self.standing.count_uses()

    def count_vendor_uses(self, card: Card) -> Counter[int]:
        """How many entries of its vendor or text that are decided use each account that is no bank's."""
        keys = self._list_vendor_keys(card)
        return sum((part.recall(_count_uses, keys) for part in self.standing.parts), Counter[int]())

    def iter_earlier_like(self, card: Card) -> Iterator[Entry]:
        """Other entries of the same vendor or text up to the card's month, newest first."""
        entry, line = self.entry_of(card), self.line_of(card)
        day = entry.date if entry is not None else line[1].posted_date if line is not None else date.max
        keys = self._list_vendor_keys(card)
        for part in reversed(self.standing.list_parts_until(day)):
            alike = part.recall(_list_alike, keys)
            yield from (self.entries[each.entry_id] for each in alike if each.entry_id != card.record_id)

    def _list_vendor_keys(self, card: Card) -> frozenset[str]:
        entry, line = self.entry_of(card), self.line_of(card)
        description = entry.description if entry is not None else line[1].description if line is not None else ""
        if not description:
            return frozenset()
        return frozenset(_list_vendor_keys(entry.counterparty if entry is not None else "", description))

    def find_entry_theme(self, entry: Entry) -> EntryTheme:
        """Its vendor, and its accounts that are no bank's: what entries that are decided together have in common."""
        return _find_theme(self.standing.find_standing(entry.entry_id) or entry, self.banks.values())

    def list_theme(self, entry: Entry) -> set[str]:
        """The ids of the entries of the same vendor on the same accounts."""
        banks, theme = frozenset(self.banks.values()), self.find_entry_theme(entry)
        return set().union(*(part.recall(_list_theme, banks, theme) for part in self.standing.parts))

    def iter_of_amount(self, amount: Decimal, first: date, last: date) -> Iterator[Entry]:
        """The entries that count of an amount, in the months from that of one day to that of another."""
        for part in list_parts_between(self.standing.parts, first, last):
            sized = list_of_size(part, amount)
            yield from (self.entries[each.entry_id] for each in sized if each.amount == amount)

    @cached_property
    def lines(self) -> AllBookedLines:
        """How bank lines are booked."""
        return AllBookedLines(self.standing.parts, self.banks.values(), self.kept)

    @cached_property
    def categoriser(self) -> Categoriser:
        """What persons' decisions teach; learned when the first card is shown."""
        return Categoriser(self.lines, self.refused_transfers)

    def suggestion_of(self, card: Card) -> Suggestion | None:
        """The account that earlier decisions suggest for a card that waits, if it can take one."""
        if card.id not in self._suggested:
            self._suggested[card.id] = self._suggest(card)
        return self._suggested[card.id]

    def _suggest(self, card: Card) -> Suggestion | None:
        open_line = self._open_line_of(card)
        if open_line is None:
            return None
        found = self.categoriser.suggest(
            open_line.text,
            open_line.amount,
            open_line.reference,
            day=open_line.day,
            bank=open_line.bank,
            entry_id=open_line.entry_id,
        )
        if found is None:
            return None
        accounts = [found.account, *(account for account, _ in found.parts)]
        return found if all(self._is_postable(each, open_line.day) for each in accounts) else None

    @cached_property
    def history(self) -> DecidedHistory:
        """What persons decided, by payee; read when the first card is shown."""
        return DecidedHistory(self.lines)

    def learned_row_of(self, card: Card) -> LearnedRow | None:
        """The row of a vendor table that would book a card that waits, and all like it, as persons decided."""
        if card.id not in self._learned:
            self._learned[card.id] = self._learn_row(card)
        return self._learned[card.id]

    def _learn_row(self, card: Card) -> LearnedRow | None:
        line = self._open_line_of(card)
        if line is None:
            return None
        rows = self.history.learn_rows(GroupKey(clean_payee(line.text), "in" if line.amount > 0 else "out"))
        fitting = (each for each in rows if each.row.fits(line.text, line.amount, line.bank))
        found = next((each for each in fitting if not each.row.limits.split), None)
        if found is None or not self._is_postable(found.row.account, line.day):
            return None
        decided = {each.entry_id for each in found.decisions}
        return found if decided.issubset(self.find_attested(decided)) else None

    def _is_postable(self, account: int, day: date) -> bool:
        return self.chart.why_not_postable(account, day) is None

    def _open_line_of(self, card: Card) -> OpenLine | None:
        """What a card that waits asks an account for; None where it can take none."""
        entry, line = self.entry_of(card), self.line_of(card)
        if entry is not None and (entry.status != "pending-review" or len(self.changeable_legs(entry)) != 1):
            return None
        if card.kind not in (ENTRY.name, LINE.name) or (entry is None and line is None):
            return None
        return OpenLine(
            line[1].description if line is not None else entry.description if entry is not None else "",
            self._bank_amount(entry) if entry is not None else line[1].amount if line is not None else ZERO,
            line[1].posted_date if line is not None else entry.date if entry is not None else date.min,
            self._bank_of(entry, line),
            line[1].line_id if line is not None else "",
            entry.entry_id if entry is not None else "",
        )

    def _bank_of(self, entry: Entry | None, line: tuple[str, BankLine] | None) -> int:
        """The bank's account in the books."""
        if line is not None and line[0] in self.banks:
            return self.banks[line[0]]
        banks = set(self.banks.values())
        return next((leg.account_id for leg in (entry.legs if entry is not None else ()) if leg.account_id in banks), 0)

    def _bank_amount(self, entry: Entry | None) -> Decimal:
        """What an entry moves on the bank's account."""
        banks = set(self.banks.values())
        legs = entry.legs if entry is not None else ()
        return money.total([leg.amount for leg in legs if leg.account_id in banks])


def vendor_key(counterparty: str, description: str) -> str:
    """What entries of one vendor have in common: its name, else the first words of the bank's text without digits."""
    if counterparty.strip():
        return normalise_description(counterparty)
    return _find_words(description.translate(_WITHOUT_DIGITS)) or normalise_description(description)


@lru_cache(maxsize=10_000)
def _find_words(text: str) -> str:
    """The first words of a text. Without their numbers, thousands of a bank's texts are one."""
    return " ".join(_WORD.findall(normalise_description(text))[:3])


def _list_vendor_keys(counterparty: str, description: str) -> Collection[str]:
    """The keys of an entry: by its vendor's name, where it has one, and by its text."""
    key = vendor_key("", description)
    return {key, vendor_key(counterparty, "")} if counterparty.strip() else (key,)


def _find_theme(standing: Entry, banks: Collection[int]) -> EntryTheme:
    """Its vendor, and its accounts that are not among the banks'."""
    accounts = sorted(leg.account_id for leg in standing.legs if leg.account_id not in banks)
    return vendor_key(standing.counterparty, standing.description), tuple(accounts)


def _list_theme(part: GroupedItems[Entry], banks: frozenset[int], theme: EntryTheme) -> list[str]:
    of_vendor = part.recall(_list_alike, frozenset((theme[0],)))
    return [each.entry_id for each in of_vendor if _find_theme(each, banks) == theme]


def _list_used_accounts(standing: Entry) -> Collection[int]:
    return {leg.account_id for leg in standing.legs} if standing.status != "pending-review" else ()


def _list_alike(part: GroupedItems[Entry], keys: frozenset[str]) -> list[Entry]:
    """The entries of these vendors, newest first."""
    if part.is_made_late:
        found = [each for each in _list_likely(part, keys) if not keys.isdisjoint(_list_keys(each))]
    else:
        found = [each for key in keys for each in part.group(_list_keys).get(key, ())]
    alike = {each.entry_id: each for each in found}
    return sorted(alike.values(), key=lambda each: (each.date, each.number), reverse=True)


def _list_keys(standing: Entry) -> Collection[str]:
    return _list_vendor_keys(standing.counterparty, standing.description)


def _list_likely(part: GroupedItems[Entry], keys: frozenset[str]) -> Iterator[Entry]:
    """All entries of these vendors, and others, some of them twice: of nearly all, one look at a text is enough."""
    starts = {key.partition(" ")[0] for key in keys}

    def may_be_alike(text: str) -> bool:
        capitals = text.upper()
        for word in starts:  # ``any`` of a generator takes twice as long
            if word in capitals:
                return True
        return not text.isascii()

    return (each for field in _NAMING for each in part.list_where(field, may_be_alike))


def _count_uses(part: GroupedItems[Entry], keys: frozenset[str]) -> Counter[int]:
    return Counter(account for each in part.recall(_list_alike, keys) for account in _list_used_accounts(each))


def read_book_facts(host: Host, snapshot: Snapshot, every_card: KnownCards) -> BookFacts:
    """What the books of a commit say of its cards. ``every_card``: settled ones, too."""
    books, bank = open_books(host.layout, CommittedSource(snapshot))
    banks = dict(ledger_accounts(host.config))
    standing = read_standing_books(host.layout, snapshot, host.decimal_places)
    sealed = SealedFiles(host.layout.state_dir, partial(digest_sources, *_SOURCES))
    return BookFacts(
        standing,
        books.chart,
        banks,
        bank,
        refused_transfers(every_card.list_kind(TRANSFER.name)),
        partial(list_decided_records, host, snapshot),
        None if host.reads_again else KeptMonths(sealed, standing.versions),
    )
