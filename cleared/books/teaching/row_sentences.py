"""What a change of a vendor table says, in words: for the card of a proposal."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from cleared.books.teaching.vendor_table import (
    VendorRow,
    VendorTable,
    find_vendor_table,
    read_confidence,
    replace_table,
)
from cleared.workspace.settings.model import Config


def describe_rows(old: str, new: str, config: Config, names: Mapping[str, str]) -> list[str]:
    """A sentence for each row that is new, another, or gone; none where anything else differs, the order of the rows
    among it. ``names``: account → ``5070 Meals``."""
    before, after = find_vendor_table(old), find_vendor_table(new)
    if before is None or after is None or not _is_same_beside(old, before, new, after):
        return []
    olds, news = ({row: read_confidence(node) for row, node in table.rows} for table in (before, after))
    kept = [row for row in olds if row in news]
    if kept != [row for row in news if row in olds] or len(olds) != len(before.rows) or len(news) != len(after.rows):
        return []
    said = []
    for row, sure in news.items():
        was = next((each for each in olds if each not in news and each.is_same_rule(row)), None)
        if row in olds and olds[row] == sure:
            continue
        to, away = _name(row, names), _name(was, names) if was is not None else ""
        instead = f" instead of {away}" if away and away != to else ""
        who = f" as of {row.vendor}" if row.vendor else ""
        ask = f"{_ask(sure, config)} (as sure as {sure:g})"
        said.append(f"Bank lines with {_name_words(row)} go to {to}{who}{instead}, {ask}.")
    replaced = {each for row in news if row not in olds for each in olds if each.is_same_rule(row)}
    gone = [row for row in olds if row not in news and row not in replaced]
    return said + [f"Bank lines with {_name_words(row)} go to {_name(row, names)} no more." for row in gone]


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
    return f"“{row.words}”{f' ({only})' if only else ''}"


def _ask(sure: float, config: Config) -> str:
    return "without asking you" if sure >= float(config.thresholds.auto_confirm) else "and ask you"
