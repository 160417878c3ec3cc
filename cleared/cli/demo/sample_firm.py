"""Half a year of made-up bank files of a small consulting firm, the same every time.

Two accounts, January to June 2025: checking (a file a month) and a credit card (a file a quarter). Built
into them: April's checking file begins a week early and repeats March's last rows; the same coffee is bought
twice on one day; every card payment leaves checking and arrives on the card; some vendors nobody has heard
of; three purchases are returned.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from random import Random

from msgspec import Struct

from cleared.books.teaching.vendor_table import find_vendor_table, replace_table
from cleared.workspace import template
from cleared.workspace.settings import yaml_tree
from cleared.workspace.settings.editing import set_value

OPENING_CENTS = 1_842_655
"""Balance of checking before the first row; the card is new."""
_MONTHS = range(1, 7)
_OVERLAP_FROM = date(2025, 3, 25)

BANK_ACCOUNTS = """\
bank_accounts:
  - id: checking
    name: Chase business checking
    type: checking
    ledger_account: 1010
    format: chase_checking
    opening: { date: 2024-12-31, balance: 18426.55 }
  - id: card
    name: Chase Ink credit card
    type: credit_card
    ledger_account: 2010
    format: chase_card
    # Statements of cards go by the day of the purchase.
    date_basis: transaction
