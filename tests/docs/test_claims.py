"""Each claim of docs/security.md names tests, and those tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
HEADING = "## Claims and their tests"
NAMED = re.compile(r"`(?P<file>tests/[\w/]+\.py)::(?P<name>\w+(?:::\w+)?)`")


@cache
def names_in(file: str) -> set[str]:
    """Names of its test functions, methods as ``Class::name``."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for parent in tree.body:
        if isinstance(parent, ast.ClassDef):
            found |= {f"{parent.name}::{node.name}" for node in parent.body if isinstance(node, ast.FunctionDef)}
    return found


def rows() -> list[tuple[str, str]]:
    """Claim and the cell that names its tests."""
    _, _, section = (ROOT / "docs/security.md").read_text(encoding="utf-8").partition(HEADING)
    assert section, f"docs/security.md has no section {HEADING!r}"
    section = section.split("\n## ")[0]
    found = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    return [(claim, tests) for claim, tests in found if set(claim) != {"-"} and claim != "claim"]


def test_each_claim_names_tests_that_exist() -> None:
    assert len(rows()) >= 40
    for claim, cell in rows():
        named = [match.groups() for match in NAMED.finditer(cell)]
        assert named, f"no test is named beside {claim!r}"
        for file, name in named:
            assert (ROOT / file).is_file(), f"{claim!r} names {file}, which is not there"
            assert name in names_in(file), f"{claim!r} names {name}, which {file} has not"
