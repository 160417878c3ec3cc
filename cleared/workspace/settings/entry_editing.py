"""Adding a bank account or a CSV profile to ``config.yaml``: new lines, and every other byte as it was."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from cleared.base.errors import UsageError
from cleared.workspace.settings.editing import find_content_end, format_scalar, insert_after_line, insert_value
from cleared.workspace.settings.loading import read_config
from cleared.workspace.settings.setting_keys import to_plain_values
from cleared.workspace.settings.yaml_tree import parse_yaml

BY_HAND = "Edit config.yaml by hand."


def add_profile(text: str, name: str, values: Mapping[str, Any]) -> str:
    """``text`` with ``import.profiles.NAME``. Raises ``UsageError`` where there is one, or the file cannot be changed
    without touching more; ``ConfigError`` where text or result are not valid."""
    before, _ = read_config(text)
    if name in before.import_.profiles:
        raise UsageError(f"there is a profile {name!r} already", remedy="Give it another name: --id NAME.")
    changed = text
    for key, value in values.items():
        root = parse_yaml(changed)
        dotted = f"import.profiles.{name}.{key}"
        if key == "columns":
            piece = "{" + ", ".join(f"{format_scalar(f)}: {format_scalar(str(c))}" for f, c in value.items()) + "}"
        else:
            piece = _format_value(value)
        changed = insert_value(changed, root, ["import", "profiles", name, key], piece, dotted)
    after, _ = read_config(changed)
    plain = to_plain_values(after)
    plain["import"]["profiles"].pop(name)
    _require_same(before, plain)
    return changed


def add_bank_account(text: str, values: Mapping[str, Any]) -> str:
    """``text`` with one more entry in ``bank_accounts``. Raises as ``add_profile`` does."""
    before, root = read_config(text)
    lines = [f"{key}: {_format_value(value)}" for key, value in values.items()]
    pair = next(((k, v) for k, v in root.pairs if k.text == "bank_accounts"), None) if root is not None else None
    newline = "\r\n" if "\r\n" in text else "\n"
    if pair is None:
        gap = "" if not text or text.endswith("\n") else newline
        changed = text + gap + newline + "bank_accounts:" + newline + _item_lines(lines, "  ", newline) + newline
    elif pair[1].kind == "list" and pair[1].plain and pair[1].items:
        indent = " " * pair[1].column
        changed = insert_after_line(text, find_content_end(pair[1]), _item_lines(lines, indent, newline), newline)
    elif pair[1].is_null or (pair[1].kind == "list" and not pair[1].items):
        cut = text[: pair[1].start].rstrip() if not pair[1].is_null else text[: pair[0].end + 1]
        rest = text[pair[1].end :] if not pair[1].is_null else text[pair[0].end + 1 :]
        changed = cut + newline + _item_lines(lines, "  ", newline) + rest
    else:
        raise UsageError("bank_accounts is not written as a list of lines", remedy=BY_HAND)
    after, _ = read_config(changed)
    plain = to_plain_values(after)
    plain["bank_accounts"] = plain["bank_accounts"][:-1]
    _require_same(before, plain)
    return changed


def _require_same(before: Any, plain: Any) -> None:
    expected = copy.deepcopy(to_plain_values(before))
    if plain != expected:
        raise UsageError("config.yaml cannot be changed without changing more", remedy=BY_HAND)


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{format_scalar(str(k))}: {_format_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_format_value(each) for each in value) + "]"
    return format_scalar(str(value))


def _item_lines(lines: Sequence[str], indent: str, newline: str) -> str:
    return newline.join([f"{indent}- {lines[0]}", *(f"{indent}  {line}" for line in lines[1:])])
