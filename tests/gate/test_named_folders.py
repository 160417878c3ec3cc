"""Settings that name a folder where the program keeps or writes files are judged before they count."""

from __future__ import annotations

import pytest
from harness import Workspace, refused, take_shown, unchanged

KEPT = ["books", "Books", "agents/x", "queue", "logs", ".cleared", ".cleared/books", ".cleared/taken/x", "accounts"]


@pytest.mark.parametrize("folder", KEPT)
@pytest.mark.parametrize("key", ["loop.runtime_dir", "loop.log_dir"])
def test_the_loop_gets_no_folder_that_is_used_for_something_else(ws: Workspace, key: str, folder: str) -> None:
    remedy = "unset loop.log_dir" if key == "loop.log_dir" else "set loop.runtime_dir .cleared/loop"
    said = (f"config.yaml ({key})", "no place for the loop's files", f"cleared config {remedy}.")
    with unchanged(ws):
        refused(ws("config", "set", key, folder), 3, *said)
    ws.ok("loop", "init")


def test_a_folder_of_the_books_is_refused_wherever_they_lie(ws: Workspace) -> None:
    ws.config("paths.books=ledger")
    refused(ws("config", "set", "loop.runtime_dir", "ledger/loop"), 3, "ledger/ is used for something else")
    ws.config("loop.runtime_dir=spool")
    refused(ws("config", "set", "paths.books", "spool"), 3, "spool/ is used for something else")


def test_a_folder_with_committed_files_is_refused_by_whichever_way_it_is_approved(ws: Workspace) -> None:
    ws.put("docs/a.md", "a")
    ws.commit("docs/a.md")
    said = "loop.runtime_dir lies in docs/, in which the last commit has files"
    refused(ws("config", "set", "loop.runtime_dir", "docs"), 3, said)
    ws.put("config.yaml", ws.read("config.yaml") + "\nloop:\n  runtime_dir: docs\n")
    with unchanged(ws):
        refused(take_shown(ws, "config", "approve"), 3, said, "cleared config set loop.runtime_dir .cleared/loop.")
        done = ws("agent", "propose", "config.yaml")
        assert done.code == 1 and "[policy-folder]" in done.err and said in done.err
    ws.ok("config", "set", "loop.runtime_dir", ".cleared/loop")
    ws.ok("loop", "init")


def test_one_wrong_folder_does_not_keep_another_from_being_mended(ws: Workspace) -> None:
    """Both were right once; then a commit brought files."""
    ws.config("loop.runtime_dir=one", "loop.log_dir=two")
    for folder in ("one", "two"):
        ws.put(f"{folder}/x", "x")
        ws.commit(f"{folder}/x")
    refused(ws("loop", "init"), 3, "loop.runtime_dir lies in one/", "config set loop.runtime_dir .cleared/loop.")
    ws.ok("config", "set", "loop.runtime_dir", ".cleared/loop")
    refused(ws("loop", "init"), 3, "loop.log_dir lies in two/", "cleared config unset loop.log_dir.")
    ws.ok("config", "unset", "loop.log_dir")
    ws.ok("loop", "init")


def test_the_books_are_not_moved_away_from_by_a_setting(posted: Workspace) -> None:
    for folder in ("ledger", "."):
        with unchanged(posted):
            refused(
                posted("config", "set", "paths.books", folder),
                3,
                "config.yaml (paths.books)",
                "books/2025/01/journal.csv",
                "cleared config set paths.books books.",
            )
    assert len(posted.entries()) == 4


def test_books_without_entries_take_a_folder_of_their_own_only(ws: Workspace) -> None:
    ws.put("docs/a.md", "a")
    ws.commit("docs/a.md")
    refused(ws("config", "set", "paths.books", "docs"), 3, "config.yaml (paths.books)", "such as docs/a.md")
    ws.config("paths.books=ledger", "paths.books=books")
    ws.in_order()
