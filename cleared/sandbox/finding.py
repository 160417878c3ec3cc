"""One thing wrong with a script, found without running it."""

from __future__ import annotations

from dataclasses import dataclass

from cleared.errors import Place


@dataclass(frozen=True, slots=True)
class Finding:
    """``rule`` is a stable id (``import``, ``header-cron`` …); ``place`` has a 1-based line and column."""

    rule: str
    message: str
    place: Place
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message} [{self.rule}]. {self.remedy}"
