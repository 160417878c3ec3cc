"""One commit with exactly the draft's paths, and a working tree that agrees with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from datetime import datetime
from pathlib import Path

import pytest
from vcs_samples import AUTHOR, BASE, CHANGES, WHEN, Work, after, git, put

from cleared.base.errors import CheckFailed, UsageError, WorkspaceError
from cleared.git import (
    STEPS,
    Author,
    CommitHeader,
    GitBusy,
    HeadMoved,
    LocalMove,
    Repository,
    Snapshot,
    Unfinished,
    commit_changes,
    recover_interrupted_commit,
)


def test_one_commit(work: Work) -> None:
    before = work.files()
    steps: list[str] = []
    commit = work.seal(on_step=steps.append)
    assert work.git("rev-parse", "HEAD", "HEAD~1").split() == [commit, work.base]
    assert work.files() == after(before, CHANGES)
    assert work.status() == ""
    assert work.git("fsck", "--strict") == ""
    assert list(dict.fromkeys(steps)) == list(STEPS)
    assert steps.count("file") == 3
    assert work.left_over() == []
    assert not (work.root / "queue/only").exists()
    assert work.git("log", "-1", "--format=%an <%ae> %aI|%cn|%B").strip() == (
        "Ann Lee <ann@example.com> 2025-02-01T06:00:00+00:00|Ann Lee|import: 1 transaction\n\nRun: r-1\nEvent: e-1"
    )
    assert "cleared: import: 1 transaction" in work.git("reflog")
    assert "run.sh" in work.git("ls-tree", "HEAD")
    assert work.git("ls-tree", "HEAD", "run.sh", "link").split()[::4] == ["120000", "100755"]
    assert recover_interrupted_commit(work.repo) is None


def test_the_user_keeps_what_he_staged_and_changed(work: Work) -> None:
    """D12"""
    put(work.root, "staged.txt", b"staged\n")
    put(work.root, "other.txt", b"staged too\n")
    work.git("add", "staged.txt", "other.txt")
    put(work.root, "other.txt", b"and changed again\n")
    put(work.root, "config.yaml", b"changed: true\n")
    put(work.root, "books/new.txt", b"untracked\n")
    work.git("rm", "-q", "--cached", "run.sh")
    before = work.status()
    staged = work.git("diff", "--cached")
    work.seal()
    assert work.status() == before
    assert work.git("diff", "--cached") == staged
    assert (work.root / "other.txt").read_bytes() == b"and changed again\n"


def test_a_change_within_the_clock_tick_of_the_index_is_not_lost(work: Work) -> None:
    for n in range(20):
        work.git("add", "other.txt")
        put(work.root, "other.txt", b"ab%02d\n" % n)
        work.git("add", "other.txt")
        put(work.root, "other.txt", b"cd%02d\n" % n)
        work.seal({"books/x": b"%d" % n})
        assert "MM other.txt" in work.status() or "AM other.txt" in work.status()


def test_nothing_to_commit(work: Work) -> None:
    with pytest.raises(ValueError, match="nothing"):
        work.seal({"other.txt": BASE["other.txt"], "nowhere": None, "books": None})
    assert work.repo.read_head() == work.base


def test_first_commit(tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with Repository.init(tmp_path / "new") as repo:
        put(repo.root, "a", b"a")
        commit = commit_changes(repo, None, {"a": b"a", "b/c": b"c"}, CommitHeader("first", [], AUTHOR, WHEN))
        assert git(repo.root, "rev-list", "HEAD").split() == [commit]
        assert git(repo.root, "status", "--porcelain") == "?? .cleared/\n" or not git(
            repo.root, "status", "--porcelain"
        )
        with pytest.raises(HeadMoved):
            commit_changes(repo, None, {"a": b"b"}, CommitHeader("again", [], AUTHOR, WHEN))


def test_sha256(tmp_path: Path) -> None:
    with Work.make(tmp_path / "w", "--object-format=sha256") as work:
        before = work.files()
        commit = work.seal()
        assert len(commit) == 64
        assert work.git("rev-parse", "HEAD").strip() == commit
        assert work.git("fsck", "--strict") == work.status() == ""
        assert work.files() == after(before, CHANGES)


@pytest.mark.parametrize(
    "name",
    [
        "books/Größe – 会計 🧾.csv",
        "books/ leading and trailing ",
        'books/quote"back\\slash',
        "books/new\nline\ttab",
        "books/*?[a].csv",
        "-rf",
        ":(top)x",
        "books/\udcff\udcfe.csv",
        "books/.gitx/y",
        "x" * 200,
    ],
)
def test_odd_names(work: Work, name: str) -> None:
    commit = work.seal({name: b"odd"})
    assert Snapshot(work.repo, commit).read_file(name) == b"odd"
    assert work.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0").count(name) == 1
    assert work.status() == ""
    work.seal({name: None})
    assert work.status() == ""


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../x",
        "a/../x",
        "a//b",
        "a/",
        "./a",
        ".git/config",
        "a/.GIT/hooks/x",
        "GIT~1/x",
        "a\0b",
        ".git /x",
        ".g\u200cit/x",
        ".git:x/y",
        "\ud800",
    ],
)
def test_names_that_lead_out(work: Work, name: str) -> None:
    before = work.files()
    with pytest.raises(WorkspaceError, match="not a path that can be committed"):
        work.seal({name: b"x"})
    assert (work.files(), work.repo.read_head()) == (before, work.base)


def test_obstacles_are_found_before_the_commit(work: Work, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (work.root / "way").symlink_to(outside)
    (work.root / "here").symlink_to(outside / "file")
    put(work.root, "untracked.csv", b"the user's\n")
    put(work.root, "config.yaml", b"edited: by hand\n")
    (work.root / "other.txt").unlink()
    (work.root / "folder").mkdir()
    for path, why in {
        "way/x.csv": r"symbolic link\. Take it away: rm way ",
        "here": r"symbolic link\. Move it out of the way: mv here here\.aside\. Then",
        "link": r"symbolic link there\. Look who put it there \(git log -- link\)\. Take it away: git rm -r -- link",
        "untracked.csv": r"in the way.*mv untracked\.csv untracked\.csv\.aside",
        "untracked.csv/x": r"is not a folder\. Move it out of the way: mv untracked\.csv untracked\.csv\.aside",
        "config.yaml": "differs from the last commit",
        "other.txt": "git checkout HEAD -- other",
        "folder": "a folder",
        "books": "a folder",
        "books/2025/02/journal.csv/x": "not a folder",
    }.items():
        before = work.files()
        with pytest.raises(WorkspaceError, match=why):
            work.seal({path: b"new\n", "books/2025/02/journal.csv": b"n"} if "journal" not in path else {path: b""})
        assert (work.files(), work.repo.read_head()) == (before, work.base)
        assert work.left_over() == []
    assert list(outside.iterdir()) == []


def test_a_file_makes_place_for_a_folder(work: Work) -> None:
    work.seal({"other.txt": None, "other.txt/a": b"a", "other.txt/b/c": b"c"})
    assert work.status() == ""
    assert (work.root / "other.txt/b/c").read_bytes() == b"c"
    with pytest.raises(WorkspaceError):
        work.seal({"other.txt": b"back", "other.txt/a": None, "other.txt/b/c": None})
    assert work.status() == ""


def test_top_folders_stay(work: Work) -> None:
    work.seal({"queue/only/card.yaml": None})
    assert (work.root / "queue").is_dir()
    assert work.git("ls-tree", "HEAD", "queue") == ""


def test_a_folder_that_a_commit_empties_and_fills_again(work: Work) -> None:
    """Its last file goes, and another comes."""
    work.seal({"queue/only/card.yaml": None, "queue/only/other.yaml": b"new\n"})
    assert (work.root / "queue/only/other.yaml").read_bytes() == b"new\n" and work.status() == ""


def test_permissions_of_files_stay(work: Work) -> None:
    (work.root / "config.yaml").chmod(0o600)
    work.seal({"config.yaml": b"x: 1\n", "run.sh": b"#!/bin/sh\ntrue\n"})
    assert (work.root / "config.yaml").stat().st_mode & 0o777 == 0o600
    assert (work.root / "run.sh").stat().st_mode & 0o111
    assert work.git("ls-tree", "HEAD", "run.sh").startswith("100755")


def test_head_moved(work: Work) -> None:
    """If HEAD moved meanwhile, nothing is changed: before, and at the last moment."""

    def other() -> None:
        put(work.root, "other.txt", b"meanwhile\n")
        work.git("commit", "-q", "-am", "meanwhile")

    def at(step: str) -> None:
        if step == "staged":
            other()

    with pytest.raises(HeadMoved) as caught:
        work.seal(on_step=at)
    assert caught.value.exit_code == 5
    head = work.git("rev-parse", "HEAD").strip()
    assert work.git("log", "-1", "--format=%s").strip() == "meanwhile"
    assert (work.status(), work.left_over()) == ("", [])
    with pytest.raises(HeadMoved):
        work.seal(base=work.base)
    assert work.repo.read_head() == head
    assert work.seal() == work.git("rev-parse", "HEAD").strip()


def test_what_a_person_writes_at_the_last_moment_is_not_written_over(work: Work) -> None:
    """After the first look at the working tree, and before the branch moves."""
    path = "books/2025/01/journal.csv"

    def at(step: str) -> None:
        if step == "prepared":
            put(work.root, path, b"by hand\n")

    with pytest.raises(WorkspaceError, match=path):
        work.seal(on_step=at)
    assert work.git("rev-parse", "HEAD").strip() == work.base
    assert (work.root / path).read_bytes() == b"by hand\n"
    assert (work.status().split(), work.left_over()) == (["M", path], [])


def test_a_merge_that_begins_at_the_last_moment_is_not_committed_into(work: Work) -> None:
    """It would end with the files that it found, and take the commit's back."""

    def at(step: str) -> None:
        if step == "prepared":
            (work.root / ".git/MERGE_HEAD").write_text(f"{work.base}\n")

    with pytest.raises(HeadMoved, match="in the middle of a merge"):
        work.seal(on_step=at)
    (work.root / ".git/MERGE_HEAD").unlink()
    assert work.git("rev-parse", "HEAD").strip() == work.base
    assert (work.status(), work.left_over()) == ("", [])


