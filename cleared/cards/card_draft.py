"""The committed cards, and what a run or decision changes about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cleared.base.errors import Place, PolicyError
from cleared.base.file_source import FileSource, choose_part
from cleared.cards.card import Card
from cleared.cards.card_events import render_open
from cleared.cards.kinds import QUESTION
from cleared.cards.known_cards import KnownCards
from cleared.cards.queue_files import (
    render_agree,
    render_disagree,
    render_resolve,
    render_skip,
    render_unskip,
    render_went_on,
    shard_path,
)

VOID: Final = "void: what it asks about is gone"
"""The resolution of a card that nothing can be decided about any more."""


class CardDraft:
    """The committed cards, and what a run or decision changes about them. ``changed_files`` gives the new files."""

    def __init__(
        self,
        source: FileSource,
        queue: str,
        clean: Callable[[str], str] = str,
        read_cards: Callable[[], KnownCards] | None = None,
    ) -> None:
        """``clean`` takes secrets out of each line that is written; it leaves JSON JSON. ``read_cards`` gives the
        committed cards (default: all are read)."""
        self.source = source
        self._read_cards = read_cards or (lambda: KnownCards(source, queue))
        self.queue = queue
        self.clean = clean
        self.added: dict[str, Card] = {}
        self.resolved: dict[str, tuple[str, str, str]] = {}
        self.agreed: dict[str, Mapping[str, Any]] = {}
        self.withdrawn: list[tuple[str, str, str, str]] = []
        """Card, time, by whom, the decision that agreed to it."""
        self.skipped: dict[str, tuple[str, str]] = {}
        self.brought_forward: dict[str, tuple[str, str, str]] = {}
        """Card → time, by whom it is put behind all others."""
        self.went_on: dict[str, tuple[str, str, str]] = {}
        """Question → time, agent, the run that goes on with it."""
        self.prove: Callable[[Card, str, str, str], Mapping[str, str]] = lambda card, at, by, resolution: {}
        """Signs the line that settles a question."""
        self.accepted: list[Card] = []
        """Cards that a person answers for as they were opened, whoever did that."""
        self.find_doubtful: Callable[[Iterable[Card]], Mapping[str, str]] = lambda cards: {}
        """Of some cards those that nothing vouches for: id → why, and what to do (``changes.doubtful_cards``)."""
        self._doubts: dict[str, str | None] = {}
        self._known: KnownCards | None = None

    @property
    def committed_cards(self) -> KnownCards:
        if self._known is None:
            self._known = self._read_cards()
        return self._known

    def find_doubt(self, card: Card) -> str | None:
        """What ``find_doubtful`` says of a committed card; None where somebody vouches for it."""
        if card.id not in self._doubts:  # who asks for a second one will ask for many
            judged = [card, *(self.committed_cards.list_open() if self._doubts else ())]
            doubtful = self.find_doubtful(judged)
            self._doubts.update((each.id, doubtful.get(each.id)) for each in judged)
        return self._doubts[card.id]

    def refuse_doubtful(self, card: Card) -> None:
        """Raises ``PolicyError`` for a committed card that nothing vouches for."""
        if (why := self.find_doubt(card)) is not None:
            raise PolicyError(f"the card {card.id} is held: {why}", place=Place(field="card"))

    def add_card(self, card: Card) -> bool:
        """Stage a card; False where it was asked before."""
        if card.id in self.added or card.id in self.committed_cards:
            return False
        self.added[card.id] = card
        return True

    def skip_card(self, card_id: str, at: str, by: str) -> None:
        """Stage that an open card is put behind all others."""
        self.skipped[card_id] = (at, by)

    def bring_forward(self, card_id: str, at: str, by: str, of: str) -> None:
        """Stage that a skip is taken back; ``of``: when it was made."""
        self.brought_forward[card_id] = (at, by, of)

    def resolve_card(self, card_id: str, at: str, by: str, resolution: str) -> None:
        """Stage that a card is settled. One that was only staged is dropped; one that is not open, or that nothing
        vouches for, stays as it is."""
        if self.added.pop(card_id, None) is None:
            known = self.committed_cards.get(card_id)
            if known is not None and known.status == "open" and self.find_doubt(known) is None:
                self.resolved[card_id] = (at, by, resolution)

    def record_continuation(self, card_id: str, at: str, by: str, run: str) -> None:
        """Stage that a run goes on with a question, once and for all."""
        self.went_on[card_id] = (at, by, run)

    def record_agreement(self, card_id: str, data: Mapping[str, Any]) -> None:
        """Stage what the first of two has agreed to; ``at`` and ``decision`` are among it."""
        self.agreed[card_id] = data

    def withdraw_agreement(self, card_id: str, at: str, by: str, decision: str) -> None:
        """Stage that what a decision agreed to is taken back."""
        self.withdrawn.append((card_id, at, by, decision))

    def open_cards(self, *kinds: str) -> list[Card]:
        """Those that wait, of these kinds or of all."""
        committed = [card for card in self.committed_cards.list_open(*kinds) if card.id not in self.resolved]
        return [*committed, *(card for card in self.added.values() if not kinds or card.kind in kinds)]

    def list_about(self, kind: str, record_id: str) -> list[str]:
        """The open cards of a kind about an entry: one that came back has another card than its first."""
        return [card.id for card in self.open_cards(kind) if card.record_id == record_id]

    def render_opened(self) -> dict[str, str]:
        """Card → the line that opens it, of those that are staged."""
        return {card.id: self.clean(render_open(card)) for card in self.added.values()}

    def changed_files(self, opened: Mapping[str, str] | None = None) -> dict[str, bytes]:
        """The files as they will be: path → bytes. ``opened``: what ``render_opened`` gives, where that is known."""
        out: dict[str, bytes] = {}
        lines: dict[str, list[str]] = {}
        for card_id, line in (self.render_opened() if opened is None else opened).items():
            lines.setdefault(shard_path(self.queue, self.added[card_id].created_at), []).append(line)

        def add_line(at: str, line: str) -> None:
            lines.setdefault(shard_path(self.queue, at), []).append(self.clean(line))

        for card_id, (at, by, resolution) in self.resolved.items():
            card, resolution = self.committed_cards[card_id], self.clean(resolution)
            proof = self.prove(card, at, by, resolution) if card.kind == QUESTION.name else {}
            add_line(at, render_resolve(card_id, at, by, resolution, proof))
        for card_id, (at, by, run) in self.went_on.items():
            add_line(at, render_went_on(card_id, at, by, run))
        for card_id, data in self.agreed.items():
            add_line(str(data["at"]), render_agree(card_id, data))
        for card_id, at, by, decision in self.withdrawn:
            add_line(at, render_disagree(card_id, at, by, decision))
        for card_id, (at, by) in self.skipped.items():
            add_line(at, render_skip(card_id, at, by))
        for card_id, (at, by, of) in self.brought_forward.items():
            add_line(at, render_unskip(card_id, at, by, of))
        known = set(self.source.list_paths(self.queue)) if lines else set()
        for month, new in lines.items():
            path = choose_part(self.source, month, known)
            out[path] = (self.source.read(path) or b"") + "".join(new).encode("utf-8")
        return out
