"""``state_*``: what an agent keeps for its next run."""

from __future__ import annotations

from typing import Any

from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.grants import Grant
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Json, Line
from cleared.records.agent_state.staged_state import decode_value, encode_value, is_key, state_of


@primitive(effect=Effect.READ, grant="state.read")
def state_get(ctx: Context, key: Line, default: Json = None) -> Any:
    """What this agent has kept under a key, in this run or one before; ``default`` where it has not."""
    _require_key(key)
    text = state_of(ctx).current.get(key)
    return default if text is None else decode_value(text)


@primitive(effect=Effect.STAGE, grant="state.write")
def state_set(ctx: Context, key: Line, value: Json) -> None:
    """Keep a small value for the next runs of this agent; None forgets it. It is part of the run's commit: where the
    run fails, the old value stays. At most 200 values, and 64 kB in all; no other agent sees them."""
    _require_key(key)
    text = None if value is None else encode_value(value)
    try:
        decode_value(text or "null")
    except ValueError as error:  # a dict that only looks like a number
        raise PrimitiveError(str(error), place=Place(field="value"), remedy="Pass the number itself.") from None
    if state_of(ctx).set_value(key, text):
        ctx.log_action("state_set", key)


def _require_key(key: str) -> None:
    if not is_key(key):
        raise PrimitiveError(
            f"{key[:40]!r} cannot name a value", place=Place(field="key"), remedy="1 to 100 characters, no blank ends."
        )


def list_grants() -> list[Grant]:
    """What a header can allow a script to do with what it keeps."""
    return [
        Grant("state.read", "read what it has kept", "low"),
        Grant("state.write", "keep values for its next run", "medium"),
    ]
