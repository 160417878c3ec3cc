"""What the fleet's tables in PostgreSQL are asked: workspaces, dropped files, requests, workers. The jobs are
procrastinate's.

All of it can be made again from git and the object store, but for requests that had no run yet: ``cleared fleet add``
says a workspace again, and its first job reads off the history what was done.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from cleared.base.errors import UsageError, WorkspaceError
from cleared.service.fleet.fleet_records import (
    DroppedFile,
    Request,
    SignedStatement,
    Worker,
    WorkspaceRecord,
)
from cleared.service.fleet.fleet_tables import OLDEST, REFUSED_JOBS, TABLES, VERSION

if TYPE_CHECKING:
    from psycopg import Connection

_SCHEMES: Final = ("postgresql://", "postgres://")
AWAKE: Final = "awake"
"""The fact of when a worker looked for due schedules last, and since when one did without a pause."""
_PAUSE_SECONDS: Final = 60.0
"""Where no worker looked for longer, what came due meanwhile was missed."""
_BOUNDS: Final[dict[str, int]] = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,  # milliseconds, unlike the others
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
_PATIENCE_SECONDS: Final = 10
"""So long a transaction may wait for its program."""
_RECORD: Final = (
    "name, statement, signature, state, head, due, looked_at, problem, failures, spent_day, spent_seconds, cards, "
    "written_by"
)
_SAME_REQUEST: Final = "workspace = %s AND agent = %s AND id = %s"
"""As a key names an event of one agent in one workspace."""


def bound_waits(url: str) -> str:
    """How a database is reached, where the URL says nothing else: a machine that is cut off from it notices within half
    a minute. Until then a question waits for its answer, by the system's own bounds a quarter of an hour, and a silence
    two hours. Raises psycopg's ``ProgrammingError`` for what is no URL."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    return make_conninfo("", **{**_BOUNDS, **conninfo_to_dict(url)})


