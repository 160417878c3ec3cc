"""The limits of one run. All are set explicitly; the interpreter's defaults are never used."""

from __future__ import annotations

from msgspec import Struct


class Limits(Struct, frozen=True):
    """The limits of one run. A run that reaches one ends as ``failed``; other runs are unaffected."""

    seconds: float = 30.0
    """Wall-clock seconds, with the time that the host spends in primitives."""
    memory_bytes: int = 512 << 20
    """The script's heap."""
    max_calls: int = 1_000_000
    """Primitive calls, with reads of unknown names."""
    max_output_bytes: int = 1 << 20
    """UTF-8 bytes of all printed text, and likewise of all text in the result."""
    max_recursion: int = 1000
    """Depth of the script's call stack."""
