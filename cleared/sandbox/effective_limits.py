"""The limits of a run: those of the settings, those of the script's header, and the caps on headers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from cleared.base.errors import Place
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.header import Header
from cleared.sandbox.limits import Limits
from cleared.workspace.settings.model import Sandbox

BYTES_A_SECOND: Final = 50_000
"""Bytes of bank files that give a run another second: several times what a slow machine needs for them."""
CAPPED_KEYS: Final = ("timeout", "memory_mb", "max_calls")
"""Keys of headers, and of ``sandbox`` in the settings, where each has a cap too."""

RULES: Final = make_rules(
    "lint",
    {
        "header-limit": (
            "a `timeout:`, `memory_mb:` or `max_calls:` above the cap that the settings have for it",
            "A script that runs for hours, or takes all memory, keeps everything else from running.",
            "Write a smaller number, or raise the cap: `sandbox.timeout_cap` and its like.",
        ),
    },
    since="0.2",
)


def cap_of(key: str, sandbox: Sandbox) -> float:
    """The most that a header may ask for: the cap, or the setting itself where that is more."""
    cap: float = max(getattr(sandbox, f"{key}_cap"), getattr(sandbox, key))
    return cap


def check_caps(header: Header | None, sandbox: Sandbox, file: str) -> Iterator[Finding]:
    """A finding for each key of a header that asks for more than its cap."""
    for key in CAPPED_KEYS:
        requested, cap = getattr(header, key, None), cap_of(key, sandbox)
        if header is not None and requested is not None and requested > cap:
            effect = ", which is what it gets" if _is_set(key, sandbox) else ""
            yield Finding(
                "header-limit",
                f"`{key}: {requested:.15g}` is more than a header may ask for, {cap:.15g}{effect}",
                Place(file, header.line_of(key), 1, key),
                f"Write at most {cap:.15g}, or raise the cap: cleared config set sandbox.{key}_cap {requested:.15g}.",
            )


def limits_of(sandbox: Sandbox, header: Header | None) -> Limits:
    """The limits of a run: the header's, else those of the settings.

    A script that was approved with more than the cap gets the cap, but only where the settings set it: the default cap
    binds only proposals, so that an upgrade stops no approved script.
    """
    limits: dict[str, float] = {}
    for key in CAPPED_KEYS:
        requested = getattr(header, key, None)
        limits[key] = getattr(sandbox, key) if requested is None else requested
        if requested is not None and _is_set(key, sandbox):
            limits[key] = min(requested, cap_of(key, sandbox))
    return Limits(
        seconds=limits["timeout"],
        memory_bytes=int(limits["memory_mb"]) << 20,
        max_calls=int(limits["max_calls"]),
        max_output_bytes=sandbox.max_output_kb << 10,
    )


def add_reading_time(limits: Limits, sandbox: Sandbox, header: Header | None, waiting_bytes: int) -> Limits:
    """The limits of a run that reads bank files, ``waiting_bytes`` of which wait: each 50 kB (some 800 rows) give it a
    second more, up to the cap on headers. A header that asks for a time has just that."""
    if header is not None and header.timeout is not None:
        return limits
    more = min(waiting_bytes // BYTES_A_SECOND, max(cap_of("timeout", sandbox) - limits.seconds, 0))
    return replace(limits, seconds=limits.seconds + more)


def _is_set(key: str, sandbox: Sandbox) -> bool:
    """Whether the settings change the cap."""
    return bool(getattr(sandbox, f"{key}_cap") != getattr(Sandbox(), f"{key}_cap"))
