"""What a branch of a program changes, as lines to read: ``git diff`` lets escapes hide text on a terminal."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cleared.base.errors import UsageError
from cleared.base.terminal import count_noun
from cleared.cards.card_section import CardSection
from cleared.changes.host import Host
from cleared.gate.program_changes import sort_change
from cleared.gate.proposals.shown_proposal import diff_texts
from cleared.review.branch_merge import BranchCommit, read_branch

MAX_SHOWN: Final = 256 << 10
"""Bytes of one file of which the text is shown; of a larger one the size and the digest."""

_MOST_LINES: Final = 400
_MOST_LETTERS: Final = 400
"""Of each line, on a page."""


def read_branch_sections(host: Host, details: Mapping[str, Any]) -> Iterator[CardSection]:
    """All files on the branch that a card's details name, then what changes in each; nothing where they name none.

    Whoever prints a line has it escaped.
    """
    if "branch" not in details:
        return
    with host.open_for_reading() as repo:
        try:
            found = read_branch(repo, details)
        except UsageError as error:
            yield CardSection("The branch", (f"It cannot be shown: {error.message}.",))
            return
        paths = found.changed
        lines = tuple(f"{_shown(path)}{_say_fate(host, path)}" for path in paths)
        yield CardSection(f"All of the branch, {count_noun(len(paths), 'file')}", lines)
        lines = tuple(line for path in paths for line in _describe_change(found, path))
        yield CardSection("What changes", lines, is_code=True)


def preview_branch(host: Host, details: Mapping[str, Any]) -> tuple[CardSection, ...]:
    """The same for a card on a page: the beginning of each part, and how to see the rest."""
    sections = []
    for section in read_branch_sections(host, details):
        lines = [line if len(line) <= _MOST_LETTERS else f"{line[:_MOST_LETTERS]} …" for line in section.lines]
        if (more := len(lines) - _MOST_LINES) > 0 or lines != [*section.lines]:
            rest = f"{count_noun(more, 'line')} more, " if more > 0 else ""
            lines = [*lines[:_MOST_LINES], f"… {rest}all of it: cleared queue show CARD"]
        sections.append(CardSection(section.title, tuple(lines), is_code=section.is_code))
    return tuple(sections)


def _say_fate(host: Host, path: str) -> str:
    return " (not merged: it takes a proposal that passes the gate)" if sort_change(host, path) == "proposable" else ""


def _shown(path: str) -> str:
    """A path of a tree may be no text."""
    return path.encode("utf-8", "backslashreplace").decode()


def _describe_change(found: BranchCommit, path: str) -> Iterator[str]:
    entries = found.before.get(path), found.after.get(path)
    modes = [entry[0] if entry is not None else "none" for entry in entries]
    if modes[0] != modes[1]:
        yield f"{_shown(path)}: mode {modes[0]} → {modes[1]}"
    if any(mode != "none" and not mode.startswith("100") for mode in modes):
        yield f"{_shown(path)}: no plain file"
        return
    old, new = (
        snapshot.read_file(path) if entry is not None else None
        for snapshot, entry in zip((found.base, found.new), entries, strict=True)
    )
    if all(_is_text(data) for data in (old, new)):
        yield from diff_texts(old, new, f"a/{_shown(path)}", f"b/{_shown(path)}").removesuffix("\n").split("\n")
    else:
        said = f"{len(new)} bytes, SHA-256 {hashlib.sha256(new).hexdigest()}" if new is not None else "removed"
        yield f"{_shown(path)}: no text, or too much of it to show: {said}"


def _is_text(data: bytes | None) -> bool:
    if data is None:
        return True
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(data) <= MAX_SHOWN and b"\0" not in data
