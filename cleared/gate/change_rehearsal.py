"""Whether a change is to blame for the cards that its runs opened: over what they had, the version before is rehearsed,
too. Counts alone cannot tell a bad version from a month in which strangers send more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cleared.base.errors import ClearedError
from cleared.changes.host import Host
from cleared.gate.change_evidence import RunEvidence
from cleared.gate.dry_run import DryRun, Setup, dry_run_script
from cleared.gate.past_runs import DryRunInput, find_past_run
from cleared.git import Repository
from cleared.runs.approved_scripts import Scripts

_MOST: Final = 20
"""Runs that are rehearsed: the newest."""


def rehearse_run(host: Host, repo: Repository, scripts: Scripts, agent: str, occasion: DryRunInput) -> DryRun:
    """What the version of ``scripts`` would have done in a past run. Raises ``ClearedError`` where it cannot be run."""
    return dry_run_script(
        Setup(host, scripts),
        repo,
        occasion.snapshot,
        scripts.load_agent(agent),
        label=occasion.label,
        inputs=occasion.inputs,
        now=occasion.now or host.clock.now(),
        event=occasion.event,
        answers=occasion.model_answers(host),
    )


def rehearse_both(
    host: Host, repo: Repository, agent: str, since: Sequence[RunEvidence], versions: tuple[Scripts, Scripts]
) -> tuple[int, int] | None:
    """How many cards each version opens over the same runs. None where a run cannot be rehearsed with both, or asks
    less than it did: then the counts stand. ``versions``: the one before, and the one of now."""
    runs = [run for run in since if not run.failed][-_MOST:]
    asked = [0, 0]
    try:
        for run in runs:
            occasion = find_past_run(host, repo, agent, run.run)
            if occasion is None:
                return None
            for number, scripts in enumerate(versions):
                done = rehearse_run(host, repo, scripts, agent, occasion)
                if done.error is not None:
                    return None
                asked[number] += len(done.cards)
    except ClearedError:
        return None
    before, now = asked
    return (before, now) if runs and sum(run.cards for run in runs) <= now else None
