"""What a shell offers after TAB: agents, cards, proposals, runs, settings, accounts of the workspace one is in.

Read off the files, without opening the books; where anything is wrong, nothing is offered and nothing is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from cleared.cards.card import Card

_MAX_RUNS: Final = 100

Complete = Callable[[typer.Context, str], list[str]]


def _completer(read: Callable[[Path], Iterable[str]]) -> Complete:
    """What typer asks: of the values that ``read`` finds in the workspace, those that begin as typed."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            values = read(_find_root(ctx))
            return [value for value in dict.fromkeys(values) if value.startswith(incomplete)]
        except Exception:  # noqa: BLE001  (a shell is waiting for a list: no workspace, a damaged file)
            return []

    return complete


def _find_root(ctx: typer.Context) -> Path:
    from cleared.workspace.location import find_workspace

    named = ctx.params.get("workspace") or ctx.find_root().params.get("workspace")
    return find_workspace(Path(named) if named else None)


class FolderSource:
    """The files of a folder as a ``books.ledger.book_paths.Source``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes | None:
        file = self.root / path
        return file.read_bytes() if file.is_file() else None

    def list_paths(self, prefix: str) -> list[str]:
        paths = (Path(folder) / name for folder, _, names in os.walk(self.root / prefix) for name in names)
        return sorted(path.relative_to(self.root).as_posix() for path in paths)


def _read_agents(root: Path) -> list[str]:
    return sorted(p.stem for p in (root / "agents").glob("*.py") if not p.name.startswith("."))


def _read_open_cards(root: Path) -> list[Card]:
    from cleared.cards.queue_files import load_cards

    return [c for c in load_cards(FolderSource(root), "queue").values() if c.status == "open"]


def _read_cards_and_entries(root: Path) -> list[str]:
    """Open cards, and the entries that they are about."""
    open_cards = _read_open_cards(root)
    return [*(c.id for c in open_cards), *(c.record_id for c in open_cards if c.record_id)]


def _read_proposals(root: Path) -> list[str]:
    """Proposals that nobody has decided about."""
    folders = sorted((root / "queue" / "proposals").glob("P*"))
    return [folder.name.partition("-")[0] for folder in folders if not (folder / "decision.json").exists()]


def _read_runs(root: Path) -> list[str]:
    from cleared.changes.trace import TraceStore

    return [str(run["id"]) for run in TraceStore(root / ".cleared").list_runs(_MAX_RUNS)]


def _read_settings(root: Path) -> list[str]:
    from cleared.workspace.settings.reference import list_settings

    return [setting.key for setting in list_settings()]


def _read_accounts(root: Path) -> list[str]:
    from cleared.books.ledger.book_paths import CHART
    from cleared.books.ledger.chart import parse_chart

    return [str(number) for number in parse_chart((root / CHART).read_bytes(), CHART).accounts]


complete_agents: Final = _completer(_read_agents)
complete_cards: Final = _completer(lambda root: [c.id for c in _read_open_cards(root)])
complete_cards_and_entries: Final = _completer(_read_cards_and_entries)
complete_proposals: Final = _completer(_read_proposals)
complete_changes: Final = _completer(lambda root: [*_read_proposals(root), *_read_agents(root)])
"""What ``agent diff`` compares: proposals, and working copies of agents."""
complete_runs: Final = _completer(_read_runs)
complete_settings: Final = _completer(_read_settings)
complete_accounts: Final = _completer(_read_accounts)
