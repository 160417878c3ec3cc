"""The commands of everyday work name what is there, and a room's tests are found."""

from __future__ import annotations

import re

import pytest
from room_tests import PACKAGE, TESTS, list_room_tests, list_rooms

ROOT = TESTS.parent
_PATH = re.compile(r"(?<![\w./-])(?:tests|docs|bench|cleared|scripts|agents|\.ci)/[\w.*/-]*\w")


@pytest.mark.parametrize("name", ["justfile", "CONTRIBUTING.md"])
def test_each_path_is_there(name: str) -> None:
    paths = _PATH.findall((ROOT / name).read_text(encoding="utf-8"))
    assert len(paths) >= 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_page_has_the_lines_of_the_justfile() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = (ROOT / "justfile").read_text(encoding="utf-8").replace("{{python}}", ".venv/bin/python")
    lines = [line.strip().partition(" {{")[0] for line in text.splitlines() if line.startswith("    ")]
    assert [line for line in lines if not line.startswith("@") and line not in page] == []


@pytest.mark.parametrize(
    ("room", "inside", "elsewhere"),
    [
        ("books/ledger", "books/ledger/test_ledger_books.py", "crash/test_crash_steps.py"),
        ("review", "review/test_undo.py", "crash/test_crash_steps.py"),
        ("books/queries", "crash/test_crash_steps.py", ""),
    ],
)
def test_a_room_is_guarded_by_its_folder_and_by_who_imports_it(room: str, inside: str, elsewhere: str) -> None:
    found = {path.relative_to(TESTS).as_posix() for path in list_room_tests(room)}
    assert inside in found and "structure/test_structure.py" not in found
    assert (elsewhere in found) == (room != "books/ledger" and bool(elsewhere))


def test_each_package_at_the_top_is_a_room() -> None:
    rooms = list_rooms()
    assert {"books", "git", "trust"} <= set(rooms) and all((PACKAGE / room).is_dir() for room in rooms)
    assert [room for room in rooms if not list_room_tests(room)] == []


def test_a_room_that_is_none_names_those_that_are() -> None:
    with pytest.raises(ValueError, match=r"no cleared/ledger; its rooms: .*books"):
        list_room_tests("ledger")
