"""H2: the tools are those of the contract, with their parameters."""

from __future__ import annotations

import json
from collections.abc import Callable

from harness import Workspace, take_ok
from tool_session import Session

from cleared.meta.call_words import describe_call
from cleared.meta.tools.tool import shorten_schema

CONTRACT = {
    "shell_command": ("command", "workdir?", "timeout_ms?"),
    "read_file": ("file_path", "offset?", "limit?"),
    "write_file": ("file_path", "content"),
    "apply_patch": ("patch",),
    "grep_files": ("pattern", "include?", "path?", "limit?"),
    "list_dir": ("dir_path?", "depth?", "limit?"),
    "view_image": ("path",),
    "web_search": ("query", "num_results?", "search_type?"),
    "update_plan": ("steps", "explanation?"),
    "transcript": ("url", "instruction"),
    "spawn_process": ("command", "cwd?", "stdout_path?"),
    "kill_process": ("pid", "signal?"),
    "wait_for_port": ("port", "host?", "timeout_sec?"),
    "wait_for_file": ("path", "timeout_sec?", "min_size_bytes?"),
    "run_until_file": ("command", "file_path", "timeout_sec?"),
}
CACHEABLE = {"read_file", "grep_files", "list_dir", "view_image", "web_search"}
OWN = {
    "primitives",
    "agent_read",
    "agent_check",
    "history_try",
    "try",
    "str_replace",
    "query",
    "runs_read",
    "propose",
    "bank_preview",
}


def test_the_tools_are_those_of_the_contract(ws: Workspace, start: Callable[[Workspace], Session]) -> None:
    switches = "  shell: true\n  search_command: [search]\n  transcript_command: [transcribe]\n"
    ws.put("config.yaml", ws.read("config.yaml") + f"\nllm:\n{switches}")
    take_ok(ws, "config", "approve")
    tools = start(ws).tools.tools
    assert tools.keys() == CONTRACT.keys() | OWN
    for name, parameters in CONTRACT.items():
        schema = tools[name].parameters
        shown = tuple(p if p in schema["required"] else f"{p}?" for p in schema["properties"])
        assert sorted(shown) == sorted(parameters), name
        assert tools[name].cacheable == (name in CACHEABLE), name
    acting = {name for name, tool in tools.items() if tool.acts}
    assert acting == {
        "shell_command",
        "write_file",
        "str_replace",
        "apply_patch",
        "spawn_process",
        "kill_process",
        "run_until_file",
        "propose",
        "bank_preview",
    }
    named = [name for name in tools if describe_call(name, {}).startswith("calls ")]
    assert named == [], "CARD 2: a person reads each call in words"


def test_a_failed_and_an_invalid_call_are_told_apart(session: Session) -> None:
    """H6."""
    failed = session.failed("read_file", file_path="agents/nobody.py")
    assert failed.endswith("What to do: list_dir shows which there are.")
    invalid = session.invalid("read_file", file_path=["x"])
    assert "file_path must be of type string, not array. Nothing was done." in invalid
    assert "Call it again with these parameters (file_path: string, offset?: integer, limit?: integer)" in invalid


def test_a_model_is_not_told_of_tools_that_are_off(session: Session) -> None:
    assert not session.tools.tools.keys() & {"shell_command", "spawn_process", "web_search", "transcript"}
    assert "Not configured here: shell_command" in session.tools.initial_state()
    session.failed("shell_command", "llm.shell", command="ls")


def test_what_a_model_is_sent_of_a_schema_has_no_bounds(session: Session) -> None:
    """A refusal names them where a call does not keep them."""
    sent = json.dumps([shorten_schema(tool.parameters) for tool in session.tools.tools.values()])
    assert '"required": ["file_path", "content"]' in sent and '"default": 50' in sent
    assert not [word for word in ("maxLength", "minimum", "additionalProperties") if word in sent]
    session.invalid("primitives", "must have 0 to 500 characters", name="x" * 501)
