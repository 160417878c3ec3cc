"""A check that knows of months that they were right names what one names that reads everything (B7)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace
from msgspec import field

from cleared.base.errors import WorkspaceError
from cleared.books.audit.book_audit import BookAudit
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Repository, Snapshot

HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #"
FILES = (
    "books/*/*/journal.csv",
    "books/bank/*/*.csv",
    "books/bank/matches-*.csv",
    "books/bank/outcomes-*.csv",
    "books/bank/reconciliations-*.csv",
    "accounts/chart-of-accounts.csv",
)


def write_month(month: int, rows: int = 12) -> str:
    """A bank file of one month, with its balances."""
    balance, lines = 100_000 - month * 5_000, []
    for n in range(rows):
        cents = 1_000 + 17 * n + month
        balance -= cents
        text = ("GITHUB *PRO", "AWS EMEA", "CORNER SHOP")[n % 3]
        lines.append(
            f'DEBIT,{month:02d}/{n + 3:02d}/2024,"{text} {n}",-{cents / 100:.2f},ACH_DEBIT,{balance / 100:.2f},,'
        )
    return "\n".join([HEADER, *reversed(lines), ""])


@pytest.fixture
def year(ws: Workspace) -> Workspace:
    """Four months, with entries that were voided, corrected, confirmed, and put in suspense."""
    for month in (9, 10, 11, 12):
        ws.drop(f"{month}.csv", write_month(month))
        ws.run("ingest")
    ws.ok("journal", "void", "2024-09-002", "--reason", "not ours")
    waiting = [each["entry_id"] for each in ws.entries() if each["status"] == "pending-review"]
    ws.ok("queue", "correct", waiting[0], "--account", "5020")
    ws.ok("queue", "approve", *waiting[1:4])
    ws.ok("queue", "reject", waiting[5], "--reason", "unknown", "--outcome", "suspense")
    return ws


def audit_books(ws: Workspace, *, may_trust: bool) -> list[tuple[str, str]]:
    """What the audit of the last commit's books names."""
    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        return audit_commit(host.layout, repo, may_trust)


def audit_commit(layout: Any, repo: Repository, may_trust: bool) -> list[tuple[str, str]]:
    snapshot = Snapshot(repo, repo.read_head())
    try:
        found = BookAudit(layout).check_records(CommittedSource(snapshot), snapshot if may_trust else None)
    except WorkspaceError as error:
        return [("format", str(error))]
    return sorted((each.check, f"{each.place} {each.record_id} {each.message}") for each in found)


def test_books_with_a_known_past_are_in_order(year: Workspace) -> None:
    for _ in range(2):
        assert audit_books(year, may_trust=True) == audit_books(year, may_trust=False) == []
    year.in_order()


class Reads(CommittedSource, eq=False):
    """Notes which files are read."""

    paths: set[str] = field(default_factory=set)

    def read(self, path: str) -> bytes | None:
        self.paths.add(path)
        return super().read(path)


def list_reads(ws: Workspace, *, may_trust: bool) -> set[str]:
    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        source = Reads(snapshot)
        assert BookAudit(host.layout).check_records(source, snapshot if may_trust else None) == []
    of_months = {path for path in source.paths if re.search(r"2024|matches", path) and snapshot_has(ws, path)}
    return {path for path in of_months if not re.search("outcomes|reconciliations", path)}  # looked at each time


def snapshot_has(ws: Workspace, path: str) -> bool:
    return (ws.root / path).is_file()


def test_a_month_that_is_as_it_was_is_not_read_again(year: Workspace) -> None:
    everything = list_reads(year, may_trust=True)
    assert len(everything) >= 12 and list_reads(year, may_trust=True) == set()
    year.drop("more.csv", write_month(12, rows=14))
    year.run("ingest")
    december = {"books/2024/12/journal.csv", "books/bank/checking/2024-12.csv", "books/bank/matches-2024-12.csv"}
    assert december <= list_reads(year, may_trust=True) <= {each for each in everything if "12" in each} | december
    assert list_reads(year, may_trust=False) == everything, "what git has may be other than what was read"


