"""Which rows a commit has that stay once they are committed: those of the domains, cards, attested decisions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from cleared.cards.queue_files import SUFFIX
from cleared.changes.change_digests import is_attestation
from cleared.domains.installed_domains import load_domains
from cleared.domains.record_audit import NamedRow, RowKind
from cleared.git import Snapshot
from cleared.workspace.location import Layout

Row = tuple[str, ...]
"""The key of its kind, and the values that tell two rows of it apart."""


def _read_cards(text: str) -> Iterator[NamedRow]:
    for line in text.splitlines():
        try:
            event = json.loads(line)
            row = (str(event["event"]), str(event["id"]), str(event.get("resolution", "")))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        yield row, row[1]


def _read_decisions(text: str) -> Iterator[NamedRow]:
    for line in text.splitlines():
        try:
            yield (line,), str(json.loads(line)["says"]["by"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue


CARDS: Final = RowKind("cards", ("card", "cards"), _read_cards)
DECISIONS: Final = RowKind(
    "decisions",
    ("attested decision", "attested decisions"),
    _read_decisions,
    label="decisions",
    counted_as="attested runs and decisions",
)


class CommittedRows:
    """Reads the rows that stay of the commits of one workspace."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.audits = [domain.audit(layout) for domain in load_domains()]

    @property
    def kinds(self) -> Sequence[RowKind]:
        """All kinds of rows that stay."""
        return (*(kind for audit in self.audits for kind in audit.row_kinds), CARDS, DECISIONS)

    @property
    def counted_kinds(self) -> Sequence[RowKind]:
        """Those whose number this machine remembers."""
        return [kind for kind in self.kinds if kind.counted_as]

    def list_changed_paths(self, one: Snapshot, other: Snapshot) -> Iterator[str]:
        """Paths of records, queue and attestations that differ between two commits."""
        layout = self.layout
        roots = {layout.queue_dir, layout.logs_dir}
        roots |= {root for audit in self.audits for each in (one, other) for root in audit.list_roots(each)}
        for root in sorted(roots):
            if one.find_entry(root) != other.find_entry(root):
                old, new = one.list_entries(root), other.list_entries(root)
                changed = (path for path in sorted({*old, *new}) if old.get(path) != new.get(path))
                yield from (path for path in changed if root != layout.logs_dir or is_attestation(path))

    def read_rows(self, snapshot: Snapshot, paths: Sequence[str]) -> list[tuple[Row, str]]:
        """The rows of these files of one commit, each with its id, as far as they can be read."""
        rows: list[tuple[Row, str]] = []
        for path in paths:
            kind = self._find_kind(path)
            if kind is not None:
                text = (snapshot.read_file(path) or b"").decode("utf-8", "replace")
                rows += (((kind.key, *values), name) for values, name in kind.read_rows(text))
        return rows

    def count_more(self, before: Snapshot, after: Snapshot) -> Counter[str]:
        """How many rows of each kind a commit has more than another; negative where it has fewer."""
        counts: Counter[str] = Counter()
        for path in self.list_changed_paths(before, after):
            kind = self._find_kind(path)
            if kind is not None and kind.counted_as:
                for sign, each in ((1, after), (-1, before)):
                    data = each.read_file(path) or b""
                    counts[kind.key] += sign * (data.count(b"\n") - (1 if data and path.endswith(".csv") else 0))
        return counts

    def _find_kind(self, path: str) -> RowKind | None:
        """What the rows of a file are; None where they are not compared."""
        if path.startswith(f"{self.layout.queue_dir}/"):
            return CARDS if path.endswith(SUFFIX) else None
        if is_attestation(path):
            return DECISIONS
        return next((kind for audit in self.audits if (kind := audit.find_row_kind(path)) is not None), None)
