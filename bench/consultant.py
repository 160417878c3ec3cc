"""A consultant's year at three banks, and what each line truly is: made by numbers, the same every time.

Checking and savings give out CSV files that no format knows; the card gives OFX. The consultant knows the account of
each line, as it is booked when the year is over; the books do not.
"""

from __future__ import annotations

import calendar
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Final

YEAR: Final = 2025
CHECKING, SAVINGS, CARD = 1010, 1020, 2010
TRANSIT, DRAWS, COWORKING = 1090, 3200, 5910
OPENED: Final = {CHECKING: Decimal("8250.40"), SAVINGS: Decimal("12000.00"), CARD: Decimal("-412.35")}
"""What each account held at the end of the year before."""
NEW_ACCOUNTS: Final = {COWORKING: ("Coworking", "expense")}
"""Accounts that the chart has not: the consultant makes them when the first line needs them, and the books number
them."""
CORRECTED, SPLIT, VOIDED = 3, 5, 6
"""Months in which an entry is corrected after it was decided, is split then, and is voided by mistake."""
CORRECTED_LATE = 10
"""The month in which one of a closed month is corrected: from then on it is there."""
Parts = tuple[tuple[int, Decimal], ...]


@dataclass(eq=False)
class BankLine:
    """A line of a bank, and what it is: accounts with what each gets, the bank's own left out."""

    bank: int
    day: date
    text: str
    amount: Decimal
    parts: Parts
    number: str = ""
    more: str = ""
    """Further tags, of a card's line."""
    twin_of: BankLine | None = None
    """The line that says the same money; this one is no money of its own."""
    first: int | None = None
    """What the consultant takes it for at first, and corrects later in the month."""
    later: int | None = None
    """What it turns out to be when its month is long closed: from ``CORRECTED_LATE`` on."""
    is_voided: bool = False
    """Whether its entry is voided by mistake, and booked again."""

    @property
    def account(self) -> int | None:
        """Where all of it goes, as it is decided first; None for a split."""
        if self.first is not None:
            return self.first
        return self.parts[0][0] if len(self.parts) == 1 else None


@dataclass(frozen=True)
class Month:
    """What the banks say of a month, and the files that they give out for it."""

    number: int
    lines: Sequence[BankLine]
    files: Sequence[tuple[int, str, bytes]]
    """Bank account, name and content of each, in the order in which they are handed in."""
    last_day: date
    closing: dict[int, Decimal]


@dataclass(frozen=True)
class Payee:
    """Who is paid by card: words of the bank, account, how often a month, least and most in cents."""

    words: str
    account: int
    times: int
    least: int
    most: int
    months: Sequence[int] = range(1, 13)


ON_CARD: Final = (
    Payee("GITHUB *PRO SUBSCRIPTION", 5020, 1, 400, 400),
    Payee("AWS EMEA aws.amazon.com", 5020, 1, 3800, 6400),
    Payee("NOTION LABS INC", 5020, 1, 1000, 1000),
    Payee("ZOOM.US 888-799-9666", 5020, 1, 1599, 1599),
    Payee("ADOBE *CREATIVE CLD", 5020, 1, 5999, 5999),
    Payee("BLUE BOTTLE COFFEE #113", 5070, 5, 475, 1450),
    Payee("STUMPTOWN COFFEE 04", 5070, 4, 425, 990),
    Payee("SWEETGREEN PEARL DIST", 5070, 4, 1325, 2140),
    Payee("UBER *TRIP HELP.UBER.COM", 5050, 4, 1180, 4390),
    Payee("SHELL OIL 5744423", 5210, 2, 3120, 6210),
    Payee("CITY PARKING METER 88", 5210, 2, 200, 600),
    Payee("AMZN MKTP US*2K4AB", 5060, 2, 1299, 8950),
    Payee("WEWORK DAY PASS", COWORKING, 2, 2900, 2900),
    Payee("STAPLES 00112233", 5060, 1, 890, 7400),
    Payee("OREILLY MEDIA", 5230, 1, 4900, 4900, (2, 5, 8, 11)),
    Payee("DELTA AIR 0062341", 5050, 1, 24100, 48900, (3, 5, 9, 10)),
    Payee("MARRIOTT SEATTLE", 5050, 1, 31000, 58200, (3, 9, 10)),
    Payee("STEAM GAMES 425-889-9642", DRAWS, 1, 1999, 5999, (1, 4, 6, 12)),
)
CLIENTS: Final = ("NORTHWIND TRADING", "ACME ROBOTICS", "LUMEN HEALTH")


