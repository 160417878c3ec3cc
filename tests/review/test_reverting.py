"""``cleared revert``: what a run did is taken back with what rests on it, and nothing else. N9."""

from __future__ import annotations

import shlex
import signal
import subprocess
from typing import Any

import pytest
from harness import CLOCK, Workspace, chase, refused, unchanged
from stepped import run_stepped
from tables import MAY, define, put_prices

LEGS = 'debit_account=5020, credit_account=1010, amount="{0}"'
POST = f'journal_add_double(date="2025-01-{{0:02}}", description="{{1}}", {LEGS})'
COUNTS = "grants: [journal.read, table.read, table.write, git.commit]\n"
READS = 'seen = journal_query(date_from="2025-01-03", date_to="2025-01-03")\n'


def revert(ws: Workspace, *words: str) -> dict[str, Any]:
    found = ws.json("revert", *words)
    assert isinstance(found, dict)
    return found


@pytest.fixture
def three(ws: Workspace) -> list[str]:
    """Three runs: the first posts two entries, the second reads one of them and posts, the third reads nothing."""
    first = ws.script(f"{POST.format(3, 'nails')}\n{POST.format(4, 'screws')}", name="first")
    second = ws.script(f"{READS}if seen:\n    {POST.format(5, 'more nails')}", name="second")
    third = ws.script(POST.format(6, "paint"), name="third")
    return [run["run_id"] for run in (first, second, third)]


def test_n9_what_read_it_goes_too_and_the_rest_stays(ws: Workspace, three: list[str]) -> None:
    with unchanged(ws):
        plan = revert(ws, three[0], "--plan")
    assert [run["run"] for run in plan["runs"]] == [three[1], three[0]] and plan["may_have_read"] == []
    assert "journal_query at agents/second.py:" in plan["runs"][0]["why"] and plan["commit"] == ""
    head = ws.head()
    done = revert(ws, three[0], "--yes", "--reason", "the wrong shop")
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "1"
    assert [run["voided"] for run in done["runs"]] == [run["voided"] for run in plan["runs"]]
    left = {e["description"]: e["status"] for e in ws.entries() if not e["description"].startswith("Void ")}
    assert left["paint"] != "voided" and [left[x] for x in ("nails", "screws", "more nails")] == ["voided"] * 3
    assert "cleared agent run second" in done["again"]
    assert "the wrong shop" in ws.git("log", "-1", "--format=%s")
    ws.in_order()
    refused(ws("revert", three[0], "--yes"), 3, "nothing of", "left to take back")
    assert "the wrong shop" in ws.ok("why", done["runs"][1]["voided"][0]).out


def test_n9_again_runs_just_what_had_read_it_over_what_is_left(ws: Workspace) -> None:
    """A total of what was imported, another agent that reads nothing of it, and a third that fails by then."""
    ws.agent(
        "total",
        'found = journal_query(text="NAILS", status="pending-review")\n'
        'table_put("prices", {"sku": "nails", "price": sum([entry["amount"] for entry in found], decimal("0"))})\n',
        header="grants: [journal.read, money.read, table.read, table.write, git.commit]\n",
    )
    define(ws)
    ws.agent("other", POST.format(6, "paint"))
    for name, amount in (("a.csv", "-5.00"), ("b.csv", "-7.00")):
        ws.drop(name, chase(("01/03/2025", f"NAILS {name}", amount)))
        ws.run("ingest")
    ws.run("total")
    ws.run("other")
    assert "nails,12.00" in ws.read("records/prices.csv")
    assert "runs again: total\n" in ws.ok("revert", "b.csv", "--plan", "--again").out
    head = ws.head()
    done = revert(ws, "b.csv", "--yes", "--again")
    assert [(run["agent"], run["status"]) for run in done["reran"]] == [("total", "succeeded")]
    assert ws.git("rev-list", "--count", f"{head}..HEAD").strip() == "2", "one of what went, one of what came again"
    assert "nails,5.00" in ws.read("records/prices.csv")
    assert next(e for e in ws.entries() if e["description"] == "paint")["status"] != "voided"
    assert done["again"] == ["cleared import import/processed/b.csv"]
    ws.in_order()
    said = ws.ok("revert", "b.csv", "--yes", "--again").out
    assert "Taken back before" in said and "again:" not in said
    assert ws.head() == done["reran"][0]["commits"][0], "each has had its run for it"
    said = ws.ok("revert", "a.csv", "--yes", "--again").out
    assert f"total ran again: committed as {ws.head()[:10]}" in said and "nails,0" in ws.read("records/prices.csv")
    run = ws.git("log", "-1", "--skip=1", "--format=%(trailers:key=Reverts,valueonly)").split()[0]
    forged = f"void: x\n\nDecision: 20250210T060000Z-aaaaaa\nBy: root\nReverts: {run} a.csv\nAgain: other"
    ws.git("commit", "-q", "--allow-empty", "-m", forged)
    head = ws.head()
    assert "other" not in ws.ok("revert", "a.csv", "--yes", "--again").out and ws.head() == head, "nobody's word"


