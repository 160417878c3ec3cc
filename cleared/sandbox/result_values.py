"""Which values may leave the interpreter: as a script's result, checked inside it and again by the host, and as the
arguments of its calls, measured before the host uses them.

The interpreter silently turns a value that cannot leave it into a string (``range(5)`` → ``'range(0, 5)'``), so the
first check runs inside. It captures the builtins that it needs before the script runs. A script that replaces the check
gains nothing, as the host checks what arrives; at worst the result is such a string.

Lists and dicts of a call arrive with their sharing and their cycles: a few bytes of a script's heap can be 2**40 items,
or endless, for code that walks or copies them. The host may keep arguments until the run ends, so all of them together
must fit into the script's memory limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from datetime import date
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cleared.sandbox.script_source import RESULT, TAIL

MAX_DEPTH = 32
MAX_ITEMS = 100_000
_MAX_DIGITS = 4000
_ARGUMENT_DEPTH: Final = 100
MAX_PLACES: Final = 4_000
_ITEM_BYTES: Final = 64  # of any value, roughly
_MAX_BITS: Final = 16_000  # Python refuses to convert much longer numbers to text
_CONTAINERS: Final = (list, tuple, dict, set, frozenset)

CHECK = "__cleared_check__"

# Run before the script. The check returns [problem, None] or [None, value]; a problem is [path, code, type name].
PRELUDE = f"""\
from decimal import Decimal as __cleared_decimal__
from datetime import date as __cleared_date__
{RESULT} = None
{TAIL} = -1
def {CHECK}(value, max_text, type=type, isinstance=isinstance, str=str, int=int, float=float, bool=bool,
            dict=dict, list=list, tuple=tuple, len=len, enumerate=enumerate, range=range,
            Decimal=__cleared_decimal__, date=__cleared_date__, big=10**{_MAX_DIGITS}, inf=float("inf")):
    used = [0, 0]
    def walk(value, depth):
        used[0] += 1
        if used[0] > {MAX_ITEMS}:
            return [[], "items", ""]
        if value is None or isinstance(value, bool):
            return None
        if isinstance(value, str):
            used[1] += len(value)
            return [[], "text", ""] if used[1] > max_text else None
        if isinstance(value, int):
            return None if -big < value < big else [[], "int", ""]
        if isinstance(value, float):
            return None if -inf < value < inf else [[], "finite", ""]
        if isinstance(value, Decimal):
            return None if value.is_finite() else [[], "finite", ""]
        if isinstance(value, date):
            return None
        if depth >= {MAX_DEPTH}:
            return [[], "depth", ""]
        if isinstance(value, dict):
            for key, item in value.items():
                if not isinstance(key, str):
                    return [[], "key", type(key).__name__]
                used[1] += len(key)
                problem = walk(item, depth + 1)
                if problem is not None:
                    problem[0].append(key[:40])
                    return problem
            return None
        if isinstance(value, (list, tuple)):
            index = 0
            for item in value:
                problem = walk(item, depth + 1)
                if problem is not None:
                    problem[0].append(index)
                    return problem
                index += 1
            return None
        return [[], "type", type(value).__name__]
    problem = walk(value, 0)
    return [None, value] if problem is None else [problem, None]
"""


def build_epilogue(max_text: int) -> str:
    """The code to run after the script: it checks the result. ``max_text``: the most characters of text in it."""
    return f"[{TAIL}, {CHECK}({RESULT}, {max_text})]"


class ResultRefused(Exception):
    """A result that is not allowed; the text names the path to the value."""


def accept_result(answer: object, max_text: int) -> object:
    """The result in an answer of the check, tuples as lists. Raises ``ResultRefused``."""
    if not isinstance(answer, list) or len(answer) != 2:
        raise ResultRefused("the result cannot be read")
    problem, value = answer
    if problem is not None:
        raise ResultRefused(_describe_problem(problem))
    return _ResultCheck(max_text).take_value(value, [])


class _ResultCheck(Struct, eq=False):
    """The host's check: the same rules, on exact types only."""

    text_left: int
    items: int = 0

    def take_value(self, value: object, path: list[object]) -> object:
        """The value at ``path`` as it is kept. Raises ``ResultRefused``."""
        self.items += 1
        if self.items > MAX_ITEMS:
            raise _make_refusal(path, "items")
        kind = type(value)
        if value is None or kind is bool:
            return value
        if isinstance(value, str) and kind is str:
            self._count_text(value, path)
            return value
        if isinstance(value, int) and kind is int:
            if value.bit_length() > _MAX_DIGITS * 4:
                raise _make_refusal(path, "int")
            return value
        if isinstance(value, float) and kind is float:
            if not math.isfinite(value):
                raise _make_refusal(path, "finite")
            return value
        if isinstance(value, Decimal):
            if not value.is_finite():
                raise _make_refusal(path, "finite")
            if abs(value.adjusted()) > MAX_PLACES or value.__sizeof__() > _MAX_DIGITS:
                raise _make_refusal(path, "int")  # 1E+999999999 is a gigabyte as text
            return value
        if isinstance(value, date):
            return value
        if len(path) >= MAX_DEPTH:
            raise _make_refusal(path, "depth")
        if isinstance(value, dict) and kind is dict:
            return {key: self.take_value(value[key], [*path, key]) for key in value if self._check_key(key, path)}
        if isinstance(value, list | tuple) and kind in (list, tuple):
            return [self.take_value(item, [*path, index]) for index, item in enumerate(value)]
        raise _make_refusal(path, "type", kind.__name__)

    def _check_key(self, key: object, path: list[object]) -> bool:
        if not isinstance(key, str):
            raise _make_refusal(path, "key", type(key).__name__)
        self._count_text(key, path)
        return True

    def _count_text(self, text: str, path: list[object]) -> None:
        self.text_left -= len(text)
        if self.text_left < 0:
            raise _make_refusal(path, "text")


