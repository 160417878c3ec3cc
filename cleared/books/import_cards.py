"""Cards that ask about imports, and whether what one asks about is gone: an import was taken back, by a decision or by
git, which leaves the lines of the queue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.base.file_source import FileSource
from cleared.books.card_kinds import BALANCE_GAP, LINE, NEAR_MATCH, REVISION
from cleared.books.importing.file_cards import AS_OTHER_FORMAT, NEAR
from cleared.books.ledger.import_records import ImportRecord
from cleared.books.ledger.staged_bank_lines import RELEASED, BankBook
from cleared.books.staged_books import ledger_accounts
from cleared.cards.card import Card, card_id
from cleared.cards.card_draft import VOID
from cleared.cards.kinds import DUPLICATE_FILE
from cleared.cards.known_cards import KnownCards
from cleared.primitives.context import Context
from cleared.workspace.location import Layout
from cleared.workspace.settings.bank_section import BankAccount

VOID_ANSWERS: Final = {BALANCE_GAP.name: "seen", NEAR_MATCH.name: "seen", REVISION.name: "both"}
"""By the kinds of these cards: an answer that settles one that asks about nothing, and does no more."""
WHY: Final = {
    REVISION.name: "Both amounts of a row are booked until its card is answered",
    DUPLICATE_FILE.name: "Rows were left out that may be others than those that came before",
    NEAR_MATCH.name: "Two rows that look alike are both booked",
    BALANCE_GAP.name: "By the bank's own running balance rows never came",
}
"""By kinds of cards about imports: why the books do not hold what the bank says."""


def settle_gone_imports(context: Context, bank: BankBook, accounts: Iterable[BankAccount]) -> None:
    """Settle the open cards that ask about what is gone."""
    for card in context.cards.open_cards(*VOID_ANSWERS):
        if card.id not in context.cards.added and is_import_gone(card, bank, accounts):
            context.cards.resolve_card(card.id, format_iso(context.now), context.agent, VOID)


def is_import_gone(card: Card, bank: BankBook, accounts: Iterable[BankAccount]) -> bool:
    """Whether what a card asks about an import is gone; of a gap, where one of the balances that it lies between is.
    ``accounts``: as they are set up. Where the same file came again, its card is about that."""
    if card.kind == REVISION.name:
        return any(_is_line_gone(str(card.details.get(name)), bank) for name in ("earlier", "line"))
    name = str(card.details.get("account"))
    records = [each for each in bank.imports if each.account == name]
    if card.kind == NEAR_MATCH.name:
        return not any(each.run == card.run_id or card.id in _list_ids(card.kind, each, NEAR) for each in records)
    gaps = _list_items(card, "gaps")
    if card.kind != BALANCE_GAP.name or not gaps:
        return False
    openings = {each.opening.date.isoformat() for each in accounts if each.id == name and each.opening is not None}
    return not any(_lies_between(gap, records, openings) for gap in gaps)


def list_explanations(
    layout: Layout, source: FileSource, bank: BankBook, account: int, since: date | None, day: date
) -> list[str]:
    """Why an account may not hold what the bank says on a day, each with the open card that asks; none where the queue
    cannot be read, which is told of elsewhere. ``since``: the day on which they agreed last."""
    try:
        known = KnownCards(source, layout.queue_dir)
        cards = list_account_cards(known, bank, ledger_accounts(layout.config), account, since, day)
    except WorkspaceError:
        return []
    return [f"{WHY[card.kind]}: cleared queue show {card.id}" for card in cards if card.kind in WHY]


def list_account_cards(
    known: KnownCards, bank: BankBook, accounts: Mapping[str, int], account: int, since: date | None, day: date
) -> list[Card]:
    """The open cards about rows of an account up to a day that the books do not hold as the bank does: which of two
    amounts counts, both of which are in the books until then; what is to become of a row that waits; and from
    the day on which they agreed last, what was left out, may be booked twice, or never came. ``accounts``: of the
    ledger, by the names of the bank accounts."""
    cards = [*known.list_open(REVISION.name), *known.list_open(LINE.name)]
    lines = [bank.find_line(str(card.details.get("line", ""))) for card in cards]
    of_rows = [
        card
        for card, line in zip(cards, lines, strict=True)
        if line is not None and accounts.get(line[0]) == account and line[1].posted_date <= day
    ]
    first, last = since.isoformat() if since else "", day.isoformat()
    of_files = [
        card
        for kind in (DUPLICATE_FILE, NEAR_MATCH, BALANCE_GAP)
        for card in known.list_open(kind.name)
        if accounts.get(str(card.details.get("account"))) == account
        and any(first <= latest and earliest <= last for earliest, latest in list_doubtful_days(card))
    ]
    return [*of_rows, *of_files]


def list_doubtful_days(card: Card) -> list[tuple[str, str]]:
    """First and last day on which what a card about a bank file doubts may show in the balance: rows that never came,
    that look like others, or that were left out though they carry another balance."""
    if card.kind == BALANCE_GAP.name:
        return [(str(gap.get("before")), str(gap.get("before"))) for gap in _list_items(card, "gaps")]
    if card.kind == NEAR_MATCH.name:
        pairs = [(str(row.get("date")), str(row.get("earlier_date"))) for row in _list_items(card, "rows")]
        return [(min(pair), max(pair)) for pair in pairs]
    if card.kind == DUPLICATE_FILE.name:
        doubtful = [row for row in _list_items(card, "rows") if row.get("note") not in (None, "", AS_OTHER_FORMAT)]
        return [(str(row.get("date")), str(row.get("date"))) for row in doubtful]
    return []


def _list_items(card: Card, name: str) -> list[Mapping[str, Any]]:
    """Of a list in a card, which somebody may have pushed, what has the form that the host writes."""
    items = card.details.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_line_gone(line_id: str, bank: BankBook) -> bool:
    staged = bank.new_outcomes.get(line_id)
    is_released = line_id in bank.released_line_ids or (staged is not None and staged.outcome == RELEASED)
    return is_released or bank.find_line(line_id) is None


def _list_ids(kind: str, record: ImportRecord, about: str) -> Iterator[str]:
    """Those that the card about a file has."""
    yield card_id(kind, record.file_sha256, about)
    yield card_id(kind, record.file_sha256, about, record.account)


def _lies_between(gap: Mapping[str, Any], records: Collection[ImportRecord], openings: Collection[str]) -> bool:
    """Whether a gap lies within a file whose import stands, or between two such, or what the account began with."""
    after, before = str(gap.get("after")), str(gap.get("before"))
    if any(each.first_date <= after and before <= each.last_date for each in records):
        return True
    begins = after in openings or any(each.last_date == after for each in records)
    return begins and any(each.first_date == before for each in records)
