"""What a receipt says: amounts and days, from its name and, of text, HTML, mail and PDF files, from the text.

The files are strangers'. A PDF is read in a process that is confined (``pdf_text``); what cannot be
read counts by its name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from decimal import Decimal
from html.parser import HTMLParser
from typing import Final, Literal

from cleared.books.importing.pdf_text import read_pdf

MAX_TEXT: Final = 200_000
"""Characters of a receipt that are looked at."""
MAX_AMOUNTS: Final = 20
MAX_DAYS: Final = 8
_AMOUNT: Final = re.compile(
    r"(?<![\w.,'’-])(?:[$€£]\s?)?(\d{1,3}(?:[ .,'’\u00a0\u202f]\d{3}){1,4}|\d{1,9})[.,](\d{2})(?![\d]|[.,]\d)"
)
_TOTAL: Final = re.compile(
    r"\b(?:grand total|total|amount due|amount paid|paid|charged|summe|gesamt|betrag|montant|importe)\b", re.IGNORECASE
)
_PARTS: Final = re.compile(r"\b(?:sub-?total|tax|vat|mwst|change|cash|balance)\b", re.IGNORECASE)
_MONTHS: Final = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DATES: Final = (
    (re.compile(r"(?<!\d)(\d{4})[-./_]?(\d{2})[-./_]?(\d{2})(?!\d)"), "ymd"),
    (re.compile(r"(?<!\d)(\d{1,2})\.\s?(\d{1,2})\.\s?(\d{4})(?!\d)"), "dmy"),
    (re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)"), "mdy"),
    (re.compile(r"(?<!\d)(\d{1,2})/(\d{1,2})/(\d{4})(?!\d)"), "dmy"),
    (re.compile(r"\b([A-Za-z]{3})[a-z]*\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})(?!\d)"), "Mdy"),
    (re.compile(r"(?<!\d)(\d{1,2})(?:st|nd|rd|th)?\.? ([A-Za-z]{3})[a-z]*\.?,? (\d{4})(?!\d)"), "dMy"),
)


def read_receipt(
    name: str, data: bytes, confine: Literal["best", "require", "off"] = "best"
) -> tuple[tuple[Decimal, ...], tuple[date, ...]]:
    """The amounts, the likeliest total first, and the days that a receipt names. It never fails. ``confine``:
    ``sandbox.confine``, for the reader of PDF files."""
    text = read_text(name, data, confine)
    named = name.rsplit(".", 1)[0].replace("_", " ")
    amounts = [*find_amounts(named), *find_amounts(text)]
    days = [*find_days(named), *find_days(text)]
    return tuple(dict.fromkeys(amounts))[:MAX_AMOUNTS], tuple(dict.fromkeys(days))[:MAX_DAYS]


def read_text(name: str, data: bytes, confine: Literal["best", "require", "off"] = "best") -> str:
    """The text of a receipt; empty where it has none that can be read."""
    ending = name.rpartition(".")[2].lower()
    if data.startswith(b"%PDF-"):
        return read_pdf(data, confine)[:MAX_TEXT]
    if ending == "eml":
        return _read_mail(data)
    if b"\0" in data[:4096] or ending not in ("txt", "html", "htm", "csv", "md", "xml", "json"):
        return ""
    text = data[: 4 * MAX_TEXT].decode("utf-8", "replace")
    return (strip_markup(text) if ending in ("html", "htm", "xml") else text)[:MAX_TEXT]


def find_amounts(text: str) -> list[Decimal]:
    """Amounts with two decimals, the likeliest total first: of lines that speak of a total, then the largest."""
    ranked: list[tuple[int, Decimal]] = []
    for line in text.splitlines():
        rank = 1 if _PARTS.search(line) else 0 if _TOTAL.search(line) else 1
        for match in _AMOUNT.finditer(line):
            whole = re.sub(r"\D", "", match[1])
            amount = Decimal(f"{int(whole)}.{match[2]}")
            if amount:
                ranked.append((rank, -amount))
    return list(dict.fromkeys(-amount for _, amount in sorted(ranked)))


def find_days(text: str) -> list[date]:
    """Days in the usual ways of writing them; where day and month could be either, both."""
    return list(dict.fromkeys(_iter_days(text)))


def _iter_days(text: str) -> Iterator[date]:
    for pattern, order in _DATES:
        for match in pattern.finditer(text):
            parts = dict(zip(order, match.groups(), strict=True))
            with suppress(ValueError):  # of numbers that are no day, and of words that are no month
                month = int(parts["m"]) if "m" in parts else _MONTHS.index(parts["M"].lower()) + 1
                day = date(int(parts["y"]), month, int(parts["d"]))
                if 1990 <= day.year <= 2100:
                    yield day


class _Text(HTMLParser):
    """The text of an HTML page; each block a line."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in ("script", "style")
        self.parts.append("\n" if tag in ("br", "p", "div", "tr", "li", "table", "h1", "h2", "h3") else " ")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in ("script", "style") and self._hidden > 0
        self.parts.append(" ")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data)


def strip_markup(html: str) -> str:
    """The text of a page."""
    parser = _Text()
    with suppress(AssertionError, ValueError):  # of markup that is none
        parser.feed(html[: 4 * MAX_TEXT])
    return "".join(parser.parts)


def _read_mail(data: bytes) -> str:
    from email import message_from_bytes, policy

    texts = []
    with suppress(Exception):  # the library raises many things for damaged mail
        message = message_from_bytes(data[: 8 * MAX_TEXT], policy=policy.default)
        texts = [str(message.get("subject", "")), str(message.get("date", ""))]
        body = message.get_body(("plain", "html"))
        if body is not None:
            content = str(body.get_content())
            texts.append(strip_markup(content) if body.get_content_subtype() == "html" else content)
    return "\n".join(texts)[:MAX_TEXT]
