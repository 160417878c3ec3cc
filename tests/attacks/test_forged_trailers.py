"""What a commit's message claims is tried before it is believed, and so is a line that was signed for another place."""

from __future__ import annotations

import json

import pytest
from clones import live
from harness import ATTESTED, IDENTITY, Workspace, take_ok
from pushing import check, put_draws

from cleared.changes import attestation_lines, attested_sums, lost_rows
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.line_worth import LineWorth
from cleared.trust.keys import run_key
from cleared.workspace.location import cleared_home

DRAW = "2024-12-001"


@pytest.fixture(autouse=True)
def identity(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    posted.git("branch", "-M", "main")


def believe_trailers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommitOrigins, "is_ours", lambda *_: True)


@pytest.mark.parametrize("wall", [True, False])
def test_a_rollback_lists_no_entry_that_only_claims_to_be_of_the_version(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    live(posted)
    script = f"agents/probe.py@{posted.git('rev-parse', 'HEAD:agents/probe.py').strip()}"
    put_draws(posted, f"Run: 20250210T060000Z-aaaaaa\nAgent: probe\nEvent: on_demand 1\nScript: {script}")
    if not wall:
        believe_trailers(monkeypatch)
    done = take_ok(posted, "agent", "rollback", "probe", "--json").json
    assert (DRAW in [entry["entry_id"] for entry in done["entries"]]) is not wall


@pytest.mark.parametrize("wall", [True, False])
def test_the_entry_of_a_key_is_that_of_the_decision_and_of_no_copy(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    said = ("journal", "add", "2025-02-05", "rent", "5020=5.00", "1010=-5.00", "--key", "rent-1", "--json")
    first = posted.ok(*said).json
    decision = posted.trailers()["Decision"]
    put_draws(posted, f"Decision: {decision}\nCards: {DRAW}")
    if not wall:
        believe_trailers(monkeypatch)
    again = posted(*said)
    assert (again.code == 0 and again.json["entry_id"] == first["entry_id"]) is wall


@pytest.mark.parametrize("wall", [True, False])
def test_what_was_signed_for_a_clone_that_is_not_pinned_counts_in_no_other(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Though the key is that of this very machine."""
    posted.ok("journal", "add", "2025-02-05", "draw", "3200=7777.00", "1010=-7777.00")
    *others, last = posted.read(ATTESTED).splitlines(keepends=True)
    key = run_key(posted.root)
    assert key is not None
    line = attestation_lines.render_attestation(json.loads(last)["says"] | {"workspace": "clone 0123456789"}, key)
    posted.put(ATTESTED, "".join(others) + line.decode("ascii"))
    posted.git("commit", "-qa", "--amend", "--no-edit")
    if not wall:
        monkeypatch.setattr(LineWorth, "_judge_attestation", lambda *_: "genuine")
    assert bool(check(posted)) is wall


@pytest.mark.parametrize("wall", [True, False])
def test_a_line_without_its_end_is_none(posted: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    """The last commit was made again with it cut: the next decision would have made one line of both."""
    posted.put(ATTESTED, posted.read(ATTESTED).removesuffix("\n"))
    posted.git("commit", "-qa", "--amend", "--no-edit")
    if wall:
        assert any(posted.head()[:10] in each for each in check(posted))
    else:
        for module in (attestation_lines, attested_sums):
            monkeypatch.setattr(module, "split_lines", bytes.splitlines)
        assert check(posted) == []


@pytest.mark.parametrize("wall", [True, False])
def test_what_was_seen_is_missed_however_long_ago_it_was_made(
    posted: Workspace, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Somebody writes the history anew without a decision that is older than those which are compared without having
    been seen."""
    monkeypatch.setattr(lost_rows, "MAX_COMMITS_COMPARED", 2)
    start = posted.head()
    posted.ok("journal", "add", "2025-02-05", "the first", "5020=5.00", "1010=-5.00")
    decision, entry = posted.trailers()["Decision"], posted.entries()[-1]["entry_id"]
    for each in ("another", "a third", "the last"):
        posted.ok("journal", "add", "2025-02-05", each, "5020=5.00", "1010=-5.00")
    posted.ok("journal", "list")
    for path, word in (("books/2025/02/journal.csv", str(entry)), (ATTESTED, decision)):
        kept = [line for line in posted.read(path).splitlines(keepends=True) if word not in line]
        posted.put(path, "".join(kept))
    posted.git("add", "-A")
    tree = posted.git("write-tree").strip()
    posted.git("reset", "-q", "--hard", posted.git("commit-tree", tree, "-p", start, "-m", "anew").strip())
    if not wall:
        (cleared_home() / "checkpoints" / posted.read(".git/cleared-clone").strip() / "seen.json").unlink()
    found = [v["message"] for v in posted("check", "--json").json["violations"] if v["check"] == "lost"]
    assert any(str(entry) in each for each in found) is wall
