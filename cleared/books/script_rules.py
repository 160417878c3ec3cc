"""Lint rules about the books: accounts that a script posts to, and statuses that it sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import date
from typing import Final, cast

from cleared.base.file_source import FileSource
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.chart import Chart, parse_chart
from cleared.books.ledger.entry import HUMAN_STATUSES, STATUSES
from cleared.books.primitives.accounts import accounts_exists
from cleared.books.primitives.book_shapes import STATUS
from cleared.books.primitives.journal import WRITE_GRANT
from cleared.gate.linted_script import LintedScript, RuleSet
from cleared.sandbox.finding import Finding
from cleared.workspace.location import Layout

RULES: Final = RuleSet()


def read_chart(layout: Layout, source: FileSource) -> Chart:
    """What the rules look accounts up in. Raises ``WorkspaceError`` for a damaged chart."""
    path = locate_books(layout).chart
    return parse_chart(source.read(path), path)


def _chart_of(script: LintedScript) -> Chart:
    return cast(Chart, script.facts["books"])


UNKNOWN_ACCOUNT: Final = RULES.declare(
    "unknown-account",
    finds="an account id that is not in the chart of accounts, in a call or in the header",
    why="The host would refuse it, in the run that first comes there.",
    remedy="cleared accounts list shows all of them.",
)
CLOSED_ACCOUNT: Final = RULES.declare(
    "closed-account",
    finds="a posting to an account that is closed, or a heading",
    why="The host would refuse it, in the run that first comes there; closing an account shows what uses it.",
    remedy="Use an open account (cleared accounts list).",
)
ASSIGNED_ACCOUNT: Final = RULES.declare(
    "assigned-account",
    finds="an account id that is unknown, closed or a heading, and comes to a call through a name or a table",
    why="The host would refuse it, in the run that first comes there; closing an account shows what uses it.",
    remedy="Use an open account (cleared accounts list).",
)
_ACCOUNT_ARGUMENTS: Final = {"debit_account", "credit_account", "account_id", "account"}
_LEG_ACCOUNTS: Final = ("debit_account", "credit_account")
_LAST_DAY: Final = date.max
"""A date by which every closing has taken effect."""


@RULES.check
def find_wrong_accounts(script: LintedScript) -> Iterator[Finding]:
    chart, reasons = _chart_of(script), dict[int, tuple[str, str] | None]()

    def why_not_postable(account_id: int) -> tuple[str, str] | None:
        # Looked up once for each number: a table of thousands may come to thousands of calls.
        if account_id not in reasons:
            reasons[account_id] = chart.why_not_postable(account_id, _LAST_DAY)
        return reasons[account_id]

    for value, posting in _account_expressions(script):
        for leaf in script.values.of_expression(value):
            if not (isinstance(leaf, ast.Constant) and type(leaf.value) is int):
                continue
            reason = why_not_postable(leaf.value)
            unknown = chart.find_account(leaf.value) is None
            if reason is None or not (unknown or posting):
                continue
            direct = _is_within(leaf, value)
            if leaf.value > 0 or direct:  # otherwise the usual word for "none yet"
                rule = UNKNOWN_ACCOUNT if unknown else CLOSED_ACCOUNT
                yield script.finding(rule if direct else ASSIGNED_ACCOUNT, leaf, *reason)


@RULES.check
def find_unknown_header_accounts(script: LintedScript) -> Iterator[Finding]:
    chart = _chart_of(script)
    for account_id in (script.header.value_of("accounts") if script.header is not None else None) or ():
        if chart.find_account(account_id) is None:
            _, remedy = chart.why_not_postable(account_id, _LAST_DAY) or ("", "")
            message = f"account {account_id} does not exist"
            yield script.header_finding(UNKNOWN_ACCOUNT, "accounts", message, remedy)


def _account_expressions(script: LintedScript) -> Iterator[tuple[ast.expr, bool]]:
    """Every expression for an account, and whether it is posted to."""
    for primitive, argument, value in script.arguments:
        if argument in _ACCOUNT_ARGUMENTS and primitive.name != accounts_exists.name:
            yield value, primitive.grant == WRITE_GRANT
    for items in _dicts(script):
        for key in _LEG_ACCOUNTS:
            if key in items:
                yield items[key], True
        if "account_id" in items and items.keys() & {"debit", "credit"}:
            yield items["account_id"], True


def _dicts(script: LintedScript) -> Iterator[dict[str, ast.expr]]:
    """All literal dicts: those of ``journal_add(lines=…)`` and ``journal_add_many`` are known by their keys, wherever
    they are made, since a dict of a result may well have an ``account_id``."""
    for node in script.nodes_of(ast.Dict):
        yield {
            key.value: value
            for key, value in zip(node.keys, node.values, strict=True)
            if isinstance(key, ast.Constant) and isinstance(key.value, str)
        }


UNKNOWN_STATUS: Final = RULES.declare(
    "unknown-status",
    finds="a status that does not exist",
    why="The host would refuse it; a query for it would find nothing.",
    remedy=f"Use one of {', '.join(STATUSES)}.",
)
HUMAN_STATUS: Final = RULES.declare(
    "human-status",
    finds="a script that sets a status which only a person's decision sets",
    why="What a person has confirmed is told apart from what a script has guessed.",
    remedy="Use auto-confirmed or pending-review.",
)


@RULES.check
def find_wrong_statuses(script: LintedScript) -> Iterator[Finding]:
    for value, writes in _status_expressions(script):
        for leaf in script.values.of_expression(value):
            if not (isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)):
                continue
            status = leaf.value
            if status not in STATUSES:
                if _is_within(leaf, value):  # of others the type check knows which of them come here
                    yield script.finding(UNKNOWN_STATUS, leaf, f"{status!r} is not a status")
            elif writes and (status in HUMAN_STATUSES or status == "voided"):
                yield script.finding(HUMAN_STATUS, leaf, f"a script cannot set {status}")


def _status_expressions(script: LintedScript) -> Iterator[tuple[ast.expr, bool]]:
    """Every expression for a status, and whether it is set."""
    for primitive, argument, value in script.arguments:
        if argument == "status" and STATUS.definition in primitive.takes.by_name[argument].shape.definitions:
            yield value, primitive.grant == WRITE_GRANT
    for items in _dicts(script):
        if {"status", "date"} <= items.keys() and items.keys() & {"debit_account", "lines"}:
            yield items["status"], True


def _is_within(leaf: ast.AST, value: ast.expr) -> bool:
    """Whether a literal stands in the argument itself."""
    return any(node is leaf for node in ast.walk(value))
