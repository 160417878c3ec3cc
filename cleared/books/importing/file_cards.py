"""The cards about bank files: repeated rows, similar rows, revised rows, gaps in the balance.

None of these stops an import.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator
from datetime import date
from decimal import Decimal
from typing import Any, Final

from cleared.base import money
from cleared.base.clock import check_deadline
from cleared.books.card_kinds import BALANCE_GAP, LINE, NEAR_MATCH, REVISION
from cleared.books.importing.bank_file import ImportFile, find_balance_gaps, find_statement_gaps
from cleared.books.index.past_lines import PastLines
from cleared.books.ledger.bank_lines import BankLine, normalise_description
from cleared.books.ledger.bank_row import BankRow
from cleared.books.ledger.import_records import ImportRecord
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.cards.card import card_id
from cleared.cards.kinds import DUPLICATE_FILE

StageCard = Callable[..., Any]
"""Stages a card: kind, key, title, ``**details``."""
NEAR: Final = "near"
"""What stands in the key of a card about similar rows, behind the digest of the file."""
AS_OTHER_FORMAT: Final = "the same line of a file in another format"
"""Why a row was left out that has another identity than the line before."""
AFTER_UNDO: Final = "posted anew: the import that had brought the line was undone"
"""Of a row that was not left out, though the line is recorded already."""


def stage_overlap(file: ImportFile, before: list[ImportRecord], bank: BankBook, card: StageCard) -> None:
    """Rows that came before and were left out: a card for the file, unless the bank says itself of each row that it is
    the same. Who downloads files that overlap is not asked about each."""
    if not file.duplicates:
        return
    by_number, unsure_days = {row.row: row for row in file.rows}, _list_unsure_days(file, bank)
    same = next((r for r in before if r.file_sha256 == file.sha256), None)
    if same is None and all(
        _is_surely_known(by_number[number], bank.find_line(line_id), note, unsure_days)
        for number, line_id, note in file.duplicates
    ):
        return
    doubtful = [d for d in file.duplicates if d[2] not in ("", AS_OTHER_FORMAT)]
    if same:
        title = f"{file.name} is the same file as {same.name}, imported {same.imported_at[:10]}"
    else:
        title = f"{file.name}: {len(file.duplicates)} of {len(file.rows)} rows came before and were left out"
        if doubtful:
            title += f"; {len(doubtful)} of them carry another balance and may be missing"
    rows: list[dict[str, Any]] = []
    for row, line_id, note in file.duplicates[:50]:
        shown: dict[str, Any] = {"row": row}
        earlier = bank.find_line(line_id)
        if earlier is not None:
            line = earlier[1]
            shown |= {
                "date": str(line.posted_date),
                "amount": money.format_amount(line.amount),
                "text": line.description,
            }
        rows.append({**shown, "line": line_id, "note": note})
    card(
        DUPLICATE_FILE.name,
        (file.sha256, file.name),
        title,
        file=file.processed_as,
        account=file.account.id,
        rows=rows,
        omitted=len(file.duplicates),
    )


def list_overlap_ids(record: ImportRecord) -> list[str]:
    """Those that a card of ``stage_overlap`` about an imported file has: of a file of one account, or of several."""
    names = (record.name, f"{record.name}/{record.account}")
    return [card_id(DUPLICATE_FILE.name, record.file_sha256, name) for name in names]


def _list_unsure_days(file: ImportFile, bank: BankBook) -> set[date]:
    """Days on which a balance may be that of two rows: a file may begin and end within a day, and what comes and goes
    on one brings its balance back. Of the days in between it has all rows, and equal ones are counted."""
    days, unsure = {row.posted_date for row in file.rows}, set[date]()
    for day in {min(days), max(days)}:
        amounts = [row.amount for row in file.rows if row.posted_date == day]
        lines = bank.iter_lines_between(file.account.id, day, day)
        amounts += [line.amount for line in lines if line.posted_date == day]
        if min(amounts) < 0 < max(amounts):
            unsure.add(day)
    return unsure


def _is_surely_known(
    row: BankRow, earlier: tuple[str, BankLine] | None, note: str, unsure_days: Collection[date]
) -> bool:
    """Whether a row that is left out has the day of the earlier line, and its balance, or its id of the bank and text:
    some banks make ids of the day and amount alone."""
    if note or earlier is None or row.posted_date != (line := earlier[1]).posted_date:
        return False
    if row.balance is not None and row.balance == line.balance_after and row.posted_date not in unsure_days:
        return True
    is_same_text = normalise_description(row.description) == normalise_description(line.description)
    return row.bank_id != "" and row.bank_id == line.bank_id and is_same_text


def describe_repeat(earlier: BankLine, balance: Decimal | None) -> str:
    """Why a row that is left out, as the line came before, may be another one all the same; empty: nothing says so."""
    differs = None not in (earlier.balance_after, balance) and earlier.balance_after != balance
    return "another running balance" if differs else ""


def describe_line(line: BankLine) -> str:
    """A bank line in a sentence."""
    return f"{line.posted_date} {money.format_amount(line.amount)} {line.description[:80]!r}"


def stage_held_line(line: BankLine, why: str, card: StageCard) -> None:
    """A row that is neither posted nor left out: posted or set aside by whoever answers the card."""
    is_foreign = line.state == "foreign"
    amount = f"{line.amount} {line.currency}" if is_foreign else line.amount
    title = f"{line.posted_date} {amount} {line.description[:80]}: {why}"[:300]
    card(
        LINE.name,
        (line.line_id,),
        title,
        line=line.line_id,
        date=str(line.posted_date),
        amount=str(line.amount),
        text=line.description,
        **({"currency": line.currency} if is_foreign else {}),
    )


def stage_revisions(file: ImportFile, bank: BankBook, past: PastLines, card: StageCard) -> None:
    """The same bank id with another amount, whether it came in an earlier run or in another file of this one; also
    where the line came in another format, and its id with a later file. A held row may revise one, too."""
    account = file.account.id
    fresh = [line for line in (*file.new, *file.held) if line.bank_id and line.state == "posted"]
    if not fresh:
        return
    posted: dict[str, list[BankLine]] = {}
    taken = (line for owner, line in bank.new_lines.values() if owner == account)
    wanted = {line.bank_id for line in fresh}
    known = past.list_with_bank_ids(account, wanted)
    committed = (line for line in known if line.line_id not in bank.released_line_ids)
    lines = ((line.bank_id, line) for line in itertools.chain(committed, taken))
    for bank_id, line in itertools.chain(lines, _iter_later_ids(bank, past, account, wanted)):
        if bank_id in wanted and line.state == "posted":
            posted.setdefault(bank_id, []).append(line)
    for line in check_deadline(fresh):
        for other in posted.get(line.bank_id, ()):
            if other.amount == line.amount:
                continue
            outcome = bank.find_outcome(other.line_id) if not bank.posted_amount(other.line_id) else None
            if outcome is None or outcome.counts not in [each.line_id for each in posted[line.bank_id]]:
                card(
                    REVISION.name,
                    (line.line_id, other.line_id),
                    f"{account}: the bank reported {line.bank_id} as {other.amount}, now as {line.amount}",
                    file=file.name,
                    row=line.row,
                    before=money.format_amount(other.amount),
                    after=money.format_amount(line.amount),
                    earlier=other.line_id,
                    line=line.line_id,
                    rows=[
                        {"date": str(x.posted_date), "amount": money.format_amount(x.amount), "text": x.description}
                        for x in (other, line)
                    ],
                )


def _iter_later_ids(
    bank: BankBook, past: PastLines, account: str, wanted: Collection[str]
) -> Iterator[tuple[str, BankLine]]:
    """Those of the bank's ids that lines of an account came without, each with its line."""
    standing = {each.file_sha256 for each in bank.imports}
    staged = ((file, line_id, bank_id) for _, file, _, line_id, _, bank_id in bank.new_duplicates if bank_id)
    for file, line_id, bank_id in itertools.chain(past.list_later_ids(), staged):
        found = bank.find_line(line_id) if bank_id in wanted and file in standing else None
        if found is not None and found[0] == account and line_id not in bank.released_line_ids:
            yield bank_id, found[1]


