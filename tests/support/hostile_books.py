"""Books whose texts try to be something else: what whoever pushes may have written."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from harness import Workspace

from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.journal import append_entries

HOSTILE = (
    "x ; entry:2025-01-001, date:2024-01-01",
    "(x) code",
    "(",
    "* starred",
    "! flagged",
    "=2024-01-01",
    "a | b",
    "",
    "  blanks around  ",
    "two  blanks",
    "tab\tinside",
    "line\nbreak\n2025-01-01 * forged\n  Assets:1010  5 USD",
    "carriage\rreturn",
    "\u2028separated",
    "\u202eright to left",
    "nul\0byte",
    "no\u00a0break",
    "back\\slash \\x3b",
    'quote " and \\" more',
    "#tag ^link",
    "50% off, date:2020-01-01",
    "[2020-01-01=2020-02-02]",
    "{} @ @@ = == =*",
    "100 EUR",
    "include /etc/passwd",
    "Ünïcödé 日本 🍣",
    "';--",
    "end comment",
    "Expenses:Foo  1 USD",
    ";",
    ":tag:other:",
)


def post_texts(ws: Workspace, texts: tuple[str, ...], amount: str = "10.01") -> None:
    """Entries as whoever pushes may write them: all texts of each are the same."""
    entries = [
        Entry(
            f"2025-01-{n:03d}",
            date(2025, 1, 1 + n % 28),
            text,
            (make_leg(5020, Decimal(amount) + n), make_leg(1010, -Decimal(amount) - n)),
            "user-confirmed",
            text,
            tags=f"a,b;@rev={text}" if ";" not in text else "x",
            notes=text,
        )
        for n, text in enumerate(texts, 1)
    ]
    places = -int(Decimal(amount).as_tuple().exponent)
    ws.put("books/2025/01/journal.csv", append_entries(None, entries, places))
    ws.commit("books")
