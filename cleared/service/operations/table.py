"""The operations. Reading, trying, proposing, and running an agent: a decision is never among them.

What programs may ask about how things came to be: proposals, and what was decided about an agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from cleared.base.errors import Place, WorkspaceError
from cleared.changes.audit.record_violations import describe_violations
from cleared.changes.host import Host
from cleared.domains.installed_domains import DomainTable, load_domains
from cleared.gate.operation import Operation, Parameter
from cleared.gate.proposals.crash_certificate import read_certified_agent
from cleared.gate.proposals.proposal_history import read_history, read_proposals
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.review import queue_cards
from cleared.review.explanation import explain_record
from cleared.runs import run_queries
from cleared.service.operations import agent_operations, result_schemas


def list_proposals(host: Host, status: str) -> list[dict[str, Any]]:
    """The proposals, newest first, without their checks and effects. ``status``: open, decided or all."""
    keys = ("id", "status", "title", "card_id", "author", "created_at", "decided_by", "decided_at", "reason")
    return [
        {k: p[k] for k in keys} | {"files": [f["path"] for f in p["files"]]}
        for p in reversed(read_proposals(host))
        if status == "all" or (p["status"] == "open") == (status == "open")
    ]


def show_proposal(host: Host, id: str) -> dict[str, Any]:
    """A proposal with its code as a diff against what is approved now. Raises ``UsageError``."""
    shown = read_shown_proposal(host, id)
    return shown.to_dict() | {"code": dict(shown.code)}


_AGENT: Final = Parameter("name", "string", doc="The agent's name: the stem of its file in agents/.")
_TEXTS: Final = Parameter(
    "texts",
    "files",
    None,
    doc="Proposed files, path → whole text (null: remove it). Paths: agents/NAME.py, scripts/NAME.py, rules/NAME.md, "
    "templates/NAME.md, tests/cases/NAME.json. What is not named is as approved. Without it, working copies are taken.",
)
_PAYLOAD: Final = Parameter("data", "any", None, doc="What ctx_event() gives the script as its payload.")

_AGENT_OPERATIONS: Final = (
    Operation(
        "agent.list",
        "Every agent, without its source.",
        "read",
        agent_operations.list_agents,
        result=result_schemas.AGENTS,
    ),
    Operation(
        "agent.show",
        "One agent: its header, source, findings and certificate.",
        "read",
        read_certified_agent,
        (_AGENT,),
        result_schemas.AGENT,
    ),
    Operation(
        "agent.history",
        "Everything that was proposed and decided about an agent, oldest first.",
        "read",
        read_history,
        (_AGENT,),
        result_schemas.AGENT_HISTORY,
    ),
    Operation(
        "agent.check",
        "All checks of the gate over an agent, or over a whole change: what propose would find. Nothing is proposed.",
        "check",
        agent_operations.check_agent,
        (Parameter("name", "string", None, doc="The agent. Without it, all of texts together."), _TEXTS),
        result_schemas.CHECK_REPORT,
    ),
    Operation(
        "agent.dry_run",
        "Run an unapproved version of an agent over the books and files of now. Nothing is kept of it.",
        "check",
        agent_operations.dry_run_agent,
        (_AGENT, _TEXTS, _PAYLOAD),
        result_schemas.RUN_RESULT,
    ),
    Operation(
        "agent.compare",
        "What another version of an agent would have done in its past runs, compared with the approved version.",
        "check",
        agent_operations.compare_agent,
        (_AGENT, _TEXTS, Parameter("runs", "integer", 50, least=1, most=1_000, doc="Over how many past runs.")),
        result_schemas.IMPACT,
    ),
    Operation(
        "agent.propose",
        "Put a change through the gate and propose it, with a card for a person who decides. Nothing goes live by it.",
        "propose",
        agent_operations.propose_agents,
        (
            _TEXTS,
            Parameter(
                "targets",
                "names",
                None,
                doc="Instead of texts: names of agents, or paths, whose working copies are proposed.",
            ),
            Parameter("message", "string", "", doc="Why, in plain words; it is shown on the card."),
        ),
        result_schemas.NEW_PROPOSAL,
    ),
    Operation(
        "agent.run",
        "Run an agent once: one commit or nothing. The result tells how it ended, failures too.",
        "run",
        agent_operations.run_agent,
        (
            _AGENT,
            Parameter("dry_run", "boolean", False, doc="Run the working copy, and commit nothing."),
            _PAYLOAD,
            Parameter("again", "string", None, doc="Card of the failed run, or held question, to run it for again."),
        ),
        result_schemas.RUN_RESULT,
    ),
)

_RECORD_OPERATIONS: Final = (
    Operation(
        "run.list",
        "The newest runs first.",
        "read",
        run_queries.read_runs,
        (
            Parameter("limit", "integer", 20, least=1, doc="At most so many."),
            Parameter("agent", "string", None, doc="Only of this agent."),
        ),
        result_schemas.RUN_SUMMARIES,
    ),
    Operation(
        "run.show",
        "One run with every call.",
        "read",
        lambda host, id: run_queries.read_run(host, id),
        (Parameter("id", "string", doc="Its id, or a beginning or the last part of it."),),
        result_schemas.RUN,
    ),
    Operation(
        "queue.list",
        "The review queue, oldest first.",
        "read",
        queue_cards.read_cards,
        (Parameter("status", "string", "open", ("open", "resolved", "all"), doc="Which cards."),),
        result_schemas.CARDS,
    ),
    Operation(
        "queue.show",
        "One card of the review queue.",
        "read",
        lambda host, id: queue_cards.read_card(host, id),
        (Parameter("id", "string", doc="Its id, the beginning of it, or its entry's id."),),
        result_schemas.CARD,
    ),
    Operation(
        "proposal.list",
        "The proposals, newest first.",
        "read",
        list_proposals,
        (Parameter("status", "string", "open", ("open", "decided", "all"), doc="Which proposals."),),
        result_schemas.PROPOSALS,
    ),
    Operation(
        "proposal.show",
        "One proposal: its card, checks, what it would have done, and its code as a diff.",
        "read",
        show_proposal,
        (Parameter("id", "string", doc="Such as P7."),),
        result_schemas.PROPOSAL,
    ),
    Operation(
        "check",
        "Every violation in what is recorded; none is an empty list.",
        "read",
        describe_violations,
        result=result_schemas.VIOLATIONS,
    ),
    Operation(
        "why",
        "Why a record is as it is: what it was made from, run, line of the script, approval, later decisions.",
        "read",
        lambda host, id: explain_record(host, id).data,
        (Parameter("id", "string", doc="Its id, such as 2025-01-015."),),
        result_schemas.EXPLANATION,
    ),
    Operation(
        "primitives.list",
        "Every primitive a script may call.",
        "read",
        agent_operations.list_primitives,
        result=result_schemas.PRIMITIVES,
    ),
)


def _put_together() -> Mapping[str, Operation]:
    """The operations of the runtime and of the domains. Raises ``WorkspaceError`` where a domain has one of a name that
    is taken, or one that does more than read: what proposes and runs goes through the gate here."""
    found = {o.name: o for o in (*_AGENT_OPERATIONS, *_RECORD_OPERATIONS)}
    for domain in load_domains():
        for module in map(import_module, domain.operation_modules):
            for operation in module.OPERATIONS:
                if operation.name in found or operation.effect != "read":
                    problem = "is there already" if operation.name in found else "does more than read"
                    raise WorkspaceError(
                        f"the domain {domain.name!r} cannot be used: its operation {operation.name!r} {problem}",
                        place=Place(file="config.yaml", field="domains.plugins"),
                        remedy="Mend the domain, or remove it: cleared config unset domains.plugins.",
                    )
                found[operation.name] = operation
    return found


OPERATIONS: Final[Mapping[str, Operation]] = DomainTable(_put_together)
"""Name → operation."""