def _file_key(file: ImportFile, about: str) -> tuple[str, ...]:
    part = () if file.name == file.file_name else (file.account.id,)
    return (file.sha256, about, *part)


def stage_near_matches(file: ImportFile, before: list[ImportRecord], bank: BankBook, card: StageCard) -> None:
    """Same amount within five days, other text, where the two files should both have said it."""
    if not before or not file.new:
        return
    repeated = {line_id for _, line_id, _ in file.duplicates}
    days = [row.posted_date.isoformat() for row in file.rows]
    low, high = min(days), max(days)
    pairs = []
    for line in check_deadline(file.new):
        for other in bank.find_similar_lines(file.account.id, line):
            day = line.posted_date.isoformat()
            covered = low <= other.posted_date.isoformat() <= high or any(
                r.first_date <= day <= r.last_date for r in before if r.file_sha256 == other.file_sha256
            )
            if covered and other.line_id not in repeated and other.file_sha256 != file.sha256:
                pairs.append((line, other))
                break
    if pairs:
        like = (
            "1 new row looks like an earlier one"
            if len(pairs) == 1
            else f"{len(pairs)} new rows look like earlier ones"
        )
        card(
            NEAR_MATCH.name,
            _file_key(file, NEAR),
            f"{file.name}: {like} under another text or id; both were kept",
            account=file.account.id,
            rows=[
                {
                    "row": a.row,
                    "date": str(a.posted_date),
                    "amount": money.format_amount(a.amount),
                    "text": a.description,
                    "earlier": b.description,
                    "earlier_date": str(b.posted_date),
                    "line": b.line_id,
                }
                for a, b in pairs[:50]
            ],
        )