class Consultant:
    """The year. ``months``: how many of it. ``payees``: who is paid by card. ``banks``: the accounts."""

    def __init__(
        self, months: int = 12, *, payees: Sequence[Payee] = ON_CARD, banks: Sequence[int] = (1010, 2010, 1020)
    ):
        self.numbers = random.Random(29)
        self.held = dict(OPENED)
        self.payees, self.banks = payees, banks
        self.invoice = 1041
        self.months: list[Month] = []
        for number in range(1, months + 1):
            self.months.append(self._make_month(number))

    @property
    def lines(self) -> Iterator[BankLine]:
        for month in self.months:
            yield from month.lines

    def _make_month(self, number: int) -> Month:
        lines = [*self._list_checking(number), *self._list_card(number)]
        lines += self._list_transfers(number)
        lines = [line for line in lines if line.bank in self.banks]
        last = date(YEAR, number, calendar.monthrange(YEAR, number)[1])
        lines.sort(key=lambda line: (line.bank, line.day, line.text))
        for at, line in enumerate(lines):
            line.number = f"{number:02}{at:04}"
        before = dict(self.held)
        for line in lines:
            self.held[line.bank] += line.amount
        twins = self._list_twins(number, lines)
        files = [self._write(bank, number, lines, before[bank], last) for bank in self.banks]
        if twins:
            early = [line for line in lines if line.bank == SAVINGS and line.day.day <= 20]
            renamed = [next((t for t in twins if t.twin_of is line), line) for line in early]
            files.insert(0, (SAVINGS, f"savings-{number:02}-early.csv", write_savings(renamed)))
        return Month(number, [*lines, *twins], files, last, dict(self.held))

    def _list_checking(self, month: int) -> Iterator[BankLine]:
        def line(day: int, text: str, cents: int, account: int) -> BankLine:
            return _make_line(CHECKING, date(YEAR, month, day), text, cents, account)

        cents = self.numbers.randrange
        yield line(1, f"HARBOR OFFICES RENT {month:02}25", -115_000, 5150)
        yield line(3, "BLUE SHIELD HEALTH PREM", -41_260, 5170)
        yield line(5, "COMCAST BUSINESS 8777", -8_999, 5160)
        yield line(6, "VERIZON WRLS MYACCT", -cents(6_200, 7_400), 5160)
        for at, client in enumerate(CLIENTS[: 2 + month % 2]):
            yield line(9 + 5 * at, f"ACH CREDIT {client} INV {self.invoice}", cents(180_000, 420_000), 4010)
            self.invoice += 1
        freelancer = line(12, "ZELLE TO JORIS BEAUMONT", -cents(30_000, 80_000), 5110)
        freelancer.is_voided = month == VOIDED
        yield freelancer
        yield line(15, "ZELLE TO ANA MOSS", -250_000, DRAWS)
        yield line(22, "PORTLAND METRO PARKING", -450, 5210)
        yield line(22, "PORTLAND METRO PARKING", -450, 5210)  # twice, and both are right
        yield line(28, "MONTHLY SERVICE FEE", -1_500, 5080)
        if month in (1, 4, 6, 9):
            yield line(16, "IRS USATAXPYMT", -180_000, DRAWS)
        if month == 3:
            yield line(18, "STATE OF OREGON CORP DIV", -10_000, 5190)
        if month == 7:
            check = line(24, "CHECK 1021", -23_850, 5200)
            check.later = 5060
            yield check

    def _list_card(self, month: int) -> Iterator[BankLine]:
        days = calendar.monthrange(YEAR, month)[1]
        for payee in self.payees:
            if month not in payee.months:
                continue
            for _ in range(payee.times):
                day = date(YEAR, month, self.numbers.randrange(1, days - 1))
                amount = self.numbers.randrange(payee.least, payee.most + 1)
                line = _make_line(CARD, day, payee.words, -amount, payee.account)
                line.first = 5070 if month == CORRECTED and payee.words.startswith("STAPLES") else None
                yield line
        if month == 2:  # for the office and for the kitchen at home
            parts = ((5060, Decimal("86.40")), (DRAWS, Decimal("45.10")))
            yield BankLine(CARD, date(YEAR, month, 11), "COSTCO WHSE 0042", Decimal("-131.50"), parts)
        if month == SPLIT:
            day = date(YEAR, month, 17)
            told = "<ORIGCURRENCY><CURRATE>1.08<CURSYM>EUR</ORIGCURRENCY>"
            parts = ((5050, Decimal("250.00")), (DRAWS, Decimal("62.40")))
            yield BankLine(CARD, day, "HOTEL ADLON BERLIN", Decimal("-312.40"), parts, more=told, first=5050)
            yield _make_line(CARD, day, "FOREIGN TRANSACTION FEE", -937, 5080)
        if month in (4, 10):
            yield _make_line(CARD, date(YEAR, month, 21), "STAPLES 00112233", 2_350, 5060)  # returned

    def _list_transfers(self, month: int) -> Iterator[BankLine]:
        owed = -self.held[CARD]
        if owed > 0 and CARD in self.banks and CHECKING in self.banks:
            yield _transfer(CHECKING, date(YEAR, month, 20), "CARDMEMBER SERV WEB PYMT", -owed)
            yield _transfer(CARD, date(YEAR, month, 21), "PAYMENT THANK YOU - WEB", owed)
        if SAVINGS not in self.banks:
            return
        yield _transfer(CHECKING, date(YEAR, month, 2), "TRANSFER TO SAVINGS 4410", Decimal(-600))
        yield _transfer(SAVINGS, date(YEAR, month, 3), "TRANSFER FROM CHECKING 5512", Decimal(600))
        if month in (6, 11):
            yield _transfer(SAVINGS, date(YEAR, month, 25), "TRANSFER TO CHECKING 5512", Decimal(-1500))
            yield _transfer(CHECKING, date(YEAR, month, 26), "TRANSFER FROM SAVINGS 4410", Decimal(1500))
        interest = self.numbers.randrange(900, 1900)
        day = calendar.monthrange(YEAR, month)[1]
        yield _make_line(SAVINGS, date(YEAR, month, day), "INTEREST PAYMENT", interest, 4900)

    def _list_twins(self, month: int, lines: Sequence[BankLine]) -> list[BankLine]:
        """In August the savings bank writes a line otherwise in a second file."""
        if month != 8 or SAVINGS not in self.banks:
            return []
        line = next(each for each in lines if each.bank == SAVINGS and each.amount == 600)
        return [BankLine(SAVINGS, line.day, "XFER FROM CHK 5512", line.amount, line.parts, f"{line.number}T", "", line)]

    def _write(
        self, bank: int, month: int, lines: Sequence[BankLine], before: Decimal, last: date
    ) -> tuple[int, str, bytes]:
        own = [line for line in lines if line.bank == bank]
        if bank == CARD:
            return bank, f"card-{month:02}.qfx", write_card(own, self.held[CARD], last)
        if bank == SAVINGS:
            return bank, f"savings-{month:02}.csv", write_savings(own)
        if month == 3:  # a file that begins in the month before
            again = [each for each in self.months[1].lines if each.bank == bank and each.day.day >= 22]
            before -= sum(each.amount for each in again)
            own = [*again, *own]
        return bank, f"statement-{month:02}.csv", write_checking(own, before)


