"""Writing a backup: all of one workspace at one moment, under the writer lock, and read back before it counts.

Git's own directory goes into it by itself; the other files are those that ``FileWalk`` finds.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from cleared import __version__
from cleared.base.clock import format_iso
from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.safe_files import describe_os_error, is_temporary, read_stable, write_parts
from cleared.base.tree_removal import remove_tree
from cleared.changes.backup.archive_members import MAX_DEPTH, ArchiveWriter
from cleared.changes.backup.backup_reading import verify_backup
from cleared.changes.backup.home_files import collect_home_files, public_half_of
from cleared.changes.backup.last_backup import LastBackup, remember_backup
from cleared.changes.backup.manifest import BUNDLE, NAME, BackupManifest
from cleared.changes.backup.sealed_stream import OpenedPassphrase, SealingWriter
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.git.history_archive import PLAIN_FILES, RepositoryState, read_state, refuse_changed, write_bundle
from cleared.git.working_files import check_path
from cleared.trust.approval_record import WORKSPACE
from cleared.trust.keys import KEY, RUN_KEY
from cleared.trust.person_only import refuse_in_job
from cleared.trust.workspace_pin import find_clone_mark, find_pinned_mark, identify_workspace
from cleared.workspace.database import copy_database
from cleared.workspace.location import Layout
from cleared.workspace.lock import writer_lock
from cleared.workspace.stores import is_carried

WORK_FOLDER: Final = "backup-work"
_LOCK: Final = "backup.lock"
_MAX_GIT_FILE: Final = 64 << 20


class WrittenBackup(Struct, frozen=True):
    """A backup as it was written. ``left_out``: what of the workspace is not in it, and why."""

    file: str
    size: int
    files: int
    commit: str
    made_at: str
    left_out: tuple[str, ...]


def write_backup(host: Host, path: Path, read_passphrase: Callable[[], str], *, force: bool = False) -> WrittenBackup:
    """Write a backup of the workspace to ``path``: whole, read back, or not at all.

    Raises ``PolicyError`` for a place in the workspace, a file that is there (unless ``force``), and inside a job;
    ``BusyError`` where another writes; ``WorkspaceError`` where something cannot be read or written, or is not found in
    the file again; and what ``read_passphrase`` raises.
    """
    refuse_in_job()
    target = _check_target(host.root, path, force=force)
    passphrase = read_passphrase()
    state = host.layout.state_dir
    with writer_lock(state, host.config.lock.wait_seconds, "backup", clock=host.clock, name=_LOCK):
        with _work_folder(state) as work:
            writing = _BackupWriting(host, work)

            def check(written: Path) -> None:
                assert writing.opened is not None
                host.report_step("written")
                verify_backup(written, target, writing.opened, work / "check")
                host.report_step("verified")

            with write_parts(target, mode=0o600, replace=force, check=check) as file:
                stream = SealingWriter(file, passphrase)
                writing.opened = stream.opener()
                manifest = writing.write_members(ArchiveWriter(stream))
        remember_backup(host.root, LastBackup(host.clock.now(), str(target), tuple({*manifest.git["refs"].values()})))
    return WrittenBackup(
        str(target), target.stat().st_size, writing.files, manifest.commit, manifest.made_at, tuple(writing.left_out)
    )


class _BackupWriting:
    """Writes the members of one backup. ``work``: a folder for what has to be put together first."""

    def __init__(self, host: Host, work: Path) -> None:
        self.host, self.root, self._work = host, host.root, work
        self.opened: OpenedPassphrase | None = None
        self.left_out: list[str] = []
        self.files = 0

    def write_members(self, archive: ArchiveWriter) -> BackupManifest:
        """All of them, under the writer lock."""
        with self.host.open_unchanging("backup") as repo:
            state = read_state(repo)
            home = collect_home_files(self._identify(repo), find_clone_mark(self.root))
            manifest = self._describe(repo, state, home)
            archive.add_bytes(NAME, manifest.render())
            for path, data in home.items():
                archive.add_bytes(f"home/{path}", data)
            self._add_git(archive, repo, state)
            committed = list_folders(Snapshot(repo, repo.read_head()).list_entries())
            for path, entry in FileWalk(self.root, committed, self.left_out).list_entries():
                self._add_entry(archive, path, entry)
            archive.finish()
            refuse_changed(repo, state)
        self.files = archive.files
        return manifest

    def _identify(self, repo: Repository) -> str:
        return identify_workspace(self.root, Snapshot(repo, repo.read_head()).read_file(WORKSPACE)).id

    def _describe(self, repo: Repository, state: RepositoryState, home: dict[str, bytes]) -> BackupManifest:
        return BackupManifest(
            made_at=format_iso(self.host.clock.now()),
            program=__version__,
            folder=str(self.root.resolve()),
            workspace=self._identify(repo),
            mark=find_clone_mark(self.root),
            is_pinned=bool(find_pinned_mark(self.root)),
            commit=repo.read_head(),
            approval_key=public_half_of(home, KEY),
            run_key=public_half_of(home, RUN_KEY),
            git=state.to_record(),
        )

    def _add_git(self, archive: ArchiveWriter, repo: Repository, state: RepositoryState) -> None:
        archive.add_bytes("git/index", state.index)
        for name, path in _list_git_files(repo):
            archive.add_bytes(f"git/{name}", read_stable(path, _MAX_GIT_FILE)[0])
        bundle = self._work / "repository.bundle"
        with bundle.open("wb") as file:
            write_bundle(repo, state, file)
        archive.add_file(BUNDLE, bundle)
        bundle.unlink()
        for name, path in _list_own_files(repo):
            self._add_plain(archive, f"git/{name}", path)

    def _add_entry(self, archive: ArchiveWriter, path: str, entry: os.DirEntry[str]) -> None:
        name = f"files/{path}"
        if entry.is_symlink():
            archive.add_link(name, str(Path(entry.path).readlink()))
        elif entry.is_dir(follow_symlinks=False):
            archive.add_folder(name, entry.stat(follow_symlinks=False).st_mode & 0o777)
        elif path.startswith(f"{self.host.layout.state}/"):
            self._add_plain(archive, name, Path(entry.path))
        else:
            archive.add_file(name, Path(entry.path))

    def _add_plain(self, archive: ArchiveWriter, name: str, path: Path) -> None:
        """A file of cleared: of a database a copy, as others may be writing to it."""
        if not name.endswith(".db"):
            archive.add_file(name, path)
            return
        copy = self._work / "database"
        copy_database(path, copy)
        archive.add_file(name, copy)
        copy.unlink()


def _list_git_files(repo: Repository) -> Iterator[tuple[str, Path]]:
    """Name → path of the files of git that a backup has beside the bundle."""
    shared, own = repo.common_dir, repo.git_dir
    hooks = (f"hooks/{p.name}" for p in sorted(shared.glob("hooks/*")) if p.suffix != ".sample")
    logs = sorted(p.relative_to(shared).as_posix() for p in shared.glob("logs/**/*"))
    for name in [*PLAIN_FILES, "config", *hooks, "logs/HEAD", *(log for log in logs if log != "logs/HEAD")]:
        path = own / name if (own / name).is_file() else shared / name
        if path.is_file() and not path.is_symlink():
            yield name, path


def _list_own_files(repo: Repository) -> Iterator[tuple[str, Path]]:
    """Name → path of the files of cleared in the git directory."""
    for folder in dict.fromkeys((repo.git_dir, repo.common_dir)):
        for path in sorted([*folder.glob("cleared-*"), *folder.glob("cleared-*/*")]):
            name = path.relative_to(folder).as_posix()
            is_beside_database = name.endswith((".db-wal", ".db-shm"))
            if path.is_file() and not path.is_symlink() and not is_beside_database and is_carried("git", name):
                yield name, path


def _check_target(root: Path, path: Path, *, force: bool) -> Path:
    """Where the file goes, in full."""
    try:
        target = path.parent.resolve(strict=True) / path.name
    except OSError as error:
        raise WorkspaceError(
            f"the folder cannot be used: {describe_os_error(error)}",
            place=Place(str(path.parent)),
            remedy="Make it first.",
        ) from None
    if target.is_relative_to(root.resolve()):
        raise PolicyError(
            "a backup within the workspace is lost with it",
            place=Place(str(path)),
            remedy="Name a file on another disk.",
        )
    if target.is_dir() and not target.is_symlink():
        raise PolicyError("there is a folder of that name", place=Place(str(path)), remedy="Name a file in it.")
    if not force and os.path.lexists(target):
        raise PolicyError(
            "there is a file already", place=Place(str(path)), remedy="Take another name, or replace it with --force."
        )
    return target


@contextmanager
def _work_folder(state_dir: Path) -> Iterator[Path]:
    """A folder for what is not sealed: where the books lie unsealed anyway, and nobody else reads."""
    folder = state_dir / WORK_FOLDER
    try:
        remove_tree(folder)  # of a backup that was killed
        folder.mkdir(mode=0o700)
        yield folder
    except OSError as error:
        raise WorkspaceError(
            f"the backup could not be made: {describe_os_error(error)}",
            place=Place(str(folder)),
            remedy="Make room on the disk of the workspace: as much as the history takes.",
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_REBUILT: Final = ("CACHEDIR.TAG", "pyvenv.cfg")
"""A folder with one of these says of itself that it can be made again."""


class FileWalk(Struct):
    """Goes through a workspace.

    ``committed``: the folders in which the last commit has files, each with a slash at its end. What a commit brings
    says of none of them that it can be made again. ``left_out`` tells, when all was gone through, what is not carried
    and why; what is declared as such (``workspace.stores``) is not told of.
    """

    root: Path
    committed: Collection[str]
    left_out: list[str]

    def list_entries(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Each folder, file and link to carry, with its path relative to the workspace; a folder before what is in it.

        Raises ``WorkspaceError`` where a folder cannot be read.
        """
        waiting = [""]
        while waiting:
            prefix = waiting.pop()
            folders = []
            for entry in self._read_folder(prefix):
                path = f"{prefix}{entry.name}"
                if not self._is_wanted(path, entry):
                    continue
                yield path, entry
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{path}/")
            waiting += reversed(folders)

    def _read_folder(self, prefix: str) -> list[os.DirEntry[str]]:
        try:
            entries = sorted(os.scandir(self.root / prefix), key=lambda entry: entry.name)
        except OSError as error:
            raise WorkspaceError(
                f"the folder cannot be read, so there is no backup: {describe_os_error(error)}",
                place=Place(prefix),
                remedy="Give yourself the right to read it, or move it out of the workspace.",
            ) from error
        if prefix and prefix not in self.committed and any(entry.name in _REBUILT for entry in entries):
            self.left_out.append(f"{prefix} (it can be made again)")
            return []
        return entries

    def _is_wanted(self, path: str, entry: os.DirEntry[str]) -> bool:
        if path == ".git" or entry.name == "__pycache__" or is_temporary(entry.name):
            return False
        if path.startswith(f"{Layout.state}/"):
            inner = path.removeprefix(f"{Layout.state}/")
            if entry.is_dir(follow_symlinks=False):
                return is_carried("state", f"{inner}/file")
            return is_carried("state", inner) and self._is_plain(entry) and not inner.endswith((".db-wal", ".db-shm"))
        try:
            check_path(path)
        except WorkspaceError:
            is_git = entry.name == ".git"
            self.left_out.append(
                f"{path} ({'a repository of its own' if is_git else 'no name for a file of the books'})"
            )
            return False
        if path.count("/") >= MAX_DEPTH:
            self.left_out.append(f"{path} (more than {MAX_DEPTH} folders deep)")
            return False
        if entry.is_symlink():
            target = Path(os.path.realpath(entry.path))
            if not target.is_relative_to(self.root.resolve()):
                self.left_out.append(f"{path} (a link to {target}: not what it leads to)")
            return True
        if not self._is_plain(entry):
            self.left_out.append(f"{path} (no file)")
            return False
        return True

    @staticmethod
    def _is_plain(entry: os.DirEntry[str]) -> bool:
        return entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)


def list_folders(paths: Iterable[str]) -> set[str]:
    """The folders that these files lie in, and those around them, each with a slash at its end."""
    return {f"{folder.as_posix()}/" for path in paths for folder in PurePosixPath(path).parents if folder.name}
