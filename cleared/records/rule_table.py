"""The rules at the top of a script that keeps tables: found and changed by the syntax tree, every other byte stays.

    RULES = [
        ("supplier", "acme", "group", "hardware"),      where supplier is acme, group is hardware
    ]

Of the rules for one column the first that fits a row counts, so a new one stands before all others.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import NamedTuple

from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import parse_script
from cleared.sandbox.source_edits import find_span, prepend_item, remove_item, render_text

NAME = "RULES"
_COLUMNS = 4


class Rule(NamedTuple):
    """Where ``column`` has ``text``, ``target`` gets ``value``."""

    column: str
    text: str
    target: str
    value: str

    def describe(self) -> str:
        """``supplier acme → group hardware``"""
        return f"{self.column} {self.text} → {self.target} {self.value}"

    @property
    def about(self) -> tuple[str, str, str]:
        """Which rows it is about, and which column of them."""
        return self.column, self.text, self.target


class RuleTable(NamedTuple):
    """The list in a script, and its rules with the tuples that they are written as."""

    node: ast.List
    rules: tuple[tuple[Rule, ast.Tuple], ...]

    def find_value(self, row: Mapping[str, str], target: str) -> str | None:
        """What the rules make of a column of a row; None: nothing."""
        return next((r.value for r, _ in self.rules if r.target == target and row.get(r.column) == r.text), None)


def find_rule_table(source: str, file: str) -> RuleTable | None:
    """The list called ``RULES`` at a script's top level; None where there is none, or its items are no rules."""
    tree = parse_script(source, file)
    for statement in tree.body if not isinstance(tree, Finding) else ():
        match statement:
            case ast.Assign([ast.Name(name)], ast.List() as node) if name == NAME:
                rules = tuple(found for item in node.elts if (found := _read_rule(item)) is not None)
                return RuleTable(node, rules) if len(rules) == len(node.elts) else None
    return None


def _read_rule(item: ast.expr) -> tuple[Rule, ast.Tuple] | None:
    if not isinstance(item, ast.Tuple) or len(item.elts) != _COLUMNS:
        return None
    texts = [each.value for each in item.elts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return (Rule(*texts), item) if len(texts) == _COLUMNS else None


def put_rule(source: str, rule: Rule) -> str:
    """The script with this rule: in the place of the first about the same rows and column, else before all others."""
    table = find_rule_table(source, "")
    if table is None:
        return source
    text = f"({', '.join(map(render_text, rule))})"
    for known, node in table.rules:
        if known.about == rule.about:
            start, end = find_span(source, node)
            return source[:start] + text + source[end:]
    return prepend_item(source, table.node, text)


def drop_rule(source: str, rule: Rule) -> str:
    """The script without this rule: of equal ones the last, which never counts."""
    table = find_rule_table(source, "")
    nodes = [node for known, node in table.rules if known == rule] if table is not None else []
    return remove_item(source, nodes[-1]) if nodes else source
