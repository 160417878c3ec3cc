"""Reading a backup: its members in their order, the history among them looked through by git."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, BinaryIO, Final, Protocol

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import describe_os_error
from cleared.changes.backup.archive_members import ArchiveReader, Member
from cleared.changes.backup.home_files import MAX_BYTES as MAX_HOME_BYTES
from cleared.changes.backup.home_files import MAX_FILES, is_home_file
from cleared.changes.backup.manifest import BUNDLE, MAX_BYTES, NAME, BackupManifest, parse_manifest
from cleared.changes.backup.sealed_stream import OpenedPassphrase, SealedFile, damage_error
from cleared.git.history_archive import PLAIN_FILES, refuse_damaged, restore_repository

_MAX_GIT_BYTES: Final = 64 << 20
"""Bytes of one file beside the history, and of all of them that are held in memory."""


class MemberSink(Protocol):
    """Takes what a backup holds, in the order in which it was written."""

    def begin(self, manifest: BackupManifest, home: dict[str, bytes]) -> None:
        """The first members are read: the rest has not been looked at yet."""

    def take_git(self, manifest: BackupManifest, files: dict[str, bytes], bundle: IO[bytes]) -> None:
        """The history. ``files``: small ones of the git directory."""

    def take_state(self, path: str, member: Member) -> None:
        """A file of cleared in the git directory, which is there by now."""

    def take_file(self, path: str, member: Member) -> None:
        """A file, folder or link of the workspace, by its relative path."""


def open_backup(path: Path) -> BinaryIO:
    """The file, opened for reading. Raises ``WorkspaceError``."""
    try:
        return path.open("rb")
    except OSError as error:
        raise WorkspaceError(f"the backup cannot be read: {describe_os_error(error)}", place=Place(str(path))) from None


def verify_backup(written: Path, shown: Path, opened: OpenedPassphrase, work: Path) -> BackupManifest:
    """Read all of a backup, make a repository of its history in ``work``, and have git read every object there.

    ``shown`` names it in messages. Raises ``WorkspaceError`` where anything is not as it was written.
    """
    with open_backup(written) as file:
        with suppress(OSError, AttributeError):  # have it read from the disk, not from memory
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        sink = _Verification(work)
        read_members(SealedFile(file, str(shown)), opened, sink, str(shown))
    assert sink.manifest is not None
    return sink.manifest


def read_members(sealed: SealedFile, opened: OpenedPassphrase, sink: MemberSink, shown: str) -> None:
    """Give every member to ``sink``. When this ends without an error, the whole file was as it was written.

    Raises ``WorkspaceError``, and what ``sink`` raises.
    """
    manifest: BackupManifest | None = None
    home: dict[str, bytes] = {}
    git: dict[str, bytes] = {}
    has_begun = has_history = False
    for member in ArchiveReader(sealed.read_stream(opened), shown).read_members():
        if manifest is None:
            manifest = _read_manifest(member, shown)
            continue
        top, _, path = member.name.partition("/")
        if top == "home" and not has_begun and is_home_file(path, manifest) and len(home) < MAX_FILES:
            home[path] = _read_whole(member, MAX_HOME_BYTES, shown)
            continue
        if not has_begun:
            sink.begin(manifest, home)
            has_begun = True
        if member.name == BUNDLE and member.content is not None and not has_history:
            has_history = True
            try:
                sink.take_git(manifest, git, member.content)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise damage_error(shown, "it does not say what git held") from None
            git.clear()
        elif top == "git" and has_history and path.startswith("cleared-"):
            sink.take_state(path, member)
        elif top == "git" and not has_history and _is_git_file(path):
            git[path] = _read_whole(member, _MAX_GIT_BYTES - sum(map(len, git.values())), shown)
        elif top == "files" and has_history and path:
            sink.take_file(path, member)
        else:
            raise damage_error(shown, f"it holds {member.name[:200]!r}, which no backup has there")
    if not has_history:
        raise damage_error(shown, "it has no history")


def _is_git_file(path: str) -> bool:
    return path in ("index", "config", *PLAIN_FILES) or path.startswith(("logs/", "hooks/"))


def _read_manifest(member: Member, shown: str) -> BackupManifest:
    try:
        if member.name != NAME:
            raise ValueError("another member")
        return parse_manifest(_read_whole(member, MAX_BYTES, shown))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise damage_error(shown, "it does not say what it holds") from None


def _read_whole(member: Member, most: int, shown: str) -> bytes:
    if member.content is None or member.size > most:
        raise damage_error(shown, f"{member.name[:200]!r} is no file of at most {most:,} bytes")
    return member.content.read()


class _Verification:
    """Looks at everything and keeps nothing."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.manifest: BackupManifest | None = None

    def begin(self, manifest: BackupManifest, home: dict[str, bytes]) -> None:
        self.manifest = manifest

    def take_git(self, manifest: BackupManifest, files: dict[str, bytes], bundle: IO[bytes]) -> None:
        self._work.mkdir(mode=0o700)
        with restore_repository(self._work, manifest.git_state(files["index"]), bundle, files) as repo:
            refuse_damaged(repo)

    def take_state(self, path: str, member: Member) -> None:
        pass

    def take_file(self, path: str, member: Member) -> None:
        pass
