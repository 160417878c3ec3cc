"""What drafts add to the records of the domains, in values that JSON takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleared.base.terminal import count_noun
from cleared.domains.domain import DraftDescription, Staged
from cleared.domains.installed_domains import load_domains

Records = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What the records of a domain are called (``entries``) → id → the record."""


def no_records() -> Records:
    """Of every domain none."""
    return {domain.record_noun[1]: {} for domain in load_domains()}


def describe_drafts(parts: Mapping[str, Staged]) -> dict[str, DraftDescription]:
    """What the draft would do, by what the records of each domain are called. ``parts``: by the domain's name."""
    return {domain.record_noun[1]: parts[domain.name].describe_draft() for domain in load_domains()}


def count_records(records: Records) -> str:
    """How many there are, in words: ``2 entries``; of domains without any, only the first, where none has any."""
    nouns = [domain.record_noun for domain in load_domains()]
    counts = [(len(records.get(many, ())), one, many) for one, many in nouns]
    counts = [each for each in counts if each[0]] or counts[:1]
    return ", ".join(count_noun(number, one, many) for number, one, many in counts)
