"""What programs may ask about how things came to be: proposals, and what was decided about an agent."""

from __future__ import annotations

from typing import Any

from cleared.changes.host import Host


def list_proposals(host: Host, status: str) -> list[dict[str, Any]]:
    """The proposals, newest first, without their checks and effects. ``status``: open, decided or all."""
    from cleared.gate.proposals.proposal_history import read_proposals

    keys = ("id", "status", "title", "card_id", "author", "created_at", "decided_by", "decided_at", "reason")
    return [
        {k: p[k] for k in keys} | {"files": [f["path"] for f in p["files"]]}
        for p in reversed(read_proposals(host))
        if status == "all" or (p["status"] == "open") == (status == "open")
    ]


def show_proposal(host: Host, id: str) -> dict[str, Any]:
    """A proposal with its code as a diff against what is approved now. Raises ``UsageError``."""
    from cleared.gate.proposals.shown_proposal import read_shown_proposal

    shown = read_shown_proposal(host, id)
    return shown.proposal.to_dict() | {"code": dict(shown.code)}


def show_history(host: Host, name: str) -> list[dict[str, Any]]:
    """What was proposed and decided about an agent, oldest first. Raises ``UsageError``."""
    from cleared.gate.proposals.proposal_history import read_history

    return read_history(host, name)
