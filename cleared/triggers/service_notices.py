"""What the service itself writes into the books' history: a card, and a file set aside. Each is one commit."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.base.safe_files import read_stable
from cleared.base.safe_names import choose_free_name
from cleared.cards.card import card_id, list_texts
from cleared.cards.kinds import BAD_FILE, DUPLICATE_FILE, EVENT_CYCLE, FAILED_RUN, PUSH_REJECTED, SET_ASIDE
from cleared.cards.refused_files import list_card_files, stage_refusals
from cleared.changes import commit_messages
from cleared.changes.auto_resolve import RESOLVED_BY
from cleared.changes.consumed_events import iter_emitted_events
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.git import LocalMove, history
from cleared.runs.attempt import Event
from cleared.runs.failed_runs import retry_details
from cleared.sandbox.trigger_kinds import EVENT
from cleared.triggers.ended_jobs import find_job_requester
from cleared.triggers.event_stream import JOB_FINISHED, RecordedEvent
from cleared.workspace.watched_names import FAILED_FOLDER


def report_event_cycle(host: Host, agents: list[str], recorded: RecordedEvent) -> None:
    """A chain of events was stopped: a card with the chain."""
    chain = [*_trace_chain(host, recorded), f"{recorded.event.name} → {', '.join(agents)}"]
    title = f"A chain of events was stopped after {recorded.event.depth - 1}: {_shortest_cycle(chain)}"
    _add_card(
        host,
        EVENT_CYCLE.name,
        (recorded.event.name, *agents, recorded.made_by),
        title[:300],
        chain=chain,
        event=recorded.event.name,
        event_key=recorded.event.key,
        agents=agents,
        remedy="Let one of these agents not emit what starts the other. triggers.max_depth in config.yaml says how "
        "long a chain may be.",
    )


def report_event_rate(host: Host, agent: str, event: str, most: int, hour: str) -> None:
    """Events start an agent too often: a card, one for each hour."""
    _add_card(
        host,
        EVENT_CYCLE.name,
        (agent, hour),
        f"{agent}: events started it {most} times within an hour; more wait",
        event=event,
        agents=[agent],
        chain=[f"{event} → {agent}"],
        remedy="If it is meant, raise triggers.max_event_runs in config.yaml; else let less be emitted.",
    )


def report_duplicate_file(host: Host, agent: str, path: str, digest: str, earlier: str) -> None:
    """A file has the content of one that the agent had a run for."""
    title = f"{path} has the content of {earlier}, which {agent} has had; nothing was run"
    _add_card(host, DUPLICATE_FILE.name, (digest, path, agent), title[:300], file=path, earlier=earlier, sha256=digest)


def report_brought_files(host: Host, brought: Mapping[str, ClearedError]) -> None:
    """Files of watched folders that git brought: a card for those of a folder, unless an open one names them."""

    def make_decision(decision_context: DecisionContext) -> Decision | None:
        context, folders = decision_context.context, dict[str, dict[str, ClearedError]]()
        context.agent = RESOLVED_BY
        named = {path for card in context.cards.open_cards(BAD_FILE.name) for path in list_card_files(card)}
        for path, error in brought.items():
            drop = f"{host.layout.import_dir}/"
            folder = host.layout.import_dir if path.startswith(drop) else path.rpartition("/")[0]
            if path not in named:
                folders.setdefault(folder, {})[path.removeprefix(f"{folder}/")] = error
        for folder, errors in folders.items():
            fate = "imported" if folder == host.layout.import_dir else "taken"
            most = host.config.import_.max_bytes
            stage_refusals(errors, host.root / folder, folder, most, context.stage_card, fate)
        if not context.cards.added:
            return None
        return Decision(commit_messages.cards_opened([card.title for card in context.cards.added.values()]))

    commit_decision(host, f"service: {BAD_FILE.name}", make_decision, by=RESOLVED_BY, collects=[])


def report_push_rejections(host: Host, tries: int, day: str) -> None:
    """Others pushed each time that a fleet's worker had done its work: a card, one for each day."""
    _add_card(
        host,
        PUSH_REJECTED.name,
        (day,),
        f"Others have pushed {tries} times in a row while a worker was at work; it tries again",
        remedy="Look who pushes so often: git log. Two machines may serve these books: end cleared up on one of them.",
    )


def report_crash(host: Host, agent: str, event: Event, why: str) -> None:
    """A run killed the whole process, so this card is the only report of it."""
    key = ("died", agent, event.key or "")
    about = retry_details(event.to_record(), agent, card_id(FAILED_RUN.name, *key))
    _add_card(
        host,
        FAILED_RUN.name,
        key,
        f"{agent} failed: {why}"[:300],
        about=agent,
        cause=why,
        not_done="nothing of it was kept",
        **about,
    )


