"""H2: the tools are those of the contract, with their parameters."""

from __future__ import annotations

from tool_session import Session

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
OWN = {"primitives", "agent_read", "agent_check", "history_try", "query", "runs_read", "propose"}


def test_the_tools_are_those_of_the_contract(session: Session) -> None:
    tools = session.tools.tools
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
        "apply_patch",
        "spawn_process",
        "kill_process",
        "run_until_file",
        "propose",
    }


def test_a_failed_and_an_invalid_call_are_told_apart(session: Session) -> None:
    """H6."""
    failed = session.failed("read_file", file_path="agents/nobody.py")
    assert failed.endswith("What to do: list_dir shows which there are.")
    invalid = session.invalid("read_file", file_path=["x"])
    assert "file_path must be of type string, not array. Nothing was done." in invalid
    assert "Call it again with these parameters (file_path: string, offset?: integer, limit?: integer)" in invalid
