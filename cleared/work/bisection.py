"""Since when something is wrong: ``cleared bisect`` halves the runs between a good one and a bad one.

Each check looks at a commit of a run: in memory where it is the check of the records, else a command in a private
clone, confined as jobs are. The workspace is read by its commits only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.errors import PolicyError, UsageError
from cleared.base.safe_files import write_atomic
from cleared.base.temporary_folders import open_temporary_folder
from cleared.changes.attestation import load_approvals
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_domains
from cleared.gate.past_version import open_past_host
from cleared.git import Repository, Snapshot, history
from cleared.git.history_copy import check_out_again, copy_history
from cleared.processes.fences import Fence, make_fence, require_walls
from cleared.processes.program import Program, end_at, run_program
from cleared.trust.approval_record import digest_of, record_path, try_parse_record
from cleared.work.loop.job_confinement import list_closed, python_rules

RECORDS: Final = "check"
"""The check of the records, by its name: the only one that is no command."""
_SKIP: Final = 125
"""The code of a command that cannot tell, as git's own bisect has it."""
_MAX_OUTPUT: Final = 4_000
_KEPT_VARIABLES: Final = ("PATH", "LANG", "LC_ALL", "TERM", "CLEARED_CLOCK")
Verdict = Literal["good", "bad", "unknown"]
Judge = Callable[[str], tuple[Verdict, str]]
"""Says of a commit what the check says, and in which words."""


