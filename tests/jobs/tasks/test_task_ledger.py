"""The ledger: one appender at a time, any reader, any crash."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE

from cleared.base.clock import SystemClock
from cleared.base.errors import WorkspaceError
from cleared.jobs.tasks.ledger_lines import find_line, find_newest, parse_line
from cleared.jobs.tasks.task_ledger import INDEX_NAME, LEDGER, TORN_NAME, TaskLedger
from cleared.jobs.tasks.task_states import STATES, StatusLine, may_follow

AT = "2026-02-07T15:00:00Z"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs/current").mkdir(parents=True)
    (tmp_path / LEDGER).touch()
    return tmp_path


def ledger_of(root: Path, told: list[str] | None = None) -> TaskLedger:
    return TaskLedger(root, clock=SystemClock(), show_message=(told if told is not None else []).append)


def append(root: Path, *lines: tuple[str, str], told: list[str] | None = None) -> None:
    with ledger_of(root, told).open_for_appending("test") as writer:
        writer.append(*(StatusLine(name, status, AT, "…") for name, status in lines))


def states(root: Path) -> dict[str, str]:
    return {name: line.status for name, line in ledger_of(root).read_all().items()}


def jq_reads(path: Path) -> int:
    """How many lines jq itself reads; it must read all."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    done = subprocess.run(["jq", "-c", ".", str(path)], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return len(done.stdout.splitlines())


def test_of_lines_that_could_not_be_written_none_stays(root: Path) -> None:
    append(root, ("T-001", "pending"))
    before = (root / LEDGER).read_bytes()

    def fill_disk(step: str) -> None:
        if step == "ledger-written":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    full = TaskLedger(root, clock=SystemClock(), on_step=fill_disk)
    with pytest.raises(WorkspaceError, match="cannot be written"), full.open_for_appending("test") as writer:
        writer.append(StatusLine("T-001", "in-progress", AT, "…"), StatusLine("T-002", "pending", AT, "…"))
    assert (root / LEDGER).read_bytes() == before
    append(root, ("T-002", "pending"))
    assert states(root) == {"T-001": "pending", "T-002": "pending"}


def test_the_newest_line_counts(root: Path) -> None:
    append(root, ("T-001", "pending"), ("T-002", "pending"))
    append(root, ("T-001", "in-progress"))
    assert states(root) == {"T-001": "in-progress", "T-002": "pending"}
    assert ledger_of(root).read_latest("T-003") is None
    assert jq_reads(root / LEDGER) == 3


def test_a_missing_ledger_fails(tmp_path: Path) -> None:
    """G7"""
    with pytest.raises(WorkspaceError, match="there is no task ledger"):
        ledger_of(tmp_path).read_all()
    with pytest.raises(WorkspaceError), ledger_of(tmp_path).open_for_appending("test"):
        pass


APPEND = """
import sys
from pathlib import Path
from cleared.base.clock import SystemClock
from cleared.jobs.tasks.task_ledger import TaskLedger
from cleared.jobs.tasks.task_states import StatusLine
ledger = TaskLedger(Path(sys.argv[1]), clock=SystemClock())
for _ in range(5):
    with ledger.open_for_appending("test") as writer:
        writer.append(StatusLine(f"T-{int(sys.argv[2]):03d}", "pending", "2026-02-07T15:00:00Z", "…"))
"""


def test_twenty_appenders_at_once(root: Path) -> None:
    """G8, G9, G25: every line of every process is there, whole."""
    running = [
        subprocess.Popen([sys.executable, "-c", APPEND, str(root), str(n)], stderr=subprocess.PIPE) for n in range(20)
    ]
    for process in running:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, errors.decode()
    assert jq_reads(root / LEDGER) == 100
    assert states(root) == {f"T-{n:03d}": "pending" for n in range(20)}


