"""What a model is told to do can be done (CARD 3): each command and each tool that is named to it is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, here
from tool_session import Session

import cleared.meta
from cleared.gate.language_guide import describe_language, read_examples
from cleared.gate.lint_rules import RULES
from cleared.meta.system_prompt import read_shipped_template
from cleared.meta.tools.remedy_words import TOOL_OF, say_to_model

SOURCES = sorted(Path(cleared.meta.__file__).parent.rglob("*.py"))
REFUSALS = ("ToolFailed", "InvalidCall", "UsageError", "describe_failure")


def strings_of(node: ast.AST) -> Iterator[str]:
    """The texts in a piece of a program, those between the holes of an f-string too."""
    for each in ast.walk(node):
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value


def list_refusals() -> list[str]:
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in REFUSALS:
                found += [" ".join(strings_of(each)) for each in [*node.args, *(k.value for k in node.keywords)]]
    return found


def test_each_command_that_is_named_is_there() -> None:
    texts = [text for path in SOURCES for text in strings_of(ast.parse(path.read_text(encoding="utf-8")))]
    texts += [read_shipped_template(), read_examples(), describe_language()]
    named = {match for text in texts for match in re.findall(r"\bcleared ([a-z]+)(?: ([a-z]+))?", text)}
    assert len(named) > 10
    for group, word in sorted(named):
        usage = here(group, "--help")
        assert usage.code == 0, group
        if word and "Commands:" in usage.out and group != "meta":
            assert here(group, word, "--help").code == 0, (group, word)


def test_each_tool_that_a_refusal_names_is_there(session: Session) -> None:
    tools = session.tools._all
    parameters = {name for tool in tools.values() for name in tool.parameters["properties"]}
    named = {word for text in list_refusals() for word in re.findall(r"(?<![.\w])[a-z]+_[a-z_]+(?![.\w])", text)}
    assert {"list_dir", "write_file", "agent_check"} <= named
    known = {*tools, *parameters, "ledger_account", "bank_accounts", "in_progress"}
    assert named - known == set()


@pytest.mark.parametrize("command", TOOL_OF)
def test_each_tool_that_stands_for_a_command_is_there(ws: Workspace, session: Session, command: str) -> None:
    assert here(*command.split(), "--help").code == 0
    name, _, what = TOOL_OF[command].partition("(what=")
    tool = session.tools.tools[name]
    assert not what or what.rstrip(")") in tool.parameters["properties"]["what"]["enum"]
    said = say_to_model(f"See cleared {command}.")
    assert said == f"See {TOOL_OF[command]}."


def test_a_command_that_only_the_owner_gives_is_said_to_be_theirs(session: Session) -> None:
    """Findings and refusals of the gate were written for a person at a command line."""
    for text in ["Approve it: cleared agent approve P1.", *(rule.remedy for rule in RULES.values())]:
        said = say_to_model(text)
        assert "cleared " not in said or "the owner" in said, said
    session.ok("write_file", file_path="agents/x.py", content="import os\n1\n")
    told = session.failed("try", "import is not available", name="x", sample=True)
    assert "cleared" not in told
    sampled = session.ok("try", name="ingest", sample=True)
    assert "Over sample data" in sampled and "entries: " in sampled and '"imported": 9' in sampled
    assert "log: Parsed 9 transactions" in sampled, sampled
