"""What is up, what comes next, and what went wrong: the service as data, read beside it.

What it says of each agent is kept between commands, as ten thousand signatures take seconds to verify; it is only
shown, never asked whether an agent may run. That file is sealed (``workspace.sealed_files``), and its name has all that
its content follows from: the folder of agents with their approvals as git names it, and what this user trusts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import Struct, structs
from msgspec.structs import asdict, replace

from cleared.base.clock import format_iso
from cleared.base.errors import BusyError, UsageError
from cleared.base.short_text import quote_text
from cleared.base.terminal import count_noun
from cleared.changes.audit.attested_state import find_doubt
from cleared.changes.audit.hand_commits import find_hand_commit
from cleared.changes.backup.last_backup import read_safety
from cleared.changes.host import Host
from cleared.changes.noticed_history import read_noticed_commit
from cleared.changes.record_sources import CommittedSource, PreloadedSource
from cleared.changes.trace import TraceStore
from cleared.changes.unfinished_merge import explain_unwritable, list_unfinished
from cleared.git import Repository, Snapshot, describe_lock_holder
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.schedule import Schedule
from cleared.sandbox.trigger_kinds import ON_DEMAND, kinds_of
from cleared.service.notify.channels import find_missing
from cleared.service.notify.push_subscriptions import PushFile, phones_trouble
from cleared.service.notify.script_messages import ScriptMessages, messages_trouble
from cleared.service.waiting_cards import read_waiting_cards
from cleared.triggers.agent_triggers import TriggeredAgent, TriggerIndex
from cleared.triggers.pending_deliveries import Delivery, peek_deliveries
from cleared.triggers.webhook_calls import count_waiting_calls
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import own_public_key
from cleared.trust.trust_store import load_trust
from cleared.trust.verification import remedy_of
from cleared.trust.workspace_pin import identify_workspace
from cleared.workspace.fleet_clones import find_served
from cleared.workspace.location import CONFIG_NAME
from cleared.workspace.lock import read_holder
from cleared.workspace.process_lock import find_running_service, read_service_status
from cleared.workspace.sealed_files import FOLDER, SealedFiles, digest_sources
from cleared.workspace.template import shipped_digests

_MONTH: Final = 31.0
_MAX_QUOTED: Final = 400
NOT_UP: Final = "the service is not up (cleared up)"


def service_status(host: Host) -> dict[str, Any]:
    """All that ``cleared status`` shows. ``trouble``: what a person should look at; empty is healthy."""
    state_dir, now = host.layout.state_dir, host.clock.now()
    service, status, lock = find_running_service(state_dir), read_service_status(state_dir), read_holder(state_dir)
    counts, deliveries = peek_deliveries(state_dir)
    agents = _describe_agents(host, now)
    by_agent: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        by_agent.setdefault(delivery.agent, []).append(delivery)
    for agent in agents:
        mine = by_agent.get(agent["name"], [])
        agent["waiting"] = len(mine)
        agent["held"] = next((d.why for d in mine if d.state == "held"), None)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        repository_trouble = list(_list_repository_trouble(host, repo, snapshot))
        waiting = read_waiting_cards(host, snapshot)
        safety = read_safety(repo)
    fleet = find_served(host.root)  # whose workers serve it
    trouble = [] if service or fleet else [NOT_UP]
    calls = 0 if service else count_waiting_calls(host.root)
    if calls:
        trouble.append(f"waiting until it is: {count_noun(calls, 'webhook call')}")
    if safety.last is not None and safety.is_late(now):
        trouble.append(f"no backup has what was committed since {safety.unsaved.oldest:%Y-%m-%d} (cleared backup)")
    trouble += repository_trouble
    if waiting.damage:
        trouble.append(f"the queue is damaged: {waiting.damage}")
    if status.get("problem"):
        trouble.append(f"nothing is run: {status['problem']}")
    if host.policy is not None and host.policy.problem is not None:
        trouble.append(str(host.policy.problem))
    if host.policy is not None and host.policy.fault is not None:
        trouble.append(f"nothing is run: {host.policy.fault}")
    notifications = status.get("notifications") or {}
    refusal = notifications.get("last_error")
    if cause := find_missing(host.config.notifications) or (refusal and quote_text(refusal, _MAX_QUOTED)):
        trouble.append(f"notifications are not sent: {cause}")
    messages = ScriptMessages(host).status_data()
    trouble += messages_trouble(messages)
    phones = PushFile(host.root).status_data() if host.config.notifications.push else {}
    trouble += phones_trouble(host, phones)
    trouble += _list_agent_trouble(agents, waiting.failed_agents)
    return {
        "workspace": str(host.root),
        "up": service is not None,
        "fleet": fleet or None,
        "ready": bool(status.get("ready")),
        "stopping": bool(status.get("stopping")),
        "pid": service.pid if service else None,
        "since": service.since if service else None,
        "confinement": status.get("confinement"),
        "running": status.get("running"),
        "lock": {"pid": lock.pid, "what": lock.what, "since": lock.since} if lock else None,
        "cards": waiting.open_cards,
        "deliveries": {"waiting": counts.get("waiting", 0), "held": counts.get("held", 0)},
        "notifications": notifications,
        "backup": safety.to_record(now),
        "messages": messages,
        "phones": phones,
        "agents": agents,
        "trouble": trouble,
    }


def _list_repository_trouble(host: Host, repo: Repository, snapshot: Snapshot) -> Iterator[str]:
    """Why nothing is written or run as the repository is, and why nobody should rely on the records yet."""
    if (git := describe_lock_holder(repo)) is not None:
        yield f"nothing is written meanwhile, deliveries wait: {git}"
    if (unwritable := explain_unwritable(repo, host.layout)) is not None:
        yield f"nothing is run: {unwritable}"
    else:
        yield from map(str, list_unfinished(repo, host.layout, everywhere=True))
    lost = None
    with suppress(BusyError):  # whoever is at work looks, too
        lost = host.find_lost_rows(repo, snapshot, 0.0)
    if lost is not None:
        yield f"{'' if lost.branch else 'nothing is run: '}{lost}. {lost.remedy}"
    if doubt := find_doubt(host, repo, snapshot) or find_hand_commit(host, repo, snapshot):
        yield f"{doubt}: cleared check"


def _list_agent_trouble(agents: list[dict[str, Any]], failed_agents: Sequence[str | None]) -> Iterator[str]:
    """Of which agents a person should know that they failed, or are not run."""
    for agent in agents:
        last = agent["last_run"]
        failed = last and (
            last["status"] == "killed" or (last["status"] == "failed" and agent["name"] in failed_agents)
        )
        if failed:  # what somebody has seen, or a later run settled, needs nobody any more
            said = quote_text(last["error"], _MAX_QUOTED) if last["error"] else last["run_id"]
            yield f"{agent['name']}: its last run {last['status']}: {said}"
        if said := _explain_refusal(agent["name"], agent["state"], agent["why"], agent["remedy"]):
            yield said
        if agent["held"] and agent["state"] != "disabled":
            yield f"{agent['name']} is held: {agent['held']}"


def _explain_refusal(name: str, state: str, why: str, remedy: str) -> str:
    """Why an agent is not run, though nobody has disabled it; empty where it is."""
    return "" if state in ("approved", "starter", "disabled") else f"{name} is not run: {why}. {remedy}"


def find_unapproved(host: Host) -> dict[str, str]:
    """What has no effect before somebody approves it, and why: the settings, by the name of their file, and the agents
    that something starts."""
    found, policy = {}, host.policy
    if policy is not None and (said := str(policy.problem or policy.waiting)):
        found[CONFIG_NAME] = said
    if policy is None or policy.problem is None:  # else nothing is run at all
        for agent in list_summaries(host, host.clock.now(), lambda snapshot: _summarise_agents(host, snapshot)):
            if said := _explain_refusal(agent.name, agent.state, agent.why, agent.remedy):
                found[agent.name] = said
    return found


class _AgentState(Struct, frozen=True):
    """An agent that something starts. ``listener``: None where its header cannot be read."""

    name: str
    listener: TriggeredAgent | None
    state: str
    """approved, starter, disabled, unapproved, untrusted, quarantined, unreadable."""
    why: str
    remedy: str = ""

    @property
    def can_run(self) -> bool:
        return self.state in ("approved", "starter")


def _read_agent_states(host: Host, snapshot: Snapshot) -> list[_AgentState]:
    """All of them, by name, each as it stands now."""
    triggers = TriggerIndex()
    triggers.read_agents(host, snapshot)
    source = PreloadedSource(snapshot, host.layout.agents_dir)
    approvals = replace(Scripts(host, snapshot).approvals, source=source)
    states = [
        _AgentState(name, None, "unreadable", why, f"See all that is wrong: cleared agent check {name}.")
        for name, why in triggers.unreadable.items()
    ]
    for name, listener in triggers.listeners.items():
        file = host.layout.agent_path(name)
        data = source.read(file) or b""
        standing = approvals.verify_agent(file, data)
        states.append(_AgentState(name, listener, standing.state, standing.reason, remedy_of(name, standing)))
    return sorted(states, key=lambda agent_state: agent_state.name)


def _summarise_agents(host: Host, snapshot: Snapshot) -> list[AgentSummary]:
    summaries = []
    for each in _read_agent_states(host, snapshot):
        header = each.listener.header if each.listener else None
        times = each.listener.schedule if each.listener and each.can_run else None
        kinds = [kind for kind in kinds_of(header) if kind is not ON_DEMAND] if header else []
        on = [text for kind in kinds for text in kind.values(header) or (kind.name,)] if header else []
        triggers = list(header.triggers) if header else []
        summary = AgentSummary(each.name, triggers, on, each.state, each.why, each.remedy)
        if times is not None:
            summary = structs.replace(summary, schedule=times.expression, timezone=times.timezone)
        summaries.append(summary)
    return summaries


def _describe_agents(host: Host, now: datetime) -> list[dict[str, Any]]:
    last, rows = TraceStore(host.layout.state_dir).list_last_runs(), []
    for agent in list_summaries(host, now, lambda snapshot: _summarise_agents(host, snapshot)):
        latest = last.get(agent.name)
        error = latest["error"] if latest else None
        rows.append(
            {
                "name": agent.name,
                "trigger": list(agent.triggers),
                "on": list(agent.starts_on),
                "state": agent.state,
                "why": agent.why,
                "remedy": agent.remedy,
                "next_due": agent.next_due,
                "last_run": {
                    "run_id": latest["id"],
                    "status": latest["status"],
                    "at": latest["started_at"],
                    "error": error["message"] if isinstance(error, dict) else error,
                }
                if latest
                else None,
            }
        )
    return rows


def list_next_runs(host: Host) -> list[dict[str, Any]]:
    """The next time of each agent that comes due within a month, soonest first; each as in ``upcoming_runs``."""
    return _list_due_times(host, _MONTH, None, 1)


def upcoming_runs(host: Host, days: float, agent: str | None = None, limit: int = 200) -> list[dict[str, Any]]:
    """When agents come due in the coming days, soonest first; at most ``limit`` times of each and in all.

    ``local`` is in the schedule's own time zone, with its offset; ``state``: whether it will be run then. Raises
    ``UsageError`` where ``agent`` is none that a schedule starts.
    """
    return _list_due_times(host, days, agent, limit)[:limit]


def _list_due_times(host: Host, days: float, agent: str | None, of_each: int) -> list[dict[str, Any]]:
    now = host.clock.now()
    end, rows = now + timedelta(days=days), []
    with host.open_last_commit() as snapshot:
        states = _read_agent_states(host, snapshot)
    scheduled = {k.name: (k, k.listener.schedule) for k in states if k.listener and k.listener.schedule}
    if agent is not None and agent not in scheduled:
        raise UsageError(
            f"no schedule starts an agent {agent!r}", remedy=f"Known: {', '.join(scheduled) or 'none yet'}."
        )
    for name, (agent_state, times) in scheduled.items():
        if agent not in (None, name):
            continue
        zone, at = ZoneInfo(times.timezone), now
        for _ in range(of_each):
            due = times.next_after(at)
            if due is None or due > end:
                break
            at = due
            rows.append(
                {
                    "agent": name,
                    "utc": format_iso(due),
                    "local": due.astimezone(zone).isoformat(timespec="seconds"),
                    "timezone": times.timezone,
                    "schedule": times.expression,
                    "state": agent_state.state,
                }
            )
    return sorted(rows, key=lambda row: (row["utc"], row["agent"]))


FEWEST: Final = 100
"""Fewer agents are read in less time than a file is looked after."""
_SUFFIX: Final = ".agents"
_SPARE: Final = 1
_FRESH: Final = timedelta(days=1)
"""How long a next time is believed: rules of time zones change with the system's updates."""
_SOURCES: Final = ("trust", "sandbox", "triggers", "service", "runs", "workspace", "git")


