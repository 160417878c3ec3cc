"""Each claim of docs/claims.yaml names tests, and those tests exist."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from docs.claims_page import list_tests, read_claims

ROOT = Path(__file__).parents[2]


@cache
def names_in(file: str) -> set[str]:
    """Names of its test functions, methods as ``Class::name``."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for parent in tree.body:
        if isinstance(parent, ast.ClassDef):
            found |= {f"{parent.name}::{node.name}" for node in parent.body if isinstance(node, ast.FunctionDef)}
    return found


def test_each_claim_names_tests_that_exist() -> None:
    claims = [claim for each in read_claims().values() for claim in each]
    assert len(claims) >= 40
    for claim in claims:
        named = list(list_tests(claim))
        assert named, f"no test is named beside {claim['claim']!r}"
        for file, _, name in (each.partition("::") for each in named):
            assert (ROOT / file).is_file(), f"{claim['claim']!r} names {file}, which is not there"
            assert name in names_in(file), f"{claim['claim']!r} names {name}, which {file} has not"
