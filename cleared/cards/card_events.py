"""What lines of the queue say of cards, in any order and any number of times, and what comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import Place, RestoreRemedy, WorkspaceError
from cleared.base.json_values import is_nested_deeply
from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION

Event = Mapping[str, Any]
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode
_decode: Final = msgspec.json.Decoder().decode


class CardEvents(Struct):
    """``add_event`` takes the lines, ``make_cards`` gives the cards."""

    _opened: dict[str, Card] = {}
    _resolved: dict[str, list[Event]] = {}
    _went_on: dict[str, Event] = {}
    _agreed: dict[str, dict[str, Event]] = {}
    _withdrawn: set[tuple[str, str]] = set()
    _skipped: dict[str, set[str]] = {}
    _taken_back: dict[str, set[str]] = {}

    def add_event(self, data: Event) -> None:
        """Raises ``KeyError``, ``TypeError``, ``AttributeError`` or ``ValueError`` where it is none."""
        if data["event"] == "open":
            card = parse_opened(data)
            if (first := self._opened.setdefault(card.id, card)) is not card and not _says_same(first, card):
                self._opened[card.id] = replace(first, rivals=(*first.rivals, card))
        elif data["event"] == "agree":
            said = {k: v for k, v in data.items() if k not in ("event", "id")}
            self._agreed.setdefault(data["id"], {})[str(data["decision"])] = said
        elif data["event"] == "disagree":
            self._withdrawn.add((data["id"], str(data["decision"])))
        elif data["event"] == "skip":
            self._skipped.setdefault(data["id"], set()).add(str(data["at"]))
        elif data["event"] == "unskip":
            self._taken_back.setdefault(data["id"], set()).add(str(data["of"]))
        elif data["event"] in ("resolve", "went_on"):
            settling = {name: data[name] for name in ("at", "by", "resolution")}
            if data["event"] == "went_on":
                self._went_on.setdefault(data["id"], {**settling, "run": str(data["run"])})
            else:
                proof = {name: data[name] for name in ("key", "signature") if name in data}
                self._resolved.setdefault(data["id"], []).append({**settling, **proof})
        else:
            raise ValueError(f"{data['event']!r} is no event of a card")

    def make_cards(self) -> dict[str, Card]:
        """All cards by id, oldest first; those that were skipped behind all that were not."""
        opened = dict(self._opened)
        for card_id, decisions in self._agreed.items():
            if card_id in opened:
                standing = tuple(each for name, each in decisions.items() if (card_id, name) not in self._withdrawn)
                opened[card_id] = replace(opened[card_id], agreed=standing)
        for card_id, lines_of_card in self._resolved.items():
            if card_id in opened:
                opened[card_id] = _settle_card(opened[card_id], lines_of_card)
        for card_id, line in self._went_on.items():
            if card_id in opened and opened[card_id].kind == QUESTION.name:  # a run goes on with nothing else
                card = replace(opened[card_id], gone_on=line["run"])
                opened[card_id] = card if card.status == "resolved" else _settled_by(card, line)
        for card_id in self._skipped.keys() & opened.keys():
            last = max(self._skipped[card_id] - self._taken_back.get(card_id, set()), default=None)
            opened[card_id] = replace(opened[card_id], skipped_at=last)
        return dict(sorted(opened.items(), key=lambda item: place_in_queue(item[1])))


def place_in_queue(card: Card) -> tuple[str, str]:
    """By which cards are ordered."""
    return card.skipped_at or "", card.created_at


def read_events(
    path: str, data: bytes, add: Callable[[Event], None] = lambda event: None, *, readable_only: bool = False
) -> Sequence[Event]:
    """Hand each line of a file of the queue to ``add``; gives those that it took. Raises ``WorkspaceError`` for a
    damaged one, unless only what is readable is asked for.

    Each line is parsed by itself: of lines that are parsed together the halves of two could make one event. One that
    is nested deeply is damaged for every reader; else it would hang on how deep the stack is who reads it.
    """
    events: list[Event] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            try:
                event = _decode(line)  # takes a third of the time
            except msgspec.MsgspecError:  # it refuses half a character and NaN, which older lines may hold
                event = json.loads(line)
            if not isinstance(event, dict) or is_nested_deeply(event, line):
                raise TypeError
            add(event)
            events.append(event)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            if readable_only:
                continue
            raise WorkspaceError(
                "a line of the queue is not readable", place=Place(path, number), remedy=RestoreRemedy(path)
            ) from None
    return events


def _says_same(known: Card, card: Card) -> bool:
    """Whether one of the lines that opened ``known`` says just what ``card`` does."""
    text = render_open(card)
    return any(render_open(each) == text for each in (known, *known.rivals))


def _settle_card(card: Card, lines: list[Event]) -> Card:
    """The card, settled by the first of these lines that can settle it, if one can."""
    if card.kind == QUESTION.name:
        card = replace(card, settlings=tuple(lines))
    can = [line for line in lines if "signature" in line] if card.has_ticket else lines
    return _settled_by(card, can[0]) if can else card


def _settled_by(card: Card, line: Event) -> Card:
    return replace(
        card, status="resolved", resolved_at=line["at"], resolved_by=line["by"], resolution=line["resolution"]
    )


def parse_opened(data: Event) -> Card:
    """The card that a line opens. Details that are none read as though there were none, so that its card is shown."""
    details = data.get("details")
    return Card(
        str(data["id"]),
        str(data["kind"]),
        str(data["title"]),
        str(data["created_at"]),
        data.get("run_id"),
        data.get("entry_id"),
        data.get("agent"),
        details if isinstance(details, dict) else {},
    )


def render_open(card: Card) -> str:
    """The line that opens a card."""
    data: dict[str, Any] = {
        "event": "open",
        "id": card.id,
        "kind": card.kind,
        "title": card.title,
        "created_at": card.created_at,
    }
    about = {"run_id": card.run_id, "entry_id": card.record_id, "agent": card.agent}
    data.update({name: value for name, value in about.items() if value is not None})
    if card.details:
        data["details"] = dict(card.details)
    return render_line(data)


def render_line(data: Event) -> str:
    """A line of the queue."""
    return _encode(data) + "\n"