def stage_gaps(
    file: ImportFile, record: ImportRecord, before: list[ImportRecord], bank: BankBook, card: StageCard
) -> None:
    """A running balance that jumps, within the file or between it and its neighbours in time. What files without
    balances have brought of the days between counts."""

    def sum_between(first: str, last: str) -> Decimal:
        lines = bank.iter_lines_between(file.account.id, date.fromisoformat(first), date.fromisoformat(last))
        return money.total([line.amount for line in lines if first < line.posted_date.isoformat() < last])

    gaps = [*find_balance_gaps(file.list_in_time()), *find_statement_gaps(file.statements)]
    earlier = [r for r in before if r.closing_balance and r.last_date < record.first_date]
    later = [r for r in before if r.opening_balance and r.first_date > record.last_date]
    # Where another file reaches over this one's end, the two join there; what lies beyond it is its affair.
    if any(r.first_date <= record.first_date <= r.last_date for r in before):
        earlier = []
    if any(r.first_date <= record.last_date <= r.last_date for r in before):
        later = []
    balances = [(r.last_date, Decimal(r.closing_balance)) for r in earlier]
    opening = file.account.opening
    if opening is not None and not before and opening.date.isoformat() < record.first_date:
        balances.append((opening.date.isoformat(), opening.balance))
    if balances and record.opening_balance:
        day, balance = max(balances, key=lambda pair: pair[0])
        missing = Decimal(record.opening_balance) - balance - sum_between(day, record.first_date)
        if missing:
            gaps.append((day, record.first_date, missing))
    if later and record.closing_balance:
        next_ = min(later, key=lambda r: r.first_date)
        missing = Decimal(next_.opening_balance) - Decimal(record.closing_balance)
        missing -= sum_between(record.last_date, next_.first_date)
        if missing:
            gaps.append((record.last_date, next_.first_date, missing))
    if gaps:
        start, end, amount = gaps[0]
        more = f" and {len(gaps) - 1} more" if len(gaps) > 1 else ""
        card(
            BALANCE_GAP.name,
            _file_key(file, "gap"),
            f"{file.name}: the running balance jumps by {amount} between {start} and {end}{more}",
            account=file.account.id,
            gaps=[{"after": a, "before": b, "missing": money.format_amount(m)} for a, b, m in gaps[:50]],
        )
