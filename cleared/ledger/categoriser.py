"""Where a bank line probably goes, learned from what persons decided in these books; without a model.

The same cleaned text comes first. Its account is that of the newest decision, so that what was corrected once is not
suggested again; how sure it is follows from how many decisions agree, as (agreeing + ½) / (decisions + 1). Else the
five nearest payees by their words (Jaccard, rare words count more), never as sure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from typing import Final, NamedTuple

from cleared.deadline import check_deadline
from cleared.ledger.bank_lines import normalise_description
from cleared.ledger.corrections import CORRECTS
from cleared.ledger.entry import Entry, Leg

_DECIDED: Final = frozenset({"user-confirmed", "user-corrected"})
_REMEMBERED: Final = 40
"""Decisions about one payee that count: the newest."""
_NEIGHBOURS: Final = 5
_NEAR: Final = 0.4
"""How alike a payee must be to be a neighbour."""
_MOST_SURE_OF_NEAR: Final = 0.9
_MAX_PAYEES_OF_WORD: Final = 400
"""A word of more payees than this says nothing about who it is."""
_EVIDENCE: Final = 5
_OUT, _IN = "out", "in"


class Example(NamedTuple):
    """What a person decided of one bank line."""

    entry_id: str
    day: date
    payee: str
    """Its cleaned text."""
    direction: str
    account: int
    counterparty: str
    reference: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An account for a line. ``confidence``: of 100 suggestions of this confidence at least so many are right."""

    account: int
    counterparty: str
    confidence: Decimal
    evidence: str
    entries: tuple[str, ...]
    """Decided entries that it rests on, newest first."""


def clean_payee(description: str) -> str:
    """What equal payees have in common: the words of the text, without numbers and marks."""
    words = []
    for word in normalise_description(description).replace("*", " ").replace("#", " ").split():
        plain = word.strip(".,;:-/()'\"")
        if plain and not any(c.isdigit() for c in plain):
            words.append(plain)
    return " ".join(words) or normalise_description(description)


def learn_examples(entries: Iterable[Entry], bank_accounts: Iterable[int]) -> Iterator[Example]:
    """The decisions of persons among the entries of a journal, oldest first: one account besides the bank's."""
    banks = set(bank_accounts)
    corrections: dict[str, list[Leg]] = defaultdict(list)
    decided: list[Entry] = []
    standing: set[str] = set()
    for entry in check_deadline(entries):
        if entry.status == "voided":
            continue
        standing.add(entry.entry_id)
        if entry.status in _DECIDED:
            decided.append(entry)
    for entry in decided:
        for original in _corrected_ids(entry):
            if original in standing:
                corrections[original] += entry.legs
    for entry in decided:
        if any(original in standing for original in _corrected_ids(entry)):
            continue
        totals: dict[int, Decimal] = {}
        for leg in (*entry.legs, *corrections.get(entry.entry_id, ())):
            totals[leg.account_id] = totals.get(leg.account_id, Decimal(0)) + leg.amount
        others = [account for account, amount in totals.items() if amount and account not in banks]
        moved = sum((amount for account, amount in totals.items() if account in banks), Decimal(0))
        if len(others) == 1 and moved:
            payee = clean_payee(entry.description)
            direction = _IN if moved > 0 else _OUT
            yield Example(
                entry.entry_id, entry.date, payee, direction, others[0], entry.counterparty, entry.reference
            )  # fmt: skip


def _corrected_ids(entry: Entry) -> list[str]:
    if CORRECTS not in entry.tags:
        return []
    return [tag.removeprefix(CORRECTS) for tag in entry.tags.split(";") if tag.startswith(CORRECTS)]


