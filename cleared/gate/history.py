"""The workspace's latest real inputs: what lies in ``import/``, else what the agent's last import took."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cleared.errors import ClearedError
from cleared.ledger.bank import parse_imports
from cleared.primitives.imports import TEMPORARY
from cleared.runs.host import Host
from cleared.vcs import Repository, Snapshot, history
from cleared.workspace.files import read_stable


@dataclass(frozen=True, slots=True)
class Occasion:
    """Books as they stood, and the files that lay in the drop folder."""

    label: str
    snapshot: Snapshot
    inputs: dict[str, bytes]


def latest_inputs(host: Host, repo: Repository, snapshot: Snapshot, agent: str) -> Occasion | None:
    """What a real run would see now or saw last; None where there has been nothing yet."""
    waiting = _waiting(host)
    if waiting:
        return Occasion("the files waiting in import/", snapshot, waiting)
    for commit in history.log(host.root, 50, grep=f"Agent: {agent}", files=True):
        if commit.trailers.get("Agent") != agent or "Attempt" in commit.trailers:
            continue
        after = Snapshot(repo, commit.id)
        taken = _taken(host, after, commit.trailers["Run"], commit.files or ())
        parent = _parent(repo, commit.id)
        if taken and parent:
            return Occasion(f"the files of run {commit.trailers['Run']}", Snapshot(repo, parent), taken)
    return None


def _waiting(host: Host) -> dict[str, bytes]:
    root = host.root / host.layout.import_dir
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith(("processed/", "failed/")) or path.name.startswith(".") or name.endswith(TEMPORARY):
            continue
        try:
            if path.is_file():
                found[name] = read_stable(path, host.config.import_.max_bytes)[0]
        except ClearedError:
            continue
    return found


def _taken(host: Host, after: Snapshot, run: str, files: tuple[str, ...]) -> dict[str, bytes]:
    """The files a run moved to ``processed/``, by the names they were dropped under."""
    names = {
        r.file_sha256: r.name
        for r in parse_imports(after.read(host.layout.imports), host.layout.imports)
        if r.run == run
    }
    found = {}
    for path in files:
        if path.startswith(host.layout.processed_dir + "/"):
            data = after.read(path)
            name = names.get(hashlib.sha256(data).hexdigest()) if data is not None else None
            if data is not None and name is not None:
                found[name] = data
    return found


def _parent(repo: Repository, commit: str) -> str | None:
    _, data = repo.object(commit)
    for line in data.split(b"\n\n", 1)[0].split(b"\n"):
        if line.startswith(b"parent "):
            return line[7:].decode("ascii")
    return None