def _make_line(bank: int, day: date, text: str, cents: int, account: int) -> BankLine:
    amount = Decimal(cents) / 100
    return BankLine(bank, day, text, amount, ((account, -amount),))


def _transfer(bank: int, day: date, text: str, amount: Decimal) -> BankLine:
    return BankLine(bank, day, text, amount, ((TRANSIT, -amount),))


def write_checking(lines: Sequence[BankLine], before: Decimal) -> bytes:
    """Oldest first, with the balance after each row; money out and in have columns of their own."""
    rows, held = ['"Date","Payee","Withdrawal","Deposit","Balance"'], before
    for line in lines:
        held += line.amount
        out, came = (f"{-line.amount:.2f}", "") if line.amount < 0 else ("", f"{line.amount:.2f}")
        rows.append(f'"{line.day:%m/%d/%Y}","{line.text}","{out}","{came}","{held:.2f}"')
    return ("\r\n".join(rows) + "\r\n").encode()


def write_savings(lines: Sequence[BankLine]) -> bytes:
    """Without balances."""
    rows = ["Posted;Details;Value"]
    return "\n".join([*rows, *(f"{line.day};{line.text};{line.amount:.2f}" for line in lines), ""]).encode()


def write_card(lines: Sequence[BankLine], after: Decimal, last: date) -> bytes:
    """OFX, as Quicken takes it: with a number of each line, and what is owed at the end."""
    head = "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nSECURITY:NONE\nENCODING:USASCII\nCHARSET:1252\n\n"
    rows = "".join(
        f"<STMTTRN><TRNTYPE>{'DEBIT' if line.amount < 0 else 'CREDIT'}<DTPOSTED>{line.day:%Y%m%d}"
        f"<TRNAMT>{line.amount:.2f}<FITID>{line.day.year}{line.number}<NAME>{line.text}{line.more}</STMTTRN>\n"
        for line in lines
    )
    return (
        f"{head}<OFX><CREDITCARDMSGSRSV1><CCSTMTTRNRS><CCSTMTRS><CURDEF>USD<CCACCTFROM><ACCTID>4147202519847733"
        f"</CCACCTFROM><BANKTRANLIST><DTSTART>{last:%Y%m}01<DTEND>{last:%Y%m%d}\n{rows}</BANKTRANLIST><LEDGERBAL>"
        f"<BALAMT>{after:.2f}<DTASOF>{last:%Y%m%d}</LEDGERBAL></CCSTMTRS></CCSTMTTRNRS></CREDITCARDMSGSRSV1></OFX>\n"
    ).encode()
