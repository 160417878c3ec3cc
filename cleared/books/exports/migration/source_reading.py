"""Files of other programs: read once, as text, and recognised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from cleared.base.errors import Place
from cleared.base.safe_files import read_stable
from cleared.books.bank_files.base import ImportFileError
from cleared.books.exports.migration.account_mapping import read_map_file
from cleared.books.exports.migration.adjustments_file import read_adjustments
from cleared.books.exports.migration.beancount_reader import read_beancount
from cleared.books.exports.migration.hledger_reader import read_hledger
from cleared.books.exports.migration.source_books import SourceBooks
from cleared.books.exports.migration.trial_balance_file import read_trial_balance
from cleared.changes.host import Host

ADJUSTMENTS: Final = "adjustments"
READERS: Final[Mapping[str, Callable[[str, str, int], SourceBooks]]] = {
    "trial-balance": read_trial_balance,
    "hledger": read_hledger,
    "beancount": read_beancount,
    ADJUSTMENTS: read_adjustments,
}
"""Format → what reads it."""
MAX_BYTES: Final = 256 << 20
_SUFFIXES: Final = {".csv": "trial-balance", ".tsv": "trial-balance", ".beancount": "beancount", ".bean": "beancount"}


def read_source(host: Host, path: Path, format: str | None = None) -> SourceBooks:
    """The books in a file; ``format``: None where it is to be recognised. Raises ``ImportFileError``."""
    try:
        text = _read_text(path)
        read = READERS[format or _recognise_format(path, text)]
        return read(text, host.config.business.currency, host.decimal_places)
    except ImportFileError as error:
        raise error.of_file(str(path)) from None


def read_account_map(path: Path | None) -> Mapping[str, int]:
    """Account of the other program → number, as a person wrote it. Raises ``ImportFileError``."""
    if path is None:
        return {}
    try:
        return read_map_file(_read_text(path))
    except ImportFileError as error:
        raise error.of_file(str(path)) from None


def _read_text(path: Path) -> str:
    data, _ = read_stable(path.resolve(), MAX_BYTES, shown=str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ImportFileError("it is not UTF-8", place=Place(line=line), remedy="Save the file as UTF-8.") from None
    if "\0" in text:
        raise ImportFileError("it holds NUL characters, so it is no text", remedy="Give a CSV or a journal.")
    return text


def _recognise_format(path: Path, text: str) -> str:
    known = _SUFFIXES.get(path.suffix.lower())
    if known is not None:
        return known
    plain = [line for line in text[:100_000].split("\n") if line[:1] not in ("", ";", "*", " ", "\t")]
    is_beancount = any(line.startswith(("option ", "plugin ")) or " open " in line[:20] for line in plain[:200])
    return "beancount" if is_beancount else "hledger"
