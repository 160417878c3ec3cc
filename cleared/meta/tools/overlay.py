"""The draft of a session: the files it has written or removed, durable, apart from the workspace.

    overlay/index.json          path → digest of the content, or null: removed
    overlay/contents/DIGEST     the contents
    overlay/gate.json           what the gate last said, and of which state of the draft
    overlay/seen.json           the proposals that the session was shown, and the rejections that it was told of

The index is replaced as a whole, so that a change of several files is there after a crash, or none of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import Place, UsageError, WorkspaceError
from cleared.base.safe_files import read_stable, sweep_temporaries, write_atomic
from cleared.base.safe_names import relative_problem, require_safe_name
from cleared.gate.candidate import MAX_CASE
from cleared.gate.file_kinds import file_kind
from cleared.runs.approved_scripts import MAX_SCRIPT_BYTES

SCRATCH: Final = "scratch"
"""The folder of files that a session may write and that are never proposed."""
MAX_FILES: Final = 500
MAX_BYTES: Final = 64 << 20
_MAX_SCRATCH_FILE: Final = 8 << 20
_MAX_INDEX: Final = 1 << 20
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class Overlay:
    """Files by their path in the workspace. Nothing outside of ``folder`` is ever written."""

    def __init__(self, folder: Path) -> None:
        """The draft that lies in ``folder``, or an empty one. Raises ``WorkspaceError`` where it is damaged."""
        self.folder = folder
        self._digests: dict[str, str | None] = {}
        self._contents: dict[str, bytes] = {}
        if (folder / "index.json").exists():
            sweep_temporaries(folder)
            self._load_files()

    def read_file(self, path: str) -> bytes | None:
        """What the session wrote there; None where it removed the file. Raises ``KeyError`` where it did neither."""
        digest = self._digests[path]
        return None if digest is None else self._contents[digest]

    def __contains__(self, path: object) -> bool:
        return path in self._digests

    @property
    def files(self) -> dict[str, bytes | None]:
        """Path → content, None: removed; in the order of the paths."""
        return {path: self.read_file(path) for path in sorted(self._digests)}

    @property
    def proposable_files(self) -> dict[str, bytes | None]:
        """The same without the scratch files."""
        return {path: data for path, data in self.files.items() if not is_scratch(path)}

    @property
    def state(self) -> str:
        """A digest of what would be proposed: the same for the same files."""
        return _digest_files((path, digest) for path, digest in self._digests.items() if not is_scratch(path))

    @property
    def whole_state(self) -> str:
        """The same with the scratch files: it differs after each change of the session."""
        return _digest_files(self._digests.items())

    def write_files(self, files: Mapping[str, bytes | None]) -> None:
        """Write (or, for None, remove) all of these, or none: it is on the disk when this returns.

        Raises ``UsageError`` for a path that a session cannot write, and where it would be too much.
        """
        digests, contents = dict(self._digests), dict(self._contents)
        for path, data in files.items():
            require_writable(path)
            if data is None:
                digests[path] = None
                continue
            if len(data) > max_bytes(path):
                raise UsageError(
                    f"it has {len(data):,} bytes; {max_bytes(path):,} are possible",
                    place=Place(path),
                    remedy="Make it smaller.",
                )
            digests[path] = hashlib.sha256(data).hexdigest()
            contents[str(digests[path])] = data
        self._replace_state(digests, contents)

    def read_verdict(self) -> dict[str, Any]:
        """What ``save_verdict`` saved last; empty where there is nothing that can be read."""
        return self._read_notes("gate.json")

    def save_verdict(self, verdict: Mapping[str, Any]) -> None:
        """Keep what the gate said of the draft."""
        write_atomic(self.folder / "gate.json", json.dumps(verdict).encode("utf-8"), mode=0o600)

    def read_seen(self) -> dict[str, str]:
        """Folder of a proposal → ``shown``, or ``rejected`` where the session was told of that too."""
        return {str(folder): str(how) for folder, how in self._read_notes("seen.json").items()}

    def note_seen(self, folders: Iterable[str], how: str = "shown") -> None:
        """Keep that the session knows these."""
        seen = {**self.read_seen(), **dict.fromkeys(folders, how)}
        write_atomic(self.folder / "seen.json", json.dumps(seen).encode("utf-8"), mode=0o600)

    def _read_notes(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(read_stable(self.folder / name, _MAX_INDEX)[0])
        except (WorkspaceError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def _replace_state(self, digests: dict[str, str | None], contents: dict[str, bytes]) -> None:
        used = {digest for digest in digests.values() if digest is not None}
        total = sum(len(contents[digest]) for digest in used)
        if len(digests) > MAX_FILES or total > MAX_BYTES:
            raise UsageError(
                f"a session can hold {MAX_FILES} files of {MAX_BYTES >> 20} MB together; this would be {len(digests)} "
                f"of {total:,} bytes",
                remedy=f"Remove what is not needed, in {SCRATCH}/ for example.",
            )
        for digest in used - set(self._contents):
            write_atomic(self.folder / "contents" / digest, contents[digest], mode=0o600)
        index = json.dumps(dict(sorted(digests.items())), indent=0).encode("utf-8")
        write_atomic(self.folder / "index.json", index, mode=0o600)
        for digest in set(self._contents) - used:
            (self.folder / "contents" / digest).unlink(missing_ok=True)
        self._digests, self._contents = digests, {digest: contents[digest] for digest in used}

    def _load_files(self) -> None:
        place = self.folder / "index.json"
        try:
            index = json.loads(read_stable(place, _MAX_INDEX)[0])
            items = list(index.items())
            for path, digest in items:
                require_writable(path)
                if digest is None:
                    continue
                if not _DIGEST.fullmatch(digest):
                    raise ValueError("a digest is none")
                data = read_stable(self.folder / "contents" / digest, MAX_BYTES)[0]
                if hashlib.sha256(data).hexdigest() != digest:
                    raise ValueError(f"the content of {path} is not what was written")
                self._contents[digest] = data
        except (ValueError, AttributeError, TypeError, RecursionError, UsageError, WorkspaceError) as error:
            raise WorkspaceError(
                f"the files of this session cannot be read: {error}",
                place=Place(str(place)),
                remedy="Start a new session.",
            ) from None
        self._digests = dict(items)


def is_scratch(path: str) -> bool:
    return path.startswith(f"{SCRATCH}/")


def max_bytes(path: str) -> int:
    """How large the file at this path may be."""
    if is_scratch(path):
        return _MAX_SCRATCH_FILE
    return MAX_CASE if file_kind(path) == "case" else MAX_SCRIPT_BYTES * 8


def require_writable(path: str) -> None:
    """Raises ``UsageError`` where a session cannot write at this path: it is nothing that can be proposed."""
    problem = relative_problem(path)
    if problem:
        raise UsageError(f"the path {path[:200]!r} {problem}", remedy="Give a plain path such as agents/name.py.")
    if is_scratch(path):
        for part in path.split("/")[1:]:
            require_safe_name(part, "file")
        return
    if file_kind(path) is None:
        raise UsageError(
            "this cannot be written: a session proposes agents and what belongs to them, nothing else",
            place=Place(path[:200]),
            remedy="Write agents/NAME.py, scripts/NAME.py, tests/cases/NAME.json, config.yaml, rules/NAME.md or "
            f"templates/NAME.md; or {SCRATCH}/NAME for notes, which are never proposed.",
        )


def _digest_files(files: Iterable[tuple[str, str | None]]) -> str:
    return hashlib.sha256(json.dumps(sorted(files)).encode("utf-8", "surrogatepass")).hexdigest()
