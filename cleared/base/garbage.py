"""How often garbage is looked for: by commands rarely, as they end soon; a process that runs for months would grow."""

from __future__ import annotations

import gc
from typing import Final

_OFTEN: Final = (5_000, 10, 10)
"""For ``gc.set_threshold``."""


def collect_often() -> None:
    """For a process that runs for months."""
    gc.set_threshold(*_OFTEN)
