"""How agents do: runs and errors as attested, how much they book without asking, how often that was corrected, and
whether they are as sure as they are right. Of the newest runs only.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from cleared.base.terminal import count_noun
from cleared.changes.committed_cards import read_cards
from cleared.changes.host import Host
from cleared.domains.domain import RecordOutcome
from cleared.domains.installed_domains import load_domains
from cleared.gate.change_evidence import RunEvidence, read_newest_runs
from cleared.git import Snapshot
from cleared.runs.run_queries import read_agent, read_agents

MOST_RUNS: Final = 1_000
"""Of so many of its newest runs an agent is judged."""
_STEPS: Final = (Decimal("0.95"), Decimal("0.90"), Decimal("0.70"), Decimal(0))
"""The bounds of confidence, from the surest, by which it is compared with what persons decided."""


class AgentStats(Struct, frozen=True):
    """How one agent does. Shares are from 0 to 1, None where there is nothing to take a share of."""

    agent: str
    runs: int
    errors: int
    records: int
    """What its runs have added."""
    asked: int
    """Of these, those that a card asked about when they were made."""
    without_asking: Decimal | None
    """Of its records, the share that no card asked about."""
    corrected: Decimal | None
    """Of the records that it booked as sure, the share that a person corrected."""
    milliseconds: int | None
    """The median time of a run on this machine; None where no trace is left."""
    trend: Sequence[Mapping[str, Any]]
    """The same by month, oldest first: month, runs, errors, records, asked."""
    calibration: Sequence[Mapping[str, Any]]
    """By how sure it was: from, decided by a person, of these as it was, share."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "agent": self.agent,
            "runs": self.runs,
            "errors": self.errors,
            "records": self.records,
            "asked": self.asked,
            "without_asking": _as_text(self.without_asking),
            "corrected": _as_text(self.corrected),
            "milliseconds": self.milliseconds,
            "trend": list(self.trend),
            "calibration": list(self.calibration),
        }


def describe_health(stats: AgentStats) -> str:
    """``ingest: 31 runs, 1 error, 84 % done without asking, 2 % of that corrected later``"""
    said = [count_noun(stats.runs, "run"), count_noun(stats.errors, "error")]
    if stats.without_asking is not None:
        said.append(f"{stats.without_asking:.0%} done without asking")
    if stats.corrected is not None:
        said.append(f"{stats.corrected:.0%} of that corrected later")
    return f"{stats.agent}: {', '.join(said)}"


def read_stats(host: Host, name: str = "") -> list[AgentStats]:
    """How each agent does that has run, or one. Raises ``UsageError`` where there is none of that name."""
    names = [read_agent(host, name)["name"]] if name else [agent["name"] for agent in read_agents(host)]
    with host.open_last_commit() as snapshot:
        outcomes = _read_outcomes(host, snapshot)
        cards = read_cards(host, snapshot).values()
        asked = Counter(card.run_id for card in cards if card.record_id and card.run_id)
        stats = [_judge(host, snapshot, each, outcomes, asked) for each in names]
    return [each for each in stats if each.runs or name]


def list_run_outcomes(host: Host, snapshot: Snapshot) -> list[RecordOutcome]:
    """What became of all that runs have made, as far as this machine has their traces."""
    outcomes = _read_outcomes(host, snapshot)
    return [outcomes[record_id] for record_id in sorted(list_makers(host)) if record_id in outcomes]


def list_makers(host: Host) -> dict[str, str]:
    """Each record that a run made, and the agent that did, as far as this machine has their traces. What a dry run
    would have made is none."""
    return {name: str(trace["agent"]) for trace in host.traces.list_runs(MOST_RUNS) for name in _list_made(trace)}


def _list_made(trace: Mapping[str, Any]) -> Sequence[str]:
    return trace["entries"] or () if not trace["dry_run"] else ()


def _read_outcomes(host: Host, snapshot: Snapshot) -> dict[str, RecordOutcome]:
    outcomes: dict[str, RecordOutcome] = {}
    for domain in load_domains():
        outcomes |= domain.read_outcomes(host, snapshot)
    return outcomes


def _judge(
    host: Host, snapshot: Snapshot, agent: str, outcomes: Mapping[str, RecordOutcome], asked: Mapping[str, int]
) -> AgentStats:
    """``asked``: run → records that its cards ask about."""
    runs: list[RunEvidence] = []
    for run in read_newest_runs(host, snapshot, agent):
        runs.append(run)
        if len(runs) == MOST_RUNS:
            break
    traces = host.traces.list_runs(MOST_RUNS, agent)
    times = [each["duration_ms"] for each in traces if each["duration_ms"] is not None and not each["dry_run"]]
    made = dict.fromkeys(chain.from_iterable(map(_list_made, traces)))
    known = Counter(filter(None, map(outcomes.get, made)))
    sure = [each for each in known if each.confidence >= host.config.thresholds.auto_confirm]
    total = _sum_up(runs, asked)
    months: dict[str, list[RunEvidence]] = defaultdict(list)
    for run in runs:
        months[run.at[:7]].append(run)
    return AgentStats(
        agent,
        total["runs"],
        total["errors"],
        total["records"],
        total["asked"],
        _share(max(total["records"] - total["asked"], 0), total["records"]),
        _share(sum(known[each] for each in sure if each.agreed is False), sum(known[each] for each in sure)),
        round(statistics.median(times)) if times else None,
        [{"month": month, **_sum_up(months[month], asked)} for month in sorted(months)],
        list(_calibrate(known)),
    )


def _sum_up(runs: Sequence[RunEvidence], asked: Mapping[str, int]) -> dict[str, int]:
    return {
        "runs": len(runs),
        "errors": sum(run.failed for run in runs),
        "records": sum(run.made or 0 for run in runs),
        "asked": sum(asked.get(run.run, 0) for run in runs),
    }


def _calibrate(known: Mapping[RecordOutcome, int]) -> list[dict[str, Any]]:
    """By how sure it was: how often a person decided the same. What nobody has decided is not counted."""
    rows, below = [], Decimal(2)
    for least in _STEPS:
        decided = [each for each in known if each.agreed is not None and least <= each.confidence < below]
        count, agreed = sum(known[each] for each in decided), sum(known[each] for each in decided if each.agreed)
        rows.append(
            {
                "from": str(least),
                "decided": count,
                "agreed": agreed,
                "share": _as_text(_share(agreed, count)),
            }
        )
        below = least
    return rows


def _share(part: int, whole: int) -> Decimal | None:
    return (Decimal(part) / whole).quantize(Decimal("0.001")) if whole else None


def _as_text(share: Decimal | None) -> str | None:
    return None if share is None else str(share)