def test_a_leg_of_a_later_month_is_looked_at_again(year: Workspace) -> None:
    """The line of September is taken back by an entry of another month."""
    year.ok("period", "close", "2024-10", "--with-pending", "--despite", "tested")
    year.ok("journal", "void", "2024-09-003", "--reason", "not ours")
    assert audit_books(year, may_trust=True) == []
    voiding = max(
        (each for each in year.ok("journal", "list", "--json").json if "2024-09-003" in str(each["tags"])),
        key=lambda each: each["entry_id"],
    )
    assert voiding["entry_id"] > "2024-10-999"
    journal = year.root / f"books/{voiding['entry_id'][:7].replace('-', '/')}/journal.csv"
    rows = journal.read_text().splitlines(keepends=True)
    assert rows[-1].startswith(voiding["entry_id"])
    journal.write_text("".join(row for row in rows if not row.startswith(voiding["entry_id"])))
    year.commit("books")
    found = audit_books(year, may_trust=True)
    assert found == audit_books(year, may_trust=False)
    assert any("is not there" in message for _, message in found)


def test_a_line_that_two_months_have_is_told(year: Workspace) -> None:
    """Each of them is right in itself: the line waits in one, and counts in the other."""
    year.ok("check")
    rows = year.read("books/bank/checking/2024-09.csv").splitlines(keepends=True)
    line = rows[1].split(",")[0]
    with (year.root / "books/bank/checking/2024-12.csv").open("a") as file:
        file.write(rows[1])
    with (year.root / "books/bank/outcomes-2024-09.csv").open("a") as file:
        file.write(f"{line},ignored,twice,hand\n")
    year.commit("books")
    found = audit_books(year, may_trust=True)
    assert found == audit_books(year, may_trust=False)
    assert ["is recorded twice" in message for _, message in found] == [True]


def test_an_account_that_is_gone_is_told_of_months_that_are_as_they_were(year: Workspace) -> None:
    year.ok("check")
    chart = year.root / "accounts/chart-of-accounts.csv"
    rows = chart.read_text().splitlines(keepends=True)
    chart.write_text("".join(row for row in rows if not row.startswith("5020,")))
    year.commit("accounts")
    found = audit_books(year, may_trust=True)
    assert found == audit_books(year, may_trust=False)
    assert {check for check, _ in found} == {"account_exists"} and len(found) > 10


# -- the same as all -------------------------------------------------------------------------------------------------


def drop_row(chance: random.Random, rows: list[str]) -> list[str]:
    at = chance.randrange(1, len(rows))
    return rows[:at] + rows[at + 1 :]


def double_row(chance: random.Random, rows: list[str]) -> list[str]:
    at = chance.randrange(1, len(rows))
    return [*rows[: at + 1], *rows[at:]]


def alter_digit(chance: random.Random, rows: list[str]) -> list[str]:
    at = chance.randrange(1, len(rows))
    digits = [match.start() for match in re.finditer("[0-9]", rows[at])]
    place = chance.choice(digits)
    return [*rows[:at], rows[at][:place] + chance.choice("0123456789") + rows[at][place + 1 :], *rows[at + 1 :]]


def swap_rows(chance: random.Random, rows: list[str]) -> list[str]:
    head, *rest = rows
    chance.shuffle(rest)
    return [head, *rest]


ACTS: tuple[Callable[[random.Random, list[str]], list[str]], ...] = (drop_row, double_row, alter_digit, swap_rows)


def damage_books(chance: random.Random, root: Path) -> None:
    """Change one file by hand, or carry a row from one to another of its kind."""
    files = [path for pattern in FILES for path in root.glob(pattern)]
    path = chance.choice([each for each in files if each.read_text().count("\n") > 1])
    rows = path.read_text().splitlines(keepends=True)
    alike = [each for each in files if each.name[:3] == path.name[:3] and each != path]
    if alike and chance.random() < 0.25:
        other = chance.choice(alike)
        others = other.read_text().splitlines(keepends=True)
        rows.append(chance.choice(others[1:] or rows[1:]))
    else:
        rows = chance.choice(ACTS)(chance, rows)
    path.write_text("".join(rows))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_is_known_hides_nothing(year: Workspace, seed: int) -> None:
    chance = random.Random(seed)
    year.ok("check")
    good, named = year.head(), 0
    for _ in range(20):
        if chance.random() < 0.5:
            year.git("reset", "-q", "--hard", good)
        damage_books(chance, year.root)
        year.git("commit", "-q", "--allow-empty", "-am", "by hand")
        found = audit_books(year, may_trust=True)
        assert found == audit_books(year, may_trust=False)
        named += bool(found)
    assert named > 10
    year.git("reset", "-q", "--hard", good)
    assert audit_books(year, may_trust=True) == []
