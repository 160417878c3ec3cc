"""Every command of the tutorial and the how-to pages is run; what it prints is what the page says."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from plain_accounting import read_hledger_balances
from preloaded_command import PreloadedCommand

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from docs import shown_commands  # noqa: E402

PAGES = shown_commands.pages(ROOT)


def test_the_tutorial_is_among_them() -> None:
    assert "docs/tutorial.md" in PAGES


@pytest.mark.parametrize("name", ["approve-a-change", "regression-cases", "clone-and-trust", "settings"])
def test_pages_about_the_gate_are_among_them(name: str) -> None:
    """GATE: propose, approve, roll back; tests; trust after a clone; policy in force."""
    assert f"docs/howto/{name}.md" in PAGES


def test_a_line_of_dots_stands_for_any_lines_and_for_nothing_else() -> None:
    shown = "one\ntwo\nthree\nfour\n"
    assert shown_commands.match_lines("one\n…\nfour\n", shown) == [("one", "one"), ("four", "four")]
    assert shown_commands.match_lines("one\n…\n", shown) is not None
    assert shown_commands.match_lines("…\nthree\n…\n", shown) is not None
    for other in ("one\nfour\n", "one\n…\nfive\n", "two\n…\nfour\n", "one\n…\nthree\n", "…\nfour\n…\nfour\n", ""):
        assert shown_commands.match_lines(other, shown) is None, other
    assert shown_commands.match_lines("", "") == []


@pytest.fixture(scope="module")
def tools() -> Iterator[Path]:
    """The ``cleared`` of the shell: in a folder with a short name, as a socket's path must be."""
    with tempfile.TemporaryDirectory() as folder, PreloadedCommand(Path(folder) / "bin") as command:
        yield command.folder


@pytest.mark.parametrize("page", PAGES)
def test_page_shows_what_happens(page: str, tmp_path: Path, tools: Path) -> None:
    """Row I6."""
    for block, shown in shown_commands.rehearse(PAGES[page].read_text(encoding="utf-8"), tmp_path, tools):
        assert shown_commands.match_lines(block.printed or "", shown) is not None, (
            f"{page}:{block.line} prints something else now; look, then: python -m docs.shown_commands {page}\n"
            f"$ {block.commands}\n{shown}"
        )
    if page == "docs/howto/a-year.md" and shutil.which("hledger"):
        _compare_with_hledger(PAGES[page].read_text(encoding="utf-8"), tmp_path / "home" / "plain" / "books.journal")


def _compare_with_hledger(page: str, journal: Path) -> None:
    """Each asset of the year's balance sheet is what hledger makes of the export, and so are the taxes' accounts."""
    amounts = re.findall(
        r"^   (\d{4}) .*? (-?\d+\.\d\d)(?: |$)", page[page.index("## The end of the year") :], re.MULTILINE
    )
    shown = {number: abs(Decimal(amount)) for number, amount in amounts}
    theirs = {re.sub(r"\D*(\d{4}).*", r"\1", name): abs(v) for name, v in read_hledger_balances(journal).items() if v}
    assert len(shown) > 8 and shown == theirs
