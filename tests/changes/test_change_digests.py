"""What an attestation says of a commit's changes: the lines that files lose and gain, wherever they stand."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from cleared.changes.change_digests import _compare_lines

TEXTS = st.lists(st.sampled_from(["a", "ab", "b", "", "a,b", "c\r"]), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)


@given(TEXTS, TEXTS)
def test_lines_that_only_one_text_has(old: str, new: str) -> None:
    lines = [Counter(text.encode().splitlines()) for text in (old, new)]
    lost, gained = (sorted(x.decode() for x in each.elements()) for each in (lines[0] - lines[1], lines[1] - lines[0]))
    assert _compare_lines(old.encode(), new.encode()) == (lost, gained)
