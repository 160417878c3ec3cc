"""``update_plan``: the model's own list of steps, for itself and for whoever watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.meta.tools.tool import InvalidCall, Tool, make_schema

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
        raise InvalidCall("several steps are in_progress; one at a time can be")
    return "\n".join(["The plan:", *lines])
