"""What an importer is: the contract of a bank-file plug-in, and how a file is refused.

A plug-in is a class without constructor arguments, published as an entry point of the group
``cleared.importers`` under the importer's own ``name``, and switched on by that name in ``import.plugins``.
``cleared.books.bank_files.plugin_tests.check_importer`` is the test it has to pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

from msgspec import Struct

from cleared.base.errors import ClearedError, ExitCode, Place
from cleared.base.short_text import shorten_text
from cleared.books.ledger.bank_row import BankRow, ParsedFile

SAMPLE_BYTES = 64 * 1024
MAX_FAULTS = 20
"""How many faults of one file are spelled out; the others are counted."""

BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def is_windows_text(data: bytes, encoding: str) -> bool:
    """Whether ``data``, which has no byte order mark and should be UTF-8, is Windows' text (cp1252): there is more in
    it than ASCII, and nothing of that is UTF-8. Which of both a bank writes shows only where a name has an accent."""
    if encoding.lower() not in ("utf-8", "utf8") or data.isascii():
        return False
    return data.decode("utf-8", "ignore").isascii()


class Sample(Struct, frozen=True, dict=True):
    """The beginning of a file, for recognising its format and for nothing else.

    Its text may be wrong or end in the middle of a character: the file is decoded strictly only once its
    format, and with it its encoding, is known.
    """

    name: str
    """Path relative to ``import/``, with ``/``."""
    data: bytes
    """The first ``SAMPLE_BYTES`` bytes, byte order mark included."""

    @property
    def text(self) -> str:
        """By the byte order mark, else every byte as the character of its number (latin-1): no byte is lost."""
        return self.view("latin-1")

    @cached_property
    def first(self) -> str:
        """The first character that is no white space; empty where there is none."""
        return self.text.lstrip()[:1]

    def view(self, encoding: str) -> str:
        """The sample as text of ``encoding`` (a byte order mark wins); undecodable bytes become U+FFFD."""
        for mark, marked in BOMS:
            if self.data.startswith(mark):
                return self.data[len(mark) :].decode(marked, "replace")
        try:
            return self.data.decode(encoding, "replace")
        except (LookupError, UnicodeError):
            return self.data.decode("latin-1")


@runtime_checkable
class Importer(Protocol):
    """Reads one bank's file format. Stateless and pure: no files, no network, no clock, no randomness.

    It may also have a text attribute ``encoding`` (default ``utf-8``): how files without a byte order mark
    are decoded; or, where files declare it inside, a method ``find_encoding(data: bytes) -> str``. Where lines
    of the file mean nothing, ``numbers_rows = True`` says that ``row`` counts rows instead. A format that is
    another one under one more condition has ``variant_of``, that one's name: it recognises no file by itself,
    and is taken where a bank account names it. One whose files begin with one of a few characters, white space aside,
    has them as ``beginnings``, and is not asked about others. Bounds on dates, amounts, text and row count are checked
    by the host, not here.
    """

    @property
    def name(self) -> str:
        """The format's name, ``[a-z0-9_-]+``: what ``format:`` and ``importer_parse(…, format=…)`` say."""

    def identify(self, sample: Sample) -> bool:
        """Whether this is a file of this format, certain enough to post from: header names, not a guess.

        Must answer for any bytes without raising. Two importers that say yes to one file get it refused.
        """

    def parse(self, text: str, places: int) -> ParsedFile:
        """All rows of a decoded file, in file order. ``text`` has no byte order mark and its own line ends.

        A file of several accounts, or one that states balances, is ``ParsedFile.of_statements(…)``: each
        statement has its account's number as the file writes it, its currency, its opening and closing balance.
        A statement without rows is valid. ``places`` is the number of decimals of the base currency; amounts are
        exact ``Decimal`` with as many as the statement's currency has, or with ``places`` where it states none
        (``cleared.base.money.decode`` does it), negative = money out. ``row`` is the 1-based physical line a
        row starts on, or its number in the file; ``description`` is the bank's text, unchanged. Zero amounts
        are rows too. ``format`` of the result is ``name``. Raises ``ImportFileError`` and nothing else for what
        it cannot read exactly; ``Faults`` gathers such reasons, so that a user sees all of them at once.
        """


class BuiltInFormat:
    """Base of the formats that come with the program."""

    def __init__(self, max_rows: int | None = None) -> None:
        """``max_rows``: refuse as soon as there are more; None leaves it to the host's check afterwards."""
        self.max_rows = max_rows


class Fault(Struct, frozen=True, order=True):
    """One thing wrong with a file: the line it is on (0: the reason says where), what, and in which column."""

    line: int
    reason: str
    field: str = ""

    def __str__(self) -> str:
        field = f" ({self.field})" if self.field else ""
        return f"line {self.line}{field}: {self.reason}" if self.line else self.reason


class ImportFileError(ClearedError):
    """A bank file is refused, whole: it stays where it is and nothing of it is posted.

    ``faults`` are its lines and reasons (the place is the first one's), ``more`` counts those left out;
    ``rows`` are those that could be read, so that the host can name their faults in the same message.
    """

    exit_code = ExitCode.FAILED

    def __init__(
        self,
        message: str,
        *,
        place: Place | None = None,
        remedy: str | None = None,
        faults: Sequence[Fault] = (),
        rows: Sequence[BankRow] = (),
        more: int = 0,
    ) -> None:
        super().__init__(message, place=place, remedy=remedy)
        self.faults = tuple(faults)
        self.rows = tuple(rows)
        self.more = more

    def of_file(self, name: str) -> ImportFileError:
        """The same refusal, with the file named in its place."""
        at = self.place or Place()
        place = Place(file=name, line=at.line, column=at.column, field=at.field)
        return ImportFileError(
            self.message,
            place=place,
            remedy=self.remedy,
            faults=self.faults,
            rows=self.rows,
            more=self.more,
        )


class Faults(Struct):
    """Gathers what is wrong with a file: keeps the first ``MAX_FAULTS``, counts the others."""

    kept: list[Fault] = []
    more: int = 0

    def add(self, line: int, reason: str, field: str = "") -> None:
        self.extend([Fault(line, reason, field)])

    def extend(self, faults: Iterable[Fault]) -> None:
        for fault in faults:
            if len(self.kept) < MAX_FAULTS:
                self.kept.append(fault)
            else:
                self.more += 1

    def __bool__(self) -> bool:
        return bool(self.kept)

    def error(self, rows: Sequence[BankRow] = (), remedy: str | None = None) -> ImportFileError:
        """All faults as one refusal; its place is the first of them by line. Needs at least one fault."""
        ordered = sorted(self.kept)
        first = ordered[0]
        if len(ordered) + self.more == 1:
            message = first.reason
        else:
            message = f"{len(ordered) + self.more} faults: " + "; ".join(map(str, ordered))
            if self.more:
                message += f"; and {self.more} more"
        place = Place(line=first.line or None, field=first.field or None)
        return ImportFileError(message, place=place, remedy=remedy, faults=ordered, rows=rows, more=self.more)


class FieldError(ValueError):
    """A value of one row cannot be read: the reason and its column."""

    def __init__(self, reason: str, field: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.field = field


def quote_text(text: str, limit: int = 60) -> str:
    """Text from a file as it may appear in an error: quoted, control characters escaped, cut."""
    return repr(shorten_text(text, limit))
