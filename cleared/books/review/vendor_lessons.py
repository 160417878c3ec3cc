"""Teaching a vendor from a card: one decision, and the proposal that its lines always go there."""

from __future__ import annotations

from msgspec.structs import replace

from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.books.decisions.entry_correction import Correction
from cleared.books.review.book_cards import book_facts_of
from cleared.books.review.book_facts import BookFacts
from cleared.books.teaching.row_limits import NO_LIMITS
from cleared.books.teaching.vendor_table import VendorRow, propose_words
from cleared.books.teaching.vendor_teaching import Lesson, propose_vendor
from cleared.cards.card import Card
from cleared.changes.host import Host
from cleared.review.action_request import ActionRequest, ActionResult
from cleared.review.card_actions import describe_decision
from cleared.review.card_decisions import confirm_records
from cleared.review.card_facts import CardChoice
from cleared.review.correction_tests import correct_and_record
from cleared.review.queue_snapshot import QueueSnapshot, read_queue


def teach_vendor(host: Host, request: ActionRequest) -> ActionResult:
    """Decide one card, and propose that the vendor's lines always go to that account."""
    correction, queue = request.correction, read_queue(host)
    card, books = queue.cards.get(request.cards[0]), book_facts_of(queue)
    entry = books.entry_of(card) if card is not None else None
    words, limits = request.words, NO_LIMITS
    if correction is None and request.choice.value:
        row = _find_offered(books, card, request.choice.value)
        correction, words, limits = Correction(row.account, counterparty=row.vendor), row.words, row.limits
    if not isinstance(correction, Correction) or correction.account is None:
        raise UsageError("a vendor goes to one account", remedy="Give one, not a split.")
    booked = [leg.account_id for leg in books.changeable_legs(entry)] if entry is not None else []
    if booked == [correction.account]:
        done = describe_decision("Confirmed", request, confirm_records(host, [*request.cards]))
    else:
        decision = correct_and_record(host, [*request.cards], correction)
        verb_done = "Posted" if decision.added and not decision.records else "Corrected"
        done = describe_decision(verb_done, request, decision)
    if not done.cards:  # the first of two has decided: what it always is waits for the second
        return done
    vendor, agent = correction.counterparty or "", (card.agent if card is not None else "") or ""
    try:
        lesson = propose_vendor(host, words, correction.account, limits=limits, vendor=vendor, agent=agent)
    except ClearedError as error:
        return replace(done, text=f"{done.text}. Not taught: {' '.join(str(error).split())}")
    if lesson.doubts:
        text = f"{done.text}. {lesson.proposal.id} waits as a card: {lesson.doubts[0]}"
        return replace(done, text=text)
    return replace(done, text=f"{done.text}. {lesson.difference}", offer=lesson)


def _find_offered(books: BookFacts, card: Card | None, offered: str) -> VendorRow:
    """The row that the card offers. Raises ``PolicyError`` where that is not the one that the person was shown."""
    learned = books.learned_row_of(card) if card is not None else None
    if learned is None or learned.row.describe() != offered:
        raise PolicyError("the card offers another row by now", remedy="Look at it again, then decide.")
    return learned.row


def vendor_words(queue: QueueSnapshot, card_id: str) -> str:
    """The words of a card's bank text that may name the vendor."""
    card = queue.cards.get(card_id)
    return propose_words(queue.row_of(card).text) if card is not None else ""


def approve_lesson(lesson: Lesson) -> ActionRequest:
    """The request that makes a taught vendor live."""
    about = f"{lesson.row.words} to {lesson.row.account}"
    shown = {lesson.proposal.folder: lesson.shown}
    choice, number = CardChoice("approve", "Approve: it becomes live"), lesson.proposal.id
    return ActionRequest(choice, (lesson.proposal.card,), about, shown=shown, words=number)
