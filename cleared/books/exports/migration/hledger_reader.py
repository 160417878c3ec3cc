"""Reading hledger journals: plain transactions, as ``hledger print`` writes them. Nothing else is read or run.

Balance assertions, prices and declarations are read over and counted; what would change amounts or accounts in a way
that is not written out (automatic and periodic transactions, aliases, other currencies) is refused with its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.base import money
from cleared.books.bank_files.base import Faults
from cleared.books.exports.hledger_file import FIRST_LINE
from cleared.books.exports.migration.source_books import (
    KEPT_KINDS,
    SourceAmounts,
    SourceBooks,
    SourceEntry,
    SourcePosting,
    read_day,
)
from cleared.books.exports.written_text import unescape_text

REMEDY: Final = "Mend it, or have hledger write all out: hledger -f FILE print -x > plain.journal"
MAX_LINE: Final = 20_000
"""Characters of a line."""
_HEAD: Final = re.compile(
    r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(=\S+)?(?=\s|$|[*!(;])\s*([*!])?\s*(?:\(([^)]*)\))?\s*([^;]*)(;.*)?", re.ASCII
)
_BETWEEN: Final = re.compile(r"\s{2,}|\t")
_ASSERTION: Final = re.compile(r"==?\*?")
_OWN_DATE: Final = re.compile(r"(?:^|[\s,;])date2?:|\[[-/.=0-9]+\]")
_TYPE: Final = re.compile(r"(?:^|[\s,;])type:\s*([A-Za-z]+)")
_TYPES: Final = {"A": "asset", "C": "asset", "L": "liability", "E": "equity", "R": "revenue", "X": "expense"}
_IGNORED: Final = ("payee", "tag", "P")
_REFUSED: Final = {
    "include": "another file would be read",
    "alias": "accounts would be renamed",
    "apply": "accounts would be renamed",
    "end": "accounts would be renamed",
    "~": "a periodic transaction",
    "=": "an automatic transaction",
    "Y": "dates without a year",
    "year": "dates without a year",
    "A": "a default account",
    "bucket": "a default account",
    "C": "a conversion of units",
    "N": "a directive",
    "i": "a timeclock entry",
    "o": "a timeclock entry",
}


def read_hledger(text: str, currency: str, places: int) -> SourceBooks:
    """All transactions of a journal. Raises ``ImportFileError`` with the lines that are not understood."""
    return _JournalReader(text, currency, places).read_journal()


class _JournalReader:
    def __init__(self, text: str, currency: str, places: int) -> None:
        self.text = text
        self.amounts = SourceAmounts(currency, places)
        self.books = SourceBooks("hledger")
        self.faults = Faults()
        self.is_ours = text.startswith(FIRST_LINE)

    def read_journal(self) -> SourceBooks:
        for line, head, body in self._iter_blocks():
            if head[0].isdigit():
                self._read_transaction(line, head, body)
            else:
                self._read_directive(line, head, body)
        if self.faults:
            raise self.faults.error(remedy=REMEDY)
        return self.books

    def _iter_blocks(self) -> Iterator[tuple[int, str, list[tuple[int, str]]]]:
        """Each line that begins at the margin, with the indented ones that follow it; comments are left out."""
        head: tuple[int, str] | None = None
        body: list[tuple[int, str]] = []
        is_comment = False  # one that does not end goes on to the end of the file, as in hledger
        for number, line in enumerate(self.text.split("\n"), 1):
            line = line.rstrip("\r")
            if len(line) > MAX_LINE:
                self.faults.add(number, "a line that is too long")
                continue
            if is_comment:
                is_comment = line.strip() != "end comment"
                continue
            if not line.strip() or line[0] in ";#*":
                if not line.strip() and head is not None:
                    yield *head, body
                    head, body = None, []
                continue
            if line[0] in " \t":
                if head is not None:
                    body.append((number, line))
                elif line.strip()[0] not in ";#":
                    self.faults.add(number, "an indented line that belongs to nothing")
                continue
            if head is not None:
                yield *head, body
            head, body = (number, line), []
            if line.split(";")[0].strip() == "comment":
                head, is_comment = None, True
        if head is not None:
            yield *head, body

    def _read_directive(self, line: int, head: str, body: list[tuple[int, str]]) -> None:
        word = head.split(None, 1)[0]
        rest = head[len(word) :].strip()
        if word in _IGNORED:
            self.books.left_out["prices" if word == "P" else "declarations"] += 1
        elif word == "decimal-mark" and rest[:1] in (".", ","):
            self.amounts.decimal_mark = rest[0]
        elif word in ("commodity", "D"):
            self._read_commodity(rest, body)
        elif word == "account":
            name = re.split(r"\s{2,}|\t|;", rest, maxsplit=1)[0].strip()
            found = _TYPE.search(" ".join([rest, *(text for _, text in body)]))
            if found is not None:
                self.books.types[name] = _TYPES.get(found[1].upper()[:1], "")
        else:
            reason = _REFUSED.get(word) or _REFUSED.get(word[:1]) or "not a transaction, nor a directive that is known"
            self.faults.add(line, f"{head[:60]!r} is not taken over: {reason}")

    def _read_commodity(self, rest: str, body: list[tuple[int, str]]) -> None:
        """The decimal mark, where a sample of our currency shows it without a doubt."""
        sample = rest.split(";")[0].strip()
        for _, text in body:
            if text.strip().startswith("format "):
                sample = text.strip().removeprefix("format ").strip()
        digits = re.sub(r"[^0-9.,]", "", sample)
        ours = any(self.amounts.is_ours(c) for c in re.findall(r'"[^"]*"|[^\d\s.,+\-]+', sample))
        if ours and digits and not self.amounts.decimal_mark:
            if digits[-1] in ".,":
                self.amounts.decimal_mark = digits[-1]
            elif len(set(digits) & {".", ","}) == 2:
                self.amounts.decimal_mark = max(".,", key=digits.rindex)

    def _read_transaction(self, line: int, head: str, body: list[tuple[int, str]]) -> None:
        match = _HEAD.fullmatch(head)
        day = read_day(match[1], match[3], match[4]) if match is not None else None
        if match is None or day is None:
            self.faults.add(line, f"{head[:60]!r} does not begin with a day such as 2025-01-31")
            return
        comments = [match[9][1:].strip()] if match[9] else []
        postings: list[tuple[int, str, str]] = []
        for number, text in body:
            if text.strip()[0] in ";#":
                comments.append(text.strip()[1:].strip())
                if postings and _OWN_DATE.search(comments[-1]):
                    self.faults.add(number, "a posting has a date of its own")
                continue
            account, *rest = _BETWEEN.split(text.strip().lstrip("*!").lstrip(), maxsplit=1)
            amount, is_commented, comment = "".join(rest).partition(";")
            if account[0] in "([" or ";" in account:
                self.faults.add(number, f"{text.strip()[:60]!r} is no posting (virtual ones are not taken over)")
                continue
            if is_commented:
                comments.append(comment.strip())
                if _OWN_DATE.search(comment):
                    self.faults.add(number, "a posting has a date of its own")
            postings.append((number, account, amount.strip()))
        legs = self._read_postings(line, postings)
        if match[5]:
            self.books.left_out["second dates"] += 1
        if match[6] == "!":
            self.books.left_out["marks of pending transactions (!)"] += 1
        if legs and not (self.is_ours and all(not leg.amount for leg in legs)):
            self.books.entries.append(
                self._make_entry(line, day, match[8].strip(), tuple(legs), match[7] or "", comments)
            )

    def _make_entry(
        self, line: int, day: date, text: str, legs: tuple[SourcePosting, ...], code: str, comments: list[str]
    ) -> SourceEntry:
        if not self.is_ours:
            payee = text.split("|", 1)[0].strip() if "|" in text else ""
            notes = "; ".join(filter(None, [f"code {code}" if code else "", *comments]))
            return SourceEntry(line, day, text, legs, payee, notes=notes)
        facts = {name: unescape_text(value) for name, _, value in (c.partition(": ") for c in comments)}
        kind = facts.get("kind", "")
        return SourceEntry(
            line,
            day,
            unescape_text(text),
            legs,
            facts.get("counterparty", ""),
            facts.get("tags", ""),
            facts.get("notes", ""),
            kind if kind in KEPT_KINDS else "",
        )

    def _read_postings(self, line: int, postings: list[tuple[int, str, str]]) -> list[SourcePosting]:
        """The legs; one may be without an amount. Empty where there is a fault."""
        legs: list[SourcePosting] = []
        open_at: list[int] = []
        before = len(self.faults.kept) + self.faults.more
        for number, account, text in postings:
            parts = _ASSERTION.split(text, maxsplit=1)
            if len(parts) > 1:
                self.books.left_out["balance assertions"] += 1
            amount = parts[0].strip()
            if any(mark in amount for mark in "@{"):
                self.faults.add(number, f"{amount[:60]!r} has a price: other currencies and lots are not taken over")
            elif not amount and len(parts) > 1:
                self.faults.add(number, "a balance is assigned: write the amount")
            elif not amount:
                open_at.append(len(legs))
                legs.append(SourcePosting(account, Decimal(0)))
            else:
                try:
                    legs.append(SourcePosting(account, self.amounts.read_amount(amount)))
                except ValueError as error:
                    self.faults.add(number, str(error))
        if len(self.faults.kept) + self.faults.more > before:
            return []
        rest = -money.total([leg.amount for leg in legs])
        if len(open_at) > 1:
            self.faults.add(line, "more than one posting is without an amount")
        elif open_at:
            legs[open_at[0]] = legs[open_at[0]]._replace(amount=rest)
        elif rest:
            self.faults.add(line, f"the transaction does not balance: {money.format_amount(-rest)} is left")
        return legs
