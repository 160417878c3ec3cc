"""Copying a commit with its history into a repository of its own, which knows nothing of where it came from."""

from __future__ import annotations

import subprocess
from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.git.git_process import Git, first_line
from cleared.git.repository import Repository
from cleared.git.snapshot import Snapshot
from cleared.git.working_files import check_path


def copy_history(repo: Repository, commit: str, folder: Path, branch: str = "main") -> None:
    """Make ``folder`` a repository with ``commit`` checked out on ``branch``: no remote, no hooks, no alternates.

    Files are byte for byte as committed; links and submodules are left out.

    Raises ``WorkspaceError`` where git cannot read the commit or the folder cannot be written.
    """
    folder.mkdir(parents=True)
    Repository.init(folder, branch, hash_name=repo.hash_name)
    source, target = Git(repo.root), Git(folder)
    packer = source.start(("pack-objects", "--revs", "--stdout", "-q"), stdin=subprocess.PIPE)
    assert packer.stdin is not None and packer.stdout is not None and packer.stderr is not None
    unpacker = target.start(("index-pack", "--stdin"), stdin=packer.stdout.fileno())
    packer.stdin.write(f"{commit}\n".encode())
    packer.stdin.close()
    packer.stdout.close()
    complaints = unpacker.communicate()[1], packer.stderr.read()
    packer.stderr.close()
    if packer.wait() or unpacker.returncode:
        reason = first_line(complaints[1]) or first_line(complaints[0])
        raise WorkspaceError(f"the commit could not be copied: {reason}")
    target.run("update-ref", f"refs/heads/{branch}", commit)
    target.run("read-tree", commit)
    _write_files(Snapshot(repo, commit), folder)


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
