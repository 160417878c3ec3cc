"""Headers of scripts, with the keys that the domains declare beside those of the runtime."""

from __future__ import annotations

from typing import Literal

from cleared.domains.installed_domains import cache_by_domains, load_domains
from cleared.sandbox import header
from cleared.sandbox.finding import Finding
from cleared.sandbox.header import Header, HeaderKey


@cache_by_domains
def load_header_keys() -> tuple[HeaderKey, ...]:
    """The keys of all domains."""
    return tuple(key for domain in load_domains() for key in domain.list_header_keys())


def parse_header(
    source: str, file: str, *, kind: Literal["agent", "script"] = "agent"
) -> tuple[Header | None, list[Finding]]:
    """As ``sandbox.header.parse_header``, which knows no domain."""
    return header.parse_header(source, file, kind=kind, own_keys=load_header_keys())


def describe_own_values(found: Header) -> list[str]:
    """What a header says under keys of domains, in words."""
    return [key.describe(found.own_values[key.name]) for key in load_header_keys() if key.name in found.own_values]
