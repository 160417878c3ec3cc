"""What a script names: the primitives it can call at all, and the shared scripts it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container, Iterable
from typing import Final

from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import normalise_text, parse_script

ENQUEUE: Final = "loop_enqueue"
JOB_TYPE_GRANT: Final = f"{ENQUEUE}:"
"""What a grant of one kind of job begins with. A header gives it, never what a text names."""


def granted_job_types(grants: Iterable[str]) -> frozenset[str]:
    """Those of these grants that name a kind of job (``loop_enqueue:KIND``)."""
    return frozenset(grant for grant in grants if grant.startswith(JOB_TYPE_GRANT))


def is_granted(name: str, grant: str, bound: Iterable[str]) -> bool:
    """Whether a header's ``grants:`` allow a primitive: by its grant, its name, or a kind of job it may enqueue."""
    return grant in bound or name in bound or (name == ENQUEUE and bool(granted_job_types(bound)))


def find_used(source: str, file: str, primitives: Container[str]) -> tuple[frozenset[str], frozenset[str]]:
    """``(primitives the script names, shared scripts it runs by a literal name)``. Nothing for what does not parse."""
    tree = parse_script(normalise_text(source), file)
    if isinstance(tree, Finding):
        return frozenset(), frozenset()
    found = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in primitives}
    scripts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "script_run":
            first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                scripts.add(first.value)
    return frozenset(found), frozenset(scripts)


def find_grants(
    source: str, file: str, primitives: Container[str], shared: Callable[[str], tuple[str, str] | None]
) -> tuple[frozenset[str], frozenset[str]]:
    """``(primitives, shared scripts)`` that a script needs, with those of the shared scripts it runs.

    ``shared``: name → its file and source, None where there is none.
    """
    grants, waiting = find_used(source, file, primitives)
    found: set[str] = set()
    ahead = set(waiting)
    while ahead:
        name = ahead.pop()
        found.add(name)
        script = shared(name)
        if script is not None:
            more, inner = find_used(script[1], script[0], primitives)
            grants |= more
            ahead |= inner - found
    return grants, frozenset(found)
