"""Agents: what each does, what it did, which version counts; run one now, or try its working copy."""

from __future__ import annotations

from starlette.responses import Response

from cleared import queries
from cleared.errors import UsageError
from cleared.operations import agent_operations
from cleared.proposals.proposal_history import read_history
from cleared.service.status_report import upcoming_runs
from cleared.web.page import PageRequest


def list_agents(page: PageRequest) -> Response:
    """All agents."""
    host = page.site.open_host()
    due: dict[str, str] = {}
    for row in upcoming_runs(host, 31):
        due.setdefault(row["agent"], row["local"])
    return page.render("agents.html", agents=agent_operations.list_agents(host), due=due)


def show_agent(page: PageRequest) -> Response:
    """One agent in full."""
    host, name = page.site.open_host(), page.part("name")
    return page.render(
        "agent.html", agent=queries.read_agent(host, name), history=read_history(host, name),
        runs=queries.read_runs(host, 20, name), outcome=None,
    )  # fmt: skip


def run_agent(page: PageRequest) -> Response:
    """Run it once, as ``cleared agent run`` does: one commit or nothing. A dry run keeps nothing."""
    host, name = page.site.open_host(), page.part("name")
    way = page.form.get("way")
    if way not in ("run", "dry-run"):
        raise UsageError("the form does not say how to run it", remedy="Load the page again.")
    outcome = agent_operations.run_agent(host, name, way == "dry-run", None, None)
    if way == "run":
        text = outcome.get("message") or outcome["status"]
        error = outcome.get("error") or {}
        ok = outcome["status"] in ("succeeded", "waiting")
        return page.go_to(f"/runs/{outcome['run_id']}", text if ok else error.get("message", text), ok=ok)
    host = page.site.open_host()
    return page.render(
        "agent.html", agent=queries.read_agent(host, name), history=read_history(host, name),
        runs=queries.read_runs(host, 20, name), outcome=outcome,
    )  # fmt: skip
