"""Fault 16: every starter that was ever shipped stays approved; none can be forgotten."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from harness import Workspace, refused, take_ok

from cleared.workspace import template

TOP = Path(__file__).parents[2]
LIST = "cleared/workspace/starter_digests.txt"


def git(*args: str) -> bytes:
    return subprocess.run(["git", "-C", TOP, *args], capture_output=True, check=True).stdout


def history() -> list[tuple[str, bytes]]:
    """Path and bytes of every version of a starter in the history of this checkout, newest first."""
    found = []
    said = git("log", "--full-history", "--raw", "--no-abbrev", "--no-renames", "--format=", "--", "agents", "scripts")
    for line in said.decode().splitlines():
        blob, path = line.split()[3], line.split("\t")[1]
        if path.endswith(".py") and path.count("/") == 1 and set(blob) != {"0"}:
            found.append((path, git("cat-file", "blob", blob)))
    return found


needs_history = pytest.mark.skipif(not (TOP / ".git").exists(), reason="not a checkout")


def test_todays_starters_are_listed() -> None:
    """The list is the only thing that approves a starter, so that forgetting a line is seen at once."""
    for path, data in template.starter_files().items():
        digest = hashlib.sha256(data).hexdigest()
        assert template.was_shipped(path, data), f"add to {LIST}: {digest}  {path}"


@needs_history
def test_the_list_holds_all_of_history_and_nothing_else() -> None:
    shipped = {
        (hashlib.sha256(data).hexdigest(), path) for path, data in [*history(), *template.starter_files().items()]
    }
    assert shipped <= template.shipped_digests(), (
        "a version that was shipped is missing: workspaces that have it would stop"
    )
    assert template.shipped_digests() <= shipped, "a digest in the list is of no version that was ever shipped"


@needs_history
def test_no_line_of_the_list_was_ever_taken_away() -> None:
    now = (TOP / LIST).read_text().splitlines()
    for commit in git("log", "--format=%H", "--", LIST).decode().split():
        assert set(git("show", f"{commit}:{LIST}").decode().splitlines()) <= set(now)


def test_without_its_line_a_starter_does_not_run(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall that reminds: a starter that is not in the list does not even run where it was just installed."""
    monkeypatch.setattr(template, "shipped_digests", lambda: frozenset[tuple[str, str]]())
    refused(ws("agent", "run", "ingest"), 3, "nobody has approved this version")


def earlier_ingest() -> bytes:
    return (TOP / "tests/workspace/first_ingest.txt").read_bytes()


@pytest.fixture
def old(ws: Workspace) -> Workspace:
    """A workspace that an earlier version of the program made, its ``ingest`` the first that was shipped."""
    ws.put("agents/ingest.py", earlier_ingest())
    ws.git("commit", "-q", "--amend", "--no-edit", "agents/ingest.py")
    return ws


def test_an_upgrade_stops_no_workspace(old: Workspace) -> None:
    """D17: what ran before the upgrade runs after it, without a word."""
    old.drop("january.csv")
    assert old.run("ingest")["result"] == {"imported": 4, "confirmed": 2, "review": 2}
    assert [a["state"] for a in old.json("agent", "list") if a["name"] == "ingest"] == ["starter"]


def test_rolling_back_after_an_upgrade_restores_what_was_live_here(old: Workspace) -> None:
    """D7: the starter that these books had, not the one that came with the upgrade."""
    changed = earlier_ingest().replace(b'"AWS"', b'"AMAZON"')
    old.put("agents/ingest.py", changed)
    take_ok(old, "agent", "approve", old.json("agent", "propose", "ingest")["id"])
    old.ok("agent", "rollback", "ingest")
    assert (old.root / "agents/ingest.py").read_bytes() == earlier_ingest()
    old.ok("agent", "rollback", "ingest")
    assert not (old.root / "agents/ingest.py").exists()


def test_a_change_is_compared_with_the_starter_that_these_books_had(old: Workspace) -> None:
    old.put("agents/ingest.py", earlier_ingest().replace(b'"AWS"', b'"AMAZON"'))
    proposal = old.json("agent", "propose", "ingest")
    diff = old.ok("agent", "diff", proposal["id"]).out
    assert [line for line in diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        '-            elif "AWS" in desc:',
        '+            elif "AMAZON" in desc:',
    ]


def test_the_documents_script_is_a_template_word_for_word(ws: Workspace) -> None:
    """Document 003's script is shipped as an example and runs as the document says."""
    ws.ok("agent", "new", "documented", "--template", "document_003")
    assert ws.read("agents/documented.py") == (TOP / "tests/sandbox/document_003_ingest.txt").read_text()
    body = ws.read("agents/documented.py").split('"""\n', 2)[2]
    assert hashlib.sha256(body.encode()).hexdigest() == (
        "cab051bac7858fa749016e83552bac1fee3e4fafb581654b08a51dd995f95b32"
    )
    ws.drop("january.csv")
    take_ok(ws, "agent", "approve", ws.json("agent", "propose", "documented")["id"])
    assert ws.run("documented")["result"] == {"imported": 4, "confirmed": 2, "review": 2}
