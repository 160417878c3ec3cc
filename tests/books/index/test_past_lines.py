"""What is known of past months without reading them is what their lines and entries say."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal

import pytest
from closed_books import digest_entries
from harness import Workspace, chase

from cleared.books.decisions import bank_standing
from cleared.books.index import past_lines
from cleared.books.index.past_lines import PastLines, read_imports_once
from cleared.books.ledger.agreed_balances import BankTiming, MatchedLine
from cleared.books.ledger.entry import leg_suffix
from cleared.books.ledger.import_records import parse_imports, read_imports
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.queries import open_committed_books
from cleared.changes.workspace_opening import open_workspace
from cleared.workspace.location import cleared_home

BANK = 1010
TEXTS = ("GITHUB *PRO", "AWS EMEA", "CORNER SHOP", "TEA", "UBER")


@contextmanager
def open_books(ws: Workspace) -> Iterator[tuple[Books, BankBook, PastLines]]:
    host = open_workspace(ws.root)
    with open_committed_books(host) as (_, _, books, bank):
        yield books, bank, PastLines(bank, host.layout.state_dir)


def find_day(books: Books, leg_id: str) -> date | None:
    entry = books.find_entry(leg_id)
    assert entry is not None
    legs = {entry.entry_id + leg_suffix(i): leg for i, leg in enumerate(entry.legs)}
    return entry.date if legs[leg_id].account_id == BANK else None


def time_all(books: Books, bank: BankBook) -> BankTiming:
    """The same from all lines and entries."""
    timing = BankTiming()
    for line in bank.scan_account_lines("checking"):
        days = [(find_day(books, leg_id), amount) for leg_id, amount in bank.list_matches(line.line_id)]
        parts = tuple((day, amount) for day, amount in days if day is not None)
        if line.state == "posted":
            is_ignored = bank.is_ignored(line.line_id)
            timing.add_line(BANK, MatchedLine(line.line_id, line.posted_date, line.amount, parts, is_ignored))
    return timing


def compare_timing(ws: Workspace, chance: random.Random) -> None:
    """On days of a part of the books, asked for the first time and again."""
    first = date(2024, chance.randint(1, 6), 1)
    days = first, first + timedelta(days=chance.randint(5, 70))
    with open_books(ws) as (books, bank, _):
        whole = time_all(books, bank)
    for _ in range(2):
        with open_books(ws) as (books, bank, past):
            timing = BankTiming()
            past.time_lines(timing, "checking", BANK, days, lambda leg_id, books=books: find_day(books, leg_id))  # type: ignore[misc]
            for n in range((days[1] - days[0]).days + 1):
                day = first + timedelta(days=n)
                for ask in ("in_transit", "waiting", "ignored"):
                    assert getattr(timing, ask)(BANK, day) == getattr(whole, ask)(BANK, day), (ask, day)


def compare_status(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the newest months, and of all months."""
    answers = []
    for name, value in (("_SPANS", (1, 2, 3)), ("_find_newest", lambda *_, **__: None)):
        with monkeypatch.context() as patched:
            patched.setattr(bank_standing, name, value)
            (ws.root / ".cleared/books/completeness").unlink(missing_ok=True)
            answers.append(ws.json("status")["accounts"])
    assert answers[0] == answers[1]


def compare_reconciliation(ws: Workspace, monkeypatch: pytest.MonkeyPatch, chance: random.Random, month: int) -> None:
    """Of the newest months up to a day, where they tell, and of all months: with what the books have, and with more."""
    day = f"2024-{chance.randint(1, month):02d}-{chance.randint(1, 28):02d}"
    ask = ("reconcile", str(BANK), "--date", day, "--dry-run", "--json", "--balance")
    found = ws(*ask, "0").json
    agreed = Decimal(found["booked"]) + sum(Decimal(each["amount"]) for each in found["in_transit"])
    for stated in (agreed, agreed + 1):
        answers = []
        for spans in ((1, 2, 3), ()):
            with monkeypatch.context() as patched:
                patched.setattr(bank_standing, "_SPANS", spans)
                answers.append(ws(*ask, str(stated)).json)
        assert answers[0] == answers[1]
        assert (answers[0]["difference"] == "0") == (stated == agreed)


