"""SWIFT: the index answers as the books themselves do, whatever happens to its files."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linked_entries import LINKS

from cleared.books.index.journal_index import EntryFilter, JournalIndex, open_index
from cleared.books.index.month_facts import sum_month
from cleared.books.index.month_memory import index_files
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.entry import STATUSES, ZERO, Bounds, Entry, Leg, entry_to_json, format_entry_id
from cleared.books.ledger.journal import append_entries, parse_month
from cleared.books.ledger.staged_journal import Books
from cleared.books.primitives.journal import find_entries
from cleared.git import Repository, Snapshot
from cleared.workspace.location import Layout
from cleared.workspace.sealed_files import KEY, SealedFiles
from cleared.workspace.settings.loading import load_config

PATHS = locate_books(Layout(Path("/nowhere"), load_config("business: {name: Acme}\n")))
TEXTS = st.text(st.sampled_from('ab Ä"ß,\n;\0'), max_size=6)
Files = dict[tuple[int, int], bytes]


@pytest.fixture(autouse=True, scope="module")
def own_home() -> Iterator[None]:
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patched:
        patched.setenv("CLEARED_HOME", home)
        yield


class FileSource:
    def __init__(self, files: Files) -> None:
        self.files = {PATHS.journal_path(*key): data for key, data in files.items()}

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def list_paths(self, prefix: str) -> list[str]:
        return sorted(self.files)


def index_of(files: Files, state_dir: Path | None, *, stays_open: bool = False) -> JournalIndex:
    return JournalIndex(
        {key: hashlib.sha256(data).hexdigest() for key, data in files.items()},
        lambda key: parse_month(files[key], *key, PATHS.journal_path(*key), 2),
        2,
        index_files(state_dir) if state_dir is not None else None,
        stays_open=stays_open,
    )


@st.composite
def journals(draw: st.DrawFn) -> Files:
    """Some months, one of them perhaps damaged by hand."""
    files: Files = {}
    for key in draw(st.lists(st.sampled_from([(2024, 12), (2025, 1), (2025, 3)]), unique=True)):
        entries = []
        for number in range(1, draw(st.integers(0, 4)) + 1):
            amount = draw(st.integers(1, 10**6).map(lambda n: Decimal(n).scaleb(-2)))
            legs = (Leg(draw(st.sampled_from([5020, 5030])), amount, ZERO), Leg(1010, ZERO, amount))
            status, day = draw(st.sampled_from(STATUSES)), date(*key, draw(st.integers(1, 28)))
            texts = {name: draw(TEXTS) for name in ("description", "counterparty", "reference", "notes", "tags")}
            entries.append(Entry(format_entry_id(*key, number), day, legs=legs, status=status, **texts))
        data = append_entries(None, entries, 2)
        if draw(st.booleans()):
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(st.sampled_from([b"", b"1", b"\n", b"5"])) + data[at + 1 :]
        files[key] = data
    return files


DAYS = (None, date(2025, 1, 10), date(2024, 11, 30), date(2025, 3, 28))


def answers(books: Books) -> list[object]:
    """What can be asked of an index, and of the books."""
    found: list[object] = [list(books.trial_balance(day).items()) for day in DAYS]
    for account in (1010, 5020, 1):
        found += [books.account_balance(account, as_of=day) for day in DAYS]
        found += [books.account_balance(account, year=2025), books.account_balance(account, year=2025, month=1)]
    return found


def index_answers(index: JournalIndex) -> list[object]:
    """The same of an index; of a balance on a day also from one that knows the days around it."""
    found: list[object] = [list(index.day_balances(through=day).trial_balance(day).items()) for day in DAYS]
    for account in (1010, 5020, 1):
        known = index.day_balances({account}, since=date(2024, 11, 1))
        found += [index.day_balances({account}, through=day).balance_on(account, day) for day in DAYS]
        assert found[-len(DAYS) :] == [known.balance_on(account, day) for day in DAYS]
        found += [index.day_balances({account}, year=2025, month=month).balance_on(account) for month in (None, 1)]
    return found


SEARCHES: tuple[dict[str, Any], ...] = (
    {},
    {"year": 2025},
    {"year": 2025, "month": 1},
    {"status": "voided"},
    {"account": 5020},
    {"text": "A"},
    {"text": "SS"},
    {"text": "\0"},
    {"text": "b", "account": 5030, "status": "auto-confirmed"},
)


def check_answers(files: Files, index: JournalIndex) -> None:
    books = Books(FileSource(files), PATHS, Bounds(), LINKS)
    if all(day.startswith(f"{y:04d}-{m:02d}-") for y, m in index.months for day in index.month_sums((y, m)).days):
        assert index_answers(index) == answers(books)  # else a file was damaged, and has another month's entry
    for search in SEARCHES:
        for limit in (None, 0, 2):
            expected = find_entries(
                books,
                search.get("status"),
                search.get("year"),
                search.get("month"),
                search.get("account"),
                search.get("text"),
                limit,
            )
            assert list(index.iter_entries(EntryFilter(**search), limit=limit)) == expected
            assert list(index.iter_dicts(EntryFilter(**search), limit=limit)) == list(map(entry_to_json, expected))
    every = list(books.iter_entries())
    assert index.count_entries() == len(every) == sum(index.count_statuses().values())
    assert index.used_accounts() == {leg.account_id for e in every for leg in e.legs}


@pytest.mark.slow
@given(journals())
@settings(max_examples=40, deadline=None)
def test_an_index_answers_as_the_books_do(files: Files) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_answers(files, index_of(files, None))
        check_answers(files, index_of(files, Path(folder) / ".cleared"))  # makes its files
        check_answers(files, index_of(files, Path(folder) / ".cleared"))  # reads them
        check_answers(files, index_of(files, Path(folder) / ".cleared", stays_open=True))


def test_an_index_that_stays_open_lets_a_month_go_that_has_changed(tmp_path: Path) -> None:
    """The page and the service read the month again after each commit."""
    before = index_of(_one_month(), tmp_path, stays_open=True)
    seen = weakref.ref(before.month_entries((2025, 1)))
    assert before.month_entries((2025, 1)) is seen()
    changed = {(2025, 1): _one_month()[2025, 1].replace(b",4.00,", b",5.00,")}
    after = index_of(changed, tmp_path, stays_open=True)
    check_answers(changed, after)
    gc.collect()
    assert seen() is None
    check_answers(_one_month(), before)


def test_a_journal_that_says_nothing_twice_is_shown_alike() -> None:
    """An amount of zero, both sides, neither side: what a hand may write."""
    data = _one_month()[2025, 1].decode()
    for old, new in ((",4.00,,", ",0.00,,"), (",4.00,,", ",4.00,4.00,"), (",4.00,,", ",,,"), (",,4.00,", ",,0.00,")):
        check_answers(
            {(2025, 1): data.replace(old, new).encode()}, index_of({(2025, 1): data.replace(old, new).encode()}, None)
        )


def _tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _rot(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) * 2 // 3] ^= 1
    file.write_bytes(data)


def _plant(file: Path) -> None:
    """As somebody writes it who can push, and does not have this user's key."""
    sealed = index_files(file.parent.parent)
    sealed._key = b"x" * 32
    sealed.write(file.name, file.read_bytes()[32:].replace(b"5", b"6"))


