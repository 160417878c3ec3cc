"""How a test differs from the approved one: what it expected and expects, in words; and what else of it is another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from cleared.base.short_text import join_words
from cleared.domains.installed_domains import load_comparisons
from cleared.gate.candidate import Change
from cleared.gate.impact import Names, describe_sides
from cleared.gate.regression_tests import OTHER_EFFECTS, RegressionTest, describe_effect, diff_records, parse_test

_PARTS: Final = {
    "agent": "another agent",
    "now": "another time",
    "inputs": "other files",
    "books": "other books",
    "event": "another event",
    "answers": "other answers of models",
}
"""What a test is replayed with → what is said where that changes: it may expect the same then, and guard another
thing."""


def describe_test_change(change: Change) -> str:
    """One sentence of what becomes of a test."""
    name = change.name.removesuffix(".json")
    if change.old is None:
        return f"The test {name} is new."
    if change.new is None:
        return f"The test {name} is removed: what it guards is guarded no more."
    old, new = (_read_test(data, change.path) for data in (change.old, change.new))
    if old is None or new is None:
        return f"The test {name} is changed, and its approved text is not there to compare it with."
    found = ["expects something else"] if old.expected != new.expected else []
    if parts := [words for part, words in _PARTS.items() if getattr(old, part) != getattr(new, part)]:
        found.append(f"is replayed with {join_words(parts)}")
    return f"The test {name} is changed: it {join_words(found) or 'says something else of itself'}."


def compare_tests(change: Change, names: Names) -> tuple[list[str], list[str]]:
    """What a test expected and expects no more, and what it expects from then on, one line each. ``names``: of what
    records may be about."""
    read = [_read_test(data, change.path) for data in (change.old, change.new)]
    old, new = (test.expected if test is not None else {} for test in read)
    whys = [[f"why: {test.why}"] if test is not None and test.why else [] for test in read]
    try:
        before, after = _compare_expected(old, new, names)
        return (before, after) if whys[0] == whys[1] else (whys[0] + before, whys[1] + after)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError):  # a file that nobody's program wrote
        return [], []


def _compare_expected(old: Mapping[str, Any], new: Mapping[str, Any], names: Names) -> tuple[list[str], list[str]]:
    before: list[str] = []
    after: list[str] = []
    for entry in diff_records(old, new, names):
        heading = " ".join(filter(None, (str(entry[key])[:60] for key in ("date", "description", "amount"))))
        for lines, words in zip((before, after), describe_sides(entry), strict=True):
            lines += [f"{heading}: {words}"] if words else []
    was, becomes = (Counter(_list_others(each, names)) for each in (old, new))
    return [*before, *(was - becomes).elements()], [*after, *(becomes - was).elements()]


def _list_others(expected: Mapping[str, Any], names: Names) -> list[str]:
    """What is expected beside records: cards, events, lines, files; and what corrected records should be."""
    found = []
    for key in OTHER_EFFECTS:
        value, one = expected.get(key, ()), key.removesuffix("s")
        if isinstance(value, Mapping):
            found += [f"bank line {line}: {outcome}" for line, outcome in value.items()]
        else:
            found += [f"{one}: {describe_effect(each)}" for each in value]
    for name, comparison in load_comparisons().items():
        if comparison.correction_key in expected:
            found += comparison.describe_correction(expected[comparison.correction_key], names.get(name, {}))
    return found


def _read_test(data: bytes | None, path: str) -> RegressionTest | None:
    try:
        return parse_test(data or b"", path)
    except ValueError:
        return None
