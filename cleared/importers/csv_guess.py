"""What the columns of an unknown CSV may mean: a description to show to a person, and what could not be told.

A guess is never used without somebody having seen its rows: what two readings fit is a question, not a choice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date
from decimal import Decimal
from typing import Any, Final

from cleared.config.bank_section import CsvProfile
from cleared.importers.base import BOMS, ImportFileError
from cleared.importers.cell_values import AmountStyle, make_strptime_parser
from cleared.importers.csv_records import read_header, read_records, split_lines
from cleared.importers.csv_table import fold_names
from cleared.importers.text_decoding import decode_text
from cleared.light_dataclass import dataclass

MAX_ROWS: Final = 2_000
"""How many rows are looked at."""
_PREAMBLE: Final = 40
DATE_FORMATS: Final = (
    "%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y",
    "%Y/%m/%d", "%d %b %Y", "%b %d, %Y", "%d-%b-%Y", "%d-%b-%y",
)  # fmt: skip
_STYLES: Final = ((".", ","), (",", "."), (".", "'"), (",", " "), (".", " "))
_SYMBOLS: Final = ("$", "€", "£", "USD", "EUR", "GBP", "CHF")
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "transaction_date": (
        "transaction date", "trans. date", "trans date", "value date", "wertstellung", "valuta", "started",
    ),
    "date": (
        "posting date", "posted date", "post date", "booking date", "buchungstag", "buchungsdatum", "completed date",
        "settlement date", "date", "datum", "fecha", "data", "created",
    ),
    "debit": ("debit", "withdrawal", "withdrawals", "paid out", "money out", "soll", "ausgaben", "belastung"),
    "credit": ("credit", "deposit", "deposits", "paid in", "money in", "haben", "einnahmen", "gutschrift"),
    "balance": ("running balance", "running bal.", "balance", "saldo", "kontostand"),
    "amount": ("amount", "net", "betrag", "umsatz", "montant", "importe", "value"),
    "description": (
        "description", "verwendungszweck", "details", "payee", "merchant", "counterparty", "name", "text", "narrative",
        "buchungstext", "empfänger", "concepto", "libellé", "memo", "reference",
    ),
    "id": ("transaction id", "transaction reference", "id", "reference number", "fitid"),
    "currency": ("currency", "währung", "devise", "moneda"),
    "type": ("type", "transaction type", "category", "buchungsart"),
    "direction": (
        "debit/credit", "credit/debit", "dr/cr", "cr/dr", "transaction type", "type", "details", "direction",
    ),
}  # fmt: skip
"""Field → how banks head its column, in several languages."""
_OUT: Final = frozenset({"debit", "dr", "d", "withdrawal", "out"})
_IN: Final = frozenset({"credit", "cr", "c", "deposit", "in"})


@dataclass(frozen=True, slots=True)
class CsvGuess:
    """A description, and what a person has to say beside: option of ``cleared bank add`` → the question."""

    values: dict[str, Any]
    """As ``import.profiles.NAME`` has them."""
    questions: dict[str, str] = field(default_factory=dict)

    def make_profile(self, name: str) -> CsvProfile:
        return CsvProfile(name=name, **self.values)


def guess_profile(data: bytes, known: Mapping[str, Any], *, is_card: bool = False) -> CsvGuess:
    """Describe a CSV. ``known``: what a person has said already, keys as in a profile. ``is_card``: it is of a credit
    card, where most lines are purchases.

    Raises ``ImportFileError`` where it is no table of transactions at all.
    """
    encoding = str(known.get("encoding") or _guess_encoding(data))
    text = decode_text(data, encoding)
    delimiter = str(known.get("delimiter") or _guess_delimiter(text))
    skip, names, is_named = _find_names(text, delimiter, known.get("skip_lines"))
    records = _read_rows(text, delimiter, skip, len(names), is_named)
    if not records:
        raise ImportFileError(
            "no lines of it look like transactions: none has a date and an amount",
            remedy="Download the account's transactions as CSV or OFX",
        )
    guess = CsvGuess({"columns": {}, "delimiter": delimiter, "encoding": encoding})
    values = guess.values
    if is_named and skip:
        values["skip_lines"] = skip
    if not is_named:
        values["headers"] = tuple(names)
    cells = {name: [record[at].strip() for record in records] for at, name in enumerate(names)}
    _guess_numbers(cells, values, guess.questions, known)
    said = {key: value for key, value in known.get("columns", {}).items() if value}
    values["columns"] = _guess_columns(names, cells, values, said)
    _guess_dates(cells, values, guess.questions, known)
    _guess_signs(cells, values, guess.questions, known, is_card=is_card)
    for key in ("currency", "sign", "decimal", "thousands", "date_format"):
        if known.get(key):
            values[key] = known[key]
    columns = values["columns"]
    for needed in ("date", "description"):
        if needed not in columns:
            guess.questions["--column"] = f"Which column is the {needed}? --column {needed}=NAME"
    if "amount" not in columns and not {"debit", "credit"} <= set(columns):
        guess.questions["--column"] = "Which column is the amount? --column amount=NAME, or debit= and credit="
    return guess


def _guess_encoding(data: bytes) -> str:
    for mark, encoding in BOMS:
        if data.startswith(mark):
            return encoding
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def _guess_delimiter(text: str) -> str:
    """The sign that cuts most of the first lines into equally many fields, the more the better."""

    def weight(delimiter: str) -> tuple[int, int]:
        counts = [line.count(delimiter) for line, _ in zip(split_lines(text), range(60), strict=False)]
        common = max(set(counts), key=lambda n: (counts.count(n) if n else 0, n), default=0)
        return (counts.count(common) if common else 0, common)

    return max((";", "\t", "|", ","), key=weight)


def _find_names(text: str, delimiter: str, said: int | None) -> tuple[int, list[str], bool]:
    """``(lines above, names, whether the file has them)``: of the lines above the first transaction that have as many
    fields as it, the one with the most words that banks use, else with the most words."""
    found: list[tuple[tuple[int, int], int, list[str]]] = []
    for skip in range(said or 0, (said or 0) + (1 if said is not None else _PREAMBLE)):
        header = read_header(text, delimiter, skip)
        if header is None:
            break
        at, names = header
        if len(names) < 2 or (said is None and at != skip + 1):
            continue
        if _is_transaction(names):
            if not found:
                return skip, [f"Column {n}" for n in range(1, len(names) + 1)], False
            break
        filled = [name for name in names if name]
        if len(filled) >= 2 and _has_rows_below(text, delimiter, at, len(names)):
            found.append(((_count_known_words(filled), len(filled)), at, names))
    if not found:
        raise ImportFileError(
            "no line of it looks like column headers with transactions below",
            remedy="Say how many lines stand above them: --skip-lines N",
        )
    _, at, names = max(found, key=lambda each: each[0])  # of several equal ones the first
    return at - 1, [name or f"Column {n}" for n, name in enumerate(names, 1)], True


def _count_known_words(names: Iterable[str]) -> int:
    """How many of the names begin as banks head a column."""
    words = tuple({word for each in _WORDS.values() for word in each})
    return sum(1 for name in fold_names(names) if name.startswith(words))


def _has_rows_below(text: str, delimiter: str, at: int, width: int) -> bool:
    try:
        for number, (_, fields) in enumerate(read_records(text, delimiter, at)):
            if abs(len(fields) - width) <= 1 and _is_transaction(fields):
                return True
            if number > 3:
                break
    except ImportFileError:
        pass
    return False


def _is_transaction(fields: Sequence[str]) -> bool:
    return any(_fits(DATE_PARSERS, cell) for cell in fields) and any(_is_number(cell) for cell in fields)


def _is_number(cell: str) -> bool:
    return any(c.isdigit() for c in cell) and any(_parses(style, cell) for style in _make_styles(_SYMBOLS))


def _make_styles(symbols: tuple[str, ...]) -> list[Callable[[str], Decimal]]:
    parsers = [AmountStyle(decimal, thousands, symbols).make_parser() for decimal, thousands in _STYLES]
    return [lambda cell, parse=parse: parse(cell, 4) for parse in parsers]  # type: ignore[misc]


def _parses(parse: Callable[[str], object], cell: str) -> bool:
    try:
        parse(cell)
    except ValueError:
        return False
    return True


def _first_word(cell: str, date_format: str) -> str:
    """The cell without the time that may stand behind the date."""
    words = re.sub(r"(?<=[0-9])T(?=[0-9])", " ", cell).split()
    return " ".join(words[: len(date_format.split())])


DATE_PARSERS: Final = {form: make_strptime_parser(form) for form in DATE_FORMATS}


def _fits(parsers: Mapping[str, Callable[[str], date]], cell: str) -> bool:
    return any(_parses(parse, _first_word(cell, form)) for form, parse in parsers.items()) if cell.strip() else False


def _read_rows(text: str, delimiter: str, skip: int, width: int, is_named: bool) -> list[list[str]]:
    rows = []
    records = read_records(text, delimiter, skip)
    for number, (_, fields) in enumerate(records):
        if number >= MAX_ROWS:
            break
        if len(fields) in (width, width + 1) and not (is_named and number == 0) and _is_transaction(fields):
            rows.append(fields[:width])
    return rows


def _guess_numbers(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any]
) -> None:
    """The decimal mark and grouping with which every column of numbers can be read."""
    numbers = [cell for column in cells.values() for cell in column if _is_number(cell)]
    symbols = tuple(symbol for symbol in _SYMBOLS if any(symbol in cell for cell in numbers))
    if symbols:
        values["currency_symbols"] = symbols
    numeric = [c for column in cells.values() if _all_numbers(column) for c in column if c]
    styles = [pair for pair in _STYLES if known.get("decimal") in (None, "", pair[0])]
    fitting = {}
    for decimal, thousands in styles:
        parse = AmountStyle(decimal, thousands, symbols).make_parser()
        try:
            fitting[decimal, thousands] = [parse(cell, 4) for cell in numeric]
        except ValueError:
            continue
    if not fitting:
        return
    (decimal, thousands), read = next(iter(fitting.items()))
    values["decimal"] = decimal
    if any(thousands in cell for cell in numeric):
        values["thousands"] = thousands
    if any(other != read for other in fitting.values()):
        questions["--decimal"] = "Is the decimal mark a point or a comma? --decimal . or --decimal ,"


def _all_numbers(column: Iterable[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(_is_number(cell) for cell in filled) and not all(_fits(DATE_PARSERS, c) for c in filled)


def _all_dates(column: Iterable[str]) -> bool:
    filled = [cell for cell in column if cell]
    return bool(filled) and all(_fits(DATE_PARSERS, cell) for cell in filled)


def _guess_columns(
    names: Sequence[str], cells: Mapping[str, list[str]], values: Mapping[str, Any], said: Mapping[str, str]
) -> dict[str, str]:
    """Field → column: as said, else by name where what stands in it fits, else by what stands in it."""
    folded = dict(zip(fold_names(names), names, strict=True))
    columns = {field: folded.get(name.strip().casefold(), name) for field, name in said.items()}
    fits: dict[str, Callable[[list[str]], bool]] = {
        "date": _all_dates, "transaction_date": _all_dates, "amount": _all_numbers, "debit": _all_numbers,
        "credit": _all_numbers, "balance": _all_numbers,
        "direction": lambda column: {c.casefold() for c in column if c} <= _OUT | _IN,
        "currency": lambda column: all(re.fullmatch("[A-Z]{3}", c) for c in column),
        "id": lambda column: all(column) and len(set(column)) == len(column),
        "description": lambda column: 2 * sum(map(bool, column)) >= len(column),
    }  # fmt: skip
    order = ("date", "transaction_date", "debit", "credit", "balance", "amount", "direction", "description", "id",
             "currency", "type")  # fmt: skip
    for field_name in order:
        if field_name in columns or (field_name == "amount" and {"debit", "credit"} <= set(columns)):
            continue
        fit = fits.get(field_name, any)
        for word in _WORDS[field_name]:
            heads = (word, f"{word} ", f"{word}(")
            named = (n for f, n in folded.items() if f == word or f.startswith(heads[1:]))
            name = next((n for n in named if n not in columns.values()), None)
            if name is not None and any(cells[name]) and fit(cells[name]):
                columns[field_name] = name
                break
    if ("debit" in columns) != ("credit" in columns) or "amount" in columns:
        columns = {f: n for f, n in columns.items() if f not in ("debit", "credit") or f in said}
    free = [name for name in names if name not in columns.values()]
    if "date" not in columns and (name := next((n for n in free if _all_dates(cells[n])), None)):
        columns["date"] = name
    if "date" not in columns and "transaction_date" not in said and "transaction_date" in columns:
        columns["date"] = columns.pop("transaction_date")  # the only one
    numeric = (n for n in free if n not in columns.values() and _all_numbers(cells[n]) and all(cells[n]))
    if "amount" not in columns and "debit" not in columns and (name := next(numeric, None)):
        columns["amount"] = name
    if "description" not in columns:
        texts = [n for n in free if n not in columns.values() and not _all_numbers(cells[n]) and any(cells[n])]
        if texts:
            columns["description"] = max(texts, key=lambda n: len(set(cells[n])) * 100 + sum(map(len, cells[n])))
    if "amount" not in columns:
        columns.pop("direction", None)
    return {field_name: columns[field_name] for field_name in columns}


def _guess_dates(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any]
) -> None:
    column = cells.get(values["columns"].get("date", ""), [])
    forms = [known["date_format"]] if known.get("date_format") else list(DATE_FORMATS)
    fitting: dict[str, list[date]] = {}
    for form in forms:
        parse = DATE_PARSERS.get(form) or make_strptime_parser(form)
        try:
            fitting[form] = [parse(_first_word(cell, form)) for cell in column]
        except ValueError:
            continue
    if not fitting:
        questions["--date-format"] = "How are dates written? --date-format, such as %d.%m.%Y"
        return
    form, read = next(iter(fitting.items()))
    values["date_format"] = form
    if any(len(cell.split()) > len(form.split()) or "T" in cell for cell in column):
        values["date_rest"] = True
    others = [other for other, days in fitting.items() if days != read]
    if others:
        shown = " or ".join(f"--date-format {each}" for each in (form, *others))
        questions["--date-format"] = f"Which of day and month comes first? {shown}"


def _guess_signs(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any],
    *, is_card: bool,
) -> None:  # fmt: skip
    columns = values["columns"]
    if "amount" not in columns or known.get("sign"):
        return
    decimal = str(known.get("decimal") or values.get("decimal", "."))
    parse = AmountStyle(decimal, values.get("thousands", ""), values.get("currency_symbols", ())).make_parser()
    try:
        amounts = [parse(cell, 4) for cell in cells[columns["amount"]]]
        balances = [parse(cell, 4) for cell in cells.get(columns.get("balance", ""), [])]
    except ValueError:
        return
    if any(amount < 0 for amount in amounts):
        columns.pop("direction", None)
        follows = [sign for sign in (1, -1) if _follow(balances, amounts, sign)]
        if follows == [-1]:
            values["sign"] = "inverted"
        is_charged = is_card or "charge" in columns["amount"].casefold()
        if not follows and is_charged and 2 * sum(amount > 0 for amount in amounts) > len(amounts):
            questions["--sign"] = (
                "Most amounts are positive. Are they purchases (--sign inverted) or money in (--sign as_is)?"
            )
    elif "direction" not in columns:
        questions["--sign"] = "No amount is negative. Are they money in (--sign as_is) or money out (--sign inverted)?"


def _follow(balances: Sequence[Decimal], amounts: Sequence[Decimal], sign: int) -> bool:
    """Whether the running balance follows from the amounts, in either order of the rows."""
    if len(balances) < 2:
        return False
    pairs = list(zip(balances, amounts, strict=True))
    forward = all(a[0] + sign * b[1] == b[0] for a, b in itertools.pairwise(pairs))
    backward = all(b[0] + sign * a[1] == a[0] for a, b in itertools.pairwise(pairs))
    return forward or backward
