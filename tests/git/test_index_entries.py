"""The index as it is written here is the one that git makes of the same orders."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from vcs_samples import Work, git, put

from cleared.git.index_entries import replace_entries

NAMES = ["a", "a-", "a.b", "a/b", "a/b/c", "é", "Z", " ", "long/" + "x" * 200, "books/1.csv", "books/2.csv"]
OIDS = {"sha1": 40, "sha256": 64}


def by_git(root: Path, index: Path, orders: dict[str, tuple[str, str] | None], size: int) -> None:
    lines = [f"0 {'0' * size}\t{path}" for path, entry in orders.items() if entry is None]
    lines += [f"{entry[0]} {entry[1]}\t{path}" for path, entry in orders.items() if entry is not None]
    subprocess.run(
        ["git", "update-index", "--replace", "-z", "--index-info"],
        input="".join(f"{line}\0" for line in lines).encode(),
        cwd=root,
        env=os.environ | {"GIT_INDEX_FILE": str(index)},
        check=True,
    )


def stages(root: Path, index: Path) -> str:
    return subprocess.run(
        ["git", "ls-files", "--stage", "--debug", "-t", "-z"],
        cwd=root,
        env=os.environ | {"GIT_INDEX_FILE": str(index)},
        check=True,
        capture_output=True,
    ).stdout.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("seed", range(12))
def test_the_same_entries_as_git(tmp_path: Path, seed: int) -> None:
    chance, hash_name = random.Random(seed), ("sha1", "sha256")[seed % 2]
    work = Work.make(tmp_path / "work", f"--object-format={hash_name}")
    if seed % 3 == 0:  # entries that take more room, and a merge that left conflicts
        put(work.root, "planned.txt", b"planned\n")
        work.git("add", "--intent-to-add", "planned.txt")
    if seed % 4 == 0:
        for branch, text in (("one", b"1\n"), ("two", b"2\n")):
            work.git("checkout", "-q", "-b", branch, "main")
            put(work.root, "other.txt", text)
            work.git("commit", "-q", "-m", branch, "other.txt")
        work.git("merge", "-q", "one", check=False)
    index, theirs = work.root / ".git/index", tmp_path / "theirs"
    shutil.copy(index, theirs)
    data: bytes | None = index.read_bytes()
    for _ in range(8):
        names = chance.sample([*NAMES, "other.txt", "config.yaml"], chance.randint(1, 5))
        chosen = [
            n for n in names if not any(o != n and (o.startswith(n + "/") or n.startswith(o + "/")) for o in names)
        ]
        orders = {
            name: None
            if chance.random() < 0.3
            else (chance.choice(["100644", "100755"]), f"{chance.getrandbits(150):0{OIDS[hash_name]}x}")
            for name in chosen
        }
        data = replace_entries(data, orders, hash_name)  # type: ignore[arg-type]
        assert data is not None
        by_git(work.root, theirs, orders, OIDS[hash_name])
        ours = tmp_path / "ours"
        ours.write_bytes(data)
        assert stages(work.root, ours) == stages(work.root, theirs)
    work.repo.close()


def test_a_first_index(work: Work, tmp_path: Path) -> None:
    data = replace_entries(None, {"a/b": ("100644", "1" * 40)}, "sha1")
    assert data is not None
    (tmp_path / "index").write_bytes(data)
    assert f"100644 {'1' * 40} 0\ta/b" in stages(work.root, tmp_path / "index")


@pytest.mark.parametrize("kind", ["version 4", "split", "untracked cache", "cut", "one byte", "other"])
def test_what_is_left_to_git(work: Work, kind: str) -> None:
    index = work.root / ".git/index"
    if kind == "version 4":
        work.git("update-index", "--index-version=4")
    elif kind == "split":
        work.git("update-index", "--split-index")
    elif kind == "untracked cache":
        work.git("update-index", "--force-untracked-cache")
        git(work.root, "status")
    data = index.read_bytes()
    data = {"cut": data[:-30], "one byte": data[:50] + b"!" + data[51:], "other": b"PACK" + data[4:]}.get(kind, data)
    assert replace_entries(data, {"a": ("100644", "1" * 40)}, "sha1") is None
    if kind in ("version 4", "split", "untracked cache"):  # and the commit is made with it all the same
        work.seal()
        assert work.status() == ""
