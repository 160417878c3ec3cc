"""One statement, written in each format that can say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

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
            out.append(value("NAME", line.text.replace("&", "&amp;")) + told.extra.get(line.id, "") + "</STMTTRN>")
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
