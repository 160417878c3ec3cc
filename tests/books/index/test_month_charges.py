"""Charges of past months: what is kept of them is what the lines say, and counts for this very state of the books."""

from __future__ import annotations

from pathlib import Path

from harness import Workspace

from cleared.books.index.month_charges import PastCharges
from cleared.books.staged_books import open_books
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot


def read_charges(ws: Workspace) -> tuple[list[tuple[str, str]], dict[str, str]]:
    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        _, bank = open_books(host.layout, CommittedSource(Snapshot(repo, repo.read_head())))
        charges = PastCharges(bank, host.layout.state_dir)
        found = list(charges.iter_charges("checking", ["2025-01"]))
        assert all(bank.posted_amount(line.line_id) == line.amount for line in found)
    return [(str(line.amount), line.description) for line in found], charges.payees


def list_kept(ws: Workspace) -> list[Path]:
    return sorted((ws.root / ".cleared/books").glob("*.charges"))


def test_what_is_kept_is_what_the_lines_say(posted: Workspace) -> None:
    first = read_charges(posted)
    assert first[0] and all(amount.startswith("-") for amount, _ in first[0])
    (kept,) = list_kept(posted)
    stamp = kept.stat().st_mtime_ns
    assert read_charges(posted) == first
    kept.write_bytes(kept.read_bytes().replace(b"-4.00", b"-5.00"))
    assert read_charges(posted) == first, "nobody else's file counts"
    assert kept.stat().st_mtime_ns != stamp, "it is made anew"


def test_a_charge_that_was_voided_is_one_no_more(posted: Workspace) -> None:
    before = read_charges(posted)[0]
    entry = next(e for e in posted.entries() if ("-" + e["lines"][0]["debit"], e["description"]) in before)
    posted.ok("journal", "void", entry["entry_id"], "--reason", "a test")
    assert read_charges(posted)[0] == [each for each in before if each[1] != entry["description"]]