def test_another_branch_checked_out_meanwhile(work: Work) -> None:
    def at(step: str) -> None:
        if step == "staged":
            work.git("checkout", "-q", "-b", "side")

    with pytest.raises(HeadMoved):
        work.seal(on_step=at)
    assert work.git("rev-parse", "main", "side").split() == [work.base] * 2
    assert (work.status(), work.left_over()) == ("", [])


def test_the_last_moment_check(work: Work) -> None:
    before = work.files()

    def verify() -> None:
        assert work.git("rev-parse", "HEAD").strip() == work.base
        # Nobody can move the branch while this looks.
        assert "lock" in work.git("commit", "--allow-empty", "-m", "x", check=False)
        raise CheckFailed("the journal changed since it was read")

    with pytest.raises(CheckFailed):
        work.seal(verify=verify)
    assert (work.files(), work.repo.read_head(), work.status(), work.left_over()) == (before, work.base, "", [])
    assert not (work.root / "books/2025/03").exists()


def test_ctrl_c_before_the_commit(work: Work) -> None:
    before = work.files()

    def verify() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work.seal(verify=verify)
    assert (work.files(), work.repo.read_head(), work.left_over()) == (before, work.base, [])


@pytest.mark.parametrize("content", [b"", b"DIRC\0\0\0\2"])
def test_a_lock_of_another_git(work: Work, content: bytes) -> None:
    """Fault 19: it is never removed; waited for, then refused with its age and what to do, and nothing is changed."""
    before, index = work.files(), (work.root / ".git/index").read_bytes()
    lock = work.root / ".git/index.lock"
    lock.write_bytes(content)
    os.utime(lock, (lock.stat().st_atime, lock.stat().st_mtime - 7_300))
    with pytest.raises(GitBusy, match=r"for 2 hours.*remove .*index\.lock") as caught:
        work.seal(wait_seconds=0.3)
    assert caught.value.exit_code == 5
    assert (work.files(), work.repo.read_head(), lock.read_bytes()) == (before, work.base, content)
    assert (work.root / ".git/index").read_bytes() == index
    lock.unlink()
    assert work.left_over() == []
    threading.Timer(0.2, lock.unlink).start()
    lock.write_bytes(content)
    work.seal(wait_seconds=60)
    assert work.status() == ""


