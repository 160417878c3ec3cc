"""Files are written whole or not at all, and read only if they are files and stand still."""

import os
import socket
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleared.base.errors import WorkspaceError
from cleared.base.safe_files import read_stable, write_atomic, write_parts


@given(st.binary(max_size=3000))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "a" / "b" / "file.csv"
    write_atomic(path, data, fsync=False)
    assert read_stable(path, 3000)[0] == data
    assert [p.name for p in path.parent.iterdir()] == ["file.csv"]


def test_permissions_are_kept_and_links_replaced_not_followed(tmp_path: Path) -> None:
    path, other = tmp_path / "f", tmp_path / "other"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_atomic(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o640
    other.write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(other)
    write_atomic(tmp_path / "link", b"mine")
    assert other.read_bytes() == b"theirs"


def test_a_write_that_fails_leaves_the_old_content_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_atomic(path, b"old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(WorkspaceError, match="the disk is full"):
        write_atomic(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("links", [True, False])
def test_parts_take_no_name_that_is_taken_and_leave_nothing_when_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    """Also where the file system knows no links."""

    def refuse_link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not links:
        monkeypatch.setattr(os, "link", refuse_link)
    path = tmp_path / "f"
    with pytest.raises(KeyboardInterrupt), write_parts(path, replace=False) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with write_parts(path, replace=False) as file:
        file.write(b"whole")
    with pytest.raises(WorkspaceError, match="could not be written"), write_parts(path, replace=False) as file:
        file.write(b"other")
    assert path.read_bytes() == b"whole" and list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_way_is_an_error_in_words(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(WorkspaceError, match="could not be written"):
        write_atomic(tmp_path / "x" / "y", b"")


def test_what_is_not_a_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "target").write_bytes(b"secret")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # a socket's path may not be long
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
    for name, kind in (("link", "symbolic link"), ("pipe", "named pipe"), (".", "directory"), ("socket", "a socket")):
        with pytest.raises(WorkspaceError, match=kind):
            read_stable(tmp_path / name, 10)
    with pytest.raises(WorkspaceError, match="a device"):
        read_stable(Path("/dev/zero"), 10)
    with pytest.raises(WorkspaceError, match="no such file"):
        read_stable(tmp_path / "none", 10)


def test_the_bound_is_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: takes no room, and would take for ever to read
    with pytest.raises(WorkspaceError, match="1,099,511,627,776 bytes; at most 64 are read"):
        read_stable(path, 64, shown="import/huge")


def test_a_file_that_grows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"x" * 4_000_000)
    stop = threading.Event()

    def grow() -> None:
        with path.open("ab", buffering=0) as file:
            while not stop.is_set():
                file.write(b"y")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        with pytest.raises(WorkspaceError, match="still being written"):
            for _ in range(200):
                read_stable(path, 1 << 30)
    finally:
        stop.set()
        writer.join()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").touch(mode=0o000)
    with pytest.raises(WorkspaceError, match="permission denied"):
        read_stable(tmp_path / "f", 10)
