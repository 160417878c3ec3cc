"""The table of operations: each gives what its schema says, refuses what is wrong, and never decides anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from harness import CLOCK, Workspace, take_ok
from proposing import text
from tables import define, put_prices

from cleared.base.clock import clock_from
from cleared.base.errors import PolicyError, UsageError
from cleared.changes.host import Host
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.operation import MAX_FILES, InvalidArgument
from cleared.service.operations.table import OPERATIONS

PROBE = {"agents/probe.py": text("len(accounts_list())")}
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "agent.show": {"name": "ingest"},
    "agent.history": {"name": "ingest"},
    "agent.check": {"texts": PROBE},
    "agent.dry_run": {"name": "probe", "texts": PROBE},
    "agent.compare": {"name": "ingest", "texts": {}},
    "agent.propose": {"texts": PROBE, "message": "to see"},
    "agent.run": {"name": "ingest"},
    "queue.show": {"id": "2025-01-002"},
    "table.rows": {"name": "prices"},
    "why": {"id": "2025-01-001"},
}


@pytest.fixture
def host(posted: Workspace) -> Host:
    return open_at(posted.root)


def open_at(root: Path) -> Host:
    return open_workspace(root, clock=clock_from(CLOCK))


def call(host: Host, operation: str, /, **arguments: Any) -> Any:
    return OPERATIONS[operation].call_function(host, arguments, author="test:client")


def test_each_result_is_as_its_schema_says(posted: Workspace, host: Host) -> None:
    """H17: what a client is promised is what it gets; one workspace with something in every list."""
    posted.ok("period", "close", "2024-12")
    define(posted)
    put_prices(posted, ("bolt", "4.20"))
    proposed = call(host, "agent.propose", **ARGUMENTS["agent.propose"])
    for name, operation in OPERATIONS.items():
        arguments = dict(ARGUMENTS.get(name, {}))
        if name == "proposal.show":
            arguments = {"id": proposed["id"]}
        if name == "run.show":
            arguments = {"id": call(host, "run.list")[0]["run_id"]}
        if name == "agent.compare":
            arguments["texts"] = {"agents/ingest.py": posted.read("agents/ingest.py") + "\n"}
        result = call(host, name, **arguments)
        jsonschema.Draft202012Validator.check_schema(dict(operation.result))
        jsonschema.Draft202012Validator.check_schema(operation.parameters_schema)
        jsonschema.validate(result, operation.result)
        jsonschema.validate(arguments, operation.parameters_schema)
        assert result or name in ("check",), name


def test_a_change_is_tried_and_proposed_from_texts(posted: Workspace, host: Host) -> None:
    """H1: the live scripts and the working copies stay as they are."""
    before = posted.state()
    assert call(host, "agent.check", texts=PROBE)["passed"]
    assert call(host, "agent.check", name="probe", texts=PROBE)["passed"]
    assert call(host, "agent.dry_run", name="probe", texts=PROBE)["result"] > 10
    assert posted.state() == before
    proposed = call(host, "agent.propose", texts=PROBE, message="to see")
    assert (proposed["status"], proposed["is_new"], proposed["files"]) == ("open", True, ["agents/probe.py"])
    assert call(host, "agent.propose", texts=PROBE)["is_new"] is False
    assert not (posted.root / "agents/probe.py").exists()
    shown = call(host, "proposal.show", id=proposed["id"])
    assert shown["author"] == {"name": "test:client", "human": False}
    assert "+len(accounts_list())" in shown["code"]["agents/probe.py"]
    assert [p["id"] for p in call(host, "proposal.list")] == [proposed["id"]]
    assert call(host, "proposal.list", status="decided") == []
    posted.ok("agent", "reject", proposed["id"], "--reason", "no")
    assert [p["status"] for p in call(host, "proposal.list", status="decided")] == ["rejected"]


def test_the_agent_of_a_text_is_what_a_dry_run_runs(posted: Workspace, host: Host) -> None:
    """Neither the working copy nor the approved version, and shared scripts of the same change with it."""
    posted.put("agents/probe.py", text("'working copy'"))
    texts = {
        "agents/probe.py": text('script_run("part")'),
        "scripts/part.py": '"""\nname: Part\n"""\n"from texts"\n',
    }
    assert call(host, "agent.dry_run", name="probe", texts=texts)["result"] == "from texts"
    assert call(host, "agent.dry_run", name="probe")["result"] == "working copy"
    with pytest.raises(PolicyError, match="does not pass the checks"):
        call(host, "agent.dry_run", name="probe", texts={"agents/probe.py": text("import os")})


def test_a_limit_that_holds_is_in_the_first_answer(posted: Workspace, host: Host) -> None:
    """CARD 2: not only when all the work is done. It is a program's; a session of a person has none."""
    assert call(host, "agent.check", texts=PROBE)["limit"] is None
    proposed = call(host, "agent.propose", texts=PROBE)
    take_ok(posted, "agent", "approve", proposed["id"])
    changed = {"agents/probe.py": PROBE["agents/probe.py"] + "\n"}
    limit = call(host, "agent.check", texts=changed)["limit"]
    assert "programs leave it alone until" in limit and "cooldown_hours" in limit
    assert call(host, "agent.check", name="probe", texts=changed)["limit"] == limit


