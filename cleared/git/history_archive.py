"""All that git holds of a repository, as one bundle and a few values, and a new repository made of them.

The bundle (``git clone`` reads it) has every object that a reference, the log of one, or the index names. A new
repository gets none of the old one's programs: of its settings only remotes, branches and the user's name are taken.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, Final, cast

from msgspec import Struct

from cleared.base.errors import BusyError, WorkspaceError
from cleared.git.git_process import Git, first_line
from cleared.git.object_check import find_damaged_objects
from cleared.git.object_reader import HashName, is_oid
from cleared.git.repository import Repository
from cleared.git.working_files import check_path

PLAIN_FILES: Final = (
    "shallow",
    "info/exclude",
    "MERGE_HEAD",
    "MERGE_MSG",
    "MERGE_MODE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
)
"""Files of the git directory that a copy of the repository needs, and that start no program."""
ASIDE: Final = "from-backup"
"""Folder of a new git directory with what of the old one could start programs, for a person to look at."""
_HEADS: Final = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_SETTINGS: Final = re.compile(
    r"remote\..+\.(?:url|pushurl|fetch)|branch\..+\.(?:remote|merge|rebase)|user\.(?:name|email)|pull\.rebase"
    r"|push\.default",
    re.DOTALL,
)
_REF: Final = re.compile(r"refs/[^\x00-\x20~^:?*\[\\\x7f]+")
_CHUNK: Final = 1 << 20
_MAX_LINE: Final = 8 << 10


class RepositoryState(Struct, frozen=True):
    """What git holds besides objects. ``head``: the full name of the branch, or the id of a commit. ``refs``: name →
    id; ``symbolic``: name → the reference that it stands for. ``index``: as ``git ls-files --stage -z`` prints it."""

    hash_name: HashName
    head: str
    refs: Mapping[str, str]
    symbolic: Mapping[str, str]
    index: bytes

    def to_record(self) -> dict[str, Any]:
        """As JSON has it, without the index."""
        return {"hash": self.hash_name, "head": self.head, "refs": dict(self.refs), "symbolic": dict(self.symbolic)}


def parse_state(record: Any, index: bytes) -> RepositoryState:
    """The inverse of ``to_record``. Raises ``ValueError``, ``KeyError``, ``TypeError`` or ``AttributeError`` for what
    it did not make, ``WorkspaceError`` for a name that is none."""
    refs, symbolic = dict(record["refs"]), dict(record["symbolic"])
    head = str(record["head"])
    if record["hash"] not in ("sha1", "sha256") or not all(map(is_oid, refs.values())):
        raise ValueError("no ids")
    for name in [*refs, *symbolic, *symbolic.values(), *([] if is_oid(head) else [head])]:
        if not _REF.fullmatch(name):
            raise ValueError(f"{name!r} is no reference")
        check_path(name)
    return RepositoryState(cast("HashName", record["hash"]), head, refs, symbolic, index)


def read_state(repo: Repository) -> RepositoryState:
    """What git holds now. Raises ``WorkspaceError`` where there is no commit."""
    listed = repo.git.run("for-each-ref", "--format=%(objectname) %(refname) %(symref)").decode(
        "utf-8", "surrogateescape"
    )
    rows = [line.split(" ") for line in listed.split("\n") if line]
    symbolic = {name: target for _, name, target in rows if target}
    refs = {name: oid for oid, name, target in rows if not target}
    head = repo.current_branch() or repo.read_head()
    repo.read_head()
    return RepositoryState(repo.hash_name, head, refs, symbolic, repo.git.run("ls-files", "--stage", "-z"))


def refuse_changed(repo: Repository, before: RepositoryState) -> None:
    """Raises ``BusyError`` where git has changed something since that is not under the writer lock."""
    if read_state(repo) != before:
        raise BusyError("git changed the repository meanwhile; nothing was written", remedy="Run the command again.")


def write_bundle(repo: Repository, state: RepositoryState, file: BinaryIO) -> None:
    """Write the bundle. Raises ``WorkspaceError`` where git cannot read all of the history."""
    commit = state.refs.get(state.head) or repo.read_head()
    version = b"# v2 git bundle\n" if state.hash_name == "sha1" else b"# v3 git bundle\n@object-format=sha256\n"
    tips = {"HEAD": commit, **state.refs}
    lines = "".join(f"{oid} {name}\n" for name, oid in tips.items())
    file.write(version + lines.encode("utf-8", "surrogateescape") + b"\n")
    file.flush()
    options = ("--revs", "--all", "--reflog", "--indexed-objects", "--stdout", "--delta-base-offset", "-q")
    packer = repo.git.start(("pack-objects", *options), stdin=subprocess.PIPE, stdout=file.fileno())
    wanted = "".join(f"{oid}\n" for oid in {*tips.values(), *_read_heads(repo)})
    complaints = packer.communicate(wanted.encode("ascii"))[1]
    if packer.returncode:
        raise WorkspaceError(
            f"git cannot read the whole history: {first_line(complaints)}", remedy="See what is wrong: cleared doctor."
        )


def restore_repository(
    folder: Path, state: RepositoryState, bundle: IO[bytes], files: Mapping[str, bytes]
) -> Repository:
    """Make ``folder`` a repository with this history, and look whether all of it is there. ``files``: those of
    ``PLAIN_FILES``, and ``logs/…``, ``config``, ``hooks/…`` of the old git directory. No file is checked out.

    Raises ``WorkspaceError`` where something is missing, damaged, or no part of a repository.
    """
    branch = state.head.removeprefix("refs/heads/") if not is_oid(state.head) else "main"
    repo = Repository.init(folder, branch, hash_name=state.hash_name)
    try:
        _write_plain_files(repo, files)
        _receive_pack(repo.git, bundle)
        _set_refs(repo, state)
        repo.git.run("update-index", "-z", "--index-info", input=state.index)
        for path, data in files.items():  # git has begun new logs with the references
            if path.startswith("logs/"):
                _write_file(repo.git_dir, path, data)
        _take_settings(repo, files)
    except BaseException:
        repo.close()
        raise
    return repo


def refuse_damaged(repo: Repository) -> None:
    """Raises ``WorkspaceError`` where an object is missing or damaged: git reads all of them for that."""
    damaged = find_damaged_objects(repo)
    if damaged is not None:
        raise WorkspaceError(f"its history is not whole: {damaged.git_messages[0]}")


def _read_heads(repo: Repository) -> list[str]:
    """The commits that an unfinished merge or the like is about."""
    words = [
        (repo.git_dir / name).read_text("ascii", "replace").split()
        for name in _HEADS
        if (repo.git_dir / name).is_file()
    ]
    return [word for each in words for word in each if is_oid(word)]


def _write_plain_files(repo: Repository, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        if path in PLAIN_FILES:
            _write_file(repo.git_dir, path, data)
        elif path == "config" or path.startswith("hooks/"):
            _write_file(repo.git_dir, f"{ASIDE}/{path}", data)


def _write_file(folder: Path, path: str, data: bytes) -> None:
    check_path(path)
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def _receive_pack(git: Git, bundle: IO[bytes]) -> None:
    while (line := bundle.readline(_MAX_LINE)) != b"\n":
        if not line.endswith(b"\n"):
            raise WorkspaceError("its history is no git bundle")
    unpacker = git.start(("index-pack", "--stdin"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert unpacker.stdin is not None and unpacker.stderr is not None
    try:
        while part := bundle.read(_CHUNK):
            unpacker.stdin.write(part)
        unpacker.stdin.close()
    except BrokenPipeError:
        pass  # it has said why
    except BaseException:
        unpacker.kill()
        unpacker.wait()
        raise
    complaints = unpacker.stderr.read()
    unpacker.stderr.close()
    if unpacker.wait():
        raise WorkspaceError(f"its history cannot be read: {first_line(complaints)}")


def _set_refs(repo: Repository, state: RepositoryState) -> None:
    orders = "".join(f"create {name}\0{oid}\0" for name, oid in state.refs.items())
    repo.git.run("update-ref", "-z", "--stdin", input=orders.encode("utf-8", "surrogateescape"))
    for name, target in state.symbolic.items():
        repo.git.run("symbolic-ref", name, target)
    if is_oid(state.head):
        repo.git.run("update-ref", "--no-deref", "HEAD", state.head)


def _take_settings(repo: Repository, files: Mapping[str, bytes]) -> None:
    """Take over where the remotes are and who the user is; whatever could start a program stays aside."""
    if "config" not in files:
        return
    old = repo.git.run("config", "--file", str(repo.git_dir / ASIDE / "config"), "--list", "-z", check=False)
    for row in old.decode("utf-8", "surrogateescape").split("\0"):
        key, _, value = row.partition("\n")
        if _SETTINGS.fullmatch(key):
            repo.git.run("config", "--add", key, value)
