"""Policy: the keys of ``config.yaml`` that decide what a script may do. They take effect when approved.

Everything else in the file takes effect at once.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from cleared.config.loading import ConfigError, load, plain
from cleared.config.model import Config
from cleared.errors import WorkspaceError

POLICY: Final = (
    "gate", "sandbox", "thresholds", "reviewers", "limits", "self_improvement", "triggers", "notifications",
    "import.plugins", "loop.plugins", "git.auto_commit",
)  # fmt: skip
"""Sections and keys."""
_SECRETS: Final = ("notifications.smtp_password",)
"""Not among them: what is approved is kept in the repository."""


def is_policy(dotted: str) -> bool:
    """Whether a key takes effect only when approved."""
    return dotted not in _SECRETS and any(dotted == key or dotted.startswith(f"{key}.") for key in POLICY)


def policy_of(config: Config) -> dict[str, Any]:
    """``{dotted key: value}`` of the policy keys that are not as shipped; amounts are texts."""
    shipped = _shipped()
    return {
        key: value for key, value in _leaves(config.data or plain(config), "")
        if is_policy(key) and value != shipped.get(key)
    }  # fmt: skip


def with_policy(config: Config, policy: Mapping[str, Any]) -> Config:
    """The configuration with just this policy, and all other keys as they are.

    Raises ``WorkspaceError`` where the two do not go together.
    """
    if policy_of(config) == dict(policy):
        return config
    data = copy.deepcopy(dict(config.data or plain(config)))
    shipped = plain(Config())
    secrets = {key: value for key, value in _leaves(data, "") if key in _SECRETS}
    for key in POLICY:
        *sections, last = key.split(".")
        _section(data, sections)[last] = copy.deepcopy(_section(shipped, sections)[last])
    for key, value in {**policy, **secrets}.items():
        if is_policy(key) or key in secrets:
            *sections, last = key.split(".")
            _section(data, sections)[last] = value
    try:
        return load(json.dumps(data, default=str, ensure_ascii=True), "the approved policy")
    except ConfigError as error:
        raise WorkspaceError(
            f"the approved policy does not fit config.yaml: {error}", remedy="Approve the one you mean: "
            "cleared config approve.",
        ) from None  # fmt: skip


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """``(key, value before, value after)`` of every key that differs; as shipped, where a side does not have it."""
    shipped = _shipped()
    found = []
    for key in sorted({*before, *after}):
        old, new = before.get(key, shipped.get(key)), after.get(key, shipped.get(key))
        if old != new:
            found.append((key, old, new))
    return found


@cache
def _shipped() -> dict[str, Any]:
    """Dotted key → value as shipped."""
    return dict(_leaves(plain(Config()), ""))


def _section(data: Any, names: list[str]) -> Any:
    for name in names:
        data = data.setdefault(name, {})
    return data


def _leaves(value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        here = f"{path}.{key}" if path else key
        if isinstance(inner, Mapping) and (inner or here == "gate.rules"):
            yield from _leaves(inner, here)
        else:
            yield here, json.loads(json.dumps(inner, default=str))
