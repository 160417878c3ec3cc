"""Whoever can push can write cards: what is shown of an entry is what the books say, as that is what is decided."""

from __future__ import annotations

import pytest
from harness import Workspace


@pytest.fixture
def forged(posted: Workspace) -> Workspace:
    """The card of COFFEE says something harmless."""
    path = next(p for p in posted.git("ls-files", "queue").splitlines() if p.endswith(".jsonl"))
    text = posted.read(path)
    assert "COFFEE" in text
    posted.put(path, text.replace("COFFEE", "HARMLESS").replace("4.50", "0.01"))
    posted.commit(path, message="docs")
    return posted


def test_list_and_card_show_the_entry(forged: Workspace) -> None:
    for _ in range(2):  # the second time from what was kept
        listed = forged.ok("queue", "list").out
        assert "2025-01-10 4.50 COFFEE" in listed and "0.01" not in listed
    card = next(card for card in forged.cards() if card["entry_id"] == "2025-01-004")
    assert card["title"] == "2025-01-10 4.50 COFFEE (HARMLESS)"
    shown = forged.json("queue", "show", "2025-01-004")
    assert shown["details"]["amount"] == "4.50" and "4.50 COFFEE" in shown["title"]
    assert "4.50" in forged.ok("queue", "show", "2025-01-004").out