"""


class _Row(Struct, frozen=True):
    """One row of either account. ``bought`` differs from ``posted`` on the card only."""

    posted: date
    text: str
    cents: int
    type: str
    bought: date
    category: str = ""
    check: str = ""


class _RandomNumbers(Random):
    """Random numbers from ``random()`` alone: Python promises to keep the numbers of no other method."""

    def int_below(self, n: int) -> int:
        return int(self.random() * n)

    def pick_one(self, choices: Sequence[str]) -> str:
        return choices[self.int_below(len(choices))]

    def int_between(self, low: int, high: int) -> int:
        return low + self.int_below(high - low + 1)


def bank_files() -> dict[str, bytes]:
    """File name → content, as downloaded from the bank."""
    numbers = _RandomNumbers(20250101)
    card = sorted(_card_purchases(numbers), key=lambda row: row.posted)
    payments = list(_card_payments(card))
    card = sorted([*card, *(arrival for _, arrival in payments)], key=lambda row: row.posted)
    checking = sorted([*_checking_rows(numbers), *(leaving for leaving, _ in payments)], key=lambda row: row.posted)
    files: dict[str, bytes] = {}
    for month in _MONTHS:
        first = _OVERLAP_FROM if month == 4 else date(2025, month, 1)
        last = date(2025, month + 1, 1) - timedelta(days=1)
        files[f"Chase4821_Activity_2025-{month:02d}.csv"] = _checking_csv(checking, first, last)
    for quarter in (1, 2):
        first = date(2025, 3 * quarter - 2, 1)
        last = date(2025, 3 * quarter + 1, 1) - timedelta(days=1)
        files[f"Chase7733_Activity_2025-Q{quarter}.csv"] = _card_csv(card, first, last)
    return files


def demo_config(text: str) -> str:
    """The demo's ``config.yaml``, from the starter's: its name, its time zone, its two accounts."""
    text = set_value(text, "business.name", "Juniper Lane Consulting LLC")
    text = set_value(text, "business.entity_type", "llc_single_member")
    text = set_value(text, "business.currency", "USD")
    text = set_value(text, "business.timezone", "America/Los_Angeles")
    root = yaml_tree.parse_yaml(text)
    key = next((k for k, _ in root.pairs if k.text == "bank_accounts"), None) if root else None
    if key is None:
        return f"{text}\n{BANK_ACCOUNTS}"
    lines = text.splitlines(keepends=True)
    end = key.line
    while end < len(lines) and (lines[end][0] in " -" or not lines[end].strip()):
        end += 1
    while not lines[end - 1].strip():
        end -= 1
    return "".join([*lines[: key.line - 1], BANK_ACCOUNTS, *lines[end:]])


def agent_text() -> str:
    """The demo's ``agents/ingest.py``: the starter, with the firm's vendors in its table."""
    vendors = (Path(__file__).parent / "assets" / "vendors.py.txt").read_text(encoding="utf-8")
    starter = template.starter_files()["agents/ingest.py"].decode("utf-8")
    known, own = find_vendor_table(starter), find_vendor_table(vendors)
    assert known is not None and own is not None
    return replace_table(starter, known, vendors, own)


def demo_files() -> dict[str, bytes]:
    """The files in which the demo's workspace differs from a new one: relative path → content. Its agent is proposed
    later."""
    return {"config.yaml": demo_config(template.starter_config()).encode()}


# --- checking ---------------------------------------------------------------------------------------------

_MONTHLY = (
    # day, text, cents (low, high), type
    (1, "WEWORK 1201 2ND AVE SEATTLE WA", (-45_000, -45_000), "ACH_DEBIT"),
    (3, "HISCOX INC PREMIUM PPD ID: 1522341", (-8_475, -8_475), "ACH_DEBIT"),
    (5, "COMCAST BUSINESS 800-391-3000 WA", (-12_990, -12_990), "ACH_DEBIT"),
    (7, "QUILL & LEDGER CPA WEB PMT", (-35_000, -35_000), "ACH_DEBIT"),
    (9, "Zelle payment to Dana Ortiz JPM99a1k2", (-140_000, -95_000), "QUICKPAY_DEBIT"),
    (10, "Online Transfer to CHK ...0099 transaction#: 23051", (-300_000, -300_000), "ACCT_XFER"),
    (12, "VERIZON WIRELESS PAYMENTS", (-9_842, -9_211), "ACH_DEBIT"),
    (22, "Zelle payment to Sam Okafor JPM99b7x4", (-80_000, -30_000), "QUICKPAY_DEBIT"),
    (25, "Online Transfer to CHK ...0099 transaction#: 23388", (-250_000, -250_000), "ACCT_XFER"),
    (26, "MONTHLY SERVICE FEE", (-1_500, -1_500), "FEE_TRANSACTION"),
    (4, "ORIG CO NAME:HARBOR & PINE LLC  CO ENTRY DESCR:INVOICE SEC:CCD", (420_000, 420_000), "ACH_CREDIT"),
    (11, "NORTHGATE CLINICS AP PAYMENT CCD ID: 9110044", (280_000, 510_000), "ACH_CREDIT"),
    (18, "FERNLEY LABS INC BILL.COM 016ZKTQ", (350_000, 620_000), "ACH_CREDIT"),
)
_SMALL = (
    ("SHELL OIL 57444120 SEATTLE WA", 2_800, 6_900),
    ("CITY PARKING GARAGE 4 SEATTLE WA", 600, 2_400),
    ("USPS PO 5475020 SEATTLE WA", 495, 3_250),
    ("FEDEX OFFIC88100 SEATTLE WA", 780, 5_600),
    ("BLUE HERON CAFE SEATTLE WA", 420, 1_890),
    ("PAGLIACCI PIZZA SEATTLE WA", 1_450, 4_800),
    ("STAPLES 00112334 SEATTLE WA", 1_100, 9_900),
)
_ODD_OUT = (
    ("ATM WITHDRAWAL 004417 1ST & PIKE", "ATM"),
    ("CKO*KLARWERK GMBH", "DEBIT_CARD"),
    ("BLUEBIRD HOLDINGS 888-4412", "ACH_DEBIT"),
    ("PAYPAL *XJ9TRADING 4029357733 CA", "DEBIT_CARD"),
    ("SP ATELIER-MOSS, LTD", "DEBIT_CARD"),
    ('MERCHANT SVC 00921 "EVENT" DEPOSIT', "ACH_DEBIT"),
)


def _checking_rows(numbers: _RandomNumbers) -> Iterator[_Row]:
    check = 1041
    for month in _MONTHS:
        for day, text, (low, high), kind in _MONTHLY:
            yield _checking_row(_next_workday(month, day), text, numbers.int_between(low, high), kind)
        if month % 2:
            yield _checking_row(
                _next_workday(month, 14),
                "DOMESTIC INCOMING WIRE B/O: TIDEWATER SCHOOLS REF: PO-2231",
                612_500,
                "WIRE_INCOMING",
            )
            yield _checking_row(_next_workday(month, 14), "DOMESTIC INCOMING WIRE FEE", -1_500, "FEE_TRANSACTION")
        for week in range(4):
            payout = _next_workday(month, 6 + 7 * week)
            yield _checking_row(
                payout,
                f"STRIPE TRANSFER ST-{numbers.int_between(10_000, 99_999)}Q",
                numbers.int_between(9_000, 64_000),
                "ACH_CREDIT",
            )
        for _ in range(numbers.int_between(17, 21)):
            text, low, high = _SMALL[numbers.int_below(len(_SMALL))]
            yield _checking_row(
                _next_workday(month, numbers.int_between(1, 26)), text, -numbers.int_between(low, high), "DEBIT_CARD"
            )
        for _ in range(numbers.int_between(2, 3)):
            text, kind = _ODD_OUT[numbers.int_below(len(_ODD_OUT))]
            cents = 2_000 * numbers.int_between(1, 10) if kind == "ATM" else numbers.int_between(2_000, 24_000)
            yield _checking_row(_next_workday(month, numbers.int_between(2, 26)), text, -cents, kind)
        check += 1
        paid = _next_workday(month, numbers.int_between(8, 24))
        yield _Row(paid, f"CHECK {check}", -numbers.int_between(5_000, 40_000), "CHECK_PAID", paid, check=str(check))
    for month, due, cents in ((1, 15, -182_000), (4, 15, -205_000), (6, 16, -205_000)):
        yield _checking_row(
            _next_workday(month, due), "IRS USATAXPYMT 270556101200 CCD ID: 3387702000", cents, "ACH_DEBIT"
        )
    yield _checking_row(_next_workday(2, 20), "WA SEC OF STATE ANNUAL REPORT OLYMPIA WA", -7_100, "DEBIT_CARD")
    yield _checking_row(_next_workday(3, 17), "COMCAST BUSINESS CREDIT 800-391-3000 WA", 4_330, "ACH_CREDIT")
    yield _checking_row(_next_workday(4, 8), "REMOTE ONLINE DEPOSIT # 1", 95_000, "CHECK_DEPOSIT")
    yield _checking_row(_next_workday(5, 21), "Zelle payment from R LINDQVIST 22110983", 40_000, "QUICKPAY_CREDIT")


def _checking_row(day: date, text: str, cents: int, kind: str) -> _Row:
    return _Row(day, text, cents, kind, day)


def _next_workday(month: int, day: int) -> date:
    """The day, or the Monday after it where banks are closed."""
    wanted = date(2025, month, day)
    return wanted + timedelta(days=max(0, 7 - wanted.weekday()) if wanted.weekday() > 4 else 0)


def _checking_csv(rows: list[_Row], first: date, last: date) -> bytes:
    balance = OPENING_CENTS
    shown: list[list[str]] = []
    for row in rows:
        balance += row.cents
        if first <= row.posted <= last:
            details = "CHECK" if row.check else "DEBIT" if row.cents < 0 else "CREDIT"
            money = (_cents_text(row.cents), row.type, _cents_text(balance))
            shown.append([details, _us_date(row.posted), row.text, *money, row.check, ""])  # the trailing comma
    return _csv_bytes("Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #", shown)


# --- card -------------------------------------------------------------------------------------------------

_SUBSCRIPTIONS = (
    (2, "GITHUB, INC.", 2_100, "Professional Services"),
    (3, "AMAZON WEB SERVICES", None, "Professional Services"),
    (1, "GOOGLE *GSUITE_JUNIPER", 4_320, "Professional Services"),
    (5, "FIGMA MONTHLY RENEWAL", 4_500, "Professional Services"),
    (8, "SLACK T03KV9ABC", 2_625, "Professional Services"),
    (9, "ZOOM.US 888-799-9666", 1_599, "Professional Services"),
    (12, "ADOBE *CREATIVE CLOUD", 5_999, "Shopping"),
    (15, "1PASSWORD", 1_996, "Professional Services"),
    (17, "DIGITALOCEAN.COM", None, "Professional Services"),
    (19, "LINKEDIN ADS 9923117", None, "Professional Services"),
    (24, "GOOGLE *ADS8841123", None, "Professional Services"),
)
_PURCHASES = (
    ("UBER   TRIP HELP.UBER.COM", 890, 4_800, "Travel"),
    ("BLUE HERON CAFE", 475, 1_650, "Food & Drink"),
    ("TST* OAK & IRON", 3_800, 14_500, "Food & Drink"),
    ("SWEETGREEN PIKE ST", 1_395, 2_895, "Food & Drink"),
    ("AMZN Mktp US*{}", 1_299, 18_900, "Shopping"),
    ("STAPLES 00112334", 1_250, 12_400, "Shopping"),
    ("PAGLIACCI PIZZA", 1_600, 5_400, "Food & Drink"),
    ("FEDEX 7731 {}", 1_120, 6_230, "Shopping"),
    ("UBER   TRIP HELP.UBER.COM", 1_090, 5_600, "Travel"),
    ("BLUE HERON CAFE", 475, 1_650, "Food & Drink"),
)
_ODD = (
    ("SQ *LUMEN & CO", "Shopping"),
    ("PAYPAL *QUARTZFJORD", "Shopping"),
    ("HELIOTROPE PRESS 2065550188", "Entertainment"),
    ("WL *UNIVAC*9912", "Personal"),
    ("DD *8BITNOODLE", "Food & Drink"),
)
_TRIPS = (
    (2, 10, "ALASKA AIR  0272119", 38_620, "HILTON GARDEN INN SFO", 71_244),
    (4, 22, "AMTRAK .CO1129", 11_800, "HILTON PORTLAND", 46_518),
    (6, 3, "ALASKA AIR  0274403", 44_180, "HILTON DENVER CITY", 80_931),
)
_CODE = "0123456789ABCDEFGHJKLMNPQRTUVWXY"


def _card_purchases(numbers: _RandomNumbers) -> Iterator[_Row]:
    for month in _MONTHS:
        for day, text, price, category in _SUBSCRIPTIONS:
            yield _sale_row(
                numbers, date(2025, month, day), text, price or numbers.int_between(4_000, 26_000), category
            )
        for _ in range(numbers.int_between(24, 29)):
            text, low, high, category = _PURCHASES[numbers.int_below(len(_PURCHASES))]
            text = text.format("".join(numbers.pick_one(_CODE) for _ in range(9)))
            yield _sale_row(
                numbers, date(2025, month, numbers.int_between(1, 26)), text, numbers.int_between(low, high), category
            )
        for _ in range(numbers.int_between(1, 2)):
            text, category = _ODD[numbers.int_below(len(_ODD))]
            yield _sale_row(
                numbers,
                date(2025, month, numbers.int_between(3, 26)),
                text,
                numbers.int_between(1_500, 16_000),
                category,
            )
    for month, day, carrier, fare, hotel, price in _TRIPS:
        yield _sale_row(numbers, date(2025, month, day), carrier, fare, "Travel")
        yield _sale_row(numbers, date(2025, month, day + 3), hotel, price, "Travel")
    for month, day, text, price in ((1, 22, "OREILLY MEDIA", 4_900), (5, 14, "UDEMY ONLINE COURSES", 8_997)):
        yield _sale_row(numbers, date(2025, month, day), text, price, "Education")
    yield _return_row(date(2025, 2, 19), "ALASKA AIR  0272119", 12_310, "Travel")
    yield _return_row(date(2025, 3, 12), "STAPLES 00112334", 4_599, "Shopping")
    yield _return_row(date(2025, 5, 7), "AMZN Mktp US", 6_420, "Shopping")
    yield _Row(date(2025, 1, 6), "ANNUAL MEMBERSHIP FEE", -9_500, "Fee", date(2025, 1, 6), "Fees & Adjustments")
    tuesday = date(2025, 3, 18)
    for _ in range(2):  # two of the same, and both are real
        yield _Row(tuesday + timedelta(days=1), "BLUE HERON CAFE", -575, "Sale", tuesday, "Food & Drink")


def _sale_row(numbers: _RandomNumbers, bought: date, text: str, cents: int, category: str) -> _Row:
    return _Row(bought + timedelta(days=numbers.int_between(1, 2)), text, -cents, "Sale", bought, category)


def _return_row(day: date, text: str, cents: int, category: str) -> _Row:
    return _Row(day + timedelta(days=1), text, cents, "Return", day, category)


def _card_payments(purchases: list[_Row]) -> Iterator[tuple[_Row, _Row]]:
    """What is owed on the 10th is paid on the 20th; each payment as its row of checking and its row of the card."""
    paid = 0
    for month in _MONTHS:
        owed = -sum(row.cents for row in purchases if row.posted <= date(2025, month, 10)) - paid
        paid += owed
        day = _next_workday(month, 20)
        leaving = _checking_row(day, f"Payment to Chase card ending in 7733 {day:%m/%d}", -owed, "LOAN_PMT")
        yield leaving, _Row(day + timedelta(days=1), "Payment Thank You - Mobile", owed, "Payment", day)


def _card_csv(rows: list[_Row], first: date, last: date) -> bytes:
    shown = [
        [_us_date(row.bought), _us_date(row.posted), row.text, row.category, row.type, _cents_text(row.cents), ""]
        for row in rows
        if first <= row.posted <= last
    ]
    return _csv_bytes("Transaction Date,Post Date,Description,Category,Type,Amount,Memo", shown)


def _csv_bytes(header: str, rows: list[list[str]]) -> bytes:
    """Newest first, as the bank writes it."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(reversed(rows))
    return f"{header}\n{text.getvalue()}".encode()


def _us_date(day: date) -> str:
    return f"{day:%m/%d/%Y}"


def _cents_text(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"
