"""Which commands of the command line commit: read off the program, so that a new one is found by itself.

A command commits where its function names, itself or through functions and classes that it names, the one function
that makes commits. Names are followed through imports; a class stands for all its methods.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

import cleared
from cleared.cli.commands import build_tree

COMMIT = ("cleared.git.commit", "commit_changes")
Function = tuple[str, str]
"""Module and name."""


def list_commands() -> dict[str, Function]:
    """Each command of the tree (``journal add``), and its function."""
    return dict(_walk(typer.main.get_command(build_tree()), ()))


def _walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Function]]:
    inner = getattr(command, "commands", None)
    if inner:
        for name, each in inner.items():
            yield from _walk(each, (*path, name))
    else:
        function = getattr(command.callback, "__wrapped__", command.callback)
        yield " ".join(path), (function.__module__, function.__name__)


def list_committing_commands() -> set[str]:
    return {name for name, function in list_commands().items() if reaches(function, COMMIT)}


def reaches(start: Function, wanted: Function) -> bool:
    """Whether one names the other, through whatever lies between."""
    seen, waiting = {start}, [start]
    while waiting:
        for each in _named_by(waiting.pop()) - seen:
            seen.add(each)
            waiting.append(each)
    return wanted in seen


@cache
def _sources() -> dict[str, ast.Module]:
    root = Path(cleared.__file__).parent
    return {
        ".".join(("cleared", *path.relative_to(root).with_suffix("").parts)).removesuffix(".__init__"): ast.parse(
            path.read_bytes()
        )
        for path in root.rglob("*.py")
    }


@cache
def _defined_in(module: str) -> dict[str, ast.stmt]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {each.name: each for each in _sources()[module].body if isinstance(each, kinds)}


@cache
def _imported_by(module: str) -> dict[str, tuple[str, str]]:
    return _imports(_sources()[module].body)


def _imports(body: list[ast.stmt]) -> dict[str, tuple[str, str]]:
    """What ``from cleared… import`` makes known in these statements: name → module and name there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cleared")
        for alias in node.names
    }


def _find(module: str, name: str) -> Function | None:
    """Where a name that a module uses is defined; ``(module, "")`` where it is a module."""
    if module not in _sources():
        return None
    if name in _defined_in(module):
        return module, name
    if name not in _imported_by(module):
        return None
    return _follow(*_imported_by(module)[name])


def _follow(module: str, name: str) -> Function | None:
    return (f"{module}.{name}", "") if f"{module}.{name}" in _sources() else _find(module, name)


@cache
def _named_by(function: Function) -> frozenset[Function]:
    module, name = function
    body = _defined_in(module)[name]
    inner, named = _imports([body]), set[Function | None]()

    def find(word: str) -> Function | None:
        return _follow(*inner[word]) if word in inner else _find(module, word)

    for node in ast.walk(body):
        if isinstance(node, ast.Name):
            named.add(find(node.id))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner = find(node.value.id)
            if owner is not None and not owner[1] and node.attr in _defined_in(owner[0]):
                named.add((owner[0], node.attr))
    return frozenset(each for each in named if each is not None and each[1])
