"""Whether git still has, whole, every object that the books and their history consist of."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleared.vcs.object_writer import blob_id
from cleared.vcs.repository import Repository
from cleared.vcs.snapshot import Snapshot

_PROBLEM: Final = re.compile(r"(?:error|fatal|missing|broken|bad|corrupt)\b")
_OID: Final = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


@dataclass(frozen=True, slots=True)
class ObjectDamage:
    """``objects``: ids of what is damaged or missing, those of files in the last commit by their path. ``said``: what
    git says, line by line. ``mendable``: path → the damaged file of git's, where the working tree has the content."""

    objects: dict[str, str]
    git_messages: list[str]
    repairable: dict[str, Path]


def find_damaged_objects(repo: Repository) -> ObjectDamage | None:
    """What git finds wrong with its objects, each read and measured; None where all is sound. Reads all of them."""
    process = repo.git.start(
        ["fsck", "--full", "--no-dangling", "--no-reflogs", "--no-progress"], stderr=subprocess.STDOUT
    )
    out, _ = process.communicate()
    said = [line for line in out.decode("utf-8", "replace").splitlines() if _PROBLEM.match(line)]
    if process.returncode == 0 and not said:
        return None
    ids = list(dict.fromkeys(oid for line in said for oid in _OID.findall(_join_object_name(line))))
    paths = _object_paths(repo)
    objects = {oid: paths.get(oid, "") for oid in ids}
    mendable = {path: file for oid, path in objects.items() if (file := _repairable_file(repo, oid, path)) is not None}
    return ObjectDamage(objects, said or [f"git fsck ended with {process.returncode}"], mendable)


def _join_object_name(line: str) -> str:
    """A loose object is named by its file too (two digits, a slash, the rest); only by it, where the content is
    another's."""
    line = line.rpartition("found at:")[2]
    return re.sub(r"\bobjects/([0-9a-f]{2})/", r"objects/ \1", line)


def _object_paths(repo: Repository) -> dict[str, str]:
    """Object → path of the files of the last commit, as far as its trees can be read."""
    from cleared.errors import WorkspaceError

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
