"""``cleared queue list``: what is kept of it is no source of truth."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness import Workspace


def list_anew(ws: Workspace) -> str:
    """The list, with nothing kept."""
    for kept in ws.root.glob(".cleared/books/*"):
        kept.unlink()
    return ws.ok("queue", "list").out


def test_a_kept_list_is_what_would_be_read(posted: Workspace) -> None:
    """Decided, committed by hand, set otherwise, damaged, brought by somebody: the list is that of the commit."""
    for _ in range(2):  # the first one on a machine notes which questions it knows
        posted.ok("queue", "list")
    (kept,) = posted.root.glob(".cleared/books/cards")
    before = kept.read_bytes()
    shard = next(path for path in posted.git("ls-files", "queue").split() if path.endswith(".jsonl"))

    def commit_by_hand() -> None:
        posted.put(shard, posted.read(shard).replace("COFFEE", "TEA"))
        posted.commit(shard)
        posted.ok("queue", "list")  # a list with a card that nothing vouches for is not kept
        assert not kept.exists() or b"TEA" not in kept.read_bytes()
        posted.ok("accept", "HEAD", "--reason", "tea it was")

    changes: list[Callable[[], object]] = [
        lambda: posted.ok("queue", "approve", posted.cards()[0]["id"]),
        commit_by_hand,
        lambda: posted.ok("config", "set", "review.remind_after", "1h"),
        lambda: kept.write_bytes(before),
        lambda: kept.write_bytes(kept.read_bytes().replace(b"2025", b"2024")),
        lambda: kept.write_bytes(b""),
        lambda: posted.ok("queue", "undo", "--older"),
        lambda: posted.git("checkout", "-q", "-b", "other", "HEAD~2"),
    ]
    seen = set()
    for change in changes:
        change()
        shown = posted.ok("queue", "list").out
        assert shown == posted.ok("queue", "list").out == list_anew(posted)
        seen.add(shown)
    assert len(seen) >= 3


def test_how_long_cards_wait_is_asked_of_the_clock(posted: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "or longer" not in posted.ok("queue", "list").err
    monkeypatch.setenv("CLEARED_CLOCK", "2025-03-10T06:00:00Z")
    assert "2 of them wait for 3d or longer" in posted.ok("queue", "list").err


def test_a_list_with_a_question_of_a_run_is_not_kept(ws: Workspace) -> None:
    """Whether it can be answered depends on what this machine trusts, not on the commit alone."""
    ws.script("queue_ask('Which?', ['a', 'b'])")
    for _ in range(2):
        assert "Which?" in ws.ok("queue", "list").out
    assert not list(ws.root.glob(".cleared/books/cards"))
