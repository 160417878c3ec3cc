"""The ``if`` and ``elif`` by which a script without a table knows payees, as document 003's ingest does:

    desc = txn["description"]
    if "GITHUB" in desc:
        account_id = 5020
        confidence = 0.98
        vendor = "GitHub"
    elif "AWS" in desc and txn["amount"] < 0 and abs(txn["amount"]) <= 500:
        …

A learned row becomes one ``elif`` more, by an edit of the syntax tree. Branches that are written otherwise stay as they
are; what they do is not known here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.books.ledger.booked_lines import BookedLine
from cleared.books.teaching.row_limits import RowLimits
from cleared.books.teaching.vendor_table import CONFIDENCE, VendorRow
from cleared.sandbox.branch_removal import Branch as IfBranch
from cleared.sandbox.branch_removal import remove_branch
from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import parse_script
from cleared.sandbox.source_edits import find_line_end, find_span, indent_of, render_text

_STEP: Final = "    "


class Branch(Struct, frozen=True):
    """One branch that is understood."""

    row: VendorRow
    confidence: float
    node: ast.If

    def fits(self, text: str, amount: Decimal, bank: int = 0) -> bool:
        """Whether it is about a bank line: its words stand anywhere in the text, as the script asks for them. ``bank``
        is no matter: a branch is about lines of any account."""
        return self.row.words in text and self.row.limits.fits(amount, bank)

    def covers(self, other: Branch) -> bool:
        """Whether it takes all that the other would."""
        return self.row.words in other.row.words and other.row.limits.is_within(self.row.limits)


class RuleChain(Struct, frozen=True):
    """A chain in a script, and the names that it sets."""

    first: ast.If
    last: ast.If
    branches: tuple[Branch, ...]
    text: str
    """The name that has the bank's text."""
    line: str
    """The name of the bank line, a dict."""
    account: str
    confidence: str
    vendor: str
    """Empty where it sets none."""

    def find_branch(self, text: str, amount: Decimal) -> Branch | None:
        """The first understood branch that takes a bank line."""
        return next((each for each in self.branches if each.fits(text, amount)), None)


def find_rule_chain(source: str, file: str = "") -> RuleChain | None:
    """The chain of a script. None where it has none that is understood, or several."""
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return None
    lines = dict(_find_texts(tree))
    inner = {each.orelse[0] for each in ast.walk(tree) if isinstance(each, ast.If) and _has_elif(each)}
    chains = [
        chain
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and node not in inner and (chain := _read_chain(node, lines)) is not None
    ]
    return chains[0] if len(chains) == 1 else None


def _find_texts(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Each name that is given a bank line's text, and nothing else, with the name of the line."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(name)], value=ast.Subscript(ast.Name(line), ast.Constant("description"))
            ) if sum(each.id == name for each in assigned) == 1:
                yield name, line


def _has_elif(node: ast.If) -> bool:
    """Whether an ``elif`` follows: an ``else`` with nothing but an ``if`` in it stands further to the right."""
    inner = node.orelse[0] if len(node.orelse) == 1 else None
    return isinstance(inner, ast.If) and inner.col_offset == node.col_offset


def _read_chain(first: ast.If, lines: dict[str, str]) -> RuleChain | None:
    """Names are those of its first understood branch; a branch with others is not understood."""
    chain, node = None, first
    while True:
        read = _read_branch(node, lines)
        if read is not None:
            names, branch = read
            chain = chain or RuleChain(first, node, (), *names)
            if names == (chain.text, chain.line, chain.account, chain.confidence, chain.vendor):
                chain = replace(chain, branches=(*chain.branches, branch))
        if not _has_elif(node):
            return replace(chain, last=node) if chain is not None else None
        following = node.orelse[0]
        assert isinstance(following, ast.If)
        node = following


def _read_branch(node: ast.If, lines: dict[str, str]) -> tuple[tuple[str, str, str, str, str], Branch] | None:
    tests = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else [node.test]
    match tests[0]:
        case ast.Compare(ast.Constant(str(words)), [ast.In()], [ast.Name(text)]) if words and text in lines:
            limits = _read_limits(tests[1:], lines[text])
        case _:
            return None
    values: dict[type, tuple[str, object]] = {}
    for each in node.body:
        match each:
            case ast.Assign([ast.Name(name)], ast.Constant(value)) if type(value) not in values:
                values[type(value)] = name, value
            case _:
                return None
    if limits is None or not {int, float} <= values.keys() <= {int, float, str}:
        return None
    account, sure, vendor = values[int], values[float], values.get(str, ("", ""))
    row = VendorRow(words, str(vendor[1]), int(str(account[1])), limits)
    return (text, lines[text], account[0], sure[0], vendor[0]), Branch(row, float(str(sure[1])), node)


