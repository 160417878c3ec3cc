"""Who can push, and writes commits and trees by hand as no git does: no reader of the history sees others than git.

Each attack books 7,777.00 against Member draws, or takes away what is booked, so that ``check`` would find
nothing in a fresh clone whose owner trusts all that the books show.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, chase, no_traceback, take_ok
from pushing import JOURNAL, MARKS, check, clone_afresh, ignore_states, put_draws

from cleared.changes.audit import commit_origins
from cleared.git import object_reader
from cleared.git.object_reader import TreeEntry

AUTHOR = b"author U <u@example.com> 1735600000 +0000"


def write_object(ws: Workspace, kind: str, data: bytes) -> str:
    argv = ["git", "hash-object", "-t", kind, "-w", "--stdin", "--literally"]
    return subprocess.run(argv, cwd=ws.root, input=data, capture_output=True, check=True).stdout.decode().strip()


def write_commit(
    ws: Workspace, tree: str, parent: str, *, header: bytes = b"", author: bytes = AUTHOR, message: bytes = b"notes\n"
) -> str:
    lines = [f"tree {tree}\nparent {parent}".encode(), author, AUTHOR.replace(b"author", b"committer")]
    return write_object(ws, "commit", b"\n".join([*lines, *([header] if header else [])]) + b"\n\n" + message)


def find_id(ws: Workspace, what: str) -> str:
    return ws.git("rev-parse", what).strip()


@pytest.fixture
def mallory(posted: Workspace, remote: Path, tmp_path: Path) -> Workspace:
    posted.in_order()
    posted.git("clone", "-q", str(remote), str(tmp_path / "mallory"))
    return Workspace(tmp_path / "mallory")


def push(ws: Workspace, commit: str, branch: str = "main") -> None:
    ws.git("push", "-q", "-f", "origin", f"{commit}:refs/heads/{branch}")


def as_any_tree(oid: str, kind: str, content: bytes) -> dict[str, TreeEntry]:
    """The entries of a tree, the last of each name."""
    entries, at = {}, 0
    while at < len(content):
        space, end = content.index(b" ", at), content.index(b"\0", at)
        entries[content[space + 1 : end].decode()] = TreeEntry(
            content[at:space].decode(), content[end + 1 : end + 21].hex()
        )
        at = end + 21
    return entries


@pytest.mark.parametrize("wall", [True, False])
def test_a_folder_that_stands_twice_in_a_commit_is_refused(
    remote: Path, mallory: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """``git log`` looks at the first and finds nothing changed, a checkout takes the last."""
    before = mallory.head()
    books = find_id(mallory, f"{put_draws(mallory, MARKS[0])}:books")
    tree = subprocess.run(
        ["git", "cat-file", "tree", f"{before}^{{tree}}"], cwd=mallory.root, capture_output=True, check=True
    ).stdout
    tree += b"40000 books\0" + bytes.fromhex(books)
    push(mallory, write_commit(mallory, write_object(mallory, "tree", tree), before))
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        assert "7777.00" in fresh.read(JOURNAL)
        if wall:
            for command in (("trust", "--yes"), ("status",), ("check",), ("journal", "list"), ("doctor",)):
                done = fresh(*command)
                no_traceback(done)
                assert done.code != 0 and "is not as git writes it: 'books' stands there twice" in done.out + done.err
        else:
            monkeypatch.setattr(object_reader, "_parse_tree", as_any_tree)
            ignore_states(monkeypatch)
            take_ok(fresh, "trust", "--yes")
            assert check(fresh) == [] and "7777.00" in fresh.ok("journal", "list").out


@pytest.mark.parametrize("wall", [True, False])
def test_a_parent_that_git_does_not_see_brings_nothing(
    remote: Path, mallory: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """Named after the author, as if a merge had it from a commit that is nowhere in the history."""
    before, side = mallory.head(), put_draws(mallory, MARKS[0])
    push(mallory, side, "other")
    made = write_commit(mallory, find_id(mallory, "HEAD^{tree}"), before, header=f"parent {side}".encode())
    push(mallory, made)
    if not wall:

        def read_all(repo: object, commit: str) -> list[str]:
            lines = mallory.git("cat-file", "commit", commit).split("\n")
            return [line[7:] for line in lines if line.startswith("parent ")]

        ignore_states(monkeypatch)
        for module in ("audit.provenance", "audit.commit_origins"):
            monkeypatch.setattr(f"cleared.changes.{module}.read_parents", read_all)
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        take_ok(fresh, "trust", "--yes")
        assert any(made[:10] in each for each in check(fresh)) is wall


@pytest.mark.parametrize("what", ["link", "folder that is a link", "submodule", "attestations elsewhere"])
def test_an_attested_commit_with_more_in_it_is_named(
    remote: Path, mallory: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A run's own commit, its message and its attestation, and what is no file or not read as one."""
    tip = mallory.head()
    if what == "link":
        (mallory.root / "books/2024/12").mkdir(parents=True)
        os.symlink("../../../notes/journal.csv", mallory.root / JOURNAL)
    elif what == "folder that is a link":
        os.symlink("../notes", mallory.root / "books/2024")
    elif what == "submodule":
        mallory.git("update-index", "--add", "--cacheinfo", f"160000,{tip},books/2024")
    else:
        mallory.put("books/bank/checking/attestations-2025-01.jsonl", "x\n")
    if what != "submodule":
        mallory.git("add", "-A", "books")
    mallory.git("commit", "-q", "--amend", "--no-edit")
    push(mallory, mallory.head())
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        take_ok(fresh, "trust", "--yes")
        assert any(mallory.head()[:10] in each for each in check(fresh))


