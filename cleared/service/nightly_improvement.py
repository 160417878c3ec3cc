"""Improving agents once a night, where ``self_improvement.enabled`` says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from cleared.base.errors import ClearedError
from cleared.base.safe_files import write_atomic
from cleared.changes.host import Host
from cleared.gate.proposals.improving import improve_agents
from cleared.triggers.service_log import ServiceLog
from cleared.workspace.lock import ensure_state_dir

_HOUR: Final = time(3)
"""From when on it is night, in ``business.timezone``: the files of the day before are in."""
_FILE: Final = "improved"
"""Below ``.cleared/``: the day on which it was last done, and what was found that only a person can make better."""


class NightlyImprovement:
    """A duty of the service: what was learned is proposed once a day, from three in the morning on."""

    def __init__(self, log: ServiceLog) -> None:
        self.log = log
        self.due_at: datetime | None = None

    def notice_commit(self) -> None:
        """A decision waits for the night."""

    def handle_clock_set_back(self, now: datetime) -> None:
        self.due_at = now

    def perform_if_due(self, host: Host, now: datetime) -> None:
        """Improve if it was not done this night. What is wrong with it stops no other work: the next night tries
        again."""
        if not host.config.self_improvement.enabled:
            self.due_at = None  # no night is waited for
            return
        if self.due_at is not None and now < self.due_at:
            return
        zone = ZoneInfo(host.config.business.timezone)
        local = now.astimezone(zone)
        tonight = datetime.combine(local.date(), _HOUR, zone)
        self.due_at = tonight if local < tonight else tonight + timedelta(days=1)
        path, day = host.layout.state_dir / _FILE, local.date().isoformat()
        if local < tonight or _read_night(host)[0] == day:
            return
        ensure_state_dir(host.layout.state_dir)
        _write_night(path, day, [])
        try:
            done = improve_agents(host, is_asked=False)
        except ClearedError as error:
            self.log("agents.improved", f"nothing was learned: {error}", level="warning")
            return
        _write_night(path, day, done.findings)
        self.log("agents.improved", "; ".join([done.describe(), *done.findings, *done.held]))


def list_findings(host: Host, since: date) -> list[str]:
    """What the last night found that only a person can make better, where that was ``since`` this day."""
    day, findings = _read_night(host)
    return findings if day >= since.isoformat() else []


def _write_night(path: Path, day: str, findings: Sequence[str]) -> None:
    write_atomic(path, json.dumps([day, *findings]).encode("ascii"), fsync=False)


def _read_night(host: Host) -> tuple[str, list[str]]:
    """The day on which it was last done, and what was found; empty where nothing says so."""
    try:
        day, *findings = map(str, json.loads((host.layout.state_dir / _FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return "", []
    return day, findings
