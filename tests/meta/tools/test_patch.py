"""H8: a patch applies exactly as it says, to all its files, or nothing is changed."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_session import Session

from cleared.meta.tools.unified_patch import PatchRefused, apply_patch

LINES = st.lists(st.sampled_from(["a", "b", "-- c", "++ d", "", " e", "@@ -1 +1 @@", "é\r"]), max_size=12)


def diff(old: str, new: str, path: str = "agents/x.py") -> str:
    """As ``diff -u`` writes it, with the marks for a missing newline."""
    rows = difflib.unified_diff(
        [line + "\n" for line in old.split("\n")[:-1]] + ([old.split("\n")[-1]] if old.split("\n")[-1] else []),
        [line + "\n" for line in new.split("\n")[:-1]] + ([new.split("\n")[-1]] if new.split("\n")[-1] else []),
        f"a/{path}",
        f"b/{path}",
    )
    return "".join(row if row.endswith("\n") else row + "\n\\ No newline at end of file\n" for row in rows)


@given(LINES, LINES, st.booleans(), st.booleans())
def test_the_difference_of_two_texts_makes_one_of_the_other(
    old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    a = "\n".join(old) + ("\n" if old_ends and old else "")
    b = "\n".join(new) + ("\n" if new_ends and new else "")
    patch = diff(a, b)
    if a == b:
        assert not patch
        return
    assert apply_patch(patch, lambda _: a) == {"agents/x.py": b}


@given(LINES, LINES, st.integers(1, 3))
def test_a_shifted_text_is_refused(old: list[str], new: list[str], by: int) -> None:
    """Row H8."""
    a, b = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    if a == b or not a:
        return
    with pytest.raises(PatchRefused):
        apply_patch(diff(a, b), lambda _: "shift\n" * by + a)


def test_several_files_change_together_or_not_at_all(session: Session) -> None:
    """Row H8."""
    session.ok("write_file", file_path="agents/a.py", content="one\ntwo\n")
    session.ok("write_file", file_path="agents/b.py", content="one\n")
    good = "--- a/agents/a.py\n+++ b/agents/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
    bad = "--- a/agents/b.py\n+++ b/agents/b.py\n@@ -1 +1 @@\n-other\n+three\n"
    before = session.overlay.files
    session.failed("apply_patch", "agents/b.py:1: the hunk at line 9 of the patch wants 'other", patch=good + bad)
    forbidden = "--- /dev/null\n+++ b/books/x.csv\n@@ -0,0 +1 @@\n+x\n"
    session.failed("apply_patch", "books/x.csv", patch=good + forbidden)
    assert session.overlay.files == before
    new = "--- /dev/null\n+++ b/rules/r.md\n@@ -0,0 +1 @@\n+Hello\n"
    gone = "--- a/agents/b.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    session.ok("apply_patch", patch=good + new + gone)
    assert session.overlay.files == {"agents/a.py": b"one\nthree\n", "agents/b.py": None, "rules/r.md": b"Hello\n"}


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("hello", "no part of a unified diff"),
        ("--- a/x\n", "+++ b/PATH must follow"),
        ("--- a/x\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "two files"),
        ("--- a/x\n+++ b/x\n", "no hunk"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n+b\n", "announces 1 old"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n+c\n", "more lines than its header"),
        ("--- a/x\n+++ b/x\n@@ -2 +2 @@\n-a\n+b\n", "wants 'a\\n', but there is 'b\\n'. Its old lines stand at line 1"),
        ("--- a/x\n+++ b/x\n@@ -9 +9 @@\n-a\n+b\n", "the file has 2 lines"),
        ("--- a/x\n+++ b/x\n@@ -1 +3 @@\n-a\n+b\n", "says +3"),
        ("--- a/x\n+++ b/x\n@@ -2 +2 @@\n-b\n+c\n@@ -1 +1 @@\n-a\n+d\n", "overlaps"),
        ("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+a\n", "it is there"),
        ("--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "would be left"),
        ("--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n", "no such file"),
        ("rename from x\nrename to y\n", "renaming"),
        ("new file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n", "not plain"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "twice"),
    ],
)
def test_what_is_wrong_with_a_patch_is_said_with_its_place(patch: str, why: str) -> None:
    with pytest.raises(PatchRefused) as refusal:
        apply_patch(patch, {"x": "a\nb\n"}.get)
    assert why in str(refusal.value)
