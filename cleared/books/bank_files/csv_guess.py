"""What the columns of an unknown CSV may mean: a description to show to a person, and what could not be told.

A column is guessed by what it is headed, where what stands in it fits. A guess is never used without somebody having
seen its rows: what two readings fit is a question, not a choice.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from cleared.books.bank_files.base import ImportFileError, quote_text
from cleared.books.bank_files.cell_values import (
    AMOUNT_COLUMNS,
    CURRENCY_MARKS,
    DATE_FORMATS,
    DOLLARS,
    NAMED_CURRENCY,
    NUMBER_STYLES,
    SYMBOLS,
    AmountStyle,
    are_dates,
    are_numbers,
    is_number,
    make_strptime_parser,
    take_first_words,
)
from cleared.books.bank_files.column_words import (
    DETAILS,
    FEES,
    IN_WORDS,
    OUT_WORDS,
    PAYEES,
    PENDING,
    POSTED_WORDS,
    WORDS,
    is_headed,
)
from cleared.books.bank_files.csv_table import fold_names, quote_columns
from cleared.books.bank_files.unknown_table import read_table
from cleared.workspace.settings.bank_section import CsvProfile


class CsvGuess(Struct, frozen=True):
    """A description, and what a person has to say beside: option of ``cleared bank add`` → the question."""

    values: dict[str, Any]
    """As ``import.profiles.NAME`` has them."""
    questions: dict[str, str] = {}

    def make_profile(self, name: str) -> CsvProfile:
        return CsvProfile(name=name, **self.values)


def guess_profile(data: bytes, known: Mapping[str, Any], *, is_card: bool = False, base: str = "USD") -> CsvGuess:
    """Describe a CSV. ``known``: what a person has said already, keys as in a profile; ``unused``: columns that say
    nothing. ``is_card``: it is of a credit card, where most lines are purchases.

    Raises ``ImportFileError`` where it is no table of transactions at all.
    """
    table = read_table(data, known)
    names, cells = table.names, table.cells
    guess = CsvGuess({"columns": {}, "delimiter": table.delimiter, "encoding": table.encoding})
    values = guess.values
    if table.is_named and table.skip:
        values["skip_lines"] = table.skip
    if not table.is_named:
        values["headers"] = tuple(names)
    _guess_numbers(cells, values, guess.questions, known)
    said = {key: value for key, value in known.get("columns", {}).items() if value}
    absent = [name for name in said.values() if name.strip().casefold() not in fold_names(names)]
    if absent:
        raise ImportFileError(
            f"it has no column {quote_text(absent[0])}; its columns are {quote_columns(names)}",
            remedy="Name one of these: --column FIELD=NAME",
        )
    free = [name for name in names if name not in known.get("unused", ()) or name in said.values()]
    values["columns"] = guess_columns(free, cells, said)
    if texts := known.get("more_description"):
        values["more_description"] = tuple(texts)
    elif "description" not in said:
        add_texts(free, cells, values)
    guess_states(cells, values, guess.questions, known)
    _guess_dates(cells, values, guess.questions, known)
    _guess_signs(cells, values, guess.questions, known, is_card=is_card)
    _guess_currency(cells, values, base)
    for key in ("currency", "sign", "decimal", "thousands", "date_format"):
        if known.get(key):
            values[key] = known[key]
    _guess_fees({name: cells[name] for name in free}, values, guess.questions, known)
    columns = values["columns"]
    for needed in ("date", "description"):
        if needed not in columns:
            guess.questions["--column"] = f"Which column is the {needed}? --column {needed}=NAME"
    if "amount" not in columns and not {"debit", "credit"} <= set(columns):
        guess.questions["--column"] = "Which column is the amount? --column amount=NAME, or debit= and credit="
    return guess


def _guess_numbers(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any]
) -> None:
    """The decimal mark and grouping with which every column of numbers can be read."""
    numbers = [cell for column in cells.values() for cell in column if is_number(cell)]
    symbols = tuple(symbol for symbol in SYMBOLS if any(symbol in cell for cell in numbers))
    if symbols:
        values["currency_symbols"] = symbols
    numeric = [c for column in cells.values() if are_numbers(column) for c in column if c]
    styles = [pair for pair in NUMBER_STYLES if known.get("decimal") in (None, "", pair[0])]
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


def _guess_currency(cells: Mapping[str, list[str]], values: dict[str, Any], base: str) -> None:
    """The currency that heads of amounts name, such as ``Betrag (EUR)``, where no column says it and they agree; an
    amount in ``$`` is none in ``base`` where that is not written so."""
    columns = values["columns"]
    heads = [columns[field] for field in AMOUNT_COLUMNS if field in columns]
    named = {code for head in heads for code in re.findall(NAMED_CURRENCY, head)}
    named |= {code for head in heads for mark, code in CURRENCY_MARKS.items() if mark in head}
    if base not in DOLLARS and any("$" in cell for head in heads for cell in cells[head]):
        named.add("USD")
    if "currency" not in columns and len(named) == 1:
        values["currency"] = named.pop()


def _guess_dates(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any]
) -> None:
    column = cells.get(values["columns"].get("date", ""), [])
    forms = [known["date_format"]] if known.get("date_format") else list(DATE_FORMATS)
    fitting: dict[str, list[date]] = {}
    for form in forms:
        try:
            parse = make_strptime_parser(form)
            fitting[form] = [parse(take_first_words(cell, form)) for cell in column]
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
    cells: Mapping[str, list[str]],
    values: dict[str, Any],
    questions: dict[str, str],
    known: Mapping[str, Any],
    *,
    is_card: bool,
) -> None:
    columns = values["columns"]
    if "amount" not in columns or known.get("sign"):
        return
    parse = _make_parser(values, known)
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


def _guess_fees(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any]
) -> None:
    """A column of fees: whether the amounts have them in already, or the bank took them beside. The running balance
    shows which; where it does not, a person says."""
    columns = values["columns"]
    free = (name for name in cells if name not in columns.values())
    heads = [columns["fee"]] if "fee" in columns else [name for name in free if name.strip().casefold() in FEES]
    parse = _make_parser(values, known)
    try:
        fees = [parse(cell or "0", 4) for cell in cells[heads[0]]] if heads else []
        amounts = list(_read_amounts(cells, values, parse))
        balances = [parse(cell or "0", 4) for cell in cells.get(columns.get("balance", ""), [])]
    except ValueError:
        return
    asked = known.get("fee")
    if not any(fees) or not amounts or asked == "within" or (not asked and _follow(balances, amounts, 1)):
        return
    shown = [
        fee_sign
        for fee_sign, sign in (("inverted", -1), ("as_is", 1))
        if _follow(balances, [amount + sign * fee for amount, fee in zip(amounts, fees, strict=True)], 1)
    ]
    if asked == "on_top" or shown:
        by_sign = "inverted" if sum(fees) > 0 else "as_is"
        columns["fee"] = heads[0]
        values.update(fee="on_top", fee_sign=(shown or [by_sign])[0])
    else:
        questions["--fee"] = (
            f"Do the amounts have what stands in {quote_text(heads[0])} in them already (--fee within), or did the "
            "bank take it beside them (--fee on_top)?"
        )


def _make_parser(values: Mapping[str, Any], known: Mapping[str, Any]) -> Callable[[str, int], Decimal]:
    """What reads the file's numbers, by what a person said first."""
    decimal = str(known.get("decimal") or values.get("decimal", "."))
    return AmountStyle(decimal, values.get("thousands", ""), values.get("currency_symbols", ())).make_parser()


