"""The calls of webhooks that a fleet's server has accepted: each with its content in the store, then a row, then a job,
before it is answered.

The row says which calls there are, in which order, and what became of them. The content says all that a call is, so
that a lost database loses no call: ``restore_calls`` reads them off the store.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from cleared.base.errors import BusyError, WorkspaceError
from cleared.sandbox.bridge.jsonrpc import parse_payload
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import Fleet
from cleared.service.fleet.job_queue import ask_for_job, open_queue
from cleared.service.fleet.kept_connections import KeptConnections
from cleared.service.fleet.object_store import FileStore
from cleared.triggers.webhook_calls import KEEP_FOR, MAX_WAITING, CallState, WebhookCall

_MOST_OF_AGENT: Final = 500
"""Calls of one agent that one job brings to its clone."""


class CallContent(Struct, frozen=True):
    """What lies in the store of a call."""

    workspace: str
    agent: str
    id: str
    body: str
    ordering_key: str = ""


class KeptCall(Struct, frozen=True):
    """The row of a call that waits. ``digest``: of its content."""

    agent: str
    id: str
    ordering_key: str
    digest: str
    received: datetime


class FleetCalls:
    """The calls of one workspace, for the server that accepts them. Thread-safe."""

    def __init__(self, fleet: Fleet, connections: KeptConnections, store: FileStore, workspace: str) -> None:
        self._fleet, self._connections, self._store, self._workspace = fleet, connections, store, workspace

    def add_call(self, call: WebhookCall) -> bool:
        """As ``WebhookCalls.add_call``. A worker is asked to run it when this returns."""
        content = CallContent(self._workspace, call.agent, call.id, call.body, call.ordering_key)
        with self._connections.connected() as database:
            known = find_call(database, self._workspace, call.agent, call.id)
            if known is None and count_waiting_calls(database, self._workspace) >= MAX_WAITING:
                raise BusyError(f"{MAX_WAITING:,} calls wait for their runs already", remedy="Start more workers.")
            if known is None:
                digest = self._store.put_file(msgspec.json.encode(content), calls_folder(self._workspace))
                kept = KeptCall(call.agent, call.id, call.ordering_key, digest, call.received)
                known = None if add_row(database, self._workspace, kept) else CallState(False, None)
        if known is None or not known.is_settled:  # whoever sent it first may have been cut off before its job
            with open_queue(self._fleet.database) as queue:
                ask_for_job(queue, self._workspace, "call", "")
        return known is None

    def find_state(self, agent: str, call_id: str) -> CallState | None:
        """As ``WebhookCalls.find_state``."""
        with self._connections.connected() as database:
            return find_call(database, self._workspace, agent, call_id)

    def count_waiting(self) -> int:
        """As ``WebhookCalls.count_waiting``."""
        with self._connections.connected() as database:
            return count_waiting_calls(database, self._workspace)


def calls_folder(workspace: str) -> str:
    """Where the contents of a workspace's calls lie in the store."""
    return f"calls/{workspace}"


def read_content(store: FileStore, workspace: str, digest: str, of: KeptCall | None = None) -> CallContent:
    """Raises ``WorkspaceError`` where it is not there, or is not one of this workspace, or ``of`` another call."""
    data = store.read_file(digest, calls_folder(workspace))
    try:
        content = msgspec.json.decode(data, type=CallContent)
        parse_payload(content.body.encode())  # as the server did, which may not have written this
    except ValueError:
        content = None
    is_other = content is not None and of is not None and (content.agent, content.id) != (of.agent, of.id)
    if content is None or content.workspace != workspace or is_other:
        raise WorkspaceError(
            f"{digest[:10]} is not this call of {workspace}",
            remedy="Look who can write to the store, or to the database.",
        )
    return content


def restore_calls(fleet: Fleet, database: FleetDatabase, workspace: str, now: datetime) -> list[str]:
    """Have the calls whose contents lie in the store done where the database has lost them; what is wrong with what
    lies there."""
    store, problems = FileStore(fleet.store), list[str]()
    for digest in store.list_files(calls_folder(workspace)):
        try:
            content = read_content(store, workspace, digest)
        except WorkspaceError as error:
            problems.append(str(error))
            continue
        add_row(database, workspace, KeptCall(content.agent, content.id, content.ordering_key, digest, now))
    return problems


def forget_calls(fleet: Fleet, workspace: str) -> None:
    """Remove the contents of a workspace's calls."""
    store = FileStore(fleet.store)
    for digest in store.list_files(calls_folder(workspace)):
        store.remove_file(digest, calls_folder(workspace))


# --- rows ------------------------------------------------------------------------------------------------------


def add_row(database: FleetDatabase, workspace: str, call: KeptCall) -> bool:
    """False where there is one of this agent and id."""
    return bool(
        database.run(
            "INSERT INTO fleet_calls (workspace, agent, id, ordering_key, digest, received) "
            "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING number",
            workspace,
            call.agent,
            call.id,
            call.ordering_key,
            call.digest,
            call.received,
        )
    )


def find_call(database: FleetDatabase, workspace: str, agent: str, call_id: str) -> CallState | None:
    """What became of a call; None where it is not known."""
    rows = database.run(
        "SELECT settled IS NOT NULL, result FROM fleet_calls WHERE workspace = %s AND agent = %s AND id = %s",
        workspace,
        agent,
        call_id,
    )
    return CallState(rows[0][0], json.loads(rows[0][1]) if rows[0][1] else None) if rows else None


def count_waiting_calls(database: FleetDatabase, workspace: str) -> int:
    """How many calls of a workspace wait for their runs."""
    query = "SELECT count(*) FROM fleet_calls WHERE workspace = %s AND settled IS NULL"
    return int(database.run(query, workspace)[0][0])


def list_waiting_calls(database: FleetDatabase, workspace: str) -> tuple[list[KeptCall], bool]:
    """The calls whose runs have not ended, oldest first, so many of each agent as one job brings; whether more wait."""
    rows = database.run(
        "SELECT agent, id, ordering_key, digest, received, place > %s "
        "FROM (SELECT *, row_number() OVER (PARTITION BY agent ORDER BY number) AS place "
        "FROM fleet_calls WHERE workspace = %s AND settled IS NULL) AS waiting WHERE place <= %s ORDER BY number",
        _MOST_OF_AGENT,
        workspace,
        _MOST_OF_AGENT + 1,
    )
    return [KeptCall(*row[:-1]) for row in rows if not row[-1]], any(row[-1] for row in rows)


def save_call_result(database: FleetDatabase, workspace: str, call: KeptCall, state: CallState, now: datetime) -> None:
    """What became of a call. Those that were settled long ago are forgotten."""
    database.run(
        "UPDATE fleet_calls SET result = %s, settled = %s WHERE workspace = %s AND agent = %s AND id = %s",
        json.dumps(state.result) if state.result is not None else None,
        now if state.is_settled else None,
        workspace,
        call.agent,
        call.id,
    )
    database.run("DELETE FROM fleet_calls WHERE workspace = %s AND settled < %s", workspace, now - KEEP_FOR)