@pytest.mark.parametrize("state", ["corrupt", "missing"])
def test_the_index_cannot_stop_a_seal(work: Work, state: str) -> None:
    index = work.root / ".git/index"
    if state == "corrupt":
        index.write_bytes(b"DIRC" + b"\xff" * 50)
    else:
        index.unlink()
    first = work.seal()
    second = work.seal({"books/2025/02/journal.csv": b"more\n"})
    assert work.git("rev-list", "-2", "HEAD").split() == [second, first]
    assert (work.root / ".git/index.damaged").exists() == (state == "corrupt")
    assert work.status() == ""
    assert recover_interrupted_commit(work.repo) is None
    assert not (work.root / ".cleared/seal.json").exists()


def test_a_held_ref_lock(work: Work) -> None:
    before = work.files()
    (work.root / ".git/refs/heads/main.lock").write_bytes(b"")
    with pytest.raises(GitBusy, match=r"nothing was changed: .*lock") as caught:
        work.seal()
    assert not isinstance(caught.value, HeadMoved)
    assert (work.files(), work.repo.read_head(), work.status()) == (before, work.base, "")
    (work.root / ".git/refs/heads/main.lock").unlink()
    assert work.left_over() == []


def test_moving_a_file_that_git_does_not_hold(work: Work) -> None:
    put(work.root, "import/chase.csv", b"rows\n")
    put(work.root, "import/local.csv", b"secret\n")
    work.git("add", "-A")
    work.git("reset", "-q")
    moves = [
        LocalMove("import/chase.csv", None, b"rows\n"),
        LocalMove("import/local.csv", "import/processed/local.csv", b"secret\n"),
    ]
    work.seal({"import/processed/chase.csv": b"rows\n"}, moves=moves)
    assert sorted(p.name for p in (work.root / "import").rglob("*.csv")) == ["chase.csv", "local.csv"]
    assert work.status() == "?? import/processed/local.csv\n"
    put(work.root, "import/more.csv", b"changed since\n")
    with pytest.raises(WorkspaceError, match="changed since it was read"):
        work.seal({"books/x": b"x"}, moves=[LocalMove("import/more.csv", None, b"rows\n")])
    with pytest.raises(WorkspaceError, match="there already"):
        work.seal(
            {"books/x": b"x"},
            moves=[LocalMove("import/more.csv", "import/processed/local.csv", b"changed since\n")],
        )
    assert (work.root / "import/more.csv").exists()


