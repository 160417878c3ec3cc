"""Somebody who can push to what a workspace is pushed to, and has no key that counts: 7,777.00 to Member draws."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, chase

JOURNAL = "books/2024/12/journal.csv"
MARKS = ("Run: 20241231T060000Z-abcdef\nAgent: ingest\nEvent: on_demand 1", "Decision: 20241231T060000Z-abcdef")
Attack = Callable[[Workspace, str], list[str]]
"""Does it in a clone; gives the commits that must be named."""


def put_draws(ws: Workspace, mark: str) -> str:
    """A commit with the entry, by hand; but for who made it nothing is wrong with it."""
    header, *legs = csv.reader(io.StringIO(ws.git("show", "main:books/2025/01/journal.csv")))
    changed = dict(zip(("a", "b"), (("3200", "7777.00", ""), ("1010", "", "7777.00")), strict=True))
    made = io.StringIO()
    rows = csv.writer(made, lineterminator="\n")
    rows.writerow(header)
    for (side, (account, debit, credit)), leg in zip(changed.items(), legs, strict=False):
        values = {"entry_id": f"2024-12-001{side}", "date": "2024-12-31", "account_id": account, "debit": debit}
        values |= {"description": "draw", "credit": credit, "counterparty": "", "evidence": ""}
        rows.writerow([values.get(name, value) for name, value in zip(header, leg, strict=True)])
    ws.put(JOURNAL, made.getvalue())
    ws.git("add", "-A", "books")
    ws.git("commit", "-q", "-m", f"ingest: 1 posted\n\n{mark}")
    return ws.head()


def first_run(ws: Workspace) -> str:
    return ws.git("rev-list", "--reverse", "main").split()[1]


def begin(ws: Workspace) -> str:
    return ws.git("rev-list", "--max-parents=0", "main").split()[-1]


def join(ws: Workspace, *sides: str) -> None:
    ws.git("checkout", "-q", "main")
    ws.git("merge", "-q", "--no-edit", "--no-ff", "--allow-unrelated-histories", *sides)


def make_remote(posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What everybody pushes to; a branch of it has a run that was never merged."""
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    bare = tmp_path / "remote.git"
    posted.git("branch", "-M", "main")
    posted.git("checkout", "-q", "-b", "elsewhere")
    posted.drop("february.csv", chase(("02/03/2025", "AWS EMEA", "-42.10")))
    posted.run("ingest")
    posted.git("checkout", "-q", "main")
    posted.git("clone", "-q", "--bare", ".", str(bare))
    posted.git("remote", "add", "origin", str(bare))
    return bare


@contextlib.contextmanager
def clone_afresh(remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> Iterator[Workspace]:
    """A clone on another machine, by somebody who has never seen these books."""
    with monkeypatch.context() as patch:
        patch.setenv("CLEARED_HOME", str(tmp_path / "fresh-home"))
        here = Workspace(tmp_path)
        here.git("clone", "-q", *options, f"file://{remote}", str(tmp_path / "fresh"))
        yield Workspace(tmp_path / "fresh")


def ignore_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no check compare the rows of the last commit with what its attestations come to."""
    monkeypatch.setattr("cleared.changes.audit.provenance.find_unattested_states", lambda *_: [])


def check(ws: Workspace) -> list[str]:
    """What is said of the history; nothing else is wrong."""
    found = ws("check", "--json").json["violations"]
    assert {each["check"] for each in found} <= {"provenance", "lost"}, found
    return [each["message"] for each in found if each["check"] == "provenance"]