def _read_amounts(
    cells: Mapping[str, list[str]], values: Mapping[str, Any], parse: Callable[[str, int], Decimal]
) -> Iterable[Decimal]:
    """What each row moved, beside fees; none where no column says it. Raises ``ValueError`` for what is no number."""
    columns = values["columns"]
    if "amount" in columns:
        sign = -1 if values.get("sign") == "inverted" else 1
        return (sign * parse(cell or "0", 4) for cell in cells[columns["amount"]])
    sides = [cells[columns[field]] for field in ("credit", "debit") if field in columns]
    if len(sides) < 2:
        return ()
    return (abs(parse(credit or "0", 4)) - abs(parse(debit or "0", 4)) for credit, debit in zip(*sides, strict=True))


def _follow(balances: Sequence[Decimal], amounts: Sequence[Decimal], sign: int) -> bool:
    """Whether the running balance follows from the amounts, in either order of the rows."""
    if len(balances) < 2:
        return False
    pairs = list(zip(balances, amounts, strict=True))
    forward = all(a[0] + sign * b[1] == b[0] for a, b in itertools.pairwise(pairs))
    backward = all(b[0] + sign * a[1] == a[0] for a, b in itertools.pairwise(pairs))
    return forward or backward


_STATES: Final = 12
"""How many different words a column of states may have."""


