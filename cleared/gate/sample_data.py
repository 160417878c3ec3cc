"""A made-up month of bank files in the workspace's own formats, with what real months have and tests forget.

Income, an expense, a refund, a transfer, two equal purchases of one day, an unknown vendor, odd characters.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from cleared.config.model import BankAccount, Config, CsvProfile
from cleared.schema import money


@dataclass(frozen=True, slots=True)
class Made:
    """One made-up row."""

    day: date
    text: str
    amount: Decimal
    type: str


_SPAN: Final = timedelta(days=27)
"""From the first made-up row to the day before the rehearsal."""


def open_time(now: datetime, zone: ZoneInfo, closed_through: date | None) -> datetime:
    """The time at which what is made up takes place: now, or so much later that neither the made-up month nor the
    calendar month before lies in a closed period, where nothing can be posted."""
    today = now.astimezone(zone).date()
    if closed_through is None or min(_first_day(today), _month_before(today)) > closed_through:
        return now
    later = closed_through + timedelta(days=1) + _SPAN + timedelta(days=1)
    while _month_before(later) <= closed_through:
        later += timedelta(days=1)
    return now + (later - today)


def _first_day(today: date) -> date:
    return today - timedelta(days=1) - _SPAN


def _month_before(day: date) -> date:
    """The first day of the calendar month before."""
    return (day.replace(day=1) - timedelta(days=1)).replace(day=1)


def synthetic_files(config: Config, today: date) -> dict[str, bytes]:
    """One file for each bank account whose format is known, of the days before ``today``: name in the drop folder →
    bytes."""
    places = money.exponent(config.business.currency)
    files = {}
    for account in config.bank_accounts:
        rows = _rows(account, today, places)
        data = _render(account, rows, config, places)
        if data is not None:
            folder = f"{account.match.folder.strip('/').removeprefix('import/')}/" if account.match.folder else ""
            last4 = account.match.last4 or ""
            files[f"{folder}synthetic-{account.id}{'-' + last4 if last4 else ''}.csv"] = data
    return files


def _rows(account: BankAccount, today: date, places: int) -> list[Made]:
    def on(days: int) -> date:
        return today - timedelta(days=days + 1)

    def amount(text: str) -> Decimal:
        return Decimal(text).quantize(money.quantum(places))

    name = account.id.upper()
    return [
        Made(on(_SPAN.days), f"SYNTHETIC CLIENT PAYMENT {name}", amount("2500"), "ACH_CREDIT"),
        Made(on(25), "GITHUB *PRO SYNTHETIC", amount("-4"), "ACH_DEBIT"),
        Made(on(24), "SYNTHETIC COFFEE", amount("-5"), "DEBIT_CARD"),
        Made(on(24), "SYNTHETIC COFFEE", amount("-5"), "DEBIT_CARD"),
        Made(on(20), "AWS EMEA SYNTHETIC", amount("-131"), "ACH_DEBIT"),
        Made(on(18), "AWS EMEA REFUND SYNTHETIC", amount("31"), "ACH_CREDIT"),
        Made(on(15), f"ONLINE TRANSFER TO SAVINGS SYNTHETIC {name}", amount("-300"), "ACCT_XFER"),
        Made(on(10), "QX7 UNKNOWN VENDOR 0091 SYNTHETIC", amount("-77"), "DEBIT_CARD"),
        Made(on(5), '=cmd|" /C calc"!A0 Zoë’s 寿司 \u202edrawkcab, "quoted"', amount("-19"), "DEBIT_CARD"),
    ]


def _render(account: BankAccount, rows: list[Made], config: Config, places: int) -> bytes | None:
    profile = config.import_.profiles.get(account.format or "")
    if profile is not None:
        return _profile(profile, rows, config)
    if account.format == "chase_checking":
        return _chase_checking(rows)
    if account.format == "chase_card":
        return _chase_card(rows)
    return None


def _csv(header: list[str], rows: list[list[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def _chase_checking(rows: list[Made]) -> bytes:
    balance = Decimal(10_000)
    table = []
    for row in rows:
        balance += row.amount
        side = "DEBIT" if row.amount < 0 else "CREDIT"
        table.append([side, f"{row.day:%m/%d/%Y}", row.text, money.text(row.amount), row.type, money.text(balance), ""])
    header = ["Details", "Posting Date", "Description", "Amount", "Type", "Balance", "Check or Slip #"]
    return _csv(header, table[::-1]).encode()


def _chase_card(rows: list[Made]) -> bytes:
    header = ["Transaction Date", "Post Date", "Description", "Category", "Type", "Amount", "Memo"]
    table = [
        [f"{r.day:%m/%d/%Y}", f"{r.day:%m/%d/%Y}", r.text, "", "Sale" if r.amount < 0 else "Payment",
         money.text(r.amount), ""]
        for r in reversed(rows)
    ]  # fmt: skip
    return _csv(header, table).encode()


def _profile(profile: CsvProfile, rows: list[Made], config: Config) -> bytes:
    columns = list(dict.fromkeys(profile.columns.values()))
    table = []
    for number, row in enumerate(rows):
        sign = -1 if profile.sign == "inverted" else 1
        cells = {
            "date": row.day.strftime(profile.date_format),
            "transaction_date": row.day.strftime(profile.date_format),
            "description": row.text.encode(profile.encoding, "replace").decode(profile.encoding),
            "amount": _number(row.amount * sign, profile),
            "debit": _number(-row.amount, profile) if row.amount < 0 else "",
            "credit": _number(row.amount, profile) if row.amount > 0 else "",
            "id": f"SYN{number:04d}",
            "type": row.type,
            "currency": profile.currency or config.business.currency,
        }
        values = {header: cells.get(field, "") for field, header in profile.columns.items()}
        table.append([values[header] for header in columns])
    text = "\n" * profile.skip_lines + _csv(columns, table, profile.delimiter)
    return text.encode(profile.encoding, "replace")


def _number(amount: Decimal, profile: CsvProfile) -> str:
    return money.text(amount).replace(".", profile.decimal)
