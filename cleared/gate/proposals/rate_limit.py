"""How often programs may propose changes by themselves: what a person asks for in a session has no such limit."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from cleared.base.errors import Place, PolicyError
from cleared.changes.host import Host
from cleared.gate.proposals.proposal import Proposal
from cleared.trust.verification import Approvals


def check_rate_limit(
    host: Host, proposals: Iterable[Proposal], approvals: Approvals, paths: Iterable[str], now: datetime
) -> None:
    """Raises ``PolicyError`` where a proposal not made by a human would be one too many, or comes too soon.

    Days are those of ``business.timezone``.
    """
    limits = host.config.self_improvement
    zone = ZoneInfo(host.config.business.timezone)
    today = [
        p
        for p in proposals
        if not (p.by_human or p.is_asked)
        and datetime.fromisoformat(str(p.data["created_at"])).astimezone(zone).date() == now.astimezone(zone).date()
    ]
    if len(today) >= limits.max_changes_per_night:
        raise PolicyError(
            f"{len(today)} changes were proposed today by programs; that is the most",
            place=Place(field="self_improvement.max_changes_per_night"),
            remedy="Wait for tomorrow.",
        )
    for path in paths:
        mine = [p for p in today if path in p.paths]
        if len(mine) >= limits.max_changes_per_agent:
            raise PolicyError(
                f"{len(mine)} changes of it were proposed today by programs; that is the most",
                place=Place(path),
                remedy="Wait for tomorrow (self_improvement.max_changes_per_agent).",
            )
        versions = approvals.list_versions(path)
        if versions:
            rested = datetime.fromisoformat(versions[-1].at) + timedelta(hours=limits.cooldown_hours)
            if now < rested:
                raise PolicyError(
                    f"it was changed at {versions[-1].at}; programs leave it alone until {rested:%Y-%m-%dT%H:%M:%SZ}",
                    place=Place(path),
                    remedy="Wait until then (self_improvement.cooldown_hours).",
                )
