"""What is known to be whole in git's store: so that looking for damage costs what came since it was looked for last.

A record, sealed with this machine's key, has some states in which all was in order: the files of packs with their
digests, the loose objects, the branches. A file with the same digest has the same bytes, and need not be unpacked
again; what is new is read whole, and whatever the newer commits name has to be there. Where anything is otherwise than
can be told so, ``git fsck`` says what it is.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.errors import WorkspaceError
from cleared.git.object_reader import OID_PATTERN, read_loose_object
from cleared.git.repository import Repository
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "sound"
_VERSION: Final = b"1"
_GRAPH: Final = "commit-graph"
_NAMES: Final = (_GRAPH, "commit-graph-chain", "multi-pack-index")
_SUFFIXES: Final = (".pack", ".idx", ".graph")
"""Of the files from which git reads; others only make it faster."""
_ELSEWHERE: Final = ("objects/info/alternates", "objects/info/grafts", "info/grafts", "shallow")
"""Where one of these is, what belongs to the history is not told by the store alone."""
_FIRST, _LAST = 4, 3
"""How many earlier states are kept: packs that were joined lately are gone, large ones stay for long."""
_FOLDER: Final = re.compile(r"[0-9a-f]{2}")


class StoreState(Struct, frozen=True):
    """``files``: of packs and their indexes, path below ``objects`` → SHA-256. ``loose``: ids. ``tips``: the commits of
    all branches and the like."""

    files: dict[str, str]
    loose: list[str]
    tips: list[str]


def is_known_sound(repo: Repository, state_dir: Path) -> bool:
    """Whether every object is whole and there, by what was known and what came since."""
    states = _read_record(state_dir)
    if not states or any((repo.common_dir / name).exists() for name in _ELSEWHERE):
        return False
    now = read_store(repo)
    if now is None:
        return False
    known = {name: digest for state in states for name, digest in state.files.items()}
    new = [name for name, digest in now.files.items() if known.get(name) != digest]
    if any(name in known for name in new) or not _are_sound(repo, new, now.loose):
        return False
    # What a pack held that is gone is looked for in the others: from the last state of which each pack is there.
    standing = [state for state in states if {each for each in state.files if _is_pack(each)} <= now.files.keys()]
    last = standing[-1] if standing else StoreState({}, [], [])
    gone = {*last.loose} - {*now.loose}
    if (gone and not _has_all(repo, gone)) or not _reaches_all(repo, last.tips):
        return False
    _write_record(state_dir, [*standing[:_FIRST], *standing[_FIRST:][-_LAST:], now])
    return True


def read_store(repo: Repository) -> StoreState | None:
    """The store as it is; None where it cannot be read, or another git is changing it."""
    with suppress(OSError, WorkspaceError):
        return _read_store(repo)
    return None


def _read_store(repo: Repository) -> StoreState:
    objects = repo.common_dir / "objects"
    files = [path for folder in ("pack", "info") for path in sorted((objects / folder).rglob("*")) if path.is_file()]
    digests = {}
    for path in files:
        if path.suffix in _SUFFIXES or path.name in _NAMES:
            with path.open("rb") as file:
                digests[path.relative_to(objects).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    folders = (path for path in objects.iterdir() if _FOLDER.fullmatch(path.name))
    loose = sorted(folder.name + path.name for folder in folders for path in folder.iterdir())
    tips = repo.git.run("for-each-ref", "--format=%(objectname)").decode("ascii").split()
    return StoreState(digests, [oid for oid in loose if OID_PATTERN.fullmatch(oid)], sorted({*tips, repo.read_head()}))


def remember_sound(state_dir: Path, state: StoreState) -> None:
    """Keep that all is in order, as of this state."""
    _write_record(state_dir, [state])


def _write_record(state_dir: Path, states: Sequence[StoreState]) -> None:
    SealedFiles(state_dir, _VERSION).write(_NAME, json.dumps([asdict(state) for state in states]).encode("ascii"))


def _read_record(state_dir: Path) -> list[StoreState]:
    data = SealedFiles(state_dir, _VERSION).read(_NAME)
    return [StoreState(**state) for state in json.loads(data)] if data is not None else []


def _is_pack(name: str) -> bool:
    return name.endswith(".pack")


def _are_sound(repo: Repository, files: Iterable[str], loose: Iterable[str]) -> bool:
    """Whether new files of packs and all loose objects hold what their names say."""
    objects = repo.common_dir / "objects"
    for name in files:
        if _is_pack(name):
            if not _succeeds(repo, "index-pack", "--verify", "--fsck-objects", str(objects / name)):
                return False
        elif name.endswith("multi-pack-index") or (
            _GRAPH in name and not _succeeds(repo, "commit-graph", "verify", "--no-progress")
        ):
            return False
    return all(read_loose_object(str(objects), oid) is not None for oid in loose)


def _has_all(repo: Repository, oids: Iterable[str]) -> bool:
    process = repo.git.start(["cat-file", "--batch-check"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    out, _ = process.communicate("".join(f"{oid}\n" for oid in oids).encode("ascii"))
    return process.returncode == 0 and not any(line.endswith(b" missing") for line in out.splitlines())


def _reaches_all(repo: Repository, known: Iterable[str]) -> bool:
    """Whether all is there that branches, reflogs aside, and the index name, but for what ``known`` commits name."""
    excluded = [f"^{oid}" for oid in known]
    return _succeeds(repo, "rev-list", "--objects", "--quiet", "--all", "--indexed-objects", "HEAD", *excluded, "--")


def _succeeds(repo: Repository, *args: str) -> bool:
    process = repo.git.start(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return process.wait() == 0
