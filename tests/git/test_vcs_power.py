"""Fault 22: a commit that was reported survives a power cut, and what a power cut leaves of others is said with a
remedy that works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from vcs_samples import Work

from cleared.base.errors import WorkspaceError
from cleared.git import Repository
from cleared.git.refs import remembered_ref

CHILD = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from vcs_samples import Work
from cleared.git import Repository
work = Work(Path({root!r}), Repository.open(Path({root!r}), for_writing=True))
work.seal()
"""
_RENAMES = {"rename", "renameat", "renameat2"}


def traced(work: Work, log: Path) -> list[tuple[str, list[str]]]:
    """What a seal, and every git that it starts, asks of the file system, in order: call and paths."""
    code = CHILD.format(tests=str(Path(__file__).parent), root=str(work.root))
    calls = "trace=fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat"
    done = subprocess.run(
        ["strace", "-f", "-y", "-s", "500", "-e", calls, "-o", str(log), sys.executable, "-c", code],
        capture_output=True,
        check=False,
    )
    if done.returncode and b"ptrace" in done.stderr.lower():
        pytest.skip("nothing can be traced here")
    assert done.returncode == 0, done.stderr
    found = []
    half: dict[str, str] = {}
    for line in log.read_text().splitlines():
        pid, _, text = line.partition(" ")
        if text.rstrip().endswith("<unfinished ...>"):
            half[pid] = text.rstrip().removesuffix("<unfinished ...>").rstrip()
            continue
        if "resumed>" in text:
            text = half.pop(pid, "") + text.partition("resumed>")[2]
        match = re.match(r"\s*(\w+)\((.*)\)\s+= 0", text)
        if match:
            places = re.findall(r'<([^>]*)>|"([^"]*)"', match[2])
            found.append((match[1], [a or b for a, b in places if a or b]))
    return found


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_is_durable_before_what(work: Work, tmp_path: Path) -> None:
    calls = traced(work, tmp_path / "log")

    def synced(path: str, before: int, after: int = -1) -> bool:
        return any(
            call in ("fsync", "fdatasync") and paths[0].endswith(path) for call, paths in calls[after + 1 : before]
        )

    moved = {
        str(Path(paths[-1])).split("/work/", 1)[-1]: (n, paths[-2] if len(paths) == 2 else paths[-3])
        for n, (call, paths) in enumerate(calls)
        if call in _RENAMES and ".git/logs" not in paths[-1]
    }
    ref, lock = next((n, old) for new, (n, old) in moved.items() if new.endswith(".git/refs/heads/main"))
    removed = next(n for n, (call, p) in enumerate(calls) if call.startswith("unlink") and p[-1].endswith("seal.json"))
    objects = {new: place for new, place in moved.items() if "objects/" in new}
    assert [Path(new).suffix for new in objects] == [".pack", ".idx"]  # git looks for packs by their indexes
    for new, (n, old) in objects.items():  # contents before names, names before the branch
        assert synced(Path(old).name, n), old
        assert synced(str(Path(new).parent)[-11:], ref, n), new
    assert synced(Path(lock).name, ref)
    assert synced(".git/refs/heads", removed, ref)
    assert synced(".git/logs/refs/heads/main", removed, ref)
    index, private = next((n, old) for new, (n, old) in moved.items() if new.endswith(".git/index"))
    assert synced("/".join(private.split("/")[-2:]), index)
    assert index < ref
    staged = {new: place for new, place in moved.items() if new.startswith("books/")}
    assert len(staged) == 2
    for new, (n, old) in staged.items():
        assert synced(Path(old).name, n) and n > ref, new
        assert synced(str(Path(new).parent), removed, n), new
    intent = next(n for new, (n, _) in moved.items() if new.endswith("seal.json"))
    assert synced(".cleared", ref, intent)


@pytest.mark.parametrize("content", [b"", b"\0" * 41])
@pytest.mark.parametrize("sealed_last", [True, False])
def test_an_empty_branch(work: Work, content: bytes, sealed_last: bool) -> None:
    """The advice is followed to the letter, and then all is as before; what packed refs have is not believed."""
    work.git("pack-refs", "--all")
    work.seal()
    if not sealed_last:
        work.git("commit", "-q", "--allow-empty", "-m", "mine")
    head = work.git("rev-parse", "HEAD").strip()
    (work.root / ".git/refs/heads/main").write_bytes(content)
    for writing in (True, False):
        with pytest.raises(WorkspaceError) as caught, Repository.open(work.root, for_writing=writing) as repo:
            repo.read_head()
    assert "power cut" in str(caught.value)
    said = re.search(r"Put it back: (.*?)\. Then", str(caught.value))
    assert said is not None
    subprocess.run(said[1], shell=True, check=True, cwd=work.root)
    assert work.git("rev-parse", "HEAD").strip() == head
    assert work.git("status", "--porcelain") == ""
    assert work.git("fsck", "--strict") == ""


def test_an_empty_branch_without_any_memory(work: Work) -> None:
    (work.root / ".git/refs/heads/main").write_bytes(b"")
    shutil.rmtree(work.root / ".git/logs")
    with pytest.raises(WorkspaceError, match="backup"):
        work.repo.read_head()


def test_what_is_remembered_is_empty(work: Work) -> None:
    """Git would not move the branch together with it."""
    work.seal()
    ref = work.root / ".git" / remembered_ref("refs/heads/main")
    ref.write_bytes(b"")
    commit = work.seal({"books/x": b"x"})
    assert ref.read_text().strip() == commit