def _swap(file: Path) -> None:
    """Another month's file, or this month's of another time, under this name."""
    for other in file.parent.iterdir():
        if other.suffix == file.suffix and other != file:
            shutil.copy(other, file)


def _link(file: Path) -> None:
    moved = file.with_name("elsewhere")
    file.replace(moved)
    file.symlink_to(moved)


DAMAGES: tuple[Callable[[Path], object], ...] = (
    _tear,
    _rot,
    _plant,
    _swap,
    _link,
    Path.unlink,
    lambda f: f.write_bytes(b""),
    lambda f: f.write_bytes(os.urandom(99)),
)


@pytest.mark.slow
@given(journals(), st.data())
@settings(max_examples=40, deadline=None)
def test_a_damaged_index_changes_no_answer(files: Files, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / ".cleared"
        check_answers(files, index_of(files, state))
        for file in sorted((state / "books").glob("*-*")) if (state / "books").is_dir() else ():
            if data.draw(st.booleans()):
                data.draw(st.sampled_from(DAMAGES))(file)
        check_answers(files, index_of(files, state))
        check_answers(files, index_of(files, state))
        shutil.rmtree(state, ignore_errors=True)
        check_answers(files, index_of(files, state))


def _one_month(amount: str = "4.00") -> Files:
    legs = (Leg(5020, Decimal(amount), ZERO), Leg(1010, ZERO, Decimal(amount)))
    return {(2025, 1): append_entries(None, [Entry("2025-01-001", date(2025, 1, 5), "x", legs)], 2)}


@contextmanager
def refused_parsing() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("cleared.books.ledger.journal.parse_month", lambda *_: pytest.fail("a journal was parsed"))
        yield


def test_a_file_of_another_version_of_the_program_does_not_count(tmp_path: Path) -> None:
    files = SealedFiles(tmp_path / ".cleared", b"1")
    files.write("a", b"content")
    assert SealedFiles(tmp_path / ".cleared", b"1").read("a") == b"content"
    assert SealedFiles(tmp_path / ".cleared", b"2").read("a") is None
    assert SealedFiles(tmp_path / ".cleared", b"").read("a") is None


def test_without_a_key_that_is_this_users_alone_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("CLEARED_HOME", str(home))
    (tmp_path / "ws").mkdir()
    files, state = _one_month(), tmp_path / "ws/.cleared"
    check_answers(files, index_of(files, state))
    (home / KEY).chmod(0o644)
    assert index_files(state).read(next((state / "books").iterdir()).name) is None
    check_answers(files, index_of(files, state))
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "ws/home"))  # who can write to the books could read the key
    check_answers(files, index_of(files, state))
    assert not (tmp_path / "ws/home").exists()


