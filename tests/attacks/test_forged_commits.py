"""D19: a commit is no run or decision because its message says so. Whoever can write to the repository changes books
under such a message; ``check`` names each, on a machine that has run and in a fresh clone that trusts nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from asking import asks, lines
from harness import JANUARY, Workspace, take_ok
from pushing import ignore_states

from cleared.changes.attestation_lines import render_attestation
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.change_digests import digest_blobs, digest_lines, list_blob_changes
from cleared.git import Repository, Snapshot
from cleared.trust.keys import run_key

Attack = Callable[[Workspace], None]
JOURNAL = "books/2025/01/journal.csv"


def delete_everything(ws: Workspace) -> None:
    ws.git("rm", "-rq", "books/2025", "books/bank", "import/processed/january.csv")


def change_an_account(ws: Workspace) -> None:
    rows = ws.read(JOURNAL).splitlines(keepends=True)
    cells = rows[1].split(",")
    cells[2] = "5010" if cells[2] != "5010" else "5020"
    ws.put(JOURNAL, "".join([rows[0], ",".join(cells), *rows[2:]]))


def confirm(ws: Workspace) -> None:
    ws.put(JOURNAL, ws.read(JOURNAL).replace("pending-review", "user-confirmed"))


def add_an_entry(ws: Workspace) -> None:
    *_, last = (row.split(",") for row in ws.read(JOURNAL).splitlines())
    number = int(last[0][8:11]) + 1
    row = "2025-01-{:03}{},2025-01-31,{},mine,{},{},,,1.00,user-confirmed,,,,\n"
    made = row.format(number, "a", 5010, "9.00", "") + row.format(number, "b", 2100, "", "9.00")
    ws.put(JOURNAL, ws.read(JOURNAL) + made)


def repeat_a_line(ws: Workspace) -> None:
    """With an attestation of another run, once more."""
    add_an_entry(ws)
    path = next((ws.root / "logs").glob("attestations-*"))
    path.write_text(path.read_text() + path.read_text().splitlines(keepends=True)[0])


ATTACKS = (delete_everything, change_an_account, confirm, add_an_entry, repeat_a_line)


def forge(ws: Workspace, attack: Attack, message: str) -> str:
    attack(ws)
    ws.git("add", "-A", "books", "logs", "import")
    ws.git("commit", "-q", "-m", message)
    return ws.head()[:10]


def named(ws: Workspace) -> list[str]:
    found = ws("check", "--json").json["violations"]
    return [f"{v['message']} {v['remedy']}" for v in found if v["check"] == "provenance"]


@pytest.fixture
def audit(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A clone on a machine that knows neither the books nor a key of theirs."""
    posted.git("clone", "-q", ".", str(tmp_path / "audit"))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "nobody"))
    return Workspace(tmp_path / "audit")


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("mark", ["Run", "Decision", "Proposed"])
def test_who_calls_himself_a_run_is_named(audit: Workspace, attack: Attack, mark: str) -> None:
    assert named(audit) == []
    commit = forge(audit, attack, f"x\n\n{mark}: zz")
    (found,) = named(audit)
    assert commit in found and "calls itself a" in found and f"git show {commit}" in found
    assert f"cleared accept {commit} --reason" in found


def test_on_the_machine_that_ran_it_is_too_until_somebody_answers_for_it(posted: Workspace) -> None:
    commit = forge(posted, confirm, "x\n\nDecision: zz")
    assert any(commit in found for found in named(posted))
    forge(posted, lambda ws: ws.put("logs/x.csv", "x\n"), f"x\n\nDecision: yy\nAccepts: {posted.head()}")
    assert any(commit in found for found in named(posted)), "who is no decision answers for nothing"
    posted.ok("accept", commit, "--reason", "it was me")
    assert not any(commit in found for found in named(posted))


def test_doctor_is_not_well_with_an_entry_that_was_pushed(audit: Workspace) -> None:
    """It lacks nothing of what was committed: only the check of the records tells."""
    assert doctor_row(audit, "records")["status"] == "ok"
    commit = forge(audit, add_an_entry, "post: a draw\n\nDecision: zz\nUndo: 2025-01-009")
    row = doctor_row(audit, "records")
    assert row["status"] == "fail" and commit in row["detail"] and "cleared check" in row["remedy"], row
    assert doctor_row(audit, "branch")["status"] == "ok"


