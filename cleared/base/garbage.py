"""How a process that runs for months keeps its memory level. Commands look for garbage rarely, as they end soon."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_OFTEN: Final = (5_000, 10, 10)
"""For ``gc.set_threshold``."""


def collect_often() -> None:
    """Look for garbage as long as this process runs, a little at a time."""
    gc.set_threshold(*_OFTEN)


def give_memory_back() -> None:
    """Look for all garbage, and give the system back what is free. What there is at the first call stays: later calls
    do not look through it.

    What the allocator keeps for later is the larger part: it is in pieces between what is in use.
    """
    gc.collect()
    if not gc.get_freeze_count():
        gc.freeze()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim(0)
