"""Declarations: what may be one, and what is made of it (B12)."""

from __future__ import annotations

import ast
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from cleared.base.json_values import from_wire, to_json, to_wire
from cleared.books.primitives.book_shapes import ENTRY_ID, STATUS
from cleared.primitives import primitive_registry
from cleared.primitives.registry.primitive import DeclarationError, Effect, Registry, primitive
from cleared.primitives.registry.projections import describe_primitive, render_markdown, render_stubs
from cleared.primitives.registry.vocabulary import VALUE_TYPES as RUNTIME_TYPES
from cleared.primitives.registry.vocabulary import DecodingContext, Text

VALUE_TYPES = {**RUNTIME_TYPES, STATUS.name: STATUS, ENTRY_ID.name: ENTRY_ID}

ENV = DecodingContext()


def declare(function: Any) -> Any:
    return primitive(effect=Effect.READ, grant="x.read")(function)


def test_a_name_is_plain_and_no_builtin() -> None:
    for name in ("sum", "Upper_case", "with_Upper", "_x", "x_", "é_x"):

        def f(ctx: Any) -> None:
            """Doc."""

        f.__name__ = name
        with pytest.raises(DeclarationError, match="lower case"):
            declare(f)


def test_what_is_outside_the_vocabulary_is_refused_before_it_is_called() -> None:
    def x_read(ctx: Any, a: bytes) -> None:
        """Doc."""

    def y_read(ctx: Any) -> set[str]:  # type: ignore[empty-body]
        """Doc."""

    def z_read(ctx: Any, a: Text) -> None:
        pass

    for function in (x_read, y_read, z_read):
        with pytest.raises(DeclarationError, match=function.__name__):
            declare(function).takes  # noqa: B018


def test_a_taken_name_names_both_owners() -> None:
    def x_read(ctx: Any) -> None:
        """Doc."""

    first, second = declare(x_read), declare(x_read)
    with pytest.raises(DeclarationError) as caught:
        Registry([first, second])
    assert str(caught.value).count("test_registry:") == 2


def test_every_primitive_is_described_in_every_form() -> None:
    found = primitive_registry()
    assert len(found) >= 25
    tree = ast.parse(render_stubs(found))
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    text = render_markdown(found)
    for name, p in found.items():
        assert name in defined and name in text
        data = json.loads(json.dumps(describe_primitive(p)))
        assert data["name"] == name
        ast.parse(f"def {p.signature().replace(' -> ', ' -> ')}: ...")
        assert p.grant.split(".")[0] and p.doc


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        ("Date", "2025-01-31", date(2025, 1, 31)),
        ("Date", date(2025, 1, 31), date(2025, 1, 31)),
        ("Amount", -0.1, Decimal("-0.10")),
        ("Confidence", 0.98, Decimal("0.98")),
        ("Confidence", 1, Decimal(1)),
        ("Weight", 0.5, Decimal("0.5")),
        ("Text", "a\nb", "a\nb"),
        ("EntryId", "2025-01-001b", "2025-01-001b"),
        ("Json", {"a": [1, None, (2,)], "d": date(2025, 1, 1)}, {"a": [1, None, [2]], "d": "2025-01-01"}),
    ],
)
def test_what_is_taken(kind: str, value: Any, result: Any) -> None:
    assert VALUE_TYPES[kind].decode(value, ENV) == result


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(
            ("Date", v)
            for v in (
                "2025-02-30",
                "0000-01-01",
                "2025-1-1",
                "20250101",
                "٢٠٢٥-01-01",
                20250101,
                None,
                datetime(2025, 1, 1),
                "2025-01-01T00:00:00",
            )
        ),
        *(("PositiveAmount", v) for v in (0, -1, "0.00", True, "", float("nan"), "1e2", [1])),
        *(("Confidence", v) for v in (1.01, -0.01, "0.5", True, float("nan"), float("inf"), None)),
        *(("AccountId", v) for v in (0, -1, 10**9, "1010", 1010.0, True, None, 10**50)),
        *(("Line", v) for v in ("a\nb", "a\rb", "a\u2028b", "a\0", "\x1b[31m", 5)),
        *(("Status", v) for v in ("done", "", None, 3)),
        *(("EntryId", v) for v in ("", "2025-01-1", "2025-13-001", "x", "0000-01-001")),
        *(("Whole", v) for v in (1.0, True, "1", 10**13)),
        *(("Weight", v) for v in (-1, "x", True, float("inf"), "1e99")),
        *(("Json", v) for v in (float("nan"), {1: 2}, b"x", 10**40, {"a": {1, 2}})),
    ],
)
def test_what_is_refused(kind: str, value: Any) -> None:
    with pytest.raises(ValueError):
        VALUE_TYPES[kind].decode(value, ENV)


def test_data_nested_too_deep_is_refused() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    with pytest.raises(ValueError, match="nested"):
        VALUE_TYPES["Json"].decode(value, ENV)


def test_decimals_on_the_wire() -> None:
    assert to_wire({"a": [Decimal("4.00")], "d": date(2025, 1, 1)}) == {"a": [{"$decimal": "4.00"}], "d": "2025-01-01"}
    assert from_wire({"a": [{"$decimal": "4.00"}]}) == {"a": [Decimal("4.00")]}
    assert to_wire(Decimal("1E+3")) == {"$decimal": "1000"}
    assert to_json({"a": Decimal("4.00")}) == {"a": "4.00"}
    for bad in ("x", "NaN", "Infinity", 4, None, "1" * 101, ""):
        with pytest.raises(ValueError):
            from_wire({"$decimal": bad})
