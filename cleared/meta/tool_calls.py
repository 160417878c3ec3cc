"""Making the calls of a reply: recorded before and after, each one answered, repetitions noticed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from cleared.meta.call_words import describe_call
from cleared.meta.completion_check import describe_evidence
from cleared.meta.model_requests import RequestCancelled
from cleared.meta.reply_cleaning import NOT_JSON, NOT_KEPT, TOO_LONG
from cleared.meta.session_events import EventJournal, clip_for_event
from cleared.meta.session_history import PendingCall, SessionHistory, digest_call
from cleared.meta.tools.tool import Evidence, Tool

MAX_CALLS: Final = 16
"""Calls of one reply that are made; the others are answered with a word about it."""
GUIDE_AT: Final = 3
STOP_AT: Final = 6
"""The same call with the same answer, this often among the last ones, ends the session."""
_GUIDANCE: Final = (
    "\n\n[host] This is the same call with the same answer as before. Making it again gives the same. "
    "Do something else: read another file, change what you wrote, or tell the user what is in the way."
)


class SessionTools(Protocol):
    """What is used of ``cleared.meta.tools.tool_set.ToolSet``."""

    @property
    def tools(self) -> Mapping[str, Tool]: ...

    def call(self, name: str, arguments: object) -> Any: ...

    def initial_state(self) -> str: ...

    def evidence(self) -> Evidence: ...

    def draft_state(self) -> str: ...


class ToolCalls:
    """The calls of one session."""

    def __init__(
        self,
        history: SessionHistory,
        tools: SessionTools,
        events: EventJournal,
        report_step: Callable[[str], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._history, self._tools, self._events = history, tools, events
        self._report_step, self._is_cancelled = report_step, is_cancelled

    def answer_all(self) -> str | None:
        """Answer every open call of the last reply, in order. Gives a sentence where the model only repeats itself."""
        repeated = None
        for number, call in enumerate(list(self._history.calls.values())):
            if call.result is not None:
                continue
            if self._is_cancelled():
                raise RequestCancelled
            if call.begun:
                self._answer_interrupted(call)
            elif number >= MAX_CALLS:
                self._answer(call, f"Not done: at most {MAX_CALLS} calls of one reply are made.", "failed")
            else:
                repeated = self._make_call(call) or repeated
        return repeated

    def drop_open(self) -> None:
        """Answer what is open without making it: the user said something else meanwhile."""
        for call in self._history.open_calls:
            if call.begun:
                self._answer_interrupted(call)
            else:
                self._answer(call, "Not done: the user interrupted.", "interrupted")

    def _make_call(self, call: PendingCall) -> str | None:
        name, arguments = call.part.tool_name, call.part.args_as_dict()
        self._events.report(
            "tool.called",
            call=call.part.tool_call_id,
            tool=name,
            words=describe_call(name, arguments),
            arguments=clip_for_event(json.dumps(arguments)),
        )
        problem = _find_argument_problem(arguments)
        if problem is not None:
            text, outcome, cached, images = problem, "invalid", False, ()
        else:
            tool = self._tools.tools.get(name)
            if tool is not None and tool.acts:
                self._history.record_begin(call.part.tool_call_id)
                self._report_step("begun")
            result = self._tools.call(name, arguments)
            self._report_step("called")
            text, outcome, cached, images = result.text, result.outcome, result.cached, result.images
        digest = digest_call(name, arguments, text, self._tools.draft_state())
        times = self._history.count_repeats(digest) + 1
        if times >= GUIDE_AT:
            text += _GUIDANCE
        self._answer(call, text, outcome, cached=cached, images=images, digest=digest)
        if times < STOP_AT:
            return None
        return f"the model made the same call of {name} {times} times, and got the same answer each time"

    def _answer_interrupted(self, call: PendingCall) -> None:
        stands = describe_evidence(self._tools.evidence())
        text = (
            "[interrupted] The session was interrupted during this call; whether it was done is not known, and it is "
            f"not made again by itself. Look at what is there before you repeat it. Evidence: {stands}"
        )
        self._answer(call, text, "interrupted")

    def _answer(
        self,
        call: PendingCall,
        text: str,
        outcome: str,
        *,
        cached: bool = False,
        images: Any = (),
        digest: str | None = None,
    ) -> None:
        from pydantic_ai.messages import BinaryContent, ToolReturnPart

        content: Any = text
        if images:
            content = [text, *(BinaryContent(data=image.data, media_type=image.media_type) for image in images)]
        result = ToolReturnPart(
            call.part.tool_name,
            content,
            call.part.tool_call_id,
            outcome={"ok": "success", "interrupted": "interrupted"}.get(outcome, "failed"),  # type: ignore[arg-type]
        )
        self._history.record_result(result, digest)
        self._report_step("result")
        self._events.report(
            "tool.finished",
            call=call.part.tool_call_id,
            tool=call.part.tool_name,
            outcome=outcome,
            cached=cached,
            text=clip_for_event(text),
        )


def _find_argument_problem(arguments: dict[str, Any]) -> str | None:
    """Where the arguments could not be kept as they came: what to tell the model."""
    if set(arguments) == {NOT_JSON}:
        return (
            "[invalid call] The arguments are not a JSON object (perhaps the reply was cut off by its length). "
            "Nothing was done.\n\nCall it again with one complete JSON object; write long files in several parts."
        )
    if set(arguments) == {TOO_LONG}:
        return f"[invalid call] The arguments are too long: {arguments[TOO_LONG]}. Nothing was done."
    if set(arguments) == {NOT_KEPT}:
        return f"[invalid call] The arguments cannot be taken: {arguments[NOT_KEPT]}. Nothing was done."
    return None
