"""One statement, written in each format that can say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from harness import chase


@dataclass(frozen=True)
class Line:
    """``day`` is ``2025-01-31``, ``amount`` as ``-4.00``."""

    day: str
    amount: str
    text: str
    id: str = ""


@dataclass(frozen=True)
class Told:
    """A statement: of which account, what it held before, and its lines in time."""

    account: str = "1234567890"
    bank: str = "121000248"
    currency: str = "USD"
    opening: str = "1000.00"
    lines: Sequence[Line] = ()
    card: bool = False
    extra: dict[str, str] = field(default_factory=dict)
    """Line id → further OFX of that transaction."""

    @property
    def closing(self) -> str:
        cents = sum(_cents(line.amount) for line in self.lines) + _cents(self.opening)
        return _shown(cents)


def _cents(amount: str) -> int:
    return int(amount.replace(".", ""))


def _shown(cents: int) -> str:
    return f"{'-' if cents < 0 else ''}{abs(cents) // 100}.{abs(cents) % 100:02d}"


LINES = (
    Line("2025-01-03", "-4.00", "GITHUB *PRO", "F1"),
    Line("2025-01-06", "1500.00", "ACME INVOICE 12", "F2"),
    Line("2025-01-09", "-45.10", "AWS EMEA", "F3"),
    Line("2025-01-10", "-4.50", "COFFEE", "F4"),
    Line("2025-01-10", "-4.50", "COFFEE", "F5"),
    Line("2025-01-31", "-30.00", "RENT DEPOT", "F6"),
)
MONTH = Told(lines=LINES)

OFX_HEADER = "OFXHEADER:100\nDATA:OFXSGML\nVERSION:102\nSECURITY:NONE\nENCODING:USASCII\nCHARSET:1252\n\n"


def write_ofx(*statements: Told, xml: bool = False) -> str:
    """OFX 1, closing no values; or OFX 2."""

    def value(tag: str, text: str) -> str:
        return f"<{tag}>{text}</{tag}>\n" if xml else f"<{tag}>{text}\n"

    out = [OFX_HEADER if not xml else '<?xml version="1.0"?>\n<?OFX OFXHEADER="200" VERSION="211"?>\n', "<OFX>"]
    for told in statements:
        kind, source = ("CCSTMTRS", "CCACCTFROM") if told.card else ("STMTRS", "BANKACCTFROM")
        out.append(f"<{kind}>" + value("CURDEF", told.currency) + f"<{source}>")
        out.append(("" if told.card else value("BANKID", told.bank)) + value("ACCTID", told.account))
        days = sorted(line.day for line in told.lines) or ["2025-01-31"]
        out.append(f"</{source}><BANKTRANLIST>" + value("DTSTART", _packed(days[0])))
        out.append(value("DTEND", _packed(days[-1])))
        for line in told.lines:
            out.append("<STMTTRN>" + value("TRNTYPE", "DEBIT" if line.amount.startswith("-") else "CREDIT"))
            out.append(value("DTPOSTED", _packed(line.day) + "120000[-5:EST]") + value("TRNAMT", line.amount))
            out.append(value("FITID", line.id) if line.id else "")
            out.append(value("NAME", escape(line.text)) + told.extra.get(line.id, "") + "</STMTTRN>")
        out.append("</BANKTRANLIST><LEDGERBAL>" + value("BALAMT", told.closing))
        out.append(value("DTASOF", _packed(days[-1])) + f"</LEDGERBAL></{kind}>")
    return "".join([*out, "</OFX>\n"])


def _packed(day: str) -> str:
    return day.replace("-", "")


def write_chase(told: Told) -> str:
    """Chase's CSV, newest first, with the running balance."""
    cents = _cents(told.opening)
    rows: list[tuple[str, str, str, str]] = []
    for line in told.lines:
        cents += _cents(line.amount)
        rows.append((_american(line.day), line.text, line.amount, _shown(cents)))
    return chase(*rows[::-1])


def _american(day: str) -> str:
    return f"{day[5:7]}/{day[8:]}/{day[:4]}"


