"""``cleared review``: everything that waits, one key a decision."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from cleared.base.terminal import escape_text, print_message
from cleared.changes.host_cache import HostCache
from cleared.cli.options import WorkspaceOption, open_host
from cleared.cli.tui.plain_prompts import PlainReview
from cleared.review.card_actions import ActionExecutor
from cleared.trust.passphrase import asking_with

INSTALL = "pip install '.[review]'"


def review_queue(
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain questions and answers, line by line: for screen readers and pipes.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Decide about everything that waits: approve, correct, reject, skip, undo, with one key each.

    A full screen where the terminal is one, otherwise plain prompts. Each decision is one commit. ? shows the keys.
    """
    plain = plain or not _is_full_terminal()
    if not plain and find_spec("textual") is None:
        print_message(f"The full screen needs one more package. In the checkout: {INSTALL}. Plain prompts until then.")
        plain = True
    _run_prompts(workspace) if plain else _run_screen(workspace)


def _is_full_terminal() -> bool:
    terminal = os.environ.get("TERM", "")
    return sys.stdin.isatty() and sys.stdout.isatty() and terminal not in ("", "dumb", "unknown")


def _run_prompts(workspace: Path | None) -> None:
    def ask(prompt: str) -> str | None:
        sys.stdout.write(escape_text(prompt))
        sys.stdout.flush()
        typed = sys.stdin.readline()
        return typed if typed else None

    def tell(text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    PlainReview(ActionExecutor(HostCache(lambda: open_host(workspace))), ask, tell).run_prompts()


def _run_screen(workspace: Path | None) -> None:
    from cleared.cli.tui.dialogs import passphrase_dialog
    from cleared.cli.tui.screen import ReviewApp

    progress_messages: list[str] = []  # what is said while the screen is up would tear it: it is told there instead
    app = ReviewApp(
        ActionExecutor(HostCache(lambda: open_host(workspace, progress_messages.append))), progress_messages
    )
    with asking_with(passphrase_dialog(app)):
        app.run(mouse=True)
    if app.closing_message:
        print_message(app.closing_message)
