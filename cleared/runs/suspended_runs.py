"""Runs that wait for an answer. A run stops at its question and is discarded; when the answer is there it runs again
from its first line, with the first run's id, clock and script, and the answers so far.

What it needs for that is in a ticket on its card, signed by the machine it ran on, so it survives restarts, clones and
the loss of ``.cleared/``, and nobody else can have it run.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, PolicyError, UsageError, WorkspaceError
from cleared.base.json_values import to_json, to_plain_json
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import QUESTION
from cleared.changes import commit_messages, draft
from cleared.changes.consumed_events import AlreadyRun, is_consumed
from cleared.changes.host import Host, current_user
from cleared.domains.installed_domains import describe_drafts
from cleared.git import Repository, Snapshot, find_clone_id
from cleared.primitives.queue import Question
from cleared.runs.attempt import Attempt, Event, Resumption, parse_event
from cleared.runs.question_tickets import Held, Questions, displayed_digest
from cleared.sandbox.trigger_kinds import ON_DEMAND
from cleared.trust.approval_record import digest_of
from cleared.trust.keys import run_key
from cleared.trust.tickets import Ticket, sign_ticket
from cleared.workspace.location import name_script

MAX_TRIED_CHOICES: Final = 4
"""Choices whose outcome is rehearsed for the card, at most."""


class Ended(PolicyError):
    """The run has gone on already."""


def record_question(
    host: Host,
    repo: Repository,
    snapshot: Snapshot,
    attempt: Attempt,
    question: Question,
    trailers: list[tuple[str, str]],
    ended: tuple[str, ...] = (),
) -> tuple[list[str], list[Card]]:
    """The card of a question, in one ``log:`` commit; asked before, it is the same card and nothing is committed.

    ``ended``: held questions that this one is asked instead of.
    """
    fresh = attempt.fresh_context()
    questions = Questions(host, repo, snapshot, fresh.cards.committed_cards)
    earlier = [card for card, _ in questions.list_run_questions(attempt.run_id)]
    same = [c for c in earlier if c.details.get("key") == question.key]
    if waiting := [c for c in same if c.status == "open"]:
        return [], waiting[:1]
    fresh.log = attempt.context.log.copy_rows()
    fresh.log_action("run", f"waits for an answer: {question.text}"[:2_000])
    details = {
        "question": question.text,
        "choices": list(question.choices),
        "default": question.default,
        "on_timeout": question.on_timeout,
        "due": format_iso(attempt.now + timedelta(seconds=question.seconds)),
        "key": question.key,
        "run": attempt.run_id,
        "event": dict(attempt.event),
        "futures": _dry_run_choices(host, repo, snapshot, attempt, question),
    }
    if instead := _find_earlier_question(earlier, question):
        details["instead_of"] = instead
        fresh.log_action("run", f"the books have moved since: it asked something else before: {instead}"[:2_000])
    clean = host.redactor  # what is signed is what is kept
    card = Card(
        _new_card_id(fresh.cards.committed_cards, attempt, question),
        QUESTION.name,
        clean.redact_text(f"{attempt.script.name} asks: {question.text}"[:300]),
        format_iso(attempt.now),
        attempt.run_id,
        None,
        attempt.script.name,
        clean.redact_data(to_plain_json(details)),
    )
    try:
        card = replace(card, details={**card.details, "ticket": _make_ticket(questions, attempt, card).to_dict()})
    except WorkspaceError as error:
        host.show_message(f"the question is held: its run cannot be signed for: {error}")
    fresh.cards.add_card(card)
    for each in ended:
        fresh.cards.record_continuation(each, format_iso(host.clock.now()), attempt.script.name, attempt.run_id)
    subject = commit_messages.run_waits(attempt.script.name, question.text)
    plan = draft.CommitPlan(subject, trailers, command_key=host.command_key)
    return [draft.commit_draft(host, repo, snapshot, fresh, plan)], [card]


def _new_card_id(cards: Mapping[str, Card], attempt: Attempt, question: Question) -> str:
    """The id of a question that is not asked yet."""
    number = 0
    while (identity := card_id(QUESTION.name, attempt.run_id, question.key, *["again"] * number)) in cards:
        number += 1
    return identity


def _make_ticket(questions: Questions, attempt: Attempt, card: Card) -> Ticket:
    """Raises ``WorkspaceError`` or ``PolicyError`` where it cannot be signed here."""
    workspace = questions.approvals.workspace
    questions.approvals.identity.must_be_pinned()
    if not workspace:
        raise WorkspaceError("this workspace has no id yet", remedy="Approve something: cleared agent propose.")
    key = run_key(questions.host.root, create=True)
    assert key is not None
    details = card.details
    return sign_ticket(
        key,
        Ticket(
            workspace,
            card.id,
            attempt.run_id,
            attempt.script.file,
            digest_of(attempt.script.source.encode()),
            details["event"],
            format_iso(attempt.now),
            attempt.run_id,
            details["key"],
            details["question"],
            tuple(details["choices"]),
            details["default"],
            details["on_timeout"],
            details["due"],
            dict(attempt.context.questions.answers),
            find_clone_id(questions.repo, make=True) or "",
            displayed_digest(card),
            current_user(),
        ),
    )


def _find_earlier_question(earlier: list[Card], question: Question) -> str | None:
    """What the run asked at this place when the books were others."""
    place = f"{question.key.partition(':')[0]}:"
    matches = [
        c for c in earlier if str(c.details.get("key")).startswith(place) and c.details.get("key") != question.key
    ]
    return str(matches[-1].details.get("question")) if matches else None


def _dry_run_choices(
    host: Host, repo: Repository, snapshot: Snapshot, attempt: Attempt, question: Question
) -> dict[str, Any]:
    """What would happen for each choice: dry runs, never committed."""
    if len(question.choices) > MAX_TRIED_CHOICES:
        return {}
    event = parse_event(attempt.event)
    outcomes: dict[str, Any] = {}
    for choice in question.choices:
        answers = {**attempt.context.questions.answers, question.key: choice}
        trial = Attempt(
            host,
            repo,
            snapshot,
            attempt.script,
            Resumption(event, run_id=attempt.run_id, now=attempt.now, answers=answers),
            dry_run=False,
            scripts=attempt.scripts,
            say=lambda _: None,
        )
        try:
            result = trial.execute_script()
            trial.context.host.check_draft()
        except ClearedError as e:
            outcomes[choice] = {"error": str(trial.explain_error(e))[:1_000]}
            continue
        context, drafts = trial.context, describe_drafts(trial.context.parts)
        outcomes[choice] = {
            **{name: list(draft.records.values()) for name, draft in drafts.items()},
            "statuses": {record: status for draft in drafts.values() for record, status in draft.statuses.items()},
            "cards": [c.title for c in context.cards.added.values()],
            "result": to_json(result),
        }
    return outcomes


def resume_run(questions: Questions, identity: str, name: str) -> Resumption:
    """How the run of an answered question of this agent goes on: asked under the lock, so that of two who saw the
    answer one takes it up.

    Raises ``Ended`` where it has, ``Held`` where it may not as things are, ``UsageError`` where it has no answer yet.
    """
    card = questions.find_question(identity)
    if card.gone_on is not None:
        raise Ended(f"the run of {card.id} has gone on already")
    ticket = questions.read_ticket(card)
    if questions.is_run_finished(card, ticket):
        raise Ended(f"the run {ticket.run} has gone on already")
    run_questions = questions.list_run_questions(ticket.run)
    card, ticket = run_questions[-1]
    if questions.find_resumable_ticket(card) is None:
        raise UsageError(f"{card.id} waits for its answer", remedy=f"cleared queue answer {card.id} CHOICE.")
    questions.require_live_version(ticket)
    if name_script(ticket.path) != name:
        raise UsageError(f"{card.id} is not a question of {name}", remedy="cleared queue show.")
    answers: dict[str, str] = {}
    for each, its in run_questions:  # of a question that was asked again, what was answered last
        answer = questions.find_answer(each, its)
        answers |= its.answers
        answers.pop(its.place, None)
        if answer in its.choices:
            answers[its.place] = str(answer)
    return Resumption(
        parse_event(ticket.event),
        tuple(each.id for each, _ in run_questions),
        ticket.run,
        datetime.fromisoformat(ticket.clock),
        ticket.place,
        answers,
    )


def ask_again(questions: Questions, identity: str, name: str, *, believed: bool) -> Resumption:
    """How the run of a held question is had asked anew: by the agent as it is now, today, for the same event.

    Raises ``UsageError`` where it needs no asking again, ``AlreadyRun`` where the agent has had its run for that, and
    ``Held`` where nothing proves what it was run for: ``believed``, it is taken from the card all the same.
    """
    card = questions.find_question(identity)
    if card.gone_on is not None:
        raise UsageError(f"{card.id} is settled: {card.resolution}", remedy="cleared queue list shows what waits.")
    cards: tuple[str, ...] = (card.id,)
    try:
        ticket = questions.read_ticket(card)
    except Held:
        if card.agent != name:
            raise UsageError(f"{card.id} is not a question of {name}", remedy="cleared queue show.") from None
        event = _read_card_event(card, believed=believed)
    else:
        if name_script(ticket.path) != name:
            raise UsageError(f"{card.id} is not a question of {name}", remedy="cleared queue show.")
        if questions.is_run_finished(card, ticket):
            raise UsageError(f"the run of {card.id} has gone on already", remedy="cleared run list shows it.")
        _require_held(questions, card)
        event, cards = parse_event(ticket.event), tuple(each.id for each, _ in questions.list_run_questions(ticket.run))
    if event.key is not None and is_consumed(
        questions.host, questions.repo, questions.snapshot, name, event.key, asking=False
    ):
        raise AlreadyRun(f"{name} has had its run for {event.kind} {event.key}")
    return Resumption(event, cards)


def _require_held(questions: Questions, card: Card) -> None:
    if card.status == "open" and questions.find_hold_error(card) is None:
        raise UsageError(f"{card.id} waits for its answer", remedy=f"cleared queue answer {card.id} CHOICE.")
    with suppress(PolicyError):
        if card.status == "resolved" and questions.find_resumable_ticket(card) is None:
            raise UsageError(f"{card.id} is settled: {card.resolution}", remedy="cleared queue list shows what waits.")


def _read_card_event(card: Card, *, believed: bool) -> Event:
    """What the card says that its run was for."""
    try:
        event = parse_event(card.details["event"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return Event()
    if event.kind == ON_DEMAND.name and event.payload is None and not event.files:
        return Event()
    if not believed:
        about = [event.kind, event.name, str(event.key), *(path for path, _ in event.files)]
        data = "" if event.payload is None else f" with {str(to_plain_json(event.payload))[:300]}"
        raise Held(
            f"nothing proves what {card.id} was asked for; the card says: {' '.join(filter(None, about))}{data}",
            remedy=f"If that is right, run it for that: cleared agent run {card.agent} --again {card.id} --yes",
        )
    return event


def reissue_question(questions: Questions, card: Card, identity: str) -> Mapping[str, Any]:
    """The details of a card that asks the same again under another id, for its run to go on with; without a ticket
    where the first one proves nothing."""
    details = {name: value for name, value in card.details.items() if name != "ticket"}
    try:
        ticket, key = questions.read_ticket(card), run_key(questions.host.root, create=True)
    except ClearedError:
        return details
    assert key is not None
    again = replace(ticket, card=identity, by=current_user(), origin=find_clone_id(questions.repo, make=True) or "")
    return {
        **details,
        "ticket": sign_ticket(key, replace(again, shown=displayed_digest(replace(card, details=details)))).to_dict(),
    }
