"""Tests of scripts: what was right once, or put right, stays so. D9, N7."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import JANUARY, Workspace, chase, no_traceback, refused, take_ok, unchanged

from cleared.base.errors import PolicyError
from cleared.gate import dry_run
from cleared.gate import regression_tests as store
from cleared.gate.dry_run import is_input_name

INGEST = "agents/ingest.py"


@pytest.fixture
def run(posted: Workspace) -> str:
    """The id of the run that posted January."""
    return str(posted.json("run", "list")[0]["run_id"])


def edit(ws: Workspace, old: str, new: str) -> None:
    text = ws.read(INGEST)
    assert old in text
    ws.put(INGEST, text.replace(old, new))


def add(ws: Workspace, run: str, *options: str) -> dict[str, Any]:
    return dict(ws.json("test", "add", run, *options))


def propose(ws: Workspace, *targets: str, code: int = 0) -> dict[str, Any]:
    done = ws("agent", "propose", *targets, "--json")
    assert done.code == code, done
    return dict(done.json)


def go_live(ws: Workspace, *targets: str) -> None:
    take_ok(ws, "agent", "approve", propose(ws, *targets)["id"])


def findings(report: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    return [f for f in report["findings"] if f["rule"] == rule]


def rewrite(ws: Workspace, path: str, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(ws.read(path))
    change(data)
    ws.put(path, json.dumps(data))


def listed(ws: Workspace) -> dict[str, str]:
    return {c["path"]: c["state"] for c in ws.json("test", "list")}


# -- adding -----------------------------------------------------------------------------------------------------------


def test_d9_a_run_becomes_a_case_by_one_command(posted: Workspace, run: str) -> None:
    """D9: by the run's whole id or the end of it; one signed commit; the case says why."""
    ws = posted
    head = ws.head()
    found = add(ws, run.rsplit("-", 1)[-1], "-m", "January is right")
    assert found["path"].startswith("tests/cases/ingest-") and found["agent"] == "ingest"
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "1" and found["commit"] == ws.head()
    (case,) = ws.json("test", "list")
    assert (case["run"], case["why"], case["state"]) == (run, "January is right", "approved")
    assert "January is right" in ws.ok("test", "list").out
    assert set(json.loads(ws.read(found["path"]))["inputs"]) == {"january.csv"}
    with unchanged(ws):
        refused(ws("test", "add", run), 3, "already")
        refused(ws("test", "add", run, "-m", "other words"), 3, "already")
    ws.in_order()


