"""What is known of the queue without reading all of it is what reading all of it gives."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import pytest

from cleared.base.errors import WorkspaceError
from cleared.cards.card import Card, card_id
from cleared.cards.card_events import Event, read_events, render_open
from cleared.cards.known_cards import KnownCards, ReadCards
from cleared.cards.queue_files import (
    load_cards,
    render_agree,
    render_resolve,
    render_skip,
    render_unskip,
    render_went_on,
)
from cleared.git import blob_id
from cleared.workspace.sealed_files import SealedFiles

QUEUE = "queue"


class Source:
    """Files, and which of them were read."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files, self.was_read = files, list[str]()

    def read(self, path: str) -> bytes | None:
        self.was_read.append(path)
        return self.files.get(path)

    def list_paths(self, prefix: str) -> list[str]:
        return sorted(self.files)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "home"))
    (tmp_path / "books").mkdir()
    return tmp_path / "books" / ".cleared"


def known(state: Path, source: Source, version: bytes = b"1", before: ReadCards | None = None) -> KnownCards:
    blobs = {path: blob_id(data, "sha1") for path, data in source.files.items()}
    return KnownCards(source, QUEUE, blobs, SealedFiles(state, version), keeps=True, before=before)


def some_lines(chance: random.Random, count: int) -> list[str]:
    """Lines about few cards, in any order, so that every kind of line meets every other."""
    ids = [*(card_id("entry", str(n)) for n in range(count // 3)), "odd id", "5", "ä" * 4]
    lines = []
    for number in range(count):
        name, at = chance.choice(ids), f"2025-01-{1 + number % 28:02d}T00:00:{number % 60:02d}Z"
        entry = chance.choice([None, f"2025-01-{number % 9:03d}", "an entry"])
        details = {"ticket": {"run": "r"}} if chance.random() < 0.2 else {}
        card = Card(
            name, chance.choice(["entry", "question", "transfer"]), "t" * number, at, "run", entry, "a", details
        )
        lines.append(
            chance.choice(
                [
                    render_open(card),
                    render_open(card),
                    render_resolve(name, at, "ann", "approve"),
                    render_resolve(name, at, "ann", "yes", {"key": "k", "signature": "s"}),
                    render_went_on(name, at, "a", f"run-{number}"),
                    render_skip(name, at, "ann"),
                    render_unskip(name, at, "ann", at),
                    render_agree(name, {"at": at, "by": "bob", "decision": f"d{number}"}),
                ]
            )
        )
    return lines


def sort_events(events: list[Event]) -> list[str]:
    return sorted(json.dumps(event, sort_keys=True) for event in events)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_what_reading_all_gives(state: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.cards.known_cards._STEP", [1, 50, 4096][seed % 3])
    chance = random.Random(seed)
    lines = iter(some_lines(chance, 120))
    source = Source({})
    for number in itertools.count():
        part = "".join(itertools.islice(lines, 10)).encode()
        if not part:
            break
        month = f"{QUEUE}/2025-{1 + number // 4:02d}"
        source.files[f"{month}_{number % 4 + 1:03d}.jsonl" if number % 4 else f"{month}.jsonl"] = part
        if chance.random() < 0.1:  # a merge adds to an older file
            path = chance.choice(sorted(source.files))
            source.files[path] += render_skip(card_id("entry", "1"), "2025-02-01T00:00:00Z", "bob").encode()
        every, cards = load_cards(source, QUEUE), known(state, source)
        said = [event for path, data in sorted(source.files.items()) for event in read_events(path, data)]
        assert cards.list_open("entry") == [c for c in every.values() if (c.status, c.kind) == ("open", "entry")]
        assert cards.list_open() == [card for card in every.values() if card.status == "open"]
        assert cards.list_open("entry") == [c for c in every.values() if (c.status, c.kind) == ("open", "entry")]
        assert len(cards) == len(every)
        for name, card in every.items():
            assert name in cards
            assert cards[name] == card
            assert sort_events(cards.list_events([name])) == sort_events([e for e in said if e["id"] == name])
            assert card in cards.find(name[:5])
            assert card in (cards.find(card.record_id) if card.record_id else [card])
        assert "nothing" not in cards
        assert cards.get("nothing") is None
        for kind in ("entry", "question", "transfer"):
            assert {c.id for c in cards.list_kind(kind)} == {c.id for c in every.values() if c.kind == kind}
        assert dict(cards) == every


def test_old_files_are_not_read_again(state: Path) -> None:
    cards = [Card(card_id("entry", str(n)), "entry", "t", "2025-01-01T00:00:00Z") for n in range(12)]
    months = {f"{QUEUE}/2025-{n + 1:02d}.jsonl": render_open(card).encode() for n, card in enumerate(cards)}
    for n, card in enumerate(cards[:-2]):
        months[f"{QUEUE}/2025-{n + 1:02d}.jsonl"] += render_resolve(card.id, "t", "me", "approve").encode()
    source = Source(months)
    known(state, source)
    source.was_read.clear()
    again = known(state, source)
    assert again.list_open() == cards[-2:]
    assert cards[0].id in again
    assert source.was_read == [f"{QUEUE}/2025-12.jsonl"]
    assert again[cards[3].id].status == "resolved"
    assert source.was_read == [f"{QUEUE}/2025-12.jsonl", f"{QUEUE}/2025-04.jsonl"]


def test_what_is_kept_holds_for_these_files_alone(state: Path) -> None:
    lines = [render_open(Card(card_id("entry", str(n)), "entry", "t", "2025-01-01T00:00:00Z")) for n in range(4)]
    source = Source({f"{QUEUE}/2025-{n + 1:02d}.jsonl": line.encode() for n, line in enumerate(lines)})
    known(state, source)
    (kept,) = (state / "books").iterdir()
    first = card_id("entry", "0")
    source.files[f"{QUEUE}/2025-01.jsonl"] += render_resolve(first, "t", "me", "approve").encode()
    assert known(state, source)[first].status == "resolved"
    data = kept.read_bytes()
    for spoiled in (data[:-1], data.replace(first.encode(), b"aaaaaaaa"), b""):
        kept.write_bytes(spoiled)
        assert known(state, source)[first].status == "resolved"
    source.files[f"{QUEUE}/2025-02.jsonl"] += b"{damaged\n"
    with pytest.raises(WorkspaceError, match="not readable"):
        known(state, source)


def test_a_card_stays_the_same_one_while_its_lines_do(state: Path) -> None:
    cards = [Card(card_id("entry", str(n)), "entry", "t", "2025-01-01T00:00:00Z") for n in range(3)]
    source = Source({f"{QUEUE}/2025-01.jsonl": "".join(map(render_open, cards)).encode()})
    before = known(state, source)
    listed = before.list_open()
    source.files[f"{QUEUE}/2025-01.jsonl"] += render_resolve(cards[0].id, "t", "me", "approve").encode()
    after = known(state, source, before=before.read)
    assert after[cards[0].id].status == "resolved"
    assert after[cards[1].id] is listed[1]
    assert after.find(cards[1].id)[0] is listed[1]
    assert after.list_open("entry")[0] is listed[1]
