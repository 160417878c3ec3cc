"""``cleared why``: from git alone, down to the line of the script as it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace, chase, refused, take_ok

ADD = (
    'journal_add_double(date="2025-01-10", description="A", debit_account=5020, credit_account=2100, amount=1,\n'
    '                   confidence=0.9, status="auto-confirmed", evidence="e")'
)
MANY = """
journal_add_many([
    {"date": "2025-01-10", "description": d, "confidence": 0.9, "evidence": "e", "status": "auto-confirmed",
     "lines": [{"account_id": 5020, "debit": 1}, {"account_id": 2100, "credit": 1}]}
    for d in ["first", "second"]
])
git_commit("many")
"""


def why(ws: Workspace, name: str = "2025-01-003") -> dict[str, Any]:
    found = ws.json("why", name)
    assert isinstance(found, dict)
    return found


def line_of(ws: Workspace, path: str, text: str, nth: int = 0) -> int:
    return [n for n, line in enumerate(ws.read(path).splitlines(), 1) if text in line][nth]


def test_the_chain(posted: Workspace) -> None:
    """N3: bank line, run, script line with its values, and who approved it."""
    found = why(posted)
    assert found["bank_line"]["file"] == "january.csv" and found["bank_line"]["text"] == "AWS EMEA"
    assert found["run"] == posted.trailers()["Run"] and found["commit"]["id"] == posted.head()
    call = found["call"]
    assert (call["file"], call["primitive"], call["from"]) == ("agents/ingest.py", "journal_add_double", "replay")
    assert call["line"] == line_of(posted, "agents/ingest.py", "journal_add_double(")
    assert call["arguments"]["counterparty"] == "Amazon Web Services" and call["arguments"]["amount"] == "45.10"
    assert found["approval"]["why"] and found["decisions"] == []
    text = posted.ok("why", "2025-01-003").out
    assert "january.csv, row 4" in text and f"agents/ingest.py, line {call['line']}" in text


def test_a_bank_line_leads_to_the_entry_that_posts_it(posted: Workspace) -> None:
    """To the one that stands; or it is said what became of the line."""
    [entry] = [each for each in posted.entries() if each["entry_id"] == "2025-01-003"]
    line = entry["reference"]
    assert line.startswith("f1:") and why(posted, line) == why(posted)
    posted.ok("journal", "void", "2025-01-003", "--reason", "a test")
    assert why(posted, line)["entry"]["entry_id"] == "2025-01-003"
    posted.drop("tea.csv", chase(("01/20/2025", "TEA", "-3.00")))
    posted.script('for t in importer_parse("tea.csv"):\n    importer_ignore(t["reference"], "no business")\n')
    [outcome] = [row for row in posted.read("books/bank/outcomes-2025-01.csv").splitlines() if "no business" in row]
    done = posted("why", outcome.split(",")[0])
    assert done.code == 2
    assert "no entry posts the bank line of 2025-01-20, -3.00 'TEA': it is ignored (no business)" in done.err
    assert posted("why", "f1:0123456789abcdef01234567").code == 2


def test_just_after_the_script_changed(posted: Workspace) -> None:
    """N3: the line as it was when it posted, not as it is."""
    before = why(posted)["call"]
    path = "agents/ingest.py"
    posted.put(path, posted.read(path).replace("files = importer_scan()", "# more\n# lines\nfiles = importer_scan()"))
    posted.commit(path, *posted.approve(path))
    assert why(posted)["call"] == before


def test_what_the_script_counted_as_then_stays(posted: Workspace) -> None:
    """Of a version that counts no more, since another was approved and taken back."""
    before = why(posted)["approval"]
    assert before["state"] == "starter"
    path = "agents/ingest.py"
    posted.put(path, posted.read(path).replace("files = importer_scan()", "# more\nfiles = importer_scan()"))
    posted.ok("agent", "propose", "ingest")
    posted.ok("agent", "approve", "P1")
    posted.ok("agent", "rollback", "ingest", "--reason", "no better")
    assert why(posted)["approval"] == before


def test_from_a_fresh_clone(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """N3: no ``.cleared/``, nobody's key: git has it all."""
    posted.ok("queue", "correct", "2025-01-003", "--account", "5060")
    there = why(posted)
    posted.git("clone", "-q", str(posted.root), str(tmp_path / "clone"))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "elsewhere"))
    here = why(Workspace(tmp_path / "clone"))
    for key in ("entry", "bank_line", "commit", "run", "script", "call", "decisions"):
        assert here[key] == there[key], key


def test_who_approved_it(ws: Workspace) -> None:
    ws.put("agents/probe.py", f'"""\nname: Probe\ntrigger: on_demand\n"""\n{ADD}\ngit_commit("x")\n')
    ws.ok("agent", "propose", "probe")
    take_ok(ws, "agent", "approve", "P1")
    ws.run("probe")
    found = why(ws, "2025-01-001")
    assert found["approval"]["proposal"].startswith("P1-") and found["approval"]["by"] and found["approval"]["at"]
    assert found["call"]["line"] == 5 and found["bank_line"] is None


def test_one_of_many(ws: Workspace) -> None:
    ws.script(MANY)
    found = why(ws, "2025-01-002")["call"]
    assert found["primitive"] == "journal_add_many" and found["arguments"]["description"] == "second"


def test_what_a_person_posted(posted: Workspace) -> None:
    posted.ok("journal", "void", "2025-01-001", "--reason", "not ours")
    found = why(posted, "2025-01-005")
    assert found["run"] is None and found["by"] == posted.trailers()["By"]
    posted.ok("queue", "correct", "2025-01-004", "--account", "5060")
    assert why(posted, "2025-01-006")["decision"] == posted.trailers()["Decision"]


