"""Protected settings: the keys of ``config.yaml`` that decide what a script may do. They take effect when approved.

Everything else in the file takes effect at once. A reserved setting can be protected too: no part of the program reads
it, but a script may, with ``config_get``.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from cleared.config.loading import ConfigError, load_config
from cleared.config.model import Config
from cleared.config.plain_values import to_plain_values
from cleared.errors import WorkspaceError

PROTECTED_KEYS: Final = (
    "gate", "sandbox", "thresholds", "reviewers", "limits", "self_improvement", "triggers", "notifications",
    "webhooks", "import.plugins", "loop.plugins", "loop.ai", "git.auto_commit", "llm", "mcp", "tasks",
)  # fmt: skip
"""Sections and keys that are protected, but for those below."""
_UNPROTECTED: Final = ("notifications.smtp_password",)
"""A secret cannot be protected: what is approved is kept in the repository."""
_TAKEN_WHOLE: Final = "llm.prices"
"""Its names have dots in them."""
_SAME_IN_JSON: Final = frozenset({str, int, bool, type(None)})


@lru_cache(maxsize=4096)
def is_protected(dotted: str) -> bool:
    """Whether a key takes effect only when approved."""
    return not _is_within(dotted, _UNPROTECTED) and _is_within(dotted, PROTECTED_KEYS)


def _is_within(dotted: str, keys: tuple[str, ...]) -> bool:
    return any(dotted == key or dotted.startswith(f"{key}.") for key in keys)


def protected_settings_of(config: Config) -> dict[str, Any]:
    """``{dotted key: value}`` of the protected settings that are not as shipped; amounts are texts."""
    shipped = _shipped_settings()
    return {
        key: value for key, value in _list_settings(config.data or to_plain_values(config), "")
        if is_protected(key) and value != shipped.get(key)
    }  # fmt: skip


def with_protected_settings(config: Config, approved: Mapping[str, Any]) -> Config:
    """The configuration with just the ``approved`` protected settings, and all other keys as they are.

    Keys in ``approved`` that are not protected are passed over. Raises ``WorkspaceError`` where the two do
    not go together.
    """
    approved = {key: value for key, value in approved.items() if is_protected(key)}
    if protected_settings_of(config) == approved:
        return config
    data = copy.deepcopy(dict(config.data or to_plain_values(config)))
    shipped = to_plain_values(Config())
    unprotected = {key: value for key, value in _list_settings(data, "") if key in _UNPROTECTED}
    for key in PROTECTED_KEYS:
        *sections, last = key.split(".")
        _open_section(data, sections)[last] = copy.deepcopy(_open_section(shipped, sections)[last])
    for key, value in {**approved, **unprotected}.items():
        *sections, last = key.split(".")
        _open_section(data, sections)[last] = value
    try:
        return load_config(json.dumps(data, default=str, ensure_ascii=True), "the approved policy")
    except ConfigError as error:
        raise WorkspaceError(
            f"the approved policy does not fit config.yaml: {error}", remedy="Approve the one you mean: "
            "cleared config approve.",
        ) from None  # fmt: skip


def compare_settings(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """``(key, value before, value after)`` of every protected setting that differs.

    Where a side does not have a key, its value is the one that was shipped.
    """
    shipped = _shipped_settings()
    differences = []
    for key in sorted(key for key in {*before, *after} if is_protected(key)):
        old, new = before.get(key, shipped.get(key)), after.get(key, shipped.get(key))
        if old != new:
            differences.append((key, old, new))
    return differences


@cache
def _shipped_settings() -> dict[str, Any]:
    """Dotted key → value as shipped."""
    return dict(_list_settings(to_plain_values(Config()), ""))


def _open_section(data: Any, names: list[str]) -> Any:
    for name in names:
        data = data.setdefault(name, {})
    return data


def _list_settings(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        dotted = f"{path}.{key}" if path else key
        if isinstance(inner, Mapping) and dotted != _TAKEN_WHOLE and (inner or dotted == "gate.rules"):
            yield from _list_settings(inner, dotted)
        else:
            yield dotted, inner if type(inner) in _SAME_IN_JSON else json.loads(json.dumps(inner, default=str))
