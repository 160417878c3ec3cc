"""The cards about bank files: refused files, repeated rows, similar rows, revised rows, gaps in the balance.

None of these stops an import.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from cleared.cards.kinds import BAD_FILE, BALANCE_GAP, DUPLICATE_FILE, LINE, NEAR_MATCH, REVISION
from cleared.deadline import check_deadline
from cleared.errors import ClearedError, Place
from cleared.importing.bank_file import ImportFile, find_balance_gaps, find_statement_gaps
from cleared.ledger.bank_lines import BankLine, ImportRecord
from cleared.ledger.staged_bank_lines import BankBook
from cleared.safe_files import read_stable
from cleared.schema import money
from cleared.workspace.drop_names import escape_name

StageCard = Callable[..., Any]
"""Stages a card: kind, key, title, ``**details``."""
AS_OTHER_FORMAT: Final = "the same line of a file in another format"
"""Why a row was left out that has another identity than the line before."""
AFTER_UNDO: Final = "posted anew: the import that had brought the line was undone"
"""Of a row that was not left out, though the line is recorded already."""
MAX_HASHED_LINES: Final = 500


def hash_lines(data: bytes) -> list[str]:
    """Something short for each line of a file, by which another file that holds the same lines is known."""
    return [hashlib.sha256(line.strip()).hexdigest()[:8] for line in data.splitlines()]


def read_fingerprint(path: Path, max_bytes: int, place: Place | None) -> dict[str, Any]:
    """What a file that could not be read is known by later: its digest, its lines, the line that was wrong; of no
    interest to people."""
    try:
        data, _ = read_stable(path, max_bytes)
    except ClearedError:
        return {}
    fingerprint: dict[str, Any] = {"sha256": hashlib.sha256(data).hexdigest()}
    if place is not None and place.line is not None and data.count(b"\n") <= MAX_HASHED_LINES:
        fingerprint |= {"line": place.line, "lines": hash_lines(data)}
    return {"_known_by": fingerprint}


_MAX_NAMED: Final = 50
_MAX_REFUSAL_KINDS: Final = 20
_VARIABLE_PART: Final = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9]+")


def stage_refusals(
    refused: Mapping[str, ClearedError], folder: Path, shown: str, max_bytes: int, card: StageCard
) -> None:
    """Files that could not be read: one card for each kind of refusal, however many files it met."""
    kinds: dict[str, list[str]] = {}
    for name, error in refused.items():
        kind = type(error).__name__ + _VARIABLE_PART.sub("", error.message.replace(name, ""))
        kinds.setdefault(kind if kind in kinds or len(kinds) < _MAX_REFUSAL_KINDS else "", []).append(name)
    for names in kinds.values():
        first, error = escape_name(names[0]), refused[names[0]]
        about: dict[str, Any] = {"file": f"{shown}/{first}"}
        key: tuple[str, ...] = (first, _file_stamp(folder / names[0]), error.message)
        title = f"{first[:120]} was"
        fingerprint = read_fingerprint(folder / names[0], max_bytes, error.place)
        if len(names) > 1:
            key = ("many", *(f"{escape_name(name)}:{_file_stamp(folder / name)}" for name in names))
            title = f"{len(names)} files were"
            fingerprint = {}
            about = {"count": len(names), "files": [f"{shown}/{escape_name(name)}" for name in names[:_MAX_NAMED]]}
        card(
            BAD_FILE.name, key, f"{title} not imported: {_describe_error(error)}", **about, cause=error.message,
            place=str(error.place or ""), remedy=error.remedy or "", **fingerprint,
        )  # fmt: skip


def _file_stamp(path: Path) -> str:
    try:
        stat = path.lstat()
    except OSError:
        return ""
    return f"{stat.st_size}:{stat.st_mtime_ns}"


def _describe_error(error: ClearedError) -> str:
    """Where in the file, why, and what to do; the file itself is named already."""
    place = replace(error.place, file=None) if error.place else Place()
    where = f"{place}: " if str(place) else ""
    remedy = f". {error.remedy}" if error.remedy else ""
    return f"{where}{error.message.rstrip('.')}{remedy}".splitlines()[0][:500]


def stage_overlap(file: ImportFile, before: list[ImportRecord], bank: BankBook, card: StageCard) -> None:
    """Rows that came before and were left out: a card for the file."""
    if not file.duplicates:
        return
    same = next((r for r in before if r.file_sha256 == file.sha256), None)
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
        DUPLICATE_FILE.name, (file.sha256, file.name), title, file=file.processed_as, account=file.account.id,
        rows=rows, omitted=len(file.duplicates),
    )  # fmt: skip


def describe_line(line: BankLine) -> str:
    """A bank line in a sentence."""
    return f"{line.posted_date} {money.format_amount(line.amount)} {line.description[:80]!r}"


def stage_held_line(line: BankLine, why: str, card: StageCard) -> None:
    """A row that is neither posted nor left out: posted or set aside by whoever answers the card."""
    title = f"{line.posted_date} {line.amount} {line.description[:80]}: {why}"[:300]
    card(
        LINE.name, (line.line_id,), title, line=line.line_id, date=str(line.posted_date), amount=str(line.amount),
        text=line.description,
    )  # fmt: skip


def stage_revisions(file: ImportFile, bank: BankBook, card: StageCard) -> None:
    """The same bank id with another amount, whether it came in an earlier run or in another file of this one."""
    account = file.account.id
    if not any(line.bank_id for line in file.new):
        return
    posted: dict[str, list[BankLine]] = {}
    taken = (line for owner, line in bank.new_lines.values() if owner == account)
    for line in itertools.chain(bank.iter_account_lines(account), taken):
        if line.bank_id and line.state == "posted":
            posted.setdefault(line.bank_id, []).append(line)
    for line in check_deadline(file.new):
        for other in posted.get(line.bank_id, ()) if line.bank_id else ():
            if other.amount != line.amount:
                card(
                    REVISION.name,
                    (line.line_id, other.line_id),
                    f"{account}: the bank reported {line.bank_id} as {other.amount}, now as {line.amount}",
                    file=file.name,
                    row=line.row,
                    before=money.format_amount(other.amount),
                    after=money.format_amount(line.amount),
                )


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
        card(
            NEAR_MATCH.name,
            _file_key(file, "near"),
            f"{file.name}: {len(pairs)} new rows look like earlier ones under another text; both were kept",
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
) -> None:  # fmt: skip
    """A running balance that jumps, within the file or between it and its neighbours in time. What files without
    balances have brought of the days between counts."""

    def sum_between(first: str, last: str) -> Decimal:
        lines = bank.iter_lines_between(file.account.id, date.fromisoformat(first), date.fromisoformat(last))
        return money.total([line.amount for line in lines if first < line.posted_date.isoformat() < last])

    gaps = [*find_balance_gaps(file.rows), *find_statement_gaps(file.statements)]
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
            BALANCE_GAP.name, _file_key(file, "gap"),
            f"{file.name}: the running balance jumps by {amount} between {start} and {end}{more}",
            account=file.account.id,
            gaps=[{"after": a, "before": b, "missing": money.format_amount(m)} for a, b, m in gaps[:50]],
        )  # fmt: skip
