"""A call of a model in words, for people: "reads journal 2025-01" instead of a name and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.base.short_text import shorten_line

_MAX_VALUE: Final = 80
_MAX_WORDS: Final = 200
_ALL: Final = ("*",)
_WORDS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "read_file": ("reads", ("file_path",)),
    "write_file": ("writes", ("file_path",)),
    "str_replace": ("changes", ("file_path",)),
    "apply_patch": ("changes", ("patch",)),
    "grep_files": ("searches", ("path", "include", "pattern")),
    "list_dir": ("lists", ("dir_path",)),
    "view_image": ("looks at", ("path",)),
    "agent_check": ("checks", ("name",)),
    "try": ("tries out", ("name",)),
    "bank_preview": ("looks at the bank file", ("file_path",)),
    "history_try": ("tries on past runs", ("name",)),
    "propose": ("proposes", ()),
    "primitives": ("looks up what scripts can call", ("name",)),
    "agent_read": ("reads about agents", ("name",)),
    "query": ("reads", _ALL),
    "runs_read": ("reads runs", ("agent", "id")),
    "web_search": ("searches the web for", ("query",)),
    "transcript": ("has a recording put into words:", ("url",)),
    "update_plan": ("writes down its plan", ()),
    "shell_command": ("runs", ("command",)),
    "spawn_process": ("starts", ("command",)),
    "run_until_file": ("runs", ("command",)),
    "kill_process": ("ends a process", ()),
    "wait_for_port": ("waits for port", ("port",)),
    "wait_for_file": ("waits for", ("path",)),
}
"""Tool → what it does, and the arguments that say to what. A tool that is not here is called by its name."""
_WITHOUT: Final = {"agent_check": "its draft", "list_dir": "the workspace"}


def describe_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """What the call does, on one line. The values are the model's own words, shortened."""
    does, names = _WORDS.get(tool, (f"calls {tool}", _ALL))
    if names == _ALL:
        names = tuple(name for name in arguments if name != "limit")
    values = [arguments[name] for name in names if arguments.get(name) not in (None, "", ".")]
    if tool == "apply_patch":
        values = list(_list_patched(str(arguments.get("patch", ""))))
    words = [does, *(shorten_line(_say_value(value), _MAX_VALUE) for value in values or [_WITHOUT.get(tool, "")])]
    return shorten_line(" ".join(words), _MAX_WORDS)


def _list_patched(patch: str) -> list[str]:
    """The files that a unified diff names."""
    names = [line[4:].split("\t")[0].strip() for line in patch.splitlines() if line.startswith(("--- ", "+++ "))]
    plain = [name.removeprefix("a/").removeprefix("b/") for name in names if name != "/dev/null"]
    return list(dict.fromkeys(plain))[:5]


def _say_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_say_value(one)}" for key, one in value.items())
    return " ".join(_say_value(one) for one in value) if isinstance(value, list | tuple) else str(value)
