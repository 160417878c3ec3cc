"""The rows of the last commit are those that its attestations come to, whatever the history looks like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from clones import clone
from harness import ATTESTED, IDENTITY, Workspace, chase, take_ok
from pushing import check, clone_afresh, make_remote, put_draws

from cleared.changes.attestation_lines import render_attestation
from cleared.trust.keys import run_key

LOG = "logs/agent-log-2025-02.csv"
FORGED = "Run: 20250210T060000Z-aaaaaa\nAgent: ingest\nEvent: on_demand 1"
STATE = "cleared.changes.audit.provenance.find_unattested_states"


@pytest.fixture
def remote(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    bare = make_remote(posted, tmp_path, monkeypatch)
    posted.git("push", "-q", "-u", "origin", "main")
    return bare


def attack(remote: Path, tmp_path: Path) -> Workspace:
    where = tmp_path / "attacker"
    Workspace(tmp_path).git("clone", "-q", str(remote), str(where))
    return Workspace(where)


def keep_lines(ws: Workspace, start: str, subject: str = "ingest: nothing new") -> str:
    """A commit on ``start`` that has all the attestations of the remote's branch, and changes the logs alone."""
    ws.git("checkout", "-q", "-B", "main", start)
    missing = [line for line in ws.git("show", f"origin/main:{ATTESTED}").splitlines() if line not in ws.read(ATTESTED)]
    assert missing
    ws.put(ATTESTED, ws.read(ATTESTED) + "".join(f"{line}\n" for line in missing))
    ws.git("commit", "-q", "-a", "-m", f"{subject}\n\n{FORGED}")
    return ws.head()


def has_draw(ws: Workspace) -> bool:
    draws = [entry for entry in ws.json("journal", "list") if entry["description"] == "draw by mistake"]
    return any(entry["status"] != "voided" for entry in draws)


def draw(ws: Workspace) -> str:
    ws.ok("journal", "add", "2025-02-05", "draw by mistake", "3200=7777.00", "1010=-7777.00")
    return ws.head()


def take_back(ws: Workspace) -> None:
    """With plain git, and an answer for that."""
    ws.git("revert", "--no-edit", "HEAD")
    ws.ok("accept", ws.head(), "--reason", "it was a mistake")


def void(ws: Workspace) -> None:
    ws.ok("journal", "void", str(ws.entries()[-1]["entry_id"]), "--reason", "it was a mistake")


