"""Sample data: a made-up month of bank files in the workspace's formats, with what real months have and tests forget.

Income, an expense, a refund, a transfer, two equal purchases of one day, an unknown vendor, odd characters.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final
from xml.sax.saxutils import escape
from zoneinfo import ZoneInfo

from msgspec import Struct

from cleared.base import money
from cleared.base.file_source import FileSource
from cleared.books.bank_files.csv_presets import find_profile
from cleared.books.bank_files.plugins import BUILT_IN, STATEMENT_FORMATS, load_format
from cleared.books.ledger.book_paths import locate_books
from cleared.books.ledger.periods import parse_periods
from cleared.workspace.location import Layout
from cleared.workspace.settings.bank_section import BankAccount, CsvProfile
from cleared.workspace.settings.model import Config


class SampleRow(Struct, frozen=True):
    """One made-up row."""

    day: date
    text: str
    amount: Decimal
    type: str


_SPAN: Final = timedelta(days=27)
"""From the first made-up row to the day before the dry run."""
_PROBE_AMOUNT: Final = 50
_MOST_PROBE_ROWS: Final = 1000


def find_open_time(layout: Layout, source: FileSource, now: datetime) -> datetime:
    """The time at which what is made up takes place: now, or so much later that neither the made-up month nor the
    calendar month before lies in a closed period, where nothing can be posted."""
    today = now.astimezone(ZoneInfo(layout.config.business.timezone)).date()
    path = locate_books(layout).periods
    closed_through = parse_periods(source.read(path), path).closed_through
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


def make_sample_files(config: Config, today: date) -> dict[str, bytes]:
    """One file for each bank account whose format is known, of the days before ``today``: name in the drop folder →
    bytes."""
    places = money.currency_exponent(config.business.currency)
    return _render_files(config, "synthetic", lambda account: _sample_rows(account, today, places))


def make_probe_files(config: Config, today: date, texts: Sequence[str], amounts: Sequence[Decimal]) -> dict[str, bytes]:
    """One file for each bank account whose format is known, of the day before ``today``: each text with money out and
    in, and each amount, just above and below it: name in the drop folder → bytes."""
    step = money.quantum(money.currency_exponent(config.business.currency))
    probed = [amount.quantize(step) for amount in amounts]
    near = [each for amount in probed for each in (amount - step, amount, amount + step) if each > 0]
    usual = Decimal(_PROBE_AMOUNT).quantize(step)
    pairs = [(text, amount) for text in texts for amount in (usual, *probed)] + [("PROBE", each) for each in near]
    rows = [
        SampleRow(today - timedelta(days=1), text, signed, "ACH_CREDIT" if signed > 0 else "ACH_DEBIT")
        for text, amount in dict.fromkeys(pairs)
        for signed in (-amount, amount)
    ]
    return _render_files(config, "probe", lambda _: rows[:_MOST_PROBE_ROWS]) if rows else {}


def _render_files(config: Config, stem: str, make_rows: Callable[[BankAccount], list[SampleRow]]) -> dict[str, bytes]:
    files = {}
    for account in config.bank_accounts:
        data = _render_file(account, make_rows(account), config)
        if data is not None:
            folder = f"{account.match.folder.strip('/').removeprefix('import/')}/" if account.match.folder else ""
            last4 = account.match.last4 or ""
            files[f"{folder}{stem}-{account.id}{'-' + last4 if last4 else ''}.csv"] = data
    return files


def _sample_rows(account: BankAccount, today: date, places: int) -> list[SampleRow]:
    def on(days: int) -> date:
        return today - timedelta(days=days + 1)

    def amount(text: str) -> Decimal:
        return Decimal(text).quantize(money.quantum(places))

    name = account.id.upper()
    return [
        SampleRow(on(_SPAN.days), f"SYNTHETIC CLIENT PAYMENT {name}", amount("2500"), "ACH_CREDIT"),
        SampleRow(on(25), "GITHUB *PRO SYNTHETIC", amount("-4"), "ACH_DEBIT"),
        SampleRow(on(24), "SYNTHETIC COFFEE", amount("-5"), "DEBIT_CARD"),
        SampleRow(on(24), "SYNTHETIC COFFEE", amount("-5"), "DEBIT_CARD"),
        SampleRow(on(20), "AWS EMEA SYNTHETIC", amount("-131"), "ACH_DEBIT"),
        SampleRow(on(18), "AWS EMEA REFUND SYNTHETIC", amount("31"), "ACH_CREDIT"),
        SampleRow(on(15), f"ONLINE TRANSFER TO SAVINGS SYNTHETIC {name}", amount("-300"), "ACCT_XFER"),
        SampleRow(on(10), "QX7 UNKNOWN VENDOR 0091 SYNTHETIC", amount("-77"), "DEBIT_CARD"),
        SampleRow(on(5), '=cmd|" /C calc"!A0 Zoë’s 寿司 \u202edrawkcab, "quoted"', amount("-19"), "DEBIT_CARD"),
    ]


def _render_file(account: BankAccount, rows: list[SampleRow], config: Config) -> bytes | None:
    name = account.main_format or ""
    described = None if name in BUILT_IN else find_profile(config.import_.profiles, name)
    if described is not None:
        return _render_profile(*described, account, rows, config)
    if name in STATEMENT_FORMATS:
        return _render_ofx(account, rows, config)
    render_sample = getattr(load_format(name), "render_sample", None) if name in BUILT_IN else None
    if render_sample is None:
        return None
    table: list[list[str]] = render_sample([(row.day, row.text, row.amount, row.type) for row in rows])
    return _render_csv(table).encode()


def _render_csv(records: Sequence[Sequence[str]], delimiter: str = ",") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(records)
    return out.getvalue()


def _render_profile(
    profile: CsvProfile, further: Mapping[str, str], account: BankAccount, rows: list[SampleRow], config: Config
) -> bytes:
    """A file that the profile describes; ``further``: other columns that it must have, and their text."""
    names = [*profile.columns.values(), *profile.more_description, *further]
    columns = list(profile.headers or dict.fromkeys(names))
    table = []
    for number, row in enumerate(rows):
        sign = -1 if profile.sign == "inverted" else 1
        amount = abs(row.amount) if "direction" in profile.columns else row.amount * sign
        cells = {
            "date": row.day.strftime(profile.date_format),
            "transaction_date": row.day.strftime(profile.date_format),
            "description": row.text.encode(profile.encoding, "replace").decode(profile.encoding),
            "amount": _format_number(amount, profile),
            "debit": _format_number(-row.amount, profile) if row.amount < 0 else "",
            "credit": _format_number(row.amount, profile) if row.amount > 0 else "",
            "direction": (profile.out_words if row.amount < 0 else profile.in_words)[0],
            "id": f"SYN{number:04d}",
            "type": row.type,
            "currency": profile.currency or config.business.currency,
            "account": account.match.account or account.match.last4 or "0000",
        }
        values = {**further, **{header: cells.get(field, "") for field, header in profile.columns.items()}}
        table.append([values.get(header, "") for header in columns])
    head = [] if profile.headers else [columns]
    text = "\n" * profile.skip_lines + _render_csv([*head, *table], profile.delimiter)
    return text.encode(profile.encoding, "replace")


def _render_ofx(account: BankAccount, rows: list[SampleRow], config: Config) -> bytes | None:
    """A statement as OFX, which fits an account of any format by its number; None where it has none."""
    number = (
        account.match.account or account.match.iban or (account.match.last4 if account.main_format == "ofx" else "")
    )
    if not number and account.main_format != "ofx":
        return None
    bank, _, number = (number or "0000").rpartition("/")
    entries = [
        f"<STMTTRN><TRNTYPE>{row.type}<DTPOSTED>{row.day:%Y%m%d}<TRNAMT>{money.format_amount(row.amount)}"
        f"<FITID>SYN{number_:04d}<NAME>{escape(row.text)}</STMTTRN>"
        for number_, row in enumerate(rows)
    ]
    currency = account.currency or config.business.currency
    return (
        f"OFXHEADER:100\nENCODING:UTF-8\n\n<OFX><STMTRS><CURDEF>{currency}<BANKACCTFROM><BANKID>{escape(bank)}"
        f"<ACCTID>{escape(number)}</BANKACCTFROM><BANKTRANLIST>{''.join(entries)}</BANKTRANLIST></STMTRS></OFX>\n"
    ).encode()


def _format_number(amount: Decimal, profile: CsvProfile) -> str:
    return money.format_amount(amount).replace(".", profile.decimal)
