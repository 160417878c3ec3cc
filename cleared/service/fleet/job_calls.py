"""The calls of webhooks that a job brings to its clone, where the service takes them as those of one machine; what
became of them is written down once it is pushed."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.service.fleet.fleet_calls import (
    calls_folder,
    list_waiting_calls,
    read_content,
    save_call_result,
)
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.object_store import FileStore
from cleared.triggers import webhook_calls
from cleared.triggers.webhook_calls import CallState, WebhookCall, WebhookCalls
from cleared.workspace.watched_names import escape_name


class JobCalls:
    """The calls that one job serves. ``has_more``: more wait than one job brings."""

    def __init__(self, database: FleetDatabase, workspace: str) -> None:
        self._database, self._workspace = database, workspace
        self._waiting, self.has_more = list_waiting_calls(database, workspace)
        self._known: dict[tuple[str, str], CallState] = {}
        """What the database was told already of calls whose runs are tried again."""
        self._local: WebhookCalls | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def put_calls(self, root: Path, store: FileStore | None) -> list[str]:
        """Put them where the service of the clone in ``root`` takes them, in place of what lies there; what is wrong
        with some. Calls of one ordering key wait behind one of it that cannot be read."""
        self.close()
        shutil.rmtree(webhook_calls.calls_folder(root), ignore_errors=True)
        if store is None:
            return []
        self._local, problems, broken = WebhookCalls(root), list[str](), set[tuple[str, str]]()
        for call in self._waiting:
            order = (call.agent, call.ordering_key or f"hook/{call.id}")
            if order in broken:
                continue
            try:
                content = read_content(store, self._workspace, call.digest, call)
            except WorkspaceError as error:
                problems.append(f"the call {escape_name(call.id)} of {escape_name(call.agent)} was not run: {error}")
                broken.add(order)
                continue
            self._local.add_call(WebhookCall(call.agent, call.id, content.body, call.received, call.ordering_key))
        return problems

    def save_results(self, store: FileStore | None, now: datetime) -> list[str]:
        """What was pushed has settled these calls, or was a failed run of them; what is wrong with the store."""
        problems: list[str] = []
        if self._local is None or store is None:
            return problems
        ended = self._local.list_ended()
        for call in [each for each in self._waiting if (each.agent, each.id) in ended]:
            name = (call.agent, call.id)
            if self._known.get(name) == ended[name]:
                continue
            self._known[name] = ended[name]
            save_call_result(self._database, self._workspace, call, ended[name], now)
            if ended[name].is_settled:
                self._waiting.remove(call)
                try:
                    store.remove_file(call.digest, calls_folder(self._workspace))
                except WorkspaceError as error:
                    problems.append(f"the body of the call {escape_name(call.id)} is kept still: {error}")
        return problems

    def close(self) -> None:
        if self._local is not None:
            self._local.close()
            self._local = None
