"""SWIFT: ``status`` reads a long queue once; what it keeps of that is believed only for the very same queue."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from harness import Workspace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleared.cards import card_events, queue_files
from cleared.cards.card import Card
from cleared.service import waiting_cards

QUEUE = "queue/2025-01.jsonl"
AT = "2025-01-31T12:00:00Z"
numbers = count()


@pytest.fixture
def long_queue(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A queue that is worth a file, with one card; and a copy of what is kept of it."""
    monkeypatch.setattr(waiting_cards, "FEWEST", 1)
    write(ws, card_events.render_open(Card("first", "entry", "a card", AT)))
    assert waiting(ws) == 1
    (ws.root / "older").write_bytes(kept(ws).read_bytes())
    return ws


def write(ws: Workspace, text: str) -> None:
    file = ws.root / QUEUE
    file.parent.mkdir(exist_ok=True)
    with file.open("a") as stream:
        stream.write(text)
    ws.commit(QUEUE)


def kept(ws: Workspace) -> Path:
    return ws.root / ".cleared/books/waiting-cards"


def waiting(ws: Workspace) -> int:
    shown: int = ws.json("status")["cards"]
    return shown


def test_a_long_queue_is_read_once(long_queue: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_files, "load_cards", None)
    assert waiting(long_queue) == 1


def test_a_damaged_line_is_named_whatever_is_kept(long_queue: Workspace) -> None:
    write(long_queue, "{\n")
    assert QUEUE in long_queue("status").out


STEPS: dict[str, Callable[[Workspace], object]] = {
    "open": lambda ws: write(ws, card_events.render_open(Card(f"c{next(numbers)}", "entry", "a card", AT))),
    "settle": lambda ws: write(ws, queue_files.render_resolve("first", AT, "ada", "done")),
    "delete": lambda ws: kept(ws).unlink(missing_ok=True),
    "tear": lambda ws: kept(ws).write_bytes((ws.root / "older").read_bytes()[:40]),
    "forge": lambda ws: kept(ws).write_bytes((ws.root / "older").read_bytes() + b" "),
    "bring back": lambda ws: kept(ws).write_bytes((ws.root / "older").read_bytes()),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=4))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_kept_is_no_source_of_truth(long_queue: Workspace, steps: list[str]) -> None:
    for step in steps:
        STEPS[step](long_queue)
        lines = (long_queue.root / QUEUE).read_text().splitlines()
        opened = sum('"open"' in line for line in lines)
        assert waiting(long_queue) == opened - any('"resolve"' in line for line in lines)
