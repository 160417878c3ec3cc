"""A run that asks a person is the same thing twice: it stops at the question and nothing of it is kept; when the
answer is there it runs again from its first line, with the first run's id, clock and script, and the answers so far.

What it needs for that is in its card, so it survives restarts, clones and the loss of ``.cleared/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from cleared.cards.model import Card, card_id
from cleared.clock import iso
from cleared.errors import ClearedError, PolicyError, WorkspaceError
from cleared.primitives.journal import show_json
from cleared.primitives.queue import Question
from cleared.registry.wire import to_json
from cleared.runs import draft
from cleared.runs.attempt import Attempt, Event, MakeExecutor, event_of
from cleared.runs.consumed import ended
from cleared.runs.host import Host
from cleared.runs.scripts import Script, Scripts
from cleared.vcs import Repository, Snapshot, origin

FUTURES: Final = 4
"""Choices whose outcome is rehearsed for the card, at most."""


class Ended(PolicyError):
    """The run has gone on already."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Again:
    """A run that goes on: what it was when it asked first."""

    run_id: str
    now: datetime
    script: str
    """``path@blob``."""
    event: Event
    answers: Mapping[str, str] = field(default_factory=dict)


def record(
    host: Host, repo: Repository, snapshot: Snapshot, attempt: Attempt, question: Question, executor: MakeExecutor,
    trailers: list[tuple[str, str]],
) -> tuple[list[str], list[Card]]:  # fmt: skip
    """The card of a question, in one ``log:`` commit; asked before, it is the same card and nothing is committed."""
    fresh = attempt.fresh_context()
    earlier = [c for c in fresh.cards.known.values() if c.kind == "question" and c.details.get("run") == attempt.run_id]
    same = [c for c in earlier if c.details.get("key") == question.key]
    if waiting := [c for c in same if c.status == "open"]:
        return [], waiting[:1]
    identity = card_id("question", attempt.run_id, question.key, *("again" for _ in same))
    fresh.log = attempt.context.log.copy()
    fresh.note("run", f"waits for an answer: {question.text}"[:2_000])
    details = {
        "question": question.text, "choices": list(question.choices), "default": question.default,
        "on_timeout": question.on_timeout, "due": iso(attempt.now + timedelta(seconds=question.seconds)),
        "key": question.key, "run": attempt.run_id, "clock": iso(attempt.now),
        "script": f"{attempt.script.file}@{attempt.script.blob}", "answers": dict(attempt.context.answers),
        "event": dict(attempt.event), "origin": origin(repo, make=True),
        "futures": _futures(host, repo, snapshot, attempt, question, executor),
    }  # fmt: skip
    if instead := _instead(earlier, question):
        details["instead_of"] = instead
        fresh.note("run", f"the books have moved since: it asked something else before: {instead}"[:2_000])
    card = Card(identity, "question", f"{attempt.script.name} asks: {question.text}"[:300], iso(attempt.now),
                attempt.run_id, None, attempt.script.name, details)  # fmt: skip
    fresh.cards.add(card)
    subject = f"log: {attempt.script.name} asks: {' '.join(question.text.split())}"[:200]
    return [draft.commit(host, repo, snapshot, fresh, subject, trailers)], [card]


def _instead(earlier: list[Card], question: Question) -> str | None:
    """What the run asked at this place when the books were others."""
    place = f"{question.key.partition(':')[0]}:"
    found = [c for c in earlier if str(c.details.get("key")).startswith(place) and c.details.get("key") != question.key]
    return str(found[-1].details.get("question")) if found else None


def _futures(
    host: Host, repo: Repository, snapshot: Snapshot, attempt: Attempt, question: Question, executor: MakeExecutor
) -> dict[str, Any]:
    """What would happen for each choice: rehearsed, never sealed."""
    if len(question.choices) > FUTURES:
        return {}
    event = event_of(attempt.event)
    found: dict[str, Any] = {}
    for choice in question.choices:
        answers = {**attempt.context.answers, question.key: choice}
        trial = Attempt(
            host, repo, snapshot, attempt.script, event, dry_run=False, scripts=attempt.scripts, now=attempt.now,
            say=lambda _: None, run_id=attempt.run_id, answers=answers,
        )  # fmt: skip
        try:
            result = trial.execute(executor)
            trial.context.check()
        except ClearedError as e:
            found[choice] = {"error": str(trial.explain(e))[:1_000]}
            continue
        context = trial.context
        found[choice] = {
            "entries": [
                show_json(context.books.entry(e.entry_id) or e)
                for entries in context.books.staged.values() for e in entries
            ],
            "statuses": dict(context.books.statuses), "cards": [c.title for c in context.cards.added.values()],
            "result": to_json(result),
        }  # fmt: skip
    return found


def again(card: Card, answers: Mapping[str, str]) -> Again:
    """How the run of a question goes on. Raises ``WorkspaceError`` for a card that does not say."""
    try:
        data = card.details
        return Again(
            str(data["run"]), datetime.fromisoformat(data["clock"]), str(data["script"]), event_of(data["event"]),
            {**{str(k): str(v) for k, v in data["answers"].items()}, **answers},
        )  # fmt: skip
    except (KeyError, TypeError, ValueError, AttributeError):
        raise WorkspaceError(f"the card {card.id} does not say which run it belongs to") from None


def script_of(host: Host, repo: Repository, scripts: Scripts, again: Again) -> tuple[Script, Scripts]:
    """The version that asked, which is the one that goes on. Raises ``PolicyError`` where it may not run any more, or
    has gone on already: asked under the lock, so that of two who saw the answer one takes it up."""
    if ended(host, repo, scripts.snapshot, again.run_id):
        raise Ended(f"the run {again.run_id} has gone on already")
    file, _, blob = again.script.partition("@")
    name = file.rsplit("/", 1)[-1].removesuffix(".py")
    if file != host.layout.agent_path(name):
        raise PolicyError(f"{file!r} is not an agent's script", remedy="Run the agent anew.")
    try:
        data = repo.object(blob)[1]
    except WorkspaceError:
        raise PolicyError(
            f"the version of {file} that asked is not in this clone", remedy="git fetch --unshallow"
        ) from None
    scripts.must_run(file, name, data)
    pinned = Scripts(host, scripts.snapshot, texts={file: data})
    return pinned.agent(name), pinned
