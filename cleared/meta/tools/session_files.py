"""The files as a session sees them: its draft, over the proposals that it was shown, over the last commit, in which
agents are as they were approved; and what a person has put into the workspace since, such as a bank's file.

Working copies of what can be proposed play no part: nobody approved them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from cleared.base.errors import PolicyError, UsageError
from cleared.base.safe_names import relative_problem
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.candidate import approved_text
from cleared.gate.file_kinds import Kind, file_kind
from cleared.gate.proposals.proposal import Proposal, load_proposals
from cleared.gate.proposals.submission import was_examined_here
from cleared.git import Snapshot
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.meta.tools.overlay import SCRATCH, Overlay
from cleared.meta.tools.tool import ToolFailed
from cleared.meta.tools.uncommitted_files import UncommittedFiles
from cleared.runs.approved_scripts import Scripts
from cleared.workspace.settings.secrets import REDACTED

_HIDDEN_FOLDERS: Final = (".git", ".cleared", SCRATCH)


class SessionFiles:
    """Reads and writes files for a session. Every path is a text from a model."""

    def __init__(self, host: Host, overlay: Overlay) -> None:
        self.host, self.overlay = host, overlay
        self._scripts: Scripts | None = None
        self._approved: dict[str, bytes | None] = {}
        self._head: str | None = None
        self._proposals: list[Proposal] | None = None
        self._base: list[Proposal] | None = None
        self._uncommitted = UncommittedFiles(host.layout, self._forbidden())
        self._uncommitted_paths: list[str] | None = None

    @contextmanager
    def open_commit(self) -> Iterator[str]:
        """Look at the newest commit in this block; its id, empty before the first one. May be nested."""
        if self._scripts is not None:
            yield self._head or ""
            return
        with self.host.open_for_reading() as repo:
            head = repo.read_head()
            if head != self._head:
                self._approved.clear()
                self._proposals = self._base = None
                self._head = head
            self._scripts = Scripts(self.host, Snapshot(repo, head))
            self._uncommitted_paths = None
            try:
                yield head or ""
            finally:
                self._scripts = None

    # Everything below is called within ``open_commit``.

    def read_file(self, path: str) -> bytes | None:
        """The content; None where there is no such file. Raises ``ToolFailed`` for a path that is not shown."""
        path = self.require_readable(path)
        if path in self.overlay:
            return self.overlay.read_file(path)
        proposed = self.find_proposed(path)
        if proposed is not None:
            return proposed.texts[path]
        found = self.read_approved(path)
        return self._uncommitted.read_file(path) if found is None and self.is_uncommitted(path) else found

    def list_uncommitted(self) -> list[str]:
        """The files that are in no commit, but for working copies of what can be proposed."""
        if self._uncommitted_paths is None:
            self._uncommitted_paths = self._uncommitted.list_paths(self._is_new)
        return self._uncommitted_paths

    def is_uncommitted(self, path: str) -> bool:
        return path not in self.overlay and path in self.list_uncommitted()

    def is_working_copy(self, path: str) -> bool:
        """Whether it can be proposed, and only lies in the workspace so far."""
        assert self._scripts is not None
        if relative_problem(path) or _kind_or_none(path) is None or self._scripts.snapshot.find_entry(path) is not None:
            return False
        return path not in self.overlay and (self.host.root / path).is_file()

    def digest_uncommitted(self) -> str:
        """Tells whether the files that are in no commit are the same."""
        return self._uncommitted.digest_listing(self.list_uncommitted())

    def _is_new(self, path: str) -> bool:
        assert self._scripts is not None
        return _kind_or_none(path) is None and self._scripts.snapshot.find_entry(path) is None

    def list_proposals(self) -> list[Proposal]:
        """All proposals, oldest first."""
        if self._proposals is None:
            assert self._scripts is not None
            self._proposals = load_proposals(CommittedSource(self._scripts.snapshot))
        return self._proposals

    def list_waiting(self) -> list[Proposal]:
        """The open proposals of sessions that this machine examined itself, as they were then."""
        return [
            p
            for p in self.list_proposals()
            if p.status == "open"
            and p.is_asked
            and not p.by_human
            and not p.changed_file()
            and was_examined_here(self.host, p)
        ]

    def list_base(self) -> list[Proposal]:
        """Those of them that this session was shown: it builds on these."""
        if self._base is None:
            seen = self.overlay.read_seen()
            self._base = [p for p in self.list_waiting() if p.folder in seen] if seen else []
        return self._base

    def find_proposed(self, path: str) -> Proposal | None:
        """The newest proposal of the base that changes this file; None also where the draft has it."""
        if path in self.overlay:
            return None
        return next((p for p in reversed(self.list_base()) if path in p.texts), None)

    def read_approved(self, path: str) -> bytes | None:
        """The file without the draft: as approved where it is something to approve, else as committed."""
        if path not in self._approved:
            assert self._scripts is not None
            kind = _kind_or_none(path)
            snapshot = self._scripts.snapshot
            self._approved[path] = (
                snapshot.read_file(path) if kind is None else approved_text(self._scripts, path, kind)
            )
        return self._approved[path]

    def is_unapproved(self, path: str) -> bool:
        """Whether the file is committed, but nobody approved any version of it."""
        assert self._scripts is not None
        return (
            path not in self.overlay
            and self.find_proposed(path) is None
            and self.read_approved(path) is None
            and self._scripts.snapshot.find_blob_id(path) is not None
        )

    def is_link(self, path: str) -> bool:
        assert self._scripts is not None
        entry = self._scripts.snapshot.find_entry(path)
        return entry is not None and entry.mode == "120000"

    def list_files(self, folder: str = "") -> list[str]:
        """The paths of all files below a folder that are shown, sorted. Symbolic links are none."""
        assert self._scripts is not None
        folder = self.require_readable(folder) if folder else ""
        entries = self._scripts.snapshot.list_entries(folder)
        forbidden = self._forbidden()
        shown = {
            path
            for path, (mode, _) in entries.items()
            if mode.startswith("100")
            and path not in self.overlay
            and _is_shown(path, forbidden)
            and (_kind_or_none(path) is None or self.read_file(path) is not None)
        }
        within = f"{folder}/" if folder else ""
        proposed = {path: text for p in self.list_base() for path, text in p.texts.items()}
        new = {**proposed, **self.overlay.files}
        drafted = {p for p, data in new.items() if data is not None and p.startswith(within)}
        uncommitted = {p for p in self.list_uncommitted() if p.startswith(within) and p not in new}
        return sorted(shown | drafted | uncommitted)

    def list_changes(self) -> dict[str, bytes | None]:
        """What would be proposed: the draft's files that differ from what is approved."""
        return {p: data for p, data in self.overlay.proposable_files.items() if data != self.read_approved(p)}

    def note_seen(self, folders: Iterable[str], how: str = "shown") -> None:
        """Keep which proposals the session knows: those that wait are its base from now on."""
        self.overlay.note_seen(folders, how)
        self._base = None

    def write_files(self, files: dict[str, bytes | None]) -> None:
        """Write all of these to the draft, or none. Raises ``ToolFailed``."""
        clean = {}
        for path, data in files.items():
            path = clean_path(path)
            self._refuse_redacted(path, data)
            clean[path] = data
        try:
            self.overlay.write_files(clean)
        except UsageError as error:
            where = f"{error.place}: " if error.place else ""
            raise ToolFailed(f"{where}{error.message}", error.remedy or "") from None

    def require_readable(self, path: str) -> str:
        """The path in its plain form. Raises ``ToolFailed`` where it leads elsewhere, or is not shown to a model."""
        path = clean_path(path)
        first = path.split("/", 1)[0].casefold()
        if first in _HIDDEN_FOLDERS[:2]:
            raise ToolFailed(f"{path}: {first} is not shown to a session", "Use list_dir to see which files there are.")
        try:
            self._forbidden().refuse_name(path)
        except PolicyError as error:
            raise ToolFailed(str(error), "It may hold a secret; do without it.") from None
        return path

    def _refuse_redacted(self, path: str, data: bytes | None) -> None:
        """Raises ``ToolFailed`` where a text that was shown without its secrets would be written back so."""
        if data is None or REDACTED.encode() not in data:
            return
        try:
            before = self.read_file(path)
        except UsageError:
            before = None
        if before is not None and data.count(REDACTED.encode()) > before.count(REDACTED.encode()):
            raise ToolFailed(
                f"{path}: the new text has {REDACTED} where the file has a secret, which would be lost",
                "Change only other lines, with apply_patch; the secret stays as it is.",
            )

    def _forbidden(self) -> ForbiddenFiles:
        return ForbiddenFiles(self.host.root, self.host.config.loop.forbidden_paths)


def clean_path(path: str) -> str:
    """A path from a model in its plain form. Raises ``ToolFailed`` where it could lead elsewhere."""
    plain = "/".join(part for part in path.split("/") if part not in ("", ".")) if not path.startswith("/") else path
    problem = relative_problem(plain)
    if problem:
        raise ToolFailed(
            f"the path {path[:200]!r} {problem}",
            "Give it relative to the top of the workspace, such as agents/ingest.py.",
        )
    if len(plain) > 1_000:
        raise ToolFailed("the path is longer than 1,000 characters", "Give a shorter one.")
    return plain


def _is_shown(path: str, forbidden: ForbiddenFiles) -> bool:
    if path.split("/", 1)[0].casefold() in _HIDDEN_FOLDERS or relative_problem(path):
        return False
    try:
        forbidden.refuse_name(path)
    except PolicyError:
        return False
    return True


def _kind_or_none(path: str) -> Kind | None:
    try:
        return file_kind(path)
    except UsageError:
        return None