def test_d9_what_cannot_become_a_case_is_refused(posted: Workspace, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """D9: unknown runs, decisions, dry runs, and a job that would add one."""
    ws = posted
    dry = ws.run("ingest", "--dry-run")["run_id"]
    with unchanged(ws):
        for text in ("nothing", "", "\n", dry, "*", run + "x"):
            refused(ws("test", "add", text), 2, "no committed run")
        refused(ws("test", "add", run, "--correct", "2025-01-001"), 2, "ENTRY=ACCOUNT")
        refused(ws("test", "add", run, "--correct", "2025-01-999=5030"), 2, "2025-01-999")
        refused(ws("test", "add", run, "--correct", "2025-01-001=9999"), 2, "9999")
        monkeypatch.setenv("CLEARED_JOB", "7")
        refused(ws("test", "add", run), 3, "not for a job")


def test_d9_a_run_whose_input_is_not_in_the_repository_cannot_be_replayed(ws: Workspace) -> None:
    """D9: with import.keep: local."""
    ws.config("import.keep=local")
    ws.drop("january.csv")
    run = ws.run("ingest")["run_id"]
    with unchanged(ws):
        refused(ws("test", "add", run), 2, "not in the repository")


# -- holding ----------------------------------------------------------------------------------------------------------


def test_d9_a_proposal_that_breaks_a_case_is_blocked_with_what_differs(posted: Workspace, run: str) -> None:
    """D9: exit 1, nothing proposed, the difference entry by entry; another change goes."""
    ws = posted
    case = add(ws, run, "-m", "AWS is sure")
    edit(ws, 'config_get("thresholds.auto_confirm")', "0.97")
    with unchanged(ws):
        report = propose(ws, "ingest", code=1)
    (found,) = findings(report, "regression")
    assert found["file"] == case["path"] and "AWS is sure" in found["message"]
    assert "auto-confirmed" in found["message"] and "pending-review" in found["message"]
    assert "AWS EMEA" in found["message"] and "GITHUB" not in found["message"]
    assert "new card: " in found["message"] and "(entry to confirm)" in found["message"], "in words, not as JSON"
    assert "[" not in found["message"]
    assert "cleared agent propose ingest tests/cases/" in found["remedy"]
    assert ws("agent", "check", "ingest").code == 1
    ws.git("checkout", "-q", INGEST)
    ws.put(INGEST, ws.read(INGEST) + "# a remark\n")
    go_live(ws, "ingest")


def test_d9_changing_the_case_along_with_the_script_goes_and_is_told(posted: Workspace, run: str) -> None:
    """D9: the card says that the case changes; afterwards the new one holds."""
    ws = posted
    case = add(ws, run)

    def unsure(data: dict[str, Any]) -> None:
        for entry in data["expected"]["entries"]:
            if "AWS" in entry["description"]:
                entry.update(status="pending-review")
        data["expected"].pop("cards")
        data["expected"].pop("lines", None)

    edit(ws, 'config_get("thresholds.auto_confirm")', "0.97")
    rewrite(ws, case["path"], unsure)
    proposal = propose(ws, "ingest", case["path"])
    said, name = proposal["card"], Path(case["path"]).stem
    assert f"The test {name} is changed: it expects something else." in said
    at = said.index(f"The test {name} expected:")
    assert "AWS EMEA 45.10: without asking you" in said[at + 1], said
    assert any(line.startswith("  | card: ") and "COFFEE" in line for line in said[at:]), "asked about no more"
    assert "AWS EMEA 45.10: asks you" in said[said.index(f"The test {name} expects from then on:") + 1], said
    take_ok(ws, "agent", "approve", proposal["id"])
    assert listed(ws) == {case["path"]: "approved"}
    edit(ws, "0.97", "0.95")
    assert findings(propose(ws, "ingest", code=1), "regression")


def test_d9_a_case_is_removed_or_edited_only_by_a_proposal_that_says_so(posted: Workspace, run: str) -> None:
    """D9: the suite never shrinks without its own card."""
    ws = posted
    case = add(ws, run)
    rewrite(ws, case["path"], lambda data: data.update(why="because"))
    proposal = propose(ws, case["path"])
    assert f"The test {Path(case['path']).stem} is changed: it says something else of itself." in proposal["card"]
    assert listed(ws)[case["path"]] == "approved", "the working copy is not the commit"
    take_ok(ws, "agent", "approve", proposal["id"])
    assert ws.json("test", "list")[0]["why"] == "because"
    (ws.root / case["path"]).unlink()
    proposal = propose(ws, case["path"])
    said = " ".join([proposal["title"], *proposal["card"]]).lower()
    assert "remove" in said and f"the test {Path(case['path']).stem} expected:   | " in said
    assert listed(ws) == {case["path"]: "approved"}
    take_ok(ws, "agent", "approve", proposal["id"])
    assert listed(ws) == {}
    edit(ws, 'config_get("thresholds.auto_confirm")', "0.97")
    go_live(ws, "ingest")


@pytest.mark.parametrize("how", ["removed", "edited"])
def test_d9_a_case_changed_by_a_commit_of_hand_blocks_until_it_is_restored(
    posted: Workspace, run: str, how: str
) -> None:
    """D9: whatever is proposed meanwhile; the list says which it is."""
    ws = posted
    case = add(ws, run)
    before = ws.head()
    if how == "removed":
        ws.git("rm", "-q", case["path"])
        ws.git("commit", "-qm", "by hand")
    else:
        rewrite(ws, case["path"], lambda data: data["expected"].update(entries=[]))
        ws.commit(case["path"])
    assert listed(ws) == {case["path"]: "gone" if how == "removed" else "changed by hand"}
    ws.put("agents/other.py", '"""\nname: Other\ntrigger: on_demand\n"""\n1\n')
    (found,) = findings(propose(ws, "other", code=1), "regression-changed")
    assert found["file"] == case["path"]
    assert "restore" in found["remedy"].lower()
    ws.git("checkout", "-q", before, "--", case["path"])
    ws.git("commit", "-qm", "restored")
    go_live(ws, "other")


def test_d9_the_approval_of_a_test_cannot_be_forged_or_dropped(posted: Workspace, run: str) -> None:
    """D9: neither by another text, nor together with the test, nor in a merge, nor by an approval of something else."""
    ws = posted
    case = add(ws, run)
    where = f"agents/approvals/{case['path']}"
    text, good = ws.read(where), ws.head()
    for data in (
        text.replace(case["path"], "tests/cases/x.json"),
        text.replace("sha256:", "sha256:0"),
        "{}",
        "",
        "[" * 100_000,
    ):
        ws.put(where, data)
        ws.commit(where)
        ws.put(INGEST, ws.read(INGEST) + "# a remark\n")
        assert findings(propose(ws, "ingest", code=1), "regression-unknown")
        with unchanged(ws):
            refused(ws("test", "add", run), 3, "cannot be verified")
    ws.git("rm", "-q", where, case["path"])
    ws.git("commit", "-qm", "by hand")
    (found,) = findings(propose(ws, "ingest", code=1), "regression-unknown")
    assert found["message"] == "the approval of a test was removed" and found["file"] == where
    words = found["remedy"].removeprefix("Bring both back: ").partition("; then")[0]
    ws.git(*words.split()[1:])
    assert ws.git("diff", good, "--", where, case["path"]) == "", "the remedy brings back what it says"
    ws.git("commit", "-qm", "restored")
    go_live(ws, "ingest")


def test_d9_a_merge_that_drops_a_test_with_its_approval_is_noticed(posted: Workspace, run: str) -> None:
    """D9: git's own log passes over such a merge."""
    ws = posted
    ws.git("branch", "side")
    add(ws, run)
    tip = ws.head()
    ws.git("checkout", "-q", "side")
    ws.git("commit", "-q", "--allow-empty", "-m", "beside")
    ws.git("merge", "-q", "-s", "ours", "-m", "merge", tip)
    ws.put(INGEST, ws.read(INGEST) + "# a remark\n")
    assert findings(propose(ws, "ingest", code=1), "regression-unknown")


def test_d9_an_approval_that_counts_nowhere_may_be_removed(posted: Workspace) -> None:
    """D9: whoever can push could else have the gate refuse everything for ever."""
    ws = posted
    ws.put("agents/approvals/tests/cases/x.json", "{}")
    ws.commit("agents/approvals/tests/cases/x.json")
    ws.git("rm", "-q", "agents/approvals/tests/cases/x.json")
    ws.git("commit", "-qm", "by hand")
    ws.put(INGEST, ws.read(INGEST) + "# a remark\n")
    go_live(ws, "ingest")


# -- corrections ------------------------------------------------------------------------------------------------------


def test_n7_a_correction_becomes_a_case_that_holds_once_it_is_met(posted: Workspace, run: str) -> None:
    """N7: until the approved version does as corrected it is told and blocks nothing; then breaking it is blocked."""
    ws = posted
    coffee = next(e["entry_id"] for e in ws.entries() if e["description"] == "COFFEE")
    case = add(ws, run, "--correct", f"{coffee}=5020", "-m", "coffee is hosting here")
    assert case["path"].endswith("-corrected.json")
    original = ws.read(INGEST)
    ws.put(INGEST, original + "# a remark\n")
    told = propose(ws, "ingest")
    assert any("As without the change, 1 test of corrections fails." in line for line in told["card"])
    take_ok(ws, "agent", "approve", told["id"])

    ws.put(INGEST, original.replace("5030", "5020"))
    assert ws.read(INGEST) != original
    met = propose(ws, "ingest")
    assert not any("coffee is hosting here" in line for line in met["card"])
    take_ok(ws, "agent", "approve", met["id"])

    ws.put(INGEST, original + "# another remark\n")
    with unchanged(ws):
        (found,) = findings(propose(ws, "ingest", code=1), "regression")
    assert "coffee is hosting here" in found["message"] and "COFFEE" in found["message"]
    assert "5020" in found["message"] and "5030" in found["message"]


def test_n7_a_corrected_test_that_is_turned_round_is_told_by_accounts(posted: Workspace, run: str) -> None:
    """N7: what it held the entry to, and what from then on; and that it runs over other books."""
    ws = posted
    coffee = next(e["entry_id"] for e in ws.entries() if e["description"] == "COFFEE")
    case = add(ws, run, "--correct", f"{coffee}=5020")

    def turn(data: dict[str, Any]) -> None:
        (legs,) = data["expected"]["legs"].values()
        next(leg for leg in legs if leg[0] == 5020)[0] = 5030
        data["books"] = {**data["books"], "books/x.csv": ""}

    rewrite(ws, case["path"], turn)
    said, name = propose(ws, case["path"])["card"], case["name"]
    assert f"The test {name} is changed: it expects something else and is replayed with other books." in said, said
    at = said.index(f"The test {name} expects from then on:")
    before, after = (" ".join(lines) for lines in (said[said.index(f"The test {name} expected:") : at], said[at:]))
    assert "5020 " in before and "5020 " not in after and "5030 Uncategorised expense" in after, said


def test_n7_a_second_correction_of_a_run_leaves_the_first_as_it_is(posted: Workspace, run: str) -> None:
    """N7: adding never edits; the same twice is once."""
    ws = posted
    one, two = [e["entry_id"] for e in ws.entries()][-2:]
    first = add(ws, run, "--correct", f"{two}=5020")
    text = ws.read(first["path"])
    second = add(ws, run, "--correct", f"{two}=4010")
    assert second["path"] != first["path"] and ws.read(first["path"]) == text
    both = add(ws, run, "--correct", f"{one}=5020", "--correct", f"{two}=5020")
    assert len({first["path"], second["path"], both["path"], add(ws, run)["path"]}) == 4
    with unchanged(ws):
        refused(ws("test", "add", run, "--correct", f"{two}=4010"), 3, "already", second["name"])
    assert set(listed(ws).values()) == {"approved"}


def test_n7_a_correction_is_kept_though_settings_changed_what_the_run_would_do_with_others(ws: Workspace) -> None:
    """N7: with a second bank account a transfer is sure; the coffee of the same run is as it was."""
    ws.drop(
        "june.csv",
        chase(("06/02/2025", "PAYMENT TO CHASE CARD ENDING 7788", "-80.00"), ("06/03/2025", "COFFEE", "-4.50")),
    )
    run = ws.run("ingest")["run_id"]
    coffee = next(e["entry_id"] for e in ws.entries() if e["description"] == "COFFEE")
    card = ws.root.parent / "card.csv"
    card.write_text(
        "Transaction Date,Post Date,Description,Category,Type,Amount,Memo\n06/01/2025,06/02/2025,ADOBE,,Sale,-9.99,\n"
    )
    ws.ok("bank", "add", str(card), "--type", "credit_card", "--ledger-account", "2010", "--yes", "--no-run")
    with unchanged(ws):
        refused(ws("test", "add", run), 3, "does not do the same when it is replayed", "Settings have changed since")
    done = ws.ok("queue", "correct", coffee, "--account", "5070")
    assert "Not remembered" not in done.err
    (case,) = ws.json("test", "list")
    assert case["path"].endswith("-corrected.json")


def test_n7_a_correction_signs_nothing_that_somebody_wrote_into_its_test(posted: Workspace) -> None:
    """N7: corrections of a run and month share a test; one that was changed by hand is not signed along."""
    ws = posted
    coffee, hosting = (
        next(e["entry_id"] for e in ws.entries() if e["description"] == text) for text in ("COFFEE", "AWS EMEA")
    )
    ws.ok("queue", "correct", coffee, "--account", "5070")
    (path,) = listed(ws)
    rewrite(ws, path, lambda data: data["expected"]["legs"].update(planted=[[3200, "7777.00", "0.00"]]))
    ws.commit(path)
    done = ws.ok("queue", "correct", hosting, "--account", "5070")
    assert "Not remembered as a test" in done.out + done.err and path in done.out + done.err
    assert listed(ws) == {path: "changed by hand"}


def test_n7_only_an_entry_of_that_run_can_be_corrected_by_it(posted: Workspace, run: str) -> None:
    """N7: a case about another run's line could never be met."""
    ws = posted
    ws.drop("february.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00")))
    later = ws.run("ingest")
    with unchanged(ws):
        refused(ws("test", "add", later["run_id"], "--correct", "2025-01-001=5030"), 2, "did not post")