def compare_closing(ws: Workspace, monkeypatch: pytest.MonkeyPatch, chance: random.Random, month: int) -> None:
    """With all that is kept, and without anything; what is refused, and what is put on record."""
    day = date(2024, chance.randint(1, month), 27)
    how = chance.choice(((), ("--with-pending",), ("--with-pending", "--despite", "a test")))
    kept, answers = [ws.root, cleared_home()], []
    for spans in ((1, 2, 3), ()):
        for folder in kept:
            shutil.copytree(folder, folder.with_suffix(".before"), symlinks=True)
        with monkeypatch.context() as patched:
            patched.setattr(bank_standing, "_SPANS", spans)
            done = ws("period", "close", day.isoformat(), *how)
            answers.append((done.code, done.err, ws.read("books/periods.csv") if done.code == 0 else ""))
        for folder in kept:
            shutil.rmtree(folder)
            folder.with_suffix(".before").rename(folder)
        shutil.rmtree(ws.root / ".cleared/books", ignore_errors=True)
    assert answers[0] == answers[1]
    with open_books(ws) as (books, _, _):
        assert answers[0][0] or digest_entries(books, day) in answers[0][2]


def drop_month(ws: Workspace, month: int, cents: int, chance: random.Random) -> int:
    """The file of a month: mostly with balances, sometimes with rows of the month before, or without one of its own."""
    rows = []
    for n in range(chance.randint(3, 9)):
        amount = chance.randint(100, 20_000) * chance.choice((-1, -1, -1, 1))
        cents += amount
        balance = f"{cents / 100:.2f}" if chance.random() < 0.9 else ""
        text = f"{chance.choice(TEXTS)} {chance.randint(1, 99)}"
        rows.append((f"{month:02d}/{3 * n + 1:02d}/2024", text, f"{amount / 100:.2f}", balance))
    if chance.random() < 0.2:
        del rows[chance.randrange(len(rows))]
    ws.drop(f"{month}.csv", chase(*rows[::-1]))
    ws.run("ingest")
    return cents


