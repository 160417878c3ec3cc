"""What an attestation says of a commit's changes: the lines that files lose and gain, and in which order."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cleared.changes.change_digests import _describe_change

TEXTS = st.lists(st.sampled_from(["a", "ab", "b", "", "a,b", "c\r"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)
DISTINCT = st.lists(st.integers(0, 30), unique=True, max_size=12)


def describe(old: list[int], new: list[int]) -> object:
    return _describe_change(*("".join(f"{line}\n" for line in lines).encode() for lines in (old, new)))


@given(TEXTS, TEXTS)
def test_lines_that_only_one_text_has(old: str, new: str) -> None:
    lines = [Counter(text.encode().splitlines()) for text in (old, new)]
    lost, gained = ([x.decode() for x in each.elements()] for each in (lines[0] - lines[1], lines[1] - lines[0]))
    hunks = _describe_change(old.encode(), new.encode())
    if not any(len(place) == 1 and len(place[0]) == 64 for _, _, place in hunks):  # else a line was moved
        found = [Counter(line for hunk in hunks for line in hunk[side]) for side in (0, 1)]
        assert found == [Counter(lost), Counter(gained)]


@given(DISTINCT, DISTINCT, st.randoms())
def test_each_order_has_a_description_of_its_own(old: list[int], new: list[int], chance: random.Random) -> None:
    other = [*new]
    chance.shuffle(other)
    assert (describe(old, new) == describe(old, other)) == (new == other)


@given(DISTINCT, st.lists(st.integers(31, 40), unique=True), st.lists(st.integers(41, 50), unique=True))
def test_what_others_have_added_meanwhile_makes_no_difference(
    old: list[int], mine: list[int], theirs: list[int]
) -> None:
    """As after a rebase: the end is still the end, and a line in place of another is still in its place."""
    changed = [line if number != 1 else 99 for number, line in enumerate(old)]
    if len(old) > 2 or not theirs:
        assert describe(old, changed + mine) == describe(old + theirs, changed + theirs + mine)