@dataclass(slots=True)
class Categoriser:
    """What was learned; rebuilt from the books, kept nowhere."""

    _by_payee: dict[tuple[str, str], list[Example]] = field(default_factory=lambda: defaultdict(list))
    _payees_of_word: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    _words_of: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def learn(cls, entries: Iterable[Entry], bank_accounts: Iterable[int]) -> Categoriser:
        """From all entries of the books."""
        made = cls()
        for example in learn_examples(entries, bank_accounts):
            made.add_example(example)
        return made

    def add_example(self, example: Example) -> None:
        """Learn one decision more, newer than all before."""
        self._by_payee[(example.payee, example.direction)].append(example)
        if example.payee not in self._words_of:
            words = frozenset(example.payee.split())
            self._words_of[example.payee] = words
            for word in words:
                self._payees_of_word[word].add(example.payee)

    def suggest(self, description: str, amount: Decimal, reference: str = "") -> Suggestion | None:
        """The account of a line, with its evidence; None where nothing like it was decided.

        ``amount``: negative is money out. ``reference``: a bank line that does not count as an example of itself.
        """
        if not amount:
            return None
        payee, direction = clean_payee(description), _OUT if amount < 0 else _IN
        examples = self._examples(payee, direction, reference)
        if examples:
            return _suggest_same(examples, payee)
        if direction == _IN:
            spent = self._examples(payee, _OUT, reference)
            if spent:  # a refund goes back to where the purchase went
                found = _suggest_same(spent, payee)
                sure = min(found.confidence, Decimal(str(_MOST_SURE_OF_NEAR)))
                return Suggestion(
                    found.account, found.counterparty, sure, f"a refund: {found.evidence}", found.entries
                )  # fmt: skip
        return self._suggest_near(payee, direction, reference)

    def _examples(self, payee: str, direction: str, reference: str) -> list[Example]:
        examples = self._by_payee.get((payee, direction), [])
        return [e for e in examples[-_REMEMBERED:] if not reference or e.reference != reference]

    def _suggest_near(self, payee: str, direction: str, reference: str) -> Suggestion | None:
        words = frozenset(payee.split())
        candidates: set[str] = set()
        for word in words:
            payees = self._payees_of_word.get(word, set())
            if len(payees) <= _MAX_PAYEES_OF_WORD:
                candidates |= payees
        scored = sorted(((self._likeness(words, other), other) for other in candidates), reverse=True)
        votes: dict[int, float] = defaultdict(float)
        near: list[tuple[float, Example]] = []
        for likeness, other in scored:
            if likeness < _NEAR or len(near) >= _NEIGHBOURS:
                break
            examples = self._examples(other, direction, reference)
            if examples:
                near.append((likeness, examples[-1]))
                votes[examples[-1].account] += likeness
        if not near:
            return None
        account = max(votes, key=lambda each: (votes[each], each))
        mine = [(likeness, example) for likeness, example in near if example.account == account]
        sure = min(_MOST_SURE_OF_NEAR, (len(mine) + 0.5) / (len(near) + 1) * mine[0][0])
        nearest = mine[0][1]
        evidence = f"{len(mine)} of {len(near)} like it went to {account}, such as {nearest.payee} on {nearest.day}"
        return Suggestion(
            account, nearest.counterparty if mine[0][0] > _MOST_SURE_OF_NEAR else "", _round_down(sure), evidence,
            tuple(example.entry_id for _, example in mine[:_EVIDENCE]),
        )  # fmt: skip

    def _likeness(self, words: frozenset[str], payee: str) -> float:
        """Shared words over all words; a word that few payees have counts more."""
        others = self._words_of[payee]
        shared, every = self._weigh(words & others), self._weigh(words | others)
        return shared / every if every else 0.0

    def _weigh(self, words: frozenset[str]) -> float:
        total = len(self._words_of) + 1
        return sum(math.log(1 + total / (1 + len(self._payees_of_word.get(word, ())))) for word in words)


def _suggest_same(examples: list[Example], payee: str) -> Suggestion:
    newest = examples[-1]
    mine = [e for e in examples if e.account == newest.account]
    sure = (len(mine) + 0.5) / (len(examples) + 1)
    evidence = f"{len(mine)} of {len(examples)} {payee} went to {newest.account}, last {newest.day}"
    names: Mapping[str, None] = {e.counterparty: None for e in reversed(mine) if e.counterparty}
    return Suggestion(
        newest.account, next(iter(names), ""), _round_down(sure), evidence,
        tuple(e.entry_id for e in reversed(mine[-_EVIDENCE:])),
    )  # fmt: skip


def _round_down(sure: float) -> Decimal:
    return Decimal(str(sure)).quantize(Decimal("0.01"), ROUND_FLOOR)
