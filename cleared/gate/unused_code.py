"""What of approved scripts nobody needs: branches that no run has taken lately, shared scripts that no agent runs."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.gate.dead_branches import find_dead_branches
from cleared.gate.dry_run import Setup, dry_run_script
from cleared.gate.past_runs import DryRunInput, read_past_runs
from cleared.gate.reach_marks import ReachMarks
from cleared.git import Repository
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.script_source import normalise_text, parse_script
from cleared.sandbox.used_primitives import find_grants

_LEAST_RUNS: Final = 20
"""Of fewer it says nothing that a branch was not taken: what comes once a month has not come."""
_MOST_LINES: Final = 5


def list_live_agents(scripts: Scripts) -> list[str]:
    """The agents of a commit that may run."""
    folder, snapshot = scripts.host.layout.agents_dir, scripts.snapshot
    files = {f"{folder}/{name}": name.removesuffix(".py") for name in sorted(snapshot.list_folder(folder))}
    texts = {path: snapshot.read_file(path) for path in files if path.endswith(".py")}
    approvals = scripts.approvals
    return [files[p] for p, data in texts.items() if data is not None and approvals.verify_agent(p, data).may_run]


def describe_unused_scripts(scripts: Scripts, agents: Iterable[str]) -> list[str]:
    """The shared scripts of a commit that none of these agents runs, one sentence each."""
    host, snapshot = scripts.host, scripts.snapshot
    used: set[str] = set()
    for agent in agents:
        path = host.layout.agent_path(agent)
        text = (snapshot.read_file(path) or b"").decode("utf-8", "replace")
        used |= find_grants(text, path, host.registry, scripts.read_shared_source)[1]
    names = (name.removesuffix(".py") for name in snapshot.list_folder(host.layout.scripts_dir) if name.endswith(".py"))
    return [
        f"{host.layout.script_path(name)}: no agent runs it. Is it needed still?" for name in sorted({*names} - used)
    ]


def describe_unused_branches(host: Host, repo: Repository, scripts: Scripts, agent: str) -> str:
    """Where it has branches that no run took, in one sentence; empty where every one was, or there are too few runs."""
    past = read_past_runs(host, repo, agent, host.config.gate.history_runs)
    occasions = [each for each in past if isinstance(each, DryRunInput)]
    if len(occasions) < _LEAST_RUNS:
        return ""
    script = scripts.load_agent(agent)
    tree = parse_script(normalise_text(script.source), script.file)
    if not isinstance(tree, ast.Module):
        return ""
    marks = ReachMarks()
    marked = replace(script, source=marks.mark_script(tree, script.file))
    dead = {id(n) for branch, _ in find_dead_branches(tree) for each in branch.statements for n in ast.walk(each)}
    missed = {
        n: mark
        for n, mark in enumerate(marks.marks)
        if mark.outcome is None and mark.nodes and not mark.is_change and not mark.nodes & dead
    }
    for each in occasions:
        if not missed:
            return ""
        ran = dry_run_script(
            Setup(host, scripts),
            repo,
            each.snapshot,
            marked,
            label=each.label,
            inputs=each.inputs,
            now=each.now or host.clock.now(),
            event=each.event,
            answers=each.model_answers(host),
        )
        if ran.error is not None:  # as with a later version, over older books
            return ""
        for number in marks.read_reached(ran.printed):
            missed.pop(number, None)
    outer = [
        m for m in missed.values() if not any(m is not other and m.nodes < other.nodes for other in missed.values())
    ]
    if not outer:
        return ""
    lines = list_first([f"{mark.line} ({mark.text[:60]})" for mark in sorted(outer, key=lambda m: m.line)], _MOST_LINES)
    return f"{script.file}: none of {count_noun(len(occasions), 'run')} came to line {lines}. Is it needed still?"