# -- hostile files ----------------------------------------------------------------------------------------------------

VALID = {
    "version": 1,
    "agent": "ingest",
    "why": "w",
    "run": "",
    "now": "2025-02-10T06:00:00Z",
    "inputs": {},
    "books": {},
    "expected": {"entries": [], "cards": [], "events": [], "lines": {}, "files": []},
}


def case_with(**fields: Any) -> bytes:
    return json.dumps({**VALID, **fields}).encode()


HOSTILE = {
    "not JSON": b"{",
    "empty": b"",
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "not UTF-8": b"\xff\xfe",
    "deep": b"[" * 200_000,
    "huge number": case_with().replace(b'"version": 1', b'"version": ' + b"9" * 9_999),
    "another version": case_with(version=2),
    "no version": b"{}",
    "agent": case_with(agent=7),
    "why": case_with(why=[]),
    "now": case_with(now="yesterday"),
    "now without zone": case_with(now="2025-02-10T06:00:00"),
    "now far": case_with(now="0001-01-01T00:00:00+14:00"),
    "now a number": case_with(now=1),
    "inputs a list": case_with(inputs=[1]),
    "input a number": case_with(inputs={"a": 1}),
    "bad base64": case_with(inputs={"a": {"base64": "%%%"}}),
    "no base64": case_with(inputs={"a": {}}),
    "books": case_with(books={"a": None}),
    "expected": case_with(expected=[1]),
    "expected text": case_with(expected="x"),
    "entries": case_with(expected={"entries": [7]}),
    "entries a number": case_with(expected={"entries": 7}),
    "no entries": case_with(expected={}),
    "legs": case_with(expected={"legs": [1]}),
    "legs short": case_with(expected={"legs": {"a": [[1]]}}),
    "legs text": case_with(expected={"legs": {"a": "abc"}}),
    "surrogate": case_with(inputs={"a": "\ud800"}),
    "upwards": case_with(inputs={"../../escaped.csv": "x"}),
    "up and down": case_with(inputs={"a/../../escaped.csv": "x"}),
    "absolute": case_with(inputs={"/tmp/cleared-escaped.csv": "x"}),
    "dot": case_with(inputs={".": "x"}),
    "no name": case_with(inputs={"": "x"}),
    "slash": case_with(inputs={"a//b": "x"}),
    "nul": case_with(inputs={"a\0b": "x"}),
    "long name": case_with(inputs={"a" * 300: "x"}),
    "file and folder": case_with(inputs={"a": "x", "a/b": "y"}),
    "surrogate name": case_with(inputs={"\ud800": "x"}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_no_case_is_said_to_be_none(name: str) -> None:
    with pytest.raises(ValueError):
        store.parse_test(HOSTILE[name], "tests/cases/x.json")
    store.parse_test(case_with(), "tests/cases/x.json")


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "a/../../x", "", ".", "a\0b", "a" * 300])
def test_a_rehearsal_writes_only_into_its_own_folder(name: str) -> None:
    """Whoever names the files: what reads them is checked, and so is what writes them."""
    assert not is_input_name(name)
    with pytest.raises(PolicyError), dry_run.make_drop_folder({name: b"x"}):
        pass