class AgentSummary(Struct, frozen=True):
    """An agent that something starts, as it stands in the last commit."""

    name: str
    triggers: Sequence[str]
    starts_on: Sequence[str]
    """Its schedule, watched paths and events."""
    state: str
    """approved, starter, disabled, unapproved, untrusted, quarantined, elsewhere, unreadable."""
    why: str
    remedy: str
    """What to do so that it may run, with the command; empty where it may."""
    schedule: str | None = None
    """Of an agent that can run."""
    timezone: str = ""
    next_due: str | None = None


def list_summaries(host: Host, now: datetime, read: Callable[[Snapshot], list[AgentSummary]]) -> list[AgentSummary]:
    """The agents by name, with their next times after ``now``. ``read`` reads them without those, where it must."""
    with host.open_last_commit() as snapshot:
        name = _file_name(host, snapshot)
        kept, as_of = _read_kept(host, name) if name else (None, now)
        agents = read(snapshot) if kept is None else kept
    believed = kept is not None and as_of <= now < as_of + _FRESH
    asked = format_iso(now)
    dated = [
        agent
        if agent.schedule is None or (believed and agent.next_due is not None and agent.next_due > asked)
        else structs.replace(agent, next_due=_find_next(agent.schedule, agent.timezone, now))
        for agent in agents
    ]
    if name and len(dated) >= FEWEST and dated != kept:
        files = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES))
        files.write(name, json.dumps([format_iso(now), [list(asdict(agent).values()) for agent in dated]]).encode())
        files.remove_others({name}, (_SUFFIX,), _SPARE)
    return dated


