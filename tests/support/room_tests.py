"""Which test files guard a room: a package of the program, with all that is in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import cleared

PACKAGE = Path(cleared.__file__).parent
TESTS = Path(__file__).parents[1]


@cache
def list_room_tests(room: str) -> frozenset[Path]:
    """The test files in the folder that mirrors ``room`` (``books/ledger``), and those elsewhere that name one of its
    modules. Raises ``ValueError`` where the program has no such package or module."""
    room = room.strip("/").removeprefix("cleared/")
    if not room or not ((PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").is_file()):
        raise ValueError(f"there is no cleared/{room}; its rooms: {', '.join(list_rooms())}")
    *parents, name = room.split("/")
    named = re.compile(
        rf"\bcleared\.{re.escape(room.replace('/', '.'))}\b"
        rf"|from {re.escape('.'.join(['cleared', *parents]))} import [^\n]*\b{re.escape(name)}\b"
    )
    return frozenset(
        path
        for path in TESTS.rglob("test_*.py")
        if path.is_relative_to(TESTS / room) or named.search(_read_mentions(path))
    )


@cache
def _read_mentions(path: Path) -> str:
    """The lines of a file that speak of the program."""
    return "\n".join(line for line in path.read_text(encoding="utf-8").splitlines() if "cleared" in line)


def list_rooms() -> list[str]:
    """The packages of the program at its top, by name."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
