"""The vendor table at the top of an agent's script: found and changed by the syntax tree, every other byte stays.

    VENDORS = [
        ("GITHUB", "GitHub", 5020, 0.98),      words of the bank's text, who that is, the account, how sure that is
        ("ZELLE", "Helpers", 5110, 0.99, {"money": "out"}),      and which of its lines, see ``row_limits``
    ]

The first line that fits counts, so a new line stands before all others but those that are more special: those of more
words first, and of the same words those that count for less.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.base import money
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.teaching.row_limits import NO_LIMITS, RowLimits, read_limits
from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import parse_script
from cleared.sandbox.source_edits import find_span, indent_of, prepend_item, render_text

MAX_WORDS: Final = 80
"""Characters of the words, and of a vendor's name."""
CONFIDENCE: Final = "0.99"
"""How sure a line is that a person has taught."""
_COLUMNS: Final = 4


class VendorRow(Struct, frozen=True):
    """One line of the table."""

    words: str
    vendor: str
    account: int
    limits: RowLimits = NO_LIMITS

    def fits(self, description: str, amount: Decimal, bank: int) -> bool:
        """Whether it is about a bank line. ``amount``: negative is money out; ``bank``: its account in the books."""
        return self.limits.fits(amount, bank) and contains_words(description, self.words)

    def divide(self, amount: Decimal, places: int) -> tuple[tuple[int, Decimal], ...]:
        """What goes to which account of an amount, as the starter has it: first what the split names, then the rest.
        Empty where the parts do not fit: then a person is asked. ``places``: of the currency."""
        rest, parts = abs(amount), list[tuple[int, Decimal]]()
        for account, said in self.limits.split:
            share = Decimal(said.removesuffix("%"))
            part = money.allocate(abs(amount), [share, 100 - share], places)[0] if said.endswith("%") else share
            parts.append((account, part))
            rest -= part
        parts.append((self.account, rest))
        if self.limits.split and any(part <= 0 for _, part in parts):
            return ()
        return tuple((account, part if amount > 0 else -part) for account, part in parts)

    def is_same_rule(self, other: VendorRow) -> bool:
        """Whether both are about the same lines, whatever becomes of those."""
        return (
            normalise_description(self.words) == normalise_description(other.words)
            and self.limits.scope == other.limits.scope
        )

    def is_more_special(self, other: VendorRow) -> bool:
        """Whether it stands before the other: it has its words and more, or the same and counts for fewer lines."""
        if normalise_description(self.words) != normalise_description(other.words):
            return contains_words(self.words, other.words)
        return self.limits.is_within(other.limits) and not self.is_same_rule(other)

    def describe(self) -> str:
        """``ZELLE (money out) → 5110``"""
        only = self.limits.describe()
        return f"{self.words}{f' ({only})' if only else ''} → {self.account}"


class VendorTable(Struct, frozen=True):
    """A table in a script: its rows, with the tuples they are written as."""

    node: ast.List
    rows: tuple[tuple[VendorRow, ast.Tuple], ...]
    has_limits: bool
    """Whether the script can take more than four columns: it does not take its rows apart into just four."""


def find_vendor_table(source: str, file: str = "") -> VendorTable | None:
    """The first list of a script's top level whose items are all (words, vendor, account, confidence).

    None where there is none, or where the text is no Python. An empty list counts where it is called ``VENDORS``.
    """
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return None
    for statement in tree.body:
        value = statement.value if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(value, ast.List) and isinstance(target, ast.Name) and (value.elts or target.id == "VENDORS"):
            rows = [_read_row(item) for item in value.elts]
            if all(rows):
                known = tuple(row for row in rows if row is not None)
                return VendorTable(value, known, not _takes_four(tree, target.id))
    return None


