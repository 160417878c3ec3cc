"""The request ``run`` of a host, read from its parameters and checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct, field

from cleared.base.clock import SystemClock
from cleared.sandbox.bridge import jsonrpc
from cleared.sandbox.bridge import value_codec as values
from cleared.sandbox.bridge.jsonrpc import INVALID_PARAMS, Request, RpcError
from cleared.sandbox.limits import Limits

MAX_SCRIPT: Final = 1 << 20
_LIMITS: Final = Limits.__struct_fields__


class RunRequest(Struct, frozen=True):
    """One script to run. The last three are for a host that asks for more than the plain protocol."""

    script: str
    external_functions: Mapping[str, None]
    """The names the host answers, in its order."""
    file: str = "script.py"
    inputs: Mapping[str, Any] = {}
    limits: Limits = field(default_factory=Limits)
    now: datetime = field(default_factory=lambda: SystemClock().now())
    timezone: str = "UTC"
    seed: str = "cleared"
    positions: bool = False
    """Calls carry ``run`` (the id of the ``run`` request) and ``position`` ``{file, line, column}``."""
    prints: bool = False
    """What the script prints comes as notifications ``print {run, text}``, not on standard error."""
    exact: bool = False
    """Values cross in the exact form of ``sandbox.bridge.value_codec``, not as plain JSON."""


_KNOWN: Final = RunRequest.__struct_fields__


def read_run_request(request: Request) -> RunRequest:
    """Raises ``RpcError`` (invalid params) that names the parameter. One that is null is not given: it is what hosts
    in some languages write for none."""
    params = request.params
    if isinstance(params, list):
        if len(params) > 2:
            raise _invalid_parameter("params", "by position run takes script and external_functions; name the others")
        params = dict(zip(_KNOWN, params, strict=False))
    for key in params:
        if key not in _KNOWN:
            near = get_close_matches(key, _KNOWN, n=1)
            raise _invalid_parameter(
                key[:60], f"unknown; {f'did you mean {near[0]}?' if near else 'known: ' + ', '.join(_KNOWN)}"
            )
    params = jsonrpc.without_nulls(params)
    script = _read_text(params, "script", None)
    if len(script) > MAX_SCRIPT:
        raise _invalid_parameter("script", f"it has more than {MAX_SCRIPT} characters")
    names = params.get("external_functions", [])
    if not isinstance(names, list) or not all(isinstance(n, str) and n.isidentifier() for n in names):
        raise _invalid_parameter("external_functions", "it must be an array of names")
    exact = _read_flag(params, "exact")
    return RunRequest(
        script,
        dict.fromkeys(names),
        _read_text(params, "file", "script.py"),
        _read_inputs(params.get("inputs"), exact),
        _read_limits(params.get("limits")),
        _read_now(params.get("now")),
        _read_text(params, "timezone", "UTC"),
        _read_text(params, "seed", "cleared"),
        _read_flag(params, "positions"),
        _read_flag(params, "prints"),
        exact,
    )


def _read_inputs(params: Any, exact: bool) -> dict[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, dict) or not all(k.isidentifier() and not k.startswith("__") for k in params):
        raise _invalid_parameter("inputs", "it must be an object whose keys are names of variables")
    try:
        return {k: values.decode_value(v, exact=exact) for k, v in params.items()}
    except ValueError as e:
        raise _invalid_parameter("inputs", str(e)) from None


def _read_limits(params: Any) -> Limits:
    if params is None:
        return Limits()
    if not isinstance(params, dict) or not set(params) <= set(_LIMITS):
        raise _invalid_parameter("limits", f"it must be an object of {', '.join(_LIMITS)}")
    params = jsonrpc.without_nulls(params)
    for key, value in params.items():
        whole = isinstance(value, int) and not isinstance(value, bool)
        if key == "seconds":
            if not (whole or isinstance(value, float)) or not math.isfinite(value) or abs(value) > 10**7:
                raise _invalid_parameter("limits.seconds", "it must be a number of seconds")
        elif not whole or not 1 <= value <= 10**15:
            raise _invalid_parameter(f"limits.{key}", "it must be a whole number above 0")
    return Limits(**params)


def _read_now(params: Any) -> datetime:
    if params is None:
        return SystemClock().now()
    try:
        parsed = datetime.fromisoformat(params) if isinstance(params, str) else None
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise _invalid_parameter("now", "it must be an ISO 8601 time with an offset, such as 2025-02-01T06:00:00Z")
    return parsed


def _read_text(params: Mapping[str, Any], name: str, default: str | None) -> str:
    value = params.get(name, default)
    if not isinstance(value, str):
        raise _invalid_parameter(name, "it is missing" if name not in params else "it must be a string")
    return value


def _read_flag(params: Mapping[str, Any], name: str) -> bool:
    value = params.get(name, False)
    if not isinstance(value, bool):
        raise _invalid_parameter(name, "it must be true or false")
    return value


def _invalid_parameter(name: str, reason: str) -> RpcError:
    return RpcError(INVALID_PARAMS, data={"type": "UsageError", "message": f"{name}: {reason}", "field": name})
