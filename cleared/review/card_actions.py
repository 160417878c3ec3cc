"""Carries out what a person chose about cards. The screen and the plain prompts both decide through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final

from msgspec import Struct

from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.cards.card_section import list_part
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.gate.manual_runs import run_again
from cleared.gate.proposals.approval import approve_proposal, reject_proposal
from cleared.review import card_decisions
from cleared.review.action_request import ActionRequest, ActionResult
from cleared.review.card_facts import CardChoice, QueueRow
from cleared.review.card_view import cards_summary, digest_shown_cards
from cleared.review.correction_tests import agree_and_record, correct_and_record, take_suggestion
from cleared.review.explanation import explain_record
from cleared.review.questions import answer_and_resume
from cleared.review.queue_cards import proposal_folder
from cleared.review.queue_snapshot import QueueSnapshot, read_queue
from cleared.review.record_review import DecisionResult, load_reviews
from cleared.review.source_files import FileView, record_script
from cleared.review.undo import undo_decision
from cleared.runs.outcome import RunResult

OpenHost = Callable[[], Host]


def request_decision(queue: QueueSnapshot, choice: CardChoice, rows: Sequence[QueueRow]) -> ActionRequest:
    """A choice about cards as this queue shows them: it is refused where one is another by then."""
    ids = tuple(row.id for row in rows)
    return ActionRequest(choice, ids, cards_summary(rows), shown=digest_shown_cards(queue, ids))


class ActionExecutor(Struct):
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
            return describe_decision("Confirmed", request, card_decisions.confirm_records(host, ids))
        if verb == "correct":
            if request.correction is None:
                raise UsageError("a correction says what should have been", remedy="Say it.")
            result = correct_and_record(host, ids, request.correction)
            verb_done = "Posted" if result.added and not result.records else "Corrected"
            return describe_decision(verb_done, request, result)
        if verb == "suggested":
            result = take_suggestion(host, ids, request.choice.value)
            return describe_decision("Posted" if not result.records else "Corrected", request, result)
        if verb == "reject":
            result = card_decisions.reject_cards(host, ids, request.reason, request.outcome, request.duplicate_of)
            return describe_decision("Rejected", request, result)
        if verb == "agree":
            return describe_decision("Agreed", request, agree_and_record(host, ids))
        if verb == "answer":
            result, run = answer_and_resume(host, ids[0], request.choice.value, request.without)
            if run is not None:
                result.messages.append(_run_summary(run, "went on"))
            return describe_decision(f"Answered “{request.choice.meaning}”", request, result)
        if verb == "retry":
            return self._run_again(host, request)
        if verb in ("approve", "decline"):
            return self._decide_proposal(host, request)
        actions = (review.find_action(verb) for review in load_reviews().values())
        action = next((action for action in actions if action is not None), None)
        if action is None:
            raise UsageError(f"nothing is done by {verb[:40]!r}", remedy="cleared queue show tells what can be done.")
        return action(host, request)

    def _undo_last(self, host: Host, act: str | None) -> ActionResult:
        result = undo_decision(host, act=act)
        if result.agreed:
            return ActionResult(". ".join(result.messages), True)
        names = ", ".join(result.records or result.cards)
        text = [f"Taken back: {names or result.subject}", *([] if names else result.messages[1:])]
        return ActionResult(". ".join(text), True, tuple(result.cards))

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
            describe_decision("", request, card_decisions.answer_card(host, card.id, "seen"))
        return ActionResult(_run_summary(run, "ran"), True, request.cards)

    def _decide_proposal(self, host: Host, request: ActionRequest) -> ActionResult:
        card = read_queue(host).cards.get(request.cards[0])
        if card is None:
            raise PolicyError("somebody has decided this proposal", remedy="cleared agent history shows who.")
        name = proposal_folder(card)
        if request.choice.verb == "approve":
            outcome = approve_proposal(host, name, request.words)
            text = f"{outcome.proposal.id} is live now"
            if outcome.edited:
                text += f"; your edits of {', '.join(outcome.edited)} are left as they are"
            text = f"{text}. {outcome.next_step}".removesuffix(". ")
        else:
            outcome = reject_proposal(host, name, request.reason)
            text = f"{outcome.proposal.id} is rejected; the live scripts stay"
        return ActionResult(text, True, request.cards, act=outcome.commit or "")


def describe_decision(verb_done: str, request: ActionRequest, result: DecisionResult) -> ActionResult:
    """What came of a decision. ``verb_done``: ``Corrected``."""
    posted = f", posted {', '.join(result.added[:3])}" if result.added else ""
    posted += " …" if len(result.added) > 3 else ""
    settled = tuple(card_id for card_id in request.cards if card_id not in result.agreed)
    messages = [f"{verb_done}: {request.about}{posted}"] if settled or not result.agreed else []
    text = ". ".join([*messages, *result.messages])
    return ActionResult(text, True, settled, similar_cards=tuple(result.similar_cards), act=result.commit)


_WENT_WELL: Final = ("succeeded", "waiting")


def _run_summary(run: RunResult, verb_done: str) -> str:
    """How a run ended, in a few words."""
    if run.status == "waiting":
        return f"{run.agent} {verb_done}, and asks something"
    if run.status == "succeeded":
        return f"{run.agent} {verb_done}: {run.message or 'nothing to do'}"
    return f"{run.agent} failed: {run.error or run.status}"


def card_code(host: Host, queue: QueueSnapshot, card_id: str) -> Sequence[FileView]:
    """The code behind a card: a proposal's effects one by one and its changes, or the script at the line that made the
    entry.

    Raises ``UsageError`` for a card without code, and what ``explain_record`` raises.
    """
    card = queue.cards.get(card_id)
    shown = queue.proposal_of(card) if card is not None else None
    if shown is not None:
        effects = [part for section in shown.card for part in section.parts]
        listed = (
            [FileView("One by one", tuple(line for part in effects for line in list_part(part)))] if effects else []
        )
        return [*listed, *(FileView.from_diff(path, text) for path, text in shown.code.items())]
    if card is None or card.record_id is None:
        raise UsageError("this card has no code", remedy="Entries and proposals have.")
    why = explain_record(host, card.record_id).data
    while not why["run"] and why["restores"]:
        why = explain_record(host, why["restores"]).data
    return [record_script(host, why)]
