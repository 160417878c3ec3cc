"""Deciding about cards: each decision, or batch of them, is one commit with who and when.

The terminal, the page and the command line call these; nothing else settles a card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cleared.cards.model import Card
from cleared.cards.store import find
from cleared.clock import iso
from cleared.errors import Place, PolicyError, UsageError
from cleared.gate.surface import refuse_in_job
from cleared.ledger.corrections import leg
from cleared.ledger.entry import Entry, Leg
from cleared.ledger.posting import post
from cleared.primitives.journal import hold
from cleared.review.entries import Correction, correct, line_of, lines_of, others, standing, withdraw
from cleared.review.resume import unfinished
from cleared.runs.desk import Decided, Desk, decide
from cleared.runs.host import Host
from cleared.schema import money

DRAWS: Final = 3200
OUTCOMES: Final = ("duplicate", "personal", "suspense")
ANSWERS: Final = {
    "line": {"ignore": "The line is set aside for good."},
    "near_match": {"different": "Both rows are right.", "seen": "Seen."},
    "revision": {"seen": "Seen."},
    "balance_gap": {"seen": "Seen."},
    "duplicate_file": {"seen": "Seen."},
    "bad_file": {"seen": "Seen; the file stays where it is."},
    "failed_run": {"seen": "Seen; it is not tried again."},
}
"""What can be answered to each kind of card."""
UNDOABLE: Final = "Cards"
"""The trailer of a decision that ``undo`` can take back: the cards it settled."""


@dataclass(slots=True)
class Done:
    """What a decision did. ``siblings``: open cards that look like the corrected one."""

    commit: str = ""
    cards: list[str] = field(default_factory=list)
    entries: list[str] = field(default_factory=list)
    """Entries that were decided about."""
    posted: list[str] = field(default_factory=list)
    siblings: list[str] = field(default_factory=list)
    asked_by_run: bool = False
    """Whether a run waited for this answer."""
    case: str | None = None
    """The regression case that remembers a correction."""
    said: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Matter:
    """What one id means: a card, an entry, or an entry with its card."""

    card: Card | None
    entry: Entry | None

    @property
    def name(self) -> str:
        return self.entry.entry_id if self.entry else self.card.id if self.card else ""


def matters(desk: Desk, ids: Sequence[str]) -> list[Matter]:
    """The cards and entries that the ids name. Raises ``UsageError`` for an unknown or ambiguous one, ``PolicyError``
    for a card that somebody has settled already."""
    if not ids:
        raise UsageError("name at least one card", remedy="cleared queue list shows them.")
    found: list[Matter] = []
    for text in ids:
        matter = _matter(desk, text)
        if matter.name not in [m.name for m in found]:
            found.append(matter)
    return found


def _matter(desk: Desk, text: str) -> Matter:
    context = desk.context
    known = context.cards.known.values()
    cards = [c for c in find(known, text) if c.id == text] or list(find(known, text)) if text else []
    open_ = [c for c in cards if c.status == "open"]
    if len(open_) > 1:
        raise UsageError(f"{text!r} is the beginning of {len(open_)} cards", remedy="Write more of the id.")
    if open_:
        card = open_[0]
        return Matter(card, context.books.entry(card.entry_id) if card.entry_id else None)
    entry = context.books.entry(text)
    if cards and (entry is None or cards[-1].kind != "entry"):
        card = cards[-1]
        raise PolicyError(
            f"{card.id} is settled: {card.resolution}, by {card.resolved_by} at {card.resolved_at}",
            place=Place(field="card"), remedy="Look at it: cleared queue show. To take it back: cleared queue undo.",
        )  # fmt: skip
    if entry is None:
        raise UsageError(f"there is no card or entry {text!r}", remedy="cleared queue list shows them.")
    return Matter(None, entry)


def confirm(host: Host, ids: Sequence[str]) -> Done:
    """The entries are right: ``user-confirmed``."""

    def act(desk: Desk, done: Done) -> str:
        names = []
        for matter in matters(desk, ids):
            entry = _entry(matter)
            entry = standing(desk.context, entry.entry_id)
            if entry.status in ("user-confirmed", "user-corrected"):
                raise PolicyError(f"{entry.entry_id} is {entry.status} already", remedy="Nothing needs doing.")
            desk.context.books.set_status(entry.entry_id, "user-confirmed")
            desk.context.note("confirm", entry.description[:200], entry.entry_id)
            _settle(desk, matter, "confirmed", done)
            names.append(f"{entry.entry_id} {entry.description}")
        return f"confirm: {names[0]}" if len(names) == 1 else f"confirm: {len(names)} entries"

    return _decide(host, "queue approve", act)


Remember = Callable[[Desk, dict[str, tuple[Leg, ...]], Done], dict[str, bytes | None]]
"""Gives the files of the regression cases that remember corrections: entry id → the legs it should have had."""


def correct_entries(host: Host, ids: Sequence[str], correction: Correction, remember: Remember | None = None) -> Done:
    """The entries should have been otherwise; a held bank line is posted as said."""

    def act(desk: Desk, done: Done) -> tuple[str, dict[str, bytes | None]]:
        lessons: dict[str, tuple[Leg, ...]] = {}
        names = []
        found = matters(desk, ids)
        for matter in found:
            if matter.entry is None:
                names.append(_post_line(desk, matter, correction, done))
                continue
            entry = matter.entry
            made = correct(desk.context, entry.entry_id, correction, desk.by)
            done.posted += [e.entry_id for e in made.posted]
            desk.context.note("correct", entry.description[:200], entry.entry_id)
            _settle(desk, matter, f"corrected: {', '.join(done.posted)}"[:300], done)
            if entry.reference and made.reclassified:
                lessons[entry.entry_id] = made.legs
            names.append(f"{entry.entry_id} {entry.description}")
        done.siblings = _siblings(desk, found)
        files = remember(desk, lessons, done) if remember is not None and lessons else {}
        said = f"correct: {names[0]}" if len(names) == 1 else f"correct: {len(names)} entries"
        return said, files

    return _decide(host, "queue correct", act)


def reject(host: Host, ids: Sequence[str], reason: str, outcome: str | None = None, of: str | None = None) -> Done:
    """The entries should not stand. Of one that posts a bank line an ``outcome`` is asked: ``duplicate`` (of entry
    ``of``), ``personal`` (a draw), ``suspense`` (the line waits for review); any other is voided."""
    if not reason.strip():
        raise UsageError("rejecting needs a reason", remedy='Pass --reason "…".')
    if outcome is not None and outcome not in OUTCOMES:
        raise UsageError(f"{outcome!r} is no outcome", remedy=f"One of {', '.join(OUTCOMES)}.")
    said = " ".join(reason.split())[:500]

    def act(desk: Desk, done: Done) -> str:
        names = []
        for matter in matters(desk, ids):
            if matter.card is not None and matter.card.kind == "question":  # its run does not go on
                desk.context.note("reject", f"{matter.card.id} {said}")
                _settle(desk, matter, f"rejected: {said}"[:300], done)
                names.append(f"{matter.card.title}: {said}")
                continue
            entry = _entry(matter)
            _reject_one(desk, matter, standing(desk.context, entry.entry_id), said, outcome, of, done)
            names.append(f"{entry.entry_id}: {said}")
        return f"void: {names[0]}" if len(names) == 1 else f"void: {len(names)} entries: {said}"

    return _decide(host, "queue reject", act)


def _reject_one(
    desk: Desk, matter: Matter, entry: Entry, reason: str, outcome: str | None, of: str | None, done: Done
) -> None:
    context = desk.context
    line = line_of(context, entry)
    if line is not None and outcome is None:
        raise UsageError(
            f"{entry.entry_id} posts a bank line; what is that line then?",
            remedy="--outcome duplicate --of ENTRY, --outcome personal (a draw), or --outcome suspense (it waits).",
        )
    if outcome == "personal":
        done.posted += [e.entry_id for e in correct(context, entry.entry_id, Correction(DRAWS, note=reason),
                                                    desk.by).posted]  # fmt: skip
        context.note("reject", f"personal: {reason}", entry.entry_id)
        _settle(desk, matter, f"personal: {reason}", done)
        return
    if outcome == "duplicate":
        twin = context.books.entry(of or "")
        if twin is None or twin.entry_id == entry.entry_id or twin.status == "voided":
            raise UsageError("a duplicate of which entry?", remedy="--of ENTRY, one that stands.")
        reason = f"duplicate of {twin.entry_id}: {reason}"
    done.posted += [e.entry_id for e in withdraw(context, entry, reason)]
    if line is not None:
        if outcome == "duplicate":
            context.bank.set_aside(line.line_id, "ignored", reason)
        else:
            context.bank.set_aside(line.line_id, "held", reason)
            hold(context, line, f"held in suspense: {reason}", entry.entry_id)
    context.note("reject", reason, entry.entry_id)
    _settle(desk, matter, f"rejected: {reason}"[:300], done)


def choices_of(card: Card) -> dict[str, str]:
    """What can be answered to a card: choice → what it means."""
    if card.kind == "question":
        return {str(c): "" for c in card.details.get("choices", ())}
    return dict(ANSWERS.get(card.kind, {}))


def answer(host: Host, text: str, choice: str) -> Done:
    """Answer a card that is not about an entry. Raises ``UsageError`` for a choice it does not have."""

    def act(desk: Desk, done: Done) -> str | None:
        if stopped := _stopped(host, desk, text, choice):
            done.cards, done.asked_by_run = [stopped.id], True
            return None
        [matter] = matters(desk, [text])
        card = matter.card
        choices = choices_of(card) if card is not None else {}
        if card is None or choice not in choices:
            known = ", ".join(choices) or "approve, correct or reject"
            raise UsageError(f"{choice!r} is no answer to {text}", remedy=f"It takes: {known}.")
        if card.kind == "line":
            desk.context.bank.set_aside(str(card.details["line"]), "ignored", f"{choice}, by {desk.by}")
        done.asked_by_run = card.kind == "question"
        desk.context.note("answer", f"{card.id} {choice}")
        _settle(desk, matter, choice, done)
        return f"confirm: {card.title}: {choice}"

    return _decide(host, "queue answer", act)


def _stopped(host: Host, desk: Desk, text: str, choice: str) -> Card | None:
    """The question that has this answer already, but whose run was stopped before it could go on."""
    known = desk.context.cards.known
    found = list(find(known.values(), text)) if text else []
    if len(found) == 1 and found[0].resolution == choice and unfinished(host, known, found[0]):
        return found[0]
    return None


def _post_line(desk: Desk, matter: Matter, correction: Correction, done: Done) -> str:
    """A held line becomes an entry, as the person says."""
    context, card = desk.context, matter.card
    if card is None or card.kind != "line":
        raise UsageError(
            f"{matter.name} is not about an entry or a bank line", remedy="cleared queue answer ID CHOICE."
        )
    found = context.bank.find(str(card.details["line"]))
    if found is None:
        raise UsageError(f"the bank line of {card.id} is not known any more", remedy="cleared journal check.")
    bank, line = found
    if line.state == "pending":
        raise PolicyError("the bank has not posted this line yet", remedy="Wait for it.")
    account = context.ledger_accounts.get(bank)
    if account is None:
        raise UsageError(f"the bank account {bank!r} is not in config.yaml any more", remedy="Put it back.")
    left = money.total([line.amount, -context.bank.posted(line.line_id)])
    lines = lines_of(context, correction)
    if correction.account is not None:
        lines = ((correction.account, -left),)
    if not lines:
        raise UsageError("which account is it?", remedy="--account N, or --line ACCOUNT=AMOUNT for each.")
    legs = [leg(account, left), *(leg(a, v) for a, v in lines)]
    day = context.books.periods.first_open(correction.day or line.posted_date)
    entry, _ = post(
        context.books, context.bank, context.ledger_accounts, day, line.description, legs, reference=line.line_id,
        status="user-confirmed", counterparty=correction.counterparty or "", confidence="1.00",
        evidence=f"posted by {desk.by}", tags=";".join(correction.tags or ()), notes=correction.note or "",
    )  # fmt: skip
    done.posted.append(entry.entry_id)
    context.note("correct", f"posted {line.description}"[:200], entry.entry_id)
    _settle(desk, matter, f"posted as {entry.entry_id}", done)
    return f"{entry.entry_id} {entry.description}"


def _siblings(desk: Desk, corrected: Sequence[Matter]) -> list[str]:
    """Open entry cards with the same text or counterparty, on the same accounts, as one that was corrected."""
    context = desk.context
    wanted = {
        (key, tuple(x.account_id for x in others(context, m.entry.legs)))
        for m in corrected if m.entry is not None
        for key in (m.entry.counterparty, m.entry.description) if key
    }  # fmt: skip
    found = []
    for card in context.cards.open_cards():
        entry = context.books.entry(card.entry_id) if card.kind == "entry" and card.entry_id else None
        if entry is not None and entry.entry_id not in {m.name for m in corrected}:
            legs = tuple(x.account_id for x in others(context, entry.legs))
            if any((key, legs) in wanted for key in (entry.counterparty, entry.description) if key):
                found.append(card.id)
    return found


def _entry(matter: Matter) -> Entry:
    if matter.entry is None:
        card = matter.card
        kind = card.kind if card else ""
        remedy = "cleared agent approve P… decides about proposals." if kind == "proposal" else (
            f"cleared queue answer {matter.name} {'|'.join(ANSWERS.get(kind, {'seen': ''}))}."
        )  # fmt: skip
        raise UsageError(f"{matter.name} is not about an entry ({kind})", remedy=remedy)
    return matter.entry


def _settle(desk: Desk, matter: Matter, resolution: str, done: Done) -> None:
    if matter.card is not None:
        desk.context.cards.resolve(matter.card.id, iso(desk.context.now), desk.by, resolution)
        done.cards.append(matter.card.id)
    if matter.entry is not None:
        done.entries.append(matter.entry.entry_id)


def _decide(
    host: Host, what: str, act: Callable[[Desk, Done], str | tuple[str, dict[str, bytes | None]] | None]
) -> Done:  # fmt: skip
    refuse_in_job()
    done = Done()

    def whole(desk: Desk) -> Decided | None:
        said = act(desk, done)
        if said is None:
            return None
        message, files = said if isinstance(said, tuple) else (said, {})
        marks = ((UNDOABLE, " ".join([*done.cards, *done.entries])),)
        return Decided(" ".join(message.split())[:200], files, marks)

    done.commit = decide(host, what, whole) or ""
    return done
