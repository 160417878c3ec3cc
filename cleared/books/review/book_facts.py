"""What the books say of open cards, read once, so that moving from card to card is instant.

Texts are as they came from the bank or a script: whoever shows them escapes them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cached_property, partial
from typing import Final

from cleared.base import money
from cleared.books.card_kinds import ENTRY, LINE, TRANSFER
from cleared.books.index.all_entries import read_all_entries
from cleared.books.ledger.bank_lines import BankLine, ImportRecord, normalise_description
from cleared.books.ledger.booked_lines import BookedLine, OpenLine, clean_payee, read_booked_lines
from cleared.books.ledger.categoriser import Categoriser, Suggestion
from cleared.books.ledger.chains import CORRECTS
from cleared.books.ledger.chart import Chart
from cleared.books.ledger.entry import ZERO, Entry, Leg
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.books.teaching.decided_rows import DecidedHistory, GroupKey, LearnedRow
from cleared.books.transfer_cards import refused_transfers
from cleared.cards.card import Card
from cleared.cards.known_cards import KnownCards
from cleared.changes.decisions.attested_decisions import list_decided_records
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot

_WORD: Final = re.compile(r"[^\W\d_]{2,}")


@dataclass
class BookFacts:
    """What is needed of the books to show open cards, and to choose what is decided about them."""

    entries: dict[str, Entry]
    chart: Chart
    banks: Mapping[str, int]
    """Bank account → its account in the books."""
    lines: dict[str, tuple[str, BankLine]]
    """Bank lines that open cards are about → bank account, line."""
    posted: Mapping[str, Decimal]
    """How much of each of these lines is posted."""
    imports: Mapping[str, ImportRecord]
    """Imported files by digest."""
    refused_transfers: set[tuple[str, str]]
    """Texts of what left and what arrived, where somebody said that it was no transfer."""
    find_attested: Callable[[Collection[str]], Collection[str]]
    """Which of some records a person has decided about, as attested here."""
    _alike: dict[frozenset[str], list[Entry]] = field(default_factory=dict)

    def entry_of(self, card: Card) -> Entry | None:
        return self.entries.get(card.record_id) if card.record_id else None

    def line_of(self, card: Card) -> tuple[str, BankLine] | None:
        """The bank line that the card is about, behind its bank account's name."""
        entry = self.entry_of(card)
        reference = entry.reference if entry is not None else str(card.details.get("line", ""))
        return self.lines.get(reference)

    def posts_line(self, card: Card) -> bool:
        """Whether its entry posts a bank line: then rejecting it needs an outcome for the line."""
        entry = self.entry_of(card)
        return entry is not None and bool(entry.reference) and self.posted.get(entry.reference, ZERO) != 0

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
        return self._corrected_legs.get(entry.entry_id, entry.legs)

    def changeable_legs(self, entry: Entry) -> list[Leg]:
        """The effective legs that are not a bank's."""
        bank_accounts = set(self.banks.values())
        return [leg for leg in self.effective_legs(entry) if leg.account_id not in bank_accounts]

    def corrected_entry_id(self, entry: Entry) -> str:
        """The entry that this one only corrects, if that stands; else empty."""
        if entry.status == "voided" or CORRECTS not in entry.tags:
            return ""
        for tag in entry.tags.split(";"):
            original = self.entries.get(tag.removeprefix(CORRECTS)) if tag.startswith(CORRECTS) else None
            if original is not None and original.status != "voided":
                return original.entry_id
        return ""

    @cached_property
    def _corrected_legs(self) -> dict[str, tuple[Leg, ...]]:
        """Entry → its legs as its corrections make them."""
        corrections: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.entries.values():
            if original := self.corrected_entry_id(entry):
                corrections[original].append(entry)
        corrected = {}
        for entry_id, corrected_by in corrections.items():
            totals: dict[int, Decimal] = {}
            for leg in (leg for entry in (self.entries[entry_id], *corrected_by) for leg in entry.legs):
                totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
            corrected[entry_id] = tuple(Leg(a, max(v, ZERO), max(-v, ZERO)) for a, v in totals.items() if v)
        return corrected

    # -- vendors ----------------------------------------------------------------------------------------------------

    @cached_property
    def entries_by_vendor(self) -> Mapping[str, list[Entry]]:
        """Vendor key → its entries."""
        by_vendor: dict[str, list[Entry]] = defaultdict(list)
        names: dict[str, str] = {}
        for entry in self._standing_entries:
            text = vendor_key("", entry.description)
            by_vendor[text].append(entry)
            if name := entry.counterparty.strip():
                if name not in names:
                    names[name] = vendor_key(name, "")
                if names[name] != text:
                    by_vendor[names[name]].append(entry)
        return by_vendor

    @cached_property
    def account_uses(self) -> Counter[int]:
        """How often entries that are decided use each account."""
        decided = (entry for entry in self._standing_entries if entry.status != "pending-review")
        return Counter(leg.account_id for entry in decided for leg in self.changeable_legs(entry))

    @cached_property
    def _standing_entries(self) -> list[Entry]:
        """Entries that are not voided, without those that only correct another."""
        return [e for e in self.entries.values() if e.status != "voided" and not self.corrected_entry_id(e)]

    def entries_like(self, card: Card) -> list[Entry]:
        """Other entries of the same vendor or text, newest first."""
        entry, line = self.entry_of(card), self.line_of(card)
        description = entry.description if entry is not None else line[1].description if line else ""
        if not description:
            return []
        keys = {vendor_key(entry.counterparty if entry is not None else "", description), vendor_key("", description)}
        return [e for e in self._list_alike(frozenset(keys)) if e.entry_id != card.record_id]

    def _list_alike(self, keys: frozenset[str]) -> list[Entry]:
        """The entries of these vendors, newest first; sorted once, as many cards are about the same."""
        if keys not in self._alike:
            alike = {e.entry_id: e for key in keys for e in self.entries_by_vendor.get(key, ())}
            self._alike[keys] = sorted(alike.values(), key=lambda e: (e.date, e.month, e.number), reverse=True)
        return self._alike[keys]

    @cached_property
    def _booked_lines(self) -> list[BookedLine]:
        return list(read_booked_lines(self.entries.values(), set(self.banks.values())))

    @cached_property
    def categoriser(self) -> Categoriser:
        """What persons' decisions teach; learned when the first card is shown."""
        return Categoriser.learn(self._booked_lines, self.refused_transfers)

    def suggestion_of(self, card: Card) -> Suggestion | None:
        """The account that earlier decisions suggest for a card that waits, if it can take one."""
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
        return DecidedHistory(self._booked_lines)

    def learned_row_of(self, card: Card) -> LearnedRow | None:
        """The row of a vendor table that would book a card that waits, and all like it, as persons decided."""
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
    text = normalise_description(description)
    return " ".join(_WORD.findall(text)[:3]) or text


def read_book_facts(host: Host, snapshot: Snapshot, every_card: KnownCards) -> BookFacts:
    """What the books of a commit say of its cards. ``every_card``: settled ones, too."""
    books, bank = open_books(host.layout, CommittedSource(snapshot))
    cards = every_card.list_open()
    wanted = {str(c.details["line"]) for c in cards if c.kind == LINE.name and "line" in c.details}
    entries = read_all_entries(host.layout, snapshot, host.decimal_places)
    wanted |= {e.reference for c in cards if (e := entries.get(c.record_id or "")) and e.reference}
    lines = {
        line.line_id: (account, line)
        for account in bank.list_accounts()
        for line in bank.iter_account_lines(account)
        if line.line_id in wanted
    }
    return BookFacts(
        entries,
        books.chart,
        dict(ledger_accounts(host.config)),
        lines,
        {ref: bank.posted_amount(ref) for ref in wanted},
        # Of a file that came again the first time counts; of an undone one, what stands.
        {r.file_sha256: r for r in reversed([*bank.imports, *bank.all_imports])},
        refused_transfers(every_card.list_kind(TRANSFER.name)),
        partial(list_decided_records, host, snapshot),
    )
