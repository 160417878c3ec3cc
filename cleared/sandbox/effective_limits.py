"""What a script may use: the settings' limits, those of its header, and the caps that headers do not pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cleared.config.model import Sandbox
from cleared.errors import Place
from cleared.sandbox.finding import Finding, make_rules
from cleared.sandbox.header import Header
from cleared.sandbox.limits import Limits

CAPPED_KEYS: Final = ("timeout", "memory_mb", "max_calls")
"""Keys of headers that can raise a limit, and of ``sandbox`` in the settings; each has its cap there."""

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
    """The most that a header may ask for: the cap, or the usual limit where that is more."""
    cap: float = max(getattr(sandbox, f"{key}_cap"), getattr(sandbox, key))
    return cap


def check_caps(header: Header | None, sandbox: Sandbox, file: str) -> Iterator[Finding]:
    """What a header asks for above the caps."""
    for key in CAPPED_KEYS:
        asked, cap = getattr(header, key, None), cap_of(key, sandbox)
        if header is not None and asked is not None and asked > cap:
            holds = ", which is what it gets" if _is_set(key, sandbox) else ""
            yield Finding(
                "header-limit", f"`{key}: {asked:.15g}` is more than a header may ask for, {cap:.15g}{holds}",
                Place(file, header.line_of(key), 1, key),
                f"Write at most {cap:.15g}, or raise the cap: cleared config set sandbox.{key}_cap {asked:.15g}.",
            )  # fmt: skip


def limits_of(sandbox: Sandbox, header: Header | None) -> Limits:
    """The settings' limits, where the header does not set its own.

    A version that was approved with more than the cap gets the cap where somebody has set it; the cap as shipped binds
    proposals, so that an upgrade stops nobody's books.
    """
    found: dict[str, float] = {}
    for key in CAPPED_KEYS:
        asked = getattr(header, key, None)
        found[key] = getattr(sandbox, key) if asked is None else asked
        if asked is not None and _is_set(key, sandbox):
            found[key] = min(asked, cap_of(key, sandbox))
    return Limits(
        seconds=found["timeout"], memory_bytes=int(found["memory_mb"]) << 20, max_calls=int(found["max_calls"]),
        max_output_bytes=sandbox.max_output_kb << 10,
    )  # fmt: skip


def _is_set(key: str, sandbox: Sandbox) -> bool:
    """Whether the cap is not as shipped."""
    return bool(getattr(sandbox, f"{key}_cap") != getattr(Sandbox(), f"{key}_cap"))
