"""What happened in a session, and what follows: all of it comes from the records on the disk.

The same records give the same state, whether they are written now or read after a crash; so going on after ``kill -9``
is no case of its own. A call that acts is recorded as begun before it is made. Where its result is missing then, it is
not made again: the model is told to look at what is there.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, deque
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict

from cleared.llm.prices import count_tokens
from cleared.meta.context_window import Item, Purpose, compact_items, make_item, prune_results
from cleared.meta.session_store import SessionStore

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart

_REMEMBERED_CALLS: Final = 24
_SCALES: Final = (1.0, 4.0)
_COUNTED: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
SUMMARY_HEAD: Final = "[summary of the work so far; the messages themselves were left out to save room]\n"


class Usage(Struct):
    """Totals of a session. Tokens; ``input`` includes what came from the provider's cache."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def add(self, usage: Mapping[str, Any]) -> None:
        self.requests += 1
        for name in _COUNTED:
            value = usage.get(name)
            setattr(self, name, getattr(self, name) + (value if isinstance(value, int) else 0))

    def as_dict(self) -> dict[str, int]:
        return asdict(self)


class PendingCall(Struct):
    """A call of the last reply that has no result yet. ``begun``: it was started, and it acts."""

    part: ToolCallPart
    begun: bool = False
    result: ToolReturnPart | None = None


