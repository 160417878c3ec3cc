"""Parses the text of a script that is not trusted, and keeps its result.

A hostile text must take bounded time and end as a ``Finding``. So its size, its characters and its nesting are checked
before the parser reads it, and every exception of the parser is caught.

The result is the value of the last expression, also in a trailing ``if``/``elif``/``else``. The interpreter has one
only where the very last statement is an expression, so each such *tail expression* is rewritten to an assignment, on
the same line. ``RewrittenScript`` maps positions of the rewritten text back to the author's text.
"""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache

from cleared.base.errors import Place
from cleared.sandbox.finding import Finding

MAX_BYTES = 256 << 10
MAX_NESTING = 64

# Characters that make a reader see another program than the one that runs (Trojan Source, CVE-2021-42574): those
# that turn the direction of the text, and those that editors show as the end of a line and Python does not.
_BIDI = "[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]"
_SURROGATE = "[\ud800-\udfff]"
# All but tab, line feed and form feed: a terminal obeys them, so a reviewer would not see the text as it is.
_CONTROL = re.compile("[\x01-\x08\x0b\x0e-\x1f\x7f-\x9f]")
# Every alternative matches whatever it begins, so the scan is linear for any text.
_TOKEN = re.compile(
    r"""(?P<string>(?:\"\"\"(?:\\.|[^\\]|\\\Z)*?(?:\"\"\"|\Z))|(?:'''(?:\\.|[^\\]|\\\Z)*?(?:'''|\Z))"""
    r"""|(?:"(?:\\.|[^"\\\n])*"?)|(?:'(?:\\.|[^'\\\n])*'?))"""
    r"""|(?P<comment>\#[^\n]*)""",
    re.DOTALL,
)
# `not not not …`, `- - - …`, `lambda: lambda: …`: nesting without a bracket.
_PREFIXES = rf"(?:(?:\bnot\b|\bawait\b|\blambda\b[^:\n]{{0,40}}:|[-+~])\s*){{{MAX_NESTING}}}"
_PREFIX_WORDS = ("not", "await", "lambda", "-", "+", "~")
_BRACKET = re.compile(r"[(\[{)\]}]")
# Python reads decimal numbers of up to 4300 digits, and says where only from 3.12 on.
_MAX_DIGITS = 4300
_HUGE_NUMBER = rf"(?<![0-9A-Za-z_.])[0-9](?:_?[0-9]){{{_MAX_DIGITS},}}(?![0-9A-Za-z_.])"


def normalise_text(source: str) -> str:
    """The text that positions refer to: without byte order mark, with lines that end in ``\\n``."""
    return source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def line_column(source: str, offset: int) -> tuple[int, int]:
    """1-based line and column of a character offset."""
    start = source.rfind("\n", 0, offset) + 1
    return source.count("\n", 0, offset) + 1, offset - start + 1


def find_comments(source: str) -> Iterator[tuple[int, str]]:
    """Offset and text of each comment of a normalised source."""
    for match in _TOKEN.finditer(source):
        if match.lastgroup == "comment":
            yield match.start(), match.group()


@lru_cache(maxsize=16)
def blank_strings(source: str) -> str:
    """A normalised source with ``_`` in place of every character of its strings and comments."""
    return _TOKEN.sub(_blank_match, source)


@lru_cache(maxsize=16)
def parse_script(source: str, file: str) -> ast.Module | Finding:
    """The syntax tree of a normalised source, or the finding that says why there is none.

    Cached, as the gate parses the same text a dozen times: callers must not change the tree.
    """
    problem = _check_characters(source, file)
    if problem is not None:
        return problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as one about an invalid escape
            return ast.parse(source)
    except SyntaxError as error:
        line = max(error.lineno or 1, 1)
        place = Place(file, line, max(error.offset or 1, 1))
        return Finding("syntax", f"invalid syntax: {error.msg}", place, "Correct the line.")
    except (ValueError, RecursionError, MemoryError, SystemError):
        return _nesting_finding(file, 1, 1)


