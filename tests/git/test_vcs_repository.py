"""Opening a repository, and each reason not to (Bad input: no git, a merge, a detached HEAD)."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import wait_for_packing
from vcs_samples import Work, git, put

from cleared.base.errors import ExitCode, WorkspaceError
from cleared.git import Repository, Snapshot, blob_id, start_packing_if_due
from cleared.git.housekeeping import LOCK
from cleared.git.object_writer import NewObjects
from cleared.git.pack_reader import PackReader


def refusal(root: Path) -> str:
    with pytest.raises(WorkspaceError) as caught:
        Repository.open(root, for_writing=True)
    assert caught.value.exit_code == ExitCode.UNUSABLE
    assert "\n" not in str(caught.value)
    return str(caught.value)


def conflict(work: Work) -> None:
    work.git("checkout", "-q", "-b", "side")
    put(work.root, "other.txt", b"side\n")
    work.git("commit", "-q", "-am", "side")
    work.git("checkout", "-q", "main")
    put(work.root, "other.txt", b"main\n")
    work.git("commit", "-q", "-am", "main")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["merge", "side"], "a merge. Finish it (git merge --continue) or give it up (git merge --abort)"),
        (["rebase", "side"], "a rebase"),
        (["cherry-pick", "side"], "a cherry-pick"),
    ],
)
def test_unfinished(work: Work, command: list[str], said: str) -> None:
    conflict(work)
    work.git(*command, check=False)
    assert said in refusal(work.root)
    with Repository.open(work.root, for_writing=False) as reading:
        assert Snapshot(reading, reading.read_head()).read_file("config.yaml") is not None


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        ("git cherry-pick side", "git cherry-pick --skip"),
        ("echo newer > other.txt; git commit -qam newer; git revert --no-edit HEAD~1", "git revert --skip"),
        ("git format-patch -1 --stdout side | git am -q -3", "git am --skip"),
        ("git rebase -q --apply side", "git rebase --skip"),
        ("git rebase -q side", "git rebase --continue"),
        ("git merge -q side", "git merge --continue"),
    ],
)
def test_what_came_out_empty_is_ended_as_git_ends_it(work: Work, begin: str, told: str) -> None:
    """Fault: ``--continue`` was named, which git refuses where nothing is staged."""
    conflict(work)
    work.git("config", "user.name", "A")
    work.git("config", "user.email", "a@example.com")
    subprocess.run(["sh", "-c", begin], cwd=work.root, capture_output=True)
    work.git("checkout", "HEAD", "--", "other.txt")
    assert f"({told})" in refusal(work.root)
    subprocess.run(["sh", "-c", told], cwd=work.root, env={**os.environ, "GIT_EDITOR": "true"}, check=True)
    Repository.open(work.root, for_writing=True).close()


def test_revert(work: Work) -> None:
    put(work.root, "other.txt", b"two\n")
    work.git("commit", "-q", "-am", "two")
    put(work.root, "other.txt", b"three\n")
    work.git("commit", "-q", "-am", "three")
    work.git("revert", "HEAD~1", check=False)
    assert "a revert" in refusal(work.root)


def test_detached_and_bisecting(work: Work) -> None:
    put(work.root, "other.txt", b"two\n")
    work.git("commit", "-q", "-am", "two")
    work.git("checkout", "-q", work.base)
    assert "HEAD is detached" in refusal(work.root)
    with Repository.open(work.root, for_writing=False) as reading:
        assert reading.read_head() == work.base
        assert reading.branch.name == "HEAD"
    work.git("bisect", "start", "main", work.base)
    assert "git bisect reset" in refusal(work.root)


def test_other_refusals(work: Work, tmp_path: Path) -> None:
    assert "not a git repository" in refusal(make(tmp_path / "plain"))
    assert "not its top level" in refusal(work.root / "books")
    assert "its working tree" in refusal(work.root / ".git")
    assert "is not a directory" in refusal(tmp_path / "nowhere")
    git(tmp_path, "init", "-q", "--bare", "bare")
    assert "bare" in refusal(tmp_path / "bare")
    empty = make(tmp_path / "empty")
    git(empty, "init", "-q")
    assert "has no commit yet" in refusal(empty)
    with Repository.open(empty, for_writing=False) as reading:
        assert Snapshot(reading, reading.find_head()).list_entries() == {}
        with pytest.raises(WorkspaceError, match="no commit yet"):
            reading.read_head()
    work.git("sparse-checkout", "set", "books")
    assert "git sparse-checkout disable" in refusal(work.root)


def make(path: Path) -> Path:
    path.mkdir()
    return path


def test_no_git(work: Work, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert refusal(work.root).startswith("git is not installed. Install git")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_somebody_elses(work: Work) -> None:
    for path in (work.root, work.root / ".git"):
        os.chown(path, 65534, 65534)
    said = refusal(work.root)
    assert "belongs to another user" in said
    assert "git config --global --add safe.directory" in said


def test_inherited_variables_do_not_lead_elsewhere(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    with Work.make(other):
        for name, value in {
            "GIT_DIR": other / ".git",
            "GIT_WORK_TREE": other,
            "GIT_INDEX_FILE": other / ".git/index",
            "GIT_OBJECT_DIRECTORY": other / ".git/objects",
            "GIT_CONFIG_PARAMETERS": "'core.bare=true'",
        }.items():
            monkeypatch.setenv(name, str(value))
        with Repository.open(work.root, for_writing=True) as repo:
            work.repo = repo
            commit = work.seal()
        for name in [n for n in os.environ if n.startswith("GIT_")]:
            monkeypatch.delenv(name)
        assert work.git("rev-parse", "HEAD").strip() == commit
        assert work.status() == ""
        assert git(other, "status", "--porcelain") == ""


def test_linked_worktree_and_gitfile(work: Work, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    work.git("worktree", "add", "-q", "-b", "side", str(linked))
    moved = tmp_path / "moved.git"
    for root, move in ((linked, False), (work.root, True)):
        if move:
            shutil.move(root / ".git", moved)
            (root / ".git").write_text(f"gitdir: {moved}\n")
            git(root, "config", "core.worktree", str(root))
        with Repository.open(root, for_writing=True) as repo:
            other = Work(root, repo)
            commit = other.seal()
            assert other.git("rev-parse", "HEAD").strip() == commit
            assert other.status() == ""


def test_init(tmp_path: Path) -> None:
    """A14: works without a global git identity, and no template's hook gets in."""
    with Repository.init(make(tmp_path / "new"), branch="books") as repo:
        assert repo.branch.name == "refs/heads/books"
        assert not (repo.git_dir / "hooks").exists()
        with pytest.raises(WorkspaceError, match="already"):
            Repository.init(repo.root)


