"""What tests take of the program is there, in the tests too that are run seldom."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parents[1]


def find_missing_names(text: str) -> Iterator[str]:
    """Names imported from modules of ``cleared`` that have none such, and attributes of modules imported whole."""
    tree = ast.parse(text)
    modules: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("cleared"):
            continue
        for alias in node.names:
            found = _find_name(str(node.module), alias.name)
            if found is None:
                yield f"line {node.lineno}: {node.module} has no {alias.name}"
            elif isinstance(found, ModuleType):
                modules[alias.asname or alias.name] = found
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    assigned |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id not in assigned:
            module = modules.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                yield f"line {node.lineno}: {module.__name__} has no {node.attr}"


def _find_name(module: str, name: str) -> object | None:
    try:
        found = getattr(importlib.import_module(module), name, None)
        return found if found is not None else importlib.import_module(f"{module}.{name}")
    except ImportError:
        return None


def test_each_test_takes_only_what_there_is() -> None:
    missing = {
        path.relative_to(TESTS).as_posix(): found
        for path in sorted(TESTS.rglob("*.py"))
        if (found := list(find_missing_names(path.read_text(encoding="utf-8"))))
    }
    assert missing == {}


@pytest.mark.parametrize(
    "text",
    [
        "from cleared.books import queries\nqueries.read_nothing()",
        "def test():\n    from cleared.books.queries import read_nothing",
        "from cleared.nowhere import anything",
    ],
)
def test_what_is_not_there_is_seen(text: str) -> None:
    assert len(list(find_missing_names(text))) == 1
