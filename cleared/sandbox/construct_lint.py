"""The construct lint: refuses constructs that the agent language does not have, before a script runs.

The interpreter accepts most of these constructs, and isolation does not rest on this lint: the sandbox denies files,
environment and network. The lint keeps scripts small, flat and easy to review.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain

from cleared.base.errors import Place
from cleared.sandbox import unicode_lint
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.script_source import find_comments, find_misplaced, line_column, normalise_text, parse_script

_SMALL = "Scripts stay flat and small, so that whoever reviews one sees all that it does."

RULES = make_rules(
    "lint",
    {
        "syntax": (
            "text that is no Python, or is none in its place: a `return` outside a function, an argument given twice",
            "Such a script cannot be read, or ends where nobody expects it to.",
            "Correct the line.",
        ),
        "nesting": (
            "brackets, operators or branches nested deeper than the parser or the interpreter goes",
            "Reading a script must take bounded time and memory, whatever its text.",
            "Name the parts; keep many cases in a list and loop over it.",
        ),
        "size": (
            "a script larger than 256 kB",
            "Reading a script must take bounded time and memory; what is this large is data.",
            "Move data to a file in import/ or to config.yaml, shared code to scripts/.",
        ),
        "character": (
            "NUL and other control characters, bytes that are not UTF-8",
            "Terminals obey control characters: what is reviewed would not be what is run.",
            "Delete it, or write it as an escape inside a string.",
        ),
        "bidi": (
            "characters that turn the direction of the text, or that editors take for the end of a line",
            "They make the text read differently from how it runs.",
            "Delete it, or write it as an escape inside a string.",
        ),
        "import": (
            "`import` and `from … import`",
            "All that a script can do are its primitives, which are granted, recorded and rehearsed.",
            "Remove it. Primitives and builtins are already in scope.",
        ),
        "class": ("`class`, and `type(…)` that makes one", _SMALL, "Use a dict and functions."),
        "try": (
            "`try`",
            "An error ends the run and nothing of it is committed; a script that goes on posts half of the truth.",
            "Test the condition beforehand, e.g. with accounts_exists() or `in`.",
        ),
        "with": ("`with`", "There is nothing that a script would have to close.", "Call the primitives directly."),
        "decorator": (
            "a decorator",
            "A decorated function does something else than what its text says.",
            "Call the function where it is needed.",
        ),
        "yield": (
            "`yield`",
            "A generator's primitives are called at another time than its text says.",
            "Collect the values in a list.",
        ),
        "async": (
            "`async` and `await`",
            "A run's primitives are called one after the other, in one order, which a replay repeats.",
            "Use a plain def or for; primitives return their result directly.",
        ),
        "del": (
            "`del`",
            "The type check goes by one meaning for each name, and the interpreter lacks it.",
            "Use .pop(), or assign a new value.",
        ),
        "forbidden-name": (
            "`open`, `eval`, `exec`, `getattr`, `globals` and their like, called or only named",
            "They reach files or names that no reader and no check can see in the text.",
            "Use a primitive, or a dict of your own.",
        ),
        "dunder": (
            "names such as `__class__`",
            "They reach into the interpreter instead of the books.",
            "Use another name, or a dict key.",
        ),
        "type-ignore": (
            "a comment such as `# type: ignore`",
            "It would silence the type check, which is there to find what a test run does not reach.",
            "Delete the comment and correct what it hides.",
        ),
    },
)
RULES |= unicode_lint.RULES

_AVAILABLE = "Primitives and builtins are already in scope."
_DATES = {"datetime", "time", "calendar", "zoneinfo"}

# Node class name → rule, message, remedy. By name, because some classes are newer than Python 3.11.
_CONSTRUCTS: dict[str, tuple[str, str, str]] = {
    "Import": ("import", "import is not available to scripts", f"Remove it. {_AVAILABLE}"),
    "ImportFrom": ("import", "import is not available to scripts", f"Remove it. {_AVAILABLE}"),
    "ClassDef": ("class", "class definitions are not available to scripts", "Use a dict and functions."),
    "Try": (
        "try",
        "try is not available to scripts: an error ends the run and nothing is committed",
        "Test the condition beforehand, e.g. with accounts_exists() or `in`.",
    ),
    "TryStar": ("try", "try is not available to scripts", "Test the condition beforehand."),
    "With": ("with", "with is not available to scripts", "Call the primitives directly."),
    "AsyncWith": ("async", "async with is not available to scripts", "Call the primitives directly."),
    "AsyncFor": ("async", "async for is not available to scripts", "Use a plain for."),
    "AsyncFunctionDef": ("async", "async functions are not available to scripts", "Use a plain def."),
    "Await": ("async", "await is not available to scripts", "Primitives return their result directly."),
    "Yield": ("yield", "yield is not available to scripts", "Collect the values in a list."),
    "YieldFrom": ("yield", "yield is not available to scripts", "Collect the values in a list."),
    "Delete": ("del", "del is not available to scripts", "Use .pop(), or assign a new value."),
}

_FORBIDDEN_NAMES: dict[str, str] = {
    "open": "Bank files come from importer_scan() and importer_parse().",
    "eval": "Write the expression itself.",
    "exec": "Write the statements themselves, or share them in scripts/.",
    "compile": "Write the code itself.",
    "__import__": _AVAILABLE,
    "__builtins__": _AVAILABLE,
    "globals": "Use a dict of your own.",
    "locals": "Use a dict of your own.",
    "vars": "Use a dict of your own.",
    "getattr": "Use a dict and [key] or .get().",
    "hasattr": "Use a dict and `in`.",
    "dir": "Use a dict and .keys().",
    "super": "Use functions.",
    "setattr": "Use a dict and [key] = value.",
    "delattr": "Use a dict and .pop().",
    "input": "A run has nobody to ask; take values from config_get() or ctx_event().",
    "breakpoint": "Use ctx_log() to see values.",
    "help": "See `cleared primitives`.",
}

_MAY_BE_REFUSED = (ast.comprehension, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Call)

# Where a node has the names that it reads, binds or reaches into itself: a name, or a list of them.
_NAME_FIELDS: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.arg: "arg",
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ClassDef: "name",
    ast.Attribute: "attr",
    ast.keyword: "arg",
    ast.Global: "names",
    ast.Nonlocal: "names",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
    ast.ExceptHandler: "name",
    ast.MatchClass: "kwd_attrs",
}

# The interpreter reads a chain of branches as nesting, and nests to 199 levels.
_MAX_BRANCHES = 180

_DUNDER = re.compile(r"__\w+__")
_IGNORE = re.compile(r"#\s*(?:type|ty)\s*:\s*ignore", re.IGNORECASE)


@lru_cache(maxsize=16)
def lint_script(source: str, file: str) -> tuple[Finding, ...]:
    """Every forbidden construct of a script, in the order of the text. Never raises for any text.

    Cached, as each run of an agent asks again about the same text.
    """
    source = normalise_text(source)
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return (tree,)
    by_place: dict[tuple[int, int, str], Finding] = {}
    finders = (
        _find_constructs(tree, source, file),
        _find_type_ignores(source, file),
        unicode_lint.find_invisible(source, file),
        unicode_lint.find_strange_names(source, file),
    )
    for finding in chain.from_iterable(finders):
        key = (finding.place.line or 0, finding.place.column or 0, finding.rule)
        by_place.setdefault(key, finding)
    findings = [by_place[key] for key in sorted(by_place)]
    # `yield` and `await` have rules of their own.
    if all(f.rule in unicode_lint.RULES for f in findings) and (misplaced := find_misplaced(source, file)):
        findings.append(misplaced)
    return tuple(findings)


def _find_type_ignores(source: str, file: str) -> Iterator[Finding]:
    for offset, text in find_comments(source):
        if match := _IGNORE.search(text):
            yield Finding(
                "type-ignore",
                f"{match.group()!r} would silence the type check",
                Place(file, *line_column(source, offset + match.start())),
                "Delete the comment and correct what it hides.",
            )


def _find_constructs(tree: ast.Module, source: str, file: str) -> list[Finding]:
    lines, findings = source.split("\n"), list[Finding]()
    # A stack, not recursion: a chain of a thousand `+` is a thousand levels deep.
    todo: list[tuple[ast.AST, ast.AST | None, int]] = [(tree, None, 0)]
    while todo:
        node, template, branch = todo.pop()
        if isinstance(node, ast.JoinedStr):
            template = template or node
        chain = node.orelse if isinstance(node, ast.If) else []
        for child in ast.iter_child_nodes(node):
            if child._fields:  # the others, a third of all, are operators and the like: none is refused
                todo.append((child, template, branch + 1 if len(chain) == 1 and child is chain[0] else 0))
        if branch == _MAX_BRANCHES + 1 and isinstance(node, ast.If):
            message = f"more than {_MAX_BRANCHES} elif branches are too deep for the interpreter"
            remedy = "Keep the cases in a list of dicts and loop over it."
            findings.append(Finding("nesting", message, Place(file, *_node_position(node, lines)), remedy))
        if type(node).__name__ in _CONSTRUCTS or isinstance(node, _MAY_BE_REFUSED):
            for rule, message, remedy, at, word in _refused_constructs(node):
                findings.append(Finding(rule, message, Place(file, *_find_position(at, template, word, lines)), remedy))
        named = getattr(node, _NAME_FIELDS.get(type(node), ""), None) or ()
        for word in [named] if isinstance(named, str) else named:
            # Of attributes and arguments of a call only dunders can be forbidden.
            is_dunder = _DUNDER.fullmatch(word) is not None
            is_forbidden = word in _FORBIDDEN_NAMES
            if is_forbidden and not is_dunder and isinstance(node, ast.Attribute | ast.keyword):
                continue
            if not (is_forbidden or is_dunder or template is not None):
                continue
            place = Place(file, *_find_position(node, template, word, lines))
            if template is not None and unicode_lint.is_strange_name(word, template, lines):
                findings.append(unicode_lint.strange_name_finding(word, place))
            if is_forbidden:
                message = f"{word} is not available to scripts"
                findings.append(Finding("forbidden-name", message, place, _FORBIDDEN_NAMES[word]))
            elif is_dunder:
                message = f"{word}: names with two underscores on both sides belong to the interpreter"
                findings.append(Finding("dunder", message, place, "Use another name, or a dict key."))
    return findings


def _refused_constructs(node: ast.AST) -> Iterator[tuple[str, str, str, ast.AST, str]]:
    """Rule, message and remedy of each refusal of ``node``, but for its names; the node that gives the place, the word
    expected there."""
    kind = type(node).__name__
    if kind in _CONSTRUCTS:
        rule, message, remedy = _CONSTRUCTS[kind]
        if _imports_dates(node):
            remedy = "Remove it. ctx_today() gives the date, and ctx_now() the time."
        yield rule, message, remedy, node, ""
    if isinstance(node, ast.comprehension) and node.is_async:
        yield "async", "async for is not available to scripts", "Use a plain for.", node.target, ""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        for decorator in node.decorator_list:
            message = "decorators are not available to scripts"
            yield "decorator", message, "Call the function where it is needed.", decorator, ""
    if _makes_a_class(node):
        yield "class", "type() with more than one argument makes a class", "Use a dict and functions.", node, "type"


def _imports_dates(node: ast.AST) -> bool:
    names = (
        [alias.name for alias in node.names]
        if isinstance(node, ast.Import)
        else ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
    )
    return any(name.split(".")[0] in _DATES for name in names)


def _makes_a_class(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="type"), args=args, keywords=keywords):
            return len(args) + len(keywords) > 1 or any(isinstance(arg, ast.Starred) for arg in args)
    return False


def _find_position(node: ast.AST, template: ast.AST | None, word: str, lines: list[str]) -> tuple[int, int]:
    place = _node_position(node, lines)
    # Python 3.11 guesses positions inside f-strings; where the guess is wrong, use the f-string's own place.
    if template is not None and sys.version_info < (3, 12):
        line, column = place
        text = lines[line - 1][column - 1 :] if line <= len(lines) else ""
        if not word or not text.startswith(word):
            return _node_position(template, lines)
    return place


def _node_position(node: ast.AST, lines: list[str]) -> tuple[int, int]:
    line = getattr(node, "lineno", 1)
    offset = getattr(node, "col_offset", 0)
    if isinstance(node, ast.Attribute) and node.end_lineno and node.end_col_offset:
        line, offset = node.end_lineno, node.end_col_offset - len(node.attr.encode())
    text = lines[line - 1].encode() if line <= len(lines) else b""
    return line, len(text[: max(offset, 0)].decode(errors="ignore")) + 1