def act(ws: Workspace, month: int, chance: random.Random) -> None:
    """Something that a person does, about any month."""
    entries = [each["entry_id"] for each in ws.entries() if each["status"] != "voided"]
    waiting = [each["entry_id"] for each in ws.entries() if each["status"] == "pending-review"]
    what = chance.randrange(5)
    if what == 0:
        ws("journal", "void", chance.choice(entries), "--reason", "a test")
    elif what == 1 and waiting:
        ws("queue", "reject", chance.choice(waiting), "--reason", "no", "--outcome", "void")
    elif what == 2 and waiting:
        ws("queue", "approve", chance.choice(waiting))
    elif what == 3:
        ws("journal", "add", f"2024-{chance.randint(1, month):02d}-17", "by hand", "5020=7.00", f"{BANK}=-7.00")
    else:
        ws("import", "undo", f"{chance.randint(1, month)}.csv", "--reason", "a test")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_of_past_months_is_what_they_say(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    ws.ok("journal", "add", "2023-12-31", "Opening", f"{BANK}=1000.00", "3900=-1000.00")
    cents = 100_000
    for month in range(1, 7):
        monkeypatch.setenv("CLEARED_CLOCK", f"2024-{month:02d}-28T20:00:00Z")
        cents = drop_month(ws, month, cents, chance)
        for _ in range(2):
            act(ws, month, chance)
            compare_timing(ws, chance)
        compare_status(ws, monkeypatch)
        compare_closing(ws, monkeypatch, chance, month)


@pytest.mark.parametrize("seed", range(2))
def test_books_that_agree_are_reconciled_by_their_newest_months(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, cents, whole = random.Random(seed), 100_000, list[object]()
    original = bank_standing.read_account_facts
    monkeypatch.setattr(bank_standing, "read_account_facts", lambda *a, **k: (whole.append(a), original(*a, **k))[1])
    ws.ok("journal", "add", "2023-12-31", "Opening", f"{BANK}=1000.00", "3900=-1000.00")
    for month in range(1, 6):
        monkeypatch.setenv("CLEARED_CLOCK", f"2024-{month:02d}-28T20:00:00Z")
        rows = []
        for n in range(5):
            cents -= (amount := chance.randint(100, 9_000))
            rows.append((f"{month:02d}/{5 * n + 1:02d}/2024", TEXTS[n], f"-{amount / 100:.2f}", f"{cents / 100:.2f}"))
        ws.drop(f"{month}.csv", chase(*rows[::-1]))
        ws.run("ingest")
        whole.clear()
        ws.ok("reconcile", str(BANK), "--date", f"2024-{month:02d}-27", "--balance", f"{cents / 100:.2f}")
        assert bool(whole) == (month < 2), "the only month is all of them"
        waiting = [each["entry_id"] for each in ws.entries() if each["status"] == "pending-review"]
        if month == 3:  # booked on another day, in the month after
            late = ("--date", "2024-04-02") if chance.random() < 0.5 else ()
            ws.ok("queue", "correct", waiting[-1], "--account", "5020", *late)
        if month == 5:
            ws.ok("journal", "void", waiting[-1], "--reason", "a test")
        for _ in range(3):
            compare_reconciliation(ws, monkeypatch, chance, month)
        compare_closing(ws, monkeypatch, chance, month)


def test_files_that_state_no_balance_are_known_to_state_none(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a person says one."""
    for month in (1, 2, 3, 4):
        ws.drop(f"{month}.csv", chase((f"{month:02d}/03/2024", "AWS EMEA", f"-{month}.00")))
        ws.run("ingest")
        compare_status(ws, monkeypatch)
    [account] = ws.json("status")["accounts"]
    assert (account["imported"], account["known"], account["through"]) == (True, False, None)
    ws.ok("reconcile", str(BANK), "--date", "2024-02-20", "--balance", "-3.00")
    compare_status(ws, monkeypatch)
    assert ws.json("status")["accounts"][0]["through"] == "2024-02-20"
    for month in (1, 2, 3, 4):
        ws.ok("import", "undo", f"{month}.csv", "--despite", "a test")
        compare_status(ws, monkeypatch)
    assert ws.json("status")["accounts"][0]["imported"] is False


def test_records_of_past_imports_are_read_again_where_a_commit_changed_them(
    ws: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def parse(data: bytes | None, file: str) -> object:
        read.append(file)
        return parse_imports(data, file)

    def compare_imports() -> list[str]:
        """The names of the files; both ways of reading must say the same."""
        read.clear()
        host = open_workspace(ws.root)
        with open_committed_books(host) as (_, _, books, bank):
            known = read_imports_once(host.layout.state_dir, books.source, books.paths)
            assert known == read_imports(books.source, books.paths) == bank.all_imports
        return [record.name for record in known]

    for month in (1, 2, 3):
        monkeypatch.setenv("CLEARED_CLOCK", f"2024-{month:02d}-28T20:00:00Z")
        ws.drop(f"{month}.csv", chase((f"{month:02d}/03/2024", "AWS EMEA", f"-{month}.00")))
        ws.run("ingest")
    monkeypatch.setattr(past_lines, "parse_imports", parse)
    assert compare_imports() == ["1.csv", "2.csv", "3.csv"]
    assert compare_imports() == ["1.csv", "2.csv", "3.csv"] and set(read) == {"books/bank/imports-2024-03.csv"}
    changed = ws.root / "books/bank/imports-2024-01.csv"
    changed.write_text(changed.read_text().replace("1.csv", "one.csv"))
    ws.commit("books/bank/imports-2024-01.csv")
    assert compare_imports() == ["one.csv", "2.csv", "3.csv"] and "books/bank/imports-2024-01.csv" in read
