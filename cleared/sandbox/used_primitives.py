"""Which primitives a script uses, and which shared scripts it runs, as its text says."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterable
from decimal import Decimal
from functools import lru_cache
from typing import Final

from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import normalise_text, parse_script

ENQUEUE: Final = "loop_enqueue"
JOB_TYPE_GRANT: Final = f"{ENQUEUE}:"
"""Prefix of the grant of one job type. Only a header can give such a grant."""
MODEL_PRIMITIVES: Final = ("llm_classify", "llm_summarize")
MODEL_BUDGET_GRANT: Final = r"(?a)llm\.(?P<verb>classify|summarize):(?P<dollars>(?=.*[1-9])[0-9]{1,3}(?:\.[0-9]{1,4})?)"
"""The grant of a budget for a language model. Only a header can give such a grant."""


def granted_job_types(grants: Iterable[str]) -> frozenset[str]:
    """Those of these grants that name a job type (``loop_enqueue:KIND``)."""
    return frozenset(grant for grant in grants if grant.startswith(JOB_TYPE_GRANT))


def granted_model_budgets(grants: Iterable[str]) -> dict[str, Decimal]:
    """Primitive that asks a language model → US dollars that it may cost in a run, of these grants
    (``llm.classify:0.05``); of several the highest."""
    budgets: dict[str, Decimal] = {}
    for grant in grants:
        grant_match = re.fullmatch(MODEL_BUDGET_GRANT, grant) if grant.startswith("llm.") else None
        if grant_match is not None:
            name = f"llm_{grant_match['verb']}"
            budgets[name] = max(Decimal(grant_match["dollars"]), budgets.get(name, Decimal(0)))
    return budgets


def header_only_grants(grants: Iterable[str]) -> frozenset[str]:
    """Those of these grants that only a header can give: job types, and budgets for language models."""
    named = frozenset(grants)
    budgets = frozenset(g for g in named if g.startswith("llm.") and re.fullmatch(MODEL_BUDGET_GRANT, g))
    return granted_job_types(named) | budgets


def is_granted(name: str, grant: str, bound: Iterable[str]) -> bool:
    """Whether a header's ``grants:`` allow a primitive: by its grant, its name, a job type that it may enqueue, or a
    budget."""
    if grant in bound or name in bound or (name == ENQUEUE and granted_job_types(bound)):
        return True
    return name in granted_model_budgets(bound)


@lru_cache(maxsize=16)
def find_used(source: str, file: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a script uses, and the shared scripts that it runs by a literal name.

    Both are empty where it does not parse. Cached, as the gate asks a dozen times about the same text.
    """
    tree = parse_script(normalise_text(source), file)
    if isinstance(tree, Finding):
        return frozenset(), frozenset()
    used, scripts = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "script_run":
            first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                scripts.add(first.value)
    return frozenset(used), frozenset(scripts)


def find_grants(
    source: str, file: str, primitives: Container[str], shared: Callable[[str], tuple[str, str] | None]
) -> tuple[frozenset[str], frozenset[str]]:
    """The primitives and the shared scripts that a script needs, with those of the shared scripts that it runs.

    ``shared`` gives file and source of a shared script, None where there is none.
    """
    names, direct = find_used(source, file)
    scripts: set[str] = set()
    pending = set(direct)
    while pending:
        name = pending.pop()
        scripts.add(name)
        script = shared(name)
        if script is not None:
            more, inner = find_used(script[1], script[0])
            names |= more
            pending |= inner - scripts
    return frozenset(name for name in names if name in primitives), frozenset(scripts)
