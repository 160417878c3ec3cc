"""What the dry runs of a script are over: an empty folder, sample data, the latest real files; and pinning these.

An approval binds to the effects of dry runs. So that they can be repeated, their clock and the digests
of its real files are pinned when a change is proposed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import find_day, format_iso
from cleared.base.json_values import parse_json_object
from cleared.cards.kinds import PROPOSAL
from cleared.cards.queue_files import SUFFIX
from cleared.changes.attestation import digest_data
from cleared.changes.consumed_events import iter_emitted_events
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_domains, read_imported_files
from cleared.gate.past_runs import DryRunInput, dropped_payload, find_latest_input, find_past_run, read_waiting_files
from cleared.git import Repository, Snapshot
from cleared.primitives.ctx import BUILT_IN_EVENTS
from cleared.runs.attempt import Event, parse_event
from cleared.sandbox.header import Header
from cleared.sandbox.trigger_kinds import EVENT, FILE_WATCH, ON_DEMAND, SCHEDULE, kinds_of

EMPTY_FOLDER = "an empty import folder"
SAMPLE_DATA = "sample data"
_SAMPLE: Final = ":sample"
"""Ends the id of a sample event in a pin; no script sees it."""


class NotRepeatable(Exception):
    """An input of the dry run is gone, so it cannot be repeated; the text says which."""


class DryRunPin(Struct, frozen=True):
    """``now``: the clock; ``run``: whose files, or ``files``: name → SHA-256 of what waited in ``import/``."""

    now: datetime
    run: str | None = None
    files: Mapping[str, str] = {}
    event: Mapping[str, Any] | None = None
    """The event of an agent that something starts, as ``Event.to_record`` gives it."""

    answers: Mapping[str, Mapping[str, Any]] | None = None
    """What language models had answered, as far as the dry runs asked it; None: whatever is on record."""

    def to_dict(self) -> dict[str, Any]:
        data = {"now": format_iso(self.now), "run": self.run, "files": dict(self.files), "event": self.event}
        return {**data, "answers": dict(self.answers)} if self.answers else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DryRunPin:
        """Raises ``ValueError`` or ``KeyError`` for what is not one."""
        return cls(
            datetime.fromisoformat(data["now"]),
            data["run"],
            dict(data["files"]),
            data.get("event"),
            dict(data.get("answers") or {}),
        )


class _WithoutProposalCards(Snapshot):
    """A commit without the cards of proposals: an agent that reads the queue must not act on its own proposal."""

    def __init__(self, repo: Repository, commit: str | None, queue: str) -> None:
        super().__init__(repo, commit)
        self._queue = f"{queue}/"

    def read_file(self, path: str) -> bytes | None:
        data = super().read_file(path)
        if data is None or not path.startswith(self._queue) or not path.endswith(SUFFIX):
            return data
        return b"".join(line for line in data.splitlines(keepends=True) if not _is_proposal_card(line))


def _is_proposal_card(line: bytes) -> bool:
    return PROPOSAL.name.encode() in line and parse_json_object(line).get("kind") == PROPOSAL.name


def collect_inputs(
    host: Host, repo: Repository, snapshot: Snapshot, agent: str, header: Header | None, pin: DryRunPin | None
) -> tuple[list[DryRunInput], DryRunPin]:
    """The occasions, and their pin. With a ``pin``: those again; raises ``NotRepeatable`` where that cannot be."""
    event = pin.event if pin else choose_event(host, snapshot, header)
    snapshot = _WithoutProposalCards(repo, snapshot.commit, host.layout.queue_dir)
    now = pin.now if pin else host.clock.now().replace(microsecond=0)
    at, month = _make_sample_files(host, snapshot, now)
    inputs = [
        DryRunInput(EMPTY_FOLDER, snapshot, {}, at, _event_for(host, event, at, {})),
        DryRunInput(SAMPLE_DATA, snapshot, month, at, _event_for(host, event, at, month)),
    ]
    if pin is None:
        real = find_latest_input(host, repo, snapshot, agent)
        if real is None:
            return inputs, DryRunPin(now, event=event)
        waiting = real.after is None
        files = {name: hashlib.sha256(data).hexdigest() for name, data in real.inputs.items()} if waiting else {}
        pin = DryRunPin(now, None if waiting else real.run, files, event)
    else:
        real = _find_input_again(host, repo, snapshot, agent, pin)
    if real is not None:
        then = real.event or _event_for(host, event, now, real.inputs)
        inputs.append(DryRunInput(real.label, real.snapshot, real.inputs, now, then, real.after, real.run))
    return inputs, pin


def _make_sample_files(host: Host, snapshot: Snapshot, now: datetime) -> tuple[datetime, dict[str, bytes]]:
    """The sample files of all domains, and the time at which they can be taken in: now, or later."""
    for domain in load_domains():
        now = domain.find_sample_time(host.layout, CommittedSource(snapshot), now)
    today = find_day(now, host.config.business.timezone)
    return now, {n: data for each in load_domains() for n, data in each.make_sample_files(host.config, today).items()}


def choose_event(host: Host, snapshot: Snapshot, header: Header | None) -> dict[str, Any] | None:
    """What may start an agent: the first of its triggers that is not a person, with the newest event of that name."""
    trigger_kind = next((k for k in kinds_of(header) if k is not ON_DEMAND), None) if header else None
    if header is None or trigger_kind is None:
        return None
    kind = trigger_kind.name
    if trigger_kind is EVENT:
        for event in iter_emitted_events(CommittedSource(snapshot)):
            if any(fnmatchcase(str(event["name"]), glob) for glob in header.event):
                return Event(kind, str(event["name"]), event["payload"], str(event["id"])).to_record()
        name = next((n for n in BUILT_IN_EVENTS if any(fnmatchcase(n, glob) for glob in header.event)), header.event[0])
        return Event(kind, name, _sample_payload(name), f"{kind}{_SAMPLE}").to_record()
    payload = trigger_kind.sample_payload(header)
    if trigger_kind is SCHEDULE:
        payload = {"timezone": header.timezone or host.config.business.timezone}
    return Event(kind, " ".join(trigger_kind.values(header)), payload, f"{kind}{_SAMPLE}").to_record()


def _sample_payload(name: str) -> dict[str, Any] | None:
    """The payload that an event of the program itself has, of a run that never was."""
    if name not in BUILT_IN_EVENTS:
        return None
    if name == "loop.job_finished":
        return {
            "job_id": "job_20250101T000000Z_git_status_summary",
            "kind": "git_status_summary",
            "target": "git status",
            "status": "succeeded",
            "started_at": "2025-01-01T00:00:00Z",
            "ended_at": "2025-01-01T00:00:00Z",
            "duration_sec": 0.0,
            "exit_code": 0,
            "summary": "nothing differs",
        }
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


def _event_for(host: Host, sample: Mapping[str, Any] | None, now: datetime, files: Mapping[str, bytes]) -> Event | None:
    """The sample, with what goes with this occasion, and an id as real events of the kind have it: a script must not be
    able to tell."""
    if sample is None:
        return None
    event = parse_event(sample)
    if not (event.key or "").endswith(_SAMPLE):
        return event
    mark = digest_data([event.name, *sorted(files)])
    if event.kind == SCHEDULE.name:
        due = format_iso(_find_due_time(event, now, host.config.business.timezone))
        return replace(event, payload={"due": due}, key=due)
    if event.kind == FILE_WATCH.name:
        return replace(event, payload=dropped_payload(host, files), key=f"{now:%Y%m%dT%H%M%S.%f}-{mark[:16]}")
    if event.kind == EVENT.name:
        return replace(event, key=f"{now:%Y%m%dT%H%M%SZ}-{mark[:6]}/{event.name}", depth=1)
    return replace(event, key=f"hook/msg_{mark[:27]}")


def _find_due_time(event: Event, now: datetime, timezone: str) -> datetime:
    """The last time before ``now`` at which the schedule was due; the minute itself where it never was."""
    import croniter

    zone = ZoneInfo(str((event.payload or {}).get("timezone") or timezone))
    local = now.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)
    with suppress(croniter.CroniterError, ValueError):
        search = croniter.croniter(event.name, local, max_years_between_matches=8, implement_cron_bug=True)
        local = search.get_prev(datetime)
    return local.replace(tzinfo=zone).astimezone(UTC)


def _find_input_again(
    host: Host, repo: Repository, snapshot: Snapshot, agent: str, pin: DryRunPin
) -> DryRunInput | None:
    if pin.run is not None:
        real = find_past_run(host, repo, agent, pin.run)
        if real is None:
            raise NotRepeatable(f"the files of run {pin.run}, which its dry run was over, are not here any more")
        return real
    if not pin.files:
        return None
    waiting = read_waiting_files(host)
    by_digest = {hashlib.sha256(data).hexdigest(): data for data in waiting.values()}
    missing = [name for name, digest in pin.files.items() if digest not in by_digest]
    if missing:
        done = _processed_files(host, snapshot)
        by_digest |= {d: data for d, data in done.items() if d in pin.files.values()}
        missing = [name for name, digest in pin.files.items() if digest not in by_digest]
    if missing:
        raise NotRepeatable(f"import/{missing[0]}, which its dry run was over, is not here any more")
    return DryRunInput("the files waiting in import/", snapshot, {n: by_digest[d] for n, d in pin.files.items()})


def _processed_files(host: Host, snapshot: Snapshot) -> dict[str, bytes]:
    imported_digests = {file.sha256 for file in read_imported_files(CommittedSource(snapshot), host.layout)}
    files = {}
    for path in snapshot.list_entries(host.layout.processed_dir):
        data = snapshot.read_file(path)
        digest = hashlib.sha256(data).hexdigest() if data is not None else ""
        if digest in imported_digests and data is not None:
            files[digest] = data
    return files
