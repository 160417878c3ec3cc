"""``/metrics``: what a monitor asks for, in the text format of Prometheus; for programs that show a token. Of a
workspace, and of a whole fleet; what both have has one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from cleared.service.fleet.fleet_status import FleetStatus
from cleared.service.status_report import service_status
from cleared.web.fleet_pages import FleetPages
from cleared.web.program_requests import answer_program, require_scope, work_for_program
from cleared.web.site import Site

Sample = tuple[dict[str, str], float]
Family = tuple[str, str, list[Sample]]
_CARDS: Final = "Cards that wait for a person."
_CALLS: Final = "Calls of webhooks whose run has not ended."


async def show_metrics(request: Request, site: Site) -> Response:
    """The state of the service and of its agents."""
    await require_scope(request, site.clients, "read")
    return _answer_metrics(await work_for_program(request, lambda: render_metrics(site)))


async def show_fleet_metrics(request: Request) -> Response:
    """The state of the fleet, for whoever has a token of it."""
    fleet: FleetPages = request.app.state.fleet

    async def answer() -> Response:
        await require_scope(request, fleet.clients, "read")
        return _answer_metrics(await work_for_program(request, lambda: render_fleet_metrics(fleet.read_status())))

    return await answer_program(request, answer())


def _answer_metrics(text: str) -> Response:
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def render_metrics(site: Site) -> str:
    """The page. Raises ``ClearedError`` where the workspace cannot be read."""
    status = service_status(site.open_host())
    agents: list[dict[str, Any]] = status["agents"]
    runs = [(each["name"], each["last_run"]) for each in agents if each["last_run"] is not None]
    families: list[Family] = [
        ("cleared_service_up", "Whether cleared up serves this workspace.", [({}, float(status["up"]))]),
        ("cleared_cards_open", _CARDS, [({}, float(status["cards"]))]),
        (
            "cleared_deliveries",
            "Events that wait for their run.",
            [({"state": state}, float(count)) for state, count in status["deliveries"].items()],
        ),
        (
            "cleared_webhook_calls_waiting",
            _CALLS,
            [({}, float(site.calls.count_waiting()))],
        ),
        (
            "cleared_troubles",
            "What a person should look at: the last lines of cleared status.",
            [({}, float(len(status["trouble"])))],
        ),
        (
            "cleared_agents",
            "Agents that something starts, by whether they may run.",
            [({"state": state}, float(count)) for state, count in sorted(Counter(a["state"] for a in agents).items())],
        ),
        (
            "cleared_last_run_timestamp_seconds",
            "When the agent ran last.",
            [({"agent": name}, datetime.fromisoformat(run["at"]).timestamp()) for name, run in runs],
        ),
        (
            "cleared_last_run_failed",
            "Whether the agent's last run failed.",
            [({"agent": name}, float(run["status"] in ("failed", "killed"))) for name, run in runs],
        ),
    ]
    return "".join(_render_family(*family) for family in families)


def render_fleet_metrics(status: FleetStatus) -> str:
    """The page of a fleet. ``cleared_jobs_ended_total`` begins anew where the database was lost."""
    families: list[Family] = [
        ("cleared_service_up", "Whether a worker of the fleet gives signs of life.", [({}, float(status.alive > 0))]),
        ("cleared_cards_open", _CARDS, [({}, float(status.cards))]),
        ("cleared_webhook_calls_waiting", _CALLS, [({}, float(status.calls))]),
        ("cleared_troubles", "Workspaces with a problem.", [({}, float(status.problems))]),
        ("cleared_workspaces", "Workspaces of the fleet.", [({}, float(status.workspaces))]),
        (
            "cleared_workers",
            "Workers that are let in, and that give signs of life.",
            [({"state": "trusted"}, float(status.workers)), ({"state": "alive"}, float(status.alive))],
        ),
        (
            "cleared_jobs",
            "Jobs that wait and that are being done; for_newer: of those that wait, what this version cannot do.",
            [
                ({"state": "waiting"}, float(status.waiting)),
                ({"state": "doing"}, float(status.doing)),
                ({"state": "for_newer"}, float(status.for_newer)),
            ],
        ),
        ("cleared_oldest_job_seconds", "How long a job waits at most.", [({}, status.oldest_seconds)]),
        (
            "cleared_schedule_lag_seconds",
            "How long a workspace is due at most, and nobody is at it.",
            [({}, status.late_seconds)],
        ),
        ("cleared_files_waiting", "Dropped files that are not imported yet.", [({}, float(status.files))]),
        ("cleared_requests_waiting", "Runs that persons asked for.", [({}, float(status.requests))]),
        (
            "cleared_jobs_ended_total",
            "Jobs by how they ended.",
            [({"outcome": outcome}, float(jobs)) for outcome, jobs in sorted(status.ended.items())],
        ),
        (
            "cleared_workspace_cards_open",
            "Cards of a workspace; of the hundred that need a person most.",
            [({"workspace": each.name}, float(each.cards)) for each in status.neediest],
        ),
        (
            "cleared_workspace_trouble",
            "Whether a workspace has a problem; of the same.",
            [({"workspace": each.name}, float(each.has_problem)) for each in status.neediest],
        ),
    ]
    return "".join(_render_family(*family) for family in families)


def _render_family(name: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escape_label(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{inner}}} {value:.15g}" if inner else f"{name} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
