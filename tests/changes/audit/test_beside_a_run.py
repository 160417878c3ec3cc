"""``check`` beside a run that commits: what it compares is of one moment."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from harness import Workspace, chase

from cleared.books.audit.book_audit import BookAudit
from cleared.changes.audit.record_violations import find_violations
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.workspace.lock import writer_lock

MANY = chase(*((f"01/{1 + n % 28:02d}/2025", f"SHOP {n:02d}", "-1.00") for n in range(60)))


def wait_until_it_waits(ws: Workspace, check: Future[Any]) -> None:
    """Until another process or thread waits for the writer lock; what does not wait has ended."""
    pause = threading.Event()
    while not list((ws.root / ".cleared").glob("waiting-*")) and not check.done():
        pause.wait(0.01)


def check_aside(ws: Workspace, pool: ThreadPoolExecutor) -> Future[list[dict[str, Any]]]:
    return pool.submit(lambda: find_violations(open_workspace(ws.root)))


def test_the_branch_behind_what_is_remembered_of_it_is_looked_at_again(posted: Workspace) -> None:
    """Git moves two references with a commit, one after the other. A look in between finds the older branch."""
    posted.drop("many.csv", MANY)
    posted.run("ingest")
    new = posted.head()
    with ThreadPoolExecutor(1) as pool:
        with writer_lock(posted.root / ".cleared", 0.0, "agent run ingest"):
            posted.git("reset", "-q", "--hard", "HEAD~1")
            check = check_aside(posted, pool)
            wait_until_it_waits(posted, check)
            posted.git("reset", "-q", "--hard", new)
        assert check.result() == []
    posted.in_order()


def test_other_commands_say_nothing_of_it(posted: Workspace) -> None:
    """They do not wait for whoever is at work."""
    posted.drop("many.csv", MANY)
    posted.run("ingest")
    new = posted.head()
    with writer_lock(posted.root / ".cleared", 0.0, "agent run ingest"):
        posted.git("reset", "-q", "--hard", "HEAD~1")
        for words in (["journal", "list"], ["status"], ["queue", "list"]):
            done = posted.process(*words)
            assert done.code in (0, 1) and "lost" not in done.out + done.err, done
        posted.git("reset", "-q", "--hard", new)
    posted.in_order()


@pytest.mark.parametrize("step", ["prepared", "index", "ref", "file", "worktree"])
def test_at_each_step_of_a_commit(ws: Workspace, step: str) -> None:
    ws.drop("many.csv", MANY)
    begun: list[Future[list[dict[str, Any]]]] = []
    with ThreadPoolExecutor(1) as pool:

        def on_step(name: str) -> None:
            if name == step and not begun:
                begun.append(check_aside(ws, pool))
                wait_until_it_waits(ws, begun[0])

        assert run_now(open_workspace(ws.root, on_step=on_step), "ingest").status == "succeeded"
        (check,) = begun
        assert check.result() == []
    ws.in_order()


def test_a_commit_between_reading_the_books_and_their_history(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The history that is judged is that of the commit whose books are."""
    ws.drop("january.csv")
    ws.run("ingest")
    ws.drop("many.csv", MANY)
    look = BookAudit.check_records

    def check_and_import(*args: Any) -> Any:
        found = look(*args)
        assert run_now(open_workspace(ws.root), "ingest").status == "succeeded"
        return found

    monkeypatch.setattr(BookAudit, "check_records", check_and_import)
    assert find_violations(open_workspace(ws.root)) == []


def test_what_is_lost_is_called_lost(posted: Workspace) -> None:
    posted.drop("many.csv", MANY)
    posted.run("ingest")
    posted.git("reset", "-q", "--hard", "HEAD~1")
    found = posted("check", "--json").json["violations"]
    assert [each["check"] for each in found] == ["lost"] and "60 entries" in found[0]["message"]