def test_messages_and_authors(work: Work) -> None:
    odd = Author("Eve\n<x@y>\0 parent 0000\x1b[31m \udcff", "e<v>e\n@x y")
    commit = commit_changes(
        work.repo,
        work.base,
        {"a": b"a"},
        CommitHeader("one \u202e\u2066\u200bx\r\n\x1b[2Jtwo \udcff\n\nRun: forged\n\n", [("Run", "r")], odd, WHEN),
    )
    assert work.git("fsck", "--strict") == ""
    assert work.git("log", "-1", "--format=%P|%an|%ae").strip() == (f"{work.base}|Eve x@y parent 0000 [31m ?|eve@xy")
    assert work.git("log", "-1", "--format=%(trailers:key=Run,valueonly)", commit).strip() == "r"
    kept = work.git("cat-file", "commit", commit)
    assert not {"\x1b", "\u202e", "\u2066", "\u200b"} & set(kept) and "one \ufffd\ufffd\ufffdx" in kept
    for message, trailers in [
        ("a\0b", [("Run", "r")]),
        (" \n ", [("Run", "r")]),
        ("a\n\nRun: forged", []),
        ("a", [("Run", "x\nEvent: forged")]),
        ("a", [("Run: x", "y")]),
        ("a", [("Run", "")]),
    ]:
        with pytest.raises(UsageError):
            work.seal({"b": b"b"}, message=message, trailers=trailers)
    with pytest.raises(UsageError):
        commit_changes(work.repo, commit, {"b": b"b"}, CommitHeader("m", [], AUTHOR, datetime(2025, 1, 1)))  # no offset
    with pytest.raises(UsageError):
        commit_changes(work.repo, commit, {"b": b"b"}, CommitHeader("m", [], AUTHOR, WHEN.replace(year=1960)))
    assert work.repo.read_head() == commit
    assert work.left_over() == []


