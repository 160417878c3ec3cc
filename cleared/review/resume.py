"""Questions and their runs: going on with one that was answered, and settling those whose time has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cleared.cards import store
from cleared.cards.model import Card
from cleared.clock import iso
from cleared.errors import ClearedError, UsageError
from cleared.runs.asking import Ended, again
from cleared.runs.attempt import MakeExecutor
from cleared.runs.consumed import ended
from cleared.runs.desk import Decided, Desk, decide
from cleared.runs.execute import run_agent
from cleared.runs.host import Host
from cleared.runs.outcome import RunResult
from cleared.runs.source import CommittedSource
from cleared.runs.trace import Traces
from cleared.vcs import Repository, Snapshot, history, origin

ESCALATES = "Escalates"
"""The trailer of the commit that notes that nobody answered in time."""
TIMEOUT = "timeout"


@dataclass(slots=True)
class Due:
    """What became of questions whose time had come, by card, and of runs that were taken up."""

    commit: str | None = None
    answered: dict[str, str] = field(default_factory=dict)
    rejected: list[str] = field(default_factory=list)
    escalated: list[str] = field(default_factory=list)
    runs: list[RunResult] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    next: datetime | None = None
    """When the next open question comes due."""

    def data(self) -> dict[str, Any]:
        return {"commit": self.commit, "answered": self.answered, "rejected": self.rejected,
                "escalated": self.escalated, "runs": [r.data() for r in self.runs], "said": self.said}  # fmt: skip


def resume(host: Host, executor: MakeExecutor, card_id: str) -> RunResult | None:
    """Run again the run that this question stopped, with all answers that its questions have; None where it has
    ended already.

    Raises ``UsageError`` where there is no such question or no answer yet, and what a run raises.
    """
    cards = _cards(host)
    card = cards.get(card_id)
    if card is None or not _answered(card):
        raise UsageError(f"{card_id} is not an answered question", remedy="cleared queue list shows the open ones.")
    going_on = again(card, _answers(cards.values(), str(card.details.get("run"))))
    name = going_on.script.partition("@")[0].rsplit("/", 1)[-1].removesuffix(".py")
    try:
        return run_agent(host, executor, name, again=going_on)
    except Ended:
        return None


def unfinished(host: Host, repo: Repository, snapshot: Snapshot, cards: Mapping[str, Card], card: Card) -> bool:
    """Whether the question is answered and its run still has to go on: it made no commit, did not fail, and asks
    nothing else."""
    run = card.details.get("run")
    if not _answered(card) or any(
        (c.kind == "failed_run" and c.run_id == run)
        or (c.kind == "question" and c.status == "open" and c.details.get("run") == run)
        for c in cards.values()
    ):  # fmt: skip
        return False
    known = Traces(host.layout.state_dir).run(str(run))
    # A run that changes nothing makes no commit; where the trace is lost it is run again, and changes nothing.
    return not (known and known.get("status") == "succeeded") and not ended(host, repo, snapshot, str(run))


def due(host: Host, executor: MakeExecutor, now: datetime, *, own: bool = False) -> Due:
    """Settle the open questions that nobody answered by ``now``, each as its script said, in one commit; then go on
    with every run that has its answers, also those whose going on was interrupted.

    ``own``: only questions that this clone asked. Two clones that see the same answer must not both go on by
    themselves.
    """
    done = Due()
    with host.reading() as repo:
        mine = origin(repo)
        cards = store.load(CommittedSource(Snapshot(repo, repo.head())), host.layout.queue_dir)

    def counts(card: Card) -> bool:
        return not own or card.details.get("origin") in (None, mine)

    if _late(filter(counts, cards.values()), now):

        def act(desk: Desk) -> Decided | None:
            return _expire(host, desk, now, done, counts)

        done.commit = decide(host, "queue expire", act, by=TIMEOUT)
        cards = _cards(host)
    done.next = _next(cards.values(), now)
    for card in _to_go_on(host, cards, counts):
        try:
            result = resume(host, executor, card.id)
        except ClearedError as error:  # one that may not go on keeps nobody else from it
            done.said.append(f"{card.title}: {error}")
            continue
        if result is not None:
            done.runs.append(result)
    return done


def _to_go_on(host: Host, cards: Mapping[str, Card], counts: Callable[[Card], bool]) -> list[Card]:
    """One question of each run that has its answers, and has not gone on."""
    found: dict[str, Card] = {}
    with host.reading() as repo:
        snapshot = Snapshot(repo, repo.head())
        for card in cards.values():
            run = card.details.get("run") if card.kind == "question" else None
            if run is not None and run not in found and counts(card) and unfinished(host, repo, snapshot, cards, card):
                found[run] = card
    return list(found.values())


def _next(cards: Iterable[Card], now: datetime) -> datetime | None:
    """When the next open question comes due that is not due yet."""
    found = []
    for card in cards:
        if card.kind == "question" and card.status == "open" and not _late([card], now):
            with suppress(ValueError, TypeError):
                found.append(datetime.fromisoformat(str(card.details.get("due"))))
    return min(found, default=None)


def _expire(host: Host, desk: Desk, now: datetime, done: Due, counts: Callable[[Card], bool]) -> Decided | None:
    known = {
        i for c in history.log(host.root, None, grep=f"{ESCALATES}: ") for i in c.trailers.get(ESCALATES, "").split()
    }
    context = desk.context
    for card in _late(filter(counts, context.cards.known.values()), now):
        then, default = card.details.get("on_timeout"), card.details.get("default")
        if then == "default" and default in card.details.get("choices", ()):
            context.cards.resolve(card.id, iso(context.now), TIMEOUT, str(default))
            done.answered[card.id] = str(default)
        elif then == "reject":
            context.cards.resolve(card.id, iso(context.now), TIMEOUT, f"rejected: no answer by {card.details['due']}")
            done.rejected.append(card.id)
        elif card.id not in known:
            done.escalated.append(card.id)
        else:
            continue
        context.note("timeout", f"{card.id} {card.title}: no answer by {card.details['due']}"[:500])
    late = [*done.answered, *done.rejected, *done.escalated]
    if not late:
        return None
    title = context.cards.known[late[0]].title
    said = f"no answer in time: {title}" if len(late) == 1 else f"no answer in time: {len(late)} questions"
    marks = ((ESCALATES, " ".join(done.escalated)),) if done.escalated else ()
    return Decided(f"{'log' if len(done.escalated) == len(late) else 'confirm'}: {said}"[:200], {}, marks)


def _late(cards: Iterable[Card], now: datetime) -> list[Card]:
    found = []
    for card in cards:
        if card.kind == "question" and card.status == "open":
            try:
                late = datetime.fromisoformat(str(card.details.get("due"))) <= now
            except (ValueError, TypeError):  # a card that was made by hand never comes due
                continue
            if late:
                found.append(card)
    return found


def _cards(host: Host) -> dict[str, Card]:
    with host.reading() as repo:
        return store.load(CommittedSource(Snapshot(repo, repo.head())), host.layout.queue_dir)


def _answered(card: Card) -> bool:
    return (
        card.kind == "question" and card.status == "resolved" and card.resolution in card.details.get("choices", ())
    )  # fmt: skip


def _answers(cards: Iterable[Card], run: str) -> dict[str, str]:
    """Question → answer; of a question that was asked again what was answered last, and nothing while it is open."""
    found: dict[str, str] = {}
    for card in cards:
        if card.kind == "question" and card.details.get("run") == run:
            found.pop(str(card.details["key"]), None)
            if _answered(card):
                found[str(card.details["key"])] = str(card.resolution)
    return found
