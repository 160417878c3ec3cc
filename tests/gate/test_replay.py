"""``cleared replay``: any past run from its commit, its recorded reads and answers, and nothing of today. N2."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from harness import Workspace, chase, refused, unchanged

READS = """
rows = csv_rows("prices/list.csv")
for row in rows:
    journal_add_double(date="2025-01-03", description=row["name"], debit_account=5020, credit_account=1010,
        amount=row["price"])
len(rows)
"""


def replay(ws: Workspace, run: str, code: int = 0) -> dict[str, Any]:
    done = ws("replay", run, "--json")
    assert done.code == code, done
    found = done.json
    assert isinstance(found, dict)
    return found


@pytest.fixture
def two_runs(ws: Workspace) -> tuple[str, str]:
    """January and February by ingest, in two versions of it."""
    ws.drop("january.csv")
    first = ws.run("ingest")["run_id"]
    text = ws.read("agents/ingest.py")
    ws.put("agents/ingest.py", text.replace('config_get("thresholds.auto_confirm")', "0.5"))
    ws.commit("agents/ingest.py", *ws.approve("agents/ingest.py"))
    ws.drop("february.csv", chase(("02/03/2025", "GITHUB *PRO", "-4.00"), ("02/06/2025", "AWS EMEA", "-31.00")))
    return first, ws.run("ingest")["run_id"]


def test_n2_the_same_calls_and_effects_also_of_a_script_long_replaced(ws: Workspace, two_runs: tuple[str, str]) -> None:
    ws.put("agents/ingest.py", "nothing that runs")
    ws.commit("agents/ingest.py")
    ws.ok("config", "set", "thresholds.auto_confirm", "0.1")
    with unchanged(ws):
        for run in two_runs:
            found = replay(ws, run)
            assert found["same"] and found["diverges"] is None and found["missing"] == []
            assert found["compared_calls"] == found["calls"] > 3
            assert "books/2025/01/journal.csv" in found["effects"] or "books/2025/02/journal.csv" in found["effects"]
    assert "the same" in ws.ok("replay", two_runs[0]).out
    refused(ws("replay", "20990101T000000Z-000000"), 2, "there is no run")


class Opened:
    """The files of a folder that this process opens."""

    def __init__(self) -> None:
        self.watched, self.paths = "", list[str]()
        sys.addaudithook(self._notice)

    def _notice(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("open", "os.listdir", "os.scandir") and self.watched and str(args[0]).startswith(self.watched):
            self.paths.append(str(args[0]).removeprefix(self.watched).lstrip("/"))


@pytest.fixture(scope="module")
def opened() -> Opened:
    return Opened()


def test_n2_the_same_with_what_is_kept_of_months_and_without(ws: Workspace, two_runs: tuple[str, str]) -> None:
    kept = ws.root / ".cleared/books"
    found = [replay(ws, run) for run in two_runs]
    shutil.rmtree(kept)
    assert [replay(ws, run) for run in two_runs] == found
    assert not list(kept.glob("2025-*")), "of a past commit nothing is kept"


def test_n2_no_host_reads(ws: Workspace, two_runs: tuple[str, str], opened: Opened) -> None:
    """Of the workspace nothing is opened between the opening of it and the end but git's own files, and what is kept of
    these by their ids: the drop folder holds other files by now, and the books of the working tree are not there."""
    from cleared.changes.workspace_opening import open_workspace
    from cleared.gate.replay import replay_run

    host = open_workspace(ws.root)
    ws.drop("january.csv", "something else")
    shutil.rmtree(ws.root / "books")
    shutil.rmtree(ws.root / "agents")
    opened.watched, opened.paths = str(ws.root), []
    with host.keep_executor():
        same = [replay_run(host, run).is_same for run in two_runs]
    opened.watched = ""
    assert same == [True, True]
    read = [p for p in opened.paths if not p.startswith((".git", ".cleared"))]
    assert read == []


def test_n2_what_was_read_outside_of_git_is_answered_from_the_trace(ws: Workspace) -> None:
    ws.put("prices/list.csv", "name,price\nnails,3.00\n")
    header = "trigger: file_watch\nwatch: prices/*.csv\n"
    ws.put("agents/prices.py", f'"""\nname: prices\n{header}"""{READS}')
    ws.commit("agents/prices.py", *ws.approve("agents/prices.py"))
    run = ws.run("prices")["run_id"]
    (ws.root / "prices/list.csv").unlink()
    assert replay(ws, run)["same"]
    shutil.rmtree(ws.root / ".cleared")
    found = replay(ws, run, 1)
    assert "trace is not on this machine" in found["missing"][0]
    assert "no commit holds it" in found["diverges"]["replayed"]


def test_n2_from_git_alone_where_the_traces_are_gone(ws: Workspace, two_runs: tuple[str, str]) -> None:
    shutil.rmtree(ws.root / ".cleared")
    for run in two_runs:
        found = replay(ws, run)
        assert found["same"] and found["compared_calls"] == 0 and len(found["missing"]) == 1
    assert "not recorded: its calls" in ws.ok("replay", two_runs[0]).err


def test_n2_a_failed_run_fails_alike_and_one_without_a_commit_is_done_again(ws: Workspace) -> None:
    failed = ws.script("accounts_get(5020)\naccounts_get(9999)", code=1)
    assert replay(ws, failed["run_id"])["same"]
    idle = ws.script("accounts_get(5020)", name="idle")
    assert idle["commits"] == [] and replay(ws, idle["run_id"])["same"]


def test_n2_where_it_diverges_and_why(ws: Workspace, two_runs: tuple[str, str]) -> None:
    """A trace that somebody has edited: what is recorded is not what the script does."""
    import sqlite3

    with sqlite3.connect(ws.root / ".cleared/runs.db") as db:
        db.execute("UPDATE calls SET result='[]' WHERE run_id=? AND name='importer_parse'", (two_runs[0],))
    found = replay(ws, two_runs[0], 1)
    assert found["diverges"]["where"].startswith("call ") and found["diverges"]["recorded"] == "importer_parse: []"
    done = ws("replay", two_runs[0])
    assert done.code == 1 and "diverges at call" in done.out and "agents/ingest.py:" in done.out


def test_n2_what_somebody_pushed_is_not_run(ws: Workspace, two_runs: tuple[str, str]) -> None:
    """A commit that claims to be a run is none, and an unapproved script in one is not run."""
    ws.put("agents/evil.py", '"""\nname: evil\ntrigger: on_demand\n"""\n1\n')
    ws.commit("agents/evil.py")
    blob = ws.git("rev-parse", "HEAD:agents/evil.py").strip()
    marks = "Run: 20250101T000000Z-abcdef\nAgent: evil\nEvent: on_demand x\nClock: 2025-01-01T00:00:00Z"
    ws.git("commit", "-q", "--allow-empty", "-m", f"agent: evil\n\n{marks}\nScript: agents/evil.py@{blob}")
    refused(ws("replay", "20250101T000000Z-abcdef"), 3, "nothing shows")


def test_n2_a_run_that_went_on_after_a_question(ws: Workspace) -> None:
    body = (
        'choice = queue_ask(question="Which?", choices=["5020", "5030"])\n'
        'journal_add_double(date="2025-01-03", description="x", debit_account=int(choice), credit_account=1010, '
        'amount="1")'
    )
    asked = ws.script(body)
    assert asked["status"] == "waiting"
    ws.ok("queue", "answer", asked["cards"][0]["id"], "5030")
    found = replay(ws, asked["run_id"])
    assert found["same"], found
    assert "books/2025/01/journal.csv" in found["effects"]


@pytest.fixture(autouse=True)
def _quiet(opened: Opened) -> Iterator[None]:
    yield
    opened.watched = ""


def test_n2_a_file_that_was_not_taken_is_missing_and_makes_no_other_run(ws: Workspace) -> None:
    """No commit holds it, so the replay comes to no card about it; the rest is the same."""
    ws.drop("january.csv")
    ws.drop("page.csv", "<!DOCTYPE html><html><body>Sign in</body></html>")
    run = ws.run("ingest")["run_id"]
    assert [card["kind"] for card in ws.cards()].count("bad_file") == 1
    done = ws.json("replay", run)
    assert done["same"] is True, done
    assert done["missing"] == ["1 file that it could not take: no commit holds that"]
