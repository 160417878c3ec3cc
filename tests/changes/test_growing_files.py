"""FLAT: what one decision reads and writes does not grow with the books: what grows is cut by month and by size."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import Workspace, chase
from statement_files import Line, Told, write_chase, write_ofx

from cleared.base import file_source
from cleared.git.object_reader import ObjectReader

PART = 4_000
"""Bytes of a part, as small as if a month were full."""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of git's objects that were read."""
    sizes: list[int] = []
    original: Callable[[ObjectReader, str], tuple[str, bytes] | None] = ObjectReader._read_here

    def count(reader: ObjectReader, oid: str) -> tuple[str, bytes] | None:
        found = original(reader, oid)
        sizes.append(len(found[1]) if found is not None else 0)
        return found

    monkeypatch.setattr(ObjectReader, "_read_here", count)
    monkeypatch.setattr(file_source, "MAX_PART_BYTES", PART)
    return sizes


def post_entry(ws: Workspace, number: int) -> None:
    """A decision about a month of its own."""
    ws.ok("journal", "add", f"{2000 + number // 12}-{number % 12 + 1:02d}-01", "rent", "3200=10.00", "1010=-10.00")


IMPORT = """
for name in [file["name"] for file in importer_scan()]:
    for row in importer_parse(name):
        importer_ignore(row["reference"], "known from elsewhere")
    ctx_emit("files.taken", {"name": name, "why": "x" * 500})
    importer_mark_processed(name)
1
"""


def written(ws: Workspace, commit: str) -> int:
    """Bytes of the files that a commit writes."""
    paths = ws.git("diff-tree", "-r", "--name-only", "--no-commit-id", commit).splitlines()
    return sum(len(ws.git("show", f"{commit}:{path}")) for path in paths)


def test_a_decision_costs_what_it_did_before_others(posted: Workspace, read: list[int]) -> None:
    """What is read and written by the tenth decision, and by the thirtieth."""
    costs = []
    for number in range(30):
        read.clear()
        post_entry(posted, number)
        if number >= 5:
            costs.append((sum(read), written(posted, "HEAD") if number in (9, 29) else 0))
    early, late = (max(size for size, _ in part) for part in (costs[:10], costs[-10:]))
    assert late < early * 1.3
    assert costs[-1][1] < costs[4][1] + 2 * PART
    logs = posted.git("ls-files", "logs").split()
    assert {"logs/agent-log-2025-02.csv", "logs/agent-log-2025-02_002.csv"} <= {*logs}
    assert {"logs/attestations-2025-02.jsonl", "logs/attestations-2025-02_003.jsonl"} <= {*logs}
    assert all(len(posted.read(path)) < PART + 4_000 for path in logs)
    posted.in_order()


def test_a_line_of_an_attestation_counts_once_in_whichever_part(posted: Workspace) -> None:
    shard = "logs/attestations-2025-02.jsonl"
    posted.put("logs/attestations-2025-02_002.jsonl", posted.read(shard))
    posted.commit("logs/attestations-2025-02_002.jsonl")
    done = posted("check", "--json")
    assert done.code == 1
    assert all("records otherwise" not in each["message"] for each in done.json["violations"]), done.out


def test_cards_of_a_full_month_stand_in_its_next_part(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_source, "MAX_PART_BYTES", 100)
    first, second = (card["id"] for card in posted.cards())
    posted.ok("queue", "approve", first)
    assert [card["id"] for card in posted.cards()] == [second]
    assert "resolve" in posted.read("queue/2025-02_002.jsonl") and "resolve" not in posted.read("queue/2025-02.jsonl")
    posted.in_order()


