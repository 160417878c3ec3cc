"""Declaring a primitive, and the registry that holds all of them."""

from __future__ import annotations

import builtins
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from enum import Enum
from functools import cache
from itertools import chain
from typing import Any, Final, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from msgspec import Struct

from cleared.base.clock import check_deadline
from cleared.base.errors import MAX_FAULTS, Place, PrimitiveError, merge_faults
from cleared.primitives.registry.vocabulary import DecodingContext, ValueType

_NAME: Final = re.compile(r"[a-z]+(?:_[a-z0-9]+)*", re.ASCII)
_RESULT_TYPES: Final = (str, int, bool, float, Decimal, type(None), Any)
MISSING: Final = object()


class Effect(Enum):
    """What calling a primitive can change."""

    READ = "read"
    """Nothing."""
    STAGE = "stage"
    """The run's draft."""
    OUTBOX = "outbox"
    """Something outside the workspace, after the commit."""


class DeclarationError(TypeError):
    """A primitive was declared wrongly: an author's mistake."""


Decoder = Callable[[Any, DecodingContext], Any]


class Shape(Struct, frozen=True):
    """A type as the vocabulary sees it: how to decode it, how a stub and a schema write it."""

    stub: str
    schema: Mapping[str, Any]
    decode: Decoder
    records: tuple[type, ...] = ()
    definitions: tuple[str, ...] = ()
    """Lines that a stub needs above it."""


class Param(Struct, frozen=True):
    """One parameter of a primitive."""

    name: str
    shape: Shape
    default: Any = MISSING

    @property
    def required(self) -> bool:
        return self.default is MISSING


class Signature(Struct, frozen=True):
    """What a primitive takes and gives."""

    params: tuple[Param, ...]
    variadic: Shape | None
    """Shape of further keyword arguments, or None where they are refused."""
    returns: Shape
    by_name: Mapping[str, Param]


