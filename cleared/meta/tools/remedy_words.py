"""Remedies that were written for a person at a command line, as a model can follow them: its tools, or whom to ask."""

from __future__ import annotations

import re
from typing import Final

TOOL_OF: Final = {
    "agent check": "agent_check",
    "agent diff": "history_try",
    "agent list": "agent_read",
    "agent show": "agent_read",
    "agent history": "agent_read",
    "primitives": "primitives",
    "run list": "runs_read",
    "run show": "runs_read",
    "queue list": "query(what=queue.list)",
    "queue show": "query(what=queue.show)",
    "journal list": "query(what=journal.list)",
    "accounts list": "query(what=accounts.list)",
    "period list": "query(what=period.list)",
    "check": "query(what=check)",
}
"""Command → the tool that answers the same."""
_COMMAND: Final = re.compile(
    r"`?\bcleared (" + "|".join(sorted(TOOL_OF, key=len, reverse=True)) + r")\b(?! add| set)`?"
)
_ANY_COMMAND: Final = re.compile(r"\bcleared [a-z]")
_OF_THE_OWNER: Final = " (A command is the owner's to give: tell them.)"


def say_to_model(remedy: str) -> str:
    """The remedy with the names of tools for the commands that a tool answers; of others it is said whose they are."""
    said = _COMMAND.sub(lambda match: TOOL_OF[match[1]], remedy)
    if _ANY_COMMAND.search(said) and "owner" not in said:
        said += _OF_THE_OWNER
    return said