class Bisected(Struct):
    """The first run whose commit is bad, and what is known of it."""

    run: str
    agent: str
    commit: str
    at: str
    subject: str
    script: str
    """``PATH@BLOB`` of what ran."""
    approval: str
    """Who approved that, in words."""
    attested: bool
    """Whether a machine that counts here attests the run."""
    says: str
    """What the check says of it."""
    others: list[str] = []
    """Commits since the run before it that are no runs: they may be to blame as well."""
    checks: int = 0
    runs: int = 0
    """Among how many it was looked for."""
    unknown: list[str] = []
    """Runs at which the check cannot tell."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def bisect_runs(
    host: Host, good: str, bad: str, check: Sequence[str], *, seconds: float, on_check: Callable[[str], None]
) -> Bisected:
    """Find the first run after ``good``, up to ``bad``, at which the check fails. Both are runs, or commits.

    Raises ``UsageError`` where there is no run between them, and ``PolicyError`` where the check fails at the good one,
    passes at the bad one, or cannot tell, and ``ConfinementUnavailable`` where a wall is missing that is required.
    """
    with host.open_for_reading() as repo:
        start, end = (_find_commit(host, text) for text in (good, bad))
        between = history.read_log(host.root, None, rev=f"{start}..{end}")[::-1]
        runs = [commit for commit in between if "Run" in commit.trailers]
        if not runs:
            raise UsageError(f"there is no run after {good} up to {bad}", remedy="cleared run list shows the newest.")
        with _open_check(host, repo, end, check, seconds) as judge:
            search = _Search(runs, judge, on_check)
            first = search.find_first(start)
        found = _describe(host, repo, runs[first], search.words.get(runs[first].id, ""))
        found.checks, found.runs, found.unknown = search.checks, len(runs), search.list_unknown()
        before = runs[first - 1].id if first else start
        since = between[[c.id for c in between].index(before) + 1 if first else 0 : between.index(runs[first])]
        found.others = [f"{commit.short} {commit.subject}" for commit in since]
        return found


class _Search:
    """Halves a list of commits, oldest first, of which the last is said to be bad."""

    def __init__(
        self,
        commits: Sequence[history.CommitInfo],
        judge: Callable[[str], tuple[Verdict, str]],
        say: Callable[[str], None],
    ) -> None:
        self.commits, self._judge, self._say = commits, judge, say
        self._known: dict[str, Verdict] = {}
        self.words: dict[str, str] = {}

    @property
    def checks(self) -> int:
        return len(self._known)

    def find_first(self, start: str) -> int:
        """The index of the first bad one. The two ends are looked at only where nothing else tells them."""
        low, high = -1, len(self.commits) - 1
        while high - low > 1:
            middle = self._find_telling(low, high)
            if middle is None:
                raise PolicyError(
                    f"the check cannot tell at any of {high - low - 1} runs, the first bad one among them"
                )
            low, high = (low, middle) if self._look(self.commits[middle].id) == "bad" else (middle, high)
        if self._look(self.commits[high].id) != "bad":
            raise PolicyError("the check does not fail at --bad", remedy="Give a run at which it does.")
        if low < 0 and self._look(start) != "good":
            said = f"; it says: {self.words[start][-500:]}" if self.words[start] else ""
            raise PolicyError(f"the check does not pass at --good{said}", remedy="Give an older run, at which it does.")
        return high

    def list_unknown(self) -> list[str]:
        return [commit.trailers["Run"] for commit in self.commits if self._known.get(commit.id) == "unknown"]

    def _find_telling(self, low: int, high: int) -> int | None:
        """The index nearest to the middle at which the check can tell; None where there is none between."""
        middle = (low + high) // 2
        for index in sorted(range(low + 1, high), key=lambda each: abs(each - middle)):
            if self._look(self.commits[index].id) != "unknown":
                return index
        return None

    def _look(self, commit: str) -> Verdict:
        if commit not in self._known:
            self._known[commit], self.words[commit] = self._judge(commit)
            self._say(f"{commit[:10]} is {self._known[commit]}")
        return self._known[commit]


def _find_commit(host: Host, text: str) -> str:
    found = history.find_by_trailer(host.root, "Run", text)
    return found[0].id if found else history.read_commit(host.root, text).id


def _describe(host: Host, repo: Repository, commit: history.CommitInfo, says: str) -> Bisected:
    approvals = load_approvals(host, Snapshot(repo, commit.id))
    source = approvals.source
    script = commit.trailers.get("Script", "")
    path = script.partition("@")[0]
    text = source.read(path)
    record = try_parse_record(source.read(record_path(path, digest_of(text)))) if text is not None else None
    approval = "none: it came with the program, or nobody approved it"
    if record is not None and record.kind == "script":
        counts = approvals.may_have_approved(record)
        approval = f"{record.proposal} by {record.by} at {record.at}" + ("" if counts else ", who does not count here")
    origins = CommitOrigins(host, repo, Snapshot(repo, repo.read_head()))
    attested = origins.judge_alone(history.read_commit(host.root, commit.id)) in COUNTING
    marks = commit.trailers
    return Bisected(
        marks["Run"],
        marks.get("Agent", ""),
        commit.id,
        marks.get("Clock", ""),
        commit.subject,
        script,
        approval,
        attested,
        says,
    )


# -- checks -----------------------------------------------------------------------------------------------------------


@contextmanager
def _open_check(host: Host, repo: Repository, end: str, check: Sequence[str], seconds: float) -> Iterator[Judge]:
    """What judges a commit."""
    if list(check) == [RECORDS]:
        with open_temporary_folder("bisect") as empty:
            yield lambda commit: _check_records(host, Snapshot(repo, commit), empty)
        return
    with open_temporary_folder("bisect") as made:
        folder = made.resolve()
        clone, scratch = folder / "workspace", folder / "home"
        scratch.mkdir()
        copy_history(repo, end, clone)
        fence = _make_fence(host, folder)

        def judge(commit: str) -> tuple[Verdict, str]:
            check_out_again(Snapshot(repo, commit), commit, clone)
            return _run_command(check, clone, scratch, fence, seconds)

        yield judge


def _check_records(host: Host, snapshot: Snapshot, folder: Path) -> tuple[Verdict, str]:
    """Every invariant of all records of a commit, with the settings of then."""
    past, source = open_past_host(host, snapshot, folder), CommittedSource(snapshot)
    violations = [v for domain in load_domains() for v in domain.audit(past.layout).check_records(source)]
    return ("bad", str(violations[0])) if violations else ("good", "")


def _make_fence(host: Host, folder: Path) -> Fence | None:
    probe = folder / "outside"
    write_atomic(probe, b"A check that can read this is not confined.\n", mode=0o600)
    fence = make_fence(
        list_closed(host.root),
        python_rules(sys.path),
        [folder / "workspace", folder / "home"],
        outside=probe,
    )
    return require_walls(fence, host.config.sandbox.confine)


def _run_command(
    check: Sequence[str], clone: Path, scratch: Path, fence: Fence | None, seconds: float
) -> tuple[Verdict, str]:
    words = [sys.executable, "-m", "cleared", *check[1:]] if check[0] == "cleared" else list(check)
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    homes = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME"), str(scratch))
    own = {
        "PATH": path,
        "CLEARED_HOME": str(scratch / "cleared"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    said = bytearray()
    program = Program(words, clone, {**kept, **homes, **own, "GIT_CONFIG_NOSYSTEM": "1"}, fence)
    try:
        ending = run_program(program, lambda data: said.extend(data[: _MAX_OUTPUT - len(said)]), end_at(seconds))
    except OSError as error:
        raise UsageError(f"{check[0]} cannot be started: {error.strerror or error}") from None
    words_said = said.decode("utf-8", "replace").strip() or ending.reason
    if ending.reason or ending.code == _SKIP:
        return "unknown", words_said
    return ("good" if ending.code == 0 else "bad"), words_said
