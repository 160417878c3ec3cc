"""What durability costs: a commit that survives a kill, against plain git."""

from __future__ import annotations

from collections.abc import Callable

from bench.calls import whole_run
from bench.measure import Result, compare
from bench.workspaces import NOW, copy, git, host, place, workspace, write_and_commit
from cleared.changes import draft
from cleared.git import Author, CommitHeader, Repository, Snapshot, commit_changes
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import Attempt, Event, Resumption

CALLS = 1_000
FILES = 5_000
_TEXT = b"a,b\n" * 50
SCRIPT = f'''"""
name: Thousand
trigger: on_demand
"""
for i in range({CALLS}):
    journal_add_double(
        date="2025-01-" + ("0" + str(1 + i % 28))[-2:], description="Entry " + str(i), debit_account=5020,
        credit_account=1010, amount=1 + i, confidence=0.98, status="auto-confirmed", evidence="bench")
git_commit("a thousand")
None
'''


def durable(quick: bool) -> Result:
    """A run as it is, against its script and its draft in memory, the files written plainly and committed by git."""
    template = workspace(agents={"thousand": SCRIPT})

    def plain() -> Callable[[], object]:
        opened = host(copy(template))

        def act() -> None:
            with opened.open_for_reading() as repo:
                snapshot = Snapshot(repo, repo.read_head())
                scripts = Scripts(opened, snapshot)
                script = scripts.load_agent("thousand")
                attempt = Attempt(opened, repo, snapshot, script, Resumption(Event()), dry_run=False, scripts=scripts)
                attempt.execute_script()
                attempt.context.host.check_draft()
                changes = draft.render_draft(opened, snapshot, attempt.context).changes
                write_and_commit(opened.root, {path: data or b"" for path, data in changes.items()})

        return act

    return compare(
        "a durable run of 1,000 calls / in memory + git add + git commit",
        whole_run(template, CALLS, "thousand"),
        plain,
        1.4,
        3 if quick else 11,
    )


def seal_small(quick: bool) -> Result:
    """Three files of many, opening the repository included on both sides."""
    ours, theirs = place(), place()
    for root in (ours, theirs):
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
        write_and_commit(
            root, {f"books/{n // 50:03d}/{n % 50:02d}.csv": b"a,b\n" * 50 + b"%d\n" % n for n in range(FILES)}
        )
        git(root, "gc", "-q")
    author, count = Author("Bench", "bench@localhost"), iter(range(10_000))

    def files() -> dict[str, bytes]:
        n = next(count)
        return {f"books/{(7 * k + n) % (FILES // 50):03d}/{k:02d}.csv": _TEXT + b"new %d\n" % n for k in (1, 2, 3)}

    def sealed() -> Callable[[], object]:
        new = files()

        def act() -> None:
            with Repository.open(ours, for_writing=True) as repo:
                commit_changes(repo, repo.read_head(), new, CommitHeader("bench", [("Run", "x")], author, NOW))

        return act

    def plain() -> Callable[[], object]:
        new = files()
        return lambda: write_and_commit(theirs, new)

    return compare(f"seal of 3 files among {FILES:,} / git add + git commit", sealed, plain, 1.2, 5 if quick else 25)
