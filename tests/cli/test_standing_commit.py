"""Once its commit stands a command has done what it was asked for: whatever ends it then, it says so (fault 4)."""

from __future__ import annotations

import signal

import pytest
from harness import Workspace, no_traceback
from stepped import run_stepped

ADD = ("journal", "add", "2025-01-31", "Depreciation", "5220=12.00", "1590=-12.00")
BEFORE, AFTER = ("checked", "verified", "index"), ("ref", "file", "unlocked", "done")


def entries(ws: Workspace) -> list[str]:
    return [entry["description"] for entry in ws.entries()]


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_ctrl_c_says_whether_the_commit_stands(ws: Workspace, step: str) -> None:
    done = run_stepped([*ADD, "-C", str(ws.root)], step, number=signal.SIGINT)
    said = done.stderr.decode()
    assert done.returncode == 130 and "Traceback" not in said
    assert said.startswith("cleared: interrupted")
    if step in BEFORE:
        assert entries(ws) == [] and said == "cleared: interrupted\n"
    else:
        assert entries(ws) == ["Depreciation"]
        assert ws.head()[:10] in said and "nothing was changed" not in said and "again" not in said
        ws.in_order()
    again = ws(*ADD)  # whoever was told says it again because it is meant
    assert again.code == 0 and len(entries(ws)) == 1 + (step in AFTER)


def test_ctrl_c_in_json_names_the_commits(ws: Workspace) -> None:
    done = run_stepped([*ADD, "--json", "-C", str(ws.root)], "ref", number=signal.SIGINT)
    assert done.returncode == 130
    assert f'"commits": ["{ws.head()}"]'.encode() in done.stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_output_that_cannot_be_written(ws: Workspace, options: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = run_stepped([*ADD, *options, "-C", str(ws.root)], stdout=full)
    said = done.stderr.decode()
    assert done.returncode == 4 and "Traceback" not in said
    assert ws.head()[:10] in said and "run the command again" not in said
    assert entries(ws) == ["Depreciation"]


def test_messages_that_nobody_reads_stop_nothing(ws: Workspace) -> None:
    ws.agent("probe", 'ctx_log("at work")\n7')
    with open("/dev/full", "wb") as full:
        done = run_stepped(["agent", "run", "probe", "-C", str(ws.root)], stderr=full)
    assert (done.returncode, done.stdout) == (0, b"7\n")


def test_a_command_that_only_reads_says_what_is_wrong(ws: Workspace) -> None:
    with open("/dev/full", "wb") as full:
        done = run_stepped(["journal", "balance", "-C", str(ws.root)], stdout=full)
    assert done.returncode == 4 and b"the disk is full" in done.stderr and b"commit" not in done.stderr


# -- the same command once more --------------------------------------------------------------------------------------


def test_a_killed_command_that_is_said_again_is_done_once(ws: Workspace) -> None:
    done = run_stepped([*ADD, "-C", str(ws.root)], "done")
    assert done.returncode == -signal.SIGKILL
    again = ws(*ADD)
    assert again.code == 0 and ws.head()[:10] in again.err and "Nothing was done now" in again.err
    assert entries(ws) == ["Depreciation"]
    assert ws(*ADD).code == 0 and len(entries(ws)) == 2, "now it is meant"


@pytest.mark.parametrize("what", ["another command", "a decision since", "long ago"])
def test_when_the_same_command_is_meant_anew(ws: Workspace, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    assert run_stepped([*ADD, "-C", str(ws.root)], "done").returncode == -signal.SIGKILL
    argv = ADD
    if what == "another command":
        argv = ("journal", "add", "2025-01-31", "Another", *ADD[4:])
    elif what == "a decision since":
        ws.ok("accounts", "rename", "5220", "Wear")
    else:
        monkeypatch.setenv("CLEARED_CLOCK", "2025-02-11T06:00:00Z")
    assert ws(*argv).code == 0 and len(entries(ws)) == 2


def test_a_run_since_does_not_make_it_another(posted: Workspace) -> None:
    assert run_stepped([*ADD, "-C", str(posted.root)], "done").returncode == -signal.SIGKILL
    posted.drop("february.csv", posted.read("import/processed/january.csv").replace("01/", "02/"))
    posted.run("ingest")
    assert "Nothing was done now" in posted(*ADD).err


# -- a key ----------------------------------------------------------------------------------------------------------


def test_a_key_makes_a_repeat_harmless(ws: Workspace) -> None:
    first = ws.json(*ADD, "--key", "dep-2025-01")
    again = ws.json(*ADD, "--key", "dep-2025-01")
    assert first["is_new"] is True and again == {**first, "is_new": False}
    assert "is there already" in ws.ok(*ADD, "--key", "dep-2025-01").out
    assert entries(ws) == ["Depreciation"]
    assert ws.ok(*ADD, "--key", "dep-2025-01-b").out and len(entries(ws)) == 2
    ws.in_order()


def test_a_key_with_another_entry_is_refused(ws: Workspace) -> None:
    ws.ok(*ADD, "--key", "k")
    head = ws.head()
    others = [
        ("journal", "add", "2025-01-30", *ADD[3:]),
        ("journal", "add", "2025-01-31", "Something", *ADD[4:]),
        (*ADD[:4], "5220=13.00", "1590=-13.00"),
        (*ADD, "--note", "why"),
        (*ADD, "--tag", "x"),
        (*ADD, "--counterparty", "Bank"),
    ]
    for argv in others:
        done = ws(*argv, "--key", "k")
        assert done.code == 3 and "the entry with the key k is 2025-01-001, and differs in its " in done.err, done
        no_traceback(done)
    assert ws.head() == head
    assert ws("journal", "add", "2025-01-31", "x", "5220=1", "1590=-1", "--key", "a key").code == 2


def test_a_key_whose_entry_was_taken_back_is_refused(ws: Workspace) -> None:
    ws.ok(*ADD, "--key", "k")
    ws.ok("queue", "undo")
    done = ws(*ADD, "--key", "k")
    assert done.code == 3 and "was taken back" in done.err


def test_a_key_holds_after_the_payee_was_changed(ws: Workspace) -> None:
    ws.ok(*ADD, "--key", "k")
    ws.ok("queue", "correct", "2025-01-001", "--counterparty", "Somebody")
    assert ws.json(*ADD, "--key", "k")["is_new"] is False
    (ws.root / ".cleared/consumed.db").unlink()
    assert ws.json(*ADD, "--key", "k")["is_new"] is False


@pytest.mark.parametrize("step", [*BEFORE, *AFTER])
def test_a_key_after_a_kill(ws: Workspace, step: str) -> None:
    run_stepped([*ADD, "--key", "k", "-C", str(ws.root)], step)
    assert ws.json(*ADD, "--key", "k")["is_new"] is (step in BEFORE)
    assert entries(ws) == ["Depreciation"]


def test_a_note_that_is_damaged_is_none(ws: Workspace) -> None:
    run_stepped([*ADD, "-C", str(ws.root)], "done")
    [note] = (ws.root / ".cleared/unreported").iterdir()
    for text in (
        "{",
        "[]",
        '{"commit": 1}',
        '{"commit": "y", "at": "2025-02-10T06:00:00+00:00"}',
        '{"commit": "y", "at": 1}',
    ):
        note.write_text(text)
        ws.ok(*ADD)
    assert len(entries(ws)) == 6 and not note.exists()
