"""Taking one key out of ``config.yaml``, and nothing else: comments, order and layout stay as they are."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cleared.base.errors import UsageError
from cleared.workspace.settings.tree_paths import find_node, list_pairs, without_key
from cleared.workspace.settings.yaml_tree import Node, TreeError, parse_yaml

_DASHES = re.compile(r"\s*(?:-\s+)*", re.ASCII)


def cut_out(text: str, root: Node | None, keys: Sequence[str | int], dotted: str) -> str:
    """``text`` without what stands at ``keys``: its lines, or its place within brackets. Where the key is given twice
    the later ones go, and the first stays. ``dotted``: the key in messages. Raises ``UsageError`` where that cannot be
    done without touching more."""
    parent, last = find_node(root, keys[:-1]), keys[-1]
    assert parent is not None
    if isinstance(last, int):
        spans = [(item, item) for item in parent.items]
        taken = [spans[last]]
    else:
        spans = parent.pairs
        every = list_pairs(parent, last)
        taken = every[1:] or every
    changed = text
    for span in reversed(taken):
        changed = _cut_span(changed, parent, spans, next(n for n, each in enumerate(spans) if each[0] is span[0]))
    if not _is_same_without(root, changed, keys, len(spans) - len(taken)):
        raise UsageError(f"{dotted} cannot be taken out without changing more", remedy="Edit config.yaml by hand.")
    return changed


def cut_repeated(text: str, keys: Sequence[str | int]) -> str | None:
    """``text`` with a key that is given twice given once; None where it is."""
    root = parse_yaml(text)
    parent = find_node(root, keys[:-1])
    is_repeated = parent is not None and isinstance(keys[-1], str) and len(list_pairs(parent, keys[-1])) > 1
    return cut_out(text, root, keys, ".".join(map(str, keys))) if is_repeated else None


def _is_same_without(root: Node | None, changed: str, keys: Sequence[str | int], left: int) -> bool:
    """Whether all else is as it was, and ``left`` pairs or items are where the key lay."""
    try:
        after = parse_yaml(changed)
    except TreeError:
        return False
    parent = find_node(after, keys[:-1])
    if (len(parent.pairs) + len(parent.items) if parent is not None else 0) != left:
        return False
    wanted = without_key(root, keys)
    return bool(without_key(after, () if isinstance(keys[-1], int) else keys) == wanted)


def _cut_span(text: str, parent: Node, spans: Sequence[tuple[Node, Node]], number: int) -> str:
    first, last = spans[number]
    if not parent.plain:  # within brackets
        if number + 1 < len(spans):
            return text[: first.start] + text[spans[number + 1][0].start :]
        start = _content_end(*spans[number - 1]) if number else first.start
        return text[:start] + text[_content_end(first, last) :]
    end = _content_end(first, last)
    if not text[:end].endswith("\n"):  # a block of text ends behind its line
        end = text.find("\n", end) + 1 or len(text)
    start = text.rfind("\n", 0, first.start) + 1
    start += text.startswith("\ufeff", start)
    head = text[start : first.start]
    if head.strip() == ("-" if parent.kind == "list" else ""):
        return text[:start] + text[end:]
    if not _DASHES.fullmatch(head):
        return text  # in a place that nobody writes to; whoever calls refuses it
    if number + 1 < len(spans):
        return text[: first.start] + text[spans[number + 1][0].start :]
    newline = "\r\n" if text[:end].endswith("\r\n") else "\n"
    return text[: first.start] + "{}" + newline + text[end:]


def _content_end(first: Node, last: Node) -> int:
    """Where a pair or an item ends, without the comments behind it."""
    node = last
    while node.plain and (node.pairs or node.items):
        key, node = node.pairs[-1] if node.pairs else (node.items[-1], node.items[-1])
        first = key
    return max(node.end if not node.is_null or node.text else first.end + 1, first.end)
