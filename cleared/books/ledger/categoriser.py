"""Where a bank line probably goes, learned from what persons decided in these books; without a model.

The same cleaned text comes first. Its account is that of most decisions, where each counts less than the one after it:
one exception changes nothing, two equal decisions in a row do. How sure it is follows from how many decisions agree, as
(agreeing + ½) / (decisions + 1). A split, as of a loan's payment, is an example for the same amount only. Then what
amount and days explain: the other side of a transfer, a refund, the same charge every month. Else the five nearest
payees by their words (Jaccard, rare words count more). These are never as sure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import ROUND_FLOOR, Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.books.ledger.all_booked_lines import AllBookedLines, Direction, GroupKey
from cleared.books.ledger.amount_matches import AmountMatches
from cleared.books.ledger.booked_lines import BookedLine, OpenLine, clean_payee
from cleared.books.ledger.transfers import CLEARING_ACCOUNT

_REMEMBERED: Final = 40
"""Decisions about one payee that count: the newest."""
_RECENCY: Final = 0.7
"""What a decision counts, of the one after it: two equal ones outweigh all that came before."""
_NEIGHBOURS: Final = 5
_NEAR: Final = 0.4
"""How alike a payee must be to be a neighbour."""
_MOST_SURE_OF_NEAR: Final = 0.9
_MOST_SURE: Final = Decimal("0.90")
"""Of what rests on amounts and days, or is split: a person looks at it."""
_MAX_PAYEES_OF_WORD: Final = 400
"""A word of more payees than this says nothing about who it is."""
_EVIDENCE: Final = 5
_OTHERS: Final = 3
"""Other accounts that the evidence names."""


class Suggestion(Struct, frozen=True):
    """An account for a line. ``confidence``: of 100 suggestions of this confidence at least so many are right."""

    account: int
    counterparty: str
    confidence: Decimal
    evidence: str
    entries: tuple[str, ...]
    """Entries that it rests on, newest first."""
    parts: tuple[tuple[int, Decimal], ...] = ()
    """Of a split: its accounts and amounts, positive is a debit; ``account`` is the largest. Empty for one account."""


class _Payees:
    """How alike payees are, by the words of those that persons decided about."""

    def __init__(self, lines: AllBookedLines) -> None:
        self._lines = lines
        self._weights: dict[str, float] = {}

    def compare(self, payee: str, other: str) -> float:
        """Shared words over all words; a word that few payees have counts more."""
        words, others = frozenset(payee.split()), frozenset(other.split())
        shared, every = self._weigh(words & others), self._weigh(words | others)
        return shared / every if every else 0.0

    def _weigh(self, words: frozenset[str]) -> float:
        return sum(map(self._weigh_word, words))

    def _weigh_word(self, word: str) -> float:
        if word not in self._weights:
            total, having = len(self._lines.decided_payees) + 1, len(self._lines.find_decided_payees(word))
            self._weights[word] = math.log(1 + total / (1 + having))
        return self._weights[word]


class Categoriser:
    """What the lines of the books teach; kept nowhere.

    ``refused``: the texts of what left and what arrived, which persons said was no transfer.
    """

    def __init__(self, lines: AllBookedLines, refused: Iterable[tuple[str, str]] = ()) -> None:
        self._lines = lines
        no_transfers = {(clean_payee(out), clean_payee(into)) for out, into in refused}
        self._payees = _Payees(lines)
        self._matches = AmountMatches(lines, self._payees.compare, no_transfers)

    def suggest(
        self,
        description: str,
        amount: Decimal,
        reference: str = "",
        *,
        day: date | None = None,
        bank: int = 0,
        entry_id: str = "",
    ) -> Suggestion | None:
        """The account of a line, with its evidence; None where nothing like it was decided.

        ``amount``: negative is money out. ``reference``, ``entry_id``: a bank line and an entry that do not count as
        examples of themselves. ``day`` and ``bank`` (its account in the books): without them, amounts explain nothing.
        """
        if not amount:
            return None
        payee = clean_payee(description)
        direction: Direction = "out" if amount < 0 else "in"
        examples = self._examples(payee, direction, reference, amount)
        if examples:
            return _suggest_same(examples, payee)
        if day is not None:
            line = OpenLine(description, amount, day, bank, reference, entry_id)
            if (found := self._suggest_by_amount(line)) is not None:
                return found
        if direction == "in":
            spent = self._examples(payee, "out", reference, Decimal(0))
            if spent:  # a refund goes back to where the purchase went
                found = _suggest_same(spent, payee)
                return replace(
                    found, confidence=min(found.confidence, _MOST_SURE), evidence=f"a refund: {found.evidence}"
                )
        return self._suggest_near(payee, direction, reference)

    def _suggest_by_amount(self, line: OpenLine) -> Suggestion | None:
        """What amount and days explain."""
        if (other := self._matches.find_other_side(line)) is not None:
            way = "left" if other.amount < 0 else "reached"
            evidence = f"a transfer: {abs(other.amount)} {way} {other.bank} on {other.day} ({_short(other.text)})"
            return Suggestion(CLEARING_ACCOUNT, "", _MOST_SURE, evidence, (other.entry_id,))
        if (bought := self._matches.find_purchase(line)) is not None:
            evidence = f"a refund of {-bought.amount} on {bought.day} ({_short(bought.text)}), {_where(bought)}"
            parts = tuple((account, -amount) for account, amount in _list_parts(bought))
            return Suggestion(bought.account, bought.counterparty, _MOST_SURE, evidence, (bought.entry_id,), parts)
        if months := self._matches.find_months_before(line):
            last = months[0]
            sure = min(_MOST_SURE, _round_down((len(months) + 0.5) / (len(months) + 1)))
            evidence = f"every month: {abs(last.amount)} on {last.day} ({_short(last.text)}), {_where(last)}"
            return Suggestion(
                last.account,
                last.counterparty,
                sure,
                evidence,
                tuple(each.entry_id for each in months[:_EVIDENCE]),
                _list_parts(last),
            )
        return None

    def _examples(self, payee: str, direction: Direction, reference: str, amount: Decimal) -> list[BookedLine]:
        """The newest decisions about a payee; those that split another amount say nothing."""
        return [
            line
            for line in self._lines.list_decided(GroupKey(payee, direction), _REMEMBERED)[-_REMEMBERED:]
            if (not reference or line.reference != reference) and (len(line.lines) == 1 or line.amount == amount)
        ]

    def _suggest_near(self, payee: str, direction: Direction, reference: str) -> Suggestion | None:
        words = frozenset(payee.split())
        candidates: set[str] = set()
        for word in words:
            payees = self._lines.find_decided_payees(word)
            if len(payees) <= _MAX_PAYEES_OF_WORD:
                candidates |= payees
        scored = sorted(((self._payees.compare(payee, other), other) for other in candidates), reverse=True)
        votes: dict[int, float] = defaultdict(float)
        near: list[tuple[float, str, BookedLine]] = []
        for likeness, other in scored:
            if likeness < _NEAR or len(near) >= _NEIGHBOURS:
                break
            examples = self._examples(other, direction, reference, Decimal(0))
            if examples:
                near.append((likeness, other, examples[-1]))
                votes[examples[-1].account] += likeness
        if not near:
            return None
        account = max(votes, key=lambda each: (votes[each], each))
        mine = [each for each in near if each[2].account == account]
        sure = min(_MOST_SURE_OF_NEAR, (len(mine) + 0.5) / (len(near) + 1) * mine[0][0])
        _, name, nearest = mine[0]
        evidence = f"{len(mine)} of {len(near)} like it went to {account}, such as {name} on {nearest.day}"
        return Suggestion(
            account,
            nearest.counterparty if mine[0][0] > _MOST_SURE_OF_NEAR else "",
            _round_down(sure),
            evidence,
            tuple(line.entry_id for _, _, line in mine[:_EVIDENCE]),
        )


def _suggest_same(examples: list[BookedLine], payee: str) -> Suggestion:
    newest = _choose_by_recency(examples)
    mine = [e for e in examples if _goes_to(e) == _goes_to(newest)]
    sure = _round_down((len(mine) + 0.5) / (len(examples) + 1))
    evidence = f"{len(mine)} of {len(examples)} {payee} went to {newest.account}, last {newest.day}"
    others = dict.fromkeys(e.account for e in reversed(examples) if _goes_to(e) != _goes_to(newest))
    parts = _list_parts(newest)
    if others and not parts:
        evidence += f"; others to {', '.join(map(str, list(others)[:_OTHERS]))}"
    if parts:
        sure = min(sure, _MOST_SURE)
        evidence = f"{len(mine)} of {len(examples)} {payee} of this amount were split so, last {newest.day}"
    names: Mapping[str, None] = {e.counterparty: None for e in reversed(mine) if e.counterparty}
    return Suggestion(
        newest.account,
        next(iter(names), ""),
        sure,
        evidence,
        tuple(e.entry_id for e in reversed(mine[-_EVIDENCE:])),
        parts,
    )


def _choose_by_recency(examples: list[BookedLine]) -> BookedLine:
    """The newest decision of those that weigh most together."""
    weights: dict[object, float] = defaultdict(float)
    for age, example in enumerate(reversed(examples)):
        weights[_goes_to(example)] += _RECENCY**age
    newest = {_goes_to(example): example for example in examples}
    return newest[max(newest, key=lambda where: (weights[where], newest[where].day))]


def _goes_to(line: BookedLine) -> tuple[int, frozenset[int]]:
    return line.account, frozenset(account for account, _ in _list_parts(line))


def _list_parts(line: BookedLine) -> tuple[tuple[int, Decimal], ...]:
    """Of a split: its accounts and amounts."""
    return line.lines if len(line.lines) > 1 else ()


def _where(line: BookedLine) -> str:
    return "split so" if len(line.lines) > 1 else f"which went to {line.account}"


def _short(text: str) -> str:
    return " ".join(text.split())[:60]


def _round_down(sure: float) -> Decimal:
    return Decimal(str(sure)).quantize(Decimal("0.01"), ROUND_FLOOR)