def test_head_from_packed_refs(work: Work) -> None:
    work.git("pack-refs", "--all")
    assert work.repo.read_head() == work.base
    commit = work.seal()
    work.git("pack-refs", "--all")
    assert work.repo.read_head() == commit


def test_missing_object_and_dead_reader(work: Work) -> None:
    with pytest.raises(WorkspaceError, match="missing from the repository"):
        work.repo.objects.read_object("0" * 40)
    assert work.repo.objects._process is not None
    work.repo.objects._process.kill()
    work.repo.objects._process.wait()
    assert work.repo.objects.read_object(work.base)[0] == "commit"


def test_loose_objects_are_read_without_a_process(work: Work) -> None:
    """But for a large one, and one that is cut off or another's: there git says what it says."""
    for name, content in {"large": b"0" * (5 << 20), "small": b"small", "cut": b"cut", "other": b"another's"}.items():
        put(work.root, name, content)
    work.git("add", ".")
    work.git("commit", "-qm", "by hand")
    with Repository.open(work.root, for_writing=False) as repo:
        snapshot = Snapshot(repo, repo.read_head())
        objects = repo.common_dir / "objects"
        places = {name: objects / oid[:2] / oid[2:] for name, (_, oid) in snapshot.list_entries().items()}
        assert snapshot.read_file("small") == b"small"
        assert list(snapshot.read_blobs([snapshot.find_blob_id("small") or ""])) == [b"small"]
        assert repo.objects._process is None
        assert snapshot.read_file("large") == b"0" * (5 << 20)
        assert repo.objects._process is not None
        for name, content in (("cut", places["cut"].read_bytes()[:-3]), ("other", places["small"].read_bytes())):
            places[name].chmod(0o644)
            places[name].write_bytes(content)
        for name in ("cut", "other"):
            told = subprocess.run(
                ["git", "cat-file", "blob", f"HEAD:{name}"], cwd=work.root, capture_output=True, check=False
            )
            if told.returncode == 0:
                assert snapshot.read_file(name) == told.stdout
            else:
                with pytest.raises(WorkspaceError):
                    snapshot.read_file(name)


