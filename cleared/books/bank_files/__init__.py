"""Bank files to values: ``read_file`` for the rows, ``resolve_account`` for whose they are.

Pure: bytes in, values out; no git, no clock, nothing written. A file is read whole or refused whole, by
``ImportFileError``. To add a format, see ``base`` (the plug-in contract) and ``plugin_tests`` (its test).
"""

from __future__ import annotations

from cleared.books.bank_files.account_matching import resolve_account, resolve_accounts
from cleared.books.bank_files.base import Fault, Faults, Importer, ImportFileError, Sample
from cleared.books.bank_files.file_reading import detect_format, read_file

__all__ = [
    "Fault",
    "Faults",
    "ImportFileError",
    "Importer",
    "Sample",
    "detect_format",
    "read_file",
    "resolve_account",
    "resolve_accounts",
]
