"""``cleared bisect``: the run since which something is wrong, in few checks. N10."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from harness import Done, Workspace, here, refused, unchanged

POST = 'journal_add_double(date="2025-01-03", description="{}", debit_account=5020, credit_account=1010, amount="1")'


def run_bisect(ws: Workspace, good: str, *check: str) -> Done:
    return here("bisect", "--good", good, "--json", "-C", str(ws.root), "--", *check)


def bisect(ws: Workspace, good: str, *check: str) -> dict[str, Any]:
    done = run_bisect(ws, good, *check)
    assert done.code == 0, done
    found = done.json
    assert isinstance(found, dict)
    return found


@pytest.fixture
def eight(ws: Workspace) -> list[str]:
    """Eight runs; the sixth is by another version, which posts gold."""
    ws.agent("probe", POST.format("coffee"))
    runs = [ws.run("probe")["run_id"] for _ in range(5)]
    ws.agent("probe", POST.format("gold"))
    return [*runs, *(ws.run("probe")["run_id"] for _ in range(3))]


def test_n10_a_command_finds_the_run_its_script_and_who_approved_it(ws: Workspace, eight: list[str]) -> None:
    ws.put("agents/probe.py", "somebody edits it")
    with unchanged(ws):
        found = bisect(ws, eight[0], "sh", "-c", "! grep -q gold books/2025/01/journal.csv")
    assert found["run"] == eight[5] and found["agent"] == "probe" and found["attested"]
    assert found["script"].startswith("agents/probe.py@") and found["approval"].startswith("P0 by tester")
    assert found["checks"] <= 4 and found["runs"] == 7
    assert found["others"] == [other for other in found["others"] if "agent: probe" in other] != []


def test_n10_the_commands_of_cleared_are_checks_too(ws: Workspace, eight: list[str]) -> None:
    """A figure of a report: the balance of an account in the private clone."""
    test = "any(float(x['balance']) > 6 for x in json.load(sys.stdin) if x['account_id'] == 5020)"
    look = f'cleared journal balance --json | {sys.executable} -c "import json, sys; sys.exit({test})"'
    assert bisect(ws, eight[0], "sh", "-c", look)["run"] == eight[6]


def test_n10_the_check_of_the_records_needs_no_command(ws: Workspace, eight: list[str]) -> None:
    """A row that somebody writes by hand breaks the books; the run after it is the first that is bad, and the commit
    between is named."""
    path = "books/2025/01/journal.csv"
    lines = ws.read(path).splitlines(keepends=True)
    ws.put(path, "".join([*lines[:-1], lines[-1].replace(",1.00,", ",7.00,").replace(",1,", ",7,")]))
    ws.commit(path, message="a slip of the pen")
    last = ws.run("probe", code=1)["run_id"]
    found = bisect(ws, eight[0], "check")
    assert found["run"] == last and any("a slip of the pen" in other for other in found["others"])
    assert found["says"]


def test_n10_the_ends_are_checked_where_nothing_else_tells(ws: Workspace, eight: list[str]) -> None:
    for check, said in ((("true",), "does not fail at --bad"), (("false",), "does not pass at --good")):
        done = run_bisect(ws, eight[0], *check)
        assert done.code == 3 and said in done.err, done
    refused(here("bisect", "--good", "HEAD", "-C", str(ws.root), "--", "true"), 2, "there is no run after")


def test_n10_what_cannot_tell_is_passed_over(ws: Workspace, eight: list[str]) -> None:
    odd = 'n=$(grep -c coffee books/2025/01/journal.csv); test "$n" -ne 8 || exit 125; ! grep -q gold books/2025/01/*'
    found = bisect(ws, eight[0], "sh", "-c", odd)
    assert found["run"] == eight[5]


def test_n10_a_check_is_confined_and_leaves_the_workspace_alone(ws: Workspace, eight: list[str]) -> None:
    """It can write neither in the workspace nor read it: only its private clone."""
    outside = ws.root / "stolen"
    done = run_bisect(ws, eight[0], "sh", "-c", f"cat {ws.root}/config.yaml && touch {outside}")
    assert done.code == 3 and not outside.exists(), done
