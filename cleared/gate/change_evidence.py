"""What attested runs say of a change: the runs since it was approved, beside those before it.

Only what a machine that counts here has signed is evidence: whoever can push can write commits and cards, but no run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from cleared.base.short_text import parse_count
from cleared.base.terminal import count_noun
from cleared.changes.attestation import find_counting
from cleared.changes.attestation_lines import Attestation, list_shards, split_lines
from cleared.changes.consumed_events import ASKS
from cleared.changes.host import Host
from cleared.changes.taken_over import list_counting
from cleared.git import Snapshot
from cleared.runs.failed_runs import VIOLATES
from cleared.runs.outcome import MADE
from cleared.workspace.settings.model import AutoRevert

MAX_BEFORE: Final = 50
"""Of so many runs before the change it is known how the agent was."""
_MAX_SINCE: Final = 200
_MAX_CHANCE: Final = 0.0003
"""A rise that comes about by itself more often than this proves nothing. It is asked after each run, so it is small."""

_NEARLY: Final = 0.75
"""From so much of the rise on that is said, both versions are rehearsed."""
_LEAST_MORE: Final = 5
"""Cards: fewer may be chance, where counts prove nothing."""
_MIN_CHANCE: Final = 0.05
"""What would come about less often than this is not what the rate would be, had it risen by as much as is said."""


class RunEvidence(Struct, frozen=True):
    """What one attested run says of itself."""

    run: str
    at: str
    event: str
    """Kind and key: a delivery that is tried again is one event."""
    script: str
    """``PATH@BLOB`` of what ran."""
    failed: bool
    violations: int
    """Of invariants that held before it."""
    cards: int
    made: int | None
    """Records that it added; None where it does not say."""


class ChangeEvidence(Struct, frozen=True):
    """The runs before a change and since it, each oldest first."""

    before: Sequence[RunEvidence]
    since: Sequence[RunEvidence]


def read_evidence(host: Host, snapshot: Snapshot, agent: str, at: str, script: str, *, is_new: bool) -> ChangeEvidence:
    """The runs of ``agent`` around a change that was approved ``at``; ``script``: ``PATH@BLOB`` of what runs since.

    ``is_new``: that text came with the change, so that no run of another one is since.
    """
    before: list[RunEvidence] = []
    since: list[RunEvidence] = []
    for run in read_newest_runs(host, snapshot, agent):
        if run.at > at or (run.at == at and is_new and run.script == script):
            if run.script == script and len(since) < _MAX_SINCE:
                since.append(run)
            continue
        before.append(run)
        if len(before) == MAX_BEFORE:
            break
    return ChangeEvidence(before[::-1], since[::-1])


def find_reasons(
    evidence: ChangeEvidence, limits: AutoRevert, rehearse: Callable[[], tuple[int, int] | None] = lambda: None
) -> list[str]:
    """Why the change is to be taken back, one sentence each; empty where nothing speaks against it. ``rehearse``: how
    many cards the version before and this one open over the same runs, None where that cannot be said. It is asked only
    where there are more cards."""
    before, since = evidence.before, evidence.since
    reasons = []
    violating = [run for run in since if run.violations]
    if 0 < limits.invariant_violations <= sum(run.violations for run in violating):
        reasons.append(f"{count_noun(len(violating), 'run')} since would have broken what always holds")
    failed, now_failed = _count_failed(before), _count_failed(since)
    if limits.error_rate_increase and _has_risen(*failed, *now_failed, 1 + limits.error_rate_increase):
        reasons.append(
            f"{now_failed[0]} of {now_failed[1]} events failed since; before, {failed[0]} of {failed[1]} did"
        )
    queued, now_queued, unit = _count_cards(before, since)
    if _asks_more(queued, now_queued, limits.review_queue_spike, rehearse):
        reasons.append(
            f"{count_noun(now_queued[0], 'card')} for {count_noun(now_queued[1], unit)} since; before, "
            f"{count_noun(queued[0], 'card')} for {count_noun(queued[1], unit)}"
        )
    return reasons


def read_newest_runs(host: Host, snapshot: Snapshot, agent: str) -> Iterator[RunEvidence]:
    """The attested runs of an agent, newest first, as far as the order of the lines has them so."""
    counting = find_counting(host, snapshot)
    mark = f'"Agent":"{agent}"'.encode("ascii", "replace")
    for path in reversed(list_shards(snapshot)):
        lines = [line for line in split_lines(snapshot.read_file(path) or b"") if mark in line]
        for _, said in list_counting(snapshot, reversed(lines), counting):
            run = _parse_run(said)
            if run is not None and said.trailers.get("Agent") == agent:
                yield run


def _parse_run(said: Attestation) -> RunEvidence | None:
    trailers = said.trailers
    event, script = trailers.get("Event") or trailers.get("Attempt"), trailers.get("Script")
    if "Run" not in trailers or event is None or script is None:
        return None
    failed = "Attempt" in trailers and trailers.get("Outcome") != ASKS
    opened, made, violations = (said.statement.get(name) for name in ("opens", MADE, VIOLATES))
    return RunEvidence(
        trailers["Run"],
        said.at,
        event,
        script,
        failed,
        violations if type(violations) is int and violations > 0 else 0,
        len(opened) if isinstance(opened, dict) and not failed else 0,
        parse_count(made),
    )


def _count_failed(runs: Sequence[RunEvidence]) -> tuple[int, int]:
    """How many events failed in the end, and how many there were."""
    outcomes: dict[str, bool] = {}
    for run in runs:
        outcomes[run.event] = outcomes.get(run.event, True) and run.failed
    return sum(outcomes.values()), len(outcomes)


def _count_cards(
    before: Sequence[RunEvidence], since: Sequence[RunEvidence]
) -> tuple[tuple[int, int], tuple[int, int], str]:
    """Cards and what they are counted by: the records that were made, or the runs where some do not say."""
    well = [[run for run in runs if not run.failed] for runs in (before, since)]
    by_record = all(run.made is not None for runs in well for run in runs)
    counts = [(sum(r.cards for r in runs), sum(max(1, r.made or 0) if by_record else 1 for r in runs)) for runs in well]
    return counts[0], counts[1], "record" if by_record else "run"


def _asks_more(
    before: tuple[int, int], since: tuple[int, int], factor: float, rehearse: Callable[[], tuple[int, int] | None]
) -> bool:
    """Whether it is the change that opens ``factor`` times as many cards. Counts alone prove only a large rise: from
    one in two, none in twenty runs is large enough. Over the same runs, both versions tell more."""
    is_sure = bool(factor) and _has_risen(*before, *since, factor)
    is_likely = before[1] > 0 and since[0] * before[1] >= _NEARLY * factor * before[0] * since[1]
    if not factor or not (is_sure or (is_likely and since[0] >= _LEAST_MORE)):
        return False
    opened = rehearse()
    if opened is None:
        return is_sure
    return opened[1] >= factor * opened[0] and (is_sure or opened[1] - opened[0] >= _LEAST_MORE)


def _has_risen(before: int, of_before: int, since: int, of_since: int, factor: float) -> bool:
    """Whether a rate has risen, and may well be ``factor`` times what it was, as far as counts tell."""
    if not of_before or not of_since or not since:
        return False
    total, same, risen = before + since, of_since / of_before, factor * of_since / of_before
    is_rise = _chance_of(since, total, same / (1 + same)) < _MAX_CHANCE
    return is_rise and 1 - _chance_of(since + 1, total, risen / (1 + risen)) > _MIN_CHANCE


def _chance_of(least: int, total: int, share: float) -> float:
    """How likely so many or more of all occurrences fall to the time since, where ``share`` of them is to be expected
    there (the exact conditional test of two Poisson rates)."""
    logs = (
        math.lgamma(total + 1)
        - math.lgamma(k + 1)
        - math.lgamma(total - k + 1)
        + k * math.log(share)
        + (total - k) * math.log1p(-share)
        for k in range(least, total + 1)
    )
    return math.fsum(map(math.exp, logs))
