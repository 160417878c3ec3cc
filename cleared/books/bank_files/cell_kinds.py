"""What a cell of an unknown CSV may be: a date or a number, in any of the ways in which banks write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Final

from cleared.books.bank_files.cell_values import AmountStyle, make_strptime_parser

DATE_FORMATS: Final = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%d %b %Y",
    "%b %d, %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
)
NUMBER_STYLES: Final = ((".", ","), (",", "."), (".", "'"), (",", " "), (".", " "))
SYMBOLS: Final = ("$", "€", "£", "USD", "EUR", "GBP", "CHF")


def is_transaction(fields: Sequence[str]) -> bool:
    return any(is_date(cell) for cell in fields) and any(is_number(cell) for cell in fields)


def is_number(cell: str) -> bool:
    return any(c.isdigit() for c in cell) and any(_parses(style, cell) for style in _make_styles(SYMBOLS))


def _make_styles(symbols: tuple[str, ...]) -> list[Callable[[str], Decimal]]:
    parsers = [AmountStyle(decimal, thousands, symbols).make_parser() for decimal, thousands in NUMBER_STYLES]
    return [lambda cell, parse=parse: parse(cell, 4) for parse in parsers]  # type: ignore[misc]


def _parses(parse: Callable[[str], object], cell: str) -> bool:
    try:
        parse(cell)
    except ValueError:
        return False
    return True


def take_first_words(cell: str, date_format: str) -> str:
    """The cell without the time that may stand behind the date."""
    words = re.sub(r"(?<=[0-9])T(?=[0-9])", " ", cell).split()
    return " ".join(words[: len(date_format.split())])


DATE_PARSERS: Final = {form: make_strptime_parser(form) for form in DATE_FORMATS}


def is_date(cell: str) -> bool:
    """Whether it is a date in one of the known forms; a time may stand behind it."""
    return bool(cell.strip()) and any(_parses(p, take_first_words(cell, form)) for form, p in DATE_PARSERS.items())


def are_numbers(column: Iterable[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(is_number(cell) for cell in filled) and not all(is_date(c) for c in filled)


def are_dates(column: Iterable[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(is_date(cell) for cell in filled)
