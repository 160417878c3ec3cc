"""How a whole fleet is: what ``cleared fleet status`` prints, and its server's ``/metrics`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.fleet_records import OUTCOMES
from cleared.service.fleet.job_queue import PATIENCE, list_queues
from cleared.service.fleet.owner_statements import read_workers
from cleared.workspace.fleet_clones import fleet_folder

_MOST_NAMED: Final = 100
"""Workspaces that are named; a monitor keeps each name for long."""


class NamedWorkspace(Struct, frozen=True):
    """What one workspace has for a person."""

    name: str
    cards: int
    has_problem: bool


class FleetStatus(Struct, frozen=True, kw_only=True):
    """``waiting``, ``doing``: jobs; ``for_newer``: of those that wait, how many this version cannot do.
    ``oldest_seconds``: how long one waits at most; ``late_seconds``: how long a workspace is due at most, and nobody
    is at it. ``ended``: how many jobs ended how, since the fleet began. ``workers``: those that are let in; ``alive``:
    the workers that have given a sign of life. ``neediest``: workspaces by what waits, so many as are named.
    """

    workspaces: int
    cards: int
    problems: int
    files: int
    calls: int
    requests: int
    waiting: int
    doing: int
    for_newer: int
    oldest_seconds: float
    late_seconds: float
    ended: Mapping[str, int]
    workers: int
    alive: int
    neediest: tuple[NamedWorkspace, ...]


def read_fleet_status(fleet: Fleet, database: FleetDatabase, now: datetime) -> FleetStatus:
    """Raises ``ClearedError`` where the database cannot be asked."""
    (workspaces, cards, problems) = database.run(
        "SELECT count(*), coalesce(sum(cards), 0)::bigint, count(*) FILTER (WHERE problem <> '') FROM fleet_workspaces"
    )[0]
    (waiting, doing, for_newer) = database.run(
        "SELECT count(*) FILTER (WHERE status = 'todo'), count(*) FILTER (WHERE status = 'doing'), "
        "count(*) FILTER (WHERE status = 'todo' AND queue_name <> ALL (%s)) FROM procrastinate_jobs "
        "WHERE status IN ('todo', 'doing')",
        list_queues(),
    )[0]
    oldest = database.run(
        "SELECT extract(epoch FROM now() - min(event.at)) FROM procrastinate_jobs job JOIN procrastinate_events event "
        "ON event.job_id = job.id WHERE job.status = 'todo' AND event.type IN ('deferred', 'deferred_for_retry')"
    )
    late = database.run(
        "SELECT extract(epoch FROM %s - min(due)) FROM fleet_workspaces WHERE due <= %s AND NOT EXISTS "
        "(SELECT 1 FROM procrastinate_jobs WHERE lock = fleet_workspaces.name AND status = 'doing')",
        now,
        now,
    )
    alive = "SELECT count(*) FROM procrastinate_workers WHERE last_heartbeat > now() - make_interval(secs => %s)"
    neediest = database.run(
        "SELECT name, cards, problem <> '' AS is_wrong FROM fleet_workspaces ORDER BY is_wrong DESC, cards DESC, name "
        "LIMIT %s",
        _MOST_NAMED,
    )
    return FleetStatus(
        workspaces=workspaces,
        cards=cards,
        problems=problems,
        files=_count(database, "SELECT count(*) FROM fleet_files WHERE settled = ''"),
        calls=_count(database, "SELECT count(*) FROM fleet_calls WHERE settled IS NULL"),
        requests=_count(database, "SELECT count(*) FROM fleet_requests WHERE status = 'waiting'"),
        waiting=waiting,
        doing=doing,
        for_newer=for_newer,
        oldest_seconds=_read_seconds(oldest),
        late_seconds=_read_seconds(late),
        ended={**dict.fromkeys(OUTCOMES, 0), **dict(database.run("SELECT outcome, jobs FROM fleet_outcomes"))},
        workers=len(read_workers(fleet.owner, database, fleet_folder()).keys),
        alive=_count(database, alive, PATIENCE),
        neediest=tuple(NamedWorkspace(*row) for row in neediest),
    )


def _count(database: FleetDatabase, query: str, *values: Any) -> int:
    return int(database.run(query, *values)[0][0])


def _read_seconds(rows: list[tuple[Any, ...]]) -> float:
    return max(0.0, round(float(rows[0][0] or 0), 3))
