"""Changing one value in ``config.yaml`` and nothing else: comments, order and layout stay as they are."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from cleared.base.errors import UsageError
from cleared.base.short_text import parse_count
from cleared.workspace.settings import yaml_tree
from cleared.workspace.settings.edit_checks import refuse_new_problems
from cleared.workspace.settings.key_removal import cut_out, cut_repeated
from cleared.workspace.settings.loading import (
    ConfigError,
    ConfigReading,
    convert_scalar,
    read_entry,
    read_valid_part,
    suggest_known_name,
    type_name,
)
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.setting_keys import ALIASES, REFUSED, SettingField, setting_fields
from cleared.workspace.settings.tree_paths import find_keys, find_node, find_pair, split_key, to_plain_tree, without_key
from cleared.workspace.settings.yaml_tree import Node

# Texts that mean the same without quotes, wherever they stand.
_UNQUOTED = re.compile(r"[A-Za-z_](?:[A-Za-z0-9_ .@/+()-]*[A-Za-z0-9_.@/+()-])?", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]|[\ud800-\udfff]")


_TAKE_OUT = "Take it out, then set it: cleared config unset {}."


class _Target(Struct, frozen=True):
    """Where a dotted key leads: its field, the keys down to it, and the same in ``Config.data``."""

    field: SettingField
    keys: list[str | int]


def set_value(text: str, dotted: str, value: str | None) -> str:
    """``text`` with ``value`` (as typed by a person; None: no value, where the key may have none) at ``dotted``.

    A key that stands there is changed in its place, and where it is given twice the later ones are taken out; one that
    does not is added at the end of its section, and a missing section at the end of the file. Entries of lists are
    named by number or id (``bank_accounts.checking.format``) and must exist. What else is wrong in ``text`` stays as it
    is. Raises ``UsageError`` where the key or value is wrong or the change cannot be made without touching more,
    ``ConfigError`` where the text is not YAML or the change makes anything wrong.
    """
    before = read_valid_part(text)
    target = _resolve_key(to_plain_tree(before.root) if before.problems else before.config.data, dotted)
    piece = _format_value(target.field, dotted, value)
    changed = insert_value(text, before.root, target.keys, piece, dotted)
    while before.problems and (shorter := cut_repeated(changed, target.keys)) is not None:
        changed = shorter
    after = read_valid_part(changed)
    refuse_new_problems(before, after, target.keys, is_set=True)
    found = find_node(after.root, target.keys)
    is_there = found is not None and to_plain_tree(found) == to_plain_tree(yaml_tree.parse_yaml(piece))
    if not is_there or without_key(before.root, target.keys) != without_key(after.root, target.keys):
        raise UsageError(f"{dotted} cannot be changed without changing more", remedy="Edit config.yaml by hand.")
    return changed


def remove_value(text: str, dotted: str) -> str:
    """``text`` without what stands at ``dotted``, whether or not a setting may stand there; of a key that is given
    twice, without the later ones. Raises as ``set_value`` does."""
    before = read_valid_part(text)
    keys = find_keys(before.root, dotted)
    if not keys:
        raise UsageError(f"{dotted[:80]!r} does not stand in config.yaml", remedy="It is as shipped, then.")
    return _cut_checked(text, before, keys, dotted)


def _cut_checked(text: str, before: ConfigReading, keys: Sequence[str | int], dotted: str) -> str:
    changed = cut_out(text, before.root, keys, dotted)
    try:
        refuse_new_problems(before, read_valid_part(changed), keys, is_set=False)
    except ConfigError:
        above = find_node(before.root, keys[:-1])
        if len(keys) == 1 or above is None or len(above.pairs) + len(above.items) > 1:
            raise
        return _cut_checked(text, before, keys[:-1], dotted)  # it would be left with nothing in it, which it may not
    return changed


def can_be_set(root: Node | None, dotted: str) -> bool:
    """Whether ``set_value`` takes a value at ``dotted`` in the file of this tree, if it is a right one."""
    try:
        target = _resolve_key(to_plain_tree(root), dotted)
    except UsageError:
        return False
    node = find_node(root, target.keys)
    way = [find_node(root, target.keys[:length]) for length in range(len(target.keys))]
    is_open = all(each is None or each.is_null or each.kind != "scalar" for each in way)
    is_value = node is None or node.kind == "scalar" or not node.plain
    return is_open and is_value and target.field.section is None and target.field.entries is None


def _resolve_key(data: Any, dotted: str) -> _Target:
    """``data``: the values, or texts, that there are."""
    section: type = Config
    keys: list[str | int] = []
    parts = split_key(dotted)
    while parts:
        part = parts.pop(0)
        fields = setting_fields(section)
        part = ALIASES.get((section, part), part)
        if (section, part) in REFUSED:
            raise UsageError(f"{dotted}: {REFUSED[section, part]}")
        if part not in fields:
            raise UsageError(suggest_known_name(part, fields, f"{dotted!r}: there is no key {part!r}"))
        setting = fields[part]
        keys.append(part)
        data = data.get(part) if isinstance(data, dict) else None
        if not setting.section and not setting.entries:
            if not parts:
                return _Target(setting, keys)
            if isinstance(data, dict) and len(parts) == 1:  # a free map, such as columns
                return _Target(SettingField(parts[0], parts[0], str, False, False), [*keys, parts[0]])
            raise UsageError(f"{dotted!r}: {'.'.join(map(str, keys))} is a value, not a section")
        section = setting.section or setting.entries or Config
        if setting.entries and parts and typing.get_origin(setting.type) is Mapping:
            name, parts = _split_entry_name(parts, data if isinstance(data, dict) else {}, section)
            keys.append(name)
            if not parts:
                return _Target(SettingField(name, name, section, False, False, section=section), keys)
            data = data.get(name) if isinstance(data, dict) else None
            if data is None:
                raise UsageError(
                    f"{dotted!r}: there is no such entry in {part}",
                    remedy=f"Give all of it: cleared config set {'.'.join(map(str, keys))} '{_show_entry(section)}'",
                )
        elif setting.entries and parts:
            entry = _find_entry(data, parts.pop(0))
            if entry is None:
                raise UsageError(
                    f"{dotted!r}: there is no such entry in {part}", remedy="Add it in config.yaml, with a text editor."
                )
            keys.append(entry)
            data = data[entry]
    names = ", ".join(list(setting_fields(section))[:4])
    raise UsageError(f"{dotted!r} is a section, not a value", remedy=f"Name a key in it, such as {names}.")


def _split_entry_name(parts: list[str], known: Mapping[str, Any], section: type) -> tuple[str, list[str]]:
    """The name of an entry, which may have dots in it, and the parts behind it."""
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in known:
            return ".".join(parts[:length]), parts[length:]
    is_field = len(parts) > 1 and parts[-1] in setting_fields(section)
    return (".".join(parts[:-1]), parts[-1:]) if is_field else (".".join(parts), [])


def _show_entry(section: type) -> str:
    needed = [key for key, field in setting_fields(section).items() if field.required]
    return "{ " + ", ".join(f"{key}: …" for key in needed) + " }"


def _find_entry(data: Any, name: str) -> int | None:
    if not isinstance(data, list):
        return None
    for at, item in enumerate(data):
        if isinstance(item, dict) and item.get("id") == name:
            return at
    number = parse_count(name)
    return number if number is not None and number < len(data) else None


def _format_value(field: SettingField, dotted: str, value: str | None) -> str:
    """How the value is written in YAML."""
    if value is None:
        if not field.optional:
            raise UsageError(f"{dotted} has a value always")
        return "null"
    try:
        if field.section:
            return _format_flow(read_entry(value, field.section, dotted)[1])
        if typing.get_origin(field.type) is tuple:
            return "[" + ", ".join(format_scalar(item) for item in _parse_items(value)) + "]"
        convert_scalar(value, field.type, True)
    except ValueError as error:
        raise UsageError(f"{dotted}: {error}") from None
    except TypeError:
        raise UsageError(f"{dotted} is {type_name(field.type)}; edit config.yaml by hand") from None
    is_text = field.type is str or typing.get_origin(field.type) is typing.Literal
    return format_scalar(value) if is_text else value


def _parse_items(value: str) -> list[str]:
    """``[a, "b c"]`` or ``a, b``."""
    try:
        node = yaml_tree.parse_yaml(value if value.strip().startswith("[") else f"[{value}]")
    except yaml_tree.TreeError as error:
        raise ValueError(f"not a list such as [a, b]: {error}") from None
    if node is None or node.kind != "list" or any(item.kind != "scalar" for item in node.items):
        raise ValueError("not a list such as [a, b]")
    return [convert_scalar(item.text, str, True) for item in node.items]


def _format_flow(node: Node) -> str:
    """What a tree says, on one line."""
    if node.kind == "map":
        return "{ " + ", ".join(f"{_format_flow(key)}: {_format_flow(value)}" for key, value in node.pairs) + " }"
    if node.kind == "list":
        return "[" + ", ".join(map(_format_flow, node.items)) + "]"
    is_number = node.plain and _NUMBER.fullmatch(node.text) is not None
    return node.text if is_number or node.is_null or node.text.lower() in _YAML_WORDS else format_scalar(node.text)


def format_scalar(value: str) -> str:
    """A text as YAML: bare where that cannot mean anything else, else in double quotes."""
    if _UNQUOTED.fullmatch(value) and value.lower() not in _YAML_WORDS:
        return value
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(value, ensure_ascii=False))


def insert_value(text: str, root: Node | None, keys: list[str | int], piece: str, dotted: str) -> str:
    """``text`` with the YAML ``piece`` where ``keys`` lead; what is missing on the way is added. ``dotted``: the key in
    messages. Raises ``UsageError`` where that cannot be done in place."""
    newline = "\r\n" if "\r\n" in text else "\n"
    node, key_node, rest = root, None, list(keys)
    while rest and node is not None:
        step = rest[0]
        if isinstance(step, int):
            if node.kind != "list":
                break
            key_node, node = None, node.items[step]
        else:
            pair = find_pair(node, step)
            if pair is None:
                break
            key_node, node = pair
        rest.pop(0)
    if node is None or (root is node and node.is_null):
        return _append_lines(text, _format_lines(rest, piece, "", newline), newline)
    if not rest:
        return _replace_value(text, key_node, node, piece, dotted)
    if node.is_null and key_node is not None:  # ``section:`` and nothing below it
        lines = _format_lines(rest, piece, " " * (key_node.column + 2), newline)
        return insert_after_line(text, key_node.end, lines, newline)
    if node.kind != "map":
        raise UsageError(f"{dotted} cannot be set there", remedy=_TAKE_OUT.format(_parent_of(dotted, rest)))
    if not node.plain:
        flow = f"{': {'.join(str(k) for k in rest)}: {piece}" + "}" * (len(rest) - 1)
        if node.pairs:
            end = node.pairs[-1][1].end
            return f"{text[:end]}, {flow}{text[end:]}"
        return f"{text[: node.start + 1]} {flow} {text[node.end - 1 :]}"
    if node is root:
        return _append_lines(text, _format_lines(rest, piece, " " * node.column, newline), newline, gap=len(rest) > 1)
    lines = _format_lines(rest, piece, " " * node.pairs[0][0].column, newline)
    return insert_after_line(text, find_content_end(node), lines, newline)


def _replace_value(text: str, key: Node | None, node: Node, piece: str, dotted: str) -> str:
    if node.kind != "scalar" and node.plain:
        raise UsageError(f"{dotted} is written over several lines", remedy=_TAKE_OUT.format(dotted))
    if node.kind == "scalar" and node.plain and not node.text:  # ``key:`` with nothing behind it
        colon = text.index(":", key.end if key else node.start)
        return f"{text[: colon + 1]} {piece}{text[colon + 1 :]}"
    end = node.end
    if text[node.start : node.start + 1] in "|>" and text[:end].endswith("\n"):
        end -= 2 if text[:end].endswith("\r\n") else 1
    return text[: node.start] + piece + text[end:]


def _parent_of(dotted: str, rest: Sequence[str | int]) -> str:
    return dotted.removesuffix("." + ".".join(map(str, rest)))


def find_content_end(node: Node) -> int:
    """Where the content of a node ends, without the comments behind it."""
    while node.plain and (node.pairs or node.items):
        node = node.pairs[-1][1] if node.pairs else node.items[-1]
    return node.end


def _format_lines(keys: list[str | int], piece: str, indent: str, newline: str) -> str:
    heads = [f"{indent}{'  ' * depth}{key}:" for depth, key in enumerate(keys)]
    return newline.join(heads) + f" {piece}"


def _append_lines(text: str, lines: str, newline: str, *, gap: bool = False) -> str:
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if gap else "") + lines + newline


def insert_after_line(text: str, position: int, lines: str, newline: str) -> str:
    """``text`` with ``lines`` below the line of ``position``."""
    if text[:position].endswith("\n"):  # a block of text ends behind its line
        return text[:position] + lines + newline + text[position:]
    end = text.find("\n", position)
    if end < 0:
        return text + newline + lines + newline
    return text[: end + 1] + lines + newline + text[end + 1 :]
