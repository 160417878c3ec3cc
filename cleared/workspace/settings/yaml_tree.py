"""YAML as a tree with positions: the plain part of it only.

Built from the parser's events rather than by its composer, so that nesting is bounded before anything
recurses, and aliases, anchors and tags are seen (and refused) rather than resolved. Nothing is converted:
a scalar is its text, and what that means is decided by the key it stands at.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

MAX_DEPTH = 20


class Node(Struct, array_like=True):
    """``kind`` is ``scalar``, ``list`` or ``map``. Positions are 1-based lines and offsets in the text."""

    kind: str
    line: int
    column: int
    start: int
    end: int
    text: str = ""
    plain: bool = True
    """A scalar without quotes; a collection in block style (not ``{}`` or ``[]``)."""
    items: list[Node] = []
    pairs: list[tuple[Node, Node]] = []
    is_null: bool = False
    """Whether it is a scalar that says that there is no value."""


class TreeError(Exception):
    """The text is not YAML, or not the plain part of it. ``line`` is 1-based."""

    def __init__(self, message: str, line: int, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def parse_yaml(text: str) -> Node | None:
    """The root of a document, or None where it is empty. Raises ``TreeError``."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    _require_whole_characters(text)
    try:
        shift = int(text.startswith("\ufeff"))  # a byte order mark: it is no part of YAML, and all else keeps its place
        parser = loader(text[shift:])
        try:
            return _build_tree(parser.get_event, yaml, shift)
        finally:
            parser.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(part for part in (error.context, error.problem) if part)
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, None)
        if "maximum nesting depth" in problem:  # newer parsers have a bound of their own, far above ours
            raise TreeError(f"nested more than {MAX_DEPTH} deep", line, column) from None
        raise TreeError(f"not valid YAML: {problem}", line, column) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position if isinstance(error.position, int) else 0) + 1
        raise TreeError(f"not valid YAML: {error.reason}", line) from None


def _require_whole_characters(text: str, line: int | None = None) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1 if line is None else line
        raise TreeError("half a character (a lone surrogate)", line) from None


def _build_tree(next_event: Any, yaml: Any, shift: int) -> Node | None:
    root: Node | None = None
    stack: list[tuple[Node, Node | None]] = []  # the open collection, and its key that waits for a value
    documents = 0
    while True:
        event = next_event()
        kind = type(event)
        if kind is yaml.StreamEndEvent:
            return root
        line = event.start_mark.line + 1
        if kind is yaml.DocumentStartEvent:
            documents += 1
            if documents > 1:
                raise TreeError("a second document (---); only one is read", line)
            continue
        if kind in (yaml.StreamStartEvent, yaml.DocumentEndEvent):
            continue
        if kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
            stack.pop()[0].end = event.end_mark.index + shift
            continue
        if kind is yaml.AliasEvent:
            raise TreeError("aliases (*name) are not read; write the value out", line)
        if event.anchor is not None:
            raise TreeError("anchors (&name) are not read; write the value out", line)
        if event.tag is not None:
            raise TreeError(f"tags ({event.tag}) are not read; leave it out", line)
        start, end = event.start_mark, event.end_mark
        node = Node("scalar", line, start.column, start.index + shift, end.index + shift)
        if kind is yaml.ScalarEvent:
            node.text = event.value
            _require_whole_characters(node.text, line)
            node.plain = not event.style
            node.is_null = node.plain and node.text in ("", "~", "null", "Null", "NULL")
        else:
            node.kind = "map" if kind is yaml.MappingStartEvent else "list"
            node.plain = not event.flow_style
        if not stack:
            root = node
        else:
            top, key = stack[-1]
            if top.kind == "list":
                top.items.append(node)
            elif key is None:
                if node.kind != "scalar":
                    raise TreeError("a list or section cannot be a key", line)
                if node.plain and node.text == "<<":
                    raise TreeError("merge keys (<<) are not read; write the values out", line)
                stack[-1] = (top, node)
            else:
                top.pairs.append((key, node))
                stack[-1] = (top, None)
        if node.kind != "scalar":
            if len(stack) >= MAX_DEPTH:
                raise TreeError(f"nested more than {MAX_DEPTH} deep", line)
            stack.append((node, None))
