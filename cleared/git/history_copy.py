"""Copying a commit into a repository of its own, which knows nothing of where it came from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from cleared.base.errors import WorkspaceError
from cleared.git.git_process import Git, first_line
from cleared.git.repository import Repository, Snapshot
from cleared.git.side_branch import write_rootless_commit
from cleared.git.working_files import check_path

_BRANCH: Final = "main"
_NO_ATTRIBUTES: Final = "* !filter !diff !merge !text !eol !ident !working-tree-encoding\n"
"""Counts before each ``.gitattributes``, which could name programs of the user's own git settings."""


def copy_history(repo: Repository, commit: str, folder: Path) -> None:
    """Make ``folder`` a repository with ``commit`` checked out on ``main``: no remote, no hooks, no alternates.

    Files are byte for byte as committed; links and submodules are left out.

    Raises ``WorkspaceError`` where git cannot read the commit or the folder cannot be written.
    """
    _copy_objects(repo, commit, folder).close()
    check_out(Snapshot(repo, commit), commit, folder, _BRANCH)


def copy_files(repo: Repository, commit: str, folder: Path) -> None:
    """As ``copy_history``, but with one commit of the same files in the place of the history, for who is not to read
    what earlier commits had."""
    snapshot = Snapshot(repo, commit)
    assert snapshot.tree is not None  # it has a commit
    with _copy_objects(repo, snapshot.tree, folder) as target:
        made = write_rootless_commit(target, snapshot.tree, f"The files of {commit}")
    check_out(snapshot, made, folder, _BRANCH)


def _copy_objects(repo: Repository, oid: str, folder: Path) -> Repository:
    """Make ``folder`` a repository that has what a commit or a tree consists of."""
    folder.mkdir(parents=True)
    made = Repository.init(folder, _BRANCH, hash_name=repo.hash_name)
    source, target = Git(repo.root), Git(folder)
    packer = source.start(("pack-objects", "--revs", "--stdout", "-q"), stdin=subprocess.PIPE)
    assert packer.stdin is not None and packer.stdout is not None and packer.stderr is not None
    unpacker = target.start(("index-pack", "--stdin"), stdin=packer.stdout.fileno())
    packer.stdin.write(f"{oid}\n".encode())
    packer.stdin.close()
    packer.stdout.close()
    complaints = unpacker.communicate()[1], packer.stderr.read()
    packer.stderr.close()
    if packer.wait() or unpacker.returncode:
        reason = first_line(complaints[1]) or first_line(complaints[0])
        raise WorkspaceError(f"the commit could not be copied: {reason}")
    return made


def check_out_again(snapshot: Snapshot, commit: str, folder: Path) -> None:
    """Put another commit of the history into a copy of it: nothing stays of what is there."""
    for entry in folder.iterdir():
        if entry.name == ".git":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    check_out(snapshot, commit, folder, _BRANCH)


def check_out(snapshot: Snapshot, commit: str, folder: Path, branch: str) -> None:
    """Let an empty repository be at this commit, which it has, with its files byte for byte as committed."""
    git = Git(folder)
    attributes = folder / ".git" / "info" / "attributes"
    attributes.parent.mkdir(exist_ok=True)
    attributes.write_text(_NO_ATTRIBUTES)
    git.run("update-ref", f"refs/heads/{branch}", commit)
    git.run("read-tree", commit)
    _write_files(snapshot, folder)


def _write_files(snapshot: Snapshot, folder: Path) -> None:
    """Not by git, which would convert what the commit's own ``.gitattributes`` tells it to."""
    entries = {path: entry for path, entry in snapshot.list_entries().items() if entry[0].startswith("100")}
    contents = snapshot.read_blobs([oid for _, oid in entries.values()])
    for (path, (mode, _)), content in zip(entries.items(), contents, strict=True):
        check_path(path)
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if mode == "100755":
            target.chmod(0o755)
