"""Restoring a backup: beside its place first, then, when all of it was found whole, in its place at once."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO, Final

from msgspec import Struct

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.safe_files import describe_os_error, sync_folder, write_atomic
from cleared.changes.backup.archive_members import Member
from cleared.changes.backup.backup_reading import open_backup, read_members
from cleared.changes.backup.home_files import HomeRestoration
from cleared.changes.backup.last_backup import LastBackup, remember_backup
from cleared.changes.backup.manifest import BackupManifest
from cleared.changes.backup.sealed_stream import OpenedPassphrase, SealedFile, damage_error
from cleared.git.history_archive import ASIDE, refuse_damaged, restore_repository
from cleared.git.shared_history import has_commit_of, identifying_commits
from cleared.jobs.relocation import sign_loop_again
from cleared.jobs.signing import KEY_NAME
from cleared.jobs.tasks.task_seals import move_seals
from cleared.trust.clone_marks import pins_folder
from cleared.trust.keys import TASK_KEY, cleared_home, parse_key, publish_keys, refuse_inside
from cleared.trust.person_only import refuse_in_job
from cleared.trust.workspace_pin import (
    find_clone_mark,
    find_marked_clone,
    pin_place,
    pins_of_workspace,
)
from cleared.workspace.location import Layout
from cleared.workspace.stores import find_store

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_CHUNK: Final = 1 << 20
_SPARE: Final = 16 << 20
"""Bytes that are needed beside what the backup holds."""


class RestoredWorkspace(Struct, frozen=True):
    """``kept``: files beside the key that were left as this machine has them. ``left_out``: what was not restored, and
    why. ``is_trusted``: whether this machine knows which books these are."""

    folder: str
    manifest: BackupManifest
    kept: tuple[str, ...]
    left_out: tuple[str, ...]
    is_trusted: bool


def restore_backup(
    path: Path,
    folder: Path,
    open_sealed: Callable[[SealedFile], OpenedPassphrase],
    *,
    keeps_key: bool = False,
    beside: bool = False,
) -> RestoredWorkspace:
    """Make ``folder``, which must be empty or not there, the workspace that the backup at ``path`` holds.

    ``keeps_key``: this machine goes on with an approval key of its own. ``beside``: the old machine goes on too, so the
    workspace becomes a clone of its own. All is done, or nothing.

    Raises ``PolicyError`` where the folder is not empty, this machine has another key or these very books, or this is
    inside a job; ``WorkspaceError`` where the backup is not as it was written, or something cannot be written; and what
    ``open_sealed`` raises.
    """
    refuse_in_job()
    target = _check_folder(folder)
    with open_backup(path) as file:
        sealed = SealedFile(file, str(path))
        opened = open_sealed(sealed)
        restoration = _Restoration(path, file, target, keeps_key, beside)
        try:
            read_members(sealed, opened, restoration, str(path))
            return restoration.put_in_place()
        except FileExistsError as error:
            raise damage_error(str(path), f"it holds something twice ({error.filename})") from error
        except OSError as error:
            raise WorkspaceError(
                f"nothing was restored: {describe_os_error(error)}",
                place=Place(str(target)),
                remedy="Make room on the disk, or name another folder.",
            ) from error
        finally:
            restoration.remove_stage()


def _check_folder(folder: Path) -> Path:
    """Where the workspace goes, in full."""
    try:
        target = folder.resolve() if folder.exists() else folder.parent.resolve(strict=True) / folder.name
        is_free = not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir()))
    except OSError as error:
        raise WorkspaceError(
            f"the folder cannot be used: {describe_os_error(error)}",
            place=Place(str(folder)),
            remedy=f"Make the folder that it is to lie in: mkdir -p {folder.parent}",
        ) from None
    if not is_free:
        raise PolicyError(
            "the folder is not empty; nothing was restored",
            place=Place(str(folder)),
            remedy="Name one that is not there.",
        )
    refuse_inside(target)
    return target


class _Restoration:
    """Takes a backup's members into a folder beside the place of the workspace."""

    def __init__(self, path: Path, file: BinaryIO, target: Path, keeps_key: bool, beside: bool) -> None:
        self._path, self._file, self._target = path, file, target
        self._keeps_key, self._beside = keeps_key, beside
        self._stage = target.with_name(f".{target.name}.restore-{secrets.token_hex(6)}")
        self._links: list[tuple[str, str]] = []
        self._left_out: list[str] = []
        self._commits: list[str] = []
        self._is_related = True

    # -- taking members -------------------------------------------------------------------------------------------

    def begin(self, manifest: BackupManifest, home: dict[str, bytes]) -> None:
        """Refuse what cannot be, before anything is written."""
        self._manifest = manifest
        self._home = HomeRestoration(manifest, home, self._keeps_key, self._beside)
        self._home.refuse_conflicts()
        living = find_marked_clone(manifest.mark) if not self._beside else ""
        if living:
            raise PolicyError(
                f"these very books are on this machine already: {Path(living).parent}; nothing was restored",
                remedy="To have the backup beside them, as a clone of its own: --beside. To put it in their place: "
                "move that folder away first, to another disk or into an archive.",
            )
        self._refuse_full_disk()
        for old in self._target.parent.glob(f".{self._target.name}.restore-*"):
            shutil.rmtree(old, ignore_errors=True)  # a restore was killed
        self._stage.mkdir(mode=0o700)

    def take_git(self, manifest: BackupManifest, files: dict[str, bytes], bundle: IO[bytes]) -> None:
        state = manifest.git_state(files["index"])
        with restore_repository(self._stage, state, bundle, files) as repo:
            refuse_damaged(repo)
            self._commits = identifying_commits(repo)
            elsewhere = [pin for pin in pins_of_workspace(manifest.workspace) if pin.mark != manifest.mark]
            self._is_related = not elsewhere or any(
                has_commit_of(repo, Path(pin.git_dir), pin.commits) for pin in elsewhere
            )
        if any(name.startswith("hooks/") for name in files):
            self._left_out.append(f"git's hooks and other settings: look at them in .git/{ASIDE}/")

    def take_state(self, path: str, member: Member) -> None:
        store = find_store("git", path)
        if store is None or not store.is_carried or member.kind != "file":
            raise damage_error(str(self._path), f"it holds {member.name[:200]!r}, which no backup has")
        if not self._beside:
            self._write_file(self._stage / ".git" / path, member)

    def take_file(self, path: str, member: Member) -> None:
        if self._beside and path.split("/", 1)[0] == Layout.state:
            return
        target = self._stage / path
        if member.kind == "link":
            self._links.append((path, member.target))
        elif member.kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
            target.chmod(member.mode & 0o755 | 0o700)
        else:
            self._write_file(target, member)

    # -- at the end -----------------------------------------------------------------------------------------------

    def put_in_place(self) -> RestoredWorkspace:
        """When all was read and found whole: the keys, then the workspace."""
        if not self._beside and find_clone_mark(self._stage) != self._manifest.mark:
            raise damage_error(str(self._path), "it holds another clone than it says")
        self._make_links()
        if not self._beside:
            self._sign_again()
        mark = find_clone_mark(self._stage, make=True)
        if hasattr(os, "sync"):
            os.sync()
        is_trusted = self._manifest.is_pinned and self._is_related
        pin = pins_folder() / f"{mark}.json"
        before = pin.read_bytes() if pin.exists() else None
        try:
            self._home.install()
            if is_trusted:
                pin_place(self._target / ".git", mark, self._manifest.workspace, self._commits)
            self._stage.replace(self._target)
        except BaseException:
            self._home.undo()
            pin.unlink(missing_ok=True) if before is None else write_atomic(pin, before)
            raise
        sync_folder(self._target.parent)
        publish_keys(self._target)
        self._remember()
        return RestoredWorkspace(
            str(self._target), self._manifest, tuple(self._home.kept), tuple(self._left_out), is_trusted
        )

    def remove_stage(self) -> None:
        """Remove what was not put in place."""
        shutil.rmtree(self._stage, ignore_errors=True)

    def _refuse_full_disk(self) -> None:
        needed = os.fstat(self._file.fileno()).st_size + _SPARE
        free = shutil.disk_usage(self._target.parent).free
        if free < needed:
            raise WorkspaceError(
                f"the disk has {free:,} bytes left, and the backup needs {needed:,}",
                place=Place(str(self._target)),
                remedy="Make room, or name a folder on another disk.",
            )

    def _write_file(self, target: Path, member: Member) -> None:
        assert member.content is not None
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(target, _CREATE, 0o600), "wb") as file:
            while part := member.content.read(_CHUNK):
                file.write(part)
            os.fchmod(file.fileno(), member.mode & 0o755 | 0o600)
        if member.modified:
            os.utime(target, ns=(member.modified, member.modified))

    def _make_links(self) -> None:
        """Links last: no file was written through one. None leads out of the workspace, or into git's files."""
        made = []
        for path, target in self._links:
            link = self._stage / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
            made.append(link)
        refused = [link for link in made if self._leads_out(link)]  # seen with all of them there, and only then removed
        for link in refused:
            self._left_out.append(f"{link.relative_to(self._stage)}, a link to {link.readlink()}")
            link.unlink()

    def _leads_out(self, link: Path) -> bool:
        top, real = Path(os.path.realpath(self._stage)), Path(os.path.realpath(link))
        return not real.is_relative_to(top) or real.relative_to(top).parts[:1] in ((), (".git",))

    def _sign_again(self) -> None:
        """What is signed for the workspace's place on the disk, or with a key that this machine has another of."""
        old_root, home = Path(self._manifest.folder), self._home
        old, new = home.files.get(KEY_NAME), home.secret_of(KEY_NAME)
        if old and new and (old_root, old) != (self._target, new):
            sign_loop_again(self._stage, (old_root, old), (self._target, new))
        old, new = home.files.get(TASK_KEY), home.secret_of(TASK_KEY)
        if old and new and (old_root, old) != (self._target, new):
            keys = [parse_key(data, cleared_home() / TASK_KEY) for data in (old, new)]
            move_seals(self._stage, (old_root, keys[0]), (self._target, keys[1]))

    def _remember(self) -> None:
        """The backup that it was made of is its last one."""
        from datetime import datetime

        tips = tuple({*(str(oid) for oid in self._manifest.git["refs"].values())})
        with suppress(WorkspaceError):
            remember_backup(
                self._target,
                LastBackup(datetime.fromisoformat(self._manifest.made_at), str(self._path.resolve()), tips),
            )