def _takes_four(tree: ast.Module, name: str) -> bool:
    """Whether a loop over the table of this name gives each row's columns names of their own: just four."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
    over = [loop for loop in loops if isinstance(loop.iter, ast.Name) and loop.iter.id == name]
    return any(isinstance(loop.target, ast.Tuple | ast.List) for loop in over)


def _read_row(item: ast.expr) -> tuple[VendorRow, ast.Tuple] | None:
    if not isinstance(item, ast.Tuple) or len(item.elts) not in (_COLUMNS, _COLUMNS + 1):
        return None
    words, vendor, account, sure = (e.value if isinstance(e, ast.Constant) else None for e in item.elts[:_COLUMNS])
    limits = read_limits(item.elts[_COLUMNS]) if len(item.elts) > _COLUMNS else NO_LIMITS
    whole = isinstance(account, int) and not isinstance(account, bool) and limits is not None
    if isinstance(words, str) and isinstance(vendor, str) and whole and isinstance(sure, float | int):
        return VendorRow(words, vendor, account, limits), item  # type: ignore[arg-type]
    return None


def read_confidence(node: ast.Tuple) -> float:
    """How sure the script is of a row of the table."""
    sure = node.elts[_COLUMNS - 1]
    assert isinstance(sure, ast.Constant) and isinstance(sure.value, float | int)
    return float(sure.value)


def render_row(row: VendorRow) -> str:
    """The row as the script has it."""
    limits = f", {row.limits.render()}" if row.limits else ""
    return f"({render_text(row.words)}, {render_text(row.vendor)}, {row.account}, {CONFIDENCE}{limits})"


def teach_row(source: str, table: VendorTable, row: VendorRow) -> str:
    """The script with this row: in the place of one about the same lines, else as a line of its own."""
    text = render_row(row)
    for known, node in table.rows:
        if known.is_same_rule(row):
            start, end = find_span(source, node)
            return source[:start] + text + source[end:]
    general = next((at for at, (known, _) in enumerate(table.rows) if row.is_more_special(known)), len(table.rows))
    special = [node for known, node in table.rows[:general] if known.is_more_special(row)]
    if special:
        return _insert_after(source, find_span(source, special[-1])[1], text)
    return prepend_item(source, table.node, text)


def replace_table(source: str, table: VendorTable, other: str, other_table: VendorTable) -> str:
    """The script with the table of another one in the place of its own."""
    start, end = find_span(source, table.node)
    first, last = find_span(other, other_table.node)
    return source[:start] + other[first:last] + source[end:]


def _insert_after(source: str, end: int, text: str) -> str:
    """A row behind another, on a line of its own where the other ends its line."""
    line_end = source.find("\n", end)
    rest = source[end : line_end if line_end >= 0 else len(source)]
    if line_end >= 0 and rest.lstrip().startswith(",") and not rest.lstrip()[1:].split("#")[0].strip():
        return f"{source[: line_end + 1]}{indent_of(source, end)}{text},\n{source[line_end + 1 :]}"
    return f"{source[:end]}, {text}{source[end:]}"


def contains_words(description: str, words: str) -> bool:
    """Whether a text has these words as words of their own: AWS is in "AWS*EMEA", not in "LAWSON"."""
    text, wanted = normalise_description(description), normalise_description(words)
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        if not text[at - 1 : at].isalpha() and not text[end : end + 1].isalpha():
            return True
        at = text.find(wanted, at + 1)
    return False


_PAID_BY: Final = ("SQ *", "TST* ", "TST*", "PAYPAL *", "PP*", "SP ", "ORIG CO NAME:")


def propose_words(description: str) -> str:
    """The words of a bank's text that name the vendor, as far as it can be guessed: up to three without numbers."""
    text = normalise_description(description)
    for prefix in _PAID_BY:
        text = text.removeprefix(prefix)
    words = list(_leading_words(text))
    return " ".join(words[:3]).strip(" -,.:*#") or text[:MAX_WORDS]


def _leading_words(text: str) -> Iterator[str]:
    """The words of the text up to the first with a digit or a mark before it."""
    for word in text.split():
        if any(c.isdigit() for c in word) or word[0] in "#*":
            return
        yield word