class Primitive(Struct, frozen=True):
    """A host function a script may call. What it takes is read off the function when it is first asked for, as most
    commands call few of them or none; of a plug-in's, when that is loaded."""

    name: str
    effect: Effect
    grant: str
    """What an agent's header must grant, ``domain.verb``."""
    doc: str
    owner: str
    """module:line of the declaration."""
    declared: Callable[..., Any]
    """The function whose types say what it takes; ``function`` is called, mostly the same."""
    function: Callable[..., Any]

    @property
    def group(self) -> str:
        """What it stands under in references: the first word of its grant."""
        return self.grant.split(".", 1)[0]

    @property
    def takes(self) -> Signature:
        """What it takes and gives. Raises ``DeclarationError`` where a type of it is not of the vocabulary."""
        return _read_signature(self.declared)

    def decode_arguments(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], env: DecodingContext
    ) -> dict[str, Any]:
        """The call's arguments by name, decoded. Raises ``PrimitiveError`` with every fault of the call; its place
        names the first argument that has one."""
        taken = self.takes
        params, known, variadic = taken.params, taken.by_name, taken.variadic
        values: dict[str, Any] = {}
        faults: list[PrimitiveError] = []
        if len(args) > len(params):
            message = f"{self.name} takes at most {len(params)} arguments, not {len(args)}"
            faults.append(PrimitiveError(message, remedy=f"Its signature is {self.signature()}."))
        # In one loop, without a call for each: this runs for every argument of every call of every script.
        for name, value in chain(zip(known, args, strict=False), kwargs.items()):
            shape = known[name].shape if name in known else variadic
            if shape is None:
                faults.append(self._unknown_argument_error(name))
            elif name in values:
                message = f"{self.name} got {name} twice"
                faults.append(PrimitiveError(message, place=Place(field=name), remedy="Pass it once."))
            else:
                try:
                    values[name] = shape.decode(value, env)
                except ValueError as e:
                    values[name] = None
                    texts = "; ".join(_fault_texts(name, e))
                    prefix, remedy = "" if faults else f"{self.name}: ", f"{name} takes {shape.stub}."
                    faults.append(PrimitiveError(f"{prefix}{texts}", place=Place(field=name), remedy=remedy))
        if len(values) < len(params):
            missing = [param.name for param in params if param.default is MISSING and param.name not in values]
            if missing:
                message, remedy = f"{self.name} needs {', '.join(missing)}", f"Its signature is {self.signature()}."
                faults.append(PrimitiveError(message, place=Place(field=missing[0]), remedy=remedy))
        if faults:
            raise merge_faults(faults)
        return values

    def _unknown_argument_error(self, name: str) -> PrimitiveError:
        near = get_close_matches(name[:60], self.takes.by_name, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Its signature is {self.signature()}."
        return PrimitiveError(f"{self.name} has no argument {name[:60]!r}", place=Place(field=name[:60]), remedy=hint)

    def signature(self) -> str:
        """``name(a: str, b: int = 3) -> dict``, as a stub writes it."""
        parts = []
        for p in self.takes.params:
            default = "" if p.required else f" = {_format_default(p.default)}"
            parts.append(f"{p.name}: {p.shape.stub}{default}")
        if self.takes.variadic:
            parts.append(f"**args: {self.takes.variadic.stub}")
        return f"{self.name}({', '.join(parts)}) -> {self.takes.returns.stub}"


class _Faults(ValueError):
    """Several things wrong with one value; ``texts`` has the way to each."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__("; ".join(texts))
        self.texts = texts


def _fault_texts(name: str, error: ValueError) -> list[str]:
    """The reasons with the way to each: ``entries[2]: amount: …``."""
    texts = error.texts if isinstance(error, _Faults) else [str(error)]
    return [f"{name}{text}" if text.startswith("[") else f"{name}: {text}" for text in texts]


def _format_default(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    return "..." if value is not None and not isinstance(value, str | int | float | bool) else repr(value)


def primitive(*, effect: Effect, grant: str) -> Callable[[Callable[..., Any]], Primitive]:
    """Declare a host function as a primitive. Its first parameter is the run's context; the others and the result
    must be of the closed vocabulary. Raises ``DeclarationError`` for a wrong name, and where there is no docstring."""

    def declare(function: Callable[..., Any]) -> Primitive:
        name = function.__name__
        owner = f"{function.__module__}:{function.__code__.co_firstlineno}"
        if not _NAME.fullmatch(name) or hasattr(builtins, name):
            raise DeclarationError(
                f"{owner}: {name!r} is no name for a primitive: lower case with underscores, and no builtin of Python"
            )
        doc = inspect.getdoc(function) or ""
        if not doc:
            raise DeclarationError(f"{owner}: {name} has no docstring; scripts' authors read it")
        return Primitive(name, effect, grant, doc, owner, function, function)

    return declare


@cache
def _read_signature(function: Callable[..., Any]) -> Signature:
    where = f"{function.__module__}:{function.__code__.co_firstlineno}: {function.__name__}"
    hints = get_type_hints(function, include_extras=True)
    params: list[Param] = []
    variadic = None
    for i, p in enumerate(inspect.signature(function).parameters.values()):
        if i == 0:
            continue
        if p.name not in hints:
            raise DeclarationError(f"{where}: {p.name} has no type")
        shape = argument_shape(hints[p.name], f"{where}: {p.name}")
        if p.kind is inspect.Parameter.VAR_KEYWORD:
            variadic = shape
        else:
            default = MISSING if p.default is inspect.Parameter.empty else p.default
            params.append(Param(p.name, shape, default))
    returns = result_shape(hints.get("return", type(None)), f"{where}: its result")
    return Signature(tuple(params), variadic, returns, {p.name: p for p in params})


def argument_shape(hint: Any, where: str) -> Shape:
    """The shape of a parameter's type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated and isinstance(args[1], ValueType):
        kind = args[1]
        return Shape(kind.accepts, kind.schema, kind.decode, definitions=_definitions_of(kind))
    if origin in (types.UnionType, typing.Union) and type(None) in args and len(args) == 2:
        inner = argument_shape(next(a for a in args if a is not type(None)), where)
        decode = inner.decode
        return Shape(
            f"{inner.stub} | None",
            {"anyOf": [inner.schema, {"type": "null"}]},
            lambda v, env: None if v is None else decode(v, env),
            inner.records,
            inner.definitions,
        )
    if origin is list:
        return _list_shape(argument_shape(args[0], where))
    if is_typeddict(hint):
        return _record_shape(hint, where)
    raise DeclarationError(f"{where}: {hint!r} is not in the vocabulary (see cleared.primitives.registry.vocabulary)")


def _list_shape(inner: Shape) -> Shape:
    item = inner.decode

    def decode(value: Any, env: DecodingContext) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise ValueError(f"a {type(value).__name__} is not a list")
        if len(value) > env.max_items:
            raise ValueError(f"the list has {len(value)} items; {env.max_items} are allowed: pass it in parts")
        out: list[Any] = []
        faults: list[str] = []
        for i, v in enumerate(check_deadline(value)):
            try:
                out.append(item(v, env))
            except ValueError as e:
                faults += _fault_texts(f"[{i}]", e)
                if len(faults) >= MAX_FAULTS:
                    break
        if faults:
            raise _Faults(faults[:MAX_FAULTS])
        return out

    wire = {"type": "array", "items": inner.schema}
    return Shape(_sequence_stub(inner.stub), wire, decode, inner.records, inner.definitions)


def _sequence_stub(item: str) -> str:
    """A list as a parameter takes it. A list in a variable has the type of what is in it, so what only reads it takes
    any ``Sequence``. Of texts it does not: one text is a sequence of texts, too."""
    return "list[str] | tuple[str, ...]" if item == "str" else f"Sequence[{item}]"


def record_like(name: str) -> str:
    """The type of a parameter that takes a record: the record itself, or a dict of a variable, whose type is only that
    of its keys and values."""
    return f"{name}Like"


def _record_shape(hint: Any, where: str) -> Shape:
    fields: dict[str, Decoder] = {}
    schema: dict[str, Any] = {}
    records: list[type] = []
    definitions: list[str] = []
    # Not from __required_keys__: where annotations are deferred it has every key, NotRequired or not.
    required = set[str]()
    for name, field_hint in get_type_hints(hint, include_extras=True).items():
        if get_origin(field_hint) is NotRequired:
            inner = get_args(field_hint)[0]
        else:
            inner = field_hint
            required.add(name)
        shape = argument_shape(inner, f"{where}.{name}")
        fields[name] = shape.decode
        schema[name] = shape.schema
        records += shape.records
        definitions += shape.definitions

    def decode(value: Any, env: DecodingContext) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise ValueError(f"a {type(value).__name__} is not a dict with {', '.join(fields)}")
        try:
            out = {key: fields[key](v, env) for key, v in value.items()}
        except (KeyError, ValueError):
            pass  # below all that is wrong is named
        else:
            if required <= out.keys():
                return out
        faults: list[str] = []
        for key, v in value.items():
            try:
                if key in fields:
                    fields[key](v, env)
                else:
                    faults.append(f"unknown key {str(key)[:60]!r} (known: {', '.join(fields)})")
            except ValueError as e:
                faults += _fault_texts(key, e)
            if len(faults) >= MAX_FAULTS:
                break
        faults += [f"the key {key!r} is missing" for key in sorted(required) if key not in value]
        raise _Faults(faults[:MAX_FAULTS])

    wire = {"type": "object", "properties": schema, "required": sorted(required), "additionalProperties": False}
    return Shape(record_like(hint.__name__), wire, decode, (*records, hint), tuple(definitions))


def _definitions_of(kind: ValueType) -> tuple[str, ...]:
    return (kind.definition,) if kind.definition else ()


def _pass_through(value: Any, env: DecodingContext) -> Any:
    return value


def result_shape(hint: Any, where: str) -> Shape:
    """The shape of a result's type."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated and isinstance(args[1], ValueType):
        kind = args[1]
        stub = kind.gives or getattr(args[0], "__name__", "Any")
        return Shape(stub, kind.schema, _pass_through, definitions=_definitions_of(kind))
    if hint in _RESULT_TYPES:
        if hint is type(None):
            return Shape("None", {"type": "null"}, _pass_through)
        if hint is Any:
            return Shape("Any", {}, _pass_through)
        schemas: dict[Any, dict[str, Any]] = {
            str: {"type": "string"},
            int: {"type": "integer"},
            bool: {"type": "boolean"},
            float: {"type": "number"},
            Decimal: {"$ref": "#/$defs/decimal"},
        }
        return Shape(hint.__name__, schemas[hint], _pass_through)
    if origin in (types.UnionType, typing.Union):
        parts = [result_shape(a, where) for a in args]
        records = tuple(r for p in parts for r in p.records)
        definitions = tuple(d for p in parts for d in p.definitions)
        either = {"anyOf": [p.schema for p in parts]}
        return Shape(" | ".join(p.stub for p in parts), either, _pass_through, records, definitions)
    if origin is list:
        inner = result_shape(args[0], where)
        items = {"type": "array", "items": inner.schema}
        return Shape(f"list[{inner.stub}]", items, _pass_through, inner.records, inner.definitions)
    if is_typeddict(hint):
        fields = {n: result_shape(h, f"{where}.{n}") for n, h in get_type_hints(hint, include_extras=True).items()}
        records = tuple(r for s in fields.values() for r in s.records)
        definitions = tuple(d for s in fields.values() for d in s.definitions)
        wire = {
            "type": "object",
            "properties": {n: s.schema for n, s in fields.items()},
            "required": sorted(fields),
            "additionalProperties": False,
        }
        return Shape(hint.__name__, wire, _pass_through, (*records, hint), definitions)
    raise DeclarationError(f"{where}: {hint!r} is not in the vocabulary")


class Registry(dict[str, Primitive]):
    """All primitives by name. Adding one whose name is taken fails and names both owners."""

    def __init__(self, primitives: Iterable[Primitive] = ()) -> None:
        super().__init__()
        for p in primitives:
            self.add(p)

    def add(self, p: Primitive) -> None:
        earlier = self.get(p.name)
        if earlier is not None:
            raise DeclarationError(f"the primitive {p.name} is declared twice: by {earlier.owner} and by {p.owner}")
        self[p.name] = p
