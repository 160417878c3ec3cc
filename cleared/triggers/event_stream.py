"""Events of this clone's commits: those that scripts emitted, and built-in ones (``run.succeeded`` …)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import WorkspaceError
from cleared.changes.attestation import digest_data, find_counting, settlement_digest
from cleared.changes.attestation_lines import Attestation, added_lines, list_shards, parse_attestation
from cleared.changes.committed_cards import read_cards
from cleared.changes.consumed_events import DEPTH, FAILED, ORIGIN, event_line, iter_emitted_events, trailer_number
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_domains
from cleared.git import Repository, Snapshot, find_clone_id, history, read_recent_commits
from cleared.primitives.ctx import BUILT_IN_EVENTS
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import EVENT
from cleared.trust.keys import run_public_key

RUN_SUCCEEDED, RUN_FAILED, PROPOSAL_APPROVED, CARD_RESOLVED, IMPORT_NEW, JOB_FINISHED = BUILT_IN_EVENTS
MAX_EVENT_AGE: Final = timedelta(days=7)
"""Events older than this are not delivered where the record of deliveries was lost."""
_MAX_COMMITS: Final = 10_000


class RecordedEvent(Struct, frozen=True):
    """An event, its commit, and the run or decision that made that commit. The event of a job that ended has no commit;
    it is made by the run that asked for the job."""

    event: Event
    commit: str
    made_by: str


def read_events_since(
    host: Host, repo: Repository, head: str, cursor: str | None, wanted: Callable[[str], bool], now: datetime
) -> list[RecordedEvent]:
    """The events of this clone's commits after ``cursor``, oldest first; only names that are ``wanted``.

    They are those that are attested since, with the key of this machine and the mark of this clone (in a fleet, with
    any key that counts): what was attested before was delivered, whatever became of its commit. Not older than seven
    days: before the last that was seen, or before now, where there is no cursor.
    """
    if (is_own := _tell_own(host, repo, Snapshot(repo, head))) is None:
        return []
    start = Snapshot(repo, cursor) if cursor and repo.has_in_history(cursor) else None
    last = _last_attested_at(start, is_own) if start else now
    oldest = format_iso(min(last, now) - MAX_EVENT_AGE) if last is not None else ""
    past = SeenAttestations(start)
    events: list[RecordedEvent] = []
    for after in _list_commits(host, repo, head, cursor if start else None):
        for line in past.add_commit(after):
            attestation = parse_attestation(line)
            if attestation is not None and is_own(attestation) and attestation.at >= oldest:
                events += _events_of_commit(host, after, attestation, wanted)
    return events


_IsOwn = Callable[[Attestation], bool]


def _tell_own(host: Host, repo: Repository, snapshot: Snapshot) -> _IsOwn | None:
    """What tells whether the events of an attestation are delivered here; None where none are."""
    if host.serves_all_clones:
        signers = find_counting(host, snapshot).keys
        return lambda attestation: attestation.key in signers
    mine, key = find_clone_id(repo), run_public_key(host.root)
    if mine is None or not key:
        return None
    return lambda attestation: attestation.key == key and attestation.trailers.get(ORIGIN) == mine


def _last_attested_at(start: Snapshot, is_own: _IsOwn) -> datetime | None:
    """When the last that was seen was attested. A line that was removed from the history and is put back long after
    makes no event again."""
    for line in reversed(list(added_lines(None, start))):
        attestation = parse_attestation(line)
        if attestation is not None and is_own(attestation):
            return datetime.fromisoformat(attestation.at)
    return None


class SeenAttestations:
    """The attestations of the commits read so far."""

    def __init__(self, start: Snapshot | None) -> None:
        self._start = self._before = start
        self._seen: set[bytes] = set()
        self._known: set[bytes] | None = None

    def add_commit(self, after: Snapshot) -> list[bytes]:
        """The attestations of a commit that no earlier one had."""
        new = [line for line in added_lines(self._before, after) if line not in self._seen]
        if new and self._before is not self._start:  # on another branch of a merge it may have been missing
            self._known = self._known or (set(added_lines(None, self._start)) if self._start else set())
            new = [line for line in new if line not in self._known]
        self._seen.update(new)
        self._before = after
        return new


def _list_commits(host: Host, repo: Repository, head: str, cursor: str | None) -> Iterator[Snapshot]:
    """The commits after ``cursor`` that may have attested something, oldest first, and ``head``."""
    commits = read_recent_commits(repo, head, cursor) if cursor else None
    if commits is None:
        paths = list(list_shards(Snapshot(repo, head)))
        with suppress(WorkspaceError):
            for info in reversed(history.read_log(host.root, _MAX_COMMITS, paths, since=cursor, rev=head)):
                yield Snapshot(repo, info.id)
    for each in reversed(commits or ()):
        yield Snapshot(repo, each.id)
    yield Snapshot(repo, head)


def _events_of_commit(
    host: Host, after: Snapshot, attestation: Attestation, wanted: Callable[[str], bool]
) -> Iterator[RecordedEvent]:
    trailers, by, commit = attestation.trailers, attestation.made_by, after.commit or ""
    depth = trailer_number(trailers, DEPTH) + 1

    def make_event(name: str, payload: Any, key: str = "") -> RecordedEvent:
        return RecordedEvent(Event(EVENT.name, name, payload, f"{by}/{key or name}", depth), commit, by)

    for event in _read_emitted_events(after, attestation):
        if wanted(name := str(event["name"])):
            yield make_event(name, event["payload"], str(event["id"]).rpartition("/")[2])
    about = {"commit": commit, "run": trailers.get("Run"), "agent": trailers.get("Agent")}
    if "Run" in trailers and "Event" in trailers and wanted(RUN_SUCCEEDED):
        yield make_event(RUN_SUCCEEDED, {**about, "event": trailers["Event"], "message": attestation.subject})
    if trailers.get("Outcome") == FAILED and wanted(RUN_FAILED):
        yield make_event(RUN_FAILED, {**about, "event": trailers.get("Attempt"), "cause": attestation.subject})
    if "Approved-by" in trailers and "Proposal" in trailers and wanted(PROPOSAL_APPROVED):
        proposal = {"proposal": trailers["Proposal"], "by": trailers["Approved-by"], "commit": commit}
        yield make_event(PROPOSAL_APPROVED, proposal)
    if attestation.statement.get("settles") and wanted(CARD_RESOLVED):
        yield make_event(
            CARD_RESOLVED, {**about, "by": trailers.get("By"), "cards": _read_resolved_cards(host, after, attestation)}
        )
    if attestation.statement.get("imports") and wanted(IMPORT_NEW):
        for domain in load_domains():
            imported = domain.read_imported_files(CommittedSource(after), host.layout)
            files = [dict(file.description) for file in imported if file.imported_by == by]
            if digest_data(files) == attestation.statement["imports"]:
                yield make_event(IMPORT_NEW, {**about, "files": files})


def _read_emitted_events(after: Snapshot, attestation: Attestation) -> list[dict[str, Any]]:
    """The events that were emitted, in order; of lines that were altered since, none."""
    emits = list(attestation.statement.get("emits") or ())
    if not emits:
        return []
    wanted, known = set(emits), dict[str, dict[str, Any]]()
    for event in islice(iter_emitted_events(CommittedSource(after)), _MAX_COMMITS + len(emits)):
        digest = digest_data(event_line(event)) if event["run"] == attestation.made_by else ""
        if digest in wanted:
            known[digest] = event
        if len(known) == len(wanted):
            break  # no file of an earlier month is read
    return [known[each] for each in emits if each in known]


def _read_resolved_cards(host: Host, after: Snapshot, attestation: Attestation) -> list[dict[str, Any]]:
    cards = read_cards(host, after)
    settled = [(cards[name], digest) for name, digest in attestation.statement["settles"].items() if name in cards]
    return [
        {"id": card.id, "kind": card.kind, "entry_id": card.record_id, "resolution": card.resolution}
        for card, digest in settled
        if settlement_digest(card.resolved_by or "", card.resolution or "") == digest
    ]
