"""``config_get`` and ``cleared config get``: the value of one setting by its dotted key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cleared.base.errors import ClearedError, Place, PolicyError, PrimitiveError
from cleared.base.short_text import parse_count
from cleared.workspace.settings.column_checks import nearest_names
from cleared.workspace.settings.loading import MISSING
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import is_secret
from cleared.workspace.settings.setting_keys import to_plain_values


def get_setting(config: Config, dotted: str, default: object = MISSING) -> Any:
    """``config_get``: the value of a dotted key, as plain values.

    Money is ``Decimal``, dates are ISO texts, sections are dicts without their secrets. An entry of a list
    is named by its number or its ``id``: ``bank_accounts.checking.ledger_account``. A key that is unknown,
    or known and without a value, gives ``default``; without one, ``PrimitiveError`` names the nearest keys.
    Keys of secrets are refused (``PolicyError``), whatever the default.
    """
    parts = dotted.split(".")
    if is_secret(dotted):
        raise PolicyError(f"{dotted[:80]!r} is a secret; no script can read it", place=Place(field="key"))
    value: Any = config.data or to_plain_values(config)
    depth = 0
    while depth < len(parts):
        inner, length = _step_into(value, parts[depth:])
        if inner is MISSING:
            if default is not MISSING:
                return default
            raise _unknown_key_error(dotted, parts[:depth], _list_names(value), config)
        value, depth = inner, depth + length
    if value is None:
        if default is not MISSING:
            return default
        raise PrimitiveError(
            f"the key {dotted!r} has no value in config.yaml",
            place=Place(field="key"),
            remedy="Set it there, or pass a default.",
        )
    return _without_secrets(value)


def _step_into(value: Any, parts: list[str]) -> tuple[Any, int]:
    """What the first part names, and how many parts the name has: those of models have dots in them."""
    if isinstance(value, dict):
        lengths = (n for n in range(1, len(parts) + 1) if ".".join(parts[:n]) in value)
        length = next(lengths, 0)
        return (value[".".join(parts[:length])], length) if length else (MISSING, 0)
    if isinstance(value, list):
        named = _index_entries(value)
        if parts[0] in named:
            return named[parts[0]], 1
        number = parse_count(parts[0])
        if number is not None and number < len(value):
            return value[number], 1
    return MISSING, 0


def _list_names(value: Any) -> list[str]:
    if isinstance(value, list):
        return list(_index_entries(value)) or [str(n) for n in range(len(value))]
    return list(value) if isinstance(value, dict) else []


def _index_entries(value: list[Any]) -> dict[str, Any]:
    return {str(item["id"]): item for item in value if isinstance(item, dict) and "id" in item}


def _unknown_key_error(dotted: str, known_parts: list[str], names: list[str], config: Config) -> ClearedError:
    prefix = ".".join(known_parts) + "." if known_parts else ""
    last = dotted[len(prefix) :].split(".")[0]
    near = [prefix + n for n in nearest_names(last, names, 3)]
    if not near:  # perhaps the right key in the wrong section
        every = list(_list_leaf_keys(config.data or to_plain_values(config), ""))
        tail = dotted.rsplit(".", 1)[-1]
        near = [k for k in every if k.rsplit(".", 1)[-1] == tail][:3]
        near = near or nearest_names(dotted, every, 3)
    near = [k for k in near if not is_secret(k)]
    return PrimitiveError(
        f"there is no key {dotted[:80]!r} in config.yaml" + (f"; did you mean {' or '.join(near)}?" if near else ""),
        place=Place(field="key"),
        remedy=None if near else "Pass a default if it may be missing.",
    )


def _list_leaf_keys(value: Any, path: str) -> Iterable[str]:
    for key, inner in value.items():
        dotted = f"{path}.{key}" if path else key
        if isinstance(inner, dict):
            yield from _list_leaf_keys(inner, dotted)
        else:
            yield dotted


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_secrets(v) for k, v in value.items() if not is_secret(k)}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value
