"""Protected settings: the keys of ``config.yaml`` that take effect only when a person has approved them.

That is each key that is not declared ``harmless`` or ``secret`` in the model. A reserved setting is protected too: no
part of the program reads it, but a script may, with ``config_get``.

A key names one value: ``import.profiles.mine.delimiter``, ``bank_accounts.checking.ledger_account``. So what somebody
else has written into the same list or section is never approved along.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.section import Section
from cleared.workspace.settings.setting_keys import (
    SettingField,
    keys_declared,
    list_setting_values,
    setting_fields,
    to_json_value,
    to_plain_values,
)

_DESCRIBING: Final = ("business", "fiscal", "paths", "bank_accounts", "import.profiles")
"""What one must know to read the books at all."""


def is_protected(dotted: str) -> bool:
    """Whether a key takes effect only when approved."""
    section: type[Section] = Config
    *names, last = dotted.split(".")
    for name in names:
        field = setting_fields(section).get(name)
        if field is None or field.section is None:  # entries, and what a free map has, are declared nowhere
            return True
        section = field.section
    field = setting_fields(section).get(last)
    return field is None or field.approval not in ("harmless", "secret")


def protected_settings_of(config: Config) -> dict[str, Any]:
    """``{dotted key: value}`` of the protected settings that are not as shipped; amounts are texts."""
    settings = list_setting_values(config, without_shipped=True)
    return {key: value for key, value, shipped in settings if value != shipped and is_protected(key)}


def describing_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of them without which nobody can read the books, and which let nothing act."""
    return {key: value for key, value in settings.items() if is_within(key, _DESCRIBING)}


def with_protected_settings(config: Config, approved: Mapping[str, Any]) -> Config:
    """The configuration with just the ``approved`` protected settings, and all other keys as they are.

    Keys in ``approved`` that are not protected are passed over. Raises ``ConfigError`` where the result is not valid,
    as when another version of the program approved a key that this one does not know.
    """
    approved = {key: value for key, value in approved.items() if is_protected(key)}
    if protected_settings_of(config) == approved:
        return config
    data = copy.deepcopy(to_plain_values(Config()))
    unprotected = {key: value for key, value, _ in list_setting_values(config) if not is_protected(key)}
    for key, value in {**approved, **unprotected}.items():
        *sections, last = _split_key(key)
        inner = data
        for name in sections:
            inner = _open_section(inner, name)
        inner[last] = value
    order = {account.id: number for number, account in enumerate(config.bank_accounts)}
    accounts = data["bank_accounts"] or {}
    data["bank_accounts"] = [accounts[name] for name in sorted(accounts, key=lambda n: (order.get(n, len(order)), n))]
    return load_config(json.dumps(data, default=str, ensure_ascii=True), "the approved settings")


def compare_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """``(key, value before, value after)`` of every protected setting that differs.

    Where a side does not have a key, its value is the one that was shipped; None where it has not even the entry of
    that name, such as a bank account.
    """
    return _compare_values(*({k: v for k, v in side.items() if is_protected(k)} for side in (before, after)))


def compare_all_settings(before: Config, after: Config) -> list[tuple[str, Any, Any]]:
    """As ``compare_settings``, of every setting but secrets, protected or not."""
    return _compare_values(*map(read_public_settings, (before, after)))


def read_public_settings(config: Config) -> dict[str, Any]:
    """Dotted key → value of every setting but secrets."""
    secrets = keys_declared("secret")
    return {key: value for key, value, _ in list_setting_values(config) if key not in secrets}


def _compare_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    differences = []
    for key in sorted({*before, *after}):
        shipped = _shipped_value(key)
        old, new = (side.get(key, shipped) for side in (before, after))
        if old != new:
            old, new = (
                value if key in side or _has_entry_of(key, side) else None
                for value, side in ((old, before), (new, after))
            )
            differences.append((key, old, new))
    return differences


def _has_entry_of(dotted: str, settings: Mapping[str, Any]) -> bool:
    """Whether the settings have anything of the named entry that the key lies in; true of a key that lies in none."""
    section: type = Config
    names = _split_key(dotted)
    for depth, name in enumerate(names, 1):
        field = setting_fields(section).get(name)
        if field is not None and field.has_named_entries:
            return any(_split_key(each)[: depth + 1] == names[: depth + 1] for each in settings)
        if field is None or not field.section:
            return True
        section = field.section
    return True


def is_within(dotted: str, keys: tuple[str, ...]) -> bool:
    """Whether it is one of these keys, or lies in one of them."""
    return any(dotted == key or dotted.startswith(f"{key}.") for key in keys)


@lru_cache(maxsize=4096)
def _shipped_value(dotted: str) -> Any:
    found = _find_setting(Config, dotted.split("."))
    return to_json_value(found[1].default) if found is not None and found[1] is not None else None


def _split_key(dotted: str) -> list[str]:
    """The names that lead to a setting. Names of entries may have dots in them, as those of models do."""
    found = _find_setting(Config, dotted.split("."))
    return found[0] if found is not None else dotted.split(".")


def _find_setting(section: type, parts: list[str]) -> tuple[list[str], SettingField | None] | None:
    """The names that lead to a setting, and how it is declared (None in a free map); None where there is none."""
    field, rest = setting_fields(section).get(parts[0]), parts[1:]
    if field is None or (not rest and field.section):
        return None
    if field.section:
        names = [parts[0]]
        inner = _find_setting(field.section, rest)
    elif field.has_named_entries and field.entries:
        for length in range(1, len(rest)):
            inner = _find_setting(field.entries, rest[length:])
            if inner is not None:
                return [parts[0], ".".join(rest[:length]), *inner[0]], inner[1]
        return None
    elif rest:
        return [parts[0], ".".join(rest)], None
    else:
        return [parts[0]], field
    return ([*names, *inner[0]], inner[1]) if inner is not None else None


def _open_section(data: dict[str, Any], name: str) -> dict[str, Any]:
    inner = data.get(name)
    if not isinstance(inner, dict):  # a section that is none as shipped, or a list of named entries
        inner = data[name] = {}
    return inner
