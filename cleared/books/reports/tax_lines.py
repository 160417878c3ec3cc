"""The lines of tax forms, from the tables that are shipped for each tax year.

A table's line is ``[key, line, title]`` or ``[key, line, title, share that is deducted]``, in the order of the form.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final

_FOLDER: Final = Path(__file__).parent / "tax_tables"


@dataclass(frozen=True, slots=True)
class TaxLine:
    """What a key means on the form of one year."""

    key: str
    """Such as ``sched_c.advertising``."""
    form: str
    line: str
    title: str
    share: Decimal
    """The part of the amount that is deducted."""


@cache
def list_tax_years() -> list[int]:
    """The years that a table is shipped for."""
    return sorted(int(path.stem) for path in _FOLDER.glob("[0-9][0-9][0-9][0-9].json"))


def choose_tax_year(year: int) -> int:
    """The year whose table is used: that year, else the last before it, else the first there is."""
    years = list_tax_years()
    return max((y for y in years if y <= year), default=years[0])


@cache
def read_tax_lines(year: int) -> dict[str, TaxLine]:
    """Key → its line, in the order of the forms, of a year that a table is shipped for."""
    table = json.loads((_FOLDER / f"{year}.json").read_text("utf-8"))
    lines = {}
    for form in table["forms"]:
        for key, line, title, *share in form["lines"]:
            name = f"{form['prefix']}.{key}"
            lines[name] = TaxLine(name, form["title"], line, title, Decimal(share[0]) if share else Decimal(1))
    return lines