@pytest.mark.parametrize("wall", [True, False])
def test_a_merge_that_calls_itself_a_run_loses_nothing(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    """With message, attestation and files of a run that was never merged, over what has been booked since."""
    posted.drop("march.csv", chase(("03/03/2025", "GITHUB *PRO", "-4.00")))
    posted.run("ingest")
    posted.git("push", "-q", "origin", "main")
    tree, since = find_id(posted, "elsewhere^{tree}"), posted.head()
    argv = ["git", "commit-tree", tree, "-p", find_id(posted, "elsewhere~1"), "-p", since, "-F", "-"]
    message = posted.git("log", "-1", "--format=%B", "elsewhere").encode()
    done = subprocess.run(
        argv, cwd=posted.root, input=message, capture_output=True, check=True, env=os.environ | IDENTITY
    )
    made = done.stdout.decode().strip()
    push(posted, made)
    if not wall:
        monkeypatch.setattr("cleared.changes.audit.provenance.read_parents", lambda repo, commit: [])
    with clone_afresh(remote, tmp_path, monkeypatch) as fresh:
        take_ok(fresh, "trust", "--yes")
        assert any(made[:10] in each and "lost" in each for each in check(fresh)) is wall


@pytest.mark.parametrize("wall", [True, False])
def test_what_a_shallow_clone_does_not_have_is_not_vouched_for(
    remote: Path, mallory: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wall: bool
) -> None:
    made = put_draws(mallory, MARKS[0])
    push(mallory, made)
    if not wall:
        monkeypatch.setattr(commit_origins.CommitOrigins, "find_origin", lambda *_: "ours")
        monkeypatch.setattr(commit_origins, "list_cut_commits", lambda _: frozenset())
        monkeypatch.setattr(commit_origins, "read_parents", lambda *_: [])
        ignore_states(monkeypatch)
    with clone_afresh(remote, tmp_path, monkeypatch, "--depth", "1") as fresh:
        take_ok(fresh, "trust", "--yes")
        found = check(fresh)
        assert [made[:7] in each and "this clone is shallow" in each for each in found] == ([True] if wall else [])
        if wall:
            fresh.git("fetch", "-q", "--unshallow")
            (named,) = check(fresh)
            assert made[:10] in named and "calls itself a run" in named


def test_a_shallow_clone_of_books_in_order_says_what_is_missing(
    posted: Workspace, remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last commit is a run of ours, whose parent is not there to be compared with."""
    with clone_afresh(remote, tmp_path, monkeypatch, "--depth", "1") as fresh:
        take_ok(fresh, "trust", "--yes")
        (named,) = check(fresh)
        assert posted.head()[:7] in named and "this clone is shallow" in named
        fresh.git("fetch", "-q", "--unshallow")
        fresh.in_order()


ODD = {
    "far future": (b"author U <u@example.com> 2147483648123 +0000", b"", b"notes\n"),
    "no time": (b"author U <u@example.com>", b"", b"notes\n"),
    "no author": (b"author", b"", b"notes\n"),
    "NUL in the author": (b"author U\0a\0b <u@example.com> 1 +0000", b"", b"notes\n"),
    "NUL in the message": (AUTHOR, b"", b"notes\0\n\nRun: x\n"),
    "another encoding": (AUTHOR, b"encoding UTF-16", "notes\n\nRun: x\n".encode("utf-16")),
    "an encoding that is none": (AUTHOR, b"encoding \xff\xfe", b"\xff\xfe\n"),
    "escapes": (b"author \x1b[2J\xe2\x80\xae <\x1b]0;x\x07> 1 +9999", b"", b"\x1b[2J\n"),
}


@pytest.mark.parametrize("what", ODD)
def test_an_odd_commit_is_named_and_breaks_nothing(posted: Workspace, mallory: Workspace, what: str) -> None:
    author, header, message = ODD[what]
    before = mallory.head()
    put_draws(mallory, MARKS[0])
    made = write_commit(mallory, find_id(mallory, "HEAD^{tree}"), before, header=header, author=author, message=message)
    push(mallory, made)
    posted.git("pull", "-q", "--ff-only", "origin", "main")
    assert any(made[:10] in each for each in check(posted))
    commands = ("status", "doctor", "queue list", "journal list", "run list", "why 2024-12-001", "log", "review --help")
    for command in (*commands, "accept HEAD --reason x", "journal void 2024-12-001 --reason x"):
        done = posted(*command.split())
        no_traceback(done)
        assert "\x1b" not in done.out + done.err
