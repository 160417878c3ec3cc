"""Agents that something starts are examined over what starts them."""

from __future__ import annotations

import pytest
from harness import Workspace, take_ok
from proposing import propose

HEARS = (
    '"""\nname: hears\ntrigger: event\nevent: [statement.*]\n"""\n'
    'rows = ctx_event()["payload"]["rows"]\nctx_emit("counted", rows + 1)\n'
)


def test_an_agent_is_rehearsed_over_the_newest_event_it_would_hear(ws: Workspace) -> None:
    ws.put("agents/hears.py", HEARS)
    refused = ws("agent", "propose", "hears", "--json")
    assert refused.code == 1 and "NoneType" in refused.out, "there has been no such event yet"
    ws.ok("event", "emit", "statement.read", "--data", '{"rows": 3}')
    made = propose(ws, "hears")
    ws.ok("event", "emit", "statement.read", "--data", '{"rows": 40}')
    done = take_ok(ws, "agent", "approve", made["id"])
    assert "stale" not in done.err, "the event is part of what was pinned"


def test_an_agent_can_be_tried_with_a_payload(ws: Workspace) -> None:
    ws.put("agents/hears.py", HEARS)
    assert ws.run("hears", "--dry-run", "--data", '{"rows": 3}')["status"] == "dry_run"
    wrong = ws("agent", "run", "hears", "--dry-run", "--data", "{")
    assert wrong.code == 2 and "--data is not JSON" in wrong.err


def test_scheduled_and_watching_agents_have_their_payloads_in_a_rehearsal(ws: Workspace) -> None:
    body = 'ctx_event()["payload"]["due"][:4]\n'
    ws.put("agents/due.py", f'"""\nname: due\ntrigger: schedule\nschedule: 0 6 * * *\n"""\n{body}')
    assert propose(ws, "due")["status"] == "open"
    body = 'n = 0\nfor name in ctx_event()["payload"]["files"]:\n    n = n + len(name)\nn\n'
    ws.put("agents/seen.py", f'"""\nname: seen\ntrigger: file_watch\nwatch: import/*.csv\n"""\n{body}')
    assert propose(ws, "seen")["status"] == "open"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("trigger: schedule\nschedule: 0 6 * * *", "T06:00:00Z"),
        ("trigger: file_watch\nwatch: import/*.csv", ".000000-"),
        ("trigger: event\nevent: [run.failed]", "/run.failed"),
        ("trigger: webhook\nsample: {}", "hook/msg_"),
    ],
)
def test_a_script_cannot_tell_that_it_is_rehearsed_by_the_id_of_its_event(
    ws: Workspace, header: str, expected: str
) -> None:
    """The ids have the form that those of real events have: what posts only beside them is seen."""
    body = f"if not ({expected!r} in ctx_event()['id'] and 'sample' not in ctx_event()['id']):\n    1 / 0\n"
    ws.put("agents/sly.py", f'"""\nname: sly\n{header}\n"""\n{body}')
    assert propose(ws, "sly")["status"] == "open"


def test_past_runs_are_held_again_over_the_events_they_had(ws: Workspace) -> None:
    """In the comparison with the approved version, and as tests."""
    ws.ok("event", "emit", "statement.read", "--data", '{"rows": 3}')
    ws.put("agents/hears.py", HEARS)
    take_ok(ws, "agent", "approve", propose(ws, "hears")["id"])
    run = ws.run("hears", "--data", '{"rows": 3}')["run_id"]
    assert '\nData: {"rows":3}\n' in ws.git("log", "-1", "--format=%B")
    case = ws.json("test", "add", run)
    assert case
    ws.put("agents/hears.py", HEARS.replace("rows + 1", "rows + 2"))
    done = ws("agent", "propose", "hears", "--json")
    assert done.code == 1 and "tests/cases/hears-" in done.err and "payload 5" in done.err
    ws.put("agents/hears.py", HEARS + "# a remark\n")
    assert propose(ws, "hears")["status"] == "open"