def write_camt(*statements: Told, version: int = 2) -> str:
    """CAMT.053 on one physical line; the booking's time zone would move it to another day."""
    space = f"urn:iso:std:iso:20022:tech:xsd:camt.053.001.{version:02d}"
    out = [f'<?xml version="1.0" encoding="UTF-8"?><Document xmlns="{space}">']
    out.append("<BkToCstmrStmt><GrpHdr><MsgId>M</MsgId></GrpHdr>")
    for told in statements:
        number = "IBAN" if told.account[:2].isalpha() else "Othr><Id"
        close = "IBAN" if number == "IBAN" else "Id></Othr"
        out.append(
            f"<Stmt><Id>S</Id><Acct><Id><{number}>{told.account}</{close}></Id><Ccy>{told.currency}</Ccy></Acct>"
        )
        days = [line.day for line in told.lines] or ["2025-01-31"]
        for code, amount, day in (("OPBD", told.opening, days[0]), ("CLBD", told.closing, days[-1])):
            out.append(f"<Bal><Tp><CdOrPrtry><Cd>{code}</Cd></CdOrPrtry></Tp>{_camt_amount(amount, told.currency)}")
            out.append(f"<Dt><Dt>{day}</Dt></Dt></Bal>")
        for line in told.lines:
            side = "Cdtr" if line.amount.startswith("-") else "Dbtr"
            status = "<Sts>BOOK</Sts>" if version < 8 else "<Sts><Cd>BOOK</Cd></Sts>"
            out.append(f"<Ntry>{_camt_amount(line.amount, told.currency)}{status}")
            out.append(f"<BookgDt><DtTm>{line.day}T23:30:00-05:00</DtTm></BookgDt>")
            out.append(f"<AcctSvcrRef>{line.id}</AcctSvcrRef>" if line.id else "")
            name = f"<Nm>{escape(line.text)}</Nm>" if version < 8 else f"<Pty><Nm>{escape(line.text)}</Nm></Pty>"
            out.append(f"<NtryDtls><TxDtls><RltdPties><{side}>{name}</{side}></RltdPties></TxDtls></NtryDtls></Ntry>")
        out.append("</Stmt>")
    return "".join([*out, "</BkToCstmrStmt></Document>"])


def _camt_amount(amount: str, currency: str) -> str:
    side = "DBIT" if amount.startswith("-") else "CRDT"
    return f'<Amt Ccy="{currency}">{amount.removeprefix("-")}</Amt><CdtDbtInd>{side}</CdtDbtInd>'


def write_mt940(*statements: Told) -> str:
    out = []
    for told in statements:
        days = [line.day for line in told.lines] or ["2025-01-31"]
        opening = _mt940_balance(told.opening, days[0], told.currency)
        out.append(f":20:STARTUMS\n:25:{told.account}\n:28C:1/1\n:60F:{opening}\n")
        for line in told.lines:
            mark = "D" if line.amount.startswith("-") else "C"
            amount, day = line.amount.removeprefix("-").replace(".", ","), _short(line.day)
            reference = f"//{line.id}" if line.id else ""
            out.append(f":61:{day}{day[2:]}{mark}{amount}NMSCNONREF{reference}\n:86:{line.text}\n")
        out.append(f":62F:{_mt940_balance(told.closing, days[-1], told.currency)}\n-\n")
    return "".join(out)


def _short(day: str) -> str:
    return day.replace("-", "")[2:]


def _mt940_balance(amount: str, day: str, currency: str) -> str:
    mark = "D" if amount.startswith("-") else "C"
    return f"{mark}{_short(day)}{currency}{amount.removeprefix('-').replace('.', ',')}"


def write_qif(told: Told) -> str:
    """Month first; it says neither ids nor balances."""
    days = [f"{line.day[5:7]}/{line.day[8:]}'{line.day[2:4]}" for line in told.lines]
    rows = [f"D{day}\nT{line.amount}\nP{line.text}\n^\n" for day, line in zip(days, told.lines, strict=True)]
    return f"!Account\nN{told.account}\nTBank\n^\n!Type:Bank\n" + "".join(rows)