def test_findings_come_back_as_data(host: Host) -> None:
    report = call(host, "agent.check", texts={"agents/probe.py": text("import os\nnonsense()")})
    assert not report["passed"]
    assert {f["rule"] for f in report["findings"]} >= {"import"} and report["findings"][0]["remedy"]
    with pytest.raises(UsageError, match="nothing to check"):
        call(host, "agent.check")


@pytest.mark.parametrize("path", ["config.yaml", "./config.yaml"])
@pytest.mark.parametrize("name", ["agent.propose", "agent.check", "agent.dry_run", "agent.compare"])
def test_settings_are_not_for_programs(posted: Workspace, host: Host, name: str, path: str) -> None:
    """H17: not even to try them: they say what holds the tried script back."""
    named = {} if name == "agent.propose" else {"name": "ingest"}
    with pytest.raises(PolicyError, match="may not propose settings"):
        call(host, name, **named, texts={path: "sandbox: {confine: off}\n"})
    posted.put("config.yaml", posted.read("config.yaml") + "\ngate: {history_runs: 1}\n")
    with pytest.raises(PolicyError, match="may not propose settings"):
        call(host, "agent.propose", targets=[f"{path}/"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "1 to 100 files"),
        ([], "must be of type object"),
        ({f"agents/a{n}.py": "" for n in range(MAX_FILES + 1)}, "1 to 100 files"),
        ({"../x.py": ""}, "no file that can be proposed"),
        ({"/etc/passwd": ""}, "no file that can be proposed"),
        ({"books/2025/01/journal.csv": ""}, "no file that can be proposed"),
        ({"agents/approvals/x.json": ""}, "no file that can be proposed"),
        ({"agents/" + "a" * 400 + ".py": ""}, "no file that can be proposed"),
        ({"agents/a.py": 1}, "must be a text, or null"),
        ({"agents/a.py": "\ud800"}, "not valid Unicode"),
        ({"agents/..py": ""}, "is not a name"),
        ({"agents/a\x00.py": ""}, "cannot be seen"),
    ],
)
def test_files_that_cannot_be_proposed_are_refused(host: Host, texts: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call(host, "agent.check", texts=texts)


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("agent.show", {}, "name"),
        ("agent.show", {"name": 1}, "name"),
        ("agent.show", {"nmae": "x"}, "nmae"),
        ("run.list", {"limit": 0}, "limit"),
        ("run.list", {"limit": True}, "limit"),
        ("agent.compare", {"name": "ingest", "runs": 1_001}, "runs"),
        ("agent.show", {"name": "\ud800"}, "name"),
        ("agent.dry_run", {"name": "ingest", "data": ["\ud800"]}, "data"),
        ("agent.dry_run", {"name": "ingest", "data": {"x": float("nan")}}, "data"),
        ("agent.propose", {"texts": PROBE, "message": "\udcff"}, "message"),
        ("queue.list", {"status": "closed"}, "status"),
        ("agent.propose", {"targets": "ingest"}, "targets"),
        ("agent.propose", {"targets": [1]}, "targets"),
    ],
)
def test_a_wrong_argument_is_named(host: Host, name: str, arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        call(host, name, **arguments)
    assert refused.value.place is not None and refused.value.place.field == field


def test_texts_and_targets_exclude_each_other(host: Host) -> None:
    for arguments in ({}, {"targets": []}, {"texts": PROBE, "targets": ["ingest"]}):
        with pytest.raises(UsageError, match="either texts or targets"):
            call(host, "agent.propose", **arguments)


def test_what_proposes_says_for_whom(host: Host) -> None:
    with pytest.raises(ValueError, match="needs an author"):
        OPERATIONS["agent.propose"].call_function(host, {"texts": PROBE})


def test_an_agent_may_be_named_like_a_file(posted: Workspace, host: Host) -> None:
    posted.put("agents/config.yaml.py", text("1"))
    assert call(host, "agent.check", name="config.yaml")["passed"]


def test_no_operation_decides() -> None:
    """H17: approving, rejecting, answering, trusting, setting: none of it is in the table, under any name."""
    forbidden = ("approve", "reject", "answer", "trust", "confirm", "set", "close", "reopen", "void", "key", "rollback")
    assert not [name for name in OPERATIONS if name.rpartition(".")[2] in forbidden]
    assert {o.effect for o in OPERATIONS.values()} == {"read", "check", "propose", "run"}
    assert [o.name for o in OPERATIONS.values() if o.effect in ("propose", "run")] == ["agent.propose", "agent.run"]
