"""``/metrics``: what a monitor asks for, in the text format of Prometheus; for programs that show a token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from cleared.changes.host import Host
from cleared.service.status_report import service_status
from cleared.triggers.webhook_calls import count_waiting_calls
from cleared.web.program_requests import require_scope, work_for_program
from cleared.web.site import Site

Sample = tuple[dict[str, str], float]


async def show_metrics(request: Request, site: Site) -> Response:
    """The state of the service and of its agents."""
    await require_scope(request, site, "read")
    text = await work_for_program(request, lambda: render_metrics(site.open_host()))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


def render_metrics(host: Host) -> str:
    """The page. Raises ``ClearedError`` where the workspace cannot be read."""
    status = service_status(host)
    agents: list[dict[str, Any]] = status["agents"]
    runs = [(each["name"], each["last_run"]) for each in agents if each["last_run"] is not None]
    families: list[tuple[str, str, list[Sample]]] = [
        ("cleared_service_up", "Whether cleared up serves this workspace.", [({}, float(status["up"]))]),
        ("cleared_cards_open", "Cards that wait for a person.", [({}, float(status["cards"]))]),
        (
            "cleared_deliveries",
            "Events that wait for their run.",
            [({"state": state}, float(count)) for state, count in status["deliveries"].items()],
        ),
        (
            "cleared_webhook_calls_waiting",
            "Calls of webhooks whose run has not ended.",
            [({}, float(count_waiting_calls(host.root)))],
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


def _render_family(name: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} gauge"]
    for labels, value in samples:
        inner = ",".join(f'{key}="{_escape_label(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{inner}}} {value:.15g}" if inner else f"{name} {value:.15g}")
    return "\n".join(lines) + "\n"


def _escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