@pytest.mark.parametrize("torn", [b'{"id": "T-001", "sta', b"\x00\x00\x00", b'{"id": "T-001"}', b"<<<<<<< HEAD"])
def test_a_torn_line_is_tolerated_and_reported(root: Path, torn: bytes) -> None:
    """G10, G25"""
    append(root, ("T-001", "pending"))
    with (root / LEDGER).open("ab") as file:
        file.write(torn)
    assert states(root) == {"T-001": "pending"}
    told: list[str] = []
    append(root, ("T-002", "pending"), told=told)
    assert states(root) == {"T-001": "pending", "T-002": "pending"} and "torn" in told[0]
    assert jq_reads(root / LEDGER) == 2
    assert (root / ".cleared" / TORN_NAME).read_bytes() == torn + b"\n"


def test_a_whole_line_without_its_newline_counts(root: Path) -> None:
    """G10"""
    append(root, ("T-001", "pending"))
    (root / LEDGER).write_bytes((root / LEDGER).read_bytes() + b'{"status":"failed","id":"T-001"}')
    assert states(root) == {"T-001": "failed"}
    append(root, ("T-002", "pending"))
    assert states(root) == {"T-001": "failed", "T-002": "pending"} and jq_reads(root / LEDGER) == 3


@pytest.mark.parametrize(
    "line",
    [
        '{"summary":"x","updated_at":"2026-02-07T15:00:00Z","status":"failed","id":"T-001"}',
        '  { "status" :  "failed" , "id"  :   "T-001" }  ',
        '{"id":"T-001","status":"failed","note":{"id":"T-009","status":"completed"}}',
        '{"note":"\\"id\\": \\"T-009\\"","id":"T-001","status":"failed"}',
        '{"\\u0069d":"T-001","status":"failed"}',
        '{"id":"T-001","status":"failed"}\r',
    ],
)
def test_key_order_and_spacing_are_free(root: Path, line: str) -> None:
    """G11"""
    append(root, ("T-001", "pending"))
    with (root / LEDGER).open("a") as file:
        file.write(line + "\n")
    assert states(root) == {"T-001": "failed"}


@pytest.mark.parametrize(
    "line",
    [
        "null",
        "[]",
        '{"id":1,"status":"failed"}',
        '{"id":"T-001"}',
        '{"id":"T-001","status":"won"}',
        "=======",
        "[" * 50_000,
    ],
)
def test_what_is_no_record_is_passed_over(root: Path, line: str) -> None:
    append(root, ("T-001", "pending"))
    with (root / LEDGER).open("a") as file:
        file.write(line + "\n")
    assert states(root) == {"T-001": "pending"}


def test_claimed_is_an_older_name(root: Path) -> None:
    """G14"""
    (root / LEDGER).write_text('{"id":"T-001","status":"claimed","updated_at":"x","summary":""}\n')
    assert states(root) == {"T-001": "in-progress"}


def test_the_index_can_be_lost_or_damaged(root: Path) -> None:
    """G13"""
    append(root, *((f"T-{n:03d}", random.choice(STATES)) for n in range(200) for _ in range(3)))
    before = ledger_of(root).read_all()
    for damage in (lambda p: p.unlink(), lambda p: p.write_bytes(b"x" * 5000), lambda p: p.write_bytes(b"")):
        for suffix in ("-wal", "-shm"):
            (root / ".cleared" / f"{INDEX_NAME}{suffix}").unlink(missing_ok=True)
        damage(root / ".cleared" / INDEX_NAME)
        assert ledger_of(root).read_all() == before


def test_a_ledger_that_was_rewritten_is_read_again(root: Path) -> None:
    """G13: another commit is checked out, a merge puts lines in between."""
    append(root, ("T-001", "pending"), ("T-002", "pending"))
    assert states(root)
    lines = (root / LEDGER).read_text().splitlines(keepends=True)
    (root / LEDGER).write_text(
        lines[0].replace("pending", "blocked") + lines[0] * 5 + lines[1].replace("pending", "failed")
    )
    assert states(root) == {"T-001": "pending", "T-002": "failed"}
    (root / LEDGER).write_text(lines[0])
    assert states(root) == {"T-001": "pending"}


LINES = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 6), st.sampled_from(STATES)).map(
            lambda p: json.dumps({"id": f"T-{p[0]:03d}", "status": p[1]}).encode()
        ),
        st.sampled_from([b"", b"x", b'{"id":"T-001"', b'{"note":{"id":"T-002"},"status":"failed","id":"T-003"}']),
        st.sampled_from([b'{"id":"T-\\u0030\\u00301","status":"failed"}', b'{"\\u0069d":"T-002","status":"failed"}']),
    ),
    max_size=40,
)


