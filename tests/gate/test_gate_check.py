"""``cleared agent check``: every stage, on the real type checker, sandbox and git."""

from __future__ import annotations

import pytest
from harness import Workspace

from cleared.sandbox.construct_lint import lint_script

HEADER = '"""\nname: Probe\ntrigger: on_demand\ndescription: a probe\n"""\n'


def report(ws: Workspace, body: str, header: str = HEADER, code: int = 1) -> dict[str, dict[str, object]]:
    (ws.root / "agents/probe.py").write_text(header + body, encoding="utf-8")
    before = ws.state()
    done = ws("agent", "check", "probe", "--json")
    assert done.code == code, done
    assert not ws.state().changed_since(before) and ws.state().head == before.head
    return {s["stage"]: s for s in done.json["probe"]["stages"]}


def found(ws: Workspace, body: str, stage: str) -> list[tuple[str, int]]:
    return [(f["rule"], f["line"]) for f in report(ws, body)[stage]["findings"]]  # type: ignore[attr-defined]


POST = 'journal_add_double(date="2025-01-03", description="x", debit_account={}, credit_account=1010, amount="1"{})\n'

TYPES = [
    pytest.param("accounts_get('1010')\n", "type:invalid-argument-type", id="wrong type"),
    pytest.param("accounts_get()\n", "type:missing-argument", id="missing argument"),
    pytest.param(POST.format(5020, ', statuss="x"'), "type:unknown-argument", id="misspelt keyword"),
    pytest.param("x = no_such_thing(1)\n", "type:unresolved-reference", id="unknown name"),
    pytest.param('for t in importer_parse("x"):\n    t["amuont"]\n', "type:invalid-key", id="unknown key"),
    pytest.param('for t in importer_parse("x"):\n    t["amount"] * 1.5\n', "type:unsupported-operator", id="float"),
    pytest.param('journal_query(status="confirmed")\n', "type:invalid-argument-type", id="unknown status"),
]


@pytest.mark.parametrize(("body", "rule"), TYPES)
def test_a4_type_errors_are_found_before_any_primitive_runs(ws: Workspace, body: str, rule: str) -> None:
    """A4: wrong type, missing argument, misspelt keyword, unknown name or status: refused, with the line."""
    stages = report(ws, body)
    rules = [(f["rule"], f["line"]) for f in stages["types"]["findings"]]  # type: ignore[attr-defined]
    line = 6 + body.rstrip("\n").count("\n")
    assert (rule, line) in rules
    assert stages["rehearsal"]["status"] == "skipped"


TRAPS = [
    pytest.param(POST.format(9999, ""), "unknown-account", id="unknown account"),
    pytest.param("accounts_get(account_id=9999)\n", "unknown-account", id="unknown account read"),
    pytest.param(
        'journal_add(date="2025-01-03", description="x", lines=[{"account_id": 9999, "debit": 1}])\n',
        "unknown-account",
        id="in a line",
    ),
    pytest.param('journal_update_status("2025-01-001", "user-confirmed")\n', "human-status", id="human status"),
    pytest.param("x = round(1.005, 2)\n", "round-money", id="round"),
    pytest.param("x = sorted([1], key=lambda a: accounts_exists(a))\n", "primitive-in-callback", id="key lambda"),
    pytest.param("x = list(map(accounts_exists, [1]))\n", "primitive-in-callback", id="map"),
    pytest.param("ctx_log = 3\n", "shadowed-primitive", id="shadowed"),
    pytest.param('for a in [1]:\n    break\n    ctx_log("x")\n', "unreachable", id="unreachable"),
]


@pytest.mark.parametrize(("body", "rule"), TRAPS)
def test_traps_are_found_on_the_syntax_tree(ws: Workspace, body: str, rule: str) -> None:
    assert rule in [r for r, _ in found(ws, body, "traps")]


def test_n5_closing_an_account_names_every_line_that_uses_it(ws: Workspace) -> None:
    """N5: the chart of accounts is a type."""
    chart = ws.root / "accounts/chart-of-accounts.csv"
    lines = chart.read_text().splitlines()
    lines[0] += ",code,currency,status,closed_on"
    lines[1:] = [line + (",,,closed,2025-01-01" if line.startswith("5020,") else ",,,,") for line in lines[1:]]
    chart.write_text("\n".join(lines) + "\n")
    ws.git("commit", "-qam", "config: close 5020")
    done = ws("agent", "check", "--all", "--json")
    assert done.code == 1
    named = [
        f["message"] for s in done.json["ingest"]["stages"] for f in s["findings"] if f["rule"] == "closed-account"
    ]
    assert named == []  # the starter computes its account id: the host refuses that at run time
    (ws.root / "agents/probe.py").write_text(HEADER + POST.format(5020, ""))
    stages = ws("agent", "check", "probe", "--json").json["probe"]["stages"]
    first = next(f for s in stages for f in s["findings"])
    assert (first["rule"], first["line"]) == ("closed-account", 6)


