"""All tools of a session behind one door: arguments checked, reads cached, output bounded and without secrets.

Here are also ``update_plan``, the model's own list of steps, and what a model reads after a call that did not work.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.errors import ClearedError
from cleared.base.json_arguments import ArgumentFault, describe_parameters, read_arguments
from cleared.changes.host import Host
from cleared.meta.tools.bank_tool import BankTool
from cleared.meta.tools.file_tools import FileTools
from cleared.meta.tools.gate_tools import GateTools
from cleared.meta.tools.open_proposals import describe_waiting
from cleared.meta.tools.output_bounds import truncate_middle
from cleared.meta.tools.outside_tools import OutsideTools
from cleared.meta.tools.overlay import Overlay
from cleared.meta.tools.process_tools import PROCESS_TOOLS, ProcessTools
from cleared.meta.tools.reading_tools import ReadingTools
from cleared.meta.tools.remedy_words import say_to_model
from cleared.meta.tools.session_files import SessionFiles
from cleared.meta.tools.tool import Evidence, Tool, ToolFailed, ToolResult, make_schema

_MAX_CACHED: Final = 200
_OF_THE_DRAFT: Final = frozenset({"agent_check", "try", "history_try", "propose"})
"""What these say is read as said of the last edit."""


class ToolSet:
    """The tools of one session. One call at a time is made; more wait."""

    def __init__(self, host: Host, files: SessionFiles, file_tools: FileTools, tools: list[Tool]) -> None:
        self._all: Mapping[str, Tool] = {tool.name: tool for tool in tools}
        off = list_switched_off(host)
        self.tools: Mapping[str, Tool] = {name: tool for name, tool in self._all.items() if name not in off}
        """Those that the settings leave on: a model is told of no others."""
        self._host, self._files, self._file_tools = host, files, file_tools
        self._cache: dict[tuple[str, str], ToolResult] = {}
        self._cached_at = ""
        self._lock = threading.Lock()
        self.evidence_of: Callable[[], Evidence] = lambda: Evidence("unchecked")
        self.collect_changes: Callable[[], bool] = lambda: False
        """Called before each call: takes over what processes have written meanwhile, and says whether they have."""
        self._edits = frozenset(tool.name for tool in file_tools.make_tools() if tool.acts)
        self._failed_edit = ""
        """The tool of the last edit, where that failed."""
        self.endings: list[Callable[[], object]] = []
        """Called once when the session ends."""

    def call(self, name: str, arguments: object) -> ToolResult:
        """Call a tool. Whatever a model can cause is an answer; nothing is raised for it."""
        with self._lock:
            tool = self._all.get(name) if isinstance(name, str) else None
            if tool is None:
                return self._finish(ToolResult(describe_unknown_tool(str(name), sorted(self.tools)), "invalid"))
            result = self._call_known(tool, arguments)
            if name in self._edits:
                self._failed_edit = "" if result.outcome == "ok" else name
            elif self._failed_edit and name in _OF_THE_DRAFT:
                note = f"[host] Your last call of {self._failed_edit} failed: the draft is what it was before it.\n\n"
                result = replace(result, text=note + result.text)
            return result

    def draft_state(self) -> str:
        """A digest of all that the session has written: a call after a change is not a repetition."""
        with self._lock:
            return self._files.overlay.whole_state

    def initial_state(self) -> str:
        """What lies where, for the first request of a session."""
        with self._lock, self._files.open_commit():
            waiting = describe_waiting(self._files)
            listing = self._file_tools.list_folder("", 2, 150)
            changes = self._files.list_changes()
        draft = [f"  {'removed' if data is None else 'changed'} {path}" for path, data in sorted(changes.items())]
        parts = [listing, "Your draft so far:\n" + "\n".join(draft) if draft else "Your draft is empty."]
        off = list_switched_off(self._host)
        if off:
            parts.append("Not configured here: " + ", ".join(off) + ".")
        texts = [self._finish(ToolResult("\n\n".join(parts))).text]
        texts += [self._finish(ToolResult(waiting)).text] if waiting else []  # each of them with bounds of its own
        return "\n\n".join(texts)

    def evidence(self) -> Evidence:
        """What the gate last said of exactly what the draft holds now."""
        with self._lock:
            return self.evidence_of()

    def close(self) -> None:
        """End every process of the session. The draft stays."""
        with self._lock:
            while self.endings:
                with suppress(Exception):  # the next one is to end too
                    self.endings.pop()()

    def _call_known(self, tool: Tool, arguments: object) -> ToolResult:
        name = tool.name
        try:
            values = read_arguments(arguments, tool.parameters)
            if self.collect_changes():
                self._cache.clear()
            return self._call_checked(tool, values)
        except ArgumentFault as error:
            return self._finish(ToolResult(describe_invalid_call(name, str(error), tool.parameters), "invalid"))
        except ToolFailed as error:
            return self._finish(ToolResult(describe_failure(name, error.message, error.remedy), "failed"))
        except ClearedError as error:
            place = f"{error.place}: " if error.place and str(error.place) else ""
            text = describe_failure(name, f"{place}{error.message}", error.remedy or "")
            return self._finish(ToolResult(text, "failed"))
        except (OSError, RecursionError, MemoryError) as error:
            text = describe_failure(name, f"the system refused: {error or type(error).__name__}", "")
            return self._finish(ToolResult(text, "failed"))

    def _call_checked(self, tool: Tool, values: dict[str, Any]) -> ToolResult:
        if not tool.cacheable:
            if tool.acts:
                self._cache.clear()  # whatever becomes of it
            return self._finish(_as_result(tool.run(values)))
        with self._files.open_commit() as head:
            seen = f"{head} {self._files.digest_uncommitted()}"
            if seen != self._cached_at:
                self._cache.clear()
                self._cached_at = seen
            key = (tool.name, json.dumps(values, sort_keys=True))
            if key in self._cache:
                known = self._cache[key]
                return ToolResult(known.text, known.outcome, cached=True, images=known.images)
            result = self._finish(_as_result(tool.run(values)))
        if result.outcome == "ok":
            while len(self._cache) >= _MAX_CACHED:
                del self._cache[next(iter(self._cache))]
            self._cache[key] = result
        return result

    def _finish(self, result: ToolResult) -> ToolResult:
        text = self._host.redactor.redact_text(result.text)
        return ToolResult(truncate_middle(text), result.outcome, result.cached, result.images)


def _as_result(answer: ToolResult | str) -> ToolResult:
    return answer if isinstance(answer, ToolResult) else ToolResult(answer)


def list_switched_off(host: Host) -> list[str]:
    """Tools that this workspace's settings leave off."""
    settings = host.config.llm
    off = [] if settings.shell else [*PROCESS_TOOLS]
    off += [] if settings.search_command else ["web_search"]
    return off + ([] if settings.transcript_command else ["transcript"])


