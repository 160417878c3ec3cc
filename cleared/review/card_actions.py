"""Carries out what a person chose about cards. The screen and the plain prompts both decide through here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.books.decisions.entry_correction import Correction
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.review import card_decisions
from cleared.review.card_view import CardChoice, cards_summary, digest_shown_cards
from cleared.review.correction_tests import agree_and_record, correct_and_record
from cleared.review.decision_staging import DecisionResult
from cleared.review.explanation import explain_entry
from cleared.review.questions import answer_and_resume
from cleared.review.queue_snapshot import QueueRow, QueueSnapshot, proposal_folder, read_queue
from cleared.review.source_files import FileView, entry_script
from cleared.review.undo import undo_decision
from cleared.runs.outcome import RunResult
from cleared.triggers.manual_runs import run_again

if TYPE_CHECKING:
    from cleared.books.teaching.vendor_teaching import Lesson

OpenHost = Callable[[], Host]


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A choice that a person made about open cards, with everything that it needs."""

    choice: CardChoice
    cards: tuple[str, ...]
    about: str
    """What the cards are about, for the line that says what came of it."""
    correction: Correction | None = None
    reason: str = ""
    outcome: str | None = None
    duplicate_of: str | None = None
    """With the outcome duplicate: the entry that stands."""
    words: str = ""
    """With the verb always: the words of the bank's text that name the vendor."""
    act: str | None = None
    """With the verb undo: the id of the act that the person was shown; None: whichever is the last."""
    shown: Mapping[str, str] | None = None
    """Digests of what the person was shown, for ``changes.decisions.shown_cards``; None where the caller says them."""


def request_decision(queue: QueueSnapshot, choice: CardChoice, rows: Sequence[QueueRow]) -> ActionRequest:
    """A choice about cards as this queue shows them: it is refused where one is another by then."""
    ids = tuple(row.id for row in rows)
    return ActionRequest(choice, ids, cards_summary(rows), shown=digest_shown_cards(queue, ids))


UNDO = ActionRequest(CardChoice("undo", "Undo"), (), "")
NAME_LAST_ACT = ActionRequest(CardChoice("name", "Undo"), (), "")
"""Says what undo would take back; ``act`` of its result is what ``UNDO`` is bound to then."""


@dataclass(frozen=True, slots=True)
class ActionResult:
    """What came of a request."""

    text: str
    """It, in one line."""
    ok: bool
    """False for a refusal: then nothing was changed."""
    cards: tuple[str, ...] = ()
    """Cards that are settled; after an undo, cards that wait again."""
    act: str = ""
    """What an undo of it is bound to; empty where it is none that undo could take back."""
    similar_cards: tuple[str, ...] = ()
    """Open cards that look like a corrected one."""
    lesson: Lesson | None = None
    """A vendor that was taught, which one key may approve: ``approve_lesson`` asks for it."""


