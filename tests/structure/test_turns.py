"""What a run of all tests leaves out comes later, and never a test of a checklist row."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from room_tests import TESTS
from turns import PROMISE_ROOMS, TURNS, find_rows, find_turn_tests

CHECKLIST = {"A": 20, "B": 32, "C": 10, "D": 24, "E": 32, "F": 42, "G": 28, "H": 22, "I": 14, "N": 11}
"""How many rows each part of the checklist has."""


class StandIn:
    """A test as pytest hands it over."""

    def __init__(self, name: str, case: int | None, is_slow: bool, function: Callable[..., None], room: str) -> None:
        self.originalname, self.is_slow, self.function = name, is_slow, function
        self.obj = function
        self.name = name if case is None else f"{name}[{case}]"
        self.nodeid = f"tests/{room}/test_any.py::{self.name}"

    def get_closest_marker(self, _: str) -> object:
        return self.is_slow or None


def plain(ws: object) -> None:
    """Nothing of a list: an ISO date, UTF-8, CARD 2."""


def of_a_row(ws: object) -> None:
    """Row B19: read exactly."""


def quick() -> None:
    """It needs nothing but its cases."""


SIZES = st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=12)
"""How many cases each test has, and whether it is slow."""


def make_tests(sizes: list[tuple[int, bool]], function: Callable[..., None], room: str = "cli") -> list[Any]:
    """All cases of these tests."""
    return [
        StandIn(f"test_{n}th", case if cases > 1 else None, is_slow, function, room)
        for n, (cases, is_slow) in enumerate(sizes)
        for case in range(cases)
    ]


@given(SIZES, st.sampled_from([plain, of_a_row, quick]))
def test_each_case_has_its_turn(sizes: list[tuple[int, bool]], function: Callable[..., None]) -> None:
    tests = make_tests(sizes, function)
    turns = [find_turn_tests(tests, turn) for turn in range(TURNS)]
    assert set().union(*turns) == set(tests)
    for chosen in turns:
        left_out = {t.originalname for t in tests} - {t.originalname for t in chosen}
        waiting = [t for t in tests if t.originalname in left_out]
        assert all(t.is_slow or t.name == t.originalname for t in waiting) and (function is not of_a_row or not waiting)
        if function is not quick:
            assert len(chosen) <= sum(-(-cases // TURNS) for cases, _ in sizes)


@given(SIZES, st.sampled_from(PROMISE_ROOMS), st.integers(0, TURNS - 1))
def test_what_guards_a_promise_runs_each_time(sizes: list[tuple[int, bool]], room: str, turn: int) -> None:
    tests = make_tests([(cases, False) for cases, _ in sizes], plain, room)
    assert {t.originalname for t in find_turn_tests(tests, turn)} == {t.originalname for t in tests}


@given(SIZES, st.integers(0, TURNS - 1))
def test_quick_cases_wait_for_no_turn(sizes: list[tuple[int, bool]], turn: int) -> None:
    tests = make_tests([(cases, False) for cases, _ in sizes], quick)
    assert find_turn_tests(tests, turn) == set(tests)


@pytest.mark.parametrize(
    ("name", "docstring", "rows"),
    [
        ("test_b1_and_b30_are", plain.__doc__, {"B1", "B30"}),
        ("test_any", of_a_row.__doc__, {"B19"}),
        ("test_the_b_side", None, set()),
    ],
)
def test_a_test_names_its_rows(name: str, docstring: str | None, rows: set[str]) -> None:
    assert find_rows(name, docstring) == rows


@pytest.mark.parametrize("room", PROMISE_ROOMS)
def test_what_guards_the_promises_is_never_slow(room: str) -> None:
    files = list((TESTS / room).rglob("test_*.py"))
    assert files and [path.name for path in files if "mark.slow" in path.read_text(encoding="utf-8")] == []


def test_each_row_of_the_checklist_has_a_test() -> None:
    named: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                named |= find_rows(node.name, ast.get_docstring(node))
    rows = [f"{part}{n}" for part, most in CHECKLIST.items() for n in range(1, most + 1)]
    assert [row for row in rows if row not in named] == []


def count_passed(*options: str) -> int:
    """How many tests of a file a run takes."""
    words = [sys.executable, "-m", "pytest", *options, "tests/base/test_safe_files.py"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = subprocess.run(words, cwd=TESTS.parent, capture_output=True, text=True, check=True, env=environment)
    assert ("had turn" in done.stdout) == ("--turn" in options and "--all" not in options)
    return int(re.findall(r"(\d+) passed", done.stdout)[0])


@pytest.mark.parametrize("processes", [[], ["-n", "2"]])
def test_what_is_named_is_run_whole_unless_a_turn_is_named_too(processes: list[str]) -> None:
    turn = ["--turn", "0", *processes]
    assert 0 < count_passed(*turn) < count_passed(*processes) == count_passed(*turn, "--all")
