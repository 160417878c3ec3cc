"""``/metrics`` of a fleet's server, and ``cleared fleet status --json``: one source."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleets import FleetOfOne, end
from harness import CLOCK, Workspace, chase, refused
from held_pushes import hold_push
from program_client import Program
from running import eventually
from signed_calls import make_called, send
from web_client import Server

pytestmark = pytest.mark.slow


def read_metrics(server: Server, token: str) -> dict[str, float]:
    page = Program(server, token=token).send("GET", "/metrics")
    assert page.status == 200 and page.headers["content-type"].startswith("text/plain"), page
    lines = [line for line in page.body.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_a_monitor_sees_the_whole_fleet(fleet: FleetOfOne, tmp_path: Path) -> None:
    fleet.work("one", CLOCK)
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    fleet.owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
    token = fleet.desk.json("token", "add", "monitor", "--fleet")["token"]
    of_acme = fleet.desk.json("token", "add", "monitor")["token"]
    with fleet.serving() as server:
        for wrong in ("", of_acme, "cleared_nobody"):
            assert Program(server, token=wrong).send("GET", "/metrics").status == 401
        assert Program(server, token=token).send("GET", "/w/acme/metrics").status == 401
        assert Program(server, token=token).send("POST", "/w/acme/api/status").status == 401
        found = read_metrics(server, token)
        assert found['cleared_jobs{state="waiting"}'] == 1 and found["cleared_files_waiting"] == 1
        assert found["cleared_oldest_job_seconds"] > 0 and found["cleared_service_up"] == 0
        # It was due while nobody looked.
        assert found["cleared_schedule_lag_seconds"] > 0
        worker = fleet.worker("one").start()
        eventually(lambda: not fleet.owner.json("status", "acme")["files"])
        eventually(lambda: read_metrics(server, token)['cleared_jobs{state="doing"}'] == 0)
        found = read_metrics(server, token)
        assert found["cleared_service_up"] == found['cleared_workers{state="alive"}'] == 1
        assert found["cleared_cards_open"] == found['cleared_workspace_cards_open{workspace="acme"}'] == 1
        assert found['cleared_jobs_ended_total{outcome="done"}'] >= 2
        assert found["cleared_oldest_job_seconds"] == found["cleared_schedule_lag_seconds"] == 0
        end(worker)
        fleet.query("UPDATE fleet_workspaces SET signature = 'none'")
        fleet.make_due(CLOCK)
        fleet.work("one", CLOCK)
        found = read_metrics(server, token)
        assert found['cleared_jobs_ended_total{outcome="failed"}'] == found["cleared_troubles"] == 1
        status = fleet.owner.json("status")
        assert status["problems"] == 1 and status["cards"] == 1 and status["ended"]["failed"] == 1
        fleet.desk.ok("token", "remove", "monitor", "--fleet")
        assert Program(server, token=token).send("GET", "/metrics").status == 401
    assert fleet.desk.json("token", "list", "--fleet") == []
    assert [each["name"] for each in fleet.desk.json("token", "list")] == ["monitor"]


def test_each_figure_is_true(fleet: FleetOfOne, tmp_path: Path) -> None:
    """One of each: a file, a call, a run that is asked for, a job that is on, one for a newer version, a problem; and
    ``status`` says the same."""
    secret = make_called(fleet)
    fleet.add_other("beta")
    fleet.work("one", CLOCK)
    fleet.worker("two")
    token = fleet.desk.json("token", "add", "monitor", "--fleet")["token"]
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    with fleet.serving() as server:
        fleet.query("UPDATE fleet_workspaces SET due = NULL")
        fleet.query("UPDATE fleet_workspaces SET problem = 'damaged', cards = 3 WHERE name = 'beta'")
        assert send(server, secret, "m1", {"order": 7})[0] == 202
        held = hold_push(fleet.shared, tmp_path)
        worker = fleet.worker("one").start()
        eventually(Path(f"{held}-waits").exists)
        fleet.owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
        fleet.query("UPDATE procrastinate_jobs SET queue_name = 'cleared-99' WHERE status = 'todo'")
        fleet.owner("run", "acme", "monthly_summary", "--wait", "0")
        found, status = read_metrics(server, token), fleet.owner.json("status")
        named = {
            "cleared_service_up": 1,
            "cleared_cards_open": 3,
            "cleared_webhook_calls_waiting": 1,
            "cleared_troubles": 1,
            "cleared_workspaces": 2,
            'cleared_workers{state="trusted"}': 2,
            'cleared_workers{state="alive"}': 1,
            'cleared_jobs{state="waiting"}': 2,
            'cleared_jobs{state="doing"}': 1,
            'cleared_jobs{state="for_newer"}': 1,
            "cleared_files_waiting": 1,
            "cleared_requests_waiting": 1,
            'cleared_workspace_cards_open{workspace="acme"}': 0,
            'cleared_workspace_cards_open{workspace="beta"}': 3,
            'cleared_workspace_trouble{workspace="acme"}': 0,
            'cleared_workspace_trouble{workspace="beta"}': 1,
        }
        times = {"cleared_oldest_job_seconds", "cleared_schedule_lag_seconds"}
        ended = {f'cleared_jobs_ended_total{{outcome="{name}"}}': count for name, count in status["ended"].items()}
        assert {name: value for name, value in found.items() if name not in times} == named | ended
        assert found.keys() - named.keys() - ended.keys() == times and set(ended.values()) == {0, 2}
        ones = ("calls", "problems", "alive", "doing", "for_newer", "files", "requests")
        assert {status[name] for name in ones} == {1}
        assert (status["cards"], status["workspaces"], status["workers"], status["waiting"]) == (3, 2, 2, 2)
        held.unlink()
        end(worker)


def test_a_token_of_a_fleet_needs_one(ws: Workspace) -> None:
    refused(ws("token", "add", "monitor", "--fleet"), 2, "belongs to no fleet")
