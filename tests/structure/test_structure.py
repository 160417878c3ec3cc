"""The package stays easy to find one's way in. Each rule has its reason; change the rule if the reason is gone."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

import cleared

PACKAGE = Path(cleared.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))

MOST_LINES = 400
"""A longer module has more than one concern, or hides one."""
MOST_FUNCTION_LINES = 70
"""A longer function does more than its name says."""
MOST_ONE_WORD = 20
"""Percent of functions with a one-word name: enough only where module or class make the object certain."""
VAGUE = frozenset(
    {
        "act",
        "asked",
        "desk",
        "do",
        "done",
        "due",
        "found",
        "given",
        "gone",
        "held",
        "here",
        "kept",
        "knobs",
        "known",
        "lore",
        "made",
        "meant",
        "news",
        "said",
        "surface",
        "taken",
        "told",
        "wanted",
        "words",
    }
)
"""Function names that need their body to be understood: they say neither what is done nor to what."""
SHARED = frozenset({"cli", "primitives"})
"""A command, a primitive and their domain may share a module name (``cli/journal``, ``books/primitives/journal``)."""


def shown(path: Path) -> str:
    return path.relative_to(PACKAGE.parent).as_posix()


@cache
def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__")
    ]


def test_modules_are_short() -> None:
    lines = {shown(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    long = [f"{path} has {count} lines: split it by concern" for path, count in lines.items() if count > MOST_LINES]
    assert len(lines) > 500 and not long, "\n".join(long)


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of what a function does: without its signature, which the formatter unfolds, and its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def test_functions_are_short() -> None:
    long = [
        f"{shown(path)}:{node.lineno} {node.name}: {body_lines(node)} lines"
        for path in MODULES
        for node in functions(path)
        if body_lines(node) > MOST_FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


def test_module_names_are_unique() -> None:
    """A name that stands twice sends half of its readers to the wrong file."""
    places = defaultdict(list)
    for path in MODULES:
        if path.stem not in ("__init__", "__main__"):
            places[path.stem].append(path)
    twins = {
        name: [shown(path) for path in found]
        for name, found in places.items()
        if len([path for path in found if path.parent.name not in SHARED]) > 1
    }
    assert not twins, twins


def test_names_of_test_modules_are_unique() -> None:
    """Of two modules of one name, pytest collects only the first."""
    names = Counter(path.name for path in Path(__file__).parents[1].rglob("*.py") if path.name != "__init__.py")
    assert not [name for name, count in names.items() if count > 1 and name not in ("conftest.py", "__main__.py")]


def test_no_function_has_a_vague_name() -> None:
    vague = [
        f"{shown(path)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in functions(path)
        if node.name.strip("_") in VAGUE
    ]
    assert not vague, "\n".join(vague)


def test_most_functions_name_their_object() -> None:
    total, one_word = 0, Counter[str]()
    for path in MODULES:
        for node in functions(path):
            total += 1
            one_word[path.relative_to(PACKAGE).parts[0]] += "_" not in node.name.strip("_")
    share = 100 * one_word.total() / total
    assert share <= MOST_ONE_WORD, f"{share:.0f} % have a one-word name; most of them: {one_word.most_common(5)}"


@pytest.mark.parametrize("room", sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
def test_a_room_says_what_it_may_import_and_where_to_begin(room: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / room / "__init__.py").read_text(encoding="utf-8"))) or ""
    before, _, begin = " ".join(text.split()).partition("Begin with ``")
    first = begin.partition("``")[0].replace(".", "/")
    assert " import" in before
    assert first and ((PACKAGE / room / f"{first}.py").is_file() or (PACKAGE / room / first).is_dir()), text
