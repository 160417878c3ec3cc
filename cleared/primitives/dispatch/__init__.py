"""The one way from a caller to the primitives: look up → check the grant → decode → call → record.

Transports (the in-process sandbox, JSON-RPC) are encodings of it. It is not a sandbox and not a transaction:
it refuses what is not allowed, remembers what happened, and latches the first failure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from cleared.base.bounds import MAX_ANSWER_BYTES, MAX_FIRST_CALLS, MAX_TRACE_BYTES, clip_text
from cleared.base.errors import ClearedError, Place, PolicyError, PrimitiveError
from cleared.primitives.registry.primitive import Effect, Registry
from cleared.primitives.registry.vocabulary import DecodingContext

__all__ = ["Call", "Dispatcher", "UnknownPrimitive"]

_NO_PLACE: Final = Place()
MAX_TRACED_ITEMS: Final = 100
"""Items of a list that the trace keeps."""
MAX_TRACED_TEXT: Final = 2_000
"""Characters of a text that it keeps."""


class UnknownPrimitive(PrimitiveError):
    """The name is no primitive."""


class Call(Struct):
    """One call as it is traced. Times are seconds of the run's monotonic clock."""

    number: int
    name: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    place: Place
    depth: int
    started: float
    duration: float = 0.0
    result: Any = None
    error: str | None = None
    held: int = 0
    """Bytes of its arguments and results that are held for the trace, roughly."""


class Dispatcher:
    """Calls primitives for one run (or one reading client).

    ``allowed`` holds the primitives the script may call, None for all; ``effects`` what may be done at all.
    After the first failure every further call fails with the same error: a script cannot swallow it.
    """

    def __init__(
        self,
        registry: Registry,
        context: Any,
        env: DecodingContext,
        *,
        allowed: frozenset[str] | None = None,
        effects: Collection[Effect] = tuple(Effect),
        monotonic: Callable[[], float],
        record: Callable[[Call], None] | None = None,
    ) -> None:
        self.registry = registry
        self.context = context
        self.env = env
        self.allowed = allowed
        self.effects = effects
        self.monotonic = monotonic
        self.record = record
        self.failure: ClearedError | None = None
        self.failed_call: Call | None = None
        self.calls = 0
        self.depth = 0
        self._room = MAX_TRACE_BYTES
        """For what is held of arguments and results until the run ends."""

    def release_call(self, call: Call) -> None:
        """What was held of a call is not needed any more."""
        self._room += call.held

    def call_primitive(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], place: Place = _NO_PLACE
    ) -> Any:
        """Call one primitive. Raises ``ClearedError`` for every refusal; the first one latches."""
        if self.failure is not None:
            raise self.failure
        self.calls += 1
        call = Call(self.calls, name, args, kwargs, place, self.depth, self.monotonic())
        if self.record is not None:
            self.record(call)
        try:
            primitive = self.registry.get(name)
            if primitive is None:
                raise self._unknown_error(name)
            if self.allowed is not None and name not in self.allowed:
                raise PolicyError(
                    f"{name} is not granted to this script",
                    place=place,
                    remedy=f"Add {primitive.grant} to the header's grants: line where there is one, and have the "
                    "change approved.",
                )
            if primitive.effect not in self.effects:
                raise PolicyError(
                    f"{name} would change the books, and there is no run to change them in",
                    remedy="Call it from an agent script (cleared agent run NAME).",
                )
            values = primitive.decode_arguments(args, kwargs, self.env)
            result = primitive.function(self.context, **values)
            self._refuse_too_large(name, result)
        except ClearedError as e:
            call.duration = self.monotonic() - call.started
            call.error = str(e)
            self._latch_failure(e, call)
            raise
        except BaseException as e:
            call.error = clip_text(f"{type(e).__name__}: {e}")
            if isinstance(e, Exception):
                self._latch_failure(
                    PrimitiveError(f"{name} failed: {call.error}", remedy="This is a fault of cleared."), call
                )
            raise
        finally:
            if any(type(v) is list or (type(v) is str and len(v) > MAX_TRACED_TEXT) for v in (*args, *kwargs.values())):
                call.args = tuple(self._clip_for_trace(v, call) for v in args)
                call.kwargs = {k: self._clip_for_trace(v, call) for k, v in kwargs.items()}
        call.duration = self.monotonic() - call.started
        call.result = self._clip_for_trace(result, call)
        return result

    def _refuse_too_large(self, name: str, result: Any) -> None:
        """Raises ``PrimitiveError`` where an answer is larger than anything that was asked for in earnest."""
        if type(result) is list and len(result) > self.env.max_items:
            what, most = f"{len(result)} items", f"{self.env.max_items}"
        elif _data_size(result) > MAX_ANSWER_BYTES:
            what, most = f"more than {MAX_ANSWER_BYTES >> 20} MB", f"{MAX_ANSWER_BYTES >> 20} MB"
        else:
            return
        raise PrimitiveError(
            f"the answer of {name} has {what}; {most} are allowed",
            remedy="Ask for less at a time: a month, an account, a limit.",
        )

    def _clip_for_trace(self, value: Any, call: Call) -> Any:
        """What is held of a value for the trace: of a list its beginning, and nothing once much is held. The first
        calls leave a part of the room to the last ones."""
        kind = type(value)
        if kind is str and len(value) > MAX_TRACED_TEXT:
            return (
                self.env.redactor.redact_text(value)[:MAX_TRACED_TEXT] + "…"
            )  # whole first: a secret may be cut in two
        if kind is not list and kind is not dict:
            return value
        kept = value[:MAX_TRACED_ITEMS] if kind is list else value
        weight = _data_size(kept)
        if weight > self._room - (MAX_TRACE_BYTES // 4 if call.number <= MAX_FIRST_CALLS else 0):
            kept = [] if kind is list else "…"
        else:
            self._room -= weight
            call.held += weight
        if kind is list and len(kept) < len(value):
            return [*kept, f"… and {len(value) - len(kept)} more"]
        return kept

    def _latch_failure(self, error: ClearedError, call: Call) -> None:
        if self.failure is None:
            self.failure = error
            self.failed_call = call

    def _unknown_error(self, name: str) -> UnknownPrimitive:
        near = get_close_matches(name[:80], self.registry, n=1)
        hint = f"Did you mean {near[0]}?" if near else "cleared primitives lists them."
        return UnknownPrimitive(f"there is no primitive {name[:80]!r}", remedy=hint)


def _data_size(value: object) -> int:
    """Bytes of plain data, roughly: its texts, and sixteen for each value."""
    kind = type(value)
    if kind is str:
        return len(value)  # type: ignore[arg-type]
    if kind is not dict and kind is not list and kind is not tuple:
        return 0
    total = 16 * len(value)  # type: ignore[arg-type]
    for inner in value.values() if kind is dict else value:  # type: ignore[attr-defined, union-attr]
        of = type(inner)
        if of is str:
            total += len(inner)
        elif of is dict or of is list:
            total += _data_size(inner)
    return total
