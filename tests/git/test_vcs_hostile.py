"""Hostile git settings run nothing and alter no byte: hooks, fsmonitor, gpgsign, autocrlf, attributes, filters."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from vcs_samples import CHANGES, Work, after, put

from cleared.base.errors import WorkspaceError
from cleared.git import Snapshot, find_differences, history, recover_interrupted_commit, start_packing_if_due
from cleared.git.object_writer import NewObjects

HOOKS = ["reference-transaction", "post-commit", "pre-commit", "commit-msg", "post-index-change", "post-checkout"]
HOOKS += ["prepare-commit-msg", "pre-auto-gc", "post-rewrite", "fsmonitor-watchman"]


@pytest.fixture(params=["repository", "global"])
def hostile(work: Work, tmp_path: Path, request: pytest.FixtureRequest) -> Work:
    marks = tmp_path / "marks"
    marks.mkdir()
    evil = tmp_path / "evil"
    evil.write_text(f'#!/bin/sh\necho ran >> "{marks}/$(basename "$0")"\nexit 1\n')
    evil.chmod(0o755)
    for hook in HOOKS:
        put(work.root, f".git/hooks/{hook}", evil.read_bytes())
        (work.root / f".git/hooks/{hook}").chmod(0o755)
    settings = {
        "core.fsmonitor": str(evil),
        "core.hooksPath": str(work.root / ".git/hooks"),
        "core.pager": str(evil),
        "core.editor": str(evil),
        "core.autocrlf": "true",
        "core.safecrlf": "true",
        "core.logAllRefUpdates": "false",
        "commit.gpgsign": "true",
        "tag.gpgsign": "true",
        "gpg.program": str(evil),
        "log.showSignature": "true",
        "color.ui": "always",
        "filter.evil.clean": str(evil),
        "filter.evil.smudge": str(evil),
        "filter.evil.required": "true",
        "diff.external": str(evil),
        "gc.auto": "1",
        "user.useConfigOnly": "true",
        "core.bigFileThreshold": "1",
        "log.date": "relative",
        "grep.patternType": "perl",
        "i18n.commitEncoding": "latin1",
        "i18n.logOutputEncoding": "latin1",
        "core.quotePath": "true",
        "log.follow": "true",
    }
    scope = ["--global"] if request.param == "global" else []
    for key, value in settings.items():
        work.git("config", *scope, key, value)
    put(work.root, ".git/info/attributes", b"* text eol=crlf\n* filter=evil diff=evil ident\n")
    work.marks = marks  # type: ignore[attr-defined]
    return work


def test_nothing_runs_and_nothing_is_altered(hostile: Work) -> None:
    before = hostile.files()
    odd = CHANGES | {"books/é.csv": b"a\r\nb\n$Id$\n\r", ".gitattributes": b"* text eol=crlf filter=evil\n"}
    commit = hostile.seal(odd)
    assert hostile.files() == after(before, odd)
    snapshot = Snapshot(hostile.repo, commit)
    for path, content in odd.items():
        assert snapshot.read_file(path) == content
    second = hostile.seal({"books/é.csv": b"x\r\n"}, message="Größe")
    assert recover_interrupted_commit(hostile.repo) is None
    start_packing_if_due(hostile.repo)
    assert find_differences(snapshot, hostile.root, ["books", "config.yaml"])[0].path == "books/é.csv"
    assert [c.subject for c in history.read_log(hostile.root, 2)] == ["Größe", "import: 1 transaction"]
    assert history.read_commit(hostile.root, "HEAD").files == ("books/é.csv",)
    assert [c.id for c in history.commits_touching(hostile.root, ["books/é.csv"])] == [second, commit]
    assert len(history.find_by_trailer(hostile.root, "Run", "r-1")) == 2
    assert hostile.git("cat-file", "commit", second).count("gpgsig") == 0
    assert list(hostile.marks.iterdir()) == []  # type: ignore[attr-defined]


def test_attributes_of_line_ends_leave_the_status_clean(work: Work) -> None:
    work.git("config", "core.autocrlf", "true")
    put(work.root, ".git/info/attributes", b"* text eol=crlf\n")
    work.seal({"books/lf.csv": b"a\nb\n"})
    assert (work.root / "books/lf.csv").read_bytes() == b"a\nb\n"
    # The base has a file of mixed line ends, which git itself now calls changed.
    assert "lf.csv" not in work.status()


ENTRY = b"100644 %s\0" + bytes(20)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"100600 " + b"40000 " * 200_000 + b"/x\0" + bytes(20), "40000 40000"),
        (b"".join(ENTRY % (b"%06d" % n) for n in range(30_000)) + ENTRY % b"000007", "'000007'"),
        (b"".join(ENTRY % (b"%06d" % n) for n in range(30_000)) + b"x", "''"),
        (ENTRY % b"b" + ENTRY % b"a", "'a'"),
        (ENTRY % b"a/b", "'a/b'"),
        (b"100644 cut\0" + bytes(19), "'cut'"),
    ],
)
def test_a_folder_that_git_would_not_write_is_refused_at_once(work: Work, content: bytes, named: str) -> None:
    """Whoever can push can push such a one; to look through it must not take hours."""
    with NewObjects(work.repo) as objects:
        oid = objects.add_object("tree", content)
        objects.flush()
    began = time.process_time()
    with pytest.raises(WorkspaceError, match="is not as git writes it") as refused:
        work.repo.objects.read_tree(oid)
    assert named in str(refused.value) and time.process_time() - began < 20
