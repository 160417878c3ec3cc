"""``web_search`` and ``transcript``: commands of the owner's that reach the world outside, where there are some."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from cleared.changes.host import Host
from cleared.meta.tools.output_bounds import quote_data
from cleared.meta.tools.tool import Tool, ToolFailed, make_schema
from cleared.processes.outside_command import CommandFailed, run_outside_command

SEARCH_SECONDS: Final = 60.0
TRANSCRIPT_SECONDS: Final = 300.0
_MAX_OUTPUT: Final = 1 << 20


class OutsideTools:
    """The two tools. A command gets the call's arguments as a JSON object, and answers in text."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def make_tools(self) -> list[Tool]:
        return [
            Tool(
                "web_search",
                "Search the web, where the owner has configured how. Never put figures, names or texts of the books "
                "into a query.",
                make_schema(
                    ("query",),
                    query={"type": "string", "minLength": 1, "maxLength": 500},
                    num_results={"type": "integer", "minimum": 1, "maximum": 20, "default": 5},
                    search_type={"type": "string", "enum": ["general", "code", "news", "docs"], "default": "general"},
                ),
                self._search_web,
                cacheable=True,
            ),
            Tool(
                "transcript",
                "Have a video or recording put into words, where the owner has configured how.",
                make_schema(
                    ("url", "instruction"),
                    url={"type": "string", "minLength": 1, "maxLength": 2_000},
                    instruction={"type": "string", "maxLength": 2_000},
                ),
                self._transcribe_video,
            ),
        ]

    def _search_web(self, arguments: Mapping[str, Any]) -> str:
        command = self._host.config.llm.search_command
        return self._run_command("llm.search_command", command, arguments, SEARCH_SECONDS, "the web")

    def _transcribe_video(self, arguments: Mapping[str, Any]) -> str:
        command = self._host.config.llm.transcript_command
        return self._run_command("llm.transcript_command", command, arguments, TRANSCRIPT_SECONDS, "the recording")

    def _run_command(
        self, key: str, command: tuple[str, ...], arguments: Mapping[str, Any], seconds: float, source: str
    ) -> str:
        if not command:
            raise ToolFailed(
                f"it is not configured: the setting {key} names no program",
                f"Do without it. The owner can set it: cleared config set {key} '[PROGRAM, ARGUMENT]'.",
            )
        stdin = (json.dumps(dict(arguments), ensure_ascii=True) + "\n").encode("ascii")
        try:
            output = run_outside_command(
                command,
                stdin,
                root=self._host.root,
                clock=self._host.clock,
                seconds=seconds,
                most_output=_MAX_OUTPUT,
            )
        except CommandFailed as error:
            raise ToolFailed(f"the configured command failed: {error}", "Do without it, or try once more.") from None
        text = output.decode("utf-8", "replace").strip()
        return quote_data(text, source) if text else "It gave nothing."
