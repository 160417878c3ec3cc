"""The records of all domains, by what they are called: what drafts add, and how these are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any

from cleared.base.file_source import FileSource
from cleared.base.terminal import count_noun
from cleared.domains.domain import DraftDescription, Staged
from cleared.domains.installed_domains import cache_by_domains, load_domains
from cleared.domains.record_comparison import RecordComparison
from cleared.workspace.location import Layout

Records = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What the records of a domain are called (``entries``) → id → the record."""


@cache_by_domains
def load_comparisons() -> Mapping[str, RecordComparison]:
    """How records are compared, by what they are called."""
    return {domain.record_noun[1]: domain.comparison() for domain in load_domains()}


def name_references(layout: Layout, source: FileSource) -> dict[str, Mapping[str, str]]:
    """What the records of a domain are called → the names of what they may be about (see ``RecordComparison``)."""
    return {noun: each.name_references(layout, source) for noun, each in load_comparisons().items()}


def no_records() -> Records:
    """Of every domain none."""
    return {domain.record_noun[1]: {} for domain in load_domains()}


def describe_drafts(parts: Mapping[str, Staged]) -> dict[str, DraftDescription]:
    """What the draft would do, by what the records of each domain are called. ``parts``: by the domain's name."""
    return {domain.record_noun[1]: parts[domain.name].describe_draft() for domain in load_domains()}


def count_records(records: Mapping[str, Sized | int]) -> str:
    """How many there are, in words: ``2 entries``; of domains without any, only the first, where none has any.
    ``records``: what they are called → they, or their number."""
    counts = []
    for one, many in (domain.record_noun for domain in load_domains()):
        found = records.get(many, 0)
        number = found if isinstance(found, int) else len(found)
        words = load_comparisons()[many].describe_number(found.values()) if isinstance(found, Mapping) else ""
        counts.append((number, words or count_noun(number, one, many)))
    return ", ".join([words for number, words in counts if number] or [counts[0][1]])
