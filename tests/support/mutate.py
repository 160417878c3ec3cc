"""Mutation testing: change one thing in a module, run its tests, and see whether one of them fails.

    python tests/support/mutate.py cleared/books/ledger tests/ledger tests/properties/test_property_books.py

Each change is made in memory, in a process of its own; no file is touched. With ``--in-place`` it is written to the
file instead, for tests that use fixtures and start processes: run it in a clone of its own. Printed are the changes
that no test noticed (*survivors*), each with its line, and the share of those that were noticed. ``--sample N`` takes
every Nth change, ``--only TEXT`` those whose line or description has the text in it, ``--list`` runs nothing.

A survivor is either a gap in the tests or a change that means the same; which it is, a person has to say.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.machinery
import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

COMPARISONS = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATIONS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}
SECONDS = 120
"""After so many a run of the tests is ended, and the change counts as noticed."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: the module's file, the line, what is done to it, and the changed module as code."""

    file: Path
    line: int
    description: str
    code: CodeType
    source: str


def list_mutations(file: Path) -> Iterator[Mutation]:
    """Every change of the module, in the order of its lines."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped = {id(inner) for node in ast.walk(tree) for outer in _texts_of(node) for inner in ast.walk(outer)}
    nodes = [node for node in ast.walk(tree) if id(node) not in skipped]
    for position, node in enumerate(nodes):
        for number in range(len(_changes(node))):
            changed = copy.deepcopy(tree)
            memo_skipped = {id(i) for n in ast.walk(changed) for outer in _texts_of(n) for i in ast.walk(outer)}
            target = [n for n in ast.walk(changed) if id(n) not in memo_skipped][position]
            description, change = _changes(target)[number]
            change()
            ast.fix_missing_locations(changed)
            line = getattr(node, "lineno", 0)
            yield Mutation(file, line, description, compile(changed, str(file), "exec"), ast.unparse(changed))


def _texts_of(node: ast.AST) -> list[ast.AST]:
    """What no test is to notice: annotations, and the texts of errors."""
    if isinstance(node, ast.AnnAssign):
        return [node.annotation]
    if isinstance(node, ast.FunctionDef):
        arguments = [*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs]
        return [a.annotation for a in arguments if a.annotation] + ([node.returns] if node.returns else [])
    return [node] if isinstance(node, ast.JoinedStr) else []


def _changes(node: Any) -> list[tuple[str, Any]]:
    """The ways to change one node: what is done, and the function that does it."""

    def put(owner: Any, name: str, value: Any) -> Any:
        return lambda: setattr(owner, name, value)

    out: list[tuple[str, Any]] = []
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            other = COMPARISONS[type(operator)]
            operators = [*node.ops[:i], other(), *node.ops[i + 1 :]]
            out.append((f"{type(operator).__name__} becomes {other.__name__}", put(node, "ops", operators)))
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        new_operation = OPERATIONS[type(node.op)]
        if not _is_text(node.left) and not _is_text(node.right):
            out.append((f"{type(node.op).__name__} becomes {new_operation.__name__}", put(node, "op", new_operation())))
    elif isinstance(node, ast.BoolOp):
        other_operator = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        out.append(("and, or are exchanged", put(node, "op", other_operator)))
        for i in range(len(node.values)):
            out.append((f"condition {i + 1} is left out", put(node, "values", _without(node.values, i))))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        out.append(("the minus is left out", put(node, "op", ast.UAdd())))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        out.append(("the not is left out", put(node, "operand", ast.UnaryOp(ast.Not(), node.operand))))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        out.append(("the condition is never true", put(node, "test", ast.Constant(False))))
        if not isinstance(node, ast.While):
            out.append(("the condition is always true", put(node, "test", ast.Constant(True))))
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        out.append((f"{node.value} becomes {not node.value}", put(node, "value", not node.value)))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        out.append((f"{node.value} becomes {node.value + 1}", put(node, "value", node.value + 1)))
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        out.append(("returns None", put(node, "value", ast.Constant(None))))
    elif isinstance(node, ast.Expr | ast.AugAssign) and not isinstance(getattr(node, "value", None), ast.Constant):
        out.append(("the statement is left out", put(node, "__class__", ast.Pass)))
    elif isinstance(node, ast.Raise):
        out.append(("nothing is raised", put(node, "__class__", ast.Pass)))
    return out


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _without(values: list[ast.expr], index: int) -> list[ast.expr]:
    rest = [*values[:index], *values[index + 1 :]]
    return rest if len(rest) > 1 else [rest[0], rest[0]]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the changed module to whoever imports it."""

    def __init__(self, name: str, mutation: Mutation) -> None:
        self.name = name
        self.mutation = mutation

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self.mutation.file))

    def exec_module(self, module: Any) -> None:
        module.__file__ = str(self.mutation.file)
        exec(self.mutation.code, module.__dict__)


def is_noticed(mutation: Mutation, tests: list[str]) -> bool:
    """Whether a test fails, or takes too long, with this change."""
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            name = ".".join(mutation.file.with_suffix("").parts)
            sys.meta_path.insert(0, _Finder(name, mutation))
            import pytest

            code = 3
            with contextlib.suppress(BaseException):
                code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "--noconftest", "-o", "addopts=", *tests])
        os._exit(int(code))
    return os.waitpid(child, 0)[1] != 0


def is_noticed_in_place(mutation: Mutation, tests: list[str]) -> bool:
    """The same with the change written to the file, and the tests run as they always are."""
    before = mutation.file.read_bytes()
    try:
        mutation.file.write_text(mutation.source, encoding="utf-8")
        return not run_tests(tests)
    finally:
        mutation.file.write_bytes(before)


def run_tests(tests: list[str]) -> bool:
    """Whether they all pass, in time."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", *tests]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait(SECONDS) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False


def main() -> None:
    """Run the changes of a package or module against its tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--in-place", action="store_true")
    given = parser.parse_args()
    files = [given.target] if given.target.is_file() else sorted(given.target.glob("*.py"))
    mutations = [m for file in files for m in list_mutations(file)]
    mutations = [m for m in mutations if given.only in f"{m.file}:{m.line}: {m.description}"][:: given.sample]
    if given.list:
        print(*(f"{m.file}:{m.line}: {m.description}" for m in mutations), f"{len(mutations)} changes", sep="\n")
        return
    if given.in_place and not run_tests(given.tests):
        raise SystemExit("the tests fail, or take too long, without any change")
    notice = is_noticed_in_place if given.in_place else is_noticed
    if not given.in_place:
        os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    import hypothesis  # loaded once, for all the processes
    import pytest  # noqa: F401

    hypothesis.settings.register_profile("mutation", deadline=None, derandomize=True, database=None)
    hypothesis.settings.load_profile("mutation")
    began = time.monotonic()
    survivors = 0
    for number, mutation in enumerate(mutations, 1):
        if not notice(mutation, given.tests):
            survivors += 1
            print(f"survived: {mutation.file}:{mutation.line}: {mutation.description}", flush=True)
        if number % 50 == 0:
            print(f"{number} of {len(mutations)}, {survivors} survived, {time.monotonic() - began:.0f} s", flush=True)
    share = 100 * (len(mutations) - survivors) / max(1, len(mutations))
    print(f"{len(mutations)} changes, {survivors} survived: {share:.1f} % noticed")


if __name__ == "__main__":
    main()
