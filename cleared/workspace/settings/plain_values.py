"""A configuration as plain values, as ``config.yaml`` would say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, Final

from cleared.workspace.settings.bank_section import CsvProfile
from cleared.workspace.settings.model import Config

_PLAIN: Final = frozenset({str, int, bool, float, Decimal, type(None)})


@cache
def _plain_names(section: type) -> tuple[tuple[str, str], ...]:
    """Name and key of each field that is a key of ``config.yaml``."""
    without = "data" if issubclass(section, Config) else "name" if issubclass(section, CsvProfile) else ""
    return tuple((each.name, each.name.rstrip("_")) for each in fields(section) if each.name != without)


def to_plain_values(value: Any) -> Any:
    """Dataclasses as dicts, tuples as lists, dates as ISO texts; money stays ``Decimal``."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if is_dataclass(kind):
        return {key: to_plain_values(getattr(value, name)) for name, key in _plain_names(kind)}
    if isinstance(value, tuple):
        return [to_plain_values(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain_values(item) for key, item in value.items()}
    return value.isoformat() if isinstance(value, date) else value
