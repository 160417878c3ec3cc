"""Any sequence of change sets gives the trees that ``git add`` and ``git commit`` give."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vcs_samples import AUTHOR, WHEN, git, put

from cleared.git import CommitHeader, Repository, Snapshot, commit_changes, find_differences

#: Chosen so that git's order of files and folders ("a", "a-", "a/", "a.b") matters.
NAMES = st.sampled_from(["a", "a-", "a.b", "a0", "b", "é", "Z", " "])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.one_of(st.none(), st.binary(max_size=8), st.just(b"\r\n"))
CHANGE_SETS = st.lists(st.dictionaries(PATHS, CONTENTS, min_size=1, max_size=6), min_size=1, max_size=5)


def possible(
    state: dict[str, bytes], changes: dict[str, bytes | None], top_folders: set[str]
) -> dict[str, bytes | None]:
    """The part of ``changes`` that a file system can hold, and that makes no folder into a file. Those at the top stay
    when they are empty."""
    chosen: dict[str, bytes | None] = {}
    for path, content in changes.items():
        if content is not None:
            now = {p for p in {**state, **chosen} if chosen.get(p, b"") is not None} | set(state)
            folders = {p[:at] for p in now for at, c in enumerate(p) if c == "/"}
            parents = {path[:at] for at, c in enumerate(path) if c == "/"}
            if path in folders | top_folders or parents & now:
                continue
            top_folders |= {parent for parent in parents if "/" not in parent}
        chosen[path] = content
    return chosen


@given(CHANGE_SETS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_same_trees_as_git(change_sets: list[dict[str, bytes | None]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours"), Path(folder, "theirs")
        for root in (ours, theirs):
            root.mkdir()
            git(root, "init", "-q", "-b", "main")
            put(root, ".gitignore", b"/.cleared/\n")
            git(root, "add", "-A")
            git(root, "commit", "-q", "-m", "base")
        state: dict[str, bytes] = {}
        top_folders: set[str] = set()
        with Repository.open(ours, for_writing=True) as repo:
            for wanted in change_sets:
                changes = possible(state, wanted, top_folders)
                if {p: state.get(p) for p in changes} == changes:
                    continue
                commit_changes(repo, repo.read_head(), changes, CommitHeader("m", [], AUTHOR, WHEN))
                for path, content in changes.items():
                    if content is None:
                        (theirs / path).unlink(missing_ok=True) if path in state else None
                        state.pop(path, None)
                    else:
                        put(theirs, path, content)
                        state[path] = content
                git(theirs, "add", "-A")
                git(theirs, "commit", "-q", "-m", "m")
                assert git(ours, "rev-parse", "HEAD^{tree}") == git(theirs, "rev-parse", "HEAD^{tree}")
            assert git(ours, "status", "--porcelain") == ""
            assert git(ours, "fsck", "--strict", "--no-dangling") == ""
            now = Snapshot(repo, repo.read_head())
            assert {p: now.read_file(p) for p in now.list_entries() if p != ".gitignore"} == state
            assert [d for d in find_differences(now, ours, [""]) if not d.path.startswith(".cleared")] == []