def test_n9_killed_between_its_commits_the_same_command_ends_in_what_was_asked_for_once(ws: Workspace) -> None:
    """Whatever was committed meanwhile; and each run that was made again is explained and done again as any other."""
    define(ws)
    for name in ("first", "second"):
        count = f'found = journal_query(text="NAILS", status="pending-review")\ntable_put("prices", {{"sku": "{name}", '
        ws.agent(name, f'{count}"price": len(found)}})\n', header=COUNTS)
    for file in ("a.csv", "b.csv"):
        ws.drop(file, chase(("01/03/2025", f"NAILS {file}", "-5.00")))
        ws.run("ingest")
    ws.run("first")
    ws.run("second")
    asked = ("revert", "b.csv", "--yes", "--again")
    for nth, step in enumerate(("begun", "ref")):  # before the first run, and when it is committed
        killed = run_stepped([*asked, "-C", str(ws.root)], step)
        assert killed.returncode == -signal.SIGKILL, killed
        ws.in_order()
        assert ws.entries()[1]["status"] == "voided", "what was taken back is, and nothing half"
        ws.put(f"note-{nth}.txt", "by hand")
        ws.commit(f"note-{nth}.txt")
    done = revert(ws, *asked[1:])
    assert [run["agent"] for run in done["reran"]] == ["second"], "the first had its run"
    assert all(f"{name},1.00" in ws.read("records/prices.csv") for name in ("first", "second"))
    made = ws.git("log", "--format=%(trailers:key=Event,valueonly)").split()
    assert [each.startswith("revert:") for each in made].count(True) == 2, "each once"
    for name in ("first", "second"):
        assert ws.json("why", f"prices/{name}")["agent"] == name
    for run in ws.git("log", "--grep=^Event: .*revert:", "--format=%(trailers:key=Run,valueonly)").split():
        replayed = ws.json("replay", run)
        assert replayed["same"] is True and (replayed["missing"] == []) is (replayed["agent"] == "second"), replayed
    doubts = revert(ws, "a.csv", "--plan")["may_have_read"]
    assert ("first", "the run was killed before its trace was written") in [(d["agent"], d["why"]) for d in doubts]
    ws.in_order()


def test_n9_an_agent_that_cannot_run_again_is_named_and_what_was_taken_back_stays_so(
    ws: Workspace, three: list[str]
) -> None:
    ws.ok("agent", "disable", "second", "--reason", "not now")
    done = ws("revert", three[0], "--yes", "--again")
    assert done.code == 1 and "second ran again: " in done.out and "disabled it" in done.out, done
    assert "To do it again: cleared agent run second" in done.err
    assert all(e["status"] == "voided" for e in ws.entries() if e["description"] in ("nails", "more nails"))
    ws.in_order()


