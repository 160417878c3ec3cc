"""Bank files to values: ``file_reading.read_file`` for the rows, ``account_matching`` for whose they are.

Pure: bytes in, values out; no git, no clock, nothing written. A file is read whole or refused whole, by
``ImportFileError``. To add a format, see ``base`` (the plug-in contract, whose names are here too) and ``plugin_tests``
(its test).
"""

from __future__ import annotations

from cleared.books.bank_files.base import Fault, Faults, Importer, ImportFileError, Sample

__all__ = ["Fault", "Faults", "ImportFileError", "Importer", "Sample"]
