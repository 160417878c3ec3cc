"""The files that hold the index of the books, sealed under the version of the code that made them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from cleared.workspace.sealed_files import SealedFiles, digest_sources

_PARSERS: Final = ("base", "books/index", "books/ledger", "workspace")
"""The folders of the program that decide what is in the files."""


def index_files(state_dir: Path) -> SealedFiles:
    """The index files of one workspace. ``state_dir``: its ``.cleared/``."""
    return SealedFiles(state_dir, _parser_version())


@lru_cache(maxsize=1)
def _parser_version() -> bytes:
    """A digest of the code that decides what is in an index: any change of it makes all indexes anew."""
    return digest_sources(*_PARSERS)