def test_d1_a_lint_failure_never_reaches_the_rehearsal(ws: Workspace) -> None:
    """D1: stages in order; static ones all run, a blocker there stops before the rehearsal."""
    stages = report(ws, "import os\naccounts_get(9999)\n")
    assert list(stages) == ["lint", "traps", "types", "rehearsal", "invariants", "watched", "behaviour", "regression"]
    assert [s["status"] for s in stages.values()][:2] == ["failed", "failed"]
    assert {s["status"] for s in list(stages.values())[3:]} == {"skipped"}


def test_d2_the_rehearsal_catches_what_only_running_shows(ws: Workspace) -> None:
    """D2: an account id that is computed is refused by the host in the rehearsal; nothing is written."""
    stages = report(ws, "n = 9998\n" + POST.format("n + 1", ""))
    assert stages["traps"]["status"] == stages["types"]["status"] == "passed"
    finding = stages["rehearsal"]["findings"][0]  # type: ignore[index]
    assert "9999 does not exist" in finding["message"] and finding["line"] == 7


def test_a_script_that_skips_a_line_fails_over_the_made_up_month(ws: Workspace) -> None:
    body = 'for f in importer_scan():\n    importer_parse(f["name"])\n    importer_mark_processed(f["name"])\n'
    findings = report(ws, body)["invariants"]["findings"]
    assert "sample data" in findings[0]["message"]  # type: ignore[index]


def test_d16_acting_differently_when_watched_is_a_finding(ws: Workspace) -> None:
    """D16: the same effects whether ``ctx_dry_run()`` is true or not."""
    stages = report(ws, "if not ctx_dry_run():\n    " + POST.format(5020, ""))
    assert stages["rehearsal"]["status"] == "passed"
    assert stages["watched"]["status"] == "failed"


def test_the_starters_pass_over_real_files_waiting_and_taken(ws: Workspace) -> None:
    ws.drop("january.csv")
    for _ in range(2):
        done = ws("agent", "check", "ingest", "--json")
        assert done.code == 0, done
        rehearsals = done.json["ingest"]["stages"][3]["details"]["rehearsals"]
        assert [r["entries"] for r in rehearsals] == [0, 9, 4]
        ws.run("ingest")
    assert "files of run" in rehearsals[2]["label"]


def test_grants_bound_what_a_script_may_name(ws: Workspace) -> None:
    header = HEADER.replace("on_demand\n", "on_demand\ngrants: [ctx.log]\n")
    stages = report(ws, 'ctx_log("x")\naccounts_list()\n', header)
    rules = [f["rule"] for s in stages.values() for f in s["findings"]]  # type: ignore[attr-defined]
    assert rules == ["grants", "type:unresolved-reference"]


@pytest.mark.parametrize("data", [b"\x00", b"\xff\xfe", b"x" * 1_000_000, b"(" * 5_000, "x = '\u202e'".encode()])
def test_hostile_sources_get_findings(ws: Workspace, data: bytes) -> None:
    (ws.root / "agents/probe.py").write_bytes(data)
    done = ws("agent", "check", "probe")
    assert done.code == 1 and "lint" in done.out and "Traceback" not in done.err


def test_the_synthetic_month_speaks_the_workspaces_own_formats(ws: Workspace) -> None:
    config = ws.root / "config.yaml"
    text = config.read_text().replace("format: chase_checking", "format: mybank")
    text = text.replace(
        "import:\n",
        "import:\n  profiles:\n    mybank:\n"
        "      columns: { date: Tag, description: Text, debit: Soll, credit: Haben }\n"
        '      date_format: "%d.%m.%Y"\n      delimiter: ";"\n      decimal: ","\n      skip_lines: 2\n',
        1,
    )
    config.write_text(text)
    done = ws("agent", "check", "ingest", "--json")
    assert done.code == 0, done
    assert done.json["ingest"]["stages"][3]["details"]["rehearsals"][1]["entries"] == 9


def test_usage(ws: Workspace) -> None:
    assert ws("agent", "check").code == 2
    assert ws("agent", "check", "nobody").code == 2
    assert ws("agent", "check", "ingest", "--all").code == 2


def test_an_import_of_dates_names_the_primitive_for_them() -> None:
    (finding,) = lint_script("from datetime import date\n", "agents/probe.py")
    assert finding.rule == "import" and "ctx_today()" in finding.remedy
    (finding,) = lint_script("import json\n", "agents/probe.py")
    assert "ctx_today()" not in finding.remedy


def test_check_shows_what_would_keep_it_from_being_proposed(ws: Workspace) -> None:
    """A test that was removed by hand blocks every proposal, and the check says so."""
    ws.drop("january.csv")
    ws.ok("test", "add", ws.run("ingest")["run_id"])
    path = ws.json("test", "list")[0]["path"]
    ws.git("rm", "-q", path)
    ws.git("commit", "-qm", "less")
    done = ws("agent", "check", "ingest")
    assert done.code == 1 and "✗ proposal" in done.out and "regression-changed" in done.out
