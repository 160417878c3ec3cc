"""The keys of the configuration, read off the sections of ``model``: the one list of them, and their values."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, Final, TypeGuard

from msgspec import NODEFAULT, Struct, structs

from cleared.base.short_text import quote_name
from cleared.workspace.settings import bank_section, model
from cleared.workspace.settings.bank_section import CsvProfile
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.section import Declaration, Section

ALIASES: dict[tuple[type[Section], str], str] = {(bank_section.BankAccount, "csv_format"): "format"}
"""Other names of keys, from the published design."""

REFUSED: dict[tuple[type[Section], str], str] = {
    (model.Llm, "api_key"): "a key does not belong into this file, which git keeps: take the line out, and put the key "
    "into the environment (such as ANTHROPIC_API_KEY) or into the system's keyring (cleared llm key). If it was ever "
    "committed, have the provider replace it",
}
"""Keys that were accepted once, and what to do instead."""

_NOT_KEYS = {(model.Config, "data"), (bank_section.CsvProfile, "name")}


class SettingField(Struct, frozen=True):
    """One key of a section. ``type`` is without its ``None``; ``optional`` says whether it had one. ``reserved``: it is
    accepted, and no part of the program reads it yet. ``program``: it names what this machine will run."""

    key: str
    attribute: str
    type: Any
    optional: bool
    required: bool
    reserved: bool = False
    program: bool = False
    approval: str = ""
    """``protected``, ``harmless`` or ``secret``, as it is declared; empty where it says nothing, as sections do."""
    default: Any = None
    """As declared; None where it must be given."""
    section: type[Section] | None = None
    """The struct, where the key holds a section."""
    entries: type[Section] | None = None
    """The struct of each entry, where the key holds a list or a map of sections."""
    has_named_entries: bool = False
    """Whether each entry has a name of its own, so that its settings have keys: ``bank_accounts.card.format``."""


def is_section(kind: Any) -> TypeGuard[type[Section]]:
    """Whether a type is one of a section, or of the entries of a list or map."""
    return isinstance(kind, type) and issubclass(kind, Section)


@cache
def setting_fields(section: type[Section]) -> dict[str, SettingField]:
    """Key → field, in order."""
    by_key: dict[str, SettingField] = {}
    for each in structs.fields(section):
        if (section, each.name) in _NOT_KEYS:
            continue
        hint, declared = each.type, None
        if typing.get_origin(hint) is typing.Annotated:
            hint, declared = typing.get_args(hint)
        assert declared is None or isinstance(declared, Declaration)
        optional = typing.get_origin(hint) in (types.UnionType, typing.Union)
        if optional:
            hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        inner = arguments[0] if origin is tuple else arguments[1] if origin is Mapping else None
        entries = inner if is_section(inner) else None
        default = each.default if each.default is not NODEFAULT else None
        if each.default_factory is not NODEFAULT:
            default = each.default_factory()
        by_key[each.name.rstrip("_")] = SettingField(
            each.name.rstrip("_"),
            each.name,
            hint,
            optional,
            each.required,
            reserved=declared is not None and declared.reserved,
            program=declared is not None and declared.program,
            approval=declared.approval if declared is not None else "",
            default=default,
            section=hint if is_section(hint) else None,
            entries=entries,
            has_named_entries=entries is not None and (origin is Mapping or "id" in entries.__struct_fields__),
        )
    return by_key


def _select_keys(is_wanted: Callable[[SettingField], bool]) -> frozenset[str]:
    """The dotted keys of the settings of which that is true."""

    def list_keys(section: type[Section], path: str) -> Iterator[str]:
        for key, field in setting_fields(section).items():
            if field.section:
                yield from list_keys(field.section, f"{path}{key}.")
            elif is_wanted(field):
                yield path + key

    return frozenset(list_keys(model.Config, ""))


@cache
def keys_declared(*approvals: str) -> frozenset[str]:
    """The dotted keys of the settings that are declared so: ``harmless``, ``secret``."""
    return _select_keys(lambda field: field.approval in approvals)


_LOOSENING: Final = (("sandbox.confine", "off"), ("self_improvement.approve", "additive"))
_RULES: Final = "gate.rules."
_DECIDING: Final = frozenset(
    {"thresholds", "self_improvement", "sandbox", "gate", "reviewers", "bookkeepers", "auto_revert_on", "mcp"}
)
"""Sections that say what is booked, approved and run without asking, and who decides."""
_DESCRIBING: Final = frozenset({"business", "fiscal", "paths", "bank_accounts", "import"})
"""Sections that say what the books are, and how bank files read."""


@cache
def program_settings() -> frozenset[str]:
    """The dotted keys of the settings by which this machine runs a program, or sends something out."""
    return _select_keys(lambda field: field.program)


def starts_something(key: str, value: object) -> bool:
    """Whether this machine runs a program or sends something out by this value of a setting, or confines or checks
    less, or lets something become live without a person."""
    is_used = key in program_settings() and value not in (None, False, "", "none", [])
    return is_used or (key, value) in _LOOSENING or (key.startswith(_RULES) and value in ("off", "warn"))


def rank_setting(key: str) -> tuple[int, str]:
    """The order in which changed settings are told: first what runs or sends something, then what decides who acts and
    what is asked, last what only describes the books, and what is harmless."""
    section = key.partition(".")[0]
    if key in program_settings():
        return 0, key
    if key in keys_declared("harmless"):
        return 4, key
    return (1 if section in _DECIDING else 3 if section in _DESCRIBING else 2), key


@cache
def reserved_settings() -> frozenset[str]:
    """The dotted keys of all settings that no part of the program reads yet."""
    return _select_keys(lambda field: field.reserved)


def list_reserved_in_use(config: model.Config) -> list[str]:
    """The reserved settings that are not as shipped, so that one notice can say that the program does not read them."""

    def value_of(settings: Any, key: str) -> Any:
        for part in key.split("."):
            settings = getattr(settings, part)
        return settings

    shipped = model.Config()
    return [key for key in sorted(reserved_settings()) if value_of(config, key) != value_of(shipped, key)]


_PLAIN: Final = frozenset({str, int, bool, float, Decimal, type(None)})
_SAME_IN_JSON: Final = frozenset({str, int, bool, type(None)})


@cache
def _plain_names(section: type[Section]) -> tuple[tuple[str, str], ...]:
    """Name and key of each field that is a key of ``config.yaml``."""
    without = "data" if issubclass(section, Config) else "name" if issubclass(section, CsvProfile) else ""
    return tuple((name, name.rstrip("_")) for name in section.__struct_fields__ if name != without)


def to_plain_values(value: Any) -> Any:
    """Sections as dicts, tuples as lists, dates as ISO texts; money stays ``Decimal``."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if is_section(kind):
        values = [(key, getattr(value, name)) for name, key in _plain_names(kind)]
        return {key: inner if type(inner) in _PLAIN else to_plain_values(inner) for key, inner in values}
    if isinstance(value, tuple):
        return [to_plain_values(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_plain_values(item) for key, item in value.items()}
    return value.isoformat() if isinstance(value, date) else value


def to_json_value(value: Any) -> Any:
    """As a record of approval has it: amounts are texts."""
    return json.loads(json.dumps(to_plain_values(value), default=str))


def write_value(value: object) -> str:
    """A value for a person to read, as ``config.yaml`` has it: ``true``, a text in quotation marks."""
    if isinstance(value, str):
        return quote_name(value) if value else "empty"
    return "not set" if value is None else json.dumps(value, ensure_ascii=False, default=str)


@cache
def _shipped_values(section: type[Section]) -> dict[str, Any]:
    """Key → value as shipped, of a section, as a record of approval has them."""
    shipped = {key: field.default for key, field in setting_fields(section).items()}
    return {key: value if type(value) in _SAME_IN_JSON else to_json_value(value) for key, value in shipped.items()}


def list_setting_values(
    section: Section, path: str = "", *, without_shipped: bool = False
) -> list[tuple[str, Any, Any]]:
    """Dotted key, value, and value as shipped, as a record of approval has them, of a configuration or a part of it.
    ``without_shipped``: without the sections that ``config.yaml`` leaves out, which are most."""
    settings: list[tuple[str, Any, Any]] = []
    kind = type(section)
    shipped = _shipped_values(kind)
    for key, field in setting_fields(kind).items():
        value, dotted = getattr(section, field.attribute), path + key
        if field.section and value is not None:
            if value is not field.default or not without_shipped:
                settings += list_setting_values(value, f"{dotted}.", without_shipped=without_shipped)
        elif field.has_named_entries:
            entries = value.items() if isinstance(value, Mapping) else [(entry.id, entry) for entry in value]
            for name, entry in entries:
                settings += list_setting_values(entry, f"{dotted}.{name}.")
        elif isinstance(value, Mapping):
            settings += [(f"{dotted}.{name}", to_json_value(inner), None) for name, inner in value.items()]
        elif value is field.default:
            settings.append((dotted, shipped[key], shipped[key]))
        else:
            settings.append((dotted, value if type(value) in _SAME_IN_JSON else to_json_value(value), shipped[key]))
    return settings
