"""What a model reads after a call that did not work. A failed call and an invalid one are told apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from cleared.meta.tools.argument_schema import describe_parameters

_IN_GENERAL: Final = "Do not repeat the same call: change what the cause names, or take another way."


def describe_failure(name: str, message: str, remedy: str) -> str:
    """For a call that was understood and could not be done."""
    return f"[failed] {name}: {message.rstrip('.')}.\n\nWhat to do: {remedy or _IN_GENERAL}"


def describe_invalid_call(name: str, message: str, schema: Mapping[str, Any]) -> str:
    """For arguments that are not those of the tool."""
    return (
        f"[invalid call] {name}: {message.rstrip('.')}. Nothing was done.\n\n"
        f"Call it again with these parameters ({describe_parameters(schema)}), as one JSON object."
    )


def describe_unknown_tool(name: str, known: list[str]) -> str:
    """For the name of a tool that there is not."""
    return f"[invalid call] There is no tool {name[:80]!r}. Nothing was done.\n\nThe tools are: {', '.join(known)}."