def guess_columns(names: Sequence[str], cells: Mapping[str, list[str]], said: Mapping[str, str]) -> dict[str, str]:
    """Field → column: as said, else by name where what stands in it fits, else by what stands in it."""
    folded = dict(zip(fold_names(names), names, strict=True))
    columns = {field: folded.get(name.strip().casefold(), name) for field, name in said.items()}
    fits: dict[str, Callable[[list[str]], bool]] = {
        "date": are_dates,
        "transaction_date": are_dates,
        "amount": are_numbers,
        "debit": are_numbers,
        "credit": are_numbers,
        "balance": are_numbers,
        "direction": lambda column: {c.casefold() for c in column if c} <= OUT_WORDS | IN_WORDS,
        "currency": lambda column: any(re.fullmatch("[A-Za-z]{3}", c) for c in column),
        "id": lambda column: all(column) and len(set(column)) == len(column),
        "description": lambda column: 2 * sum(map(bool, column)) >= len(column),
        "state": _are_states,
    }
    order = (
        "date",
        "transaction_date",
        "debit",
        "credit",
        "balance",
        "amount",
        "direction",
        "state",
        "description",
        "id",
        "currency",
        "type",
    )
    for field_name in order:
        if field_name in columns or (field_name == "amount" and {"debit", "credit"} <= set(columns)):
            continue
        fit = fits.get(field_name, any)
        for word in WORDS[field_name]:
            named = (n for f, n in folded.items() if is_headed(f, word))
            name = next((n for n in named if n not in columns.values()), None)
            if name is not None and any(cells[name]) and fit(cells[name]):
                columns[field_name] = name
                break
    if ("debit" in columns) != ("credit" in columns) or "amount" in columns:
        columns = {f: n for f, n in columns.items() if f not in ("debit", "credit") or f in said}
    free = [name for name in names if name not in columns.values()]
    if "date" not in columns and (name := next((n for n in free if are_dates(cells[n])), None)):
        columns["date"] = name
    if "date" not in columns and "transaction_date" not in said and "transaction_date" in columns:
        columns["date"] = columns.pop("transaction_date")  # the only one
    numeric = (n for n in free if n not in columns.values() and are_numbers(cells[n]) and all(cells[n]))
    if "amount" not in columns and "debit" not in columns and (name := next(numeric, None)):
        columns["amount"] = name
    if "description" not in columns:
        texts = [n for n in free if n not in columns.values() and not are_numbers(cells[n]) and any(cells[n])]
        if texts:
            columns["description"] = max(texts, key=lambda n: len(set(cells[n])) * 100 + sum(map(len, cells[n])))
    if "amount" not in columns:
        columns.pop("direction", None)
    return {field_name: columns[field_name] for field_name in columns}


def _are_states(column: Iterable[str]) -> bool:
    """Whether one of the words says that a row is posted, or is not yet."""
    words = {cell.casefold() for cell in column if cell}
    return len(words) <= _STATES and not words.isdisjoint(PENDING | POSTED_WORDS)


def add_texts(names: Sequence[str], cells: Mapping[str, list[str]], values: dict[str, Any]) -> None:
    """All columns that say who was paid and what for, the names first: either alone may be "CARD 8812"."""
    columns = values["columns"]
    main = columns.get("description")
    free = [n for n in names if n == main or not (n in columns.values() or are_numbers(cells[n]) or not any(cells[n]))]
    by_head = (
        [n for n in free if any(is_headed(n.strip().casefold(), word) for word in words)] for words in (PAYEES, DETAILS)
    )
    texts = list(dict.fromkeys(itertools.chain.from_iterable(by_head)))
    if main not in texts or len(texts) < 2:
        return
    first = next((n for n in texts if 2 * sum(map(bool, cells[n])) >= len(cells[n])), main)
    columns["description"] = first
    values["more_description"] = tuple(n for n in texts if n != first)


def guess_states(
    cells: Mapping[str, list[str]], values: dict[str, Any], questions: dict[str, str], known: Mapping[str, Any]
) -> None:
    """Which words of the column of states mean that a row is not posted yet; all others that are in it are posted."""
    said: tuple[str, ...] | None = known.get("pending")
    name = values["columns"].get("state")
    if name is None:
        if said is not None:
            questions["--column"] = "In which column do these words stand? --column state=NAME"
        return
    words = {cell.casefold(): cell for cell in cells.get(name, ()) if cell}
    if said is not None:
        values["pending"] = said
    elif unknown := [word for folded, word in words.items() if folded not in PENDING | POSTED_WORDS]:
        shown = ", ".join(sorted(unknown)[:_STATES])
        questions["--pending"] = (
            f"Which words in the column {name} mean that a row is not posted yet? It has {shown}. --pending WORD,WORD "
            "or --pending none"
        )
    pending = PENDING if said is None else set(fold_names(said))
    values["posted"] = tuple(sorted(word for folded, word in words.items() if folded not in pending))