def test_n9_alone_leaves_what_rests_on_it(ws: Workspace, three: list[str]) -> None:
    done = revert(ws, three[0], "--yes", "--alone")
    assert [run["run"] for run in done["runs"]] == [three[0]]
    assert {e["description"] for e in ws.entries() if e["status"] != "voided"} >= {"more nails", "paint"}
    ws.in_order()


def test_n9_what_people_decided_stays_and_is_named(ws: Workspace, three: list[str]) -> None:
    entry = next(e["entry_id"] for e in ws.entries() if e["description"] == "screws")
    ws.ok("queue", "approve", entry)
    done = revert(ws, three[0], "--yes")
    assert done["runs"][-1]["kept"] == [entry] and entry not in done["runs"][-1]["voided"]
    assert [d["about"].split(", ")[-1] for d in done["decisions"]] == [entry]
    assert next(e for e in ws.entries() if e["entry_id"] == entry)["status"] == "user-confirmed"
    ws.in_order()


def test_n9_a_closed_period_refuses_it_and_says_the_way(ws: Workspace, three: list[str]) -> None:
    ws.ok("period", "close", "2025-01", "--with-pending")
    with unchanged(ws):
        done = ws("revert", three[2], "--yes")
        assert done.code == 3 and "cleared period reopen" in done.err, done


def test_n9_without_traces_nothing_is_guessed(ws: Workspace, three: list[str]) -> None:
    (ws.root / ".cleared/runs.db").unlink()
    plan = revert(ws, three[0], "--plan")
    assert [run["run"] for run in plan["runs"]] == [three[0]]
    assert {doubt["run"] for doubt in plan["may_have_read"]} == set(three[1:])
    shown = ws("revert", three[0])
    assert shown.code == 3 and "may have read it" in shown.err and "--yes" in shown.err


def test_n9_an_import_by_its_file_in_the_way_of_import_undo(ws: Workspace) -> None:
    """One way: what ``import undo`` refuses, for people have decided about it, stays here; the rest goes."""
    ws.drop("january.csv")
    run = ws.run("ingest")["run_id"]
    ws.drop("february.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00")))
    other = ws.run("ingest")["run_id"]
    mine = ws.entries("--month", "2025-01")
    ws.ok("queue", "approve", mine[-1]["entry_id"])
    plan = revert(ws, "january.csv", "--plan")
    assert [each["run"] for each in plan["runs"]] == [run] and plan["runs"][0]["kept"] == [mine[-1]["entry_id"]]
    done = revert(ws, "january.csv", "--yes")
    assert set(done["runs"][0]["voided"]) == {e["entry_id"] for e in mine[:-1]}
    assert done["again"] == ["cleared import import/processed/january.csv"]
    ws.in_order()
    ws.ok("import", "files", str(ws.root / "import/processed/january.csv"))
    standing = [e for e in ws.entries("--month", "2025-01") if e["status"] != "voided"]
    assert len([e for e in standing if not e["description"].startswith("Void ")]) == len(mine), "each line once"
    assert ws.entries("--month", "2025-02")[0]["status"] != "voided" and other
    ws.in_order()


def test_n9_rows_of_a_table_go_back_to_what_they_were(ws: Workspace) -> None:
    """The runtime asks the domain: a table is reverted in the same way, but for what was changed since."""
    define(ws)
    put_prices(ws, ("A", "4.20"), ("B", "1.00"))
    run = ws.script(
        'table_put("prices", {"sku": "A", "price": "4.50"})\ntable_put("prices", {"sku": "B", "price": "2.00"})',
        header=MAY,
    )["run_id"]
    put_prices(ws, ("B", "3.00"))
    done = revert(ws, run, "--yes", "--alone")
    assert done["runs"][0]["voided"] == ["prices/A"] and done["runs"][0]["kept"] == ["prices/B"]
    assert "A,4.20," in ws.read("records/prices.csv") and "B,3.00," in ws.read("records/prices.csv")
    ws.in_order()
    refused(ws("revert", "abcdef", "--plan"), 2, "no run that committed")


