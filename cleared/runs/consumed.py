"""Which events have had their run. The commits' trailers say; ``.cleared/consumed.db`` is an index of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

from cleared.errors import PolicyError
from cleared.runs.host import Host
from cleared.vcs import Repository, Snapshot, recent
from cleared.workspace.database import connect

ASKS: Final = "asks"
FAILED: Final = "failed"
"""``Outcome:`` of an attempt that made no commit of its own: it waits for an answer, or it failed."""
WENT_ON: Final = "Went-On"
"""The trailer of a run's commit that names the questions it went on with, or asked again: none does so twice."""
INDEX: Final = "consumed.db"
_VERSION: Final = 3
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS head (commit_id TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS consumed (agent TEXT, key TEXT, ended INTEGER, PRIMARY KEY (agent, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failed (agent TEXT, key TEXT, times INTEGER, PRIMARY KEY (agent, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS ended (run TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS went_on (card TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS latest (agent TEXT, kind TEXT, key TEXT, PRIMARY KEY (agent, kind)) WITHOUT ROWID;
"""


class AlreadyRun(PolicyError):
    """The event's key is consumed: a run of this agent for it has made its commit, or waits for an answer."""


def consumed(
    host: Host, repo: Repository, snapshot: Snapshot, agent: str, key: str, *, asking: bool = True
) -> bool:  # fmt: skip
    """Whether a run of ``agent`` for this event is in the history of the snapshot's commit; ``asking``: also one that
    waits for an answer."""
    with closing(_updated(host, repo, snapshot)) as db:
        found = db.execute("SELECT ended FROM consumed WHERE agent=? AND key=?", (agent, key)).fetchone()
    return found is not None and (asking or bool(found[0]))


def had(host: Host, repo: Repository, snapshot: Snapshot, agent: str) -> set[str]:
    """The keys of all events that an agent had a run for, failed ones too."""
    with closing(_updated(host, repo, snapshot)) as db:
        rows = db.execute(
            "SELECT key FROM consumed WHERE agent=? UNION SELECT key FROM failed WHERE agent=?", (agent,) * 2
        )
        return {key for (key,) in rows}


def ended(host: Host, repo: Repository, snapshot: Snapshot, run: str) -> bool:
    """Whether a run has made its commit."""
    with closing(_updated(host, repo, snapshot)) as db:
        return db.execute("SELECT 1 FROM ended WHERE run=?", (run,)).fetchone() is not None


def went_on(host: Host, repo: Repository, snapshot: Snapshot, card: str) -> bool:
    """Whether a commit says that a run has gone on with this question."""
    with closing(_updated(host, repo, snapshot)) as db:
        return db.execute("SELECT 1 FROM went_on WHERE card=?", (card,)).fetchone() is not None


def only_failure(host: Host, repo: Repository, snapshot: Snapshot, agent: str, key: str) -> bool:
    """Whether runs of ``agent`` for this event have failed, and for no other that has not had its run since."""
    with closing(_updated(host, repo, snapshot)) as db:
        rows = db.execute(
            "SELECT key FROM failed f WHERE agent=? AND key NOT LIKE 'on_demand:%' AND NOT EXISTS"
            " (SELECT 1 FROM consumed c WHERE c.agent=f.agent AND c.key=f.key) LIMIT 2",
            (agent,),
        )
        return [found for (found,) in rows] == [key]


def latest(host: Host, repo: Repository, snapshot: Snapshot, kind: str) -> dict[str, str]:
    """Agent → the greatest key among its events of this kind that had a run, failed ones too."""
    with closing(_updated(host, repo, snapshot)) as db:
        return dict(db.execute("SELECT agent, key FROM latest WHERE kind=?", (kind,)).fetchall())


def _updated(host: Host, repo: Repository, snapshot: Snapshot) -> sqlite3.Connection:
    """The index, up to the snapshot's commit."""
    db = connect(host.layout.state_dir / INDEX, _SCHEMA, _VERSION)
    try:
        row = db.execute("SELECT commit_id FROM head").fetchone()
        head, commit = row[0] if row else None, snapshot.commit or ""
        if head == commit:
            return db
        with db:
            near = recent(repo, commit, head) if head else None
            new: Iterable[Mapping[str, str]] = [c.trailers for c in reversed(near or ())]
            if near is None:
                for table in ("consumed", "failed", "ended", "went_on", "latest"):
                    db.execute(f"DELETE FROM {table}")
                new = _whole(host, commit)
            _add(db, new)
            db.execute("DELETE FROM head")
            db.execute("INSERT INTO head VALUES (?)", (commit,))
    except BaseException:
        db.close()
        raise
    return db


def _whole(host: Host, commit: str) -> list[Mapping[str, str]]:
    from cleared.vcs import history

    return [c.trailers for c in reversed(history.log(host.root, None, grep="Agent: ", rev=commit))] if commit else []


def _add(db: sqlite3.Connection, commits: Iterable[Mapping[str, str]]) -> None:
    """What these commits say, oldest first."""
    for trailers in commits:
        agent, happened = trailers.get("Agent"), trailers.get("Event") or trailers.get("Attempt")
        if agent is None or happened is None:
            continue
        kind, _, key = happened.partition(" ")
        if "Event" in trailers and "Run" in trailers:
            db.execute("INSERT OR IGNORE INTO ended VALUES (?)", (trailers["Run"],))
        db.executemany("INSERT OR IGNORE INTO went_on VALUES (?)", ((c,) for c in trailers.get(WENT_ON, "").split()))
        if "Event" in trailers or trailers.get("Outcome") == ASKS:
            db.execute(
                "INSERT INTO consumed VALUES (?,?,?)"
                " ON CONFLICT (agent, key) DO UPDATE SET ended=max(ended, excluded.ended)",
                (agent, key, "Event" in trailers),
            )
        else:  # where it had its answer and failed then, its event is free again
            db.execute("DELETE FROM consumed WHERE agent=? AND key=? AND NOT ended", (agent, key))
            db.execute(
                "INSERT INTO failed VALUES (?,?,1) ON CONFLICT (agent, key) DO UPDATE SET times=times+1", (agent, key)
            )
        db.execute(
            "INSERT INTO latest VALUES (?,?,?) ON CONFLICT (agent, kind) DO UPDATE SET key=max(key, excluded.key)",
            (agent, kind, key),
        )
