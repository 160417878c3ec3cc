"""When the last backup of a clone was made, and what is committed here and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.safe_files import write_atomic
from cleared.base.terminal import count_noun
from cleared.git import Repository
from cleared.git.object_reader import is_oid
from cleared.trust.keys import cleared_home
from cleared.trust.workspace_pin import find_clone_mark

FOLDER: Final = "backups"
LATE_DAYS: Final = 7
"""Commits that are older, and are in no backup and at no remote, are worth a word."""
_MAX_TIPS: Final = 200
_MAX_COUNTED: Final = 1_000
"""More commits are not counted: each status waits for it."""


class LastBackup(Struct, frozen=True):
    """``file``: where it was written. ``tips``: the commits at which branches were."""

    at: datetime
    file: str
    tips: tuple[str, ...] = ()


class UnsavedCommits(Struct, frozen=True):
    """Commits that are missing somewhere, as far as they are counted. ``oldest``: when the oldest of them was made;
    None where there are none."""

    count: int
    oldest: datetime | None

    def __str__(self) -> str:
        return count_noun(self.count, "commit") if self.count < _MAX_COUNTED else f"{_MAX_COUNTED:,} commits or more"


class SafetyReport(Struct, frozen=True):
    """What is known of copies of these books. ``since``: commits that are not in the last backup. ``unpushed``: commits
    of branches that no remote has, None where there is no remote. ``unsaved``: those that are in neither."""

    last: LastBackup | None
    since: UnsavedCommits
    unpushed: UnsavedCommits | None
    unsaved: UnsavedCommits

    def is_late(self, now: datetime) -> bool:
        """Whether something has been in no second place for long."""
        return self.unsaved.oldest is not None and (now - self.unsaved.oldest).days >= LATE_DAYS

    def describe_backup(self, now: datetime) -> str:
        """How old the last backup is, in a line."""
        if self.last is None:
            return "none yet (cleared backup FILE)"
        since = f", {self.since} since" if self.since.count else ""
        return f"{_describe_age(now - self.last.at)} old ({self.last.file}){since}"

    def describe_unpushed(self) -> str:
        """Which commits no remote has, in a line; empty where there are none, or no remote."""
        if self.unpushed is None or self.unpushed.oldest is None:
            return ""
        return f"{self.unpushed}, from {self.unpushed.oldest:%Y-%m-%d} on"

    def to_record(self, now: datetime) -> dict[str, Any]:
        """As ``cleared status --json`` has it; the summaries are for people."""
        return {
            "summary": self.describe_backup(now),
            "unpushed_summary": self.describe_unpushed(),
            "last": {"at": self.last.at.isoformat(), "file": self.last.file} if self.last else None,
            "commits_since": self.since.count,
            "unpushed": self.unpushed.count if self.unpushed else None,
            "unsaved": self.unsaved.count,
            "unsaved_since": self.unsaved.oldest.isoformat() if self.unsaved.oldest else None,
        }


def remember_backup(root: Path, last: LastBackup) -> None:
    """Write down that a backup was made. Raises ``WorkspaceError``."""
    data = {**asdict(last), "at": last.at.isoformat(), "tips": list(last.tips[:_MAX_TIPS])}
    cleared_home().mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _path_of(find_clone_mark(root, make=True))
    write_atomic(path, (json.dumps(data) + "\n").encode("ascii"), mode=0o600)


def read_last_backup(root: Path) -> LastBackup | None:
    """The last backup that was made or restored of this clone; None where there was none."""
    mark = find_clone_mark(root)
    try:
        data = json.loads(_path_of(mark).read_bytes()) if mark else None
        return (
            LastBackup(datetime.fromisoformat(data["at"]), str(data["file"]), tuple(filter(is_oid, data["tips"])))
            if data
            else None
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def read_safety(repo: Repository) -> SafetyReport:
    """What is known of copies of the books that ``repo`` has."""
    last = read_last_backup(repo.root)
    has_remote = bool(repo.git.run("for-each-ref", "--count=1", "refs/remotes/"))
    saved = [f"^{oid}" for oid in last.tips] if last else []
    pushed = ["--not", "--remotes", "--not"] if has_remote else []
    unpushed = _find_commits(repo, pushed) if has_remote else None
    since = _find_commits(repo, saved) if saved else UnsavedCommits(0, None)
    unsaved = _find_commits(repo, [*pushed, *saved]) if saved or unpushed is None else unpushed
    return SafetyReport(last, since, unpushed, unsaved)


def _find_commits(repo: Repository, besides: Sequence[str]) -> UnsavedCommits:
    """The commits of all branches and of HEAD, besides those that these arguments of ``git log`` exclude."""
    options = ("--ignore-missing", f"--max-count={_MAX_COUNTED}", "--format=%ct")
    times = repo.git.run("log", *options, *besides, "--branches", "HEAD", check=False).split()
    oldest = min(map(int, times), default=None)
    return UnsavedCommits(len(times), datetime.fromtimestamp(oldest, UTC) if oldest is not None else None)


def _describe_age(age: Any) -> str:
    hours = max(0, int(age.total_seconds() // 3600))
    return (
        count_noun(hours // 24, "day") if hours >= 24 else count_noun(hours, "hour") if hours else "less than an hour"
    )


def _path_of(mark: str) -> Path:
    return cleared_home() / FOLDER / f"{mark}.json"
