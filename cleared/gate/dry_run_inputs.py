"""What a script is rehearsed over: an empty folder, a made-up month, the latest real files; and pinning these.

An approval binds to the effects of a rehearsal. So that the same rehearsal can be held again, its clock and the digests
of its real files are pinned when a change is proposed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any
from zoneinfo import ZoneInfo

from cleared.cards.queue_files import SUFFIX
from cleared.changes.emitted_events import events
from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.gate.past_runs import Occasion, dropped, latest_inputs, occasion_of, waiting_files
from cleared.gate.sample_data import open_time, synthetic_files
from cleared.ledger.bank_lines import parse_imports
from cleared.ledger.periods import parse_periods
from cleared.primitives.ctx import BUILT_IN
from cleared.runs.attempt import Event, event_of
from cleared.sandbox.header import Header
from cleared.vcs import Repository, Snapshot

EMPTY = "an empty import folder"
SYNTHETIC = "a made-up month"


class Unpinned(Exception):
    """The rehearsal cannot be held again; the text says why."""


@dataclass(frozen=True, slots=True)
class Pin:
    """``now``: the clock; ``run``: whose files, or ``files``: name → SHA-256 of what waited in ``import/``."""

    now: datetime
    run: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    event: Mapping[str, Any] | None = None
    """The event of an agent that something starts, as ``Event.data``."""

    def data(self) -> dict[str, Any]:
        return {"now": format_iso(self.now), "run": self.run, "files": dict(self.files), "event": self.event}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Pin:
        """Raises ``ValueError`` or ``KeyError`` for what is not one."""
        return cls(datetime.fromisoformat(data["now"]), data["run"], dict(data["files"]), data.get("event"))


class _Unasked(Snapshot):
    """A commit without the cards of proposals: what an agent does about the queue is not to depend on whether it is
    itself being asked about."""

    def __init__(self, repo: Repository, commit: str | None, queue: str) -> None:
        super().__init__(repo, commit)
        self._queue = f"{queue}/"

    def read(self, path: str) -> bytes | None:
        data = super().read(path)
        if data is None or not path.startswith(self._queue) or not path.endswith(SUFFIX):
            return data
        return b"".join(line for line in data.splitlines(keepends=True) if not _asks_about_a_proposal(line))


def _asks_about_a_proposal(line: bytes) -> bool:
    if b'"proposal"' not in line:
        return False
    try:
        card = json.loads(line)
    except ValueError:
        return False
    return isinstance(card, dict) and card.get("kind") == "proposal"


def occasions(
    host: Host, repo: Repository, snapshot: Snapshot, agent: str, header: Header | None, pin: Pin | None
) -> tuple[list[Occasion], Pin]:
    """The occasions, and their pin. With a ``pin``: those again; raises ``Unpinned`` where that cannot be."""
    event = pin.event if pin else sample(host, snapshot, header)
    snapshot = _Unasked(repo, snapshot.commit, host.layout.queue_dir)
    now = pin.now if pin else host.clock.now().replace(microsecond=0)
    zone, periods = ZoneInfo(host.config.business.timezone), host.layout.periods
    at = open_time(now, zone, parse_periods(snapshot.read(periods), periods).closed_through)
    month = synthetic_files(host.config, at.astimezone(zone).date())
    found = [
        Occasion(EMPTY, snapshot, {}, at, _event(host, event, at, {})),
        Occasion(SYNTHETIC, snapshot, month, at, _event(host, event, at, month)),
    ]
    if pin is None:
        real = latest_inputs(host, repo, snapshot, agent)
        if real is None:
            return found, Pin(now, event=event)
        waiting = real.after is None
        files = {name: hashlib.sha256(data).hexdigest() for name, data in real.inputs.items()} if waiting else {}
        pin = Pin(now, None if waiting else real.run, files, event)
    else:
        real = _again(host, repo, snapshot, agent, pin)
    if real is not None:
        then = real.event or _event(host, event, now, real.inputs)
        found.append(Occasion(real.label, real.snapshot, real.inputs, now, then, real.after, real.run))
    return found, pin


def sample(host: Host, snapshot: Snapshot, header: Header | None) -> dict[str, Any] | None:
    """What may start an agent: the first of its triggers that is not a person, with the newest event of that name."""
    kind = next((t for t in header.triggers if t != "on_demand"), None) if header else None
    if header is None or kind is None:
        return None
    if kind == "event":
        for event in events(snapshot.read(host.layout.events)):
            if any(fnmatchcase(str(event["name"]), glob) for glob in header.event):
                return Event(kind, str(event["name"]), event["payload"], str(event["id"])).data()
        name = next((n for n in BUILT_IN if any(fnmatchcase(n, glob) for glob in header.event)), header.event[0])
        return Event(kind, name, _made_up(name), f"{kind}:sample").data()
    about = header.schedule if kind == "schedule" else " ".join(header.watch)
    return Event(kind, about or "", None, f"{kind}:sample").data()


def _made_up(name: str) -> dict[str, Any] | None:
    """The payload that an event of the program itself has, of a run that never was."""
    if name not in BUILT_IN:
        return None
    if name == "loop.job_finished":
        return {
            "job_id": "job_20250101T000000Z_git_status_summary", "kind": "git_status_summary", "target": "git status",
            "status": "succeeded", "started_at": "2025-01-01T00:00:00Z", "ended_at": "2025-01-01T00:00:00Z",
            "duration_sec": 0.0, "exit_code": 0, "summary": "nothing differs",
        }  # fmt: skip
    about = {"commit": "0" * 40, "run": "20250101T000000Z-000000", "agent": "ingest"}
    more: dict[str, dict[str, Any]] = {
        "run.succeeded": {"event": "on_demand on_demand:20250101T000000Z-000000", "message": "import: 1 transaction"},
        "run.failed": {"event": "on_demand on_demand:20250101T000000Z-000000", "cause": "log: ingest failed"},
        "card.resolved": {"by": "somebody", "cards": []},
        "import.new": {"files": []},
    }
    if name == "proposal.approved":
        return {"proposal": "P1-00000000", "by": "somebody", "commit": about["commit"]}
    return about | more[name]


def _event(
    host: Host, sample: Mapping[str, Any] | None, now: datetime, files: Mapping[str, bytes]
) -> Event | None:  # fmt: skip
    """The sample, with what goes with this occasion."""
    if sample is None:
        return None
    event = event_of(sample)
    if event.kind == "schedule":
        return replace(event, payload={"due": format_iso(now)})
    return replace(event, payload=dropped(host, files)) if event.kind == "file_watch" else event


def _again(host: Host, repo: Repository, snapshot: Snapshot, agent: str, pin: Pin) -> Occasion | None:
    if pin.run is not None:
        real = occasion_of(host, repo, agent, pin.run)
        if real is None:
            raise Unpinned(f"the files of run {pin.run}, which it was rehearsed over, are not here any more")
        return real
    if not pin.files:
        return None
    here = waiting_files(host)
    by_digest = {hashlib.sha256(data).hexdigest(): data for data in here.values()}
    missing = [name for name, digest in pin.files.items() if digest not in by_digest]
    if missing:
        done = _processed(host, snapshot)
        by_digest |= {d: data for d, data in done.items() if d in pin.files.values()}
        missing = [name for name, digest in pin.files.items() if digest not in by_digest]
    if missing:
        raise Unpinned(f"import/{missing[0]}, which it was rehearsed over, is not here any more")
    return Occasion("the files waiting in import/", snapshot, {n: by_digest[d] for n, d in pin.files.items()})


def _processed(host: Host, snapshot: Snapshot) -> dict[str, bytes]:
    known = {r.file_sha256 for r in parse_imports(snapshot.read(host.layout.imports), host.layout.imports)}
    found = {}
    for path in snapshot.entries(host.layout.processed_dir):
        data = snapshot.read(path)
        digest = hashlib.sha256(data).hexdigest() if data is not None else ""
        if digest in known and data is not None:
            found[digest] = data
    return found
