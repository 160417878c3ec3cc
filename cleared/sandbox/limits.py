"""What one run may use. Every limit is explicit; the interpreter's own defaults are never relied on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one run. Reaching any of them ends the run as ``failed``; the next run is unaffected."""

    seconds: float = 30.0
    """Wall-clock seconds, the time the host spends in primitives included."""
    memory_bytes: int = 512 << 20
    """The script's heap."""
    max_calls: int = 1_000_000
    """Primitive calls, reads of unknown names included."""
    max_output_bytes: int = 1 << 20
    """UTF-8 bytes of everything printed; also of all text in the result."""
    max_recursion: int = 1000
    """Depth of the script's call stack."""
