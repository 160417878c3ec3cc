"""What a change of a vendor table says, in words: for the card of a proposal.

What a row means, the loop over the table decides. Of today's starters that is known; a row of any other script is code.
Where the order of rows plays a part, or a row reads otherwise than it counts, there are no words either.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from msgspec import Struct

from cleared.base.short_text import join_words, quote_text
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.transfers import CLEARING_ACCOUNT
from cleared.books.teaching.decided_rows import is_anybodys
from cleared.books.teaching.row_limits import RowLimits
from cleared.books.teaching.vendor_table import (
    MAX_WORDS,
    VendorRow,
    VendorTable,
    find_vendor_table,
    read_confidence,
    replace_table,
)
from cleared.workspace import template
from cleared.workspace.settings.model import Config

_BOTH_SIDES = 2
"""Bank accounts from which on a transfer's other side comes, too: today's starter asks of one that cannot."""
_Rule = tuple[str, RowLimits]


class _Known(Struct, frozen=True):
    """A row of a table. ``text``: the syntax tree of how it is written."""

    row: VendorRow
    sure: float
    text: str
    keys: int
    """How many limits are written."""

    @property
    def rule(self) -> _Rule:
        """Which bank lines it is about."""
        return normalise_description(self.row.words), self.row.limits.scope

    @property
    def is_plain(self) -> bool:
        """Whether its texts read as what they are, and each limit that is written limits something."""
        texts, only = (self.row.words, self.row.vendor), self.row.limits
        limits = (
            bool(only.money),
            only.bank is not None,
            only.least is not None,
            only.most is not None,
            bool(only.split),
        )
        return sum(limits) == self.keys and all(
            " ".join(t.split()) == t and len(t) <= MAX_WORDS and t.isprintable() for t in texts
        )


def describe_rows(file: str, old: str, new: str, config: Config, names: Mapping[str, str]) -> list[str]:
    """A sentence for each row that is new, another, or gone; none where anything else differs, or words would not say
    all of it. ``names``: account → ``5070 Meals``."""
    before, after = find_vendor_table(old, file), find_vendor_table(new, file)
    if before is None or after is None or not _is_same_beside(old, before, new, after):
        return []
    olds, news = _read_rows(before), _read_rows(after)
    if olds is None or news is None or not _is_order_kept(olds, news) or not _is_shipped(file, new, after):
        return []
    said = []
    for rule, each in news.items():
        was = olds.get(rule)
        if was is not None and was.text == each.text:
            continue
        if not each.is_plain:
            return []
        said.append(_describe_row(each, was, config, names))
    gone = [each.row for rule, each in olds.items() if rule not in news]
    return said + [f"The table of {file} loses the row {_name_words(row)}, {_name(row, names)}." for row in gone]


def _describe_row(each: _Known, was: _Known | None, config: Config, names: Mapping[str, str]) -> str:
    to = _name(each.row, names)
    away = _name(was.row, names) if was is not None else to
    instead = f" instead of {away}" if away != to else ""
    asks = "without asking you" if each.sure >= float(config.thresholds.auto_confirm) else "and ask you"
    if each.row.account == CLEARING_ACCOUNT and len(config.bank_accounts) < _BOTH_SIDES:
        asks = "and ask you while the books know one bank account"
    who = f"; the payee is {quote_text(each.row.vendor, MAX_WORDS)}" if each.row.vendor else ""
    parts = [f"{part} of each to {names.get(str(account), str(account))}" for account, part in each.row.limits.split]
    split = f", {join_words(parts)}" if parts else ""
    said = f"Bank lines with {_name_words(each.row)} go to {to}{instead}{split}, {asks} (as sure as {each.sure}){who}."
    return f"{said} These words name no payee: they stand in lines of many." if is_anybodys(each.row.words) else said


def _read_rows(table: VendorTable) -> dict[_Rule, _Known] | None:
    """Rule → row, in their order; None where two are about the same lines."""
    rows = [_Known(row, read_confidence(node), ast.dump(node), _count_limits(node)) for row, node in table.rows]
    found = {each.rule: each for each in rows}
    return found if len(found) == len(rows) else None


def _count_limits(node: ast.Tuple) -> int:
    return len(node.elts[-1].keys) if isinstance(node.elts[-1], ast.Dict) else 0


def _is_order_kept(olds: Mapping[_Rule, _Known], news: Mapping[_Rule, _Known]) -> bool:
    """Whether the rows that stay are in the order they were, and a new one takes no line from another: where a more
    special one comes after it, or it comes after a wider one, the first that fits would be another."""
    if [rule for rule in olds if rule in news] != [rule for rule in news if rule in olds]:
        return False
    rows = [each.row for each in news.values()]
    for at, (rule, each) in enumerate(news.items()):
        is_changed = rule not in olds or olds[rule].row != each.row
        later_special = any(other.is_more_special(each.row) for other in rows[at + 1 :])
        earlier_wider = any(each.row.is_more_special(other) for other in rows[:at])
        if is_changed and (later_special or earlier_wider):
            return False
    return True


def _is_shipped(file: str, source: str, table: VendorTable) -> bool:
    """Whether all but table, header and comments is today's starter, whose loop does with each row what it says."""
    today = template.starter_files().get(file, b"").decode("utf-8")
    shipped = find_vendor_table(today, file)
    return shipped is not None and _dump(replace_table(source, table, today, shipped)) == _dump(today)


def _is_same_beside(old: str, before: VendorTable, new: str, after: VendorTable) -> bool:
    """Whether both scripts are the same but for the table, the header and comments."""
    return _dump(replace_table(new, after, old, before)) == _dump(old)


def _dump(source: str) -> str:
    tree = ast.parse(source)
    if ast.get_docstring(tree, clean=False) is not None:
        del tree.body[0]
    return ast.dump(tree)


def _name(row: VendorRow, names: Mapping[str, str]) -> str:
    return names.get(str(row.account), str(row.account))


def _name_words(row: VendorRow) -> str:
    """``“UBER” (money out)``"""
    only = row.limits.describe()
    return f"{quote_text(row.words, MAX_WORDS)}{f' ({only})' if only else ''}"
