"""Receipts that git kept, and that a commit has taken away without saying so."""

from __future__ import annotations

from collections.abc import Iterator

from cleared.base.errors import Place
from cleared.books.ledger.receipts import parse_receipts
from cleared.domains.record_audit import Violation
from cleared.git import Snapshot, history
from cleared.workspace.location import Layout


def find_lost_receipts(layout: Layout, snapshot: Snapshot) -> Iterator[Violation]:
    """Receipts on record whose file is no plain file of the commit any more, though it was one. Those that stay on the
    machine which took them were never in git."""
    path = layout.receipts
    kept = parse_receipts(snapshot.read_file(path), path)
    missing = {each.file: each for each in kept.values() if snapshot.read_file(each.file) is None}
    if not missing:
        return
    # The folder, not the files: of very many receipts the names would not fit into a command.
    commits = history.commits_touching(layout.root, sorted({file.partition("/")[0] for file in missing}))
    for file, receipt in missing.items():
        last = next((commit for commit in commits if file in (commit.files or ())), None)
        if last is not None:
            yield Violation(
                "receipts",
                f"the receipt {receipt.name!r} was taken away by the commit {last.id[:10]} ({last.subject[:60]!r}, "
                f"{last.author})",
                f"Restore it: git checkout {last.id[:10]}^ -- {file}; or keep it no more: cleared receipt remove "
                f"{receipt.sha256[:8]}",
                Place(file),
            )