def _add_card(
    host: Host, kind: str, key: tuple[str, ...], title: str, *, about: str = RESOLVED_BY, **details: Any
) -> None:
    """Commit a card, unless there is one with this key. ``about``: the agent, where it is one agent's."""

    def make_decision(decision_context: DecisionContext) -> Decision | None:
        existing = decision_context.context.cards.committed_cards.get(card_id(kind, *key))
        if existing is not None:
            return None
        decision_context.context.agent = about
        decision_context.context.stage_card(kind, key, title, **details)
        return Decision(commit_messages.cards_opened([title]))

    commit_decision(host, f"service: {kind}", make_decision, by=RESOLVED_BY, collects=[])


def set_file_aside(host: Host, agent: str, path: str, digest: str, cause: str, times: int) -> str | None:
    """Move a file with which every run fails to ``import/failed/``, with a card that says why. Returns its new path.

    None where it was not moved: it lies outside of ``import/``, or has another content by now.
    """
    drop = f"{host.layout.import_dir}/"
    target: list[str] = []

    def make_decision(decision_context: DecisionContext) -> Decision | None:
        moves: tuple[LocalMove, ...] = ()
        files: dict[str, bytes | None] = {}
        if path.startswith(drop):
            try:
                data, _ = read_stable(host.root / path, host.config.import_.max_bytes, shown=path)
            except ClearedError:
                return None
            if hashlib.sha256(data).hexdigest() != digest:
                return None
            target.append(_find_free_name(host, decision_context, f"{drop}{FAILED_FOLDER}/{path.removeprefix(drop)}"))
            in_git = host.config.import_.keep == "git"
            if decision_context.snapshot.find_blob_id(path) is not None:
                files = {path: None, target[0]: data}
            else:
                files = {target[0]: data} if in_git else {}
                moves = (LocalMove(path, None if in_git else target[0], data),)
        where = f", and was set aside as {target[0]}" if target else ""
        title = f"{path} made {agent} fail{where}: {cause.splitlines()[0] if cause else 'no cause is known'}"
        decision_context.context.agent = agent
        decision_context.context.stage_card(
            SET_ASIDE.name,
            (agent, path, digest, decision_context.context.run_id),
            title[:300],
            file=target[0] if target else path,
            cause=cause[:4_000],
            runs=times,
            agents=[agent],
            sha256=digest,
            remedy=f"When the cause is gone, move it back to {drop}."
            if target
            else f"Change {agent}, or the file, to have it tried again.",
        )
        for card in decision_context.context.cards.open_cards(FAILED_RUN.name):  # the new card says it
            if card.agent == agent and digest in list_texts(card.details, "files"):
                decision_context.context.cards.resolve_card(
                    card.id, format_iso(decision_context.context.now), RESOLVED_BY, "the file was set aside"
                )
        return Decision(commit_messages.cards_opened([title]), files, local_moves=moves)

    commit_decision(host, f"service: set {path} aside", make_decision, by=RESOLVED_BY)
    return target[0] if target else None


def _find_free_name(host: Host, decision_context: DecisionContext, wanted: str) -> str:
    snapshot = decision_context.snapshot
    return choose_free_name(wanted, lambda n: snapshot.find_entry(n) is not None or os.path.lexists(host.root / n))


def _trace_chain(host: Host, recorded: RecordedEvent) -> list[str]:
    """The runs that led to it, oldest first: ``event → agent``."""
    chain: list[str] = []
    run = recorded.made_by
    for _ in range(recorded.event.depth):
        commits = history.find_by_trailer(host.root, "Run", run)
        if not commits:
            break
        trailers = commits[0].trailers
        kind, _, key = (trailers.get("Event") or trailers.get("Attempt") or "").partition(" ")
        name = _event_name(host, key) if kind == EVENT.name else kind
        chain.append(f"{name} → {trailers.get('Agent', '?')}")
        if kind != EVENT.name:
            break
        run = find_job_requester(host, key).removeprefix("run:") if name == JOB_FINISHED else key.partition("/")[0]
    return chain[::-1]


def _event_name(host: Host, key: str) -> str:
    """What an event is called, by its key."""
    ordinal = key.partition("/")[2]
    if ordinal.startswith("job_"):
        return JOB_FINISHED
    if not ordinal.isdigit():
        return ordinal
    with host.open_last_commit() as snapshot:
        events = iter_emitted_events(CommittedSource(snapshot))
        return next((str(event["name"]) for event in events if event["id"] == key), "an event")


def _shortest_cycle(chain: list[str]) -> str:
    """The shortest end of the chain that shows what goes round."""
    steps = [step.rpartition(" → ")[2] for step in chain]
    last = steps[-1]
    for at in range(len(steps) - 2, -1, -1):
        if steps[at] == last:
            return " → ".join(steps[at:])
    return " → ".join(steps[-4:])
