"""What programs may ask about agents: look at them, try a change, propose it, run them. Never to decide about one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleared.base.errors import PolicyError, UsageError
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.examination import Gate
from cleared.gate.lint_rules import finding_to_dict, result_to_dict
from cleared.gate.manual_runs import run_command, run_now
from cleared.gate.operation import settings_refusal
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.proposal import load_proposals
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.gate.proposals.submission import check_rate_limit, propose_changes
from cleared.primitives.registry.projections import describe_primitive
from cleared.runs import run_queries
from cleared.runs.attempt import Event
from cleared.service.notify.script_messages import send_after_run
from cleared.workspace.location import Layout

Texts = Mapping[str, bytes | None]


def list_agents(host: Host) -> list[dict[str, Any]]:
    """Every agent, without its source."""
    return [{k: v for k, v in agent.items() if k != "source"} for agent in run_queries.read_agents(host)]


def list_primitives(host: Host) -> list[dict[str, Any]]:
    """Every primitive: signature, effect, grant, documentation, JSON Schema of its parameters."""
    return [describe_primitive(primitive) for primitive in host.registry.values()]


def run_agent(host: Host, name: str, dry_run: bool, data: Any, again: str | None) -> dict[str, Any]:
    """Run an agent once (see ``gate.manual_runs.run_command``)."""
    result = run_command(host, name, dry_run=dry_run, data=data, again=again)
    if result.messages:
        result.warnings += send_after_run(host, result)
    return result.to_json_object()


def check_agent(host: Host, name: str | None, texts: Texts | None) -> dict[str, Any]:
    """All checks of the gate: over an agent, or, without ``name``, over ``texts`` as they would be proposed."""
    if name is None and texts is None:
        raise UsageError("there is nothing to check", remedy="Give name, texts or both.")
    with Gate(host) as gate:
        limit = _find_limit(host, gate, [host.layout.agent_path(name)] if name is not None else list(texts or ()))
        if name is not None:
            results = {host.layout.agent_path(name): gate.check_agent(name, texts=texts)}
            findings = list(dict.fromkeys(f for found in results.values() for r in found for f in r.findings))
            passed = all(r.status == "passed" for found in results.values() for r in found)
        else:
            report = gate.examine(gate.gather_candidate(list(texts or ()), texts=texts))
            results, findings, passed = report.results, report.findings, report.passed
        return {
            "passed": passed,
            "stages": {file: [result_to_dict(r) for r in found] for file, found in results.items()},
            "findings": [finding_to_dict(f) for f in findings],
            "limit": limit,
        }


def _find_limit(host: Host, gate: Gate, paths: list[str]) -> str | None:
    """What would keep a program from proposing these files, said before it has done all the work."""
    try:
        proposals = load_proposals(CommittedSource(gate.snapshot))
        check_rate_limit(host, proposals, gate.scripts.approvals, paths, host.clock.now())
    except PolicyError as error:
        return str(error)
    return None


def dry_run_agent(host: Host, name: str, texts: Texts | None, data: Any) -> dict[str, Any]:
    """Run an agent of ``texts``, or its working copy, over what is there now; nothing is kept."""
    event = Event(payload=data) if data is not None else None
    return run_now(host, name, dry_run=True, event=event, texts=texts).to_json_object()


def compare_agent(host: Host, name: str, texts: Texts | None, runs: int) -> dict[str, Any]:
    """What an agent of ``texts``, or its working copy, would have done differently in its last ``runs`` runs."""
    with Gate(host) as gate:
        impact = gate.compare_with_approved(name, runs, texts=texts)
    return {**impact.to_dict(), "warnings": impact.find_warnings()}


def propose_agents(
    host: Host, targets: list[str] | None, texts: Texts | None, message: str, author: Author
) -> dict[str, Any]:
    """Propose ``texts``, or the working copies of ``targets``. Settings are not for programs to propose.

    Raises as ``gate.proposals.submission.propose_changes``.
    """
    if bool(targets) == bool(texts):
        raise UsageError("give either texts or targets", remedy="texts: path → text; targets: names of agents.")
    if any(target.removeprefix("./").rstrip("/") == Layout.config_file for target in targets or ()):
        raise settings_refusal()
    proposal, is_new = propose_changes(host, targets or [], texts=texts, message=message, author=author)
    shown = read_shown_proposal(host, proposal.folder).to_dict()
    return {
        "id": proposal.id,
        "status": proposal.status,
        "title": proposal.title,
        "is_new": is_new,
        "card_id": proposal.card,
        "card": shown["card"],
        "files": proposal.paths,
        "warnings": shown["behaviour"]["warnings"],
        "next": f"A person decides: cleared agent approve {proposal.id}, or reject {proposal.id}.",
    }