class FleetDatabase:
    """A connection; each call is one transaction of its own, but within ``transaction``."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._db = connection

    @classmethod
    def connect(cls, url: str) -> Self:
        """Raises ``WorkspaceError`` where the database cannot be reached, ``UsageError`` where the URL is none."""
        import psycopg

        if not url.startswith(_SCHEMES):
            raise UsageError(
                "the URL of the database is not one", remedy="Give one such as postgresql://USER@HOST/NAME: --database."
            )
        try:
            return cls(psycopg.connect(bound_waits(url), autocommit=True))
        except psycopg.ProgrammingError as error:
            raise UsageError(f"the URL of the database is not one: {_first_line(error)}") from None
        except psycopg.OperationalError as error:
            raise explain_unreachable(error) from None

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """All or nothing of the calls within. What it holds keeps nobody waiting for a machine that sleeps, or is cut
        off, in between: after a while the database ends it."""
        with self._reaching(), self._db.transaction():
            self._db.execute(f"SET LOCAL idle_in_transaction_session_timeout = {_PATIENCE_SECONDS * 1000}")
            yield self._db

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.errors.UndefinedTable:
            raise WorkspaceError(
                "the database has no fleet in it yet", remedy="Its owner begins one: cleared fleet init --database URL."
            ) from None
        except (psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout) as error:
            raise explain_unreachable(error) from None

    def run(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._reaching():
            cursor = self._db.execute(query, values)
            return cursor.fetchall() if cursor.description is not None else []

    # --- the fleet ---------------------------------------------------------------------------------------------

    def make_tables(self) -> None:
        """Make what is not there yet. Two that do it at once do it one after the other."""
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(hashtext('cleared fleet'))")
            self.run(TABLES)
            self.run(REFUSED_JOBS)
            for name, version in (("schema", VERSION), ("oldest", OLDEST)):
                self.run(
                    "INSERT INTO fleet_facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = "
                    "greatest(fleet_facts.value::int, excluded.value::int)::text",
                    name,
                    str(version),
                )

    def check_version(self) -> None:
        """Raises ``UsageError`` where the tables are older than this program needs, or newer than it can work with."""
        found, oldest = int(self.read_fact("schema") or 0), int(self.read_fact("oldest") or 0)
        if found < VERSION:
            raise UsageError(
                f"the database has the tables of version {found}, and this program needs {VERSION}",
                remedy="The owner brings them up, while workers of the version before go on: cleared fleet upgrade.",
            )
        if oldest > VERSION:
            raise UsageError(
                f"the database has the tables of version {found}, beside which version {VERSION} cannot work",
                remedy="Install the newer cleared on this machine.",
            )

    def read_fact(self, name: str) -> str | None:
        rows = self.run("SELECT value FROM fleet_facts WHERE name = %s", name)
        return str(rows[0][0]) if rows else None

    def write_fact(self, name: str, value: str) -> None:
        self.run(
            "INSERT INTO fleet_facts VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value,
        )

    def note_awake(self, now: datetime) -> None:
        """A worker looks for what is due."""
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(hashtext('cleared fleet awake'))")
            last, since = ((self.read_fact(AWAKE) or "") + " ").split(" ")[:2]
            is_new = not last or not 0 <= (now - datetime.fromisoformat(last)).total_seconds() <= _PAUSE_SECONDS
            began = now if is_new else datetime.fromisoformat(since)
            self.write_fact(AWAKE, f"{now.isoformat()} {began.isoformat()}")

    def read_awake_since(self) -> datetime | None:
        """Since when workers look without a pause: what came due earlier, and was not run, was missed. None where no
        worker ever did."""
        text = self.read_fact(AWAKE)
        return datetime.fromisoformat(text.split(" ")[1]) if text else None

    # --- workers -----------------------------------------------------------------------------------------------

    def note_worker(self, key: str, name: str, version: str, now: datetime) -> None:
        self.run(
            "INSERT INTO fleet_workers (key, name, version, at, fleet_version) VALUES (%s, %s, %s, %s, %s) ON CONFLICT "
            "(key) DO UPDATE SET name = excluded.name, version = excluded.version, at = excluded.at, "
            "fleet_version = excluded.fleet_version",
            key,
            name,
            version,
            now,
            VERSION,
        )

    def list_workers(self) -> list[Worker]:
        return [
            Worker(*row)
            for row in self.run("SELECT key, name, version, at, fleet_version FROM fleet_workers ORDER BY name, key")
        ]

    # --- workspaces --------------------------------------------------------------------------------------------

    def add_workspace(self, name: str, signed: SignedStatement, due: datetime) -> bool:
        """Say what a name means, anew where it is known; whether it is new."""
        rows = self.run(
            "INSERT INTO fleet_workspaces (name, statement, signature, due) VALUES (%s, %s, %s, %s) "
            "ON CONFLICT (name) DO UPDATE SET statement = excluded.statement, signature = excluded.signature, "
            "due = excluded.due, problem = '', failures = 0 RETURNING (xmax = 0)",
            name,
            signed.text,
            signed.signature,
            due,
        )
        return bool(rows[0][0])

    def remove_workspace(self, name: str) -> None:
        self.run("DELETE FROM fleet_workspaces WHERE name = %s", name)

    def read_workspace(self, name: str) -> WorkspaceRecord:
        """Raises ``UsageError`` where the fleet has none of this name."""
        rows = self.run(f"SELECT {_RECORD} FROM fleet_workspaces WHERE name = %s", name)
        if not rows:
            raise UsageError(f"the fleet has no workspace {name!r}", remedy="See: cleared fleet list.")
        return _record_from_row(rows[0])

    def list_workspaces(self) -> list[WorkspaceRecord]:
        """All, those with the most waiting cards first."""
        rows = self.run(
            f"SELECT {_RECORD} FROM fleet_workspaces ORDER BY (problem <> '') DESC, cards DESC, name".replace(
                "state,", "NULL,", 1
            )
        )
        return [_record_from_row(row) for row in rows]

    def list_heads(self) -> dict[str, str]:
        """Name → the last commit that the fleet has seen. What is pushed from now on is told: ``await_heads``."""
        self.run("LISTEN fleet_heads")
        return {str(name): str(head) for name, head in self.run("SELECT name, head FROM fleet_workspaces")}

    def await_heads(self, seconds: float) -> dict[str, str]:
        """What of that has changed; waits so long for a change, at most."""
        with self._reaching():
            told = [notice.payload.partition(" ") for notice in self._db.notifies(timeout=seconds, stop_after=1)]
        return {name: head for name, _, head in told}

    def save_job(
        self, name: str, *, state: bytes, head: str, due: datetime | None, now: datetime, cards: int, problem: str
    ) -> None:
        """A job has ended. ``problem``: what of it could not be done, empty where all was."""
        self.run(
            "UPDATE fleet_workspaces SET state = %s, head = %s, due = %s, looked_at = %s, cards = %s, problem = %s, "
            "failures = 0, asked_due = NULL, written_by = %s WHERE name = %s",
            state,
            head,
            due,
            now,
            cards,
            problem[:2_000],
            VERSION,
            name,
        )

    def save_head(self, name: str, head: str) -> None:
        """A job has pushed, and goes on."""
        self.run("UPDATE fleet_workspaces SET head = %s WHERE name = %s", head, name)

    def note_problem(self, name: str, problem: str, due: datetime | None, *, has_failed: bool = True) -> None:
        """A job could not do its work; the next look is at ``due``."""
        self.run(
            "UPDATE fleet_workspaces SET problem = %s, due = %s, failures = failures + %s, asked_due = NULL "
            "WHERE name = %s",
            problem[:2_000],
            due,
            int(has_failed),
            name,
        )

    def add_spending(self, name: str, now: datetime, seconds: float) -> None:
        """A job took so many processor seconds."""
        day = now.date()
        self.run(
            "UPDATE fleet_workspaces SET spent_seconds = %s + CASE WHEN spent_day = %s THEN spent_seconds ELSE 0 END, "
            "spent_day = %s WHERE name = %s",
            seconds,
            day,
            day,
            name,
        )

    # --- files and requests ------------------------------------------------------------------------------------

    def add_file(self, workspace: str, file: DroppedFile, by: str, *, again: bool = False) -> str:
        """Hand a file in: the same content once, unless it is to come ``again``.

        Returns *new*, *renamed* where it waits under another name, or *known* where it waits or was dealt with.
        """
        with self.transaction():
            self.run("SELECT pg_advisory_xact_lock(hashtext(%s))", f"cleared fleet files {workspace}")
            known = self.run(
                "SELECT name, settled FROM fleet_files WHERE workspace = %s AND digest = %s", workspace, file.digest
            )
            taken = self.run(
                "SELECT 1 FROM fleet_files WHERE workspace = %s AND name = %s AND digest <> %s",
                workspace,
                file.name,
                file.digest,
            )
            name = f"{file.digest[:8]}-{file.name}" if taken else file.name
            if known and not (again and known[0][1]) and (known[0][1] or known[0][0] == name):
                return "known"
            self.run(
                "INSERT INTO fleet_files (workspace, digest, name, dropped_by, at) VALUES (%s, %s, %s, %s, %s) "
                "ON CONFLICT (workspace, digest) DO UPDATE SET name = excluded.name, settled = ''",
                workspace,
                file.digest,
                name,
                by,
                file.at,
            )
        return "renamed" if known and not known[0][1] else "new"

    def list_files(self, workspace: str) -> list[DroppedFile]:
        """The dropped files that wait, oldest first."""
        query = "SELECT digest, name, at FROM fleet_files WHERE workspace = %s AND settled = '' ORDER BY at, name"
        return [DroppedFile(*row) for row in self.run(query, workspace)]

    def settle_file(self, workspace: str, file: DroppedFile, what: str) -> None:
        self.run(
            "UPDATE fleet_files SET settled = %s WHERE workspace = %s AND digest = %s",
            what,
            workspace,
            file.digest,
        )

    def remove_file(self, workspace: str, file: DroppedFile) -> None:
        """Forget a file that waits."""
        self.run(
            "DELETE FROM fleet_files WHERE workspace = %s AND digest = %s AND settled = ''", workspace, file.digest
        )

    def add_request(self, request: Request, by: str, now: datetime) -> None:
        from psycopg.types.json import Jsonb

        self.run(
            "INSERT INTO fleet_requests (id, workspace, agent, payload, asked_by, at) VALUES (%s, %s, %s, %s, %s, %s) "
            "ON CONFLICT DO NOTHING",
            request.id,
            request.workspace,
            request.agent,
            Jsonb(request.payload),
            by,
            now,
        )

    def read_request(self, asked: Request) -> Request | None:
        """What became of it."""
        rows = self.run(
            f"SELECT id, workspace, agent, payload, status, said, commit_id FROM fleet_requests WHERE {_SAME_REQUEST}",
            *_name_request(asked),
        )
        return Request(*rows[0]) if rows else None

    def list_requests(self, workspace: str) -> list[Request]:
        """Those that wait, oldest first."""
        rows = self.run(
            "SELECT id, workspace, agent, payload, status, said, commit_id FROM fleet_requests "
            "WHERE workspace = %s AND status = 'waiting' ORDER BY at, id",
            workspace,
        )
        return [Request(*row) for row in rows]

    def begin_request(self, request: Request, head: str) -> None:
        """Its run begins on top of this commit. Where another worker has begun it before, that commit stays."""
        query = f"UPDATE fleet_requests SET commit_id = %s WHERE {_SAME_REQUEST} AND commit_id = ''"
        self.run(query, head, *_name_request(request))

    def end_request(self, request: Request, status: str, said: str, commit: str, now: datetime) -> None:
        self.run(
            f"UPDATE fleet_requests SET status = %s, said = %s, commit_id = %s, ended_at = %s WHERE {_SAME_REQUEST}",
            status,
            said[:2_000],
            commit,
            now,
            *_name_request(request),
        )


def _name_request(request: Request) -> tuple[str, str, str]:
    return request.workspace, request.agent, request.id


def _record_from_row(row: tuple[Any, ...]) -> WorkspaceRecord:
    name, statement, signature, *rest = row
    state = bytes(rest[0]) if rest[0] is not None else None
    return WorkspaceRecord(name, SignedStatement(bytes(statement), signature), state, *rest[1:])


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def explain_unreachable(error: Exception) -> WorkspaceError:
    """The refusal that an error of a library is."""
    return WorkspaceError(
        f"the fleet's database cannot be reached: {_first_line(error)}",
        remedy="Look whether PostgreSQL is up, and whether the URL is right.",
    )