def find_misplaced(source: str, file: str) -> Finding | None:
    """A finding where the source parses but does not compile: a ``return`` outside a function, an argument given twice.

    The interpreter accepts some of these, and ends the script there with the result ``None``.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, file, "exec", dont_inherit=True, optimize=0)
    except SyntaxError as error:
        place = Place(file, max(error.lineno or 1, 1), max(error.offset or 1, 1))
        return Finding("syntax", f"invalid syntax: {error.msg}", place, "Correct the line.")
    except (ValueError, RecursionError, MemoryError, SystemError, OverflowError):
        return _nesting_finding(file, 1, 1)
    return None


# -- code that never runs ----------------------------------------------------------------------------------------------


def find_dead_code(tree: ast.Module) -> Iterator[tuple[ast.AST, str, Sequence[ast.AST]]]:
    """Code that never runs, as the text itself shows: the node to name, the reason, and all nodes that never run.

    The type checker does not look at such code, so mistakes in it would not be found.
    """
    for node in walk_in_order(tree):
        for field in ("body", "orelse"):
            body = getattr(node, field, None)
            if isinstance(body, list):
                ends = next((i for i, statement in enumerate(body[:-1]) if _ends_block(statement)), None)
                if ends is not None:
                    yield body[ends + 1], "this line is never reached", body[ends + 1 :]
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            truth = _constant_truth(node.test)
            then, otherwise = ([part] if isinstance(part, ast.expr) else part for part in (node.body, node.orelse))
            if truth is False:
                at = node.body if isinstance(node, ast.IfExp) else node
                yield at, "the condition is never true", then
            elif truth is True and otherwise and not isinstance(node, ast.While):
                yield otherwise[0], "the condition before it is always true", otherwise
        elif isinstance(node, ast.BoolOp):
            stops = isinstance(node.op, ast.Or)
            decided = next((i for i, value in enumerate(node.values[:-1]) if _constant_truth(value) is stops), None)
            if decided is not None:
                rest = node.values[decided + 1 :]
                yield rest[0], "the part before it decides", rest


def walk_in_order(tree: ast.AST) -> Iterator[ast.AST]:
    """As ``ast.walk``, but in the order of the text; a node comes before its children."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(ast.iter_child_nodes(node))))


def _ends_block(statement: ast.stmt) -> bool:
    """Whether nothing after the statement is run."""
    match statement:
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return True
        case ast.Assert(test=test):
            return _constant_truth(test) is False
        case ast.While(test=test):
            return _constant_truth(test) is True and not _has_break(statement)
        case ast.If(body=body, orelse=orelse):
            return bool(orelse) and any(map(_ends_block, body)) and any(map(_ends_block, orelse))
    return False


