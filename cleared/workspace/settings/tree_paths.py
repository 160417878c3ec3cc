"""Finding a dotted key in the tree of ``config.yaml`` as it is written, whether or not a setting may stand there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cleared.base.short_text import parse_count
from cleared.workspace.settings.setting_keys import ALIASES
from cleared.workspace.settings.yaml_tree import Node


def split_key(dotted: str) -> list[str]:
    """The parts of a dotted key. The number of an entry may stand in brackets, as in messages."""
    return re.sub(r"\[([0-9]+)\]", r".\1", dotted).split(".")


def find_pair(node: Node, key: str) -> tuple[Node, Node] | None:
    """The first pair with this key, or another name of it."""
    return next(iter(list_pairs(node, key)), None)


def list_pairs(node: Node, key: str) -> list[tuple[Node, Node]]:
    """All pairs with this key, or another name of it: more than one where it is given twice."""
    names = {key, *(alias for (_, alias), name in ALIASES.items() if name == key)}
    return [(k, v) for k, v in node.pairs if k.text in names]


def find_node(root: Node | None, keys: Sequence[str | int]) -> Node | None:
    """The value that ``keys`` lead to; None where there is none."""
    node = root
    for key in keys:
        if node is None:
            return None
        if isinstance(key, int):
            node = node.items[key] if node.kind == "list" and key < len(node.items) else None
        else:
            pair = find_pair(node, key)
            node = pair[1] if pair is not None else None
    return node


def find_keys(root: Node | None, dotted: str) -> list[str | int] | None:
    """The keys that lead to what stands at ``dotted``; None where nothing does.

    Names may have dots in them, as those of models do; entries of lists are named by number or id.
    """
    return _find_parts(root, split_key(dotted))


def _find_parts(node: Node | None, parts: list[str]) -> list[str | int] | None:
    if not parts:
        return []
    if node is None:
        return None
    steps: list[tuple[str | int, Node, int]] = []
    if node.kind == "map":
        for length in range(1, len(parts) + 1):
            pair = find_pair(node, ".".join(parts[:length]))
            if pair is not None:
                steps.append((pair[0].text, pair[1], length))
    for number, item in enumerate(node.items):
        named = find_pair(item, "id")
        if named is not None and named[1].kind == "scalar" and named[1].text == parts[0]:
            steps.append((number, item, 1))
    at = parse_count(parts[0])
    if node.kind == "list" and at is not None and at < len(node.items):
        steps.append((at, node.items[at], 1))
    for step, inner, length in steps:
        rest = _find_parts(inner, parts[length:])
        if rest is not None:
            return [step, *rest]
    return None


def to_plain_tree(node: Node | None) -> Any:
    """The tree as dicts, lists and texts; None where there is no value. Of a key given twice the first counts."""
    if node is None or node.is_null:
        return None
    if node.kind == "map":
        return {k.text: to_plain_tree(v) for k, v in reversed(node.pairs)}
    return [to_plain_tree(item) for item in node.items] if node.kind == "list" else node.text


def without_key(node: Node | None, keys: Sequence[str | int]) -> Any:
    """The tree without what stands at ``keys``, nor sections that hold nothing: to see whether all else is the same."""
    if node is None or node.is_null:
        return None
    if node.kind == "scalar":
        return node.text, node.plain
    if node.kind == "list":
        return [
            without_key(item, keys[1:] if keys[:1] == [number] else ())
            for number, item in enumerate(node.items)
            if list(keys) != [number]
        ] or None
    taken = [pair[0] for pair in list_pairs(node, keys[0])] if keys and isinstance(keys[0], str) else []
    pairs = []
    for key, value in node.pairs:
        is_on_the_way = any(key is each for each in taken)
        if not (is_on_the_way and len(keys) == 1):
            # Of a section that is given twice only the first is changed.
            rest = keys[1:] if is_on_the_way and key is taken[0] else ()
            inner = without_key(value, rest)
            if inner is not None:
                pairs.append((key.text, inner))
    return pairs or None
