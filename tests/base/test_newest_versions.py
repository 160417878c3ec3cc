"""Of few files the newest versions are kept, and of no file all that it ever was."""

from __future__ import annotations

from cleared.base.newest_versions import keep_newest


def test_only_the_newest_versions_of_few_files_are_kept() -> None:
    made: list[tuple[bytes | None, str]] = []
    befores: list[tuple[bytes | None, int] | None] = []

    @keep_newest(files=2, versions=2)
    def count(data: bytes | None, before: tuple[bytes | None, int] | None, name: str) -> int:
        made.append((data, name))
        befores.append(before)
        return len(made)

    assert [count(b"1", "a"), count(b"1", "a"), count(b"2", "a"), count(b"1", "a")] == [1, 1, 2, 1]
    assert [count(b"3", "a"), count(b"2", "a"), count(b"1", "a")] == [3, 2, 4]  # the oldest version had gone
    assert [count(b"1", "b"), count(b"1", "a")] == [5, 4]
    assert [count(None, "c"), count(b"1", "a"), count(b"1", "b")] == [6, 4, 7]  # so had the file asked for longest ago
    assert befores == [None, (b"1", 1), (b"2", 2), (b"3", 3), None, None, None], "with the one that was made last"


def test_of_files_that_others_followed_one_version_is_kept() -> None:
    made: list[bytes | None] = []

    @keep_newest(files=4, versions=3)
    def count(data: bytes | None, before: tuple[bytes | None, int] | None, name: str) -> int:
        made.append(data)
        return len(made)

    for name in "abc":
        assert [count(each, name) for each in (b"1", b"2", b"3")]
    made.clear()
    assert all(count(each, name) for name in "bc" for each in (b"1", b"2", b"3")) and made == [], "two change"
    assert count(b"3", "a") and made == [], "of the one before them there is the newest"
    assert count(b"1", "a") and made == [b"1"], "and no other"
