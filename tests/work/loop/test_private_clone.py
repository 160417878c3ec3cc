"""The private clone of a program that may change files: separate from the workspace, and read without git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import Workspace, unchanged
from held_jobs import as_others_are

from cleared.base.errors import WorkspaceError
from cleared.changes.workspace_opening import open_workspace
from cleared.work.loop import private_clone
from cleared.work.loop.private_clone import PrivateClone, make_private_clone, sort_change


@pytest.fixture
def clone(ws: Workspace) -> PrivateClone:
    return make_private_clone(open_workspace(ws.root), ws.root / ".cleared/clones/one")


def git(folder: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_it_is_a_repository_of_its_own(ws: Workspace, clone: PrivateClone) -> None:
    assert ws.head() == clone.base
    assert git(clone.folder, "status", "--porcelain") == "" == git(clone.folder, "remote")
    assert not (clone.folder / ".git/objects/info/alternates").exists()
    assert (clone.folder / "scripts/single_agent_tmux.sh").stat().st_mode & 0o100
    assert clone.list_changes() == []


def test_what_was_before_its_commit_is_not_in_it(ws: Workspace) -> None:
    """Of files that are gone nothing is left to read."""
    ws.put("docs/secret.txt", "s3cret of before\n")
    ws.commit("docs/secret.txt")
    ws.git("rm", "-q", "docs/secret.txt")
    ws.git("commit", "-qm", "without")
    gone = ws.git("rev-parse", "HEAD~1:docs/secret.txt").strip()
    clone = make_private_clone(open_workspace(ws.root), ws.root / ".cleared/clones/one")
    (line,) = git(clone.folder, "log", "--all", "--format=%T %P").splitlines()
    assert line.strip() == ws.git("rev-parse", "HEAD^{tree}").strip(), "the same files, and no parent"
    known = git(clone.folder, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert gone not in known and ws.head() not in known and len(known) > 10
    assert git(clone.folder, "fsck", "--strict") == ""


@pytest.mark.parametrize("mode", [0o400, 0])
def test_a_folder_that_cannot_be_entered_hides_and_deletes_nothing(
    ws: Workspace, clone: PrivateClone, mode: int
) -> None:
    """What is in it counts neither as it was nor as deleted; the rest is found."""
    (clone.folder / "notes.md").write_text("new")
    (clone.folder / "shut/in").mkdir(parents=True)
    (clone.folder / "shut/file").write_text("x")
    for name in ("shut", "agents"):
        (clone.folder / name).chmod(mode)
    with as_others_are():
        found = {change.path: change for change in clone.list_changes()}
    clone.remove()
    assert found["notes.md"].new == b"new" and not found["notes.md"].problem
    committed = [path for path in ws.git("ls-files", "agents").split() if path.startswith("agents/")]
    shown = ["shut/file", "shut/in", "agents/approvals"] if mode else ["shut", "agents"]
    expected = {*committed, *shown}
    assert {path for path, change in found.items() if change.problem == "it cannot be read"} == expected
    assert committed and found.keys() == {"notes.md", *expected}


@pytest.mark.parametrize("mode", [0o400, 0])
def test_a_clone_that_cannot_be_entered_deletes_nothing(clone: PrivateClone, mode: int) -> None:
    clone.folder.chmod(mode)
    with as_others_are():
        changes = clone.list_changes()
    clone.remove()
    assert len(changes) > 10 and all(change.problem for change in changes)


def test_changes_are_found_whether_committed_there_or_not(ws: Workspace, clone: PrivateClone) -> None:
    (clone.folder / "notes.md").write_text("new")
    (clone.folder / "config.yaml").write_text("changed: 1\n")
    (clone.folder / "agents/ingest.py").unlink()
    git(clone.folder, "add", "-A")
    git(clone.folder, "-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "work")
    (clone.folder / "docs").mkdir()
    (clone.folder / "docs/a.md").write_text("later")
    with unchanged(ws):
        found = {change.path: change.kind for change in clone.list_changes(ignore=frozenset({"docs/a.md"}))}
    assert found == {"notes.md": "added", "config.yaml": "modified", "agents/ingest.py": "deleted"}


def test_nothing_the_program_puts_there_is_run_or_followed(ws: Workspace, clone: PrivateClone, tmp_path: Path) -> None:
    """Hooks, filters and monitors in its git settings, links out of it, pipes, unreadable folders."""
    proof = tmp_path / "proof"
    with (clone.folder / ".git/config").open("a") as settings:
        settings.write(f'[core]\n\tfsmonitor = touch {proof}\n[filter "x"]\n\tclean = touch {proof}\n')
    (clone.folder / ".gitattributes").write_text("* filter=x\n")
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    (clone.folder / "link.md").symlink_to(secret)
    (clone.folder / "folder").symlink_to(tmp_path)
    os.mkfifo(clone.folder / "pipe")
    (clone.folder / "large.bin").touch()
    os.truncate(clone.folder / "large.bin", private_clone.MAX_FILE_BYTES + 1)
    changes = {change.path: change for change in clone.list_changes()}
    assert set(changes) == {".gitattributes", "link.md", "folder", "pipe", "large.bin"}
    assert all(changes[path].problem and changes[path].new is None for path in changes.keys() - {".gitattributes"})
    assert not proof.exists()
    clone.remove()
    assert not clone.folder.exists() and secret.read_text() == "s3cret"


def test_too_many_changes_are_refused(clone: PrivateClone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_clone, "MAX_CHANGES", 3)
    for number in range(4):
        (clone.folder / f"{number}.txt").touch()
    with pytest.raises(WorkspaceError, match="more than 3 files"):
        clone.list_changes()


@pytest.mark.parametrize(
    ("path", "fate"),
    [
        ("agents/a.py", "proposable"),
        ("scripts/a.py", "proposable"),
        ("config.yaml", "proposable"),
        ("tests/cases/a.json", "proposable"),
        ("rules/a.md", "proposable"),
        ("templates/a.md", "proposable"),
        ("books/2025/01/journal.csv", "refused"),
        ("accounts/chart-of-accounts.csv", "refused"),
        ("queue/2025-01.jsonl", "refused"),
        ("logs/agent-log-2025-02.csv", "refused"),
        ("agents/approvals/x.json", "refused"),
        ("agents/sub/a.py", "refused"),
        ("agents/.hidden.py", "refused"),
        (".env", "refused"),
        ("a/.env.local", "refused"),
        ("import/a.csv", "refused"),
        (".CLEARED/state", "refused"),
        (".cleared./state", "refused"),
        (".cle\u200bared/state", "refused"),
        (".ENV", "refused"),
        ("sub/.Env.local", "refused"),
        ("Books/2025/01/journal.csv", "refused"),
        ("IMPORT/a.csv", "refused"),
        ("Config.yaml", "refused"),
        ("Agents/a.py", "refused"),
        ("agents/a.PY", "refused"),
        ("Rules/a.md", "refused"),
        ("AGENTS/approvals/x.json", "refused"),
        (".auto-loop-state", "refused"),
        (".Auto-Loop.pid", "refused"),
        ("docs/tasks/T-001.json", "refused"),
        ("docs/Tasks/archive.jsonl", "refused"),
        ("docs/current/Task-Status.jsonl", "refused"),
        ("books", "refused"),
        ("Rules", "refused"),
        ("tests", "refused"),
        ("docs/tasks/T-009.json/a.txt", "refused"),
        ("Docs/Tasks/t-009.JSON/b/a.txt", "refused"),
        ("docs/current/task-status.jsonl/a.md", "refused"),
        ("agents/ingest.py/a.md", "refused"),
        ("Config.yaml/a.md", "refused"),
        ("tests/cases/a.json/b.md", "refused"),
        ("docs/a.md", "plain"),
        ("docs/Books/a.md", "plain"),
        ("PROMPT.md", "plain"),
        ("scripts/x.sh", "plain"),
    ],
)
def test_what_becomes_of_a_change(ws: Workspace, path: str, fate: str) -> None:
    assert sort_change(open_workspace(ws.root), path) == fate
