"""Who proposes a change."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

IMPROVE: Final = "improve"
"""Who proposes what was learned."""


class Author(Struct, frozen=True):
    """Who wrote the change; ``is_human`` is false for programs and models."""

    name: str
    is_human: bool = True
    is_asked: bool = False
    """Of a model: whether a person asked for this in a session. Budgets are for what programs do by themselves."""