def _find_next(schedule: str, timezone: str, now: datetime) -> str | None:
    due = Schedule(schedule, timezone).next_after(now)
    return format_iso(due) if due else None


def _read_kept(host: Host, name: str) -> tuple[list[AgentSummary] | None, datetime]:
    """The agents that were written under this name, and when; None where there are none that count."""
    nothing = None, host.clock.now()
    if not (host.layout.state_dir / FOLDER / name).exists():
        return nothing
    data = SealedFiles(host.layout.state_dir, digest_sources(*_SOURCES)).read(name)
    if data is None:
        return nothing
    as_of, rows = json.loads(data)  # sealed: it is what was written
    return [AgentSummary(*row) for row in rows], datetime.fromisoformat(as_of)


def _file_name(host: Host, snapshot: Snapshot) -> str:
    """Of the file for this commit's agents and this user's trust; empty where there are no agents. What commits have
    withdrawn since this machine noticed any follows from that commit and this one."""
    folder = snapshot.find_entry(host.layout.agents_dir)
    approvals = snapshot.find_entry(WORKSPACE.rpartition("/")[0])
    if folder is None:
        return ""
    books = identify_workspace(host.root, CommittedSource(snapshot).read(WORKSPACE))
    trust, noticed = load_trust(books.id), read_noticed_commit(host)
    facts: list[Any] = [
        folder.oid,
        approvals.oid if approvals else None,
        host.layout.agents_dir,
        host.config.business.timezone,
        sorted(shipped_digests()),
        books.id,
        books.pinned,
        books.claimed,
        books.copy_of,
        str(books.problem),
        sorted(trust.keys),
        sorted(trust.withdrawn),
        trust.barred,
        trust.newest,
        [noticed, snapshot.commit] if noticed != snapshot.commit else [],
        own_public_key(host.root),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest() + _SUFFIX
