"""Fault 23 (I5, D19): what the machine refuses, and what a disk has damaged, is said in one paragraph with a remedy."""

from __future__ import annotations

import errno
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import Done, Workspace, copy_books, no_traceback, refused, unpack_objects

from cleared.cli import machine_errors
from cleared.git.pack_reader import PackReader

LONG = ["d" * 200] * 3


# -- git's objects ----------------------------------------------------------------------------------------------------


def history(ws: Workspace, code: int = 4) -> dict[str, Any]:
    done = ws("doctor", "--json")
    assert done.code == code, done
    (row,) = [r for r in done.json["checks"] if r["name"] == "history"]
    assert row["status"] == ("ok" if code == 0 else "fail")
    return dict(row)


def loose(ws: Workspace, oid: str) -> Path:
    return ws.root / ".git/objects" / oid[:2] / oid[2:]


def damage(file: Path, how: str) -> None:
    file.chmod(0o644)
    data = file.read_bytes()
    if how == "gone":
        file.unlink()
    elif how == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "flipped":
        at = len(data) // 2
        file.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
    else:  # whole, but of other content
        plain = zlib.decompress(data)
        file.write_bytes(zlib.compress(plain.replace(b"GITHUB", b"GITLAB")))


def mend(ws: Workspace, row: dict[str, Any]) -> None:
    command = row["remedy"].removeprefix("The working tree has it: ")
    subprocess.run(command, shell=True, cwd=ws.root, check=True, capture_output=True)
    history(ws, 0)
    ws.in_order()
    assert not (ws.root / ".git/mend").exists()


@pytest.mark.parametrize("how", ["gone", "cut", "empty", "flipped", "other"])
def test_doctor_finds_a_damaged_journal_and_says_how_to_mend_it(posted: Workspace, how: str) -> None:
    unpack_objects(posted.root)
    path = "books/2025/01/journal.csv"
    file = loose(posted, posted.git("rev-parse", f"HEAD:{path}").strip())
    assert history(posted, 0)["remedy"] == ""
    damage(file, how)
    row = history(posted)
    assert path in row["detail"]
    mend(posted, row)


@pytest.mark.parametrize("is_joined", [True, False])
def test_and_one_in_a_pack(posted: Workspace, is_joined: bool) -> None:
    path = "books/2025/01/journal.csv"
    if is_joined:
        posted.git("gc", "-q")
    reader = PackReader(str(posted.root / ".git/objects"))
    place = reader._find_places(posted.git("rev-parse", f"HEAD:{path}").strip())
    pack, offset = next(place)
    file = posted.root / f".git/objects/pack/{pack.name}.pack"
    reader.close()
    data = bytearray(file.read_bytes())
    data[offset + 40] ^= 0xFF
    file.chmod(0o644)
    file.write_bytes(data)
    row = history(posted)
    assert row["detail"] == f"damaged or missing: {path}"
    mend(posted, row)


def test_and_what_is_nowhere_but_in_git(posted: Workspace) -> None:
    """An older version, a tree, a commit: the remedy is another clone."""
    unpack_objects(posted.root)
    before = posted.git("rev-parse", "HEAD~1^{tree}").strip()
    damage(loose(posted, before), "flipped")
    row = history(posted)
    assert before[:10] in row["detail"] and "recover.md" in row["remedy"]


