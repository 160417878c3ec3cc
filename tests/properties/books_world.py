"""Books in a dictionary instead of a repository: the primitives through dispatch, the seal's checks, no git."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from closed_books import digest_entries
from linked_entries import LINKS

from cleared.books.audit.books_check import check_books
from cleared.books.books_draft import BooksDraft
from cleared.books.importing.drop_folder import ImportSession
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.checks import check_draft
from cleared.books.ledger.entry import Bounds
from cleared.books.ledger.periods import PeriodMark, append_mark
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.cards.card import Card
from cleared.cards.card_draft import CardDraft
from cleared.cards.queue_files import load_cards
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import RecordsViolated
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.input_files import InputFiles
from cleared.primitives import primitive_registry
from cleared.primitives.context import Context, HostCalls
from cleared.primitives.dispatch import Dispatcher
from cleared.primitives.loop_jobs import WorkspaceLoop
from cleared.primitives.registry.vocabulary import DecodingContext
from cleared.primitives.watched_files import WatchedFiles
from cleared.workspace.location import Layout
from cleared.workspace.settings.loading import load_config as load_config
from cleared.workspace.template import read_starter_chart

HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONFIG = """
business: {name: Acme}
bank_accounts:
  - {id: checking, name: Checking, type: checking, ledger_account: 1010, format: chase_checking}
  - {id: other, name: Other, type: checking, ledger_account: 1020, format: with_ids}
import:
  profiles:
    with_ids:
      columns: {date: Date, description: Text, amount: Amount, id: Id}
      date_format: "%Y-%m-%d"
"""
Row = tuple[date, str, Decimal]
Do = Callable[..., Any]


@lru_cache(maxsize=1)
def config() -> Any:
    return load_config(CONFIG)


def chase(rows: list[Row], opening: Decimal | None = None) -> bytes:
    """Newest first, as the bank gives them; with ``opening`` there is a running balance."""
    lines, balance = [], opening
    for day, text, amount in rows:
        balance = None if balance is None else balance + amount
        shown = "" if balance is None else str(balance)
        quoted = '"' + text.replace('"', '""') + '"'
        lines.append(f"{'DEBIT' if amount < 0 else 'CREDIT'},{day:%m/%d/%Y},{quoted},{amount},ACH,{shown},,\n")
    return (HEADER + "".join(reversed(lines))).encode()


def with_ids(rows: list[tuple[date, str, Decimal, str]]) -> bytes:
    return ("Date,Text,Amount,Id\n" + "".join(f"{d},{t},{a},{i}\n" for d, t, a, i in rows)).encode()


class DictSource:
    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def list_paths(self, prefix: str) -> list[str]:
        return sorted(p for p in self.files if not prefix or p.startswith(prefix + "/"))


class World:
    """A workspace whose commits are dictionaries; the drop folder alone is on disk."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.root = Path(self._folder.name)
        (self.root / "import/processed").mkdir(parents=True)
        self.layout = Layout(self.root, config())
        self.paths = locate_books(self.layout)
        self.files: dict[str, bytes] = {"accounts/chart-of-accounts.csv": read_starter_chart("llc_single_member")}
        self.runs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def source(self) -> DictSource:
        return DictSource(self.files)

    def books(self) -> Books:
        return Books(self.source, self.paths, Bounds(), LINKS)

    def bank(self) -> BankBook:
        return BankBook(self.source, self.paths)

    def cards(self) -> list[Card]:
        return list(load_cards(self.source, "queue").values())

    def check(self) -> None:
        books = self.books()
        assert check_books(books, self.bank()) == []
        assert sum(books.trial_balance().values()) == 0
        for year, month in books.list_months():
            numbers = list(books.committed_month(year, month).entries)
            assert numbers == list(range(1, len(numbers) + 1))

    def balances(self) -> dict[int, Decimal]:
        return {account: amount for account, amount in self.books().trial_balance().items() if amount}

    # -- changing -----------------------------------------------------------------------------------------------

    def run(self, script: Callable[[Do], object]) -> Context:
        """``script(call)`` as a run: it is all in the books, or an exception and nothing."""
        self.runs += 1
        source = DictSource(dict(self.files))
        books, bank = Books(source, self.paths, Bounds(), LINKS), BankBook(source, self.paths)
        imports = ImportSession(self.layout, config(), books, bank, lambda path: path in self.files)
        context = Context(
            run_id=f"run-{self.runs}",
            agent="test",
            config=config(),
            env=DecodingContext(),
            source=source,
            cards=CardDraft(source, "queue"),
            now=NOW,
            today=NOW.date(),
            dry_run=False,
            event={},
            host=HostCalls(lambda _: None, lambda _: [], lambda *_: None, lambda: None),
            loop=WorkspaceLoop(self.root, config()),
            files=WatchedFiles(
                self.root, 1 << 20, InputFiles(self.root, ManagedFiles(self.layout), ForbiddenFiles(self.root))
            ),
            parts={"books": BooksDraft(self.layout, books, bank, imports, {"checking": 1010, "other": 1020})},
        )
        imports.card = context.stage_card
        door = Dispatcher(primitive_registry(), context, context.env, monotonic=time.monotonic)
        script(lambda name, *args, **kwargs: door.call_primitive(name, args, kwargs))
        if door.failure is not None:
            raise door.failure
        violations = check_draft(books, bank)
        if violations:
            raise RecordsViolated(violations)
        imports.verify_unchanged()
        for path, file in imports.list_moves().items():
            self.files[str(file.processed_as)] = file.data
            (self.root / path).unlink()
        self.files |= books.render_files() | bank.render_files(context.run_id) | context.cards.changed_files()
        return context

    def drop(self, name: str, data: bytes) -> None:
        (self.root / "import" / name).write_bytes(data)

    def ingest(self) -> Context:
        """What the starter does, in short: every new row is an entry."""
        return self.run(ingest)

    def mark(self, through: date, state: str) -> None:
        books = self.books()
        digest = digest_entries(books, through) if through > date.min else ""
        path = self.paths.periods
        mark = PeriodMark(through, state, "me", "2026-01-01T00:00:00Z", "why", digest)
        self.files[path] = append_mark(self.files.get(path), mark)


def ingest(call: Do) -> None:
    for file in call("importer_scan"):
        for txn in call("importer_parse", file["name"]):
            amount, bank = txn["amount"], txn["ledger_account"]
            debit, credit = (5030, bank) if amount < 0 else (bank, 4010)
            call(
                "journal_add_double",
                date=txn["date"],
                description=txn["description"],
                debit_account=debit,
                credit_account=credit,
                amount=abs(amount),
                reference=txn["reference"],
            )
        call("importer_mark_processed", file["name"])
