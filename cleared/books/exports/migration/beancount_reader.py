"""Reading beancount files: plain transactions in one currency. Nothing else is read or run, no plugin and no include.

Balance assertions, declarations and notes are read over and counted; what makes entries that are not written out
(``pad``), and amounts in other currencies, are refused with their line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Final

from cleared.base import money
from cleared.books.bank_files.base import Faults
from cleared.books.exports.beancount_file import FIRST_LINE
from cleared.books.exports.migration.source_books import (
    KEPT_KINDS,
    SourceAmounts,
    SourceBooks,
    SourceEntry,
    SourcePosting,
    read_day,
)
from cleared.books.exports.written_text import unquote_string

REMEDY: Final = "Mend it, or write what it stands for as plain transactions."
MAX_LINE: Final = 20_000
"""Characters of a line."""
MAX_STRING_LINES: Final = 200
_DATED: Final = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})\s+(\S+)\s*(.*)", re.ASCII | re.DOTALL)
_FLAG: Final = re.compile(r"txn|[*!&#?%A-Z]", re.ASCII)
_STRING: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_TAGS: Final = re.compile(r"(?:\s*[#^][\w/.-]+)*\s*(?:;.*)?", re.ASCII)
_META: Final = re.compile(r"\s+([a-z][\w-]*):\s*(.*)", re.ASCII | re.DOTALL)
_POSTING: Final = re.compile(r"\s+(?:[*!&#?%A-Z]\s+)?([^\W\d_][\w-]*(?::[\w-]+)+)\s*([^;]*)(;.*)?")
_IGNORED: Final = {
    "open": "",
    "close": "",
    "commodity": "",
    "balance": "balance assertions",
    "price": "prices",
    "note": "notes",
    "document": "documents",
    "event": "events",
    "query": "queries",
    "custom": "custom directives",
}
_PLAIN: Final = {
    "option": "",
    "plugin": "plugins, which were not run",
    "pushtag": "tags",
    "poptag": "tags",
    "pushmeta": "metadata",
    "popmeta": "metadata",
}


def read_beancount(text: str, currency: str, places: int) -> SourceBooks:
    """All transactions of a file. Raises ``ImportFileError`` with the lines that are not understood."""
    return _LedgerReader(text, currency, places).read_ledger()


class _LedgerReader:
    def __init__(self, text: str, currency: str, places: int) -> None:
        self.text = text
        self.amounts = SourceAmounts(currency, places, ".")
        self.books = SourceBooks("beancount")
        self.faults = Faults()
        self.is_ours = text.startswith(FIRST_LINE)

    def read_ledger(self) -> SourceBooks:
        for line, head, body in self._iter_blocks():
            dated = _DATED.fullmatch(head)
            if dated is None:
                self._read_plain(line, head)
            elif _FLAG.fullmatch(dated[4]):
                self._read_transaction(line, dated, body)
            elif dated[4] in _IGNORED:
                if _IGNORED[dated[4]]:
                    self.books.left_out[_IGNORED[dated[4]]] += 1
            else:
                reason = "it makes entries that are not written out" if dated[4] == "pad" else "it is not known"
                self.faults.add(line, f"{dated[4][:30]!r} is not taken over: {reason}")
        if self.faults:
            raise self.faults.error(remedy=REMEDY)
        return self.books

    def _iter_blocks(self) -> Iterator[tuple[int, str, list[tuple[int, str]]]]:
        """Each directive, its strings whole, with the indented lines that follow it."""
        head: tuple[int, str] | None = None
        body: list[tuple[int, str]] = []
        for number, line in self._iter_lines():
            if not line.strip() or line.lstrip()[0] == ";" or line[0] in "*#:":
                continue
            if line[0] in " \t":
                if head is not None:
                    body.append((number, line))
                else:
                    self.faults.add(number, "an indented line that belongs to nothing")
                continue
            if head is not None:
                yield *head, body
            head, body = (number, line), []
        if head is not None:
            yield *head, body

    def _iter_lines(self) -> Iterator[tuple[int, str]]:
        """Lines with their numbers; a string that goes over several lines is one."""
        waiting, start = "", 0
        for number, line in enumerate(self.text.split("\n"), 1):
            line = line.rstrip("\r")
            waiting, start = (f"{waiting}\n{line}", start) if start else (line, number)
            if len(line) > MAX_LINE or number - start > MAX_STRING_LINES:
                self.faults.add(start, "a line or string that is too long")
            elif '"' in waiting and _ends_in_string(waiting):
                continue
            else:
                yield start, waiting
            waiting, start = "", 0
        if start:
            self.faults.add(start, "a string that does not end")

    def _read_plain(self, line: int, head: str) -> None:
        word = head.split(None, 1)[0]
        if word == "include":
            self.faults.add(line, "'include' is not taken over: no file is read but the one that is named")
        elif word in _PLAIN:
            if _PLAIN[word]:
                self.books.left_out[_PLAIN[word]] += 1
        else:
            self.faults.add(line, f"{head[:60]!r} is not a directive that is known")

    def _read_transaction(self, line: int, head: re.Match[str], body: list[tuple[int, str]]) -> None:
        day = read_day(head[1], head[2], head[3])
        strings: list[str] = []
        at = 0
        while (found := _STRING.match(head[5], at)) is not None:
            strings.append(unquote_string(found[1]))
            at = found.end() + len(head[5][found.end() :]) - len(head[5][found.end() :].lstrip())
        if day is None or len(strings) > 2 or not _TAGS.fullmatch(head[5][at:]):
            self.faults.add(line, f"{head[0][:60]!r} is not a transaction that is understood")
            return
        if head[4] == "!":
            self.books.left_out["marks of pending transactions (!)"] += 1
        before, facts, legs = len(self.faults.kept) + self.faults.more, dict[str, str](), list[SourcePosting | str]()
        for number, text in body:
            meta, posting = _META.fullmatch(text), _POSTING.fullmatch(text)
            if meta is not None:
                value = _STRING.match(meta[2])
                if value is not None and not legs:
                    facts[meta[1]] = unquote_string(value[1])
            elif posting is not None:
                self._read_posting(number, posting[1], posting[2].strip(), legs)
            elif not _TAGS.fullmatch(text):
                self.faults.add(number, f"{text.strip()[:60]!r} is no posting that is understood")
        if len(self.faults.kept) + self.faults.more == before:
            self._add_entry(line, day, strings, self._balance(line, legs), facts)

    def _read_posting(self, line: int, account: str, amount: str, legs: list[SourcePosting | str]) -> None:
        if any(mark in amount for mark in "@{"):
            self.faults.add(line, f"{amount[:60]!r} has a price: other currencies and lots are not taken over")
        elif not amount:
            legs.append(account)
        else:
            try:
                legs.append(SourcePosting(account, self.amounts.read_amount(amount)))
            except ValueError as error:
                self.faults.add(line, str(error))

    def _balance(self, line: int, legs: list[SourcePosting | str]) -> tuple[SourcePosting, ...]:
        """The legs; the one without an amount, if there is one, has what is left."""
        rest = -money.total([leg.amount for leg in legs if isinstance(leg, SourcePosting)])
        missing = sum(isinstance(leg, str) for leg in legs)
        if missing > 1:
            self.faults.add(line, "more than one posting is without an amount")
        elif not missing and rest:
            self.faults.add(line, f"the transaction does not balance: {money.format_amount(-rest)} is left")
        return tuple(SourcePosting(leg, rest) if isinstance(leg, str) else leg for leg in legs)

    def _add_entry(
        self, line: int, day: date, strings: list[str], legs: tuple[SourcePosting, ...], facts: dict[str, str]
    ) -> None:
        payee, text = strings if len(strings) == 2 else ("", *strings) if strings else ("", "")
        kind = facts.get("kind", "") if self.is_ours else ""
        if legs:
            self.books.entries.append(
                SourceEntry(
                    line,
                    day,
                    text or payee,
                    legs,
                    payee,
                    facts.get("tags", "") if self.is_ours else "",
                    facts.get("notes", ""),
                    kind if kind in KEPT_KINDS else "",
                )
            )


def _ends_in_string(text: str) -> bool:
    """Whether a quote is open at the end. A comment's quotes open nothing."""
    rest = _STRING.sub("", text)
    return '"' in rest.split(";", 1)[0]
