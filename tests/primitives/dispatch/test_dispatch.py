"""The one door: looked up, granted, decoded, called, recorded; the first failure latches (B10)."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from cleared.base.errors import ClearedError, PolicyError, PrimitiveError
from cleared.primitives.dispatch import Call, Dispatcher, UnknownPrimitive
from cleared.primitives.registry.primitive import Effect, Primitive, Registry, primitive
from cleared.primitives.registry.vocabulary import DecodingContext, PositiveAmount, Text


@primitive(effect=Effect.READ, grant="test.read")
def test_echo(ctx: Any, text: Text, amount: PositiveAmount = Decimal(1)) -> Text:
    """Give the text back."""
    ctx.append(text)
    return f"{text} {amount}"


@primitive(effect=Effect.STAGE, grant="test.write")
def test_refuse(ctx: Any) -> None:
    """Refuse."""
    raise PrimitiveError("no", remedy="Ask again.")


@primitive(effect=Effect.STAGE, grant="test.write")
def test_break(ctx: Any) -> None:
    """A fault of ours."""
    raise ZeroDivisionError("oops")


@primitive(effect=Effect.STAGE, grant="test.write")
def test_interrupt(ctx: Any) -> None:
    """Ctrl-C in the middle."""
    raise KeyboardInterrupt


ECHO, REFUSE, BREAK, INTERRUPT = test_echo, test_refuse, test_break, test_interrupt
del test_echo, test_refuse, test_break, test_interrupt
Door = Callable[..., Dispatcher]


@pytest.fixture
def calls() -> list[Call]:
    return []


@pytest.fixture
def door(calls: list[Call]) -> Door:
    def make(**options: Any) -> Dispatcher:
        times = iter(range(1000))
        registry = Registry([ECHO, REFUSE, BREAK, INTERRUPT])
        return Dispatcher(
            registry, [], DecodingContext(), monotonic=lambda: float(next(times)), record=calls.append, **options
        )

    return make


def test_a_call_is_decoded_done_and_recorded(door: Door, calls: list[Call]) -> None:
    d = door()
    assert d.call_primitive("test_echo", ("a",), {"amount": 2.5}) == "a 2.50"
    (call,) = calls
    assert (call.number, call.name, call.args, call.kwargs) == (1, "test_echo", ("a",), {"amount": 2.5})
    assert (call.result, call.error, call.duration) == ("a 2.50", None, 1.0)


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "needs text"),
        ((1,), {}, "a int is not a text"),
        (("a", 1, 2), {}, "at most 2"),
        (("a",), {"text": "b"}, "text twice"),
        (("a",), {"amonut": 1}, "no argument 'amonut'"),
        (("a",), {"amount": 0}, "not positive"),
        (("a\0",), {}, "NUL"),
        (("a" * 10_241,), {}, "limit"),
        (("\ud800",), {}, "surrogate"),
    ],
)
def test_a_wrong_argument_is_named(door: Door, args: Any, kwargs: Any, text: str) -> None:
    d = door()
    with pytest.raises(PrimitiveError, match=text):
        d.call_primitive("test_echo", args, kwargs)
    assert d.context == []


def test_an_unknown_name_gets_the_nearest(door: Door) -> None:
    with pytest.raises(UnknownPrimitive, match="Did you mean test_echo"):
        door().call_primitive("test_ecko", (), {})


def test_what_is_not_granted_is_refused(door: Door) -> None:
    assert door(allowed=frozenset({"test_echo"})).call_primitive("test_echo", ("a",), {})
    with pytest.raises(PolicyError, match="not granted"):
        door(allowed=frozenset({"test_echo"})).call_primitive("test_refuse", (), {})
    with pytest.raises(PolicyError, match="no run"):
        door(effects=frozenset({Effect.READ})).call_primitive("test_refuse", (), {})


@pytest.mark.parametrize("name", ["test_refuse", "test_break", "test_nothing"])
def test_the_first_failure_is_every_later_calls(door: Door, calls: list[Call], name: str) -> None:
    """A script that swallows it gets nowhere."""
    d = door()
    with pytest.raises(Exception):  # noqa: B017
        d.call_primitive(name, (), {})
    first = d.failure
    assert isinstance(first, ClearedError) and d.failed_call is calls[0] and calls[0].error
    for _ in range(2):
        with pytest.raises(ClearedError) as caught:
            d.call_primitive("test_echo", ("a",), {})
        assert caught.value is first
    assert d.context == [] and len(calls) == 1


def test_ctrl_c_is_no_failure_of_the_script(door: Door, calls: list[Call]) -> None:
    d = door()
    with pytest.raises(KeyboardInterrupt):
        d.call_primitive("test_interrupt", (), {})
    assert d.failure is None and calls[0].error == "KeyboardInterrupt: "


def test_a_primitive_is_no_longer_a_function() -> None:
    assert isinstance(ECHO, Primitive) and not callable(ECHO)
