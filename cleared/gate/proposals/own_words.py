"""What others wrote and a card shows whole, each text in a frame, below all that the program itself says: descriptions
of agents, texts for models, long settings, what tests expect."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import name_references, parse_header
from cleared.gate.candidate import Change
from cleared.gate.changed_code import MOST_PROSE, CodeLine, list_changed_text, quote_lines
from cleared.gate.changed_tests import compare_tests
from cleared.gate.examination import Report
from cleared.gate.framed_text import frame_text
from cleared.git import Snapshot
from cleared.workspace.settings.protected_settings import compare_all_settings

INSTRUCTIONS: Final = "templates/meta.md"
"""The workspace's own text for models, in the place of the program's."""
MOST_INLINE: Final = 60
"""A value that is longer stands in a frame of its own."""
_MOST_LINES: Final = 8
_LINE_CHARS: Final = 200


def list_own_words(change: Change, report: Report, host: Host, snapshot: Snapshot) -> Iterator[str]:
    """The texts of one file of a candidate, each below a sentence that says what it is. ``snapshot``: what it is
    compared with."""
    if change.kind == "config" and report.candidate.config is not None:
        for key, _, new in compare_all_settings(host.config, report.candidate.config):
            if is_long(new):
                yield from (f"The setting {key} becomes:", *frame_text(str(new)))
    elif change.kind == "text":
        gone = change.new is None
        yield from quote_all_prose(list_changed_text(change))
        yield _introduce_text(change.path, gone)
        yield from frame_text(change.old if gone else change.new)
    elif change.kind == "case":
        yield from _list_expectations(change, host, snapshot)
    elif change.kind == "agent":
        old, new = (_describe_agent(data, change.path) for data in (change.old, change.new))
        if new and old != new:
            yield from (f"{change.name} describes itself as:", *frame_text(new))


def _introduce_text(path: str, gone: bool) -> str:
    if path.endswith(".py"):
        return f"{'It was' if gone else 'It is'} a template for new agents, which nothing runs ({path}):"
    told = "Later sessions of a model are told this no more" if gone else "Every later session of a model is told this"
    instead = ", instead of all that the program itself tells models" if path == INSTRUCTIONS and not gone else ""
    return f"{told} by {path}{instead}:"


def quote_all_prose(lines: Sequence[CodeLine]) -> list[str]:
    """All lines of texts or comments that change, where the top of the card has not room for them."""
    quoted = quote_lines(lines, sys.maxsize)
    return ["All lines of comments or prose that change:", *quoted] if len(quoted) > MOST_PROSE else []


def is_long(value: object) -> bool:
    """Whether the value of a setting stands in a frame of its own."""
    return len(str(value)) > MOST_INLINE


def _describe_agent(data: bytes | None, path: str) -> str:
    header = parse_header(data.decode("utf-8", "replace"), path)[0] if data is not None else None
    return header.description if header is not None else ""


def _list_expectations(change: Change, host: Host, snapshot: Snapshot) -> Iterator[str]:
    """What a test expected and expects from then on, as far as the two differ."""
    names = name_references(host.layout, CommittedSource(snapshot))
    before, after = compare_tests(change, names)
    name = change.name.removesuffix(".json")
    if before:
        yield from (f"The test {name} expected:", *_frame_most(before))
    if after:
        yield from (f"The test {name} expects{' from then on' if change.old else ''}:", *_frame_most(after))


def _frame_most(lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:_MOST_LINES]:
        yield from frame_text(line[:_LINE_CHARS])
    if (more := len(lines) - _MOST_LINES) > 0:
        yield f"  … and {count_noun(more, 'more')}: cleared agent diff"
