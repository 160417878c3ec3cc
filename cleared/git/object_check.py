"""Whether git still has, whole, every object that the books and their history consist of."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.git.object_reader import blob_id
from cleared.git.repository import Repository, Snapshot
from cleared.git.sound_objects import is_known_sound, read_store, remember_sound

_PROBLEM: Final = re.compile(r"(?:error|fatal|missing|broken|bad|corrupt)\b")
_PACK_NAME: Final = re.compile(r"\bpack-[0-9a-f]+\.\w+")
_OID: Final = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")


class ObjectDamage(Struct, frozen=True):
    """``objects``: id of a damaged or missing object → its path in the last commit, or ``""``. ``git_messages``: what
    git prints, line by line. ``remedy``: the commands that mend it, where the working tree has all of them; or
    ``""``."""

    objects: dict[str, str]
    git_messages: list[str]
    remedy: str


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
    remedy = _explain_mending(repo, objects.values()) if _has_all_content(repo, objects) else ""
    return ObjectDamage(objects, messages or [f"git fsck ended with {process.returncode}"], remedy)


def _join_object_name(line: str) -> str:
    """The line with the file name of a loose object (two digits, a slash, the rest) as an id, and without packs' names,
    which look like one.

    Where the content is another object's, git names the object only by its file.
    """
    line = _PACK_NAME.sub("", line.rpartition("found at:")[2])
    return re.sub(r"\bobjects/([0-9a-f]{2})/", r"objects/ \1", line)


def _object_paths(repo: Repository) -> dict[str, str]:
    """Object → path, for the files of the last commit; empty where its trees cannot be read."""
    try:
        return {oid: path for path, (_, oid) in Snapshot(repo, repo.read_head()).list_entries().items()}
    except (WorkspaceError, ValueError):
        return {}


def _has_all_content(repo: Repository, objects: Mapping[str, str]) -> bool:
    """Whether the working tree has the content of each damaged object."""
    try:
        return bool(objects) and all(
            path != "" and blob_id((repo.root / path).read_bytes(), repo.hash_name) == oid
            for oid, path in objects.items()
        )
    except OSError:
        return False


def _explain_mending(repo: Repository, paths: Iterable[str]) -> str:
    """The commands that write these files anew, beside the damage, and then all packs without it. Git stores nothing
    that it takes to be there already, so they are written into a store of their own first."""
    store, objects = (shlex.quote(str(repo.common_dir / name)) for name in ("mend", "objects"))
    files = " ".join(map(shlex.quote, paths))
    return (
        f"mkdir -p {store} && GIT_OBJECT_DIRECTORY={store} git hash-object -w --no-filters -- {files} "
        f"&& cp -Rf {store}/. {objects}/ && git repack -adfkq && rm -rf {store}"
    )
