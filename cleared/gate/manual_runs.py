"""Agents that run because somebody asks for it: now, or once more for the card of a run that failed or waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleared.base.errors import UsageError
from cleared.base.json_values import refuse_unstorable
from cleared.cards.kinds import FAILED_RUN, QUESTION
from cleared.changes.committed_cards import read_cards
from cleared.changes.consumed_events import AlreadyRun
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.runs.attempt import Event
from cleared.runs.execution import run_agent
from cleared.runs.outcome import RunResult
from cleared.sandbox.header import Header
from cleared.sandbox.trigger_kinds import kinds_of
from cleared.trust.approval_record import record_folder


def run_now(
    host: Host,
    name: str,
    *,
    dry_run: bool = False,
    event: Event | None = None,
    texts: Mapping[str, bytes | None] | None = None,
) -> RunResult:
    """Run an agent (see ``runs.execution.run_agent``).

    A dry run takes the working copy, or ``texts`` over what is approved. What is not approved must pass the static
    checks before any of it runs.
    """
    if dry_run:
        from cleared.gate.static_checks import check_unapproved

        agent = check_unapproved(host, name, texts)
        event = event or _make_sample_event(host, agent.header)
    return run_agent(host, name, dry_run=dry_run, event=event, texts=texts)


def _make_sample_event(host: Host, header: Header | None) -> Event | None:
    """With the payload that the header has for dry runs; None where it has none."""
    payloads = [kind.sample_payload(header) for kind in kinds_of(header)] if header is not None else []
    payload = next((each for each in payloads if each is not None), None)
    if payload is None:
        return None
    host.show_message("the payload is the sample of the header; --data JSON gives another")
    return Event(payload=payload)


def run_command(
    host: Host,
    name: str,
    *,
    dry_run: bool = False,
    data: Any = None,
    key: str | None = None,
    again: str | None = None,
    believed: bool = False,
) -> RunResult:
    """What ``agent run`` does. ``data``: the event's payload; ``key``: what the run is for, once; ``again`` and
    ``believed``: see ``run_again``.

    Where the run shows that a change of the agent turned out badly, that is taken back.

    Raises as ``run_now`` and ``run_again`` do, and ``UsageError`` for options that exclude each other and for a payload
    that cannot be kept.
    """
    try:
        if data is not None:
            refuse_unstorable(data)
    except ValueError as error:
        raise UsageError(f"the payload cannot be taken: {error}") from None
    if again is not None and (dry_run or data is not None):
        raise UsageError("again goes without dry-run and data", remedy="Leave them out, or leave out the card.")
    if again is not None:
        result = run_again(host, name, again, believed=believed)
    else:
        result = run_now(
            host, name, dry_run=dry_run, event=Event(payload=data, key=key) if data is not None or key else None
        )
    if not dry_run and (host.root / host.layout.shadows).exists():
        from cleared.gate.shadow import run_shadows

        run_shadows(host, name)
    if result.commits and _was_changed(host, name):
        from cleared.gate.proposals.taking_back import take_back_bad_changes

        result.warnings += take_back_bad_changes(host, [name])
    return result


def _was_changed(host: Host, name: str) -> bool:
    """Whether anything of an agent was ever approved, as the working tree says: most are as they came."""
    folders = (host.layout.agent_path(name), host.layout.scripts_dir)
    return any((host.root / record_folder(path)).is_dir() for path in folders)


def run_again(host: Host, name: str, card_id: str, *, believed: bool = False) -> RunResult:
    """Run an agent for the event of a run that failed, or whose question is held. ``card_id``: the card of that run.

    ``believed``: nothing but the card says what the event was, and a person has confirmed it.
    Raises ``UsageError`` where the card is not of such a run of this agent, ``Held`` or ``PolicyError`` where nothing
    proves what the card says, and what a run raises.
    """
    from cleared.runs.failed_runs import read_card_event  # late: ``run_command`` seldom comes here
    from cleared.runs.suspended_runs import ask_again

    if believed:
        from cleared.trust.person_only import refuse_in_job

        refuse_in_job()
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        card = read_cards(host, snapshot).find_one(card_id)
        is_question = card.kind == QUESTION.name
        if not is_question and (card.kind != FAILED_RUN.name or card.agent != name):
            raise UsageError(f"{card_id} is not the card of a failed run of {name}", remedy="See: cleared queue list.")
        event = None if is_question else read_card_event(host, repo, snapshot, card, believed=believed)
    try:
        if not is_question:
            return run_now(host, name, event=event)
        return run_agent(host, name, again=lambda questions: ask_again(questions, card.id, name, believed=believed))
    except AlreadyRun:
        settle = f"queue reject {card.id} --reason …" if is_question else f"queue answer {card.id} seen"
        raise UsageError(
            f"{name} has had its run for that since", remedy=f"Settle the card: cleared {settle}."
        ) from None