def test_many_objects_are_read_together_as_one_by_one(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than a pipe holds; and where the reader dies in between, or one is missing."""
    monkeypatch.setattr(PackReader, "read", lambda *_: None)  # git reads them
    commit = work.seal({f"books/2025/{n:03d}.txt": b"%d\n" % n * 2_000 for n in range(300)})
    snapshot = Snapshot(work.repo, commit)
    found = snapshot.read_files("books/2025")
    assert found == {path: snapshot.read_file(path) for path in snapshot.list_entries("books/2025")}
    assert len(found) >= 300
    names = snapshot.list_folder("books/2025")
    assert {f"books/2025/{name}" for name, entry in names.items() if entry.is_file} <= found.keys()
    assert snapshot.list_folder("books/2025/000.txt") == snapshot.list_folder("nowhere") == {}
    oids = [entry.oid for entry in names.values() if entry.is_file]
    work.git("repack", "-adq")
    read = work.repo.objects.read_objects(oids)
    first = [next(read)]
    assert work.repo.objects._process is not None
    work.repo.objects._process.kill()
    assert [*first, *read] == [work.repo.objects.read_object(oid) for oid in oids]
    with pytest.raises(WorkspaceError, match="missing from the repository"):
        list(work.repo.objects.read_objects([oids[0], "0" * 40, oids[1]]))
    assert work.repo.objects.read_object(oids[1])[0] == "blob"


def test_replaced_commits_are_not_believed(work: Work) -> None:
    commit = work.seal()
    work.git("replace", commit, work.base)
    with Repository.open(work.root, for_writing=True) as fresh:
        assert Snapshot(fresh, commit).read_file("books/2025/03/journal.csv") == b"id,amount\n"


def test_git_is_imported_late() -> None:
    code = "import sys, cleared.git, cleared.git.history; sys.exit('git' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_readers_at_once(work: Work) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def read(n: int) -> bytes | None:
        return Snapshot(work.repo, work.base).read_file(paths[n % len(paths)])

    paths = sorted(Snapshot(work.repo, work.base).list_entries("books"))
    asked: Callable[[int], bytes | None] = read
    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(asked, range(400)))
    assert got == [(work.root / paths[n % len(paths)]).read_bytes() for n in range(400)]


def test_snapshot(work: Work) -> None:
    snapshot = Snapshot(work.repo, work.base)
    assert snapshot.read_file("books/2025/01/journal.csv") == (work.root / "books/2025/01/journal.csv").read_bytes()
    for nothing in ("books", "link", "nowhere", "config.yaml/x", "books/2025/01/journal.csv/", "../x", ""):
        assert snapshot.read_file(nothing) is None
    assert snapshot.find_blob_id("other.txt") == work.git("rev-parse", "HEAD:other.txt").strip()
    listed = {
        line.split("\t")[1]: (line.split()[0], line.split()[2])
        for line in work.git("ls-tree", "-r", "HEAD").splitlines()
    }
    assert snapshot.list_entries() == listed
    assert set(snapshot.list_entries("books/2025")) == {p for p in listed if p.startswith("books/2025/")}
    assert snapshot.list_entries("config.yaml") == {"config.yaml": listed["config.yaml"]}
    assert snapshot.list_entries("nowhere") == {}


def add_pack(work: Work, content: bytes) -> str:
    """A pack with one object; its id."""
    with NewObjects(work.repo) as objects:
        oid = objects.add_object("blob", content)
        objects.flush()
    return oid


def test_of_very_many_folders_some_are_remembered(work: Work) -> None:
    """A check of the whole history reads several of each commit."""
    with NewObjects(work.repo) as objects:
        folders = [
            objects.add_object("tree", b"".join(b"100644 %06d\0" % n + at.to_bytes(20, "big") for n in range(2_000)))
            for at in range(120)
        ]
        objects.flush()
    reader = work.repo.objects
    for at, oid in enumerate([*folders, folders[0]]):
        entries = reader.read_tree(oid)
        assert len(entries) == 2_000 and entries["000007"].oid == f"{at % 120:040x}"
        assert sum(map(len, reader._trees.values())) == reader._tree_entries <= 200_000
    assert reader.read_tree(folders[0]) is entries, "what was read last is at hand"


def test_few_large_packs_are_joined_once_they_outweigh_the_largest(work: Work) -> None:
    noise = random.Random(1)
    work.git("gc", "-q")
    add_pack(work, noise.randbytes(400_000))
    assert not start_packing_if_due(work.repo), "one large one, and a small one"
    add_pack(work, noise.randbytes(400_000))
    assert not start_packing_if_due(work.repo), "0.4 MB beside the largest"
    add_pack(work, noise.randbytes(900_000))
    assert not start_packing_if_due(work.repo), "0.8 MB beside one of 0.9"
    add_pack(work, noise.randbytes(400_000))
    assert start_packing_if_due(work.repo), "1.2 MB"
    wait_for_packing(work.root)
    (work.root / ".git/objects/pack/large.pack").write_bytes(bytes(8 << 20))
    (work.root / ".git" / LOCK).unlink()
    assert not start_packing_if_due(work.repo), "2.1 MB beside one of 8"


def test_housekeeping(work: Work) -> None:
    packs = work.root / ".git/objects/pack"
    texts = [b"%d" % number for number in range(24)]
    while len(list(packs.glob("*.pack"))) < 24:
        assert not start_packing_if_due(work.repo)
        add_pack(work, texts[len(list(packs.glob("*.pack")))])
    loose = work.git("hash-object", "-w", "config.yaml").strip()
    work.git("config", "gc.auto", "0")
    assert not start_packing_if_due(work.repo)
    work.git("config", "gc.auto", "1")
    assert start_packing_if_due(work.repo)
    wait_for_packing(work.root)
    assert len(list(packs.glob("*.pack"))) == 1
    assert not (work.root / ".git/objects" / loose[:2]).exists()
    assert all(work.git("cat-file", "-t", blob_id(text, "sha1")) == "blob\n" for text in texts[1:])
    assert Snapshot(work.repo, work.base).read_file("config.yaml") is not None


def test_packing_pauses_unless_packs_come_faster_than_it_takes_them(work: Work) -> None:
    packs = work.root / ".git/objects/pack"

    def add_packs(most: int) -> None:
        while len(list(packs.glob("*.pack"))) < most:
            add_pack(work, random.randbytes(20))

    add_packs(24)
    assert start_packing_if_due(work.repo)
    wait_for_packing(work.root)
    (work.root / ".git" / LOCK).touch()  # it began just now, however slow the machine is
    add_packs(47)
    assert not start_packing_if_due(work.repo)
    add_packs(48)
    assert start_packing_if_due(work.repo)
    wait_for_packing(work.root)
