"""The queue's files: ``queue/YYYY-MM.jsonl`` and its further parts, one JSON object a line, append-only.

    {"event": "open", "id": …, "kind": …, "title": …, "created_at": …, …}
    {"event": "resolve", "id": …, "at": …, "by": …, "resolution": …}      a question's: "key" and "signature", too
    {"event": "went_on", "id": …, "at": …, "by": …, "resolution": …, "run": …}
    {"event": "skip", "id": …, "at": …, "by": …}
    {"event": "unskip", "id": …, "at": …, "by": …, "of": …}    of: the time of the skip that is taken back
    {"event": "agree", "id": …, "at": …, "by": …, "decision": …, …}
    {"event": "disagree", "id": …, "at": …, "by": …, "decision": …}

Lines may come in any order and twice (two clones merged): an id is one card, and it is resolved once it was resolved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from cleared.base.errors import Place, PolicyError, UsageError, WorkspaceError, restore_remedy
from cleared.base.file_source import FileSource, choose_part
from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION

SUFFIX: Final = ".jsonl"


def shard_path(queue: str, at: str) -> str:
    """The file that takes what happens at this time (``2025-01-31T…``), or its first part."""
    return f"{queue}/{at[:7]}{SUFFIX}"


def render_open(card: Card) -> str:
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
    return _json_line(data)


def render_resolve(card_id: str, at: str, by: str, resolution: str, proof: Mapping[str, str] | None = None) -> str:
    return _json_line(
        {"event": "resolve", "id": card_id, "at": at, "by": by, "resolution": resolution, **(proof or {})}
    )


def render_went_on(card_id: str, at: str, by: str, run: str) -> str:
    # "resolution": a version of the program that knows no such event takes the line for one that settles the card.
    return _json_line(
        {"event": "went_on", "id": card_id, "at": at, "by": by, "resolution": f"went on: {run}", "run": run}
    )


def render_agree(card_id: str, data: Mapping[str, Any]) -> str:
    return _json_line({"event": "agree", "id": card_id, **data})


def render_disagree(card_id: str, at: str, by: str, decision: str) -> str:
    return _json_line({"event": "disagree", "id": card_id, "at": at, "by": by, "decision": decision})


def render_skip(card_id: str, at: str, by: str) -> str:
    return _json_line({"event": "skip", "id": card_id, "at": at, "by": by})


def render_unskip(card_id: str, at: str, by: str, of: str) -> str:
    return _json_line({"event": "unskip", "id": card_id, "at": at, "by": by, "of": of})


def _json_line(data: dict[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str) + "\n"


def load_cards(source: FileSource, queue: str, *, readable_only: bool = False) -> dict[str, Card]:
    """All cards by id, oldest first; those that were skipped behind all that were not.

    Raises ``WorkspaceError`` for a damaged line. ``readable_only``: such lines are passed over, for who asks only what
    the others say.
    """
    opened: dict[str, Card] = {}
    resolved: dict[str, list[Mapping[str, Any]]] = {}
    went_on: dict[str, Mapping[str, Any]] = {}
    agreed: dict[str, dict[str, Mapping[str, Any]]] = {}
    withdrawn: set[tuple[str, str]] = set()
    skipped: dict[str, set[str]] = {}
    taken_back: dict[str, set[str]] = {}
    for path in source.list_paths(queue):
        if not path.endswith(SUFFIX) or "/" in path[len(queue) + 1 :]:
            continue
        lines = (source.read(path) or b"").splitlines()
        for number, line in enumerate(_parse_together(lines) or lines, 1):
            try:
                data = line if isinstance(line, dict) else json.loads(line)
                if data["event"] == "open":
                    card = _card_from(data)
                    if (first := opened.setdefault(card.id, card)) is not card and not _says_same(first, card):
                        opened[card.id] = replace(first, rivals=(*first.rivals, card))
                elif data["event"] == "agree":
                    agreed.setdefault(data["id"], {})[str(data["decision"])] = _agreement_data(data)
                elif data["event"] == "disagree":
                    withdrawn.add((data["id"], str(data["decision"])))
                elif data["event"] == "skip":
                    skipped.setdefault(data["id"], set()).add(str(data["at"]))
                elif data["event"] == "unskip":
                    taken_back.setdefault(data["id"], set()).add(str(data["of"]))
                else:
                    settling = {name: data[name] for name in ("at", "by", "resolution")}
                    if data["event"] == "went_on":
                        went_on.setdefault(data["id"], {**settling, "run": str(data["run"])})
                    else:
                        proof = {name: data[name] for name in ("key", "signature") if name in data}
                        resolved.setdefault(data["id"], []).append({**settling, **proof})
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                if readable_only:
                    continue
                raise WorkspaceError(
                    "a line of the queue is not readable",
                    place=Place(path, number),
                    remedy=restore_remedy(path),
                ) from None
    for card_id, decisions in agreed.items():
        if card_id in opened:
            standing = tuple(each for name, each in decisions.items() if (card_id, name) not in withdrawn)
            opened[card_id] = replace(opened[card_id], agreed=standing)
    for card_id, lines_of_card in resolved.items():
        if card_id in opened:
            opened[card_id] = _settle_card(opened[card_id], lines_of_card)
    for card_id, line in went_on.items():
        if card_id in opened:
            card = replace(opened[card_id], gone_on=line["run"])
            opened[card_id] = card if card.status == "resolved" else _settled_by(card, line)
    for card_id in skipped.keys() & opened.keys():
        last = max(skipped[card_id] - taken_back.get(card_id, set()), default=None)
        opened[card_id] = replace(opened[card_id], skipped_at=last)
    return dict(sorted(opened.items(), key=lambda item: (item[1].skipped_at or "", item[1].created_at)))


def _says_same(known: Card, card: Card) -> bool:
    """Whether one of the lines that opened ``known`` says just what ``card`` does."""
    text = render_open(card)
    return any(render_open(each) == text for each in (known, *known.rivals))


def read_opened_cards(lines: Iterable[bytes]) -> Iterator[Card]:
    """The cards that these lines of the queue open; those that cannot be read are passed over."""
    for line in lines:
        with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
            data = json.loads(line)
            if data["event"] == "open":
                yield _card_from(data)


def _settle_card(card: Card, lines: list[Mapping[str, Any]]) -> Card:
    """The card, settled by the first of these lines that can settle it, if one can."""
    if card.kind == QUESTION.name:
        card = replace(card, settlings=tuple(lines))
    can = [line for line in lines if "signature" in line] if card.has_ticket else lines
    return _settled_by(card, can[0]) if can else card


def _settled_by(card: Card, line: Mapping[str, Any]) -> Card:
    return replace(
        card, status="resolved", resolved_at=line["at"], resolved_by=line["by"], resolution=line["resolution"]
    )


def _parse_together(lines: list[bytes]) -> list[Any] | None:
    """All lines parsed at once, which takes a third of the time; None where one is damaged, so that each is parsed
    by itself."""
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        return None
    try:
        values: list[Any] = json.loads(b"[" + b",".join(lines) + b"]")
    except ValueError:
        return None
    return values if len(values) == len(lines) else None


def _card_from(data: dict[str, Any]) -> Card:
    return Card(
        str(data["id"]),
        str(data["kind"]),
        str(data["title"]),
        str(data["created_at"]),
        data.get("run_id"),
        data.get("entry_id"),
        data.get("agent"),
        data.get("details") or {},
    )


def _agreement_data(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return {k: v for k, v in data.items() if k not in ("event", "id")}


class CardDraft:
    """The committed cards, and what a run or decision changes about them. ``changed_files`` gives the new files."""

    def __init__(self, source: FileSource, queue: str, clean: Callable[[str], str] = str) -> None:
        """``clean`` takes secrets out of each line that is written; it leaves JSON JSON."""
        self.source = source
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
        self._doubtful: Mapping[str, str] | None = None
        self._known: dict[str, Card] | None = None

    @property
    def committed_cards(self) -> dict[str, Card]:
        if self._known is None:
            self._known = load_cards(self.source, self.queue)
        return self._known

    @property
    def doubtful_cards(self) -> Mapping[str, str]:
        """What ``find_doubtful`` says of the cards that are open in the commit."""
        if self._doubtful is None:
            self._doubtful = self.find_doubtful([c for c in self.committed_cards.values() if c.status == "open"])
        return self._doubtful

    def refuse_doubtful(self, card: Card) -> None:
        """Raises ``PolicyError`` for a committed card that nothing vouches for."""
        doubtful = self.doubtful_cards if card.status == "open" else self.find_doubtful([card])
        if (why := doubtful.get(card.id)) is not None:
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
            if known is not None and known.status == "open" and card_id not in self.doubtful_cards:
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

    def open_cards(self) -> list[Card]:
        committed = [c for c in self.committed_cards.values() if c.status == "open" and c.id not in self.resolved]
        return [*committed, *self.added.values()]

    def list_about(self, kind: str, record_id: str) -> list[str]:
        """The open cards of a kind about an entry: one that came back has another card than its first."""
        return [card.id for card in self.open_cards() if card.kind == kind and card.record_id == record_id]

    def changed_files(self) -> dict[str, bytes]:
        out: dict[str, bytes] = {}
        lines: dict[str, list[str]] = {}
        for card in self.added.values():
            lines.setdefault(shard_path(self.queue, card.created_at), []).append(render_open(card))
        for card_id, (at, by, resolution) in self.resolved.items():
            card, resolution = self.committed_cards[card_id], self.clean(resolution)
            proof = self.prove(card, at, by, resolution) if card.kind == QUESTION.name else {}
            lines.setdefault(shard_path(self.queue, at), []).append(render_resolve(card_id, at, by, resolution, proof))
        for card_id, (at, by, run) in self.went_on.items():
            lines.setdefault(shard_path(self.queue, at), []).append(render_went_on(card_id, at, by, run))
        for card_id, data in self.agreed.items():
            lines.setdefault(shard_path(self.queue, str(data["at"])), []).append(render_agree(card_id, data))
        for card_id, at, by, decision in self.withdrawn:
            lines.setdefault(shard_path(self.queue, at), []).append(render_disagree(card_id, at, by, decision))
        for card_id, (at, by) in self.skipped.items():
            lines.setdefault(shard_path(self.queue, at), []).append(render_skip(card_id, at, by))
        for card_id, (at, by, of) in self.brought_forward.items():
            lines.setdefault(shard_path(self.queue, at), []).append(render_unskip(card_id, at, by, of))
        known = set(self.source.list_paths(self.queue)) if lines else set()
        for month, new in lines.items():
            path = choose_part(self.source, month, known)
            out[path] = (self.source.read(path) or b"") + "".join(map(self.clean, new)).encode("utf-8")
        return out


def find_cards(cards: Iterable[Card], text: str) -> Sequence[Card]:
    """Cards whose id begins with ``text`` or whose entry it is."""
    return [c for c in cards if c.id.startswith(text) or c.record_id == text]


def find_card(cards: Mapping[str, Card], text: str) -> Card:
    """The card with this id, the beginning of one, or the id of its entry; open ones first. Raises ``UsageError``."""
    fitting = list(find_cards(cards.values(), text)) if text else []
    fitting = [c for c in fitting if c.id == text] or [c for c in fitting if c.status == "open"] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{text!r} is the beginning of {len(fitting)} cards", remedy="Write more of the id.")
    raise UsageError(f"there is no card {text!r}", remedy="cleared queue list shows them.")