@pytest.mark.parametrize("undo", [take_back, void])
def test_a_decision_is_not_dropped_while_its_attestation_stays(
    posted: Workspace, remote: Path, tmp_path: Path, undo: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The draw is taken back, and that is pushed; then somebody pushes the history without it over it, with the lines
    that attest it in a commit of the logs."""
    drawn = draw(posted)
    undo(posted)  # type: ignore[operator]
    posted.in_order()
    posted.git("push", "-q")
    forged = keep_lines(attacker := attack(remote, tmp_path), drawn)
    attacker.git("push", "-q", "--force")
    posted.git("pull", "-q", "--rebase")
    assert posted.head() == forged and any(forged[:10] in each for each in check(posted))
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        assert any(forged[:10] in each for each in check(fresh))


def test_it_would_be_if_the_state_were_not_judged(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = draw(posted)
    void(posted)
    posted.git("push", "-q")
    keep_lines(attacker := attack(remote, tmp_path), drawn)
    attacker.git("push", "-q", "--force")
    monkeypatch.setattr("cleared.changes.audit.provenance._name_foreign_lines", lambda *_: [])
    posted.git("pull", "-q", "--rebase")
    assert check(posted) != []
    monkeypatch.setattr(STATE, lambda *_: [])
    assert check(posted) == [] and has_draw(posted)


def test_what_was_reverted_does_not_come_back_with_its_own_attestation(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as a copy of the commit nor in a merge, though the walk were blind."""
    drawn = draw(posted)
    take_back(posted)
    posted.git("push", "-q")
    attacker = attack(remote, tmp_path)
    attacker.git("cherry-pick", drawn)
    attacker.git("push", "-q")
    posted.git("pull", "-q", "--rebase")
    monkeypatch.setattr("cleared.changes.audit.provenance._explain_commit", lambda *_, **__: [])
    assert has_draw(posted) and any(posted.head()[:10] in each for each in check(posted))
    monkeypatch.setattr(STATE, lambda *_: [])
    assert check(posted) == []


def test_rows_without_attestation_are_named_though_the_walk_were_blind(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attacker = attack(remote, tmp_path)
    forged = put_draws(attacker, FORGED)
    attacker.git("push", "-q")
    posted.git("pull", "-q", "--rebase")
    monkeypatch.setattr("cleared.changes.audit.provenance._explain_commit", lambda *_, **__: [])
    [said] = check(posted)
    assert forged[:10] in said and "books/2024/12/journal.csv gains '2024-12-001a" in said
    posted.ok("accept", forged, "--reason", "it was I")
    assert check(posted) == []


@pytest.fixture
def other(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A second clone of the same user."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    theirs = clone(posted, tmp_path / "other")
    take_ok(theirs, "trust", "--yes")
    return theirs


def test_the_same_done_in_two_clones_is_in_order_once_they_are_joined(posted: Workspace, other: Workspace) -> None:
    """git joins rows that are the same; each clone attests them."""
    for ws, name in ((posted, "mine"), (other, "theirs")):
        ws.ok("period", "close", "2025-01", "--with-pending")
        ws.ok("journal", "add", "2025-02-05", name, "3200=5.00", "1010=-5.00")
    posted.git("fetch", "-q", str(other.root), "HEAD")
    posted.git("merge", "--no-edit", "-X", "ours", "FETCH_HEAD", check=False)
    before = check(posted)
    assert before == [] or all("merged two clones" in each for each in before), before


def test_accepting_a_reverted_commit_and_its_revert_balances(posted: Workspace) -> None:
    forged = put_draws_here(posted)
    posted.git("revert", "--no-edit", "HEAD")
    reverting = posted.head()
    assert {forged[:10], reverting[:10]} == {each.split()[1] for each in check(posted)}
    posted.ok("accept", forged, "--reason", "seen")
    posted.ok("accept", reverting, "--reason", "seen")
    posted.in_order()
    posted.drop("february.csv", chase(("02/03/2025", "AWS EMEA", "-42.10")))
    posted.run("ingest")
    posted.in_order()


def put_draws_here(ws: Workspace) -> str:
    ws.git("branch", "-M", "main")
    return put_draws(ws, "")


def test_a_squash_and_a_rebase_of_what_was_not_pushed_are_in_order(
    posted: Workspace, remote: Path, tmp_path: Path
) -> None:
    ahead = Workspace(tmp_path / "ahead")
    Workspace(tmp_path).git("clone", "-q", str(remote), str(ahead.root))
    ahead.put("notes.txt", "x\n")
    ahead.commit("notes.txt")
    ahead.git("push", "-q")
    draw(posted)
    void(posted)
    posted.git("pull", "-q", "--rebase")
    posted.in_order()
    start = posted.git("rev-parse", "origin/main").strip()
    posted.git("reset", "-q", "--soft", start)
    posted.git("commit", "-q", "-m", "Both at once")
    assert len(check(posted)) == 1  # a squash is a commit by hand
    posted.ok("accept", posted.head(), "--reason", "squashed")
    posted.in_order()


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("wall", [True, False])
def test_a_merge_that_takes_all_of_one_side_drops_no_decision(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool, turned: bool
) -> None:
    """It calls itself the revert of the decision, whose line a commit of the logs has brought."""
    drawn = draw(posted)
    take_back(posted)
    answer = posted.head()
    posted.git("push", "-q")
    attacker = attack(remote, tmp_path)
    kept = keep_lines(attacker, drawn)
    message = f"Merge\n\nThis reverts commit {answer}.\n\n{FORGED}"
    one, other = (drawn, kept) if turned else (kept, drawn)
    made = attacker.git("commit-tree", f"{drawn}^{{tree}}", "-p", one, "-p", other, "-m", message).strip()
    attacker.git("push", "-q", "--force", "origin", f"{made}:main")
    posted.git("pull", "-q", "--rebase")
    assert posted.head() == made and has_draw(posted)
    assert any(kept[:10] in each for each in check(posted))
    monkeypatch.setattr("cleared.changes.audit.provenance._name_foreign_lines", lambda *_: [])
    if not wall:
        monkeypatch.setattr("cleared.changes.audit.provenance.find_merge_changes", lambda *_, **__: [])
    assert any(made[:10] in each for each in check(posted)) is wall


def test_a_key_that_nobody_trusts_excuses_no_row_of_the_queue(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's machine puts a card behind the others, all of it signed by its own key."""
    with clone_afresh(remote, tmp_path, monkeypatch) as stranger:
        take_ok(stranger, "trust", "--yes")
        card = str(stranger.cards()[0]["id"])
        stranger.ok("queue", "skip", card)
        skipped = stranger.head()
        stranger.git("push", "-q")
    posted.git("pull", "-q", "--ff-only")
    assert posted.head() == skipped and any(skipped[:10] in each for each in check(posted))


@pytest.mark.parametrize("accepts", [{"covers": 5}, {"covers": [5]}, {"commit": 5, "covers": []}, 5, {"withdraws": {}}])
def test_no_signed_nonsense_keeps_a_clone_from_its_check(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepts: object
) -> None:
    attacker = attack(remote, tmp_path)
    statement = json.loads(attacker.read(ATTESTED).splitlines()[-1])["says"] | {"by": "x", "accepts": accepts}
    key = run_key(tmp_path / "nowhere", create=True)
    assert key is not None
    attacker.put(ATTESTED, attacker.read(ATTESTED) + render_attestation(statement, key).decode())
    attacker.commit(ATTESTED)
    attacker.git("push", "-q")
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        done = fresh("check")
        assert done.code in (0, 1) and "Traceback" not in done.err + done.out, done


def test_what_vouches_for_the_books_says_that_they_are_not_what_is_attested(
    posted: Workspace, remote: Path, tmp_path: Path
) -> None:
    """status names it, a period is not closed over it, and reconcile and exports say so."""
    attacker = attack(remote, tmp_path)
    put_draws(attacker, FORGED)
    attacker.git("push", "-q")
    posted.git("pull", "-q", "--ff-only")
    doubt = "not just what the runs and decisions that count here made of them"
    status = posted("status", "--check")
    assert status.code == 1 and doubt in status.out, status
    refused = posted("period", "close", "2024-12")
    assert refused.code == 3 and doubt in refused.err and "cleared check" in refused.err, refused
    for command in (["export", "hledger", "out"], ["reconcile", "1010", "--date", "2024-12-31", "--balance", "0"]):
        assert doubt in posted(*command).err, command
    posted.ok("accept", posted.head(), "--reason", "it was a draw")
    assert doubt not in posted("status", "--check").out


def test_a_doubt_that_comes_after_a_card_was_shown_is_shown_before_it_is_approved(posted: Workspace) -> None:
    posted.put("agents/probe.py", '"""\nname: probe\n"""\n1\n')
    number = posted.json("agent", "propose", "probe")["id"]
    put_draws(posted, FORGED)
    refused = posted("agent", "approve", number)
    assert refused.code == 3 and "not just what the runs and decisions" in refused.err, refused
    posted.ok("accept", posted.head(), "--reason", "it was a draw")
    posted.ok("agent", "approve", number)
