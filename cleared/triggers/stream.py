"""Events read off the commits of this clone: those that scripts emitted, and what can be told of a commit itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from cleared.cards import store
from cleared.errors import WorkspaceError
from cleared.gate.history import parent_of
from cleared.ledger.bank import parse_imports
from cleared.primitives.ctx import BUILT_IN
from cleared.runs.attempt import Event
from cleared.runs.consumed import FAILED
from cleared.runs.emitted import DEPTH, EMITS, IMPORTS, ORIGIN, RESOLVES, events
from cleared.runs.host import Host
from cleared.runs.source import CommittedSource
from cleared.vcs import Recent, Repository, Snapshot, origin, recent

RUN_SUCCEEDED, RUN_FAILED, PROPOSAL_APPROVED, CARD_RESOLVED, IMPORT_NEW, JOB_FINISHED = BUILT_IN
LOOK_BACK: Final = timedelta(days=7)
"""How old an event may be that is delivered without anything known of what was delivered before."""
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class Told:
    """An event, the commit that told it, and the run or decision that made the commit; of a job that ended no commit,
    and the run that asked for it."""

    event: Event
    commit: str
    by: str


def told_since(
    host: Host, repo: Repository, head: str, cursor: str | None, wanted: Callable[[str], bool], now: datetime
) -> list[Told]:
    """The events of this clone's commits after ``cursor``, oldest first; only names that are ``wanted``.

    Without a cursor, or where it is in another history by now: those of the last seven days.
    """
    mine = origin(repo)
    if mine is None:
        return []
    commits = recent(repo, head, cursor) if cursor else None
    if commits is None:
        commits = _far(host, repo, head, cursor, now)
    found: list[Told] = []
    for commit in reversed(commits):
        if commit.trailers.get(ORIGIN) == mine:
            found += _told(host, repo, commit, wanted)
    return found


def _far(host: Host, repo: Repository, head: str, cursor: str | None, now: datetime) -> list[Recent]:
    """The same with git's help; newest first."""
    from cleared.vcs import history

    since = cursor if cursor and repo.contains(cursor) else None
    try:
        found = history.log(host.root, _MOST, grep=f"{ORIGIN}: ", since=since, rev=head)
    except WorkspaceError:
        return []
    if since is None:
        found = [c for c in found if c.when >= now - LOOK_BACK]
    return [Recent(c.id, c.subject, c.trailers) for c in found]


def _told(host: Host, repo: Repository, commit: Recent, wanted: Callable[[str], bool]) -> Iterator[Told]:
    trailers = commit.trailers
    by = trailers.get("Run") or trailers.get("Decision") or commit.id
    depth = number(trailers, DEPTH) + 1

    def told(name: str, payload: Any, key: str = "") -> Told:
        return Told(Event("event", name, payload, f"{by}/{key or name}", depth), commit.id, by)

    if emits := number(trailers, EMITS):
        for line in _lines(host, repo, commit, emits):
            if wanted(name := str(line["name"])):
                yield told(name, line["payload"], str(line["id"]).rpartition("/")[2])
    about = {"commit": commit.id, "run": trailers.get("Run"), "agent": trailers.get("Agent")}
    if "Run" in trailers and "Event" in trailers and wanted(RUN_SUCCEEDED):
        yield told(RUN_SUCCEEDED, {**about, "event": trailers["Event"], "message": commit.subject})
    if trailers.get("Outcome") == FAILED and wanted(RUN_FAILED):
        yield told(RUN_FAILED, {**about, "event": trailers.get("Attempt"), "cause": commit.subject})
    if "Approved-by" in trailers and "Proposal" in trailers and wanted(PROPOSAL_APPROVED):
        proposal = {"proposal": trailers["Proposal"], "by": trailers["Approved-by"], "commit": commit.id}
        yield told(PROPOSAL_APPROVED, proposal)
    if number(trailers, RESOLVES) and wanted(CARD_RESOLVED):
        yield told(CARD_RESOLVED, {**about, "by": trailers.get("By"), "cards": _resolved(host, repo, commit)})
    if number(trailers, IMPORTS) and wanted(IMPORT_NEW):
        yield told(IMPORT_NEW, {**about, "files": _imported(host, repo, commit)})


def _lines(host: Host, repo: Repository, commit: Recent, count: int) -> list[dict[str, Any]]:
    """The events a commit emitted, in order: the last lines of its file."""
    by = commit.trailers.get("Run") or commit.trailers.get("Decision")
    last = islice(events(Snapshot(repo, commit.id).read(host.layout.events)), count)
    return [event for event in last if event["run"] == by][::-1]


def _resolved(host: Host, repo: Repository, commit: Recent) -> list[dict[str, Any]]:
    after = store.load(CommittedSource(Snapshot(repo, commit.id)), host.layout.queue_dir)
    before = store.load(CommittedSource(Snapshot(repo, parent_of(repo, commit.id))), host.layout.queue_dir)
    return [
        {"id": card.id, "kind": card.kind, "entry_id": card.entry_id, "resolution": card.resolution}
        for card in after.values()
        if card.status == "resolved" and (card.id not in before or before[card.id].status == "open")
    ]


def _imported(host: Host, repo: Repository, commit: Recent) -> list[dict[str, Any]]:
    data = Snapshot(repo, commit.id).read(host.layout.imports)
    records = parse_imports(data, host.layout.imports)
    return [
        {"name": r.name, "account": r.account, "sha256": r.file_sha256}
        for r in records if r.run == commit.trailers.get("Run")
    ]  # fmt: skip


def number(trailers: Mapping[str, str], key: str) -> int:
    """A trailer's number; 0 where there is none."""
    text = trailers.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
