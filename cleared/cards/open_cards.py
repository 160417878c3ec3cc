"""The open cards of what is checked out, as the last list of them left them: see ``workspace.surroundings``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from cleared.workspace.sealed_files import SealedFiles, digest_sources
from cleared.workspace.surroundings import STATE_DIR, Surroundings, read_answer, read_surroundings, write_answer

_NAME: Final = "cards"
_SOURCES: Final = ("cards", "workspace")
"""The folders of the program that decide what is in the file."""


class CardList(NamedTuple):
    """Columns of a list of cards, oldest first. ``remind_after``: the setting."""

    remind_after: str
    ids: Sequence[str] = ()
    kinds: Sequence[str] = ()
    entries: Sequence[str] = ()
    """Empty where it is about none."""
    times: Sequence[str] = ()
    """When they were opened: UTC, ISO 8601."""
    titles: Sequence[str] = ()


def remember_open_cards(root: Path, surroundings: Surroundings, cards: CardList) -> None:
    """Keep what ``read_open_cards`` gives, for as long as these surroundings hold."""
    write_answer(_open_files(root), _NAME, surroundings, cards)


def read_open_cards(root: Path) -> CardList | None:
    """The open cards at ``root``, where what was kept of them still holds."""
    cards = read_answer(_open_files(root), _NAME, read_surroundings(root))
    return CardList(*cards) if cards is not None else None


def _open_files(root: Path) -> SealedFiles:
    return SealedFiles(root / STATE_DIR, digest_sources(*_SOURCES))
