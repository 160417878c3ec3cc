"""Agents: what each does, what it did, which version counts; run one now, or try its working copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import Response

from cleared.base.errors import UsageError
from cleared.base.short_text import quote_text
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.gate.agent_stats import read_stats
from cleared.gate.proposals.agent_switch import switch_agent
from cleared.gate.proposals.change_text import describe_grants
from cleared.gate.proposals.crash_certificate import read_certificate_of
from cleared.gate.proposals.proposal_history import diff_version, read_history
from cleared.gate.proposals.rollback import name_before, roll_back_script, show_rollback
from cleared.review.action_request import ActionResult
from cleared.review.source_files import FileView
from cleared.runs import run_queries
from cleared.runs.approved_scripts import Scripts
from cleared.service.operations import agent_operations
from cleared.service.status_report import list_next_runs
from cleared.trust.approval_record import digest_of
from cleared.web.health_chart import draw_health
from cleared.web.long_work import Finish, Work
from cleared.web.page import PageRequest
from cleared.web.page_decisions import carry_out, may_change_what_runs
from cleared.web.work_pages import answer_when_done

_MAX_SAID: Final = 1_000
_VERBS: Final = {"roll-back": "Roll back", "disable": "Disable", "enable": "Enable"}


def list_agents(page: PageRequest) -> Response:
    """All agents."""
    host = page.site.open_host()
    due = {row["agent"]: row["local"] for row in list_next_runs(host)}
    healths = {stats.agent: draw_health(stats) for stats in read_stats(host)}
    return page.render("agents.html", agents=agent_operations.list_agents(host), due=due, healths=healths)


def show_agent(page: PageRequest) -> Response:
    """One agent in full."""
    return _render_agent(page, page.site.open_host(), page.part("name"), None)


def _render_agent(page: PageRequest, host: Host, name: str, outcome: Mapping[str, Any] | None) -> Response:
    due = {row["agent"]: row for row in list_next_runs(host)}
    (stats,) = read_stats(host, name)
    return page.render(
        "agent.html",
        agent=run_queries.read_agent(host, name),
        history=read_history(host, name),
        due=due.get(name),
        allowed=_describe_what_it_may(host, name),
        certificate=read_certificate_of(host, name),
        health=draw_health(stats) if stats.runs else None,
        runs=run_queries.read_runs(host, 20, name),
        outcome=outcome,
        digest=_live_digest(host, name),
        rollback=show_rollback(host, name),
        may_change=may_change_what_runs(page),
    )


def show_change(page: PageRequest) -> Response:
    """What a version of the agent changed in the one before."""
    name, proposal = page.part("name"), page.part("proposal")
    host = page.site.open_host()
    if proposal not in {line["proposal"] for line in read_history(host, name) if line["proposal"]}:
        raise UsageError(f"{name} has no version of {proposal[:40]!r}", remedy="Choose one from its page.")
    files = [FileView.from_diff(path, text) for path, text in diff_version(host, proposal).items()]
    return page.render("code.html", files=files, card_id="", is_change=True, back=f"/agents/{quote(name)}")


def _describe_what_it_may(host: Host, name: str) -> str:
    """What the version in the last commit may do, in words; empty where there is none."""
    path = host.layout.agent_path(name)
    with host.open_last_commit() as snapshot:
        data = snapshot.read_file(path)
        if data is None:
            return ""
        names = Scripts(host, snapshot).find_script_grants(data.decode("utf-8", "replace"), path)
    return describe_grants(names, host.registry) if names else "do nothing but calculate"


def _live_digest(host: Host, name: str) -> str:
    """The digest of the version in the last commit; empty where there is none."""
    with host.open_last_commit() as snapshot:
        data = snapshot.read_file(host.layout.agent_path(name))
    return digest_of(data) if data is not None else ""


def run_agent(page: PageRequest) -> Response:
    """Run it once, as ``cleared agent run`` does: one commit or nothing. A dry run keeps nothing."""
    host, name = page.site.open_host(), page.part("name")
    way = page.form.get("way")
    if way not in ("run", "dry-run"):
        raise UsageError("the form does not say how to run it", remedy="Load the page again.")

    def run(work: Work) -> Finish:
        host.on_call = work.count_call
        outcome = agent_operations.run_agent(host, name, way == "dry-run", None, None)
        return lambda asking: _show_outcome(asking, name, way == "run", outcome)

    title = f"Run of {name}" if way == "run" else f"Dry run of {name}"
    return answer_when_done(page, page.site.work.begin(title, run))


def _show_outcome(page: PageRequest, name: str, is_kept: bool, outcome: Mapping[str, Any]) -> Response:
    if not is_kept:
        return _render_agent(page, page.site.open_host(), name, outcome)
    text = outcome.get("message") or outcome["status"]
    error = outcome.get("error") or {}
    ok = outcome["status"] in ("succeeded", "waiting")
    said = text if ok else error.get("message", text)  # the script's words, or of what it read
    return page.go_to(f"/runs/{outcome['run_id']}", quote_text(said, _MAX_SAID), ok=ok)


def decide_agent(page: PageRequest) -> Response:
    """Roll the agent back, disable it, or enable it again."""
    name, verb, reason = page.part("name"), page.form.get("choice"), page.form.get("reason").strip()
    if verb not in _VERBS:
        raise UsageError("the form does not say what to do", remedy="Load the page again.")
    host = page.site.open_host()
    address = f"/agents/{quote(name)}"

    def decide() -> ActionResult:
        if verb != "roll-back":
            switch_agent(host, name, is_enabled=verb == "enable", reason=reason)
            return ActionResult(f"{name} is {verb}d", True)
        done = roll_back_script(host, name, reason)
        text = "the version before counts again" if done.restored else "there was no version before: it is gone"
        posted = f"; {count_noun(len(done.entries), 'entry that it posted stands', 'entries that it posted stand')}"
        return ActionResult(f"{name} is rolled back: {text}{posted if done.entries else ''}", True)

    def answer(result: ActionResult) -> Response:
        if not result.ok:
            return page.go_to(address, f"Not done: {result.text}", ok=False)
        return page.go_to(address if _live_digest(page.site.open_host(), name) else "/agents", result.text)

    path = host.layout.agent_path(name)
    shown = {path: page.form.get("digest"), name_before(path): page.form.get("before")}
    return carry_out(
        page, decide, shown, address, answer, what=f"{_VERBS[verb]} {name}", changes_what_runs=verb != "disable"
    )
