"""Taking back what a decision did to entries: one more commit restores what was before. No row is ever removed."""

from __future__ import annotations

from datetime import date

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.books.card_kinds import LINE
from cleared.books.decisions.entry_amending import restore_amended
from cleared.books.decisions.entry_correction import void_with_corrections
from cleared.books.ledger.chains import CORRECTS, ORIGINAL_DATE, RESTORES, REVERSES, date_tags, list_links
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.posting import post_entry
from cleared.books.ledger.staged_journal import Books
from cleared.books.line_cards import stage_line_card
from cleared.books.met_balances import restore_met_balances
from cleared.books.staged_books import books_of, open_books
from cleared.cards.card import Card
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.record_sources import CommittedSource
from cleared.primitives.context import Context
from cleared.review.record_review import TAKEN_BACK, UndoCase


def restore_entries(case: UndoCase) -> None:
    """Post again what the decision voided or changed, void what it posted, and write what it amended as it was.

    Raises ``PolicyError`` where the period is closed by now, or an entry was changed since by something else.
    """
    context, result, layout = case.context, case.result, case.decision_context.host.layout
    before, bank_before = open_books(layout, CommittedSource(case.before))
    after, bank_after = open_books(layout, CommittedSource(case.after))
    months = [m for m in map(before.paths.find_month, case.commit.files or ()) if m is not None]
    old = {e.entry_id: e for m in months for e in before.iter_entries(*m)}
    new = {e.entry_id: e for m in months for e in after.iter_entries(*m)}
    changed = [e for i, e in old.items() if new[i].status != e.status]
    added = [e for i, e in new.items() if i not in old and e.status != "voided"]
    _refuse_closed_period(books_of(context).books, [*changed, *(e for i, e in new.items() if i not in old)])
    # What restores an entry takes its place: of two decisions about it the second may have been taken back before.
    standing = [
        _standing_entry(books_of(context).books, e.entry_id) for e in changed if new[e.entry_id].status != "voided"
    ]
    for now in [*standing, *(_standing_entry(books_of(context).books, e.entry_id) for e in added)]:
        if books_of(context).books.get_entry(now.entry_id).status != "voided":
            # On no day before its own: where what it replaced cancels with it there, the chain counts as unmoved since
            # an earlier day, and only a part of that is taken back here.
            reversals = void_with_corrections(context, now, f"undone by {case.by}", now.date)
            result.added += [each.entry_id for each in reversals]
    result.records += restore_amended(books_of(context).books, old, new)
    again: dict[str, str] = {}
    for entry in sorted(changed, key=lambda e: CORRECTS in e.tags):  # what a correction corrects is there by then
        tags = [t for t in entry.tags.split(";") if t and not t.startswith((RESTORES, ORIGINAL_DATE))]
        tags = [_rename_corrected(t, books_of(context).books, again) for t in tags]
        day = _date_restoration(books_of(context).books, entry, tags)
        tags += [f"{RESTORES}{entry.entry_id}", *date_tags(day, entry.date)]
        restored, duplicate = post_entry(
            books_of(context).books,
            books_of(context).bank,
            books_of(context).ledger_accounts,
            day,
            entry.description,
            entry.legs,
            reference=entry.reference,
            status=entry.status,
            counterparty=entry.counterparty,
            confidence=entry.confidence,
            evidence=entry.evidence,
            tags=";".join(tags),
            notes=entry.notes,
        )
        if duplicate:
            raise PolicyError(
                f"the bank line of {entry.entry_id} was posted since, as {restored.entry_id}",
                remedy="Correct that one, or reject it first.",
            )
        again[entry.entry_id] = restored.entry_id
        context.log_action("undo", f"restored as {restored.entry_id}", entry.entry_id)
        result.records = list(dict.fromkeys([*result.records, entry.entry_id]))
        result.added.append(restored.entry_id)
    restore_met_balances(books_of(context).bank, bank_before, bank_after, format_iso(context.now))


def _date_restoration(books: Books, entry: Entry, tags: list[str]) -> date:
    """The day on which an entry comes back: that of what took it away, so that it counts on each day or on none.
    ``tags``: its new ones, which name what it corrects."""
    taken = [books.get_entry(entry_id).date for entry_id in books.chains.find_linked(entry.entry_id, REVERSES)]
    corrected = [target for _, target in list_links(";".join(tags))]
    return books.date_change([entry.entry_id, *corrected], max(taken, default=entry.date))


def _standing_entry(books: Books, entry_id: str) -> Entry:
    """The entry, or what restored it. Raises ``PolicyError`` where it was voided since by something else."""
    waiting = [books.get_entry(entry_id)]
    while waiting:
        entry = waiting.pop()
        if entry.status != "voided":
            return entry
        waiting += map(books.get_entry, books.chains.find_linked(entry.entry_id, RESTORES))
    raise PolicyError(
        f"{entry_id} was voided since, by something that cannot be taken back",
        remedy="The decision before that stays; decide anew about what is there now.",
    )


def _rename_corrected(tag: str, books: Books, again: dict[str, str]) -> str:
    """The tag; one that says ``@corrects=`` names what stands for the corrected entry now: what this undo restored
    (``again``), or an earlier one did.

    With the id of a voided one, the entry that stands would have no correction, and the next would be added to this.
    """
    target = tag.removeprefix(CORRECTS)
    if not tag.startswith(CORRECTS):
        return tag
    return f"{CORRECTS}{again.get(target) or _standing_entry(books, target).entry_id}"


def _refuse_closed_period(books: Books, entries: list[Entry]) -> None:
    """Raises ``PolicyError`` for entries of a closed period: taken back, they would be dated after it."""
    for entry in entries:
        if books.periods.is_closed(entry.date):
            raise PolicyError(
                f"{entry.entry_id} of {entry.date} lies in a period that is closed; taken back, it would be dated "
                f"{books.periods.first_open(entry.date)}",
                remedy="Decide anew (cleared queue correct), or reopen it: cleared period reopen DATE --reason …",
            )


def settle_posted_lines(case: UndoCase) -> None:
    """Settle the cards of held lines that are posted again."""
    context = case.context
    for card in context.cards.open_cards(LINE.name):
        if books_of(context).bank.posted_amount(str(card.details.get("line", ""))) != 0:
            context.cards.resolve_card(card.id, format_iso(context.now), case.by, TAKEN_BACK)


def list_restored(context: Context) -> dict[str, str]:
    """The entries of the draft that restore one: id of that → id of theirs."""
    return {
        tag.removeprefix(RESTORES): entry.entry_id
        for entries in books_of(context).books.staged.values()
        for entry in entries
        for tag in entry.tags.split(";")
        if tag.startswith(RESTORES)
    }


def hold_line_again(decision_context: DecisionContext, card: Card) -> str | None:
    """Hold the bank line of a card again, and open a card for it: its id. None where the line is posted."""
    context, line = decision_context.context, str(card.details.get("line", ""))
    bank_line = books_of(context).bank.find_line(line) if card.kind == LINE.name else None
    if bank_line is None or books_of(context).bank.posted_amount(line):
        return None
    books_of(context).bank.set_line_aside(line, "held", f"undone by {decision_context.by}")
    why = (
        "the decision was taken back. cleared queue correct posts it; where it is not to be booked, answer with ignore"
    )
    return stage_line_card(context, bank_line[1], why, context.run_id)
