"""Choosing the accounts of a correction: those that fit what was typed, and a split over several with amounts."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, InvalidOperation

from msgspec import Struct

from cleared.base import money
from cleared.base.bounds import MAX_DIGITS
from cleared.books.decisions.split_parts import MIXED_WORD, describe_odd_part
from cleared.books.ledger.chart import Account
from cleared.books.ledger.entry import ZERO
from cleared.books.review.book_cards import book_facts_of
from cleared.books.review.book_facts import BookFacts
from cleared.cards.card import Card
from cleared.review.queue_snapshot import QueueSnapshot


class AccountMatch(Struct, frozen=True):
    """An account that fits what was typed, and why it is likely."""

    id: int
    name: str
    type: str
    why: str


class SplitInput(Struct, frozen=True):
    """Several accounts with amounts, as typed so far."""

    lines: tuple[tuple[int, Decimal], ...]
    left: Decimal
    """What is not placed on an account yet."""
    problem: str
    """Why it cannot be taken; empty where it can."""
    mixed: bool = False
    """Whether parts of both signs are meant."""


def match_accounts(queue: QueueSnapshot, card_id: str, typed: str = "", limit: int = 50) -> list[AccountMatch]:
    """Accounts whose number begins with, or whose name holds, what was typed; the most likely first.

    Those used before for this vendor come first, then those used most; the account that it has now comes last. The
    bank's own accounts, closed ones and headings are left out.
    """
    card, books = queue.cards.get(card_id), book_facts_of(queue)
    vendor_uses = books.count_vendor_uses(card) if card is not None else Counter[int]()
    current, bank_accounts = _current_accounts(books, card) if card is not None else (set[int](), set[int]())
    needle = " ".join(typed.casefold().split())
    types = {account.account_type for n in current if (account := books.chart.find_account(n)) is not None}
    ranked = []
    for account in books.chart.accounts.values():
        number, rank = account.account_id, _match_rank(account, needle)
        is_open = account.status != "closed" and number not in books.chart.parents
        if rank is None or not is_open or number in bank_accounts:
            continue
        why = _match_reason(vendor_uses[number], number in current)
        ranked.append(
            (
                (
                    str(number) != needle,
                    number in current,
                    -vendor_uses[number],
                    -books.uses[number],
                    rank,
                    account.account_type not in types,
                    number,
                ),
                AccountMatch(number, account.account_name, account.account_type, why),
            )
        )
    return [match for _, match in sorted(ranked, key=lambda pair: pair[0])[:limit]]


def _current_accounts(books: BookFacts, card: Card) -> tuple[set[int], set[int]]:
    """The accounts that the card's entry has now: those that can change, and the bank's."""
    entry, line = books.entry_of(card), books.line_of(card)
    changeable = {leg.account_id for leg in books.changeable_legs(entry)} if entry is not None else set()
    fixed = {leg.account_id for leg in entry.legs} - changeable if entry is not None else set()
    if line is not None and line[0] in books.banks:
        fixed |= {books.banks[line[0]]}
    return changeable, fixed


def _match_reason(uses: int, is_current: bool) -> str:
    if is_current:
        return "as it is now"
    return f"used {uses}× for this vendor" if uses else ""


def _match_rank(account: Account, needle: str) -> int | None:
    """How well an account fits: 0 is best, None is not at all."""
    name = account.account_name.casefold()
    if not needle or str(account.account_id).startswith(needle) or name.startswith(needle):
        return 0
    if f" {needle}" in f" {name}":
        return 1
    return 2 if needle in name or needle in str(account.account_id) else None


def amount_to_split(queue: QueueSnapshot, card_id: str) -> Decimal:
    """What the legs of a split must add up to; positive is a debit."""
    card, books = queue.cards.get(card_id), book_facts_of(queue)
    entry = books.entry_of(card) if card is not None else None
    if entry is not None:
        return money.total([leg.amount for leg in books.changeable_legs(entry)])
    line = books.line_of(card) if card is not None else None
    return -(line[1].amount - books.posted_amount(line[1].line_id)) if line is not None else ZERO


def parse_split(queue: QueueSnapshot, card_id: str, typed: str, *, mixed: bool = False) -> SplitInput:
    """``5020=30 5060=15.10``; the last amount may be left out (``5060=``): it takes the rest. ``mixed``, or that word
    at the end: parts of both signs are meant. Raises nothing: what is wrong is the ``problem``."""
    whole, chart = amount_to_split(queue, card_id), book_facts_of(queue).chart
    lines: list[tuple[int, Decimal]] = []
    words, places = typed.replace(",", " ").replace(";", " ").split(), -int(whole.as_tuple().exponent)
    if words[-1:] == [MIXED_WORD]:
        mixed = bool(words.pop())
    for at, word in enumerate(words):
        number, _, amount = word.partition("=")
        rest = money.total([whole, *(-v for _, v in lines)])
        try:
            account = int(number)
            value = Decimal(amount) if amount else rest
        except (ValueError, InvalidOperation):
            return SplitInput(tuple(lines), rest, f"{word} is not ACCOUNT=AMOUNT")
        if chart.find_account(account) is None:
            return SplitInput(tuple(lines), rest, f"there is no account {account}")
        if not amount and at < len(words) - 1:
            return SplitInput(tuple(lines), rest, f"how much for {account}?")
        is_unclear = bool(amount) and money.read_typed(amount, places) is None
        if is_unclear or not value.is_finite() or not value or abs(value.adjusted()) >= MAX_DIGITS:
            problem = f"nothing is left for {account}" if not amount else f"{word}: no amount"
            return SplitInput(tuple(lines), rest, problem)
        lines.append((account, value))
    rest = money.total([whole, *(-v for _, v in lines)])
    problem = "" if mixed else describe_odd_part(whole, lines)
    if problem:
        problem += f" (meant? add the word {MIXED_WORD})"
    return SplitInput(
        tuple(lines), rest, problem or (f"{money.format_amount(rest)} is not placed yet" if rest else ""), mixed
    )
