"""What people decide of the chart of accounts: adding, renaming, closing and reopening an account. One commit each."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.base.csv_text import encode, format_record, read_records
from cleared.base.errors import PolicyError, UsageError
from cleared.base.terminal import count_noun
from cleared.books.decisions import book_subjects
from cleared.books.ledger.chart import HEADER, INCOME_TYPES, OPTIONAL, TYPES, Account, Chart, parse_chart
from cleared.books.ledger.staged_journal import Books
from cleared.books.staged_books import books_of
from cleared.changes.commit_messages import CommitSubject
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.host import Host
from cleared.domains.installed_domains import parse_header

MAX_TEXT: Final = 200
"""Characters of a name, a tax line or a description."""
_MAX_SHOWN: Final = 3


def add_account(
    host: Host,
    account_id: int,
    name: str,
    account_type: str,
    *,
    parent: int | None = None,
    tax_line: str = "",
    description: str = "",
) -> str:
    """Add an account to the chart; the commit.

    Raises ``UsageError`` for texts that cannot stand in the chart, ``PolicyError`` where the number is taken, or the
    parent is missing, closed, of another type or has entries of its own.
    """
    if not 0 < account_id < 10**9:
        raise UsageError(f"{account_id} is not an account number", remedy="Use one to nine digits, such as 5080.")
    if account_type not in TYPES:
        raise UsageError(f"{account_type!r} is not an account type", remedy=f"Use one of {', '.join(TYPES)}.")
    name = _check_text("name", name, required=True)
    row = [
        str(account_id),
        name,
        account_type,
        str(parent or ""),
        _check_text("tax line", tax_line),
        _check_text("description", description),
        "",
        "",
        "",
        "",
    ]

    def add(rows: list[list[str]], decision_context: DecisionContext) -> CommitSubject:
        existing = books_of(decision_context.context).books.chart.find_account(account_id)
        if existing is not None:
            raise PolicyError(
                f"account {account_id} stands in the chart already: {existing.account_name} ({existing.account_type})",
                remedy="Take another number, or rename it: cleared accounts rename.",
            )
        if parent is not None:
            heading = _require_open(books_of(decision_context.context).books.chart, parent)
            if heading.account_type != account_type:
                raise PolicyError(
                    f"account {parent} {heading.account_name} is for {heading.account_type}, not for {account_type}",
                    remedy="An account lies below one of its own type.",
                )
        rows.insert(find_place(rows, account_id), row)
        return book_subjects.account_added(account_id, name)

    return _commit_chart(host, f"accounts add {account_id}", (account_id, *([parent] if parent else [])), add)


def rename_account(host: Host, account_id: int, name: str) -> str:
    """Give an account another name; its number and its entries stay. The commit.

    Raises ``UsageError`` where there is no such account, ``PolicyError`` where it has that name already.
    """
    name = _check_text("name", name, required=True)

    def rename(rows: list[list[str]], decision_context: DecisionContext) -> CommitSubject:
        account = _require_account(books_of(decision_context.context).books.chart, account_id)
        if account.account_name == name:
            raise PolicyError(f"account {account_id} is called {name} already", remedy="Nothing is to be done.")
        _find_row(rows, account_id)[1] = name
        return book_subjects.account_renamed(account_id, account.account_name, name)

    return _commit_chart(host, f"accounts rename {account_id}", (account_id,), rename)


def close_account(host: Host, account_id: int, on: date | None = None) -> str:
    """Take no new entry into an account from a day on (default: today); the commit.

    Raises ``UsageError`` where there is no such account, ``PolicyError`` where it is closed, has a balance, has entries
    from that day on, or is used by a bank account, an agent or an account below it.
    """

    def close(rows: list[list[str]], decision_context: DecisionContext) -> CommitSubject:
        books = books_of(decision_context.context).books
        account = _require_open(books.chart, account_id)
        day = on or decision_context.context.today
        _refuse_balance(books, account, day)
        uses = _find_uses(decision_context, account_id)
        if uses:
            raise PolicyError(
                f"account {account_id} {account.account_name} is in use: {'; '.join(uses)}",
                remedy="Have each use another account first.",
            )
        row = _find_row(rows, account_id)
        row[8], row[9] = "closed", day.isoformat()
        return book_subjects.account_closed(account_id, account.account_name, day)

    return _commit_chart(host, f"accounts close {account_id}", (account_id,), close)


def reopen_account(host: Host, account_id: int) -> str:
    """Let a closed account take entries again; the commit.

    Raises ``UsageError`` where there is no such account, ``PolicyError`` where it is open.
    """

    def reopen(rows: list[list[str]], decision_context: DecisionContext) -> CommitSubject:
        account = _require_account(books_of(decision_context.context).books.chart, account_id)
        if account.status != "closed":
            raise PolicyError(f"account {account_id} {account.account_name} is open", remedy="Nothing is to be done.")
        row = _find_row(rows, account_id)
        row[8] = row[9] = ""
        return book_subjects.account_reopened(account_id, account.account_name)

    return _commit_chart(host, f"accounts reopen {account_id}", (account_id,), reopen)


def _commit_chart(
    host: Host,
    command: str,
    touched: tuple[int, ...],
    change: Callable[[list[list[str]], DecisionContext], CommitSubject],
) -> str:
    """Commit a changed chart. ``change`` edits its rows, all columns wide, and gives the commit's first line.

    ``touched``: the accounts of which no entry may become wrong by it.
    """

    def stage_change(decision_context: DecisionContext) -> Decision:
        books = books_of(decision_context.context).books
        path = books.paths.chart
        parse_chart(books.source.read(path), path)  # which says what is wrong with one that is damaged or missing
        committed = books.source.read(path) or b""
        rows = [row for _, row in read_records(committed, HEADER, optional=OPTIONAL)]
        message = change(rows, decision_context)
        data = render_chart(rows, committed)
        _refuse_wrong_entries(books, parse_chart(data, path), touched)
        decision_context.context.log_action(
            command.replace(" ", "_", 1).partition(" ")[0], message.removeprefix("accounts: ")
        )
        return Decision(message, {path: data}, subject=(command,))

    return require_commit(commit_decision(host, command, stage_change, collects=[]))


def render_chart(rows: list[list[str]], before: bytes) -> bytes:
    """The chart's file; with as many columns as it had, or as are needed now."""
    had = before.split(b"\n", 1)[0].count(b",") + 1
    columns = [*HEADER, *OPTIONAL]
    needed = max((n + 1 for row in rows for n, text in enumerate(row) if text), default=0)
    width = max(had, len(columns) if needed > had else len(HEADER))
    return encode("".join(format_record(row[:width]) for row in (columns, *rows)))


