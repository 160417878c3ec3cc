"""What a script names: the primitives it can call at all, and the shared scripts it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Container

from cleared.sandbox.finding import Finding
from cleared.sandbox.source import normalise, parse


def named(source: str, file: str, primitives: Container[str]) -> tuple[frozenset[str], frozenset[str]]:
    """``(primitives the script names, shared scripts it runs by a literal name)``. Nothing for what does not parse."""
    tree = parse(normalise(source), file)
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


def grants_of(
    source: str, file: str, primitives: Container[str], shared: Callable[[str], tuple[str, str] | None]
) -> tuple[frozenset[str], frozenset[str]]:
    """``(primitives, shared scripts)`` that a script needs, with those of the shared scripts it runs.

    ``shared``: name → its file and source, None where there is none.
    """
    grants, waiting = named(source, file, primitives)
    found: set[str] = set()
    ahead = set(waiting)
    while ahead:
        name = ahead.pop()
        found.add(name)
        script = shared(name)
        if script is not None:
            more, inner = named(script[1], script[0], primitives)
            grants |= more
            ahead |= inner - found
    return grants, frozenset(found)
