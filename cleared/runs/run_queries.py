"""Agents and runs as plain data, for whoever asks: the command line, RPC, pages and models show the same answers.

Everything is read from the last commit and the traces of this machine. Times are UTC ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import UsageError
from cleared.changes.host import Host
from cleared.changes.trace import TraceStore
from cleared.domains.installed_domains import parse_header
from cleared.git import Snapshot, history
from cleared.sandbox.construct_lint import lint_script
from cleared.trust.verification import Approvals, remedy_of
from cleared.workspace.location import name_script


def read_agents(host: Host) -> list[dict[str, Any]]:
    """Every agent: its header, whether it is approved, and whether its working copy is another.

    ``state``: approved, starter, not approved, not trusted, quarantined, not committed. ``remedy``: what to do so that
    it may run, with the command; empty where it may.
    """
    from cleared.runs.approved_scripts import Scripts

    with host.open_last_commit() as snapshot:
        names = {p for p in snapshot.list_entries(host.layout.agents_dir) if p.endswith(".py") and p.count("/") == 1}
        folder = host.root / host.layout.agents_dir
        if folder.is_dir():
            names |= {f"{host.layout.agents_dir}/{p.name}" for p in folder.glob("*.py") if not p.name.startswith(".")}
        approvals = Scripts(host, snapshot).approvals
        return [_agent_data(host, snapshot, approvals, path) for path in sorted(names)]


def read_agent(host: Host, name: str) -> dict[str, Any]:
    """One agent, with its source and what is wrong with it. Raises ``UsageError`` where there is none."""
    from cleared.runs.approved_scripts import Scripts

    path = host.layout.agent_path(name)
    with host.open_last_commit() as snapshot:
        agent = _agent_data(host, snapshot, Scripts(host, snapshot).approvals, path)
        if agent["state"] == "missing":
            names = [a["name"] for a in read_agents(host)]
            raise UsageError(f"there is no agent {name!r}", remedy=f"Known: {', '.join(names) or 'none yet'}.")
        return agent


_STATE_NAMES: Final = {"unapproved": "not approved", "untrusted": "not trusted", "elsewhere": "other books"}


def _agent_data(host: Host, snapshot: Snapshot, approvals: Approvals, path: str) -> dict[str, Any]:
    head = snapshot.read_file(path)
    full = host.root / path
    work = full.read_bytes() if full.is_file() and not full.is_symlink() else None
    approval, remedy, name = None, "", name_script(path)
    if head is None:
        state = "missing" if work is None else "not committed"
    else:
        standing = approvals.verify_agent(path, head)
        approval, remedy = standing.reason, remedy_of(name, standing)
        state = _STATE_NAMES.get(standing.state, standing.state)
    source = (head if head is not None else work or b"").decode("utf-8", errors="replace")
    header, findings = parse_header(source, path, kind="agent")
    findings = [*findings, *lint_script(source, path)] if source else []
    return {
        "name": name,
        "title": header.name if header else None,
        "description": header.description if header else None,
        "trigger": list(header.triggers) if header else [],
        "schedule": header.schedule if header else None,
        "watch": list(header.watch) if header else [],
        "event": list(header.event) if header else [],
        "file": path,
        "state": state,
        "edited": head is not None and work != head,
        "approval": approval,
        "remedy": remedy,
        "findings": [
            {"rule": f.rule, "message": f.message, "place": str(f.place), "remedy": f.remedy} for f in findings
        ],
        "source": source,
    }


def read_runs(host: Host, limit: int = 20, agent: str | None = None) -> list[dict[str, Any]]:
    """The newest runs first; where the traces are gone, what the commits still say of them."""
    runs = [_run_summary(r) for r in TraceStore(host.layout.state_dir).list_runs(limit, agent)]
    if len(runs) < limit or any(r["status"] == "killed" for r in runs):
        in_commits = {r["run_id"]: r for r in _committed_runs(host, limit)}
        runs = [_with_commit_outcome(r, in_commits.pop(r["run_id"], None)) for r in runs]
        runs += [r for r in in_commits.values() if agent in (None, r["agent"])]
    # Several may have begun in one second: those stay in the order they came in, newest first.
    return sorted(runs, key=lambda r: str(r["started_at"]), reverse=True)[:limit]


def _with_commit_outcome(run: dict[str, Any], commit: Mapping[str, Any] | None) -> dict[str, Any]:
    """The run; where it was killed after its commit was made, that is how it ended."""
    if commit is None or run["status"] != "killed":
        return run
    return {**run, **{key: commit[key] for key in ("status", "commits", "message", "error")}}


def _run_summary(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "run_id": run["id"],
        "agent": run["agent"],
        "status": run["status"],
        "started_at": run["started_at"],
        "duration_ms": run["duration_ms"],
        "message": run["message"],
        "commits": run["commits"] or [],
        "entries": len(run["entries"] or []),
        "cards": len(run["cards"] or []),
        "error": (run["error"] or {}).get("message"),
    }


def _committed_runs(host: Host, limit: int) -> list[dict[str, Any]]:
    with host.open_for_reading():
        pass
    return [
        {
            "run_id": c.trailers["Run"],
            "agent": c.trailers.get("Agent", ""),
            "status": "failed" if "Attempt" in c.trailers else "succeeded",
            "started_at": c.trailers.get("Clock", format_iso(c.when)),
            "duration_ms": None,
            "message": c.subject,
            "commits": [c.id],
            "entries": None,
            "cards": None,
            "error": c.subject if "Attempt" in c.trailers else None,
        }
        for c in history.read_log(host.root, limit * 3, grep="Run: ")
        if "Run" in c.trailers
    ]


def read_run(host: Host, run_id: str) -> dict[str, Any]:
    """One run with its calls, by its id, or a beginning or the last part of it that no other run has.

    Raises ``UsageError`` where there is none, or several.
    """
    traces = TraceStore(host.layout.state_dir)
    briefs = {str(b["run_id"]): b for b in _committed_runs(host, 1_000)} if len(run_id) >= 4 else {}
    committed_ids = [i for i in briefs if i.startswith(run_id) or i.endswith(f"-{run_id}")]
    run_ids = sorted({*traces.find_run_ids(run_id), *committed_ids})
    if len(run_ids) > 1 and run_id not in run_ids:
        raise UsageError(
            f"{run_id!r} fits {len(run_ids)} runs: {', '.join(run_ids[:3])}{' …' if len(run_ids) > 3 else ''}",
            remedy="Give more of the id.",
        )
    for identity in [run_id] if run_id in run_ids else run_ids:
        run = traces.find_run(identity)
        if run is not None:
            del run["id"], run["pid"]
            return _with_commit_outcome({"run_id": identity, **run}, briefs.get(identity))
        note = "the trace of this run is not on this machine; its commit is"
        return {**briefs[identity], "calls": [], "more_calls": [], "note": note}
    raise UsageError(f"there is no run {run_id!r}", remedy="cleared run list shows the newest.")
