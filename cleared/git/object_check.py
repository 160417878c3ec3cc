"""Whether git still has, whole, every object that the books and their history consist of."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.git.object_reader import blob_id
from cleared.git.repository import Repository, Snapshot
from cleared.git.sound_objects import is_known_sound, read_store, remember_sound

_PROBLEM: Final = re.compile(r"(?:error|fatal|missing|broken|bad|corrupt)\b")
_OID: Final = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


class ObjectDamage(Struct, frozen=True):
    """``objects``: id of a damaged or missing object → its path in the last commit, or ``""``. ``git_messages``: what
    git prints, line by line. ``repairable``: path → git's damaged file, where the working tree has the content."""

    objects: dict[str, str]
    git_messages: list[str]
    repairable: dict[str, Path]


def find_damaged_objects(repo: Repository, state_dir: Path | None = None) -> ObjectDamage | None:
    """What ``git fsck``, which reads every object, finds wrong; ``None`` where all is sound, or known to be so.
    ``state_dir``: where what is known is kept; without, all is read."""
    if state_dir is not None and is_known_sound(repo, state_dir):
        return None
    state = read_store(repo) if state_dir is not None else None
    process = repo.git.start(
        ["fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress"], stderr=subprocess.STDOUT
    )
    out, _ = process.communicate()
    messages = [line for line in out.decode("utf-8", "replace").splitlines() if _PROBLEM.match(line)]
    if process.returncode == 0 and not messages:
        if state_dir is not None and state is not None:
            remember_sound(state_dir, state)
        return None
    ids = list(dict.fromkeys(oid for line in messages for oid in _OID.findall(_join_object_name(line))))
    paths = _object_paths(repo)
    objects = {oid: paths.get(oid, "") for oid in ids}
    repairable = {
        path: file for oid, path in objects.items() if (file := _repairable_file(repo, oid, path)) is not None
    }
    return ObjectDamage(objects, messages or [f"git fsck ended with {process.returncode}"], repairable)


def _join_object_name(line: str) -> str:
    """The line with the file name of a loose object (two digits, a slash, the rest) as an id.

    Where the content is another object's, git names the object only by its file.
    """
    line = line.rpartition("found at:")[2]
    return re.sub(r"\bobjects/([0-9a-f]{2})/", r"objects/ \1", line)


def _object_paths(repo: Repository) -> dict[str, str]:
    """Object → path, for the files of the last commit; empty where its trees cannot be read."""
    try:
        return {oid: path for path, (_, oid) in Snapshot(repo, repo.read_head()).list_entries().items()}
    except (WorkspaceError, ValueError):
        return {}


def _repairable_file(repo: Repository, oid: str, path: str) -> Path | None:
    loose = repo.common_dir / "objects" / oid[:2] / oid[2:]
    try:
        same = bool(path) and blob_id((repo.root / path).read_bytes(), repo.hash_name) == oid
    except OSError:
        return None
    return loose if same and loose.is_file() else None
