"""What a decision does to the books, as effects that two people agree to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.base.effects import Effect
from cleared.books.ledger.bank_lines import LINE_ID_PREFIX, parse_outcomes
from cleared.books.ledger.chains import list_links
from cleared.books.ledger.entry import AMENDABLE, HUMAN_STATUSES, Entry, parse_entry_id
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.trust.reviewers import effect_mark

Change = tuple[Entry | None, Entry]
"""An entry before (None: it is new) and after."""

_SETTLED: Final = ("auto-confirmed", "voided")
"""The statuses that no run may give where it takes two reviewers."""


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


def effects_between(
    before: Books, after: Books, bank: BankBook, months: Iterable[tuple[int, int]], outcomes: Sequence[str]
) -> list[Effect]:
    """What was done from one state of the books to another. ``bank`` is of the later one; ``months``: of journals that
    changed; ``outcomes``: the files of what became of lines that did, oldest first."""
    changes: list[Change] = []
    for key in months:
        earlier = before.committed_month(*key).entries
        changes += [(earlier.get(n), e) for n, e in after.committed_month(*key).entries.items() if earlier.get(n) != e]
    outcomes = list(dict.fromkeys((after.paths.outcomes, *outcomes))) if outcomes else []  # that of all lines says, too
    was = _ignored_lines(before, outcomes)
    return [
        *_entry_effects(changes, after, bank),
        *_ignored_line_effects([i for i in _ignored_lines(after, outcomes) if i not in was], bank),
    ]


def _entry_effects(changes: Iterable[Change], books: Books, bank: BankBook) -> list[Effect]:
    effects = []
    for old, new in changes:
        legs = [[leg.account_id, money.format_amount(leg.amount.normalize())] for leg in new.legs]
        amended: list[list[str]] = []
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
            Effect(
                name,
                entry_weight(new, books, bank),
                record=new.entry_id,
                outcome=(new.entry_id, new),
                is_decided=bool(amended) or new.status in HUMAN_STATUSES,
                is_settled=new.status in _SETTLED,
            )
        )
    return effects


def _ignored_line_effects(ignored: Iterable[str], bank: BankBook) -> list[Effect]:
    effects = []
    for line_id in ignored:
        line = bank.find_line(line_id)
        weight = abs(line[1].amount) if line is not None else None
        effects.append(Effect(effect_mark("ignored", line_id), weight, plural="bank lines"))
    return effects


def _ignored_lines(books: Books, files: Iterable[str]) -> set[str]:
    outcomes = {i: each for file in files for i, each in parse_outcomes(books.source.read(file), file).items()}
    return {line_id for line_id, each in outcomes.items() if each.outcome == "ignored"}


def _committed_entry(books: Books, entry_id: str) -> Entry | None:
    parts = parse_entry_id(entry_id)
    return books.committed_month(parts[0], parts[1]).entries.get(parts[2]) if parts else None


def _is_staged(books: Books, entry: Entry) -> bool:
    return entry.number > books.committed_month(*entry.month).last_number
