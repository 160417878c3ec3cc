"""What a model still sees of a long session. H9: prune, then compact; nothing orphaned, nothing protected touched."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from session_doubles import NOW, DiskTools, FakeDoor, Reply, last_text, new_store, open_loop, play

from cleared.base.clock import FixedClock
from cleared.meta.context_room import ContextExhausted, ContextRoom
from cleared.meta.context_window import (
    PRUNED_TEXT,
    Limits,
    choose_cut,
    count_protected,
    estimate_part,
    estimate_text,
    find_prunable,
    limit_images,
    prune_results,
)
from cleared.meta.model_requests import ModelRequests
from cleared.meta.session_events import EventJournal
from cleared.meta.session_history import SessionHistory, read_history

pytestmark = pytest.mark.slow

SYSTEM = "You write agents."
Step = tuple[str, list[int]]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("work"), st.lists(st.integers(0, 12_000), min_size=1, max_size=5)),
        st.tuples(st.just("say"), st.lists(st.integers(1, 4_000), min_size=1, max_size=1)),
        st.tuples(st.just("ask"), st.lists(st.integers(1, 6_000), min_size=1, max_size=1)),
        st.tuples(st.just("verify"), st.just([10])),
    ),
    min_size=1,
    max_size=25,
)


def write_history(history: SessionHistory, steps: Sequence[Step]) -> None:
    """A session of these steps, written as the loop would."""
    numbers = itertools.count()
    history.record_prompt("instruction", ["the very first request", "state"])
    for kind, sizes in steps:
        if kind in ("ask", "verify"):
            purpose: Any = "instruction" if kind == "ask" else "verify"
            history.record_prompt(purpose, [f"{next(numbers)} please " + "q" * sizes[0]])
        elif kind == "say":
            history.record_reply(ModelResponse([TextPart("s" * sizes[0])]), fault=None, text="s", cost=history.cost)
            history.record_prompt("notice", ["go on"])
        else:
            calls = [ToolCallPart("read", {"n": size}, f"c{next(numbers)}") for size in sizes]
            history.record_reply(ModelResponse(calls), fault=None, text=None, cost=history.cost)
            for call, size in zip(calls, sizes, strict=True):
                history.record_result(ToolReturnPart("read", "r" * size, call.tool_call_id), None)


def check_pairs(messages: Sequence[ModelMessage]) -> None:
    """Each call is answered in the message behind it, and each result follows its call."""
    open_calls: list[str] = []
    for message in messages:
        answered = [part.tool_call_id for part in message.parts if part.part_kind == "tool-return"]
        assert answered == open_calls
        open_calls = [part.tool_call_id for part in message.parts if part.part_kind == "tool-call"]
    assert not open_calls


def tail_of(messages: Sequence[ModelMessage], tokens: int) -> list[str]:
    """The parts that lie within the last so many tokens, the newest first."""
    tail, behind = [], 0
    for message in reversed(messages):
        for part in reversed(message.parts):
            if behind >= tokens:
                return tail
            tail.append(repr((part.part_kind, getattr(part, "content", None), getattr(part, "tool_call_id", None))))
            behind += estimate_part(part)
    return tail


def messages_of(history: SessionHistory) -> list[ModelMessage]:
    return [item.message for item in history.items]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=STEPS,
    window=st.integers(1_000, 30_000),
    protect=st.integers(0, 20_000),
    summary=st.integers(0, 30_000),
    forced=st.booleans(),
)
def test_room_is_made_or_the_session_ends_with_its_reason(
    steps: list[Step], window: int, protect: int, summary: int, forced: bool
) -> None:
    """H9. Whatever the session, the window and the summary: pairs stay together, the request, the system prompt and the
    protected end stay as they are, and there is less than before, or it is said that there is no room. What is read
    again from the disk is the same."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        store = new_store(Path(folder))
        door = FakeDoor(play("z" * summary))
        history = read_history(store)
        limits = Limits(window, 0.6, protect)
        requests = ModelRequests(door, {}, SYSTEM)
        events = EventJournal(store, FixedClock(NOW))
        room = ContextRoom(history, requests, limits, events, lambda _: None)
        write_history(history, steps)
        before, messages = history.estimated_tokens, messages_of(history)
        check_pairs(messages)
        protected = count_protected(limits, history.fixed_tokens, 1.0)
        if forced:
            protected = min(protected, before // 4)
        try:
            if forced:
                room.compact(forced=True)
            else:
                room.make_room()
        except ContextExhausted as error:
            assert error.reason in ("context_thrash", "context_window")
        else:
            assert history.estimated_tokens < before or before <= limits.allowed
        finally:
            requests.close()
            store.close()
        after = messages_of(history)
        check_pairs(after)
        assert after[0] == messages[0], "the user's own words"
        assert tail_of(after, protected) == tail_of(messages, protected)
        again = read_history(store)
        assert [(i.number, i.purpose, i.message.parts, i.tokens) for i in again.items] == [
            (i.number, i.purpose, i.message.parts, i.tokens) for i in history.items
        ]
        assert again.poor_compactions == history.poor_compactions
        if door.requests:  # the summary is asked for with a system prompt of its own
            assert door.requests[0][1].instructions != SYSTEM and not door.requests[0][1].function_tools


@settings(max_examples=100, deadline=None)
@given(steps=STEPS, protect=st.integers(0, 30_000))
def test_pruning_touches_results_before_the_protected_end_only(steps: list[Step], protect: int) -> None:
    """H9."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        store = new_store(Path(folder))
        history = read_history(store)
        write_history(history, steps)
        store.close()
        calls = find_prunable(history.items, protect)
        pruned = prune_results(history.items, calls)
        assert [item.number for item in pruned] == [item.number for item in history.items]
        check_pairs([item.message for item in pruned])
        assert tail_of([i.message for i in pruned], protect) == tail_of(messages_of(history), protect)
        assert sum(item.tokens for item in pruned) <= sum(item.tokens for item in history.items)
        assert not find_prunable(pruned, protect), "what is left out once is left out"
        cut = choose_cut(history.items, protect)
        assert 0 <= cut < len(history.items)
        check_pairs([item.message for item in history.items[cut:]])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=12), st.integers(0, 12))
def test_the_newest_images_stay(places: list[tuple[bool, int]], most: int) -> None:
    """H9: at most so many images, the oldest go; everything else stays."""
    numbers = itertools.count()
    messages: list[ModelMessage] = []
    for in_result, count in places:
        content: list[Any] = [
            "look",
            *(BinaryContent(bytes([next(numbers)]), media_type="image/png") for _ in range(count)),
        ]
        part = ToolReturnPart("view_image", content, "c") if in_result else UserPromptPart(content)
        messages.append(ModelRequest([part]))
    total = next(numbers)
    limited, left_out = limit_images(messages, most)
    assert left_out == max(0, total - most)
    pieces = [piece for message in limited for part in message.parts for piece in part.content]  # type: ignore[union-attr]
    kept = [piece.data[0] for piece in pieces if isinstance(piece, BinaryContent)]
    assert kept == list(range(left_out, total))
    assert len(pieces) == total + len(places)


@given(st.text(max_size=300))
def test_an_estimate_of_tokens_grows_with_the_text(text: str) -> None:
    assert 0 < estimate_text(text) <= estimate_text(text + "more") <= len(text) + 6


def wander(summary: str = "Read some files.") -> Any:
    """A model that reads another file each time, and sums up when it is asked to."""
    turn = itertools.count()

    def answer(messages: list[ModelMessage], info: Any) -> Reply:
        if info.instructions != SYSTEM:
            return summary
        return [("read", {"name": str(next(turn))})]

    return answer


def test_old_results_go_first_then_the_middle_becomes_a_summary(tmp_path: Path) -> None:
    """H9: a session that reads far more than its window goes on to the end; each request fits."""
    door, tools, events = FakeDoor(wander()), DiskTools(tmp_path / "tools.json", big=4_000), []
    with open_loop(
        new_store(tmp_path),
        door,
        tools,
        window=8_000,
        max_iterations=120,
        events=events,
        context={"prune_protect": 2_000},
    ) as loop:
        assert loop.run(None).reason == "max_iterations"
    kinds = [event["type"] for event in events if event["type"].startswith("context.")]
    assert kinds[0] == "context.pruned" and "context.compacted" in kinds
    for event in events:
        if event["type"].startswith("context."):
            assert event["tokens_after"] < event["tokens_before"]
    asked = [messages for messages, info in door.requests if info.instructions == SYSTEM]
    assert len(asked) == 120
    for messages in asked:
        check_pairs(messages)
        assert messages[0].parts[0].content == "Batch my notifications"  # type: ignore[union-attr]
        assert sum(estimate_part(part) for message in messages for part in message.parts) < 8_000
    assert any(PRUNED_TEXT in repr(messages) for messages in asked)
    assert any("Read some files." in repr(messages) for messages in asked)


def test_a_window_that_no_summary_frees_ends_the_session(tmp_path: Path) -> None:
    """H9: thrash."""
    door, tools = FakeDoor(wander("w" * 100_000)), DiskTools(tmp_path / "tools.json", big=9_000)
    with open_loop(new_store(tmp_path), door, tools, window=5_000, context={"threshold": 0.5}) as loop:
        outcome = loop.run(None)
    assert (outcome.status, outcome.reason) == ("stopped", "context_thrash")
    assert len(door.requests) < 20


def test_an_empty_summary_is_replaced_by_what_happened(tmp_path: Path) -> None:
    door, tools = FakeDoor(wander("")), DiskTools(tmp_path / "tools.json", big=2_000)
    with open_loop(
        new_store(tmp_path), door, tools, window=4_000, max_iterations=60, context={"prune_protect": 1_000}
    ) as loop:
        assert loop.run(None).reason == "max_iterations"
    assert any("[call] read" in repr(messages) for messages, info in door.requests if info.instructions == SYSTEM)


def test_a_refused_length_is_compacted_once(tmp_path: Path) -> None:
    """H13: the provider's window is smaller than it says."""
    from pydantic_ai.exceptions import ModelContextWindowExceededError

    def answer(messages: list[ModelMessage], info: Any) -> Reply:
        if last_text(messages).startswith("[verify]"):
            return "VERDICT: answered"
        if info.instructions != SYSTEM:
            return "Read many files."
        if sum(estimate_part(part) for message in messages for part in message.parts) > 6_000:
            raise ModelContextWindowExceededError("m", "too long")
        if "Read many files." in repr(messages):
            return "I read them."
        return [("read", {"name": str(len(messages))})]

    events: list[dict[str, Any]] = []
    door, tools = FakeDoor(answer), DiskTools(tmp_path / "tools.json", big=4_000)
    with open_loop(new_store(tmp_path), door, tools, events=events) as loop:
        outcome = loop.run(None)
    assert (outcome.status, outcome.text) == ("answered", "I read them.")
    assert [event["forced"] for event in events if event["type"] == "context.compacted"] == [True]


def test_a_length_that_is_refused_whatever_is_left_out_ends_the_session(tmp_path: Path) -> None:
    """H13."""
    from pydantic_ai.exceptions import ModelContextWindowExceededError

    def answer(messages: list[ModelMessage], info: Any) -> Reply:
        if info.instructions != SYSTEM:
            return "Nothing."
        if len(messages) > 4:
            raise ModelContextWindowExceededError("m", "too long")
        return [("read", {"name": str(len(messages))})]

    door, tools = FakeDoor(answer), DiskTools(tmp_path / "tools.json")
    with open_loop(new_store(tmp_path), door, tools) as loop:
        outcome = loop.run(None)
    assert (outcome.status, outcome.reason) in (("stopped", "context_window"), ("stopped", "repeating"))
    assert len(door.requests) < 20


def test_a_session_of_500_messages_and_a_full_window(tmp_path: Path) -> None:
    """200,000 tokens of results in 500 messages; another process goes on with it."""
    store, tools = new_store(tmp_path), DiskTools(tmp_path / "tools.json", big=3_200)
    history = read_history(store)
    write_history(history, [("work", [3_200])] * 250)
    store.close()
    assert history.estimated_tokens > 200_000
    door = FakeDoor(play("Read all.", "VERDICT: answered"))
    with open_loop(store, door, tools, max_iterations=300) as loop:
        assert loop.run(None).status == "answered"
    check_pairs(door.requests[0][0])
    assert sum(estimate_part(part) for message in door.requests[0][0] for part in message.parts) < 120_000
