"""What an author of agents is told about their language, as Markdown: a model in a session, a client, a person."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cleared.sandbox.trigger_kinds import ON_DEMAND, TRIGGER_KINDS, WEBHOOK

_FOLDER: Final = Path(__file__).parent


def describe_language() -> str:
    """The language of agents, and what can start one."""
    return read_language().replace("{{triggers}}", describe_triggers()).strip()


def read_language() -> str:
    """The same, with ``{{triggers}}`` where the triggers go."""
    return (_FOLDER / "language.md").read_text(encoding="utf-8").strip()


def read_examples() -> str:
    """The worked examples."""
    return (_FOLDER / "examples.md").read_text(encoding="utf-8").strip()


_WITHOUT_KEY: Final = {
    ON_DEMAND.name: ": when the owner starts it",
    WEBHOOK.name: f": when another program calls; `{WEBHOOK.sample}: {{…}}` is the body (JSON) that dry runs get",
}
"""Of each kind of trigger that has no key in the header: when it starts the agent."""


def describe_triggers() -> str:
    """How an agent is started, a line for each kind of trigger, as Markdown."""
    return "\n".join(
        f"- `trigger: {kind.name}`" + (f" with `{kind.key}: {kind.example}`" if kind.key else _WITHOUT_KEY[kind.name])
        for kind in TRIGGER_KINDS
    )
