"""Packed objects are read without a process, and just as git reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cleared.base.errors import WorkspaceError
from cleared.git import Repository
from cleared.git.object_reader import HashName


def git(root: Path, *args: str) -> bytes:
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    return subprocess.run(["git", *who, *args], cwd=root, check=True, capture_output=True).stdout


@pytest.fixture(params=["sha1", "sha256"])
def grown(request: pytest.FixtureRequest, tmp_path: Path, plain_environment: None) -> Path:
    """A repository in which files grow, lose their middle and are emptied, over thirty commits."""
    name: HashName = request.param
    Repository.init(tmp_path, hash_name=name).close()
    text = "".join(f"{n * 7919 % 1000} line {n}\n" for n in range(2_000))
    for n in range(30):
        (tmp_path / "log.csv").write_text(text[: 3_000 + 800 * n])
        (tmp_path / "other.csv").write_text(text[n * 100 :] + text[: n * 90])
        (tmp_path / "empty").write_text("" if n % 2 else "x")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", f"commit {n}")
    return tmp_path


@pytest.mark.parametrize("by_offset", ["true", "false"])
def test_every_object_is_read_as_git_reads_it(grown: Path, by_offset: str) -> None:
    git(grown, "-c", f"repack.useDeltaBaseOffset={by_offset}", "repack", "-adfq")
    oids = [line.split()[0].decode() for line in git(grown, "rev-list", "--objects", "--all").splitlines()]
    kinds = git(grown, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype) %(deltabase)")
    assert sum(not line.endswith(b" " + b"0" * len(oids[0])) for line in kinds.splitlines()) > 30
    with Repository.open(grown, for_writing=False) as repo:
        for oid, (kind, content) in zip(oids, repo.objects.read_objects(oids), strict=True):
            assert git(grown, "cat-file", kind, oid) == content if oid in oids[::23] else len(kind) > 3
            assert repo.objects.read_object(oid) == (kind, content)
        assert repo.objects._process is None


def test_packs_that_come_and_go_are_noticed(grown: Path) -> None:
    with Repository.open(grown, for_writing=False) as repo:
        head = repo.read_head()
        for options in ("-dq", "-adfq"):
            git(grown, "repack", options)
            repo.objects.forget_objects()
            assert repo.objects.read_object(head)[0] == "commit"
        assert repo.objects._process is None


def test_what_rots_in_a_pack_is_not_believed(grown: Path) -> None:
    git(grown, "repack", "-adfq")
    (pack,) = (grown / ".git/objects/pack").glob("*.pack")
    sound = pack.read_bytes()
    oids = git(grown, "rev-list", "--objects", "--all").decode().split()
    pack.chmod(0o644)
    for at in range(20, len(sound) - 40, len(sound) // 12):
        pack.write_bytes(sound[:at] + bytes([sound[at] ^ 255]) + sound[at + 1 :])
        with Repository.open(grown, for_writing=False) as repo:
            for oid in [oid for oid in oids if len(oid) >= 40][::40]:
                try:
                    kind, content = repo.objects.read_object(oid)
                except WorkspaceError:
                    continue
                pack.write_bytes(sound)
                assert git(grown, "cat-file", kind, oid) == content
                pack.write_bytes(sound[:at] + bytes([sound[at] ^ 255]) + sound[at + 1 :])


def test_of_many_packs_the_largest_are_read_here(grown: Path) -> None:
    git(grown, "repack", "-adfq")
    old = git(grown, "rev-list", "--objects", "--all").decode().split()[0]
    for path in (grown / ".git/objects/pack").iterdir():
        path.rename(path.with_stem("pack-" + "f" * len(old)))  # the last by name
    for n in range(50):  # as where one commit comes upon the other, and nobody joins their packs meanwhile
        oid = subprocess.run(
            ["git", "hash-object", "-w", "--stdin"], cwd=grown, check=True, capture_output=True, input=b"%d" % n
        ).stdout
        subprocess.run(
            ["git", "pack-objects", "-q", ".git/objects/pack/pack"],
            cwd=grown,
            check=True,
            capture_output=True,
            input=oid,
        )
    git(grown, "prune-packed")
    with Repository.open(grown, for_writing=False) as repo:
        assert repo.objects.find_pack(old) is not None
        assert repo.objects.read_object(old)[0] == "commit" and repo.objects._process is None
