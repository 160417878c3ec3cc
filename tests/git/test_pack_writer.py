"""Packs as they are written here: git reads them, and so does the reader here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from harness import wait_for_packing
from hypothesis import given
from hypothesis import strategies as st
from vcs_samples import Work

from cleared.base.errors import WorkspaceError
from cleared.git import Author, Repository, pack_writer, start_packing_if_due
from cleared.git.commit import CommitHeader, commit_changes
from cleared.git.object_reader import HashName, hash_object
from cleared.git.object_writer import NewObjects
from cleared.git.pack_reader import PackReader
from cleared.git.side_branch import write_commit

CONTENTS = st.lists(st.binary(max_size=300) | st.integers(0, 70_000).map(bytes), min_size=1, max_size=20)


def write(folder: Path, contents: list[bytes], hash_name: HashName) -> tuple[Path, dict[str, bytes]]:
    objects = {hash_object(b"blob", content, hash_name): content for content in contents}
    (folder / "pack").mkdir(parents=True)
    with (folder / "pack/new").open("wb") as file:
        name, index = pack_writer.write_pack(file, {oid: (b"blob", data) for oid, data in objects.items()}, hash_name)
    pack = (folder / "pack/new").rename(folder / f"pack/pack-{name}.pack")
    pack.with_suffix(".idx").write_bytes(index)
    return pack, objects


@pytest.mark.parametrize("hash_name", ["sha1", "sha256"])
@given(contents=CONTENTS)
def test_git_and_the_reader_find_every_object(
    tmp_path_factory: pytest.TempPathFactory, hash_name: HashName, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("objects")
    pack, objects = write(folder, contents, hash_name)
    subprocess.run(
        ["git", "index-pack", "--verify", "--strict", f"--object-format={hash_name}", str(pack)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    reader = PackReader(str(folder))
    assert {oid: reader.read(oid, 1 << 20) for oid in objects} == {oid: ("blob", c) for oid, c in objects.items()}
    assert {reader.find_pack(oid) for oid in objects} == {pack.stem}
    assert reader.read(hash_object(b"tree", b"", hash_name), 1 << 20) is None
    reader.close()
    shutil.rmtree(folder)


def test_objects_beyond_two_gigabytes_have_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pack_writer, "_MOST_OFFSET", 100)
    pack, objects = write(tmp_path, [b"%d" % n * 40 for n in range(9)], "sha1")
    shown = subprocess.run(["git", "show-index"], input=pack.with_suffix(".idx").read_bytes(), capture_output=True)
    places = {line.split()[1]: int(line.split()[0]) for line in shown.stdout.decode().splitlines()}
    assert places.keys() == objects.keys()
    assert max(places.values()) > 100
    reader = PackReader(str(tmp_path))
    assert {oid: reader.read(oid, 1 << 20) for oid in objects} == {oid: ("blob", c) for oid, c in objects.items()}


def test_more_packs_than_are_opened_are_read_by_git(work: Work) -> None:
    """Where ``gc.auto=0`` says that nobody is to join them."""
    work.git("config", "gc.auto", "0")
    oids = []

    def add_packs(count: int) -> None:
        for _ in range(count):
            with NewObjects(work.repo) as objects:
                oids.append(objects.add_object("blob", b"%d" % len(oids)))
                objects.flush()

    add_packs(120)
    assert not start_packing_if_due(work.repo)
    with Repository.open(work.root, for_writing=False) as fresh:
        before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
        assert [fresh.objects.read_object(oid)[1] for oid in oids] == [b"%d" % number for number in range(120)]
        after = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    assert after - before < 100
    add_packs(80)
    assert start_packing_if_due(work.repo), "so many that each command is slow"
    wait_for_packing(work.root)
    assert len(list((work.root / ".git/objects/pack").glob("*.pack"))) == 1


def test_a_repack_that_had_begun_leaves_what_no_branch_names_yet(work: Work) -> None:
    with NewObjects(work.repo) as objects:
        oid = objects.add_object("blob", b"of a commit that is being made")
        objects.flush()
        work.git("repack", "-adq")
        work.git("gc", "-q", "--prune=now")
        assert work.git("cat-file", "-t", oid) == "blob\n"
    packs = work.root / ".git/objects/pack"
    assert not list(packs.glob("*.keep"))
    mine, old = packs / "pack-1.keep", packs / "pack-2.keep"
    mine.write_text("mine")
    old.write_bytes(b"cleared\n")
    for path in (mine, old):
        os.utime(path, (0, 0))
    start_packing_if_due(work.repo)
    assert [*packs.glob("*.keep")] == [mine]  # a killed commit had left the other


def test_a_commit_that_was_made_before_stays_until_a_branch_names_it(work: Work) -> None:
    """Whatever a person has git remove meanwhile; one that is gone all the same moves no branch."""
    who, when = Author("A", "a@b"), datetime(2025, 1, 1, tzinfo=UTC)
    made = write_commit(work.repo, [work.base], {"books/new.txt": b"new"}, who, when, "made")
    work.git("repack", "-adq")
    header = CommitHeader("made", (), who, when, made=made)
    assert commit_changes(work.repo, work.base, {"books/new.txt": b"new"}, header) == made
    assert work.git("fsck", "--strict") == ""
    lost = write_commit(work.repo, [made], {"books/lost.txt": b"lost"}, who, when, "lost")
    for keep in (work.root / ".git/objects/pack").glob("*.keep"):
        keep.unlink()
    work.git("repack", "-adq")
    with pytest.raises(WorkspaceError):
        commit_changes(work.repo, made, {"books/lost.txt": b"lost"}, CommitHeader("lost", (), who, when, made=lost))
    assert work.git("rev-parse", "HEAD").strip() == made
    assert work.git("status", "--porcelain") == ""