def doctor_row(ws: Workspace, name: str) -> dict[str, str]:
    (row,) = (row for row in ws("doctor", "--json").json["checks"] if row["name"] == name)
    return dict(row)


def test_a_merge_that_calls_itself_a_run_is_judged_as_a_merge(posted: Workspace) -> None:
    before = posted.head()
    posted.git("checkout", "-q", "-b", "side")
    posted.drop("february.csv", JANUARY.replace("01/", "02/"))
    posted.run("ingest")
    posted.git("checkout", "-q", "-")
    assert posted.head() == before
    posted.git("merge", "-q", "--no-ff", "-s", "ours", "-m", "x\n\nRun: zz", "side")
    assert any("merged two clones, and lost" in found for found in named(posted))


def test_a_branch_from_before_there_were_attestations_is_judged(posted: Workspace) -> None:
    first = posted.git("rev-list", "--max-parents=0", "HEAD").strip()
    posted.git("checkout", "-q", "-b", "side", first)
    posted.put("books/2024/12/journal.csv", "entry_id\n")
    commit = forge(posted, lambda ws: None, "x\n\nRun: zz")
    posted.git("checkout", "-q", "-")
    posted.git("merge", "-q", "--no-edit", "side")
    assert any(commit in found for found in named(posted))


def sign_with_another_key(ws: Workspace, home: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack) -> str:
    """Mallory runs the program, puts what they like in the commit of their run, and signs that."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("CLEARED_HOME", str(home))
        take_ok(ws, "trust")
        ws.ok("event", "emit", "something")
        attack(ws)
        attest_working_files(ws)
    ws.git("add", "-A", "books", "import", "logs")
    ws.git("commit", "-q", "--amend", "--no-edit")
    return ws.head()[:10]


def attest_working_files(ws: Workspace, *, names_changes: bool = True) -> None:
    """Have the newest attestation say what lies in the working tree, and sign it again with the key of this home.
    Without ``names_changes`` it says nothing of what it changes."""
    ws.git("add", "-A", "books", "import", "logs")
    paths = ws.git("diff", "--cached", "--name-only", "HEAD~1").splitlines()
    contents = {path: full.read_bytes() if (full := ws.root / path).exists() else None for path in paths}
    shard = max((ws.root / "logs").glob("attestations-*"))
    *lines, last = shard.read_text().splitlines(keepends=True)
    says = json.loads(last)["says"]
    key = run_key(ws.root)
    assert key is not None
    with Repository.open(ws.root, for_writing=False) as repo:
        before = Snapshot(repo, ws.git("rev-parse", "HEAD~1").strip())
        blobs = list_blob_changes(before, contents)
        says["changes"] = {"blobs": digest_blobs(blobs), "lines": digest_lines(before, contents, blobs)}
    if not names_changes:
        del says["changes"]
    shard.write_text("".join([*lines, render_attestation(says, key).decode()]))


def test_another_key_counts_not_where_keys_are_trusted(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = sign_with_another_key(posted, tmp_path / "mallory", monkeypatch, add_an_entry)
    assert any(commit in found and "no machine that is trusted here" in found for found in named(posted))


@pytest.mark.parametrize("attack", [delete_everything, change_an_account])
def test_where_nobody_is_trusted_another_key_alters_nothing(
    audit: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    commit = sign_with_another_key(audit, tmp_path / "mallory", monkeypatch, attack)
    assert any(commit in found and "removed or changed what was committed" in found for found in named(audit))


@pytest.mark.parametrize("attack", ATTACKS)
def test_it_goes_unseen_if_messages_are_believed(
    audit: Workspace, monkeypatch: pytest.MonkeyPatch, attack: Attack
) -> None:
    monkeypatch.setattr(CommitOrigins, "find_origin", lambda self, commit: "ours")
    ignore_states(monkeypatch)
    forge(audit, attack, "x\n\nRun: zz")
    assert named(audit) == []


def test_a_question_that_two_clones_have_dealt_with_is_named(ws: Workspace) -> None:
    """What git makes of an answer in each of two clones: both sides' lines."""
    card, queue = asks(ws)["id"], "queue/2025-02.jsonl"
    ws.ok("queue", "answer", card, "yes")
    assert named(ws) == []
    mine = [event for event in lines(ws) if event["id"] == card and event["event"] in ("resolve", "went_on")]
    other = {"resolve": {"resolution": "no"}, "went_on": {"run": "20250210T060000Z-bbbbbb"}}
    theirs = [json.dumps(event | other[event["event"]]) + "\n" for event in mine]
    ws.put(queue, ws.read(queue) + "".join(theirs))
    ws.commit(queue, message="joined")
    (found,) = [f for f in named(ws) if f"the card {card} " in f]
    assert "settled twice, with different answers ('yes', 'no')" in found and "gone on with by 2 runs" in found
    assert "2025-02-001" in found and "cleared revert RUN --reason" in found


