"""The queue's files: asked once, settled once, in any order of lines."""

from __future__ import annotations

import itertools

import pytest

from cleared.base.errors import WorkspaceError
from cleared.cards.card import Card, card_id
from cleared.cards.card_draft import CardDraft
from cleared.cards.card_events import render_open
from cleared.cards.known_cards import KnownCards
from cleared.cards.queue_files import load_cards, render_resolve


class Source:
    def __init__(self, **files: bytes) -> None:
        self.files = {f"queue/{name}.jsonl": data for name, data in files.items()}

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def list_paths(self, prefix: str) -> list[str]:
        return sorted(p for p in self.files if p.startswith(prefix + "/"))


def card(key: str, at: str = "2025-01-31T00:00:00Z", **rest: object) -> Card:
    return Card(card_id("entry", key), "entry", f"about {key}", at, **rest)  # type: ignore[arg-type]


def committed(draft: CardDraft, source: Source) -> Source:
    source.files |= draft.changed_files()
    return source


def test_an_id_follows_from_what_is_asked() -> None:
    assert card_id("entry", "a", "b") == card_id("entry", "a", "b")
    assert (
        len({card_id("entry", "a", "b"), card_id("line", "a", "b"), card_id("entry", "ab"), card_id("entry", "b")}) == 4
    )
    assert card_id("entry", "x").isalnum() and len(card_id("entry", "x")) == 8


def test_asked_again_is_asked_once() -> None:
    source = Source()
    draft = CardDraft(source, "queue")
    assert draft.add_card(card("a")) and not draft.add_card(card("a"))
    committed(draft, source)
    again = CardDraft(source, "queue")
    assert not again.add_card(card("a")) and again.changed_files() == {}


def test_what_is_written_is_what_is_read() -> None:
    made = card(
        "a", run_id="r", agent="x", record_id="2025-01-001", details={"text": 'q"\r\n\u2028☕', "n": 1, "l": [None]}
    )
    source = committed_with(made)
    assert list(load_cards(source, "queue").values()) == [made]
    assert source.files["queue/2025-01.jsonl"].count(b"\n") == 1


def committed_with(*cards: Card) -> Source:
    source = Source()
    draft = CardDraft(source, "queue")
    for one in cards:
        draft.add_card(one)
    return committed(draft, source)


def test_settled_once_and_only_what_is_open() -> None:
    source = committed_with(card("a"))
    draft = CardDraft(source, "queue")
    draft.resolve_card(card("a").id, "2025-02-01T00:00:00Z", "me", "done")
    draft.resolve_card(card("never asked").id, "2025-02-01T00:00:00Z", "me", "done")
    assert draft.open_cards() == []
    changes = draft.changed_files()
    assert list(changes) == ["queue/2025-02.jsonl"] and changes["queue/2025-02.jsonl"].count(b"\n") == 1
    committed(draft, source)
    (found,) = load_cards(source, "queue").values()
    assert (found.status, found.resolved_by, found.resolution) == ("resolved", "me", "done")
    draft = CardDraft(source, "queue")
    draft.resolve_card(found.id, "2025-03-01T00:00:00Z", "you", "again")
    assert draft.changed_files() == {}


def test_settled_in_the_run_that_asked_it_was_never_asked() -> None:
    draft = CardDraft(Source(), "queue")
    draft.add_card(card("a"))
    draft.resolve_card(card("a").id, "t", "me", "done")
    assert draft.changed_files() == {} and draft.open_cards() == []


def test_two_clones_merged_mean_the_same_in_any_order() -> None:
    a, b = card("a"), card("b", "2025-01-30T00:00:00Z")
    lines = [render_open(a), render_open(b), render_open(a), render_resolve(a.id, "t", "me", "x")]
    for order in itertools.permutations(lines):
        found = load_cards(Source(**{"2025-01": "".join(order).encode()}), "queue")
        assert [c.id for c in found.values()] == [b.id, a.id]
        assert found[a.id].status == "resolved" and found[b.id].status == "open"


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"event":"open"}', b'{"event":"resolve","id":"x"}', b"\xff", b"null", b""]
)
def test_damage_is_told_by_line(line: bytes) -> None:
    good = render_open(card("a")).encode()
    with pytest.raises(WorkspaceError) as caught:
        load_cards(Source(**{"2025-01": good + line + b"\n"}), "queue")
    assert caught.value.place and caught.value.place.line == 2


def test_a_card_is_found_by_its_beginning_or_its_entry() -> None:
    cards = [card("a", record_id="2025-01-001"), card("b")]
    known = KnownCards(Source(**{"2025-01": "".join(map(render_open, cards)).encode()}), "queue")
    assert known.find(cards[0].id[:4]) == [cards[0]]
    assert known.find("2025-01-001") == [cards[0]]
    assert known.find("nothing") == []