class SessionHistory(Struct):
    """Read with ``read_history``; then every step goes through a ``record_…`` method, to the disk first."""

    store: SessionStore
    fixed_tokens: int = 0
    """Estimated tokens of the system prompt and the tools."""
    items: list[Item] = []
    """What the model still sees."""
    calls: dict[str, PendingCall] = {}
    """Calls of the last reply, in its order, until all are answered."""
    usage: Usage = field(default_factory=Usage)
    cost: Decimal = Decimal(0)
    ended: Mapping[str, Any] | None = None
    """The last ending; ``None`` while a request of the user is worked on."""
    text: str = ""
    """The last reply to the user."""
    phase: str | None = None
    """What was asked of the model last, where it is a question of verification."""
    questions: int = 0
    """How often a turn ended with a question to the owner."""
    announced: str | None = None
    """The proposal that an earlier request ended with."""
    acted: bool = False
    iterations: int = 0
    rounds: int = 0
    faults: int = 0
    """Replies one after the other that were not taken."""
    fault: str | None = None
    """Why the last reply was not taken: it was empty, or a ``MissingEnd``."""
    poor_compactions: int = 0
    scale: float = 1.0
    """Tokens that the provider counted for each one estimated."""
    _next: int = 0
    _used_ids: set[str] = set()
    _repeats: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED_CALLS))

    @property
    def estimated_tokens(self) -> int:
        """Tokens of the next request, estimated."""
        return int((self.fixed_tokens + sum(item.tokens for item in self.items)) * self.scale)

    @property
    def open_calls(self) -> list[PendingCall]:
        return [call for call in self.calls.values() if call.result is None]

    def count_repeats(self, digest: str) -> int:
        """How often a call with this digest was made lately."""
        return Counter(self._repeats)[digest]

    def choose_call_id(self, wanted: str) -> str:
        """An id for a call that no other call of the session has: providers refuse ids that stand twice."""
        wanted = "".join(c for c in wanted[:60] if c.isascii() and (c.isalnum() or c in "_-")) or "call"
        chosen, number = wanted, 1
        while chosen in self._used_ids:
            number += 1
            chosen = f"{wanted}-{number}"
        self._used_ids.add(chosen)
        return chosen

    def record_prompt(self, purpose: Purpose, texts: list[str]) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        self._record("prompt", {"purpose": purpose}, ModelRequest(parts=[UserPromptPart(text) for text in texts]))

    def record_reply(self, reply: ModelResponse, *, fault: str | None, text: str | None, cost: Decimal) -> None:
        """``fault``: why it is not taken. ``text``: what of it is for the user, if that replaces what was there.
        ``cost``: of the session so far."""
        usage = _read_usage(reply.usage)
        self._record("reply", {"usage": usage, "fault": fault, "text": text, "cost": str(cost)}, reply)

    def record_begin(self, call_id: str) -> None:
        self._record("begun", {"call": call_id})

    def record_result(self, result: ToolReturnPart, digest: str | None) -> None:
        from pydantic_ai.messages import ModelRequest

        values = {"call": result.tool_call_id, "digest": digest}
        acted = self.calls[result.tool_call_id].begun  # a call that does not act is just made again
        self._record("result", values, ModelRequest(parts=[result]), synced=acted)

    def record_pruning(self, calls: list[str]) -> None:
        self._record("pruned", {"calls": calls})

    def record_compaction(self, keep_from: int, instructions: list[int], summary: str, poor: bool) -> None:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        values = {"keep_from": keep_from, "instructions": instructions, "poor": poor}
        self._record("compacted", values, ModelRequest(parts=[UserPromptPart(SUMMARY_HEAD + summary)]))

    def record_spending(self, usage: Any) -> None:
        """What a request beside the conversation took."""
        self._record("spent", {"usage": _read_usage(usage)})

    def record_ending(self, values: Mapping[str, Any]) -> None:
        self._record("ended", dict(values))

    def record_restart(self) -> None:
        """An ended session goes on without a new request."""
        self._record("restarted", {})

    def apply(self, record: Mapping[str, Any], message: ModelMessage | None) -> None:
        """Take over one record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` where it is none."""
        kind = record["kind"]
        if kind == "prompt":
            assert message is not None
            self._apply_prompt(record["purpose"], message)
        elif kind == "reply":
            self._apply_reply(record, message)
        elif kind == "begun":
            self.calls[record["call"]].begun = True
            self.acted = True
        elif kind == "result":
            self._apply_result(record, message)
        elif kind == "pruned":
            self.items = prune_results(self.items, record["calls"])
        elif kind == "compacted":
            assert message is not None
            self._apply_compaction(record, message)
        elif kind == "spent":
            self.usage.add(record["usage"])
        elif kind == "ended":
            self.ended = record
            self.cost = Decimal(record["cost"])
            self.announced = record.get("proposal") or self.announced
            self.questions += record["status"] == "asks"
        elif kind == "restarted":
            self._restart_counts()
        else:
            raise ValueError(f"no such record: {kind}")

    def _apply_prompt(self, purpose: Purpose, message: ModelMessage) -> None:
        self._push(purpose, message)
        self.phase = purpose if purpose in ("verify", "confirm") else None
        if purpose == "instruction":
            self._restart_counts()
            self.acted, self.text = False, ""
        elif self.phase:
            self.rounds += 1

    def _apply_reply(self, record: Mapping[str, Any], message: Any) -> None:
        counted = record["usage"].get("input_tokens")
        estimated = self.fixed_tokens + sum(item.tokens for item in self.items)
        if isinstance(counted, int) and estimated > 0 and counted > 0:
            self.scale = min(max(counted / estimated, _SCALES[0]), _SCALES[1])
        self.usage.add(record["usage"])
        self.cost = Decimal(record["cost"])
        self.iterations += 1
        self._push("reply", message)
        self.calls = {part.tool_call_id: PendingCall(part) for part in message.parts if part.part_kind == "tool-call"}
        self._used_ids.update(self.calls)
        self.fault = record["fault"]
        self.faults = self.faults + 1 if self.fault else 0
        if record["text"] is not None:
            self.text = record["text"]
        if self.calls:
            self.phase = None

    def _apply_result(self, record: Mapping[str, Any], message: Any) -> None:
        self.calls[record["call"]].result = message.parts[0]
        if record["digest"] is not None:
            self._repeats.append(record["digest"])
        if not self.open_calls:
            from pydantic_ai.messages import ModelRequest

            results = [call.result for call in self.calls.values() if call.result is not None]
            self.calls = {}
            self._push("results", ModelRequest(parts=list(results)))

    def _apply_compaction(self, record: Mapping[str, Any], message: ModelMessage) -> None:
        # The summary stands before what it leads to: its number must not make it part of what stays.
        summary = make_item(record["keep_from"] - 1, "summary", message)
        self.items = compact_items(self.items, record["keep_from"], record["instructions"], summary)
        self.poor_compactions = self.poor_compactions + 1 if record["poor"] else 0

    def _restart_counts(self) -> None:
        self.ended = None
        self.iterations = self.rounds = self.faults = self.poor_compactions = 0
        self._repeats.clear()

    def _push(self, purpose: Purpose, message: ModelMessage) -> None:
        self.items.append(make_item(self._take_number(), purpose, message))

    def _take_number(self) -> int:
        self._next += 1
        return self._next

    def _record(self, kind: str, values: dict[str, Any], message: Any = None, *, synced: bool = True) -> None:
        encoded = None
        if message is not None:
            from pydantic_ai.messages import ModelMessagesTypeAdapter

            encoded = ModelMessagesTypeAdapter.dump_json([message])[1:-1]
        self.store.append_record(kind, values, encoded, synced=synced)
        self.apply({"kind": kind, **values}, message)


def read_history(store: SessionStore, fixed_tokens: int = 0) -> SessionHistory:
    """The state that a session's records give. Raises ``WorkspaceError`` where they are damaged."""
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    history = SessionHistory(store, fixed_tokens)
    for number, record in enumerate(store.read_records(), 1):
        try:
            message = None
            if "content" in record:
                message = ModelMessagesTypeAdapter.validate_json(json.dumps([record["content"]]))[0]
            history.apply(record, message)
        except (ValidationError, KeyError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError):
            raise store.report_damage(number) from None
    return history


def digest_call(name: str, arguments: object, answer: str, draft: str) -> str:
    """Tells a call with its answer, over a state of the draft, from other calls: for finding repetitions."""
    text = json.dumps([name, arguments, answer, draft], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _read_usage(usage: Any) -> dict[str, int]:
    """The counts of a reply, within what can be."""
    return asdict(count_tokens(usage))
