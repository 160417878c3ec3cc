"""How the records of a domain stand, for whoever is told of it once a month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Standing:
    """``heading`` and ``lines`` are for people, ``rows`` the same for programs; by itself there is nothing to say."""

    heading: str = ""
    lines: Sequence[str] = ()
    rows: Sequence[Mapping[str, Any]] = ()
