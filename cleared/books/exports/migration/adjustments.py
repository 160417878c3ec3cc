"""Adjusting entries from a file to the review queue."""

from __future__ import annotations

from pathlib import Path

from cleared.books.decisions.adjusting_entries import AdjustingEntry, ProposedAdjustments, propose_adjustments
from cleared.books.decisions.hand_posting import check_line
from cleared.books.exports.migration.account_mapping import map_accounts
from cleared.books.exports.migration.moving_in import require_known_accounts
from cleared.books.exports.migration.source_reading import ADJUSTMENTS, read_account_map, read_source
from cleared.books.queries import open_committed_books
from cleared.changes.host import Host


def queue_adjustments(host: Host, path: Path, map_file: Path | None = None) -> tuple[ProposedAdjustments, str | None]:
    """Make a card of each adjusting entry of a file, in one commit; None where all have come before.

    Raises ``ImportFileError`` for what is not understood, naming the lines; ``PolicyError`` where an account is not in
    the chart; ``PrimitiveError`` for an entry that could not be posted.
    """
    source, given = read_source(host, path, ADJUSTMENTS), read_account_map(map_file)
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        accounts = map_accounts(source, books.chart, given)
    require_known_accounts(str(path), accounts)
    name = "".join(c for c in path.name if c.isprintable())[:80]
    return propose_adjustments(
        host,
        [
            AdjustingEntry(
                entry.day,
                check_line(host, "description", entry.description, required=True),
                tuple((accounts.numbers[p.account], p.amount) for p in entry.postings),
                f"{name}, line {entry.line}",
            )
            for entry in source.entries
        ],
    )
