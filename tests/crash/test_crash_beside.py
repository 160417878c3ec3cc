"""What is seen beside a run while its commit is made (MEND 20)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_books import check_sound, copy

from cleared import queries
from cleared.app import open_workspace, run
from cleared.cli.doctor import _managed
from cleared.jobs.forbidden import Forbidden
from cleared.loop.books import books_check
from cleared.loop.child import JobContext
from cleared.vcs import STEPS


def beside(root: Path, step: str, look: Callable[[], object]) -> object:
    """What ``look`` finds that begins at a step of an import, which goes on once it has looked or waits."""
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(look()))

    def on_step(name: str) -> None:
        if name == step and thread.ident is None:
            thread.start()
            while thread.is_alive() and not list((root / ".cleared").glob("waiting-*")):
                time.sleep(0.005)

    assert run(open_workspace(root, on_step=on_step), "ingest").status == "succeeded"
    thread.join()
    return found[0]


@pytest.mark.parametrize("step", STEPS[STEPS.index("verified") : -1])
def test_a_check_beside_a_run_finds_nothing(template: Path, tmp_path: Path, step: str) -> None:
    """The commit is there before its files are: no moment of that is a difference that anybody made."""
    root = copy(template, tmp_path / "w")
    assert beside(root, step, lambda: queries.check(open_workspace(root))) == []
    check_sound(root)


def test_so_do_the_job_and_doctor(template: Path, tmp_path: Path) -> None:
    root = copy(template, tmp_path / "w")
    job = JobContext(root, "books", "person", (), Forbidden(root, ()))
    assert str(beside(root, "ref", lambda: books_check(job))).startswith("the books are in order")
    root = copy(template, tmp_path / "v")
    assert beside(root, "file", lambda: _managed(open_workspace(root)).status) == "ok"


def test_what_was_changed_is_still_found(template: Path, tmp_path: Path) -> None:
    """A difference that stays is one, also where nobody may write here."""
    root = copy(template, tmp_path / "w")
    journal = next(root.glob("books/*/*/journal.csv"))
    journal.write_bytes(journal.read_bytes().replace(b"2025", b"2024", 1))
    assert [v["check"] for v in queries.check(open_workspace(root))] != []
