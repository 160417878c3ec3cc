"""A machine whose runs count, and whose user reviews nothing, settles a card by a line that a check would pass over."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace
from reviewers import People

from cleared.cards.card_events import read_events
from cleared.cards.queue_files import render_resolve
from cleared.changes.decisions.authorization import Authorization, find_authorization

DEEPEST = 100


def nest(line: str, levels: int) -> str:
    return f'{line.rstrip()[:-1]},"x":{"[" * levels}{"]" * levels}}}\n'


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": lambda line: line,
    "with a letter escaped": lambda line: line.replace('"resolve"', '"\\u0072esolve"'),
    "by a word that is no event": lambda line: line.replace('"resolve"', '"settled"'),
    "nested a little": lambda line: nest(line, DEEPEST - 1),
    "nested too deeply": lambda line: nest(line, DEEPEST),
    "nested as deep as one reader gets": lambda line: nest(line, 970),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_named_however_it_is_written(
    posted: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    for name, value in IDENTITY.items():
        monkeypatch.setenv(name, value)
    posted.script('queue_ask("Pay it?", ["no", "yes"])', name="asker")
    People(posted, tmp_path, ("ana",))
    card = next(each for each in posted.cards() if each["kind"] == "question")
    with monkeypatch.context() as patched:  # as a program does that somebody has changed
        patched.setattr("cleared.cards.card_draft.render_resolve", lambda *args: WAYS[way](render_resolve(*args)))
        patched.setattr(
            "cleared.changes.decisions.decision_context.find_authorization",
            lambda *args, person: find_authorization(*args, person=False),
        )
        patched.setattr(Authorization, "require_allowed", lambda *_: None)
        posted("queue", "answer", card["id"], "yes")
    assert "Resolves: 1" in posted.git("log", "-1", "--format=%b"), "the attack was made"
    checked = posted.process("check", "--json")
    assert checked.code == 1 and checked.json["violations"]


@pytest.mark.parametrize("calls", [0, 300, 700])
def test_a_line_is_as_readable_from_any_depth_of_the_stack(calls: int) -> None:
    line = json.dumps({"event": "skip", "id": "a", "at": "t", "by": "b"})

    def count_read(text: str, calls: int) -> int:
        if calls:
            return count_read(text, calls - 1)
        return len(read_events("queue/a.jsonl", text.encode(), readable_only=True))

    assert count_read(nest(line, DEEPEST - 1), calls) == 1
    assert count_read(nest(line, DEEPEST), calls) == 0