FULL = """
import resource, signal, sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from vcs_samples import Work
from cleared.base.errors import WorkspaceError
from cleared.git import Repository, Unfinished
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if {nobody}:
    import os
    import cleared.git.recovery
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
work = Work(Path({root!r}), Repository.open(Path({root!r}), for_writing=True))
def at(step):
    if step == {step!r}:
        resource.setrlimit(resource.RLIMIT_FSIZE, ({room}, {room}))
if {step!r} == "start":
    at("start")
try:
    work.seal({{"books/big.csv": bytes(range(256)) * 4000, "other.txt": None, "books/2025/03/j": b"x"}}, on_step=at)
except Unfinished as error:
    print("unfinished", error)
except WorkspaceError as error:
    print("refused", error)
"""


@pytest.mark.parametrize(
    ("step", "room"),
    [("start", 0), ("start", 100), ("start", 20_000), ("objects", 0), ("intent", 100), ("staged", 0), ("verified", 0)],
)
def test_full_disk(work: Work, step: str, room: int) -> None:
    """A disk that takes no more: a clear refusal and nothing changed, or all of it."""
    before = work.files()
    code = FULL.format(tests=str(Path(__file__).parent), root=str(work.root), step=step, room=room, nobody=False)
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused")
    assert "nothing was changed" in done.stdout
    assert (work.files(), work.repo.read_head(), work.status()) == (before, work.base, "")
    work.repo.close()
    recover_interrupted_commit(work.repo)
    assert work.left_over() == []
    assert not (work.root / "books/2025/03").exists()


@pytest.mark.parametrize("step", ["ref", "file", "worktree"])
def test_full_disk_after_the_commit(work: Work, step: str) -> None:
    code = FULL.format(tests=str(Path(__file__).parent), root=str(work.root), step=step, room=0, nobody=False)
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    # Files and index were written before; what is left needs no room.
    assert work.repo.read_head() != work.base
    recover_interrupted_commit(work.repo)
    assert (work.status(), work.left_over()) == ("", [])


def test_a_folder_in_the_way_after_the_commit(work: Work) -> None:
    """What cannot be written any more is told with the commit's id, and made good by the next command."""

    def at(step: str) -> None:
        if step == "ref":
            (work.root / "books").rename(work.root / "away")
            put(work.root, "books", b"")

    with pytest.raises(Unfinished, match="committed as"):
        work.seal({"books/2025/02/journal.csv": b"new\n"}, on_step=at)
    (work.root / "books").unlink()
    (work.root / "away").rename(work.root / "books")
    assert "Finished" in str(recover_interrupted_commit(work.repo))
    assert (work.status(), work.left_over()) == ("", [])


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX rights")
def test_read_only_folder() -> None:
    """As somebody for whom rights count (root is asked to be nobody)."""
    root = Path(tempfile.mkdtemp(dir="/tmp")) / "work"
    nobody = os.geteuid() == 0
    try:
        with Work.make(root):
            pass
        if nobody:
            root.parent.chmod(0o755)
            for path in (root, *root.rglob("*")):
                os.chown(path, 65534, 65534, follow_symlinks=False)
        code = FULL.format(tests=str(Path(__file__).parent), root=str(root), step="", room=0, nobody=nobody)
        env = os.environ | {"HOME": str(root.parent)}
        for folder, said in {
            "books": "read-only",
            ".git/objects/pack": "Permission",
            ".git/refs/heads": "main.lock",
        }.items():
            (root / folder).chmod(0o555)
            command = [sys.executable, "-c", code]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
            assert done.returncode == 0, done.stderr
            assert done.stdout.startswith("refused")
            assert said in done.stdout
            assert "nothing was changed" in done.stdout
            (root / folder).chmod(0o755)
    finally:
        shutil.rmtree(root.parent)


def test_state_folder_must_be_real(work: Work, tmp_path: Path) -> None:
    (work.root / ".cleared").symlink_to(tmp_path)
    with pytest.raises(WorkspaceError, match="symbolic link"):
        work.seal()


def test_ctrl_c_in_the_terminal_does_not_reach_git(work: Work) -> None:
    with pytest.raises(WorkspaceError, match="missing"):
        work.repo.objects.read_object("0" * 40)
    assert work.repo.objects._process is not None
    assert os.getpgid(work.repo.objects._process.pid) != os.getpgrp()