def _make_refusal(path: list[object], code: str, name: str = "") -> ResultRefused:
    return ResultRefused(_describe_problem([path[::-1], code, name]))


def _describe_problem(problem: object) -> str:
    """A sentence such as ``result["x"][2] is a range``. A script may forge the problem, so nothing in it is trusted."""
    match problem:
        case [list(path), str(code), str(name)]:
            pass
        case _:
            return "the result cannot be read"
    where = "result"
    for part in reversed(path[:MAX_DEPTH]):
        where += f"[{json.dumps(part if isinstance(part, int) else str(part)[:40], ensure_ascii=False)}]"
    name = name[:40]
    match code:
        case "type":
            article = "an" if name[:1].lower() in "aeiou" else "a"
            return f"{where} is {article} {name}"
        case "key":
            return f"{where} has a key that is not a str but {name}"
        case "finite":
            return f"{where} is not a finite number"
        case "int":
            return f"{where} is a number of more than {_MAX_DIGITS} digits"
        case "depth":
            return f"{where} is nested more than {MAX_DEPTH} levels deep"
        case "items":
            return f"the result has more than {MAX_ITEMS} values"
        case "text":
            return "the result has too much text"
    return "the result cannot be read"


_Measured = dict[int, tuple[int, int, object]]
"""Id of a container → its size, its depth, the container."""


def measure_arguments(args: tuple[object, ...], kwargs: dict[str, object], limit: int) -> int:
    """The size in bytes of a call's arguments, each counted as often as it occurs.

    Raises ``ValueError`` where the size is past ``limit``, where they are nested too deeply or contain themselves, and
    for a number of thousands of digits.
    """
    measured: _Measured = {}
    size = _measure_values(args, 1, measured)[0]
    if kwargs:
        size += _measure_values(kwargs.values(), 1, measured)[0]
    if size > limit:
        raise ValueError(
            "the arguments are larger, written out and with those of earlier calls, than the script's memory limit"
        )
    return size


def _measure_values(values: Collection[object], depth: int, measured: _Measured) -> tuple[int, int]:
    """Size and depth of ``values``. Common types first, by exact type: every argument of every call passes here."""
    size, height = _ITEM_BYTES * len(values), 0
    for value in values:
        value_type = type(value)
        if value_type is str:
            size += len(value)  # type: ignore[arg-type]
        elif value is None or value_type is float or value_type is bool:
            pass
        elif isinstance(value, int):
            if value.bit_length() > _MAX_BITS:
                raise ValueError("a number has thousands of digits")
        elif isinstance(value, Decimal):
            # 1E+999999999 is a few bytes here, and a gigabyte as text.
            if abs(value.adjusted()) > MAX_PLACES:
                raise ValueError("a number has thousands of digits")
            size += value.__sizeof__()
        elif isinstance(value, str | bytes):
            size += len(value)
        else:
            more, levels, _ = _measure_value(value, depth, measured)
            size += more
            if levels > height:
                height = levels
    return size, height


def _measure_keys(inner: dict[object, object]) -> tuple[int, Collection[object]]:
    """The size of a dict's keys, and what is still to be measured of it: keys too, unless all of them are texts."""
    try:
        text_size = len("".join(inner))  # type: ignore[arg-type]
    except TypeError:
        return 0, [*inner, *inner.values()]
    return text_size + _ITEM_BYTES * len(inner), inner.values()


def _measure_value(value: object, depth: int, measured: _Measured) -> tuple[int, int, object]:
    """Size and depth of one container, and that; it is walked once however often it occurs."""
    entry = measured.get(id(value))
    if entry is None:
        # An instance of a script's own class arrives as a proxy with its attributes.
        inner = value if type(value) is dict else getattr(value, "attributes", value)
        if not isinstance(inner, _CONTAINERS):
            return 0, 0, None
        if depth > _ARGUMENT_DEPTH:
            raise ValueError(f"an argument contains itself, or is nested more than {_ARGUMENT_DEPTH} levels deep")
        size, items = _measure_keys(inner) if isinstance(inner, dict) else (0, inner)
        more, height = _measure_values(items, depth + 1, measured)
        size += more
        entry = measured[id(value)] = size, height + 1, inner  # held, so that no other object gets its id
    if depth + entry[1] - 1 > _ARGUMENT_DEPTH:
        raise ValueError(f"an argument is nested more than {_ARGUMENT_DEPTH} levels deep")
    return entry
