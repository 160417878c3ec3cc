"""Bank files to values: ``read_file`` for the rows, ``resolve_account`` for whose they are.

Pure: bytes in, values out; no git, no clock, nothing written. A file is read whole or refused whole, by
``ImportFileError``. To add a format, see ``base`` (the plug-in contract) and ``contract`` (its test).
"""

from __future__ import annotations

from cleared.importers.account_matching import resolve_account, resolve_accounts
from cleared.importers.base import Fault, Faults, Importer, ImportFileError, Sample
from cleared.importers.file_reading import detect_format, read_file

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