def open_tool_set(host: Host, overlay: Overlay, *, session_id: str, author: str) -> ToolSet:
    """The tools for the session ``session_id``, whose draft is ``overlay``. ``author``: what a proposal's card names.

    Close it when the session ends, or waits for a person.
    """
    files = SessionFiles(host, overlay)
    file_tools, gate_tools = FileTools(files), GateTools(files, author)
    process_tools = ProcessTools(files, session_id)
    tools = [
        *file_tools.make_tools(),
        *ReadingTools(files).make_tools(),
        BankTool(files).make_tool(),
        *gate_tools.make_tools(),
        *OutsideTools(host).make_tools(),
        *process_tools.make_tools(),
        make_plan_tool(),
    ]
    tool_set = ToolSet(host, files, file_tools, tools)
    tool_set.evidence_of = gate_tools.find_evidence
    tool_set.collect_changes = process_tools.collect_changes
    tool_set.endings.append(process_tools.close)
    return tool_set


_IN_GENERAL: Final = "Do not repeat the same call: change what the cause names, or take another way."


def describe_failure(name: str, message: str, remedy: str) -> str:
    """For a call that was understood and could not be done."""
    return f"[failed] {name}: {message.rstrip('.')}.\n\nWhat to do: {say_to_model(remedy) or _IN_GENERAL}"


def describe_invalid_call(name: str, message: str, schema: Mapping[str, Any]) -> str:
    """For arguments that are not those of the tool."""
    return (
        f"[invalid call] {name}: {message.rstrip('.')}. Nothing was done.\n\n"
        f"Call it again with these parameters ({describe_parameters(schema)}), as one JSON object."
    )


def describe_unknown_tool(name: str, known: list[str]) -> str:
    """For the name of a tool that there is not."""
    return f"[invalid call] There is no tool {name[:80]!r}. Nothing was done.\n\nThe tools are: {', '.join(known)}."


_STATES: Final = ("pending", "in_progress", "completed")
_MARKS: Final = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}


def make_plan_tool() -> Tool:
    """``steps``: texts, or objects with ``step`` and ``status``."""
    step = {
        "type": ["string", "object"],
        "maxLength": 500,
        "required": ["step"],
        "properties": {"step": {"type": "string", "maxLength": 500}, "status": {"type": "string", "enum": _STATES}},
    }
    return Tool(
        "update_plan",
        "Write down the steps of your task and how far each is; the newest list counts.",
        make_schema(
            ("steps",),
            steps={"type": "array", "items": step, "maxItems": 50},
            explanation={"type": "string", "maxLength": 2_000, "description": "Why the plan changed"},
        ),
        _render_plan,
    )


def _render_plan(arguments: Mapping[str, Any]) -> str:
    lines = []
    for step in arguments["steps"]:
        text, state = (step, "pending") if isinstance(step, str) else (step["step"], step.get("status", "pending"))
        lines.append(f"{_MARKS[state]} {' '.join(text.split())}")
    if sum(line.startswith("[>]") for line in lines) > 1:
        raise ArgumentFault("several steps are in_progress; one at a time can be")
    return "\n".join(["The plan:", *lines])