def test_and_a_damaged_pack(posted: Workspace) -> None:
    posted.git("gc", "-q")
    (pack,) = (posted.root / ".git/objects/pack").glob("*.pack")
    data = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(data[: len(data) // 2] + b"\0" * 64 + data[len(data) // 2 + 64 :])
    history(posted)
    for argv in (["journal", "list"], ["status"], ["agent", "run", "ingest"], ["check"]):
        no_traceback(posted(*argv))


# -- the machine ------------------------------------------------------------------------------------------------------


@pytest.fixture
def read_only(posted: Workspace) -> Iterator[Workspace]:
    """A workspace with traces on a disk that takes nothing."""
    folder = posted.root.parent / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        copy_books(posted.root, folder / "books")
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield Workspace(folder / "books")
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_read_only_disk_can_be_read(read_only: Workspace) -> None:
    (ran,) = read_only.json("run", "list")
    assert read_only.json("run", "show", ran["run_id"])["status"] == "succeeded"
    done = read_only("status", "--json")
    assert done.code == 0 and done.json["agents"]
    refused(read_only("up"), 4, "read-only")
    refused(read_only("agent", "run", "ingest"), 4, "read-only")


def test_a_path_that_is_too_long_for_a_database(posted: Workspace, tmp_path: Path) -> None:
    root = tmp_path.joinpath(*LONG)
    root.mkdir(parents=True)
    there = Workspace(copy_books(posted.root, root / "books"))
    for argv in (["up"], ["status"], ["run", "list"]):
        refused(there(*argv), 4, "its path is longer than", "shorter path")
    assert there("journal", "list").code == 0


@pytest.mark.parametrize("megabytes", [24, 40])
def test_little_memory(posted: Workspace, megabytes: int) -> None:
    """``ulimit -v``: whether it is enough depends on the system; what is said does not. At the very edge Python itself
    has not the few bytes to raise an error: rarely it aborts then, or, in 3.11, looks for them for ever."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    for argv in (["status"], ["agent", "run", "ingest"], ["journal", "list", "--json"]):
        command = [sys.executable, "-m", "cleared", *argv, "-C", str(posted.root)]
        try:
            ended = subprocess.run(command, preexec_fn=limit, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
        except subprocess.TimeoutExpired:
            continue
        done = Done(ended.returncode, ended.stdout.decode(), ended.stderr.decode())
        if done.code == -signal.SIGABRT and "Cannot recover from MemoryErrors" in done.err:
            continue
        assert "Traceback" not in done.err, done
        assert done.code == 0 or (done.code == 4 and "memory" in done.err), done
        assert done.code == 0 or "--json" not in argv or done.out == "" or "error" in done.json


COMMANDS = (
    ["status"],
    ["journal", "add", "2025-01-31", "x", "5220=1", "1590=-1", "--json"],
    ["agent", "run", "ingest"],
    ["config", "set", "sandbox.timeout", "20"],
    ["doctor"],
)


@pytest.mark.parametrize("files", [5, 12, 40])
def test_few_open_files(posted: Workspace, files: int) -> None:
    """``ulimit -n``: what a command cannot do to its end it does not begin."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    before = posted.state()
    for argv in COMMANDS:
        refused(posted.process(*argv, preexec_fn=limit), 4, f"only {files} files may be open", "ulimit -n")
    assert posted.state() == before and not (posted.root / ".cleared/seal.json").exists()


@pytest.mark.slow
def test_a_low_limit_that_may_be_raised_is_raised(posted: Workspace) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (12, 1000))

    for argv in COMMANDS[:4]:
        done = posted.process(*argv, preexec_fn=limit)
        assert done.code == 0, done
    posted.in_order()


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError(), 4, "not enough memory"),
        (ImportError("x.so: failed to map segment from shared object"), 4, "not enough memory"),
        (RuntimeError("can't start new thread"), 4, "not enough memory"),
        (type("PanicException", (BaseException,), {})("OS can't spawn worker thread: x"), 4, "not enough memory"),
        (OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)), 4, "not enough memory"),
        (OSError(errno.EROFS, "x", "/there"), 4, "/there: the disk is read-only"),
        (OSError(errno.ENOSPC, "x", "/there"), 4, "the disk is full"),
        (OSError(errno.EMFILE, "Too many open files"), 4, "ulimit -n"),
        (type("PanicException", (BaseException,), {})("x: Too many open files"), 4, "ulimit -n"),
        (RecursionError(), 1, "nested too deeply"),
        (sqlite3.OperationalError("disk I/O error"), 4, "doctor --rebuild"),
        (sqlite3.DatabaseError("malformed"), 4, "doctor --rebuild"),
    ],
)
def test_whatever_the_machine_refuses(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    """The class of it: wherever it comes up, in text and as JSON."""
    from cleared.runs import run_queries

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run_queries, "read_agents", refuse)
    refused(ws("agent", "list"), code, said)
    assert ws("agent", "list", "--json").json["error"]["exit_code"] == code
    monkeypatch.setenv(machine_errors.DEBUG, "1")
    assert "Traceback" in ws("agent", "list").err


@pytest.mark.parametrize(
    "error", [ValueError("x"), KeyError("x"), AssertionError(), RuntimeError("x"), ImportError("x")]
)
def test_a_mistake_of_the_program_keeps_its_traceback(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    from cleared.runs import run_queries

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(run_queries, "read_agents", refuse)
    with pytest.raises(type(error)):
        ws("agent", "list")