def test_later_decisions(posted: Workspace) -> None:
    """All of them, batches and what was taken back too, oldest first; none of another entry."""
    posted.ok("queue", "approve", "2025-01-003", "2025-01-004")
    posted.ok("queue", "correct", "2025-01-003", "--account", "5060")
    posted.ok("queue", "undo")
    posted.ok("queue", "undo")
    said = [d["what"] for d in why(posted)["decisions"]]
    assert said[:3] == [
        "confirm: 2 entries",
        "correct: 2025-01-003 AWS EMEA",
        "correct: undo: correct: 2025-01-003 AWS EMEA",
    ]
    assert len(said) == 4 and said[3].startswith("correct: undo: confirm: 2 entries")
    assert len(why(posted, "2025-01-004")["decisions"]) == 2
    assert why(posted, "2025-01-001")["decisions"] == []


def test_files_that_stay_on_the_machine(ws: Workspace) -> None:
    """With ``import.keep: local`` the trace tells; without it, it is said that nobody knows any more."""
    ws.config("import.keep=local")
    ws.drop("january.csv")
    ws.run("ingest")
    call = why(ws)["call"]
    assert call["from"] == "trace" and call["line"] == line_of(ws, "agents/ingest.py", "journal_add_double(")
    shutil.rmtree(ws.root / ".cleared")
    assert why(ws)["call"] is None
    assert "which line is not known any more" in ws.ok("why", "2025-01-003").out


POSTS = """
for n in range(9):
    journal_add_double(date="2025-01-31", description="n" + str(n), debit_account=5020, credit_account=1010, amount=4)
git_commit("many")
"""


@pytest.mark.parametrize("here", ["replay", "trace"])
def test_a_call_that_the_trace_sums_up(ws: Workspace, monkeypatch: pytest.MonkeyPatch, here: str) -> None:
    """A long run is not done again where the trace knows the line; without a trace it is, and sees every call."""
    for name, most in (("MAX_FIRST_CALLS", 2), ("MAX_LAST_CALLS", 2), ("_FIRST_OF_NAME", 1)):
        monkeypatch.setattr(f"cleared.changes.traced_calls.{name}", most)
    ws.script(POSTS)
    if here == "trace":
        monkeypatch.setattr("cleared.review.explanation.find_past_run", lambda *_: pytest.fail("it is done again"))
    else:
        shutil.rmtree(ws.root / ".cleared")
    call = why(ws, "2025-01-006")["call"]
    assert call["from"] == here and call["line"] == line_of(ws, "agents/probe.py", "journal_add_double(")
    assert call["arguments"] is None if here == "trace" else call["arguments"]["description"] == "n5"
    assert "journal_add_double" in ws.ok("why", "2025-01-006").out
    shown = ws.ok("run", "show", ws.json("run", "list")[0]["run_id"]).out
    assert ("more calls of journal_add_double" in shown) == (here == "trace")


def test_an_entry_in_a_long_month(posted: Workspace) -> None:
    """Found among the commits that touched the journal since."""
    first = posted.head()
    for n in range(5):
        posted.drop(f"{n}.csv", chase((f"01/2{n}/2025", f"GITHUB {n}", "-1.00")))
        posted.run("ingest")
    posted.ok("queue", "approve", "2025-01-002")
    assert why(posted, "2025-01-001")["commit"]["id"] == first
    assert why(posted, "2025-01-009")["bank_line"]["text"] == "GITHUB 4"
    assert why(posted, "2025-01-007")["bank_line"]["file"] == "2.csv"


def test_unknown(posted: Workspace) -> None:
    refused(posted("why", "2025-01-099"), 2, "there is no entry")


def test_an_edit_by_hand_is_named_with_what_it_changed_and_who_answers_for_it(posted: Workspace) -> None:
    """In the order in which it was done, between the decisions; of other entries nothing is said."""
    path = "books/2025/01/journal.csv"
    posted.ok("queue", "correct", "2025-01-003", "--note", "the server")
    posted.put(path, posted.read(path).replace("45.10", "54.10").replace(",Amazon Web Services,", ",Somebody,"))
    edit = posted.commit(path, message="it was more")
    posted.ok("accept", edit, "--reason", "seen on paper")
    found = posted.json("why", "2025-01-003")
    assert found["run"] and [each["by_hand"] for each in found["decisions"]] == [False, True, False]
    told = found["decisions"][1]
    assert (told["commit"], told["by"], told["what"]) == (edit, "User", "it was more") and told["at"].endswith("Z")
    changed = {each["field"]: (each["old"], each["new"]) for each in told["changed"]}
    assert changed == {
        "legs": ("5020 45.10, 1010 -45.10", "5020 54.10, 1010 -54.10"),
        "counterparty": ("Amazon Web Services", "Somebody"),
    }
    assert "seen on paper" in found["decisions"][2]["what"]
    shown = posted.ok("why", "2025-01-003").out
    assert "User, by hand: it was more" in shown and "counterparty: Amazon Web Services → Somebody" in shown
    assert posted.json("why", "2025-01-001")["decisions"] == []


def test_a_status_that_somebody_set_by_hand_is_named(posted: Workspace) -> None:
    path = "books/2025/01/journal.csv"
    rows = posted.read(path).splitlines(keepends=True)
    mine = [row.replace("pending-review", "user-confirmed") if row.startswith("2025-01-002") else row for row in rows]
    posted.put(path, "".join(mine))
    edit = posted.commit(path)
    [told] = posted.json("why", "2025-01-002")["decisions"]
    assert told["commit"] == edit and told["by_hand"]
    assert told["changed"] == [{"field": "status", "old": "pending-review", "new": "user-confirmed"}]
