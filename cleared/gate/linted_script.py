"""What a lint rule is declared with, and the parsed script that it looks at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeVar

from msgspec import Struct

from cleared.base.errors import Place
from cleared.domains.installed_domains import parse_header
from cleared.gate.possible_values import PossibleValues
from cleared.primitives.registry.primitive import Primitive
from cleared.sandbox.finding import Finding, Rule
from cleared.sandbox.header import Header
from cleared.sandbox.script_source import walk_in_order
from cleared.sandbox.used_primitives import granted_job_types, granted_model_budgets

CHECK: Final = "traps"
"""The id of the check that these rules belong to, in JSON and in rule lists."""

Node = TypeVar("Node", bound=ast.AST)


class LintedScript:
    """A script that parses, with what its rules ask for. ``header`` is None where it cannot be read.

    ``facts``: what the rules of each domain look things up in, by its name. ``job_types``: those that there are; None
    for a shared script, which may ask for what its caller may.
    """

    def __init__(
        self,
        source: str,
        file: str,
        tree: ast.Module,
        primitives: Mapping[str, Primitive],
        facts: Mapping[str, object],
        grants: tuple[str, ...] | None,
        job_types: Collection[str] | None,
    ) -> None:
        self.file, self.tree, self.primitives, self.facts, self.grants = file, tree, primitives, facts, grants
        self.header: Header | None = parse_header(source, file, kind="agent")[0]
        self.job_types: Collection[str] = job_types or ()
        self.granted_job_types = granted_job_types(grants or ()) if job_types is not None else None
        """The grants of job types in the header; None where the caller's count."""
        self.is_shared = job_types is None
        """Whether the caller's header counts, and not this script's."""
        self.model_budgets = granted_model_budgets(grants or ())
        """What it may spend on language models, by primitive."""
        self.values = PossibleValues(tree)
        self._lines = source.split("\n")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """All nodes, in the order of the text."""
        return list(walk_in_order(self.tree))

    def nodes_of(self, kind: type[Node]) -> Iterator[Node]:
        """All nodes of one class, in the order of the text."""
        return (node for node in self.nodes if isinstance(node, kind))

    @cached_property
    def arguments(self) -> list[tuple[Primitive, str, ast.expr]]:
        """Every argument of every call of a primitive: the primitive, the argument's name, its expression."""
        return [
            (self.primitives[name], argument, value)
            for call in self.nodes_of(ast.Call)
            if isinstance(call.func, ast.Name)
            for name in self._called_primitives(call.func)
            for argument, value in self._named_arguments(call, self.primitives[name])
        ]

    def finding(self, rule: Rule, node: ast.AST, message: str, remedy: str = "") -> Finding:
        """A finding at a node; with the rule's own remedy where no better one is given."""
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        column = len(text.encode("utf-8")[:column].decode("utf-8", "ignore")) + 1
        return Finding(rule.id, message, Place(self.file, line, column), remedy or rule.remedy)

    def header_finding(self, rule: Rule, key: str, message: str, remedy: str = "") -> Finding:
        """A finding in a line of the header."""
        line = self.header.line_of(key) if self.header is not None else 1
        return Finding(rule.id, message, Place(self.file, line, 1, key), remedy or rule.remedy)

    def _called_primitives(self, func: ast.Name) -> Iterator[str]:
        """The primitives a called name stands for: its own, or what was assigned to it."""
        if func.id in self.primitives:
            yield func.id
            return
        for leaf in self.values.of_expression(func):
            if isinstance(leaf, ast.Name) and leaf.id in self.primitives:
                yield leaf.id

    @staticmethod
    def _named_arguments(call: ast.Call, primitive: Primitive) -> Iterator[tuple[str, ast.expr]]:
        for param, value in zip(primitive.takes.params, call.args, strict=False):
            if isinstance(value, ast.Starred):
                break  # nobody knows how many these are
            yield param.name, value
        for keyword in call.keywords:
            if keyword.arg:
                yield keyword.arg, keyword.value
            elif isinstance(keyword.value, ast.Dict):
                for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, value


Check = Callable[[LintedScript], Iterator[Finding]]


class RuleSet(Struct):
    """The lint rules of one module. Each rule is declared beside the function that looks for it."""

    rules: dict[str, Rule] = {}
    checks: list[Check] = []

    def declare(self, rule: str, *, finds: str, why: str, remedy: str, since: str = "") -> Rule:
        """A rule: its id, what it finds, why it exists, what to do about a finding."""
        declared = Rule(rule, CHECK, finds, why, remedy, since=since)
        self.rules[rule] = declared
        return declared

    def check(self, function: Check) -> Check:
        """Decorates the function that yields the findings of one or more rules."""
        self.checks.append(function)
        return function
