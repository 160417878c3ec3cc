"""``cleared review``: everything that waits, one key a decision."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleared.cli.options import WorkspaceOption, host_of
from cleared.cli.output import safe, say

if TYPE_CHECKING:
    pass

INSTALL = 'pip install "cleared[review]"'


def review(
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain questions and answers, line by line: for screen readers and pipes.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Decide about everything that waits: approve, correct, reject, skip, undo, with one key each.

    A full screen where the terminal is one, otherwise plain prompts. Each decision is one commit. ? shows the keys.
    """
    plain = plain or not _capable()
    if not plain and find_spec("textual") is None:
        say(f"The full screen needs one more package: {INSTALL}. Plain prompts until then.")
        plain = True
    _prompts(workspace) if plain else _screen(workspace)


def _capable() -> bool:
    terminal = os.environ.get("TERM", "")
    return sys.stdin.isatty() and sys.stdout.isatty() and terminal not in ("", "dumb", "unknown")


def _prompts(workspace: Path | None) -> None:
    from cleared.changes.host_cache import Kept
    from cleared.tui.key_actions import Acts
    from cleared.tui.plain_prompts import Plain

    def ask(prompt: str) -> str | None:
        sys.stdout.write(safe(prompt))
        sys.stdout.flush()
        typed = sys.stdin.readline()
        return typed if typed else None

    def tell(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    Plain(Acts(Kept(lambda: host_of(workspace))), ask, tell).run()


def _screen(workspace: Path | None) -> None:
    from cleared.changes.host_cache import Kept
    from cleared.tui.key_actions import Acts
    from cleared.tui.screen import ReviewApp

    heard: list[str] = []  # what is said while the screen is up would tear it: it is told there instead
    app = ReviewApp(Acts(Kept(lambda: host_of(workspace, heard.append))), heard)
    app.run(mouse=True)
    if app.parting:
        say(app.parting)
