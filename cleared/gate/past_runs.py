"""Inputs for dry runs: the files in ``import/``, and the books and files of an agent's past runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.consumed_events import DATA, iter_emitted_events
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import read_imported_files
from cleared.git import Repository, Snapshot, history, parse_parents
from cleared.primitives.model_requests import recorded_answers
from cleared.runs.attempt import Event
from cleared.sandbox.trigger_kinds import EVENT, FILE_WATCH, ON_DEMAND, SCHEDULE, WEBHOOK
from cleared.workspace.watched_names import is_ready_name


class DryRunInput(Struct, frozen=True):
    """Books as they stood, the files that lay in the drop folder, and the clock of that moment."""

    label: str
    snapshot: Snapshot
    inputs: dict[str, bytes]
    now: datetime | None = None
    event: Event | None = None
    """Why it was run; None: on demand."""
    after: Snapshot | None = None
    """The commit that the run really made."""
    run: str | None = None

    def model_answers(self, host: Host) -> dict[str, Mapping[str, Any]]:
        """What language models had answered: to this run, else to others before it."""
        events = iter_emitted_events(CommittedSource(self.after or self.snapshot))
        return recorded_answers(events, self.run)


def find_latest_input(host: Host, repo: Repository, snapshot: Snapshot, agent: str) -> DryRunInput | None:
    """What a real run would see now or saw last; None where there has been nothing yet."""
    waiting = read_waiting_files(host)
    if waiting:
        return DryRunInput("the files waiting in import/", snapshot, waiting)
    for occasion in read_past_runs(host, repo, agent, 50):
        if isinstance(occasion, DryRunInput) and occasion.inputs:
            return occasion
    return None


def read_past_runs(host: Host, repo: Repository, agent: str, limit: int) -> Iterator[DryRunInput | str]:
    """The agent's committed runs, newest first; a run whose input is not in the repository is only its id."""
    count, origins = 0, CommitOrigins(host, repo, Snapshot(repo, repo.read_head()))
    for commit in history.read_log(host.root, limit * 20, grep=f"Agent: {agent}", files=True):
        if commit.trailers.get("Agent") != agent or "Run" not in commit.trailers or "Attempt" in commit.trailers:
            continue
        if origins.judge_alone(commit) not in COUNTING:
            continue  # whoever can push claims to be a run
        count += 1
        if count > limit:
            return
        yield _input_of_run(host, repo, commit)


def _input_of_run(host: Host, repo: Repository, commit: history.CommitInfo) -> DryRunInput | str:
    run, parent = commit.trailers["Run"], parent_commit(repo, commit.id)
    after = Snapshot(repo, commit.id)
    taken, complete = read_imported_inputs(host, after, run, commit.files or ())
    if parent is None or not complete:
        return run
    at = datetime.fromisoformat(commit.trailers.get("Clock", format_iso(commit.when)))
    event = read_event_of_run(host, after, commit.trailers, taken)
    return DryRunInput(f"the files of run {run}", Snapshot(repo, parent), taken, at, event, after, run)


def read_event_of_run(
    host: Host, after: Snapshot, trailers: Mapping[str, str], files: Mapping[str, bytes]
) -> Event | None:
    """The event of a run, as far as its commit shows it."""
    kind, _, key = trailers.get("Event", "").partition(" ")
    if kind == SCHEDULE.name:
        return Event(kind, "", {"due": key}, key)
    if kind == FILE_WATCH.name:
        return Event(kind, "", dropped_payload(host, files), key)
    if kind in (ON_DEMAND.name, WEBHOOK.name) and DATA in trailers:
        try:
            return Event(kind, "", json.loads(trailers[DATA]), key)
        except (ValueError, RecursionError):
            return None
    if kind == EVENT.name:
        record = next((e for e in iter_emitted_events(CommittedSource(after)) if e["id"] == key), None)
        return Event(kind, record["name"], record["payload"], key) if record else None
    return None


def dropped_payload(host: Host, files: Iterable[str]) -> dict[str, Any]:
    """The payload of the event of these files in the drop folder."""
    return {"files": [f"{host.layout.import_dir}/{name}" for name in files]}


def find_past_run(host: Host, repo: Repository, agent: str, run: str) -> DryRunInput | None:
    """One past run; None where it, or its input, is not in the repository."""
    origins = CommitOrigins(host, repo, Snapshot(repo, repo.read_head()))
    for commit in history.find_by_trailer(host.root, "Run", run):
        if commit.trailers.get("Agent") == agent and "Attempt" not in commit.trailers:
            full = history.read_commit(host.root, commit.id)
            if origins.judge_alone(full) not in COUNTING:
                continue
            past_run = _input_of_run(host, repo, full)
            return past_run if isinstance(past_run, DryRunInput) else None
    return None


def read_waiting_files(host: Host) -> dict[str, bytes]:
    """What lies in the drop folder: name → bytes. What cannot be read is left out."""
    root = host.root / host.layout.import_dir
    files = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith(("processed/", "failed/")) or not is_ready_name(path.name):
            continue
        try:
            if path.is_file():
                files[name] = read_stable(path, host.config.import_.max_bytes)[0]
        except ClearedError:
            continue
    return files


def read_imported_inputs(
    host: Host, after: Snapshot, run: str, files: tuple[str, ...]
) -> tuple[dict[str, bytes], bool]:
    """The files a run moved to ``processed/``, by the names they were dropped under, and whether those are all."""
    recorded = read_imported_files(CommittedSource(after), host.layout)
    names = {file.sha256: file.name for file in recorded if file.imported_by == run}
    imported = {}
    for path in files:
        if path.startswith(host.layout.processed_dir + "/"):
            data = after.read_file(path)
            name = names.pop(hashlib.sha256(data).hexdigest(), None) if data is not None else None
            if data is not None and name is not None:
                imported[name] = data
    return imported, not names


def parent_commit(repo: Repository, commit: str) -> str | None:
    """The commit's first parent, if it has one and that is here (a shallow clone ends somewhere)."""
    for parent in parse_parents(repo.objects.read_object(commit)[1])[:1]:
        with contextlib.suppress(WorkspaceError):
            repo.objects.read_object(parent)
            return parent
    return None
