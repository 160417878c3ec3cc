"""Lint rules about the code itself: places that work in a test and fail, or do something else, later."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Final

from cleared.gate.linted_script import LintedScript, RuleSet
from cleared.gate.possible_values import PossibleValues
from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import find_dead_code

RULES: Final = RuleSet()

ROUND_MONEY: Final = RULES.declare(
    "round-money",
    finds="`round()` with a number of places",
    why="Over floats it differs from Python's for 43 % of half-cent amounts: cents appear and vanish.",
    remedy='Split with money_allocate, or show with f"{amount:.2f}".',
)


@RULES.check
def find_rounding(script: LintedScript) -> Iterator[Finding]:
    for node in script.nodes_of(ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "round" and len(node.args) + len(node.keywords) > 1:
            message = "round() on a float differs from Python for many half-cent amounts"
            yield script.finding(ROUND_MONEY, node, message)


PRIMITIVE_IN_CALLBACK: Final = RULES.declare(
    "primitive-in-callback",
    finds="a primitive called from inside map, filter, sorted(key=…) and their like, through helpers too",
    why="The sandbox cannot wait for the host in there: the run would fail, but only over data that is not empty.",
    remedy="Use a for loop or a comprehension.",
)
_FUNCTION_FIRST: Final = {"map", "filter", "reduce", "iter"}
_WITH_CALLBACK: Final = {"map", "filter", "sorted", "min", "max", "sort", "reduce"}


@RULES.check
def find_primitives_in_callbacks(script: LintedScript) -> Iterator[Finding]:
    calling = _names_that_call_a_primitive(script)
    for node in script.nodes_of(ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in _WITH_CALLBACK and not (name == "iter" and len(node.args) > 1):
            continue
        callbacks = [k.value for k in node.keywords if k.arg == "key"]
        if name in _FUNCTION_FIRST:
            callbacks += node.args[:1]
        for callback in callbacks:
            if _calls_a_primitive(callback, calling, script.values):
                message = f"a primitive is called from inside {name}(…)"
                yield script.finding(PRIMITIVE_IN_CALLBACK, callback, message)


def _calls_a_primitive(function: ast.expr, calling: set[str], values: PossibleValues) -> bool:
    """Whether calling this function would call a primitive."""
    match function:
        case ast.Name(id=name):
            return name in calling
        case ast.Lambda(body=body):
            return _names_any(body, calling)
        case ast.IfExp(body=body, orelse=orelse):
            return _calls_a_primitive(body, calling, values) or _calls_a_primitive(orelse, calling, values)
        case ast.Call(func=ast.Name(id=name)):  # a helper that makes the function
            inner = (n for f in values.functions.get(name, ()) for n in ast.walk(f) if n is not f)
            return any(_names_any(n, calling) for n in inner if isinstance(n, ast.FunctionDef | ast.Lambda))
    return False


def _names_any(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def _names_that_call_a_primitive(script: LintedScript) -> set[str]:
    """The primitives, and the names of all functions that call one, directly or through another."""
    used_in: dict[str, set[str]] = {}
    for name, functions in script.values.functions.items():
        used_in[name] = {n.id for f in functions for n in ast.walk(f) if isinstance(n, ast.Name)}
    for node in script.nodes_of(ast.Assign):
        if isinstance(node.value, ast.Name | ast.Lambda):
            used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
            for target in node.targets:
                if isinstance(target, ast.Name):
                    used_in.setdefault(target.id, set()).update(used)
    return _close_over(set(script.primitives), used_in)


def _close_over(names: set[str], used_in: Mapping[str, set[str]]) -> set[str]:
    """These names, with all that use one of them, directly or through another."""
    grows = True
    while grows:
        more = {name for name, used in used_in.items() if name not in names and used & names}
        grows = bool(more)
        names |= more
    return names


SHADOWED_PRIMITIVE: Final = RULES.declare(
    "shadowed-primitive",
    finds="a name that is a primitive's, assigned or made an argument",
    why="Later calls would not reach the host, and would look as if they did.",
    remedy="Choose another name.",
)


@RULES.check
def find_shadowed_primitives(script: LintedScript) -> Iterator[Finding]:
    for node in script.nodes:
        name = _bound_name(node)
        if name in script.primitives:
            message = f"{name} is a primitive; assigning it hides the host's function"
            yield script.finding(SHADOWED_PRIMITIVE, node, message)


def _bound_name(node: ast.AST) -> str | None:
    """The name that a node gives a value to, if it does."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            return name
        case ast.FunctionDef(name=name) | ast.arg(arg=name):
            return name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return name
    return None


UNREACHABLE: Final = RULES.declare(
    "unreachable",
    finds="code after the end of its block, or behind a condition that is always the same",
    why="The type check passes over what is never reached: a mistake in there is found when it is, after all.",
    remedy="Remove it, or what keeps it from being reached.",
)


@RULES.check
def find_unreachable_code(script: LintedScript) -> Iterator[Finding]:
    for node, message, _ in find_dead_code(script.tree):
        yield script.finding(UNREACHABLE, node, message)
