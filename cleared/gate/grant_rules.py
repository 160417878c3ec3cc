"""Lint rules about the header's ``grants:``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Final

from cleared.gate.linted_script import LintedScript, RuleSet
from cleared.sandbox.finding import Finding
from cleared.sandbox.used_primitives import (
    ENQUEUE,
    JOB_TYPE_GRANT,
    MODEL_BUDGET_GRANT,
    MODEL_PRIMITIVES,
    is_granted,
)

RULES: Final = RuleSet()

_SCRIPT_RUN: Final = "script_run"
_ANY_AGENT_RUN: Final = f"{JOB_TYPE_GRANT}agent_run"
_ONE_AGENT_RUN: Final = re.compile(rf"{JOB_TYPE_GRANT}agent:[\w.-]+")

UNKNOWN_GRANT: Final = RULES.declare(
    "unknown-grant",
    finds="a name in the header's `grants:` that no primitive and no job type has",
    why="A misspelt grant leaves the agent without the primitive; one of a later version comes into force with it.",
    remedy="cleared primitives shows each primitive's grant.",
)


@RULES.check
def find_unknown_grants(script: LintedScript) -> Iterator[Finding]:
    known_grants = {name for p in script.primitives.values() for name in (p.name, p.grant)}
    known_grants |= {f"{JOB_TYPE_GRANT}{job_type}" for job_type in script.job_types}
    for grant in (script.header.grants if script.header is not None else None) or ():
        if (
            grant not in known_grants
            and not _ONE_AGENT_RUN.fullmatch(grant)
            and not re.fullmatch(MODEL_BUDGET_GRANT, grant)
        ):
            near = get_close_matches(grant, sorted(known_grants), 1, 0.6)
            job_type = grant.removeprefix(JOB_TYPE_GRANT)
            message = (
                f"no primitive has the grant {grant!r}" if job_type == grant else (f"there is no job type {job_type!r}")
            )
            remedy = f"Did you mean {near[0]}?" if near else ""
            yield script.header_finding(UNKNOWN_GRANT, "grants", message, remedy)


GRANTS: Final = RULES.declare(
    "grants",
    finds="a primitive, or a job type, that the header's `grants:` does not allow",
    why="The line is a promise to whoever reads the header; the host keeps it.",
    remedy="Add it to grants:, or do without it.",
)


@RULES.check
def find_primitives_not_granted(script: LintedScript) -> Iterator[Finding]:
    for node in script.nodes_of(ast.Name):
        if node.id not in script.primitives or not isinstance(node.ctx, ast.Load):
            continue
        grant = script.primitives[node.id].grant
        if node.id == ENQUEUE and script.granted_job_types is not None and not script.granted_job_types:
            message = "the header grants no job type to enqueue"
            yield script.finding(GRANTS, node, message, f"Add {JOB_TYPE_GRANT}KIND to grants:, or do without it.")
        elif node.id in MODEL_PRIMITIVES and not script.is_shared and node.id not in script.model_budgets:
            message = f"the header does not say what {node.id} may cost"
            yield script.finding(GRANTS, node, message, f"Add {grant}:0.05 (US dollars a run) to grants:.")
        elif script.grants is not None and not is_granted(node.id, grant, script.grants):
            message = f"{node.id} is not granted by the header"
            yield script.finding(GRANTS, node, message, f"Add {grant} to grants:, or do without it.")


SHARED_SCRIPT_NAME: Final = RULES.declare(
    "shared-script-name",
    finds="`script_run` without the name of a shared script written out as its first argument",
    why="Which scripts an agent runs is read from its text: they are examined with it, and approved for it.",
    remedy='Write script_run("NAME", …), in an if for each script where it depends.',
)


@RULES.check
def find_shared_scripts_without_name(script: LintedScript) -> Iterator[Finding]:
    named = set()
    for call in script.nodes_of(ast.Call):
        match call:
            case ast.Call(func=ast.Name() as function, args=[ast.Constant(value=str()), *_]):
                named.add(function)
    for node in script.nodes_of(ast.Name):
        if node.id == _SCRIPT_RUN and node not in named:
            message = "which shared script it runs is not written out"
            yield script.finding(SHARED_SCRIPT_NAME, node, message)


@RULES.check
def find_job_types_not_granted(script: LintedScript) -> Iterator[Finding]:
    """Job types that are written out. For one agent's run the host may have to look: the target says which agent."""
    granted = script.granted_job_types
    if not granted:
        return
    for primitive, argument, value in script.arguments:
        if primitive.name != ENQUEUE or argument != "kind":
            continue
        for leaf in script.values.of_expression(value):
            if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                grant = f"{JOB_TYPE_GRANT}{leaf.value}"
                if not _is_job_type_granted(grant, granted):
                    message = f"to enqueue {leaf.value[:60]} is not granted by the header"
                    yield script.finding(GRANTS, leaf, message, f"Add {grant[:80]} to grants:, or do without it.")


def _is_job_type_granted(grant: str, granted: frozenset[str]) -> bool:
    if grant in granted or (_ONE_AGENT_RUN.fullmatch(grant) and _ANY_AGENT_RUN in granted):
        return True
    return grant == _ANY_AGENT_RUN and any(_ONE_AGENT_RUN.fullmatch(each) for each in granted)