def test_a_question_that_was_rejected_and_gone_on_with_is_named(ws: Workspace) -> None:
    card, queue = asks(ws)["id"], "queue/2025-02.jsonl"
    ws.ok("queue", "answer", card, "yes")
    found = lines(ws)
    for event in found:
        if event["event"] == "resolve":
            event["resolution"] = "rejected: no"
    ws.put(queue, "".join(json.dumps(event) + "\n" for event in found))
    ws.commit(queue, message="joined")
    assert any("was rejected, and gone on with by the run" in f for f in named(ws))


def test_a_copy_of_a_genuine_commit_with_more_in_it_is_named(posted: Workspace) -> None:
    """Beside the original, so that no history is rewritten; nobody needs a key for it."""
    genuine = posted.head()
    posted.git("checkout", "-q", "-b", "side", f"{genuine}~1")
    posted.git("cherry-pick", "--no-commit", genuine)
    add_an_entry(posted)
    posted.git("add", "-A")
    posted.git("commit", "-q", "-C", genuine)
    copy = posted.head()[:10]
    posted.git("checkout", "-q", "-")
    posted.git("merge", "-q", "--no-edit", "-X", "theirs", "side")
    assert any(copy in found and "no machine attests it" in found for found in named(posted))
    assert not any(genuine[:10] in found for found in named(posted)), "the commit that was meant still counts"


def test_an_attestation_that_was_taken_out_and_added_again_is_named(posted: Workspace) -> None:
    path, genuine = next(p for p in posted.git("ls-files", "logs").splitlines() if "attestations" in p), posted.head()
    text = posted.read(path)
    posted.put(path, "".join(text.splitlines(keepends=True)[:-1]))
    posted.commit(path, message="docs: tidy")
    posted.put(path, text)
    add_an_entry(posted)
    posted.git("add", "-A")
    posted.git("commit", "-q", "-C", genuine)
    assert any(posted.head()[:10] in found for found in named(posted))


def test_a_run_that_was_amended_is_named(posted: Workspace) -> None:
    assert named(posted) == []
    add_an_entry(posted)
    posted.git("commit", "-qa", "--amend", "--no-edit")
    assert any(posted.head()[:10] in found for found in named(posted))


def test_a_decision_that_was_rebased_counts(posted: Workspace) -> None:
    """Its files are others than it was attested with, and its lines the same."""
    first, second = (card["entry_id"] for card in posted.cards())
    start = posted.head()
    posted.git("checkout", "-q", "-b", "side")
    posted.ok("queue", "approve", second)
    posted.git("checkout", "-q", "-")
    posted.ok("queue", "approve", first)
    assert posted.head() != start
    posted.git("-c", "merge.conflictStyle=merge", "rebase", "-q", "HEAD", "side")
    assert named(posted) == []


def test_an_attestation_that_does_not_say_what_changes_counts_for_nothing(posted: Workspace) -> None:
    attest_working_files(posted, names_changes=False)
    posted.git("commit", "-qa", "--amend", "--no-edit")
    assert any(posted.head()[:10] in found for found in named(posted))
