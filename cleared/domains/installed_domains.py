"""The domains of this program. Each is named here and nowhere else, and imported when it is used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from cleared.base.file_source import FileSource
from cleared.domains.domain import Domain, ImportedFile
from cleared.domains.violations import CHECKS
from cleared.workspace.location import Layout

BUILT_IN: Final = (
    "cleared.books.books_domain:BOOKS",
    "cleared.records.records_domain:RECORDS",
    "cleared.state.state_domain:STATE",
)
"""``module:name`` of each, in the order in which references list them."""


@cache
def load_domains() -> tuple[Domain, ...]:
    """All domains."""
    found = []
    for reference in BUILT_IN:
        module, _, name = reference.partition(":")
        found.append(getattr(import_module(module), name))
    return tuple(found)


def read_imported_files(source: FileSource, layout: Layout) -> list[ImportedFile]:
    """The files that were taken in up to a commit, by the records of all domains. Raises as theirs do."""
    return [file for domain in load_domains() for file in domain.read_imported_files(source, layout)]


def list_checks() -> dict[str, str]:
    """What must hold of the records, by the names of the checks: of each domain, then of all."""
    return {name: text for domain in load_domains() for name, text in domain.list_checks().items()} | CHECKS