def test_no_case_is_larger_than_a_proposal_may_be() -> None:
    with pytest.raises(ValueError, match="larger"):
        store.parse_test(case_with(why="x" * (33 << 20)), "tests/cases/x.json")


def test_hostile_cases_are_findings_and_write_nothing_anywhere(
    ws: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Committed by hand: a finding with the file's name; no crash, and no file outside."""
    scratch = tmp_path / "scratch/deep"
    scratch.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    for number, data in enumerate(HOSTILE.values()):
        ws.put(f"tests/cases/h{number}.json", data)
    ws.commit("tests/cases")
    ws.put(INGEST, ws.read(INGEST) + "# a remark\n")
    found = findings(propose(ws, "ingest", code=1), "regression-format")
    assert {f["file"] for f in found} == {f"tests/cases/h{n}.json" for n in range(len(HOSTILE))}
    assert ws("test", "list").code == 0
    assert not list(scratch.rglob("*")) and not Path("/tmp/cleared-escaped.csv").exists()
    assert not list(tmp_path.rglob("escaped*"))


STRANGE = {
    "entries of other fields": {"entries": [{"date": "x", "description": "x", "status": "x", "amount": "x"}]},
    "lines that are none": {
        "entries": [{"date": "x", "description": "x", "status": "x", "amount": "x", "reference": None, "lines": 7}]
    },
    "cards": {"entries": [], "cards": 7},
    "legs of nothing": {"legs": {"no such line": [[5020, "1", "0"]]}},
}


@pytest.mark.parametrize("name", STRANGE)
def test_an_expectation_that_nothing_can_meet_is_told_and_no_crash(ws: Workspace, name: str) -> None:
    """Proposed as a new case it must be met; nobody's program wrote it."""
    garbage = base64.b64encode(bytes(range(256))).decode()
    ws.put("tests/cases/x.json", case_with(expected=STRANGE[name], inputs={"x.csv": {"base64": garbage}}))
    with unchanged(ws):
        done = ws("agent", "propose", "tests/cases/x.json", "--json")
        assert done.code == 1, done
        no_traceback(done)
    (found,) = findings(done.json, "regression")
    assert found["file"] == "tests/cases/x.json"


def test_a_case_of_an_agent_that_is_not_there_is_no_obstacle(ws: Workspace) -> None:
    for number, agent in enumerate(("nobody", "../evil", "", "a" * 500)):
        ws.put(f"tests/cases/n{number}.json", case_with(agent=agent))
    ws.commit("tests/cases")
    ws.put(INGEST, ws.read(INGEST) + "# a remark\n")
    go_live(ws, "ingest")


CHART = "accounts/chart-of-accounts.csv"
BOOKS = {
    "chart garbage": {CHART: "\0\0,,\n"},
    "chart of bytes": {CHART: {"base64": base64.b64encode(b"\xff\xfe\x00").decode()}},
    "journal garbage": {"books/2025/01/journal.csv": "a,b\n1,2,3\n"},
    "bank facts garbage": {"books/bank/imports.csv": "x\n" * 9},
    "queue garbage": {"queue/2025-02.jsonl": "{"},
    "paths upwards": {"../../x": "y", "/etc/passwd": "root"},
    "a folder's name": {"books": "x", "accounts": "y"},
}


@pytest.mark.parametrize("name", BOOKS)
def test_hostile_books_of_a_case_are_told_and_no_crash(ws: Workspace, name: str) -> None:
    """The books a case brings are read by the very code that reads real ones: its refusal is the case's."""
    ws.put("tests/cases/x.json", case_with(books=BOOKS[name], inputs={"january.csv": JANUARY}))
    with unchanged(ws):
        done = ws("agent", "propose", "tests/cases/x.json", "--json")
        assert done.code == 1, done
        no_traceback(done)
    (found,) = findings(done.json, "regression")
    assert found["file"] == "tests/cases/x.json"


@pytest.mark.parametrize("now", ["1971-01-01T00:00:00Z", "8999-12-31T23:59:59+14:00"])
def test_a_case_of_another_age_is_replayed(ws: Workspace, now: str) -> None:
    ws.put("tests/cases/x.json", case_with(now=now, inputs={"january.csv": JANUARY}))
    done = ws("agent", "propose", "tests/cases/x.json", "--json")
    assert done.code == 1 and findings(done.json, "regression"), done


def test_a_case_edited_by_a_hand_commit_can_be_proposed(posted: Workspace) -> None:
    """What was approved is not known any more, but that it was: the edit is a change, and the removal too."""
    run = posted.json("run", "list")[0]["run_id"]
    path = posted.json("test", "add", run)["path"]
    text = posted.read(path)
    posted.put(path, text.replace('"why": ""', '"why": "as the bank says"'))
    posted.commit(path)
    proposal = posted.json("agent", "propose", path)
    assert any("is changed" in line for line in proposal["card"])
    take_ok(posted, "agent", "approve", proposal["id"])
    assert [c["state"] for c in posted.json("test", "list")] == ["approved"]
    posted.git("rm", "-q", path)
    posted.git("commit", "-qm", "gone")
    proposal = posted.json("agent", "propose", path)
    assert any("is removed" in line for line in proposal["card"])
    take_ok(posted, "agent", "approve", proposal["id"])
    assert posted.json("test", "list") == []


def test_a_case_that_is_none_is_not_proposed(ws: Workspace) -> None:
    ws.put("tests/cases/odd.json", "{}")
    done = ws("agent", "propose", "tests/cases/odd.json")
    assert done.code == 1 and "[regression-format]" in done.err