@dataclass(slots=True)
class ActionExecutor:
    """Carries out requests, each as one commit."""

    open: OpenHost
    """Opens the workspace with the settings of that moment: they say who may decide."""

    def execute_request(self, request: ActionRequest) -> ActionResult:
        """Carry out one request. A refusal is a result, too: it raises no ``ClearedError``."""
        try:
            with expecting(request.shown) if request.shown is not None else nullcontext():
                return self._dispatch_request(self.open(), request)
        except ClearedError as error:
            return ActionResult(" ".join(str(error).split()), False)
        except OSError as error:
            return ActionResult(f"{error.filename or ''}: {error.strerror or error}; nothing was changed", False)

    def _dispatch_request(self, host: Host, request: ActionRequest) -> ActionResult:
        verb, ids = request.choice.verb, list(request.cards)
        if verb == "undo":
            return self._undo_last(host, request.act)
        if verb == "name":
            named = undo_decision(host, dry_run=True)
            return ActionResult(". ".join(named.messages), True, act=named.act)
        if verb == "confirm":
            return self._decision_result("Confirmed", request, card_decisions.confirm_entries(host, ids))
        if verb == "correct":
            result = correct_and_record(host, ids, request.correction or Correction())
            verb_done = "Posted" if result.posted and not result.entries else "Corrected"
            return self._decision_result(verb_done, request, result)
        if verb == "suggested":
            result = correct_and_record(host, ids, read_suggestion(request.choice.value))
            return self._decision_result("Posted" if not result.entries else "Corrected", request, result)
        if verb == "always":
            return self._teach_vendor(host, request)
        if verb == "reject":
            result = card_decisions.reject_cards(host, ids, request.reason, request.outcome, request.duplicate_of)
            return self._decision_result("Rejected", request, result)
        if verb == "agree":
            return self._decision_result("Agreed", request, agree_and_record(host, ids))
        if verb == "answer":
            result, run = answer_and_resume(host, ids[0], request.choice.value)
            if run is not None:
                result.messages.append(_run_summary(run, "went on"))
            return self._decision_result(f"Answered {request.choice.value}", request, result)
        if verb == "retry":
            return self._run_again(host, request)
        return self._decide_proposal(host, request)

    def _teach_vendor(self, host: Host, request: ActionRequest) -> ActionResult:
        """Decide one card, and propose that the vendor's lines always go to that account."""
        from cleared.books.teaching.vendor_teaching import propose_vendor

        correction, queue = request.correction or Correction(), read_queue(host)
        card = queue.cards.get(request.cards[0])
        entry = queue.entry_of(card) if card is not None else None
        if correction.account is None:
            raise UsageError("a vendor goes to one account", remedy="Give one, not a split.")
        booked = [leg.account_id for leg in queue.changeable_legs(entry)] if entry is not None else []
        if booked == [correction.account]:
            done = self._decision_result("Confirmed", request, card_decisions.confirm_entries(host, [*request.cards]))
        else:
            decision = correct_and_record(host, [*request.cards], correction)
            verb_done = "Posted" if decision.posted and not decision.entries else "Corrected"
            done = self._decision_result(verb_done, request, decision)
        if not done.cards:  # the first of two has decided: what it always is waits for the second
            return done
        vendor, agent = correction.counterparty or "", (card.agent if card is not None else "") or ""
        try:
            lesson = propose_vendor(host, request.words, correction.account, vendor=vendor, agent=agent)
        except ClearedError as error:
            return replace(done, text=f"{done.text}. Not taught: {' '.join(str(error).split())}")
        if lesson.doubts:
            text = f"{done.text}. {lesson.proposal.id} waits as a card: {lesson.doubts[0]}"
            return replace(done, text=text)
        return replace(done, text=f"{done.text}. {lesson.difference}", lesson=lesson)

    def _decision_result(self, verb_done: str, request: ActionRequest, result: DecisionResult) -> ActionResult:
        posted = f", posted {', '.join(result.posted[:3])}" if result.posted else ""
        posted += " …" if len(result.posted) > 3 else ""
        settled = tuple(card_id for card_id in request.cards if card_id not in result.agreed)
        messages = [f"{verb_done}: {request.about}{posted}"] if settled or not result.agreed else []
        text = ". ".join([*messages, *result.messages])
        return ActionResult(text, True, settled, similar_cards=tuple(result.similar_cards), act=result.commit)

    def _undo_last(self, host: Host, act: str | None) -> ActionResult:
        result = undo_decision(host, act=act)
        if result.agreed:
            return ActionResult(". ".join(result.messages), True)
        names = ", ".join(result.entries or result.cards)
        text = f"Taken back: {names}" if names else ". ".join(result.messages)
        return ActionResult(text, True, tuple(result.cards))

    def _run_again(self, host: Host, request: ActionRequest) -> ActionResult:
        """Run the agent of a failed run, or of a question that cannot be answered, once more. A success settles the
        card."""
        card = read_queue(host).cards.get(request.cards[0])
        if card is None or not card.agent:
            raise UsageError("it is not known which agent failed", remedy="cleared agent list shows them.")
        run = run_again(host, card.agent, card.id)
        if run.status not in _WENT_WELL:
            return ActionResult(_run_summary(run, "ran"), False)
        if card.id in read_queue(host).cards:  # most such runs have settled it themselves
            self._decision_result("", request, card_decisions.answer_card(host, card.id, "seen"))
        return ActionResult(_run_summary(run, "ran"), True, request.cards)

    def _decide_proposal(self, host: Host, request: ActionRequest) -> ActionResult:
        from cleared.gate.proposals.approval import approve_proposal, reject_proposal

        card = read_queue(host).cards.get(request.cards[0])
        if card is None:
            raise PolicyError("somebody has decided this proposal", remedy="cleared agent history shows who.")
        name = proposal_folder(card)
        if request.choice.verb == "approve":
            outcome = approve_proposal(host, name)
            text = f"{outcome.proposal.id} is live now"
            if outcome.edited:
                text += f"; your edits of {', '.join(outcome.edited)} are left as they are"
        else:
            outcome = reject_proposal(host, name, request.reason)
            text = f"{outcome.proposal.id} is rejected; the live scripts stay"
        return ActionResult(text, True, request.cards, act=outcome.commit or "")


def read_suggestion(value: str) -> Correction:
    """The correction that a suggestion's choice stands for. Raises ``UsageError`` for anything else."""
    lines: list[tuple[int, Decimal | None]] = []
    try:
        for word in value.split()[:_MOST_PARTS]:
            account, _, digits = word.partition("=")
            if not (account.isascii() and account.isdecimal() and len(account) <= 10):
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


_MOST_PARTS: Final = 100
_WENT_WELL: Final = ("succeeded", "waiting")


def _run_summary(run: RunResult, verb_done: str) -> str:
    """How a run ended, in a few words."""
    if run.status == "waiting":
        return f"{run.agent} {verb_done}, and asks something"
    if run.status == "succeeded":
        return f"{run.agent} {verb_done}: {run.message or 'nothing to do'}"
    return f"{run.agent} failed: {run.error or run.status}"


def vendor_words(queue: QueueSnapshot, card_id: str) -> str:
    """The words of a card's bank text that may name the vendor."""
    from cleared.books.teaching.vendor_table import propose_words

    card = queue.cards.get(card_id)
    return propose_words(queue.row_of(card).text) if card is not None else ""


def approve_lesson(lesson: Lesson) -> ActionRequest:
    """The request that makes a taught vendor live."""
    about = f"{lesson.row.words} to {lesson.row.account}"
    shown = {lesson.proposal.folder: lesson.proposal.digest_shown()}
    return ActionRequest(CardChoice("approve", "Approve: it becomes live"), (lesson.proposal.card,), about, shown=shown)


def card_code(host: Host, queue: QueueSnapshot, card_id: str) -> Sequence[FileView]:
    """The code behind a card: a proposal's changes, or the script at the line that made the entry.

    Raises ``UsageError`` for a card without code, and what ``app.why`` raises.
    """
    card = queue.cards.get(card_id)
    shown = queue.proposal_of(card) if card is not None else None
    if shown is not None:
        return [FileView(path, tuple(text.splitlines())) for path, text in shown.code.items()]
    if card is None or card.entry_id is None:
        raise UsageError("this card has no code", remedy="Entries and proposals have.")
    return [entry_script(host, explain_entry(host, card.entry_id))]
