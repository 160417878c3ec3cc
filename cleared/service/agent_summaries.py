"""What the status says of each agent: kept between commands, as ten thousand signatures take seconds to verify.

Only shown, never asked whether an agent may run. The file is sealed (``workspace.sealed_files``), and its name has
all that its content follows from: the folder of agents with their approvals as git names it, and what this user trusts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.changes.host import Host
from cleared.changes.noticed_history import read_noticed_trust
from cleared.changes.record_sources import CommittedSource
from cleared.git import Snapshot
from cleared.triggers.schedule import Schedule
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import own_public_key
from cleared.trust.workspace_pin import identify_workspace
from cleared.workspace.sealed_files import FOLDER, SealedFiles, digest_sources
from cleared.workspace.template import shipped_digests

FEWEST: Final = 100
"""Fewer agents are read in less time than a file is looked after."""
_SUFFIX: Final = ".agents"
_SPARE: Final = 1
_FRESH: Final = timedelta(days=1)
"""How long a next time is believed: rules of time zones change with the system's updates."""
_SOURCES: Final = ("trust", "sandbox", "triggers", "service", "runs", "workspace", "git")


@dataclass(frozen=True, slots=True)
class AgentSummary:
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
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        name = _file_name(host, snapshot)
        kept, as_of = _read_kept(host, name) if name else (None, now)
        agents = read(snapshot) if kept is None else kept
    believed = kept is not None and as_of <= now < as_of + _FRESH
    asked = format_iso(now)
    dated = [
        agent
        if agent.schedule is None or (believed and agent.next_due is not None and agent.next_due > asked)
        else replace(agent, next_due=_find_next(agent.schedule, agent.timezone, now))
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
    """Of the file for this commit's agents and this user's trust; empty where there are no agents."""
    folder = snapshot.find_entry(host.layout.agents_dir)
    approvals = snapshot.find_entry(WORKSPACE.rpartition("/")[0])
    if folder is None:
        return ""
    books = identify_workspace(host.root, CommittedSource(snapshot).read(WORKSPACE))
    trust = read_noticed_trust(host, snapshot.repo, books.id)
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
        own_public_key(host.root),
    ]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest() + _SUFFIX
