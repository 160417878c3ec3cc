"""Traps of the sandbox and of the books that the language allows: found on the syntax tree.

Each rule says why it exists; most are places where a script would work in a test and fail, or post wrongly, later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Final

from cleared.errors import Place
from cleared.ledger.chart import Chart
from cleared.ledger.entry import HUMAN_STATUSES, STATUSES
from cleared.registry.primitive import Primitive
from cleared.sandbox.finding import Finding
from cleared.sandbox.source import normalise, parse

RULES: Final = {
    "round-money": "round() on a float differs from Python for many half-cent amounts",
    "primitive-in-callback": "a primitive cannot be called from inside map, filter, sorted(key=…) and their like",
    "shadowed-primitive": "a name that is a primitive is assigned: later calls would not reach the host",
    "unreachable": "code after an end of the flow is never run, and never checked",
    "unknown-account": "an account id that is not in the chart of accounts",
    "closed-account": "an account that is closed, or a heading",
    "unknown-status": "a status that does not exist",
    "human-status": "a status only a person's decision sets",
    "grants": "a primitive that the header's grants: does not allow",
}
_CALLBACKS: Final = {"map", "filter", "sorted", "min", "max", "sort", "reduce"}
_ACCOUNT_ARGUMENTS: Final = {"debit_account", "credit_account", "account_id", "account"}
# A date by which every closing has taken effect.
_FAR: Final = date(9999, 12, 31)
_POSTING: Final = {"journal_add_double", "journal_add", "journal_add_many"}


def traps(
    source: str, file: str, primitives: Mapping[str, Primitive], chart: Chart, grants: tuple[str, ...] | None
) -> list[Finding]:
    """Every trap in the script, in the order of its text. Never raises for any text."""
    source = normalise(source)
    tree = parse(source, file)
    if isinstance(tree, Finding):
        return []  # the lint says so
    walker = _Walker(file, primitives, chart, grants, source.splitlines())
    found = {(f.place.line, f.place.column, f.rule): f for f in walker.walk(tree)}
    return [found[key] for key in sorted(found, key=lambda k: (k[0] or 0, k[1] or 0, k[2]))]


def calls(source: str, file: str, primitives: Mapping[str, Primitive]) -> tuple[frozenset[str], frozenset[str]]:
    """``(primitives the script names, shared scripts it runs by a literal name)``."""
    tree = parse(normalise(source), file)
    if isinstance(tree, Finding):
        return frozenset(), frozenset()
    named = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in primitives}
    scripts = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "script_run":
            first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "name"), None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                scripts.add(first.value)
    return frozenset(named), frozenset(scripts)


class _Walker:
    def __init__(
        self, file: str, primitives: Mapping[str, Primitive], chart: Chart, grants: tuple[str, ...] | None,
        lines: list[str],
    ) -> None:  # fmt: skip
        self.file, self.primitives, self.chart, self.grants, self.lines = file, primitives, chart, grants, lines
        self.helpers: dict[str, ast.FunctionDef] = {}

    def walk(self, tree: ast.Module) -> Iterator[Finding]:
        self.helpers = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        for node in ast.walk(tree):
            yield from self._shadowed(node)
            yield from self._unreachable(node)
            if isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Dict):
                yield from self._dict(node)
            elif isinstance(node, ast.Name) and node.id in self.primitives and self.grants is not None:
                grant = self.primitives[node.id].grant
                if grant not in self.grants and node.id not in self.grants:
                    yield self._finding(
                        "grants", node, f"{node.id} is not granted by the header",
                        f"Add {grant} to grants:, or do without it.",
                    )  # fmt: skip

    def _finding(self, rule: str, node: ast.AST, message: str, remedy: str) -> Finding:
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        column = len(text.encode("utf-8")[:column].decode("utf-8", "ignore")) + 1
        return Finding(rule, message, Place(self.file, line, column), remedy)

    def _shadowed(self, node: ast.AST) -> Iterator[Finding]:
        name = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.FunctionDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        if name in self.primitives:
            yield self._finding(
                "shadowed-primitive", node, f"{name} is a primitive; assigning it hides the host's function",
                "Choose another name.",
            )  # fmt: skip

    def _unreachable(self, node: ast.AST) -> Iterator[Finding]:
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if not isinstance(body, list):
                continue
            for i, statement in enumerate(body[:-1]):
                if isinstance(statement, ast.Return | ast.Raise | ast.Break | ast.Continue) or _endless(statement):
                    yield self._finding(
                        "unreachable", body[i + 1], "this line is never reached", "Remove it, or what ends the flow."
                    )
                    break
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
            yield self._finding("unreachable", node, "the condition is never true", "Remove the block.")

    def _call(self, node: ast.Call) -> Iterator[Finding]:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name == "round" and isinstance(node.func, ast.Name) and len(node.args) + len(node.keywords) > 1:
            yield self._finding(
                "round-money", node, RULES["round-money"], 'Split with money_allocate, or show with f"{amount:.2f}".'
            )
        if name in _CALLBACKS:
            yield from self._callback(node, name)
        if name in self.primitives and isinstance(node.func, ast.Name):
            for argument in self._arguments(node, name):
                yield from self._argument(name, *argument)

    def _arguments(self, node: ast.Call, name: str) -> Iterator[tuple[str, ast.expr]]:
        params = self.primitives[name].params
        for param, value in zip(params, node.args, strict=False):
            yield param.name, value
        for keyword in node.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value

    def _argument(self, primitive: str, argument: str, value: ast.expr) -> Iterator[Finding]:
        if argument in _ACCOUNT_ARGUMENTS and primitive != "accounts_exists":
            yield from self._account(value, posting=primitive in _POSTING)
        if argument == "status" and isinstance(value, ast.Constant) and isinstance(value.value, str):
            writes = primitive in _POSTING or primitive == "journal_update_status"
            yield from self._status(value, value.value, writes=writes)

    def _dict(self, node: ast.Dict) -> Iterator[Finding]:
        """The dicts of ``journal_add(lines=…)`` and ``journal_add_many``."""
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                continue
            if key.value in ("debit_account", "credit_account", "account_id"):
                yield from self._account(value, posting=True)

    def _account(self, value: ast.expr, *, posting: bool) -> Iterator[Finding]:
        if not (isinstance(value, ast.Constant) and type(value.value) is int):
            return
        account = self.chart.get(value.value)
        if account is None:
            _, remedy = self.chart.why_not_postable(value.value, _FAR) or ("", "")
            yield self._finding("unknown-account", value, f"account {value.value} does not exist", remedy)
        elif posting:
            why = self.chart.why_not_postable(value.value, _FAR)
            if why:
                yield self._finding("closed-account", value, *why)

    def _status(self, node: ast.AST, status: str, *, writes: bool) -> Iterator[Finding]:
        if status not in STATUSES:
            yield self._finding(
                "unknown-status", node, f"{status!r} is not a status", f"Use one of {', '.join(STATUSES)}."
            )
        elif writes and (status in HUMAN_STATUSES or status == "voided"):
            yield self._finding(
                "human-status", node, f"a script cannot set {status}", "Use auto-confirmed or pending-review."
            )

    def _callback(self, node: ast.Call, name: str) -> Iterator[Finding]:
        candidates = [k.value for k in node.keywords if k.arg == "key"]
        if name in ("map", "filter", "reduce"):
            candidates += node.args[:1]
        for candidate in candidates:
            body: ast.AST | None = candidate
            if isinstance(candidate, ast.Name):
                body = self.helpers.get(candidate.id, candidate)
            if body is not None and any(isinstance(n, ast.Name) and n.id in self.primitives for n in ast.walk(body)):
                yield self._finding(
                    "primitive-in-callback", candidate, f"a primitive is called from inside {name}(…)",
                    "Use a for loop or a comprehension.",
                )  # fmt: skip


def _endless(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.While)
        and isinstance(statement.test, ast.Constant)
        and bool(statement.test.value)
        and not any(isinstance(n, ast.Break) for n in ast.walk(statement))
    )
