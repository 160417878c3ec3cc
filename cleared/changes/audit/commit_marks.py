"""Which commits of a history call themselves the same run or decision: a copy adds the same attestation once more.

Whoever judges one commit asks, so all of the history would be read for it. ``.cleared/books/commit-marks`` keeps eight
bytes for each trailer by which a commit calls itself something, sealed; what is new since is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from cleared.base.short_text import MARK_BYTES, mark_text
from cleared.changes.attestation_lines import ORIGIN_TRAILERS
from cleared.changes.host import Host
from cleared.git import Repository, history
from cleared.git.history import CommitInfo, RecentCommit
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "commit-marks"
_VERSION: Final = b"1"
_WORTH: Final = 16
"""Commits that came since, from which on they are kept: to write them all takes longer than to read a few again."""
_MOST: Final = 2_000
"""New commits; of more, all of the history is read by one git."""


class _Marks(Struct):
    """``commit``: up to which the history was read. ``names`` and ``commits``: of each mark its digest, and the id of
    its commit; the oldest first."""

    commit: str = ""
    names: bytes = b""
    commits: bytes = b""


class CommitMarks:
    """The marks of the history of ``head``."""

    def __init__(self, host: Host, repo: Repository, head: str) -> None:
        files = SealedFiles(host.layout.state_dir, _VERSION)
        data = files.read(_NAME)
        known = msgspec.msgpack.decode(data, type=_Marks) if data is not None else _Marks()
        new: Sequence[CommitInfo | RecentCommit] | None = None
        if known.commit:
            new = history.read_recent_commits(repo, head, known.commit, _MOST)
        if new is None:
            new, known = history.read_log(host.root, full_history=True, rev=head), _Marks()
        marks = [(mark, each.id) for each in reversed(new) for mark in _list_marks(each)]
        names, commits = b"".join(mark for mark, _ in marks), bytes.fromhex("".join(commit for _, commit in marks))
        self._known = _Marks(head, known.names + names, known.commits + commits)
        self._id_bytes = len(head) // 2
        if not known.commit or len(new) >= _WORTH:
            files.write(_NAME, msgspec.msgpack.encode(self._known))

    def list_alike(self, commit: CommitInfo) -> list[str]:
        """The ids of the commits that call themselves what this one does, the newest first; of others, too, where their
        marks happen to be alike."""
        return list(dict.fromkeys(each for mark in _list_marks(commit) for each in reversed(self._find_commits(mark))))

    def _find_commits(self, mark: bytes) -> list[str]:
        found, names, at = [], self._known.names, -1
        while (at := names.find(mark, at + 1)) >= 0:
            if at % MARK_BYTES == 0:
                begin = at // MARK_BYTES * self._id_bytes
                found.append(self._known.commits[begin : begin + self._id_bytes].hex())
        return found


def _list_marks(commit: CommitInfo | RecentCommit) -> Iterable[bytes]:
    for kind in ORIGIN_TRAILERS:
        if kind in commit.trailers:
            yield mark_text(f"{kind}\0{commit.trailers[kind]}")