def _has_break(loop: ast.While) -> bool:
    """Whether the loop has a ``break`` of its own."""
    pending: list[ast.AST] = list(loop.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            pending += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return False


def _constant_truth(test: ast.expr) -> bool | None:
    """The value that a condition always has; None where its text does not show one."""
    match test:
        case ast.Constant(value=value):
            return bool(value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            truth = _constant_truth(operand)
            return None if truth is None else not truth
        case ast.Tuple(elts=[]) | ast.List(elts=[]) | ast.Dict(keys=[]):
            return False
        case ast.BoolOp(op=op, values=values):
            stops = isinstance(op, ast.Or)
            truths = [_constant_truth(value) for value in values]
            return stops if stops in truths else None if None in truths else not stops
        case ast.Compare(left=ast.Constant(value=left), ops=[op], comparators=[ast.Constant(value=right)]):
            match op:
                case ast.Eq():
                    return bool(left == right)
                case ast.NotEq():
                    return bool(left != right)
    return None


def _check_characters(source: str, file: str) -> Finding | None:
    # A character is at least one byte: try the cheap check first.
    if len(source) > MAX_BYTES or len(source.encode("utf-8", "replace")) > MAX_BYTES:
        return Finding(
            "size",
            f"the script is larger than {MAX_BYTES >> 10} kB",
            Place(file, 1, 1),
            "Move data to a file in import/ or to config.yaml, shared code to scripts/.",
        )
    if (nul := source.find("\0")) >= 0:
        message, remedy = "the script contains a NUL character", "Delete it; a script is plain text."
        return Finding("character", message, Place(file, *line_column(source, nul)), remedy)
    is_plain = source.isascii()
    if not is_plain and (match := re.search(_SURROGATE, source)):
        message = f"the script contains U+{ord(match.group()):04X}, which is no character"
        place = Place(file, *line_column(source, match.start()))
        return Finding("character", message, place, "Delete it; a script is UTF-8 text.")
    if match := _CONTROL.search(source):
        message = f"the script contains the control character U+{ord(match.group()):04X}"
        place = Place(file, *line_column(source, match.start()))
        return Finding("character", message, place, "Delete it, or write it as an escape inside a string.")
    if not is_plain and (match := re.search(_BIDI, source)):
        message = f"U+{ord(match.group()):04X} makes the text read differently from how it runs"
        place = Place(file, *line_column(source, match.start()))
        return Finding("bidi", message, place, "Delete it, or write it as an escape inside a string.")
    return _check_nesting(source, file)


def _check_nesting(source: str, file: str) -> Finding | None:
    depth, code = 0, blank_strings(source)
    for match in _BRACKET.finditer(code):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        if depth > MAX_NESTING:
            return _nesting_finding(file, *line_column(source, match.start()))
    # Few texts have so many of them, or a line that long: counting takes a twentieth of the time.
    if sum(map(code.count, _PREFIX_WORDS)) >= MAX_NESTING and (run := re.search(_PREFIXES, code)):
        return _nesting_finding(file, *line_column(source, run.start()))
    if max(map(len, code.split("\n"))) > _MAX_DIGITS and (huge := re.search(_HUGE_NUMBER, code)):
        message, remedy = f"a number of more than {_MAX_DIGITS} digits cannot be read", "Write a smaller number."
        return Finding("syntax", message, Place(file, *line_column(source, huge.start())), remedy)
    return None


def _blank_match(match: re.Match[str]) -> str:
    return "\n".join("_" * len(line) for line in match[0].split("\n"))


def _nesting_finding(file: str, line: int, column: int) -> Finding:
    return Finding(
        "nesting",
        "the code is nested too deeply to be read",
        Place(file, line, column),
        f"Name the parts; brackets and operators may nest {MAX_NESTING} deep.",
    )


RESULT = "__result__"
TAIL = "__tail__"


class RewrittenScript:
    """A script whose tail expressions are assignments, with a way back to the original positions.

    ``text`` is what the interpreter runs. It has the lines of ``original``; a line with a tail expression has
    ``__tail__ = n; __result__ = `` before it. ``tails[n]`` is that expression's 1-based line and column.
    """

    def __init__(self, original: str, tree: ast.Module) -> None:
        self._lines = original.split("\n")
        encoded = [line.encode("utf-8", "surrogatepass") for line in self._lines]
        self._inserted: dict[int, tuple[int, int]] = {}  # line index → byte offset, length (all of it ASCII)
        self.tails: list[tuple[int, int]] = []
        for number, node in enumerate(_find_tails(tree)):
            index, offset = node.lineno - 1, node.col_offset
            before = encoded[index][:offset]
            assignment = f"{TAIL} = {number}; {RESULT} = ".encode()
            encoded[index] = before + assignment + encoded[index][offset:]
            self._inserted[index] = (offset, len(assignment))
            self.tails.append((node.lineno, len(before.decode(errors="ignore")) + 1))
        self._encoded = encoded
        self._starts = [0]
        for line in encoded[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.text = b"\n".join(encoded).decode("utf-8", "surrogatepass")

    def original_position(self, offset: int) -> tuple[int, int]:
        """Original 1-based line and column of a UTF-8 byte offset into ``text``."""
        index = max(bisect_right(self._starts, offset) - 1, 0)
        within = offset - self._starts[index]
        prefix = self._encoded[index][:within].decode(errors="ignore")
        return index + 1, self.original_column(index + 1, len(prefix) + 1)

    def original_column(self, line: int, column: int) -> int:
        """Original 1-based column of a 1-based line and column of ``text``."""
        insertion = self._inserted.get(line - 1)
        if insertion is None:
            return column
        offset, length = insertion
        first = len(self._encoded[line - 1][:offset].decode(errors="ignore")) + 1
        return column if column < first else max(column - length, first)

    def original_line(self, line: int) -> str:
        """The original text of a 1-based line; empty past the end."""
        return self._lines[line - 1] if 1 <= line <= len(self._lines) else ""


def _find_tails(tree: ast.Module) -> Iterator[ast.Expr]:
    """The expression statements that can end the script, in the order of the text."""
    body: list[ast.stmt] = tree.body
    if len(body) == 1 and ast.get_docstring(tree, clean=False) is not None:
        return  # a header is not a result
    pending = [body]
    while pending:
        block = pending.pop()
        last = block[-1] if block else None
        if isinstance(last, ast.If):
            pending += [last.orelse, last.body]
        elif isinstance(last, ast.Expr) and not _is_ellipsis(last.value):
            yield last


def _is_ellipsis(value: ast.expr) -> bool:
    """``...`` is how an empty branch is written."""
    return isinstance(value, ast.Constant) and value.value is Ellipsis
