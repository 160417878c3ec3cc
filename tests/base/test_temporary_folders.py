"""Folders for a while: gone with their user, also with one that was killed; nothing else is ever removed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleared.base.temporary_folders import open_temporary_folder

USE = """
import sys
from cleared.base.temporary_folders import open_temporary_folder
with open_temporary_folder("test") as folder:
    (folder / "bank.csv").write_text("secret")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that use a folder each, with a system's folder of their own."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    started: list[subprocess.Popen[str]] = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


def start_user(users: list[subprocess.Popen[str]]) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", USE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    users.append(process)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_ones_own_and_goes_whatever_is_in_it(users: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    with open_temporary_folder("test") as folder:
        assert folder.parent == tmp_path and folder.stat().st_mode & 0o777 == 0o700
        (folder / "closed").mkdir()
        (folder / "closed/file").write_text("x")
        (folder / "closed").chmod(0)
    assert not folder.exists()
    with pytest.raises(ValueError, match="a fault"), open_temporary_folder("test") as folder:
        raise ValueError("a fault")
    assert not folder.exists()


def test_what_a_killed_process_left_is_removed_by_the_next_one(
    users: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    (dead, left), (_, used) = start_user(users), start_user(users)
    dead.kill()
    dead.wait()
    assert (left / "bank.csv").read_text() == "secret"
    _, third = start_user(users)
    assert not left.exists() and (used / "bank.csv").exists() and third.exists()


@pytest.mark.parametrize("what", ["a link", "a file", "of somebody else", "another name"])
def test_nothing_else_is_taken_for_one(users: list[subprocess.Popen[str]], tmp_path: Path, what: str) -> None:
    other = tmp_path / ("cleared-demo-x" if what == "another name" else "cleared-temporary-test-x")
    if what == "a link":
        (tmp_path / "books").mkdir()
        other.symlink_to(tmp_path / "books")
    elif what == "a file":
        other.write_text("mine")
    else:
        other.mkdir()
    if what == "of somebody else":
        if os.getuid():
            pytest.skip("only root may give a folder away")
        os.chown(other, 12345, 12345)
    start_user(users)
    assert other.exists()