def tell_month(number: int, opening: str = "1000.00") -> Told:
    """A statement of a month, which begins with the last rows of the month before."""

    def list_rows(month: int, first: int) -> list[Line]:
        day = f"{2020 + month // 12}-{month % 12 + 1:02d}"
        return [
            Line(f"{day}-{n:02d}", f"-{n}.10", f"SHOP {month} {n}", f"F{month:03d}{n:02d}") for n in range(first, 29)
        ]

    return Told(lines=[*(list_rows(number - 1, 24) if number else []), *list_rows(number, 1)], opening=opening)


def write_bare(told: Told) -> str:
    """A file that states no balance."""
    return chase(*((f"{x.day[5:7]}/{x.day[8:]}/{x.day[:4]}", x.text, x.amount) for x in told.lines))


@pytest.mark.slow
@pytest.mark.parametrize("write", [write_chase, write_ofx, write_bare])
def test_a_run_costs_what_it_did_before_others(
    ws: Workspace, read: list[int], monkeypatch: pytest.MonkeyPatch, write: Callable[[Told], str]
) -> None:
    """FLAT: a run whose file states a balance, repeats rows and has ids of the bank reads the lines of its months, and
    so does ``status`` after it; what it writes is of these months."""
    ws.ok("config", "set", "bank_accounts.checking.match.account", "1234567890")
    ws.ok("journal", "add", "2019-12-31", "Opening", "1010=1000.00", "3900=-1000.00")
    cents, costs, sizes = 100_000, [], []
    for number in range(20):
        told = tell_month(number)
        new = sum(int(line.amount.replace(".", "")) for line in told.lines if f" {number} " in line.text)
        known = sum(int(line.amount.replace(".", "")) for line in told.lines) - new
        told = tell_month(number, f"{(cents - known) / 100:.2f}")
        cents += new
        monkeypatch.setenv("CLEARED_CLOCK", f"{2020 + number // 12}-{number % 12 + 1:02d}-28T20:00:00Z")
        ws.drop(f"{number}.{'ofx' if write is write_ofx else 'csv'}", write(told))
        read.clear()
        ws.run("ingest")
        sizes.append(sum(read))
        read.clear()
        through = told.lines[-1].day if write is not write_bare else None
        assert ws.json("status")["accounts"][0]["through"] == through
        costs.append((sizes[-1], sum(read), written(ws, "HEAD") if number in (9, 19) else 0))
    for early, late in zip(costs[8:10], costs[18:20], strict=True):
        assert late[0] < early[0] * 1.3
        assert late[1] < early[1] * 1.3
    assert costs[19][2] < costs[9][2] * 1.2
    ws.in_order()


@pytest.mark.slow
def test_a_run_costs_what_it_did_before_rows_were_known_or_ignored_and_events_emitted(
    ws: Workspace, read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each month a file has the rows of the month before once more, the new ones are ignored, and an event is told."""
    ws.agent("take", IMPORT)
    costs = []
    for number in range(24):
        months = [f"{n % 12 + 1:02d}/{{:02d}}/{2025 + n // 12}" for n in (number + 1, number + 2)]
        rows = [(month.format(day), f"SHOP {month} {day}", "-1.00") for month in months for day in range(1, 25)]
        monkeypatch.setenv("CLEARED_CLOCK", f"{2025 + (number + 2) // 12}-{(number + 2) % 12 + 1:02d}-25T06:00:00Z")
        ws.drop(f"{number}.csv", chase(*rows))
        read.clear()
        ws.run("take")
        if number in (5, 6, 7, 21, 22, 23):
            costs.append((sum(read), written(ws, "HEAD")))
    for early, late in zip(costs[:3], costs[3:], strict=True):
        assert late[1] < early[1] * 1.1, costs
        assert late[0] < early[0] + 16 * 1_600, costs  # folders, and the records of imports, of sixteen months more
    for name in ("books/bank/duplicates", "books/bank/outcomes", "logs/events"):
        files = ws.git("ls-files", f"{name}*").split()
        assert len(files) >= 20 and not {f"{name}.csv", f"{name}.jsonl"} & {*files}
    ws.in_order()