@given(LINES, st.integers(1, 100))
def test_reading_from_the_end_gives_what_reading_from_the_start_does(lines: list[bytes], chunk: int) -> None:
    """G12, G13"""
    import io

    from cleared.jobs.tasks import ledger_lines

    data = b"".join(line + b"\n" for line in lines)
    expected = {record.id: record.status for record in map(parse_line, lines) if record is not None}
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("_CHUNK", chunk), ("MAX_LINE", 80), ("_PIECE", 80 + chunk)):
            patch.setattr(ledger_lines, name, size)
        newest = find_newest(io.BytesIO(data), 0, len(data))
        one_by_one = {name: find_line(io.BytesIO(data), len(data), name) for name in [f"T-{n:03d}" for n in range(8)]}
    assert {name: place for name, place in one_by_one.items() if place is not None} == newest
    found = {}
    for name, (start, length) in newest.items():
        record = parse_line(data[start : start + length])
        assert record is not None and record.id == name
        found[name] = record.status
    assert found == expected


def test_a_lookup_reads_little_of_a_large_ledger(root: Path) -> None:
    """G12: with the index a lookup touches the ends and the line, whatever lies between."""
    line = json.dumps({"id": "T-001", "status": "pending", "updated_at": AT, "summary": "x" * 200}) + "\n"
    (root / LEDGER).write_text(line + line.replace("T-001", "T-002") * 200_000)
    assert states(root) == {"T-001": "pending", "T-002": "pending"}
    ledger = ledger_of(root)
    with (root / LEDGER).open("rb") as file:
        read: list[int] = []

        class Counting:
            def __getattr__(self, name: str) -> object:
                return getattr(file, name)

            def read(self, size: int) -> bytes:
                read.append(size)
                return file.read(size)

        found = ledger._read_lines(Counting(), "T-001")  # type: ignore[arg-type]
    assert list(found) == ["T-001"] and sum(read) < 3 << 20


def test_a_ledger_is_indexed_bit_by_bit(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """G12, G13: each lookup takes a step of it from the end, whatever is added or written anew meanwhile."""
    from cleared.jobs.tasks import task_ledger

    monkeypatch.setattr(task_ledger, "_STEP", 1_000)
    random.seed(1)
    known: dict[str, str] = {}
    for turn in range(12):
        lines = [(f"T-{random.randint(1, 9):03d}", random.choice(["pending", "failed"])) for _ in range(30)]
        append(root, *lines[: 3 if turn % 2 else 30])
        known |= dict(lines[: 3 if turn % 2 else 30])
        if turn == 8:
            (root / LEDGER).write_bytes((root / LEDGER).read_bytes().replace(b"T-009", b"T-010"))
            known = {name.replace("T-009", "T-010"): state for name, state in known.items()}
        for name in random.sample([f"T-{n:03d}" for n in range(12)], 4):
            found = ledger_of(root).read_latest(name)
            assert (found.status if found else None) == known.get(name), (turn, name)
    assert states(root) == known


def test_a_recent_line_is_found_before_there_is_an_index(root: Path) -> None:
    """G12: without reading all of a large ledger."""
    line = json.dumps({"id": "T-001", "status": "pending", "updated_at": AT, "summary": "x" * 200}) + "\n"
    (root / LEDGER).write_text(line * 60_000 + line.replace("T-001", "T-002") + line.replace("pending", "failed"))
    for name, state in (("T-002", "pending"), ("T-001", "failed"), ("T-003", None)):
        found = ledger_of(root).read_latest(name)
        assert (found.status if found else None) == state
    assert states(root) == {"T-001": "failed", "T-002": "pending"}


def test_only_documented_transitions() -> None:
    """G14"""
    assert not may_follow("pending", "completed") and not may_follow(None, "completed")
    assert not may_follow("blocked", "in-progress") and not may_follow("failed", "completed")
    assert (
        may_follow("in-progress", "completed") and may_follow("failed", "pending") and may_follow("pending", "blocked")
    )
