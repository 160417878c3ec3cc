"""Job types about the workspace: its queue, its runs, its agents. None of them decides anything.

A job imports what it needs when it runs, so that the job types can be listed without loading any of it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from cleared.base.terminal import count_noun
from cleared.changes.workspace_opening import open_for_job
from cleared.gate.examination import check_agents
from cleared.gate.manual_runs import run_now
from cleared.jobs.job_process import JobContext, JobFailed
from cleared.jobs.job_types import JobType
from cleared.review.queue_cards import read_cards
from cleared.runs.attempt import Event
from cleared.runs.run_queries import read_agents, read_runs
from cleared.triggers.requested_jobs import event_depth_after

AGENT_RUN: Final = "cleared.work.loop.workspace_jobs:agent_run"
TASK_TURN: Final = "cleared.work.task_runs.task_jobs:task_turn"
_OPERATIONAL: Final = (".cleared",)
_MAX_LISTED: Final = 200
_MAX_RUNS: Final = 50


def queue_summary(job: JobContext) -> str:
    """How many cards wait, of which kinds, and since when."""
    waiting = read_cards(open_for_job(job.root))
    for card in waiting[:_MAX_LISTED]:
        print(f"{card['id']} {card['kind']} {card['created_at']} {card['title']}")  # noqa: T201  (a job's output)
    if not waiting:
        return "the queue is empty"
    kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(c["kind"] for c in waiting).most_common())
    oldest = min(c["created_at"] for c in waiting)
    return f"{count_noun(len(waiting), 'card')} to decide ({kinds}), the oldest of {oldest}"


def runs_report(job: JobContext) -> str:
    """How the last runs ended, by agent."""
    recent = read_runs(open_for_job(job.root), _MAX_RUNS)
    for run in recent:
        why = f" {run['error']}" if run.get("error") else ""
        print(f"{run['started_at']} {run['agent']} {run['status']}{why}")  # noqa: T201
    if not recent:
        return "no agent has run yet"
    ended = ", ".join(f"{count} {how}" for how, count in Counter(str(r["status"]) for r in recent).most_common())
    return f"the last {count_noun(len(recent), 'run')}: {ended}"


def agent_run(job: JobContext) -> str:
    """As ``cleared agent run``. Raises ``JobFailed`` where the run did."""
    host = open_for_job(job.root)
    # Runs may start one another by events: this run is one further in the chain of the run that requested it.
    depth = event_depth_after(host, job.by) if job.by.startswith("run:") else 0
    result = run_now(host, job.target, event=Event(depth=depth))
    if result.error:
        raise JobFailed(f"{job.target} {result.status}: {result.error}")
    made = f", commit {result.commits[0][:10]}" if result.commits else ", nothing to commit"
    return f"{job.target} {result.status} (run {result.run_id}{made})"


def gate_check_all(job: JobContext) -> str:
    """As ``cleared agent check --all``. Raises ``JobFailed`` where an agent did not pass."""
    host = open_for_job(job.root)
    names = [a["name"] for a in read_agents(host) if (host.root / a["file"]).is_file()]
    wrong = []
    for name, stages in check_agents(host, names).items():
        bad = [stage.check for stage in stages if stage.status == "failed"]
        print(f"{name}: {'not passed: ' + ', '.join(bad) if bad else 'passed'}")  # noqa: T201
        wrong += [name] if bad else []
    if wrong:
        raise JobFailed(f"{count_noun(len(wrong), 'agent')} did not pass the gate: {', '.join(wrong)}")
    return f"{count_noun(len(names), 'agent')} passed the gate"


def improve(job: JobContext) -> str:
    """As ``cleared improve``, under the budgets of ``self_improvement``."""
    from cleared.changes.workspace_opening import open_for_job
    from cleared.gate.proposals.improving import improve_agents

    done = improve_agents(open_for_job(job.root), is_asked=False)
    for line in [*(each.says for each in done.proposed), *(each.title for each in done.asked)]:
        print(line)  # noqa: T201
    for line in (*done.findings, *done.held):
        print(line)  # noqa: T201
    return done.describe()


JOB_TYPES: Final = (
    JobType(
        "queue_summary",
        "What waits in the review queue.",
        function="cleared.work.loop.workspace_jobs:queue_summary",
        default_target="review queue",
        writes=_OPERATIONAL,
    ),
    JobType(
        "runs_report",
        "How the last runs of the agents went.",
        function="cleared.work.loop.workspace_jobs:runs_report",
        default_target="last runs",
        writes=_OPERATIONAL,
    ),
    JobType(
        "agent_run",
        "Run an agent, as cleared agent run does (short: agent:NAME).",
        function=AGENT_RUN,
        target="agent",
        writes=(".",),
        timeout=3600.0,
        rotates=False,
    ),
    JobType(
        "improve",
        "What agents could learn from decisions, as proposals, as cleared improve does.",
        function="cleared.work.loop.workspace_jobs:improve",
        default_target="all agents",
        writes=(".",),
        timeout=3600.0,
        rotates=False,
    ),
    JobType(
        "gate_check_all",
        "Every check of the gate over all agents.",
        function="cleared.work.loop.workspace_jobs:gate_check_all",
        default_target="all agents",
        writes=_OPERATIONAL,
        timeout=1800.0,
    ),
)
