"""The books in the review: entries, held bank lines, adjusting entries, transfers and receipts; and what the books know
of how an entry came about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from types import MappingProxyType
from typing import Any, ClassVar, Final, cast

from cleared.base import money
from cleared.base.clock import format_iso
from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count
from cleared.books.card_kinds import ADJUSTMENT, ENTRY, LINE, RECEIPT, REVISION, TRANSFER
from cleared.books.decision_effects import entry_weight
from cleared.books.decisions.adjusting_entries import read_adjustment
from cleared.books.decisions.entry_amending import describe_changes
from cleared.books.decisions.entry_correction import Correction, find_successor, non_bank_legs, read_correction
from cleared.books.decisions.transfer_pairing import pair_entries, settle_decided_transfers
from cleared.books.entry_cards import MARKS, find_asked, mark_postings
from cleared.books.import_cards import VOID_ANSWERS, is_import_gone
from cleared.books.index.journal_index import open_index
from cleared.books.ledger.bank_lines import LINE_ID_PREFIX, BankLine
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.chains import RESTORES, list_links
from cleared.books.ledger.corrections import find_corrections
from cleared.books.ledger.entry import ZERO, Entry, entry_to_json, format_entry_id, leg_suffix, parse_entry_id
from cleared.books.ledger.receipts import parse_receipts
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.line_cards import is_posted
from cleared.books.review.entry_staging import (
    confirm_target,
    correct_target,
    count_one_line,
    entry_of,
    reject_target,
)
from cleared.books.review.entry_undoing import (
    hold_line_again,
    list_restored,
    restore_entries,
    settle_posted_lines,
)
from cleared.books.staged_books import books_of, open_books
from cleared.cards.card import Card, card_id, list_texts
from cleared.cards.known_cards import KnownCards
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.domain import import_when_called
from cleared.git import Snapshot
from cleared.primitives.context import Context
from cleared.review.action_request import ActionRequest, ActionResult
from cleared.review.card_facts import CardFacts
from cleared.review.record_review import (
    DecisionCase,
    DecisionData,
    DecisionResult,
    FoundRecord,
    RecordOrigin,
    RecordPlace,
    RecordReview,
    RevertCase,
    Target,
    UndoCase,
)
from cleared.workspace.location import Layout

# Deciding about a card needs none of this, and all that it loads would take longer than the decision.
_open_cards: Final = import_when_called("cleared.books.review.book_cards:open_book_cards")
_teach_vendor: Final = import_when_called("cleared.books.review.vendor_lessons:teach_vendor")
_link_proposed: Final = import_when_called("cleared.books.decisions.receipt_filing:link_proposed")
_take_back_links: Final = import_when_called("cleared.books.decisions.receipt_filing:take_back_links")
_find_import_run: Final = import_when_called("cleared.books.decisions.run_reverting:find_import_run")
_stage_run_revert: Final = import_when_called("cleared.books.decisions.run_reverting:stage_run_revert")


@dataclass(frozen=True)
class BookReview(RecordReview):
    """Entries are its records."""

    record_kind = ENTRY.name
    card_kinds: ClassVar = (ENTRY.name, LINE.name, ADJUSTMENT.name, REVISION.name, TRANSFER.name, RECEIPT.name)

    # -- deciding -------------------------------------------------------------------------------------------------

    def find_record(self, context: Context, name: str) -> FoundRecord | None:
        entry = books_of(context).books.find_entry(name)
        return FoundRecord(entry.entry_id, entry) if entry is not None else None

    def is_void(self, context: Context, card: Card) -> bool:
        if card.kind == LINE.name:
            return is_posted(books_of(context).bank, str(card.details.get("line", "")))
        if card.kind in VOID_ANSWERS:
            return is_import_gone(card, books_of(context).bank, books_of(context).layout.config.bank_accounts)
        return find_asked(card, books_of(context).books.find_entry) is None

    def weigh_decision(self, context: Context, target: Target, request: DecisionData) -> Decimal | None:
        books, bank = books_of(context).books, books_of(context).bank
        lines = read_correction(request).lines if request["verb"] == "correct" else ()
        written = [abs(amount) for _, amount in lines if amount.is_finite()]  # others are refused when they are staged
        entry, card = entry_of(target), target.card
        if entry is not None:
            corrected = entry.status == "user-corrected"
            entries = [entry, *(find_corrections(books, entry) if corrected else ())]
            return money.total([*(entry_weight(each, books, bank) for each in entries), *written])
        if card is not None and card.kind == ADJUSTMENT.name:
            posts = request["verb"] == "confirm"
            return read_adjustment(card, books.bounds.places).amount if posts else ZERO
        ids = [str(card.details.get(each, "")) for each in ("earlier", "line")] if card is not None else []
        found = [bank.find_line(each) for each in ids]
        return money.total([*(abs(line[1].amount) for line in found if line is not None), *written])

    def stage_confirmation(self, case: DecisionCase) -> str:
        return confirm_target(case)

    def stage_correction(self, case: DecisionCase) -> str:
        return correct_target(case)

    def stage_rejection(self, case: DecisionCase) -> str:
        return reject_target(case)

    def stage_answer(self, case: DecisionCase) -> None:
        card, choice, result = case.target.card, str(case.request["choice"]), case.result
        if card is None:
            return
        if card.kind == LINE.name:
            reason = f"{choice}, by {case.by}"
            books_of(case.context).bank.set_line_aside(str(card.details["line"]), "ignored", reason)
        if card.kind == REVISION.name and choice in ("replace", "keep"):
            count_one_line(case, keeps_earlier=choice == "keep")
        if card.kind == TRANSFER.name and choice == "pair":
            pair_entries(case.decision_context, list_texts(card.details, "entries"), result)
        if card.kind == RECEIPT.name and choice == "link":
            result.files |= _link_proposed(case.decision_context, card, result.files)

    def settle_followers(self, decision_context: DecisionContext, result: DecisionResult) -> None:
        result.cards += settle_decided_transfers(decision_context, result.records)

    def make_card(self, context: Context, record: FoundRecord) -> Card:
        entry = cast(Entry, record.value)
        return Card(
            card_id(ENTRY.name, entry.entry_id, "again", context.run_id),
            ENTRY.name,
            f"{entry.date} {entry.amount} {entry.description[:120]}",
            format_iso(context.now),
            context.run_id,
            entry.entry_id,
            details={"description": entry.description, "amount": str(entry.amount), MARKS: mark_postings([entry])},
        )

    def list_similar_cards(self, context: Context, corrected: Sequence[Target]) -> list[str]:
        """Open cards of entries with the same text or counterparty, on the same accounts."""
        corrected_keys = {
            (key, tuple(x.account_id for x in non_bank_legs(context, entry.legs)))
            for target in corrected
            if (entry := entry_of(target)) is not None
            for key in (entry.counterparty, entry.description)
            if key
        }
        similar = []
        for card in context.cards.open_cards():
            is_of_entry = card.kind == ENTRY.name and card.record_id
            entry = books_of(context).books.find_entry(card.record_id or "") if is_of_entry else None
            if entry is not None and entry.entry_id not in {t.name for t in corrected}:
                legs = tuple(x.account_id for x in non_bank_legs(context, entry.legs))
                if any((key, legs) in corrected_keys for key in (entry.counterparty, entry.description) if key):
                    similar.append(card.id)
        return similar

    # -- showing --------------------------------------------------------------------------------------------------

    def open_facts(self, host: Host, snapshot: Snapshot, cards: KnownCards) -> CardFacts:
        return cast(CardFacts, _open_cards(host, snapshot, cards))

    def read_suggestion(self, value: str) -> Correction:
        return read_suggestion(value)

    def find_action(self, verb: str) -> Callable[[Host, ActionRequest], ActionResult] | None:
        if verb != "always":
            return None
        return _teach_vendor

    # -- taking back ----------------------------------------------------------------------------------------------

    def take_back(self, case: UndoCase) -> Mapping[str, bytes | None]:
        restore_entries(case)
        settle_posted_lines(case)
        links = _take_back_links(case.decision_context, case.before, case.after, list_restored(case.context))
        return cast(Mapping[str, bytes | None], links)

    def find_run(self, context: Context, name: str) -> str | None:
        return cast(str | None, _find_import_run(context, name))

    def stage_revert(self, case: RevertCase) -> None:
        _stage_run_revert(case)

    def list_restored(self, context: Context) -> Mapping[str, str]:
        return list_restored(context)

    def reopen_card(self, decision_context: DecisionContext, card: Card) -> str | None:
        return hold_line_again(decision_context, card)

    # -- explaining -----------------------------------------------------------------------------------------------

    maker_primitives: ClassVar = MappingProxyType(
        {"journal_add": False, "journal_add_double": False, "journal_add_many": True, "journal_void": False}
    )

    def locate_record(self, layout: Layout, record: FoundRecord) -> RecordPlace | None:
        return locate_entry(layout, cast(Entry, record.value))

    def trace_record(self, host: Host, snapshot: Snapshot, name: str) -> RecordOrigin | None:
        return trace_entry(host, snapshot, name)

    def find_in_answer(self, answer: object, record_id: str) -> int | None:
        for index, result in enumerate(answer if isinstance(answer, list) else (answer,)):
            if isinstance(result, dict) and result.get("entry_id") == record_id and not result.get("duplicate"):
                return index
        return None

    def list_changes(
        self, layout: Layout, before: Snapshot, after: Snapshot, record_id: str, *, by_hand: bool = False
    ) -> Sequence[tuple[str, str, str]]:
        """The payee, tags or note that were amended; by hand, anything."""
        was, now = (open_books(layout, CommittedSource(each))[0].find_entry(record_id) for each in (before, after))
        if was is None or now is None:
            return ()
        fixed = list(_describe_fixed(was, now)) if by_hand else []
        return [*fixed, *describe_changes(was, now)]


def trace_entry(host: Host, snapshot: Snapshot, name: str) -> RecordOrigin | None:
    """What is known of an entry of a commit, by its id, that of a leg, or that of the bank line that it posts; None
    where there is none. Raises ``UsageError`` for a bank line that no entry posts."""
    books, bank = open_books(host.layout, CommittedSource(snapshot))
    if name.startswith(LINE_ID_PREFIX) and (found := bank.find_line(name)) is not None:
        name = _find_posting(books, bank, found[1])
    index = open_index(host.layout, snapshot, host.decimal_places, stays_open=host.reads_again)
    parts = parse_entry_id(name)
    entry = index.find_entry(format_entry_id(*parts[:3])) if parts is not None else None
    if parts is None or entry is None or parts[3] not in {"", *map(leg_suffix, range(len(entry.legs)))}:
        return None
    facts = {
        "entry": entry_to_json(entry),
        "bank_line": _describe_line(bank, entry),
        "receipts": _list_receipts(host, bank, entry),
    }
    reversal = _find_reversal(books, entry)
    successor = find_successor(books, entry.entry_id) if entry.status == "voided" else ""
    return RecordOrigin(
        entry.entry_id,
        locate_entry(host.layout, entry),
        facts,
        _put_in_words(facts, successor),
        locate_entry(host.layout, reversal) if reversal is not None else None,
        next((target for mark, target in list_links(entry.tags) if mark == RESTORES), ""),
        successor,
    )


def _find_posting(books: Books, bank: BankBook, line: BankLine) -> str:
    """The entry that posts a line, or posted it first where none does any more."""
    entry_ids = bank.list_entry_ids(line.line_id)
    if not entry_ids:
        outcome = bank.find_outcome(line.line_id)
        why = f": it is {outcome.outcome} ({outcome.text[:200]})" if outcome is not None else ""
        raise UsageError(
            f"no entry posts the bank line of {line.posted_date}, {line.amount} {line.description[:60]!r}{why}",
            remedy="cleared queue list shows what waits for a person.",
        )
    standing = (each for each in reversed(entry_ids) if books.get_entry(each).status != "voided")
    return next(standing, entry_ids[0])


def locate_entry(layout: Layout, entry: Entry) -> RecordPlace:
    """Where an entry lies: its first leg stays as it is."""
    return RecordPlace(locate_books(layout).journal_path(*entry.month), f"\n{entry.entry_id}a,".encode())


def _describe_fixed(was: Entry, now: Entry) -> Iterator[tuple[str, str, str]]:
    """``(column, old, new)`` of what no decision amends."""
    for column in ("date", "description", "reference", "status", "confidence", "evidence"):
        old, new = (str(getattr(each, column)) for each in (was, now))
        if old != new:
            yield column, old, new
    old, new = (
        ", ".join(f"{leg.account_id} {money.format_amount(leg.amount)}" for leg in each.legs) for each in (was, now)
    )
    if old != new:
        yield "legs", old, new


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
        if r.proves(entry)
    ]


def _find_reversal(books: Books, entry: Entry) -> Entry | None:
    """The entry that took a voided one back: where it was one of many, the commit of that does not name it."""
    if entry.status != "voided":
        return None
    mark = f"@rev={entry.entry_id}"
    months = [month for month in books.list_months() if month >= entry.month]
    reversals = (e for month in months for e in books.iter_entries(*month) if mark in e.tags.split(";"))
    return next(reversals, None)


def _put_in_words(facts: dict[str, Any], successor: str) -> list[tuple[str, str]]:
    entry, line = facts["entry"], facts["bank_line"]
    legs = "\n".join(
        f"{x['account_id']}  {x['debit'] if Decimal(x['debit']) else '-' + x['credit']}" for x in entry["lines"]
    )
    words = [
        ("entry", f"{entry['entry_id']}  {entry['date']}  {entry['amount']}  {entry['description']}"),
        ("legs", legs),
        ("status", entry["status"]),
    ]
    if successor:
        words.append(("in its place", successor))
    if line:
        text = f"{line['file']}, row {line['row']}: {line['date']} {line['amount']} {line['text']}"
        words.append(("bank line", text))
    for receipt in facts["receipts"]:
        missing = "" if receipt["is_here"] else " (not in this clone)"
        words.append(("receipt", f"{receipt['name']}: {receipt['file']}{missing}"))
    return words


_MOST_PARTS: Final = 100


def read_suggestion(value: str) -> Correction:
    """The correction that a suggestion's choice stands for. Raises ``UsageError`` for anything else."""
    lines: list[tuple[int, Decimal | None]] = []
    try:
        for word in value.split()[:_MOST_PARTS]:
            account, _, digits = word.partition("=")
            if parse_count(account, 10) is None:
                raise ValueError
            amount = Decimal(digits) if digits else None
            if amount is not None and not amount.is_finite():
                raise ValueError
            lines.append((int(account), amount))
    except (ValueError, InvalidOperation):
        lines = []
    if len(lines) == 1 and lines[0][1] is None:
        return Correction(lines[0][0])
    parts = tuple((account, amount) for account, amount in lines if amount is not None)
    if not parts or len(parts) != len(lines):
        raise UsageError("choose an account", remedy="Tap one of the list.")
    return Correction(lines=parts, mixed=True)  # all parts were shown, and split so before