def find_place(rows: list[list[str]], account_id: int) -> int:
    """Where a new account stands: by its number, as in most charts; at the end of one with an order of its own."""
    numbers = [int(row[0]) for row in rows]
    return bisect_left(numbers, account_id) if numbers == sorted(numbers) else len(rows)


def _find_row(rows: list[list[str]], account_id: int) -> list[str]:
    return next(row for row in rows if int(row[0]) == account_id)


def _check_text(name: str, text: str, *, required: bool = False) -> str:
    """A text as it stands in the chart: one line, no blanks around it. Raises ``UsageError``."""
    text = text.strip()
    if (required and not text) or len(text) > MAX_TEXT or not text.isprintable():
        raise UsageError(
            f"{text[:60]!r} cannot be the {name} of an account",
            remedy=f"Write {'one to' if required else 'at most'} {MAX_TEXT} characters on one line.",
        )
    return text


def _require_account(chart: Chart, account_id: int) -> Account:
    account = chart.find_account(account_id)
    if account is None:
        message, remedy = chart.why_not_postable(account_id, date.min) or ("", "")
        raise UsageError(message, remedy=remedy)
    return account


def _require_open(chart: Chart, account_id: int) -> Account:
    account = _require_account(chart, account_id)
    if account.status == "closed":
        since = f" since {account.closed_on}" if account.closed_on else ""
        raise PolicyError(
            f"account {account_id} {account.account_name} is closed already{since}",
            remedy=f"Use an open account, or open it again: cleared accounts reopen {account_id}.",
        )
    return account


def _refuse_balance(books: Books, account: Account, day: date) -> None:
    """Raises ``PolicyError`` where something stands on the account: ever, or for income and expenses in this year."""
    year = day.year if account.account_type in INCOME_TYPES else None
    balance: Decimal = books.account_balance(account.account_id, year=year)
    if balance:
        raise PolicyError(
            f"account {account.account_id} {account.account_name} has a balance of {money.format_amount(balance)}"
            + (f" in {year}" if year else ""),
            remedy=f"Close it from the next year on: --on {year + 1}-01-01."
            if year
            else "Move it to another account first: cleared queue correct ENTRY --account N.",
        )


def _refuse_wrong_entries(books: Books, chart: Chart, touched: tuple[int, ...]) -> None:
    """Raises ``PolicyError`` where entries that stand would be wrong under the new chart."""
    wrong, reason = [], ""
    for entry in books.iter_entries():
        for leg in entry.legs:
            why = chart.why_not_postable(leg.account_id, entry.date) if leg.account_id in touched else None
            if why is not None:
                wrong.append(entry.entry_id)
                reason = why[0]
    if wrong:
        shown = ", ".join(wrong[-_MAX_SHOWN:]) + (f" and {len(wrong) - _MAX_SHOWN} more" if wrong[_MAX_SHOWN:] else "")
        raise PolicyError(
            f"{count_noun(len(wrong), 'entry', 'entries')} would be wrong then ({reason}): {shown}",
            remedy="Choose a later day, or another account.",
        )


def _find_uses(decision_context: DecisionContext, account_id: int) -> list[str]:
    """Who would go on posting to the account: bank accounts, agents that name it, accounts below it."""
    host, chart = decision_context.host, books_of(decision_context.context).books.chart
    uses = [
        f"bank account {b.id} (config.yaml: bank_accounts)"
        for b in host.config.bank_accounts
        if b.ledger_account == account_id
    ]
    for path in sorted(decision_context.snapshot.list_entries(host.layout.agents_dir)):
        if path.endswith(".py") and path.count("/") == 1:
            source = (decision_context.snapshot.read_file(path) or b"").decode("utf-8", errors="replace")
            header, _ = parse_header(source, path)
            if header is not None and account_id in (header.value_of("accounts") or ()):
                uses.append(f"agent {header.name} (accounts: in {path})")
            elif (line := _find_number(source, account_id)) is not None:
                uses.append(f"agent {path.rpartition('/')[2].removesuffix('.py')} ({path}:{line})")
    below = [str(a.account_id) for a in chart.accounts.values() if a.parent_id == account_id and a.status != "closed"]
    return [*uses, *([f"it is the heading of {', '.join(below[:5])}"] if below else [])]


def _find_number(source: str, number: int) -> int | None:
    """The line on which a script has a number; None where it has it nowhere, or cannot be parsed."""
    try:
        nodes = ast.walk(ast.parse(source))
        found = (n for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int and n.value == number)
        return min((n.lineno for n in found), default=None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