def _read_limits(tests: list[ast.expr], line: str) -> RowLimits | None:
    """What further conditions say, where each is written as ``put_branch`` writes it."""
    amount = ast.unparse(ast.parse(f'{line}["amount"]', mode="eval"))
    limits = RowLimits()
    for test in tests:
        match test:
            case ast.Compare(left, [ast.Lt()], [ast.Constant(0)]) if ast.unparse(left) == amount:
                limits = replace(limits, money="out")
            case ast.Compare(left, [ast.GtE()], [ast.Constant(int(least))]) if ast.unparse(left) == f"abs({amount})":
                limits = replace(limits, least=Decimal(least))
            case ast.Compare(left, [ast.LtE()], [ast.Constant(int(most))]) if ast.unparse(left) == f"abs({amount})":
                limits = replace(limits, most=Decimal(most))
            case _:
                return None
    return limits


def adapt_row(row: VendorRow, decisions: tuple[BookedLine, ...], lines: tuple[BookedLine, ...]) -> VendorRow | None:
    """The row as a branch can say it: with its words as the bank's texts have them. None where a branch cannot say
    just that: of money in, of one bank account, of a split, of cents, or where its words stand in other texts, too."""
    limits = row.limits
    sizes = [size for size in (limits.least, limits.most) if size is not None]
    if limits.money != "out" or limits.bank is not None or limits.split or any(size % 1 for size in sizes):
        return None
    written = re.search(r"\s+".join(map(re.escape, row.words.split())), decisions[-1].text, re.IGNORECASE)
    words = written.group() if written is not None else ""
    found = replace(row, words=words)
    taken = [line for line in lines if words in line.text and limits.fits(line.amount, line.bank)]
    is_same = set(decisions) <= set(taken) and all(row.fits(line.text, line.amount, line.bank) for line in taken)
    return found if words.isprintable() and words and is_same else None


def put_branch(source: str, row: VendorRow) -> str:
    """The script with a branch for this row: in the place of one that said the same of fewer amounts, before the first
    that would take its lines, or as the last. The same text where it has the branch, or no chain."""
    chain = find_rule_chain(source)
    if chain is None:
        return source
    test = _render_test(chain, row)
    for branch in chain.branches:
        is_same = (branch.row.words, branch.row.account) == (row.words, row.account)
        if is_same and branch.row.limits.money == row.limits.money and branch.row.limits.is_within(row.limits):
            start, end = find_span(source, branch.node.test)
            return source[:start] + test + source[end:]
    before = next((each.node for each in chain.branches if each.row.words in row.words), None)
    if before is not None:
        start, _ = find_span(source, before)
        indent = indent_of(source, start)
        is_first = before is chain.first
        added = _render_branch(chain, row, f"{'if' if is_first else 'elif'} {test}", _inner(source, before))
        return f"{source[:start]}{added}\n{indent}{'el' if is_first else ''}{source[start:]}"
    start, _ = find_span(source, chain.last)
    indent = indent_of(source, start)
    at = find_line_end(source, find_span(source, chain.last.body[-1])[1])
    added = _render_branch(chain, row, f"elif {test}", _inner(source, chain.last))
    return f"{source[:at]}\n{indent}{added}{source[at:]}"


def drop_branch(source: str, row: VendorRow, *, is_last: bool) -> str:
    """The script without the branch of this row; of equal ones the first, or the last."""
    chain = find_rule_chain(source)
    nodes = [each.node for each in chain.branches if each.row == row] if chain is not None else []
    return remove_branch(source, IfBranch(nodes[-1 if is_last else 0])) if nodes else source


def _inner(source: str, node: ast.If) -> str:
    """The blanks before the lines of a branch."""
    outer = indent_of(source, find_span(source, node)[0])
    inner = indent_of(source, find_span(source, node.body[0])[0])
    return inner if len(inner) > len(outer) else outer + _STEP


def _render_test(chain: RuleChain, row: VendorRow) -> str:
    amount, limits = f'{chain.line}["amount"]', row.limits
    said = [f"{render_text(row.words)} in {chain.text}"]
    said += [f"{amount} < 0"] if limits.money == "out" else []
    said += [f"abs({amount}) >= {int(limits.least)}"] if limits.least is not None else []
    said += [f"abs({amount}) <= {int(limits.most)}"] if limits.most is not None else []
    return " and ".join(said)


def _render_branch(chain: RuleChain, row: VendorRow, head: str, inner: str) -> str:
    sets = [f"{chain.account} = {row.account}", f"{chain.confidence} = {CONFIDENCE}"]
    sets += [f"{chain.vendor} = {render_text(row.vendor)}"] if chain.vendor else []
    return "\n".join([f"{head}:", *(inner + each for each in sets)])
