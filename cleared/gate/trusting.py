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
from cleared.runs.questions import Questions
from cleared.runs.source import CommittedSource
from cleared.vcs import Snapshot


@dataclass(slots=True)
class Signatory:
    """One key, and what was approved with it. ``names``: what its records say of who that is. ``runs``: it is that of a
    machine's runs, which ask and are answered with it, and approves nothing."""

    key: str
    trusted: bool
    runs: bool = False
    names: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    first: str = ""
    last: str = ""

    def add(self, by: str, path: str, at: str) -> None:
        """Something else that was signed with it."""
        self.names = sorted({*self.names, by})
        self.paths = sorted({*self.paths, path})
        self.first, self.last = min(self.first or at, at), max(self.last, at)


def signatories(host: Host) -> list[Signatory]:
    """Everyone who approved something in this workspace, and the machines that asked or answered what its runs wait
    for, with genuine signatures, oldest first."""
    with host.reading() as repo:
        snapshot = Snapshot(repo, repo.head())
        source = CommittedSource(snapshot)
        workspace = Approvals(source, host.root, {}).workspace
        known = trust.load(workspace).keys
        own = own_key(host.root)
        found: dict[str, Signatory] = {}
        for record in _records(source):
            if record.workspace != workspace or not record.genuine:
                continue
            mine = own is not None and record.key == own.public
            who = found.setdefault(record.key, Signatory(record.key, mine or record.key in known))
            who.add(record.by, record.path, record.at)
        questions = Questions(host, repo, snapshot)
        machines: dict[str, Signatory] = {}
        for key, by, at in questions.signed():
            trusted = questions.approvals.trusts_run(key)
            machines.setdefault(key, Signatory(key, trusted, runs=True)).add(by, "questions of runs", at)
        return sorted([*found.values(), *machines.values()], key=lambda s: (s.first, s.key, s.runs))


def accept(host: Host, keys: list[str]) -> list[Signatory]:
    """Trust these keys in this workspace, on this machine, each for what was signed with it: a machine's key of runs
    approves nothing. Raises ``UsageError`` for one that signed nothing here."""
    refuse_in_job()
    known = [s for s in signatories(host) if s.key in keys]
    for key in keys:
        if key not in {s.key for s in known}:
            raise UsageError(f"{key} signed nothing here", remedy="cleared trust shows who did.")
    with host.reading() as repo:
        workspace = Approvals(CommittedSource(Snapshot(repo, repo.head())), host.root, {}).workspace
    mine = trust.load(workspace)
    mine.keys |= {s.key: ", ".join(s.names) for s in known if not s.runs}
    mine.runs |= {s.key: ", ".join(s.names) for s in known if s.runs}
    mine.save()
    return known


def _records(source: CommittedSource) -> list[Record]:
    paths = [p for p in source.paths(FOLDER) if p.endswith(".json") and not p.endswith(QUARANTINED)]
    return [record for record in (parsed(source.read(path)) for path in paths) if record is not None]
