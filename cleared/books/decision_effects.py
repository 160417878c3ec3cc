"""What a decision does to the books, in a form that shows whether two people agreed to the same.

Ids of new entries, who decided and the words of a reason are left out: they differ though the same is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from cleared.base import money
from cleared.books.ledger.bank_lines import LINE_ID_PREFIX, parse_outcomes
from cleared.books.ledger.chains import list_links
from cleared.books.ledger.entry import AMENDABLE, HUMAN_STATUSES, Entry, parse_entry_id
from cleared.trust.reviewers import effect_mark

if TYPE_CHECKING:
    from cleared.books.ledger.staged_bank_lines import BankBook
    from cleared.books.ledger.staged_journal import Books

Change = tuple[Entry | None, Entry]
"""An entry before (None: it is new) and after."""


@dataclass(frozen=True, slots=True)
class Effect:
    """``weight``: the amount that it is about; None: more than any."""

    mark: str
    weight: Decimal | None
    entry: Entry | None = None
    """As it is afterwards."""
    is_new: bool = False
    is_amended: bool = False
    """Whether its payee, tags or notes are others."""

    @property
    def is_decided(self) -> bool:
        """Whether it is what only a person does: an amendment, or a status that says so."""
        return self.is_amended or (self.entry is not None and self.entry.status in HUMAN_STATUSES)


def entry_weight(entry: Entry, books: Books, bank: BankBook) -> Decimal:
    """The amount an entry is about: the largest of its own, its bank line's, and those of entries it corrects."""
    amounts, waiting, seen = [entry.amount], [entry], {entry.entry_id}
    while waiting:
        each = waiting.pop()
        if each.reference.startswith(LINE_ID_PREFIX) and (bank_line := bank.find_line(each.reference)) is not None:
            amounts.append(abs(bank_line[1].amount))
        for _, target in list_links(each.tags):
            other = books.find_entry(target) if target not in seen else None
            if other is not None:
                seen.add(target)
                amounts.append(other.amount)
                waiting.append(other)
    return max(amounts)


def effects_of_draft(books: Books, bank: BankBook) -> list[Effect]:
    """What a draft would do."""
    changes: list[Change] = [
        (None, e) for key in books.staged for e in books.iter_entries(*key) if _is_staged(books, e)
    ]
    for entry_id in dict.fromkeys((*books.statuses, *books.amendments)):
        old, new = _committed_entry(books, entry_id), books.find_entry(entry_id)
        if old is not None and new is not None and old != new:
            changes.append((old, new))
    ignored = [i for i, o in bank.new_outcomes.items() if o.outcome == "ignored"]
    return [*_entry_effects(changes, books, bank), *_ignored_line_effects(ignored, bank)]


def effects_between(before: Books, after: Books, bank: BankBook, months: Iterable[tuple[int, int]]) -> list[Effect]:
    """What was done from one state of the books to another. ``bank`` is of the later one."""
    changes: list[Change] = []
    for key in months:
        earlier = before.committed_month(*key).entries
        changes += [(earlier.get(n), e) for n, e in after.committed_month(*key).entries.items() if earlier.get(n) != e]
    was = _ignored_lines(before)
    return [
        *_entry_effects(changes, after, bank),
        *_ignored_line_effects([i for i in _ignored_lines(after) if i not in was], bank),
    ]


def rule_change_effect(reviewers: Mapping[str, str], two_person: Decimal | None, previous: str) -> Effect:
    """Other rules of who may decide. ``previous``: the record they replace."""
    amount = "" if two_person is None else money.format_amount(two_person.normalize())
    return Effect(effect_mark("rules", sorted(reviewers.items()), amount, previous), None)


def _entry_effects(changes: Iterable[Change], books: Books, bank: BankBook) -> list[Effect]:
    effects = []
    for old, new in changes:
        legs = [[leg.account_id, money.format_amount(leg.amount.normalize())] for leg in new.legs]
        if old is not None:
            amended = [[c, getattr(new, c)] for c in AMENDABLE if getattr(old, c) != getattr(new, c)]
            name = effect_mark("status", new.entry_id, old.status, new.status, new.date.isoformat(), legs, *amended)
        else:
            name = effect_mark(
                "entry",
                new.date.isoformat(),
                new.description,
                legs,
                new.status,
                new.counterparty,
                new.reference,
                new.tags,
                new.notes,
            )
        effects.append(
            Effect(name, entry_weight(new, books, bank), new, old is None, old is not None and bool(amended))
        )
    return effects


def _ignored_line_effects(ignored: Iterable[str], bank: BankBook) -> list[Effect]:
    effects = []
    for line_id in ignored:
        line = bank.find_line(line_id)
        effects.append(Effect(effect_mark("ignored", line_id), abs(line[1].amount) if line is not None else None))
    return effects


def _ignored_lines(books: Books) -> set[str]:
    outcomes = parse_outcomes(books.source.read(books.paths.outcomes), books.paths.outcomes)
    return {line_id for line_id, (outcome, _) in outcomes.items() if outcome == "ignored"}


def _committed_entry(books: Books, entry_id: str) -> Entry | None:
    parts = parse_entry_id(entry_id)
    return books.committed_month(parts[0], parts[1]).entries.get(parts[2]) if parts else None


def _is_staged(books: Books, entry: Entry) -> bool:
    return entry.number > books.committed_month(*entry.month).last_number
