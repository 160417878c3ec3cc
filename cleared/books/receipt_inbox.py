"""When the service keeps the receipts that were dropped into ``receipts/inbox/``."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cleared.base.terminal import count_noun
from cleared.books.books_domain import INBOX_ACTOR
from cleared.books.decisions.receipt_filing import file_inbox
from cleared.books.ledger.receipts import list_inbox
from cleared.changes.host import Host
from cleared.triggers.service_log import ServiceLog

EVERY: Final = timedelta(minutes=1)
"""How long a file must have lain still."""


class ReceiptInbox:
    """Keeps what has lain still since the last look, in a commit of its own; what is refused is said once."""

    def __init__(self, log: ServiceLog) -> None:
        self._log = log
        self.due_at: datetime | None = None
        """When to look again; None where nothing lies there: then whenever the service has something to do."""
        self._seen: dict[str, tuple[int, int]] = {}
        """Name → size and time of change, at the last look."""
        self._refused: dict[str, tuple[int, int]] = {}
        """The same of what could not be kept."""
        self._tries_again = False
        """Whether there was a commit since."""

    def handle_clock_set_back(self, now: datetime) -> None:
        """Look at once: what was planned would wait longer."""
        self.due_at = now

    def notice_commit(self) -> None:
        """Try again what was refused: a file that git brought may be in no commit any more."""
        self._tries_again = bool(self._refused)
        if self._tries_again:
            self.due_at = None

    def perform_if_due(self, host: Host, now: datetime) -> None:
        """Keep what lies there, where it is time. Raises what ``file_inbox`` raises."""
        if self.due_at is not None and now < self.due_at:
            return
        before, self._seen = self._seen, _describe_files(list_inbox(host.root))
        if self._seen == self._refused and not self._tries_again:
            self.due_at = None
            return
        self.due_at = now + EVERY
        if self._seen != before:
            return
        self._tries_again = False
        result = file_inbox(host, by=INBOX_ACTOR)
        if result.filed:
            proposed = sum(each.proposed is not None for each in result.filed)
            about = f"; {count_noun(proposed, 'card')} to decide" if proposed else ""
            self._log("receipts.kept", f"kept {count_noun(len(result.filed), 'receipt')}{about}")
        for name, why in result.refused:
            if self._refused.get(name) != self._seen.get(name):
                self._log("receipts.refused", f"receipts/inbox/{name} stays there: {why}", level="warning")
        self._refused = {name: self._seen[name] for name, _ in result.refused if name in self._seen}


def _describe_files(paths: list[Path]) -> dict[str, tuple[int, int]]:
    found = {}
    for path in paths:
        try:
            state = path.lstat()
        except OSError:  # taken away meanwhile
            continue
        found[path.name] = (state.st_size, state.st_mtime_ns)
    return found


def make_duties(log: ServiceLog) -> list[ReceiptInbox]:
    """What the service does for the books."""
    return [ReceiptInbox(log)]
