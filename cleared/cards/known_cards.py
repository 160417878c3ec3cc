"""The cards of a commit, without reading all that the queue ever held.

A sealed file (``.cleared/books/queue``) has of files of the queue that grow no more: which cards are settled, a line
each, and every other line as it is. So only what came since is read, and of settled cards those that are asked for,
from the files that the line names. It holds as long as those files are in the commit byte for byte, which their blob
ids say; else, or without it, everything is read.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import suppress
from functools import cached_property
from operator import is_
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from cleared.base.errors import UsageError, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.newest_versions import keep_newest
from cleared.cards.card import Card
from cleared.cards.card_events import CardEvents, Event, place_in_queue, read_events
from cleared.cards.kinds import PROPOSAL
from cleared.cards.queue_files import list_queue_files, load_cards
from cleared.workspace.sealed_files import SealedFiles

_NAME: Final = "queue"
_WORTH: Final = 2
"""Files that are not in it yet, beside the newest, from which on it is made anew."""
_WORD: Final = re.compile(r"[!-~]{1,60}")
_NO_RECORD: Final = "-"
_STEP: Final = 4096
"""Characters of settled lines from one whose place is remembered to the next."""


class _SettledLines(Struct):
    """Lines ``id record kind files`` of settled cards, sorted, in one text: old books have very many, and to make a
    list of them takes longer than to find the few that are asked for."""

    text: str = ""
    steps: list[tuple[str, int]] = []
    """A line now and then, and where it begins; empty until one is looked for."""

    def find_line(self, card_id: str) -> str | None:
        """The line of a card."""
        return next(self.find_lines(f"{card_id} "), None) if self.text and " " not in card_id else None

    def find_lines(self, beginning: str) -> Iterator[str]:
        """The lines of cards whose ids begin so."""
        begin, end = self._find_stretch(beginning)
        at = begin
        if not self.text.startswith(beginning, begin):
            at = self.text.find(f"\n{beginning}", begin, end) + 1
        while at < len(self.text) and self.text.startswith(beginning, at):
            end = self.text.index("\n", at)
            yield self.text[at:end]
            at = end + 1

    def _find_stretch(self, beginning: str) -> tuple[int, int]:
        """Where in the text the first line that begins so has to begin, if there is one: at the first place, or behind
        a line end between both."""
        text = self.text
        if not self.steps:
            steps = [(text[: text.find("\n")], 0)]
            while 0 <= (at := text.find("\n", steps[-1][1] + _STEP)) < len(text) - 1:
                steps.append((text[at + 1 : text.index("\n", at + 1)], at + 1))
            self.steps = steps  # whole, as other threads look there, too
        above = bisect_left(self.steps, (beginning,))
        end = self.steps[above][1] + len(beginning) if above < len(self.steps) else len(text)
        return self.steps[max(above - 1, 0)][1], end

    def list_lines(self, word: str, column: int) -> list[str]:
        """The lines that have a word in this column, from 0."""
        if f" {word} " not in self.text:
            return []
        lines = self.text.splitlines()
        return [line for line in lines if f" {word} " in line and line.split(" ")[column] == word]


class _Summary(Struct):
    """``files``: path → blob, in the order in which they are read. ``others``: events of all cards that are not
    settled, each with the number of its file."""

    files: dict[str, str] = {}
    settled: _SettledLines = field(default_factory=_SettledLines)
    others: list[tuple[int, Event]] = []

    def encode(self) -> bytes:
        head = json.dumps([self.files, self.others], ensure_ascii=False, separators=(",", ":"))
        return f"{head}\n{self.settled.text}".encode("utf-8", "surrogatepass")

    @classmethod
    def decode(cls, data: bytes) -> _Summary:
        head, _, settled = data.decode("utf-8", "surrogatepass").partition("\n")
        try:
            files, others = msgspec.json.decode(head)
        except (ValueError, msgspec.MsgspecError):  # what JSON has not, as half of a character
            files, others = json.loads(head)
        return cls(files, _SettledLines(settled), [(number, event) for number, event in others])


class ReadCards(Struct):
    """What a process has read of the cards of a commit, for the next one. ``events``: those of the files that are not
    in the summary; ``lines``: card → its events, where it is not settled in the summary; ``cards``: these in order,
    once somebody has asked for them. Do not alter what it has."""

    summary: _Summary
    events: Sequence[Event]
    lines: Mapping[str, list[Event]]
    cards: dict[str, Card] | None = None

    def list_events_since(self, summary: _Summary, events: Sequence[Event]) -> Sequence[Event] | None:
        """Those of another commit that come behind all of this one; None where not all others are the same."""
        count = len(self.events)
        if self.summary.files != summary.files or len(events) < count:
            return None
        return events[count:] if all(map(is_, self.events, events)) else None


class KnownCards(Mapping[str, Card]):
    """All cards of one commit by id. Asked for single ones, or for those that are open, it does not read all.

    ``blobs``: path → blob id, of the files of the queue; ``sealed``: where what is known of them is kept. ``keeps``:
    whether it may be written of this commit. ``before``: what this process has read of another commit. Raises
    ``WorkspaceError`` for a damaged line, as ``load_cards``.
    """

    def __init__(
        self,
        source: FileSource,
        queue: str,
        blobs: Mapping[str, str] | None = None,
        sealed: SealedFiles | None = None,
        *,
        keeps: bool = False,
        before: ReadCards | None = None,
    ) -> None:
        self._source, self._queue = source, queue
        self._files = {path: blobs[path] if blobs else "" for path in list_queue_files(source, queue)}
        self._made: dict[str, Card] = {}
        self._summary = self._choose_summary(before, sealed)
        new = [path for path in self._files if path not in self._summary.files]
        if sealed is not None and keeps and len(new) > _WORTH:
            self._summary = self._extend_summary(new[:-1])
            with suppress(ValueError, RecursionError):  # what somebody wrote can be read, and not be written
                sealed.write(_NAME, self._summary.encode())
            new = new[-1:]
        self._new: list[Event] = [event for path in new for event in _read_file_once(source.read(path) or b"", path)]
        self._lines: dict[str, list[Event]] = {}
        """Of each card that is not settled in the summary alone."""
        self.read = ReadCards(self._summary, self._new, self._lines)
        known = self._follow(before) if before is not None else None
        if known is None:
            for event in (*(event for _, event in self._summary.others), *self._new):
                self._lines.setdefault(str(event["id"]), []).append(event)
        self.read = known or self.read

    # -- what is asked --------------------------------------------------------------------------------------------

    def __getitem__(self, card_id: str) -> Card:
        if (card := self._made.get(card_id)) is not None:
            return card
        line = self._summary.settled.find_line(card_id)
        if line is not None:
            return self._make_settled([line])[0]
        if card_id not in self._lines:  # as those that a run is about to stage
            raise KeyError(card_id)
        return self._make_live([card_id])[card_id]

    def __contains__(self, card_id: object) -> bool:
        return isinstance(card_id, str) and (
            self._summary.settled.find_line(card_id) is not None
            or (card_id in self._lines and card_id in self._make_live([card_id]))
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._live) + self._summary.settled.text.count("\n")

    def values(self) -> ValuesView[Card]:
        return self._all.values()

    def list_open(self, *kinds: str) -> list[Card]:
        """The cards that wait, of these kinds or of all, oldest first; those that were skipped behind all that were
        not."""
        if not kinds:
            return [card for card in self._live.values() if card.status == "open"]
        named = (each for each, events in self._lines.items() if any(event.get("kind") in kinds for event in events))
        return [card for card in self._make_live(named).values() if card.status == "open" and card.kind in kinds]

    def list_kind(self, kind: str) -> list[Card]:
        """All cards of a kind."""
        live = [card for card in self._live.values() if card.kind == kind]
        return sorted([*live, *self._make_settled(self._summary.settled.list_lines(kind, 2))], key=place_in_queue)

    def find(self, text: str) -> Sequence[Card]:
        """Cards whose id begins with a text, or which are about the record of that name; of proposals that wait,
        also the one of this number."""
        lines = [*self._summary.settled.find_lines(text)] if " " not in text else []
        lines += self._summary.settled.list_lines(text, 1)
        settled = self._make_settled(dict.fromkeys(lines))
        may_fit = (
            card_id
            for card_id, events in self._lines.items()
            if card_id.startswith(text)
            or any(event.get("entry_id") == text or event.get("kind") == PROPOSAL.name for event in events)
        )
        live = [
            card
            for card in self._make_live(may_fit).values()
            if card.id.startswith(text)
            or card.record_id == text
            or (card.status == "open" and card.kind == PROPOSAL.name and text in _name_proposal(card))
        ]
        return sorted([*live, *settled], key=place_in_queue)

    def find_one(self, text: str) -> Card:
        """The card with this id, the beginning of one, the id of its record, or the number of its proposal; open ones
        first. Raises ``UsageError``."""
        fitting = self.find(text) if text else []
        fitting = [c for c in fitting if c.id == text] or [c for c in fitting if c.status == "open"] or fitting
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            raise UsageError(f"{text!r} is the beginning of {len(fitting)} cards", remedy="Write more of the id.")
        raise UsageError(f"there is no card {text!r}", remedy="cleared queue list shows them.")

    def list_events(self, ids: Collection[str]) -> list[Event]:
        """All lines of these cards."""
        settled: list[Event] = []
        self._read_settled(filter(None, map(self._summary.settled.find_line, ids)), settled.append)
        return [*settled, *(event for each in ids for event in self._lines.get(each, ()))]

    # -- how it is known ------------------------------------------------------------------------------------------

    @property
    def _live(self) -> Mapping[str, Card]:
        """The cards that are not in the summary as settled."""
        if self.read.cards is None:
            self.read.cards = self._make_live(self._lines)
        return self.read.cards

    @cached_property
    def _all(self) -> Mapping[str, Card]:
        return load_cards(self._source, self._queue) if self._summary.settled.text else self._live

    def _follow(self, before: ReadCards) -> ReadCards | None:
        """What there is, of what was read before, where only the cards of some further events are others by now."""
        since = before.list_events_since(self._summary, self._new)
        if since is None:
            return None
        lines = dict(before.lines)
        for event in since:
            lines[str(event["id"])] = [*lines.get(str(event["id"]), ()), event]
        self._lines = lines
        made = self._make_live({str(event["id"]): None for event in since})
        return ReadCards(self._summary, self._new, lines, _exchange_cards(before.cards, made))

    def _make_live(self, ids: Iterable[str]) -> dict[str, Card]:
        """Of these cards those that are not in the summary as settled. Once all were made it gives all, the very same,
        so that what was found out about a card holds."""
        if self.read.cards is not None:
            return self.read.cards
        events = CardEvents()
        for card_id in ids:
            if self._summary.settled.find_line(card_id) is None:
                for event in self._lines.get(card_id, ()):
                    events.add_event(event)
        return events.make_cards()

    def _make_settled(self, lines: Iterable[str]) -> list[Card]:
        """The cards of these lines of the summary: from the files that they name, and from what came since."""
        events = CardEvents()
        ids = self._read_settled(lines, events.add_event)
        for event in self._new if ids else ():
            _choose(ids, events.add_event)(event)
        made = events.make_cards()
        self._made.update(made)
        return list(made.values())

    def _read_settled(self, lines: Iterable[str], add: Callable[[Event], None]) -> set[str]:
        """Add what the files that these lines of the summary name say of their cards, and say which these are."""
        wanted: dict[str, set[str]] = {}
        paths = list(self._summary.files)
        for line in lines:
            card_id, _, _, numbers = line.split(" ")
            for number in numbers.split(","):
                wanted.setdefault(paths[int(number)], set()).add(card_id)
        for path in sorted(wanted):
            read_events(path, self._source.read(path) or b"", _choose(wanted[path], add))
        return set().union(*wanted.values())

    # -- the summary ----------------------------------------------------------------------------------------------

    def _choose_summary(self, before: ReadCards | None, sealed: SealedFiles | None) -> _Summary:
        """The one that was kept, in this process or in the file, where it still holds; else an empty one."""
        data = sealed.read(_NAME) if sealed is not None and before is None else None
        kept = before.summary if before is not None else _Summary.decode(data) if data is not None else _Summary()
        # Where several lines say the same the first counts: what came since has to be read after the others.
        is_first = list(self._files)[: len(kept.files)] == list(kept.files)
        return kept if is_first and kept.files.items() <= self._files.items() else _Summary()

    def _extend_summary(self, paths: Sequence[str]) -> _Summary:
        """The summary with further files of the queue."""
        old = self._summary
        files = old.files | {path: self._files[path] for path in paths}
        numbers = {path: number for number, path in enumerate(files)}
        events = list(old.others)
        all_events = CardEvents()
        for _, event in events:
            all_events.add_event(event)
        for path in paths:
            new = read_events(path, self._source.read(path) or b"", all_events.add_event)
            events += ((numbers[path], event) for event in new)
        by_card: dict[str, list[tuple[int, Event]]] = {}
        for number, event in events:
            by_card.setdefault(str(event["id"]), []).append((number, event))
        cards = all_events.make_cards()
        settled, others = old.settled.text.splitlines(), []
        for card_id, its_events in by_card.items():
            where = sorted({number for number, _ in its_events})
            if (line := old.settled.find_line(card_id)) is not None:
                settled.remove(line)
                head, _, before = line.rpartition(" ")
                settled.append(f"{head} {_join_numbers({*map(int, before.split(',')), *where})}")
            elif (card := cards.get(card_id)) is not None and card.status == "resolved" and _is_plain(card, its_events):
                settled.append(f"{card_id} {card.record_id or _NO_RECORD} {card.kind} {_join_numbers(where)}")
            else:
                others += its_events
        others.sort(key=lambda each: each[0])
        return _Summary(files, _SettledLines("".join(f"{line}\n" for line in sorted(settled))), others)


def _exchange_cards(cards: dict[str, Card] | None, made: Mapping[str, Card]) -> dict[str, Card] | None:
    """The cards in order, with others in their places; None where the order is another by now."""
    if cards is None:
        return None
    last = place_in_queue(cards[next(reversed(cards))]) if cards else ("", "")
    exchanged = dict(cards)
    for card in made.values():
        known = cards.get(card.id)
        if place_in_queue(card) != place_in_queue(known) if known is not None else place_in_queue(card) < last:
            return None
        exchanged[card.id] = card
    return exchanged


@keep_newest(files=4, versions=2)
def _read_file_once(data: bytes | None, before: tuple[bytes | None, Sequence[Event]] | None, path: str) -> list[Event]:
    """The lines of a file of the queue; of one that grew, what is new is read. Do not alter them."""
    data, known = data or b"", tuple[bytes, Sequence[Event]]((b"", ()))
    if before is not None and before[0] and before[0].endswith(b"\n") and data.startswith(before[0]):
        known = (before[0], before[1])
    try:
        return [*known[1], *read_events(path, data[len(known[0]) :], CardEvents().add_event)]
    except WorkspaceError:
        read_events(path, data, CardEvents().add_event)  # says which line of the whole it is
        raise


def _choose(ids: Collection[str], add: Callable[[Event], None]) -> Callable[[Event], None]:
    """Adds the events of these cards alone."""

    def add_chosen(event: Event) -> None:
        if str(event["id"]) in ids:
            add(event)

    return add_chosen


def _name_proposal(card: Card) -> tuple[str, str]:
    """Its number, such as P12, and its folder."""
    folder = str(card.details.get("proposal", ""))
    return folder.partition("-")[0], folder


def _join_numbers(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _is_plain(card: Card, events: Iterable[tuple[int, Event]]) -> bool:
    """Whether a line of the summary can name the card."""
    words: tuple[Any, ...] = (card.id, card.kind, card.record_id or _NO_RECORD, *(event["id"] for _, event in events))
    return all(isinstance(word, str) and _WORD.fullmatch(word) for word in words)
