"""One list of rules: whatever is found is in it, whatever is in it can be found, and its page says the same."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleared.gate.lint_rules import CHECKS, RULES, rule_of
from cleared.sandbox import header_values
from scripts import BODIES, HOSTILE, WHOLE, unmarked

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docs import generate  # noqa: E402

STATIC = ("lint", "traps", "types")
SOURCES = [
    *(ROOT / "cleared/sandbox").glob("*.py"),
    *(ROOT / "cleared/gate").glob("*.py"),
    ROOT / "cleared/books/script_rules.py",
]
_ID = re.compile(r"(?:type:)?[a-z]+(?:-[a-z]+)*")


def emitted() -> Iterator[tuple[str, str]]:
    """File and id of every finding that is made with its rule's id in the text, and of every rule declared beside its
    code."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                makes_one = name in ("Finding", "declare") or name.endswith("_finding")
                parts = node.args[: 2 if name == "_script_finding" else 1] if makes_one else []
            elif isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple):
                parts = node.value.elts[:1]
            else:
                continue
            for part in parts:
                for leaf in [part.body, part.orelse] if isinstance(part, ast.IfExp) else [part]:
                    if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str) and _ID.fullmatch(leaf.value):
                        yield path.name, leaf.value


def test_every_rule_that_is_emitted_is_listed() -> None:
    found = set(emitted())
    assert {"dunder", "header-key", "round-money", "unknown-account", "watched"} <= {rule for _, rule in found}
    assert not {(file, rule) for file, rule in found if rule not in RULES}
    assert {f"header-{rule}" for rule in re.findall(r'Bad\("([a-z]+)"', inspect.getsource(header_values))} <= set(RULES)


def test_every_static_rule_is_exercised_by_the_table() -> None:
    found = {rule for _, expected in HOSTILE.values() for rule, _ in expected}
    for text in (*BODIES.values(), *WHOLE.values()):
        found |= {rule for rule, _, _ in unmarked(text)[1]}
    listed = {rule.id for rule in RULES.values() if rule.stage in STATIC}
    assert listed - found == {"type:*"}
    assert {rule_of(rule).id for rule in found - listed} == {"type:*"}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_why_and_what_to_do(rule: object) -> None:
    from cleared.sandbox.finding import Rule

    assert isinstance(rule, Rule) and RULES[rule.id] is rule
    assert rule.finds and not rule.finds.endswith(".")
    assert rule.why.endswith(".") and rule.remedy.endswith((".", '"'))
    assert rule.stage in CHECKS or rule.stage == "policy"


def test_a_rule_that_nobody_lists_is_no_rule() -> None:
    with pytest.raises(KeyError):
        rule_of("no-such-rule")


def test_the_page_is_what_the_code_says() -> None:
    page = (generate.FOLDER / "rules.md").read_text(encoding="utf-8")
    assert page == generate.pages()["rules.md"], "docs/reference/rules.md is stale: python -m docs.generate"
    assert all(f"| `{rule}` |" in page for rule in RULES)
