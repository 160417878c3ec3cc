"""Questions of runs: going on with a run whose question was answered, and settling questions that are past due."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION
from cleared.changes import commit_messages
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.git import Snapshot, find_clone_id, history
from cleared.review.card_decisions import answer_card
from cleared.review.record_review import DecisionResult
from cleared.runs import suspended_runs
from cleared.runs.execution import run_agent
from cleared.runs.model_asking import ModelAsker, WaitsForModel
from cleared.runs.outcome import RunResult
from cleared.runs.question_tickets import TIMEOUT_ACTOR, Questions
from cleared.runs.suspended_runs import Ended
from cleared.trust.tickets import Ticket
from cleared.workspace.location import name_script

ESCALATES = "Escalates"
"""The trailer of the commit that notes that nobody answered in time."""
KeepAsker = Callable[[str], AbstractContextManager[ModelAsker | None]]
ProblemHandler = Callable[[Card, ClearedError], None]


class TimeoutResult(Struct):
    """What became of questions that were past due, by card, and of runs that went on."""

    commit: str | None = None
    answered: dict[str, str] = {}
    rejected: list[str] = []
    escalated: list[str] = []
    runs: list[RunResult] = []
    messages: list[str] = []
    waits_for_model: bool = False
    """Whether a run cannot go on yet, as ``keep_asker`` asks a model for it."""
    next_due: datetime | None = None
    """When the next open question is due."""

    def data(self) -> dict[str, Any]:
        return {
            "commit": self.commit,
            "answered": self.answered,
            "rejected": self.rejected,
            "escalated": self.escalated,
            "runs": [r.to_json_object() for r in self.runs],
            "said": self.messages,
        }


def answer_and_resume(
    host: Host, card_id: str, choice: str, without: Sequence[str] = ()
) -> tuple[DecisionResult, RunResult | None]:
    """Answer a card. Where a run waits for the answer it goes on, and its result is given too. ``without``: as
    ``answer_card`` takes it."""
    decided = answer_card(host, card_id, choice, without)
    return decided, resume_run(host, decided.cards[0]) if decided.asked_by_run else None


def resume_run(host: Host, card_id: str, asker: ModelAsker | None = None) -> RunResult | None:
    """Run again the run that this question stopped, with all answers that its questions have; None where it has
    ended already. ``asker`` as for ``run_agent``.

    Raises ``UsageError`` where there is no such question or no answer yet, ``Held`` where nothing proves it or it may
    not go on as things are, and what a run raises.
    """
    with host.open_for_reading() as repo:
        questions = Questions(host, repo, Snapshot(repo, repo.read_head()))
        card = questions.find_question(card_id)
        if card.gone_on is not None:
            return None
        name = name_script(questions.read_ticket(card).path)
    try:
        return run_agent(
            host, name, again=lambda current: suspended_runs.resume_run(current, card_id, name), asker=asker
        )
    except Ended:
        return None


def settle_due_questions(
    host: Host, now: datetime, *, own: bool = False, keep_asker: KeepAsker | None = None
) -> TimeoutResult:
    """Settle open questions that are past due at ``now``, each as its script said, in one commit. Then go on with every
    run that has its answers.

    ``own``: only questions that this clone asked, so that two clones that see the same answer do not both go on.
    ``keep_asker``: card → what asks a model for the run that goes on; without it, the run asks by itself.
    """
    result = TimeoutResult()
    with host.open_for_reading() as repo:
        questions = Questions(host, repo, Snapshot(repo, repo.read_head()))
        mine = find_clone_id(repo)
        own = own and not host.serves_all_clones

    def is_ours(ticket: Ticket) -> bool:
        return not own or ticket.origin in ("", mine)

    def note_problem(card: Card, error: ClearedError) -> None:
        ticket = card.details.get("ticket")  # it is not verified, but this only decides who sees the message
        asked_by = (ticket if isinstance(ticket, Mapping) else card.details).get("origin")
        if not own or asked_by in (None, "", mine):
            result.messages.append(f"{card.title}: {error}")

    waiting = [(card, ticket) for card, ticket in _answerable_questions(questions, note_problem) if is_ours(ticket)]
    if _overdue_questions(waiting, now):

        def stage_due(decision_context: DecisionContext) -> Decision | None:
            current = Questions(
                host, decision_context.repo, decision_context.snapshot, decision_context.context.cards.committed_cards
            )
            return _stage_timeouts(
                host,
                decision_context,
                [each for each in _answerable_questions(current, _ignore_problem) if is_ours(each[1])],
                now,
                result,
            )

        result.commit = commit_decision(host, "queue expire", stage_due, by=TIMEOUT_ACTOR)
        questions.withdraw_answers(result.rejected)
    result.next_due = min((due for _, t in waiting if (due := datetime.fromisoformat(t.due)) > now), default=None)
    for card in _resumable_questions(host, is_ours, note_problem):
        try:
            with keep_asker(card.id) if keep_asker is not None else nullcontext() as asker:
                run_result = resume_run(host, card.id, asker)
        except WaitsForModel:
            result.waits_for_model = True
            continue
        except ClearedError as error:  # the other runs go on all the same
            result.messages.append(f"{card.title}: {error}")
            continue
        if run_result is not None:
            result.runs.append(run_result)
    return result


def _resumable_questions(host: Host, is_ours: Callable[[Ticket], bool], note_problem: ProblemHandler) -> list[Card]:
    """The last question of each run that has all its answers, and has not gone on."""
    cards = []
    with host.open_for_reading() as repo:
        questions = Questions(host, repo, Snapshot(repo, repo.read_head()))
        for card in questions.cards.values():
            try:
                ticket = questions.find_resumable_ticket(card)
            except ClearedError as error:
                note_problem(card, error)
                continue
            if ticket is not None and is_ours(ticket):
                cards.append(card)
    return cards


def _ignore_problem(card: Card, error: ClearedError) -> None:
    pass


def _answerable_questions(questions: Questions, note_problem: ProblemHandler) -> list[tuple[Card, Ticket]]:
    """The open questions that can be answered; ``note_problem`` is told why the others cannot."""
    answerable = []
    for card in questions.cards.values():
        if card.kind == QUESTION.name and card.status == "open":
            try:
                ticket = questions.read_ticket(card)
                questions.require_live_version(ticket)
                questions.require_not_settled(card)
            except ClearedError as error:
                note_problem(card, error)
                continue
            answerable.append((card, ticket))
    return answerable


def _stage_timeouts(
    host: Host,
    decision_context: DecisionContext,
    waiting: Sequence[tuple[Card, Ticket]],
    now: datetime,
    result: TimeoutResult,
) -> Decision | None:
    origins = CommitOrigins(host, decision_context.repo, decision_context.snapshot)
    escalated = {
        i
        for c in history.read_log(host.root, None, grep=f"{ESCALATES}: ", files=True)
        for i in c.trailers.get(ESCALATES, "").split()
        if origins.is_ours(c)  # whoever can push could keep a question from a person
    }
    context = decision_context.context
    for card, ticket in _overdue_questions(waiting, now):
        if ticket.on_timeout == "default" and ticket.default is not None:
            context.cards.resolve_card(card.id, format_iso(context.now), TIMEOUT_ACTOR, ticket.default)
            result.answered[card.id] = ticket.default
        elif ticket.on_timeout == "reject":
            context.cards.resolve_card(
                card.id, format_iso(context.now), TIMEOUT_ACTOR, f"rejected: no answer by {ticket.due}"
            )
            result.rejected.append(card.id)
        elif card.id not in escalated:
            result.escalated.append(card.id)
        else:
            continue
        context.log_action("timeout", f"{card.id} {card.title}: no answer by {ticket.due}"[:500])
    late = [*result.answered, *result.rejected, *result.escalated]
    if not late:
        return None
    titles = [context.cards.committed_cards[card].title for card in late]
    marks = ((ESCALATES, " ".join(result.escalated)),) if result.escalated else ()
    only_escalated = len(result.escalated) == len(late)
    return Decision(commit_messages.questions_timed_out(titles, only_escalated=only_escalated), {}, marks)


def _overdue_questions(waiting: Iterable[tuple[Card, Ticket]], now: datetime) -> list[tuple[Card, Ticket]]:
    return [each for each in waiting if datetime.fromisoformat(each[1].due) <= now]
