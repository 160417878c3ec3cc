"""Which tests a run of all leaves out this time: most of what is slow, and most cases of a test that has many.

Cases of one test mostly show the same, and what is marked ``slow`` (browsers, fleets, kills, engines) takes more than
all else together. So these take turns: what is left out now runs with another commit. ``--all`` leaves nothing out, and
neither does a run that names what it wants. A test of a checklist row runs each time, with a case at least; so does a
quick one in a room that guards a promise. Of the other quick tests with one case every second runs. All cases run that
need no workspace, nor anything else that is made for them: they take no time.
"""

from __future__ import annotations

import inspect
import re
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import pytest

TURNS = 8
PROMISE_ROOMS = ("attacks", "books/importing", "books/ledger", "escape", "gate", "git", "trust")
"""Folders of tests that say that the books are never wrong, and that nothing unapproved acts."""
_ROW = re.compile(r"\b[A-N][1-9]\d?\b")
_ROW_IN_NAME = re.compile(r"_[a-nA-N][1-9]\d?(?=_|$)")


def choose_turn(root: Path) -> int:
    """The turn of the commit in ``root``, by its id: somebody else's run of it leaves out the same. 0 without git."""
    words = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    return int(done.stdout, 16) % TURNS if done.returncode == 0 else 0


def find_rows(name: str, docstring: str | None) -> set[str]:
    """The checklist rows that a test function names itself: what its file says of all is not enough."""
    return {*_ROW.findall(docstring or ""), *(each[1:].upper() for each in _ROW_IN_NAME.findall(name))}


def _needs_fixtures(test: pytest.Item) -> bool:
    """Whether something is made for the test, beside what its cases say."""
    params = test.callspec.params if hasattr(test, "callspec") else {}
    return bool(inspect.signature(test.function).parameters.keys() - params.keys())


def find_turn_tests(tests: Sequence[pytest.Item], turn: int) -> set[pytest.Item]:
    """The tests that run in ``turn``, of 0 to ``TURNS`` - 1. In ``TURNS`` turns each one does."""
    by_function: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for test in tests:
        by_function[test.nodeid.partition("[")[0]].append(test)
    chosen: set[pytest.Item] = set()
    for name, cases in by_function.items():
        rank = crc32(name.encode()) + turn  # not all tests begin with their first case, nor are slow ones slow at once
        is_of_row = find_rows(cases[0].name.partition("[")[0], getattr(cases[0].obj, "__doc__", None))
        if cases[0].get_closest_marker("slow") is not None and not is_of_row:
            chosen.update(cases[rank % TURNS :: TURNS])
        elif _needs_fixtures(cases[0]):
            guards = is_of_row or name.startswith(tuple(f"tests/{room}/" for room in PROMISE_ROOMS))
            chosen.update(cases[rank % min(TURNS, len(cases) if guards else max(2, len(cases))) :: TURNS])
        else:
            chosen.update(cases)
    return chosen
