"""Joining this clone with another one every few minutes, where ``sync.remote`` says so."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timedelta
from typing import IO, Final

from cleared.base.programs import own_command
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.triggers.service_log import ServiceLog
from cleared.workspace.lock import ensure_state_dir

OUTPUT: Final = "sync.out"
"""Below ``.cleared/``: what the last ``cleared sync`` of the service has printed."""
_LOOK: Final = timedelta(seconds=2)
"""How often it is looked whether it has ended."""


class RegularSync:
    """A duty of the service: ``cleared sync``, as a process of its own, as the network may take its time. What is wrong
    with it stops no other work, and is said once."""

    def __init__(self, log: ServiceLog) -> None:
        self._log = log
        self.due_at: datetime | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._said = ""

    def notice_commit(self) -> None:
        """It is pushed with the next sync."""

    def handle_clock_set_back(self, now: datetime) -> None:
        self.due_at = now

    def perform_if_due(self, host: Host, now: datetime) -> None:
        """Begin a sync that is due, or see how one has ended."""
        if self.due_at is not None and now < self.due_at:
            return
        self.due_at = now + timedelta(minutes=max(host.config.sync.minutes, 1))
        if self._process is not None:
            if self._process.poll() is None:
                self.due_at = now + _LOOK
                return
            self._tell_end()
        elif host.config.sync.remote is not None:
            ensure_state_dir(host.layout.state_dir)
            self._output = (host.layout.state_dir / OUTPUT).open("w+b")
            self._process = subprocess.Popen(
                [*own_command("sync", host.config.sync.remote, "--json"), "-C", str(host.root)],
                cwd=host.root,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            self.due_at = now + _LOOK

    def _tell_end(self) -> None:
        assert self._process is not None and self._output is not None
        failed, self._process = self._process.returncode != 0, None
        with self._output as output:
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        try:
            done = json.loads(text)
            why = f"{done['error']['message']}. {done['error']['remedy'] or ''}".strip() if failed else ""
        except (ValueError, KeyError, TypeError):  # it was killed
            done, why = {}, "cleared sync was ended"
        if why and why != self._said:
            self._log("sync.failed", f"this clone was not joined: {why}", level="warning")
        self._said = why
        if not why:
            left_out = sum(step["left_out"] is not None for step in done["steps"])
            counts = [("commit", done["fetched"], "fetched"), ("commit", done["pushed"], "pushed")]
            counts.append(("card", left_out, "about what was left out"))
            said = ", ".join(f"{count_noun(count, noun)} {what}" for noun, count, what in counts if count)
            if said:
                self._log("sync.done", f"joined with {done['remote']}: {said}")
