"""After cloning: whose approvals count on this machine. A human looks at who approved what, and says yes."""

from __future__ import annotations

from dataclasses import dataclass, field

from cleared.approvals import trust
from cleared.approvals.keys import own_key
from cleared.approvals.record import FOLDER, QUARANTINED, Record, parsed
from cleared.approvals.standing import Approvals
from cleared.errors import UsageError
from cleared.gate.surface import refuse_in_job
from cleared.runs.host import Host
from cleared.runs.source import CommittedSource
from cleared.vcs import Snapshot


@dataclass(slots=True)
class Signatory:
    """One key, and what was approved with it. ``names``: what its records say of who that is."""

    key: str
    trusted: bool
    names: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    first: str = ""
    last: str = ""


def signatories(host: Host) -> list[Signatory]:
    """Everyone who approved something in this workspace, with genuine signatures, oldest first."""
    with host.reading() as repo:
        source = CommittedSource(Snapshot(repo, repo.head()))
        workspace = Approvals(source, host.root, {}).workspace
        known = trust.load(workspace).keys
        own = own_key(host.root)
        found: dict[str, Signatory] = {}
        for record in _records(source):
            if record.workspace != workspace or not record.genuine:
                continue
            mine = own is not None and record.key == own.public
            who = found.setdefault(record.key, Signatory(record.key, mine or record.key in known))
            who.names = sorted({*who.names, record.by})
            who.paths = sorted({*who.paths, record.path})
            who.first = min(who.first or record.at, record.at)
            who.last = max(who.last, record.at)
        return sorted(found.values(), key=lambda s: (s.first, s.key))


def accept(host: Host, keys: list[str]) -> list[Signatory]:
    """Trust these keys in this workspace, on this machine. Raises ``UsageError`` for one that approved nothing here."""
    refuse_in_job()
    known = {s.key: s for s in signatories(host)}
    for key in keys:
        if key not in known:
            raise UsageError(f"{key} approved nothing here", remedy="cleared trust shows who did.")
    with host.reading() as repo:
        workspace = Approvals(CommittedSource(Snapshot(repo, repo.head())), host.root, {}).workspace
    mine = trust.load(workspace)
    mine.keys |= {key: ", ".join(known[key].names) for key in keys}
    mine.save()
    return [known[key] for key in keys]


def _records(source: CommittedSource) -> list[Record]:
    paths = [p for p in source.paths(FOLDER) if p.endswith(".json") and not p.endswith(QUARANTINED)]
    return [record for record in (parsed(source.read(path)) for path in paths) if record is not None]
