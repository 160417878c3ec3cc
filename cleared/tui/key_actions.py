"""From what a person chose to the function that decides it. Both the screen and the prompts decide through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cleared import app
from cleared.cards.kinds import PROPOSAL, QUESTION
from cleared.changes.host import Host
from cleared.errors import ClearedError, PolicyError, UsageError
from cleared.review import card_decisions
from cleared.review.card_decisions import DecisionResult
from cleared.review.card_view import CardChoice, proposal_folder
from cleared.review.entry_decisions import Correction
from cleared.review.queue_snapshot import QueueSnapshot, read_queue
from cleared.review.source_files import FileView, entry_script
from cleared.review.undo import undo_decision
from cleared.runs.outcome import RunResult

OpenHost = Callable[[], Host]


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """A decision that somebody made: about which open cards, and all that was asked for it."""

    choice: CardChoice
    cards: tuple[str, ...]
    about: str
    """What the cards say, for the line that tells how it went."""
    correction: Correction | None = None
    reason: str = ""
    outcome: str | None = None
    of: str | None = None


UNDO = ActionRequest(CardChoice("undo", "Undo"), (), "")


@dataclass(frozen=True, slots=True)
class ActionResult:
    """How it went, in one line. ``cards``: those that are settled, after an undo those that are asked again."""

    text: str
    ok: bool
    cards: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()


@dataclass(slots=True)
class ActionExecutor:
    """Decides wishes, each as one commit.

    ``open`` gives the workspace as its settings are then: who may decide, and how, is what they say. ``proposals``
    counts approvals since the last decision that ``undo`` knows: it must not silently take back an older one instead.
    """

    open: OpenHost
    _not_undoable: list[str] = field(default_factory=list)

    def execute_request(self, wish: ActionRequest) -> ActionResult:
        """Never raises a ``ClearedError``: a refusal is told like any other outcome."""
        try:
            return self._dispatch_request(self.open(), wish)
        except ClearedError as error:
            return ActionResult(" ".join(str(error).split()), False)
        except OSError as error:
            return ActionResult(f"{error.filename or ''}: {error.strerror or error}; nothing was changed", False)

    def _dispatch_request(self, host: Host, wish: ActionRequest) -> ActionResult:
        verb, ids = wish.choice.verb, list(wish.cards)
        if verb == "undo":
            return self._undo_last(host)
        if verb == "confirm":
            return self._decision_result("Confirmed", wish, card_decisions.confirm_entries(host, ids))
        if verb == "correct":
            done = app.correct(host, ids, wish.correction or Correction())
            return self._decision_result("Posted" if done.posted and not done.entries else "Corrected", wish, done)
        if verb == "reject":
            done = card_decisions.reject_cards(host, ids, wish.reason, wish.outcome, wish.of)
            return self._decision_result("Rejected", wish, done)
        if verb == "agree":
            return self._decision_result("Agreed", wish, app.agree(host, ids))
        if verb == "answer":
            done, run = app.answer(host, ids[0], wish.choice.value)
            if run is not None:
                done.messages.append(_run_summary(run, "went on"))
            return self._decision_result(f"Answered {wish.choice.value}", wish, done)
        if verb == "retry":
            return self._run_again(host, wish)
        return self._decide_proposal(host, wish)

    def _decision_result(self, what: str, wish: ActionRequest, done: DecisionResult) -> ActionResult:
        self._not_undoable.clear()
        more = f", posted {', '.join(done.posted[:3])}{' …' if len(done.posted) > 3 else ''}" if done.posted else ""
        settled = tuple(c for c in wish.cards if c not in done.agreed)
        said = [f"{what}: {wish.about}{more}"] if settled or not done.agreed else []
        return ActionResult(". ".join([*said, *done.messages]), True, settled, tuple(done.similar_cards))

    def _undo_last(self, host: Host) -> ActionResult:
        if self._not_undoable:
            said = self._not_undoable.pop()
            raise PolicyError(f"{said} is not taken back here", remedy="u again takes back the decision before it.")
        done = undo_decision(host)
        if done.agreed:
            return ActionResult(". ".join(done.messages), True)
        names = ", ".join(done.entries or done.cards)
        return ActionResult(f"Taken back: {names or 'the last decision'}", True, tuple(done.cards))

    def _run_again(self, host: Host, wish: ActionRequest) -> ActionResult:
        """Run the agent of a failed run, or of a held question, again; where it works now, the card is settled."""
        card = read_queue(host).cards.get(wish.cards[0])
        if card is None or not card.agent:
            raise UsageError("it is not known which agent failed", remedy="cleared agent list shows them.")
        found = app.run_again(host, card.agent, card.id)
        if found.status not in _WENT_WELL:
            return ActionResult(_run_summary(found, "ran"), False)
        if card.kind != QUESTION.name:  # the run that asks again has settled it
            self._decision_result("", wish, card_decisions.answer_card(host, card.id, "seen"))
        self._not_undoable.append(f"the run of {card.agent}")
        return ActionResult(_run_summary(found, "ran"), True, wish.cards)

    def _decide_proposal(self, host: Host, wish: ActionRequest) -> ActionResult:
        from cleared.proposals.approval import reject_proposal

        card = read_queue(host).cards.get(wish.cards[0])
        if card is None:
            raise PolicyError("somebody has decided this proposal", remedy="cleared agent history shows who.")
        name = proposal_folder(card)
        if wish.choice.verb == "approve":
            outcome = app.approve(host, name)
            said = f"{outcome.proposal.id} is live now"
            if outcome.edited:
                said += f"; your edits of {', '.join(outcome.edited)} are left as they are"
        else:
            outcome = reject_proposal(host, name, wish.reason)
            said = f"{outcome.proposal.id} is rejected; the live scripts stay"
        self._not_undoable.append(f"the decision about {outcome.proposal.id}")
        return ActionResult(said, True, wish.cards)


_WENT_WELL: Final = ("succeeded", "waiting")


def _run_summary(run: RunResult, what: str) -> str:
    """How a run ended, in a few words."""
    if run.status == "waiting":
        return f"{run.agent} {what}, and asks something"
    if run.status == "succeeded":
        return f"{run.agent} {what}: {run.message or 'nothing to do'}"
    return f"{run.agent} failed: {run.error or run.status}"


def card_code(host: Host, queue: QueueSnapshot, identity: str) -> Sequence[FileView]:
    """The code behind a card: a proposal's changes, else the script at the line that made the entry.

    Raises ``ClearedError``.
    """
    from cleared.proposals.proposal_history import diff_code

    card = queue.cards.get(identity)
    if card is not None and card.kind == PROPOSAL.name:
        found = diff_code(host, proposal_folder(card))
        return [FileView(path, tuple(text.splitlines())) for path, text in found.items()]
    if card is None or card.entry_id is None:
        raise UsageError("this card has no code", remedy="Entries and proposals have.")
    return [entry_script(host, app.why(host, card.entry_id))]
