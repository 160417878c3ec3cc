"""The workspace as the service's last step saw it: the settings, the commit, its agents, the deliveries that wait."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.git import Repository, Snapshot
from cleared.triggers.agent_triggers import TriggerIndex
from cleared.triggers.pending_deliveries import Inbox
from cleared.workspace.settings.setting_keys import to_plain_values


class WorkspaceView:
    """One workspace, held open. ``host``, ``inbox`` and ``repo`` are replaced when the workspace changes."""

    def __init__(self, root: Path, open_host: Callable[[], Host]) -> None:
        """Raises as ``open_workspace`` does."""
        self.root = root
        self._host_cache = HostCache(open_host)
        self.host = self._host_cache()
        self.repo = Repository.open(root, for_writing=False)
        self.inbox = Inbox(self.host.layout.state_dir)
        self.triggers = TriggerIndex()
        self._described: Host | None = None
        """The workspace with the settings whose digest is ``_settings``."""
        self._settings = ""
        self.head = ""
        """The commit that was read last; empty where the next step is to read the commit in any case."""

    def close(self) -> None:
        self.inbox.close()
        self.repo.close()
        self._host_cache.close()

    @property
    def snapshot(self) -> Snapshot:
        """The commit that was read last."""
        return Snapshot(self.repo, self.head)

    def reload_host(self) -> bool:
        """Take other settings or approvals into use; returns whether there were any. Raises as ``open_workspace``."""
        host = self._host_cache()
        if host is self.host:
            return False
        self.host, self.head = host, ""
        return True

    def expire_host(self) -> None:
        """Have the next ``reload_host`` read the settings again, whether they changed or not."""
        self._host_cache.close()

    def reopen_inbox(self) -> None:
        """Begin with an empty inbox, where its file was deleted."""
        self.inbox.close()
        self.inbox, self.head = Inbox(self.host.layout.state_dir), ""

    def read_new_commit(self) -> bool:
        """Move ``head`` to the newest commit of the branch that is checked out; False where it is that already."""
        if self.repo.has_switched_branch():
            self.repo.close()
            self.repo = Repository.open(self.root, for_writing=False)
        head = self.repo.read_head()
        if head == self.head:
            return False
        self.repo.objects.forget_objects()
        self.head = head
        return True

    def agent_version(self, agent: str) -> str:
        """Another text after each change of the agent's script or of the settings: a file that the agent could do
        nothing with may be worth another try. The same on each machine."""
        listener = self.triggers.listeners.get(agent)
        if self._described is not self.host:
            self._described, text = self.host, json.dumps(to_plain_values(self.host.config), default=str)
            self._settings = hashlib.sha256(text.encode()).hexdigest()
        return hashlib.sha256(f"{listener.blob if listener else ''} {self._settings}".encode()).hexdigest()[:16]