def test_a_disk_that_takes_nothing_changes_no_answer(tmp_path: Path) -> None:
    (tmp_path / ".cleared").write_bytes(b"in the way")
    files = _one_month()
    check_answers(files, index_of(files, tmp_path / ".cleared"))


def test_old_files_go_and_those_of_the_commit_stay(tmp_path: Path) -> None:
    for n in range(1, 40):
        files = _one_month(f"{n}.00")
        index_of(files, tmp_path / ".cleared").month_sums((2025, 1))
    names = [p.name for p in (tmp_path / ".cleared/books").iterdir()]
    assert len(names) == 2 + 24
    assert sum(hashlib.sha256(files[2025, 1]).hexdigest() in name for name in names) == 2


def test_postings_are_the_ledger_of_an_account() -> None:
    index = index_of(_one_month(), None)
    (posting,) = index.iter_postings(EntryFilter(account=1010, start=date(2025, 1, 5), end=date(2025, 1, 5)))
    assert (posting.leg_id, posting.debit, posting.credit, posting.entry.description) == (
        "2025-01-001b",
        ZERO,
        Decimal("4.00"),
        "x",
    )
    assert not list(index.iter_postings(EntryFilter(account=1010, start=date(2025, 1, 6))))
    assert [p.account_id for p in index.iter_postings()] == [5020, 1010]
    assert index.find_entry("2025-01-001") == posting.entry
    assert index.find_entry("2025-01-002") is None


def test_a_commit_is_answered_without_a_parse(posted: Any) -> None:
    """Once its months are indexed, also where only another file has changed since."""
    with Repository.open(posted.root, for_writing=False) as repo:
        layout = Layout(posted.root, load_config((posted.root / "config.yaml").read_text()))
        index = open_index(layout, Snapshot(repo, repo.read_head()), 2)
        expected = index.day_balances().trial_balance(), list(index.iter_entries())
        assert expected[1] and sum(expected[0].values()) == 0
        with refused_parsing():
            again = open_index(layout, Snapshot(repo, repo.read_head()), 2)
            assert (again.day_balances().trial_balance(), list(again.iter_entries())) == expected


def test_sums_count_in_the_smallest_unit() -> None:
    month = parse_month(_one_month("12.50")[2025, 1], 2025, 1, "j", 2)
    assert sum_month(month, 2).accounts == {5020: (1250, 0), 1010: (0, 1250)}
