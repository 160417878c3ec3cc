"""Which column of an unknown CSV is which: by what it is headed, where what stands in it fits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from cleared.books.bank_files.cell_kinds import are_dates, are_numbers
from cleared.books.bank_files.column_words import (
    DETAILS,
    IN_WORDS,
    OUT_WORDS,
    PAYEES,
    PENDING,
    POSTED_WORDS,
    WORDS,
    is_headed,
)
from cleared.books.bank_files.csv_records import fold_names

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
        "currency": lambda column: all(re.fullmatch("[A-Z]{3}", c) for c in column),
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