@pytest.mark.parametrize("keep", ["git", "local"])
def test_what_is_to_be_imported_again_is_named_where_it_lies(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, keep: str
) -> None:
    """A bank calls each file the same, and old books keep them by month: the first of the name is another file."""
    ws.config(f"import.keep={keep}")
    monkeypatch.setattr("cleared.books.importing.drop_folder.KEPT_TOGETHER", 1)
    for amount in ("-5.00", "-7.00", "-9.00"):
        ws.drop("a.csv", chase(("01/03/2025", f"NAILS {amount}", amount)))
        last = ws.run("ingest")["run_id"]
    done = revert(ws, last, "--yes")
    (again,) = done["again"]
    assert again == f"cleared import import/processed/{CLOCK[:7]}/a-2.csv"
    assert "-9.00" in ws.read(again.removeprefix("cleared import "))


@pytest.mark.parametrize("keep", ["git", "local"])
def test_how_an_import_is_done_again_is_what_can_be_done(ws: Workspace, keep: str) -> None:
    """Fault: it named an agent that had no file to import, and a path that a shell takes for several."""
    name = "import/processed/the bank's.csv"
    ws.config(f"import.keep={keep}")
    ws.drop("the bank's.csv", chase(("01/03/2025", "NAILS", "-4.00")))
    run = ws.run("ingest")["run_id"]
    ws.ok("import", "undo", run)
    ws.ok("import", str(ws.root / name))  # there are two copies now
    assert [way.replace("-2", "") for way in revert(ws, ws.json("run", "list")[0]["run_id"], "--yes")["again"]] == [
        f"cleared import {shlex.quote(name)}"
    ]
    ws.ok("import", str(ws.root / name))
    for copy in ws.root.glob("import/processed/*.csv"):
        copy.unlink()
    [way] = revert(ws, ws.json("run", "list")[0]["run_id"], "--yes")["again"]
    if keep == "local":
        assert way == "put the bank's.csv into import/ once more; no copy of it is kept here"
        return
    subprocess.run(way.partition(" && ")[0], shell=True, cwd=ws.root, check=True)
    assert way.endswith(" && cleared agent run ingest")
    assert ws.run("ingest")["result"]["imported"] == 1 and ws("check").code == 0


def test_what_waits_under_the_name_of_a_file_is_not_overwritten_by_doing_it_again(ws: Workspace) -> None:
    """Fault: a bank calls each month's file the same, and what was said to be done lost the one that waited."""
    ws.config("import.keep=git")
    ws.drop("bank.csv", chase(("01/03/2025", "NAILS", "-4.00")))
    run = ws.run("ingest")["run_id"]
    (ws.root / "import/processed/bank.csv").unlink()
    ws.drop("bank.csv", chase(("02/03/2025", "SCREWS", "-5.00")))
    [way] = revert(ws, run, "--yes")["again"]
    subprocess.run(way.partition(" && ")[0], shell=True, cwd=ws.root, check=True)
    assert ws.run("ingest")["result"]["imported"] == 2
    assert {e["description"] for e in ws.entries() if e["status"] != "voided"} >= {"NAILS", "SCREWS"}


@pytest.mark.parametrize("name", ["january.csv", "january-2.csv", "another.csv"])
def test_a_kept_file_is_found_under_whatever_name(posted: Workspace, name: str) -> None:
    """Files of the name that it had are read first."""
    if name != "january.csv":
        posted.git("mv", "import/processed/january.csv", f"import/processed/{name}")
        posted.git("commit", "-qm", "moved")
    run = posted.json("run", "list")[0]["run_id"]
    done = posted.json("revert", run, "--reason", "wrong", "--yes")
    assert done["again"] == [f"cleared import import/processed/{name}"]
