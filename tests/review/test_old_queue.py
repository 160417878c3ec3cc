"""A decision costs the same beside a queue of years."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import Workspace

from cleared.cards.card import Card, card_id
from cleared.cards.card_events import render_open
from cleared.cards.queue_files import render_resolve
from cleared.changes.workspace_opening import open_workspace
from cleared.git.object_reader import ObjectReader
from cleared.review.card_decisions import skip_cards
from cleared.review.queue_cards import read_cards


def old_month(number: int) -> bytes:
    ids = [card_id("entry", f"{number}-{n}") for n in range(300)]
    cards = [Card(name, "entry", "an old card", "2020-01-01T00:00:00Z") for name in ids]
    return "".join(render_open(card) + render_resolve(card.id, "t", "me", "approve") for card in cards).encode()


def stored_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in (root / ".git/objects").rglob("*") if path.is_file())


def test_old_files_are_neither_read_nor_written(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    real = ObjectReader._read_here

    def counting(self: ObjectReader, oid: str) -> tuple[str, bytes] | None:
        found = real(self, oid)
        read.append(len(found[1]) if found is not None else 0)
        return found

    monkeypatch.setattr(ObjectReader, "_read_here", counting)

    def decide() -> tuple[int, int]:
        """Bytes read and stored by one decision of a new process, as it were."""
        host = open_workspace(posted.root)
        waiting = read_cards(host)[0]["id"]
        before = stored_bytes(posted.root)
        read.clear()
        skip_cards(host, [waiting])
        return sum(read), stored_bytes(posted.root) - before

    decide()
    young = decide()
    for number in range(24):
        posted.put(f"queue/{2018 + number // 12}-{number % 12 + 1:02d}.jsonl", old_month(number).decode())
    posted.commit("queue")
    decide()
    old = decide()
    assert old[0] < young[0] + 30_000, (young, old)  # an old file has 50,000
    assert old[1] < young[1] + 10_000, (young, old)
