"""What a reviewer sees: the queue as rows, one card in full, its group, the accounts that fit. Knows no terminal.

``look`` reads everything once; all else is computed from that picture, so that moving from card to card is instant
and shows one state of the books. Texts are as they came from the bank or a script: whoever shows them escapes them.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from cleared.cards import age, queue_files
from cleared.cards.card import Card
from cleared.cards.kinds import ENTRY, FAILED_RUN, LINE, PROPOSAL, QUESTION, kind_named
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.changes.session import open_books
from cleared.errors import ClearedError, UsageError
from cleared.ledger.bank_lines import BankLine, ImportRecord, normalise_description
from cleared.ledger.chart import Account, Chart
from cleared.ledger.corrections import CORRECTS
from cleared.ledger.entry import ZERO, Entry, Leg
from cleared.review.answers import answer_choices
from cleared.runs.question_tickets import Questions
from cleared.schema import money
from cleared.vcs import Snapshot
from cleared.workspace.safe_names import resolve_inside

SIMILAR: Final = 5
SHOWN_BYTES: Final = 8 * 1024 * 1024
_WORD: Final = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A card in the list."""

    id: str
    kind: str
    date: str
    amount: str
    text: str
    entry_id: str | None


@dataclass(frozen=True, slots=True)
class CardSection:
    """A part of a card: its heading, and its lines; ``rows`` are columns instead."""

    title: str
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class CardChoice:
    """Something that can be done about a card. ``verb`` is what ``cleared.tui.key_actions`` knows."""

    verb: str
    """confirm | correct | reject | agree | answer | approve | decline | retry"""
    label: str
    value: str = ""
    """The answer, where the verb is answer."""


@dataclass(frozen=True, slots=True)
class CardView:
    """One card in full."""

    id: str
    kind: str
    heading: str
    """What sort of card it is, in words."""
    title: str
    amount: str
    sections: tuple[CardSection, ...]
    choices: tuple[CardChoice, ...]
    group: int
    """How many open cards one decision could cover, this one included."""
    has_code: bool
    has_file: bool


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Open cards of one vendor on the same accounts: what one decision would cover."""

    vendor: str
    accounts: str
    kind: str
    rows: tuple[QueueRow, ...]
    total: str

    @property
    def ids(self) -> list[str]:
        return [r.id for r in self.rows]


@dataclass(frozen=True, slots=True)
class AccountMatch:
    """An account that fits what was typed, and why it is likely."""

    id: int
    name: str
    type: str
    why: str


@dataclass(frozen=True, slots=True)
class SplitInput:
    """Several accounts typed: ``left`` is what is not placed yet, ``problem`` why it cannot be taken."""

    lines: tuple[tuple[int, Decimal], ...]
    left: Decimal
    problem: str


@dataclass(frozen=True, slots=True)
class FileView:
    """A file to look at; ``line`` is the one that matters, from 1."""

    name: str
    lines: tuple[str, ...]
    line: int | None = None
    note: str = ""


@dataclass(slots=True)
class QueueSnapshot:
    """One state of the queue and the books."""

    head: str
    name: str
    cards: dict[str, Card]
    """The open ones, oldest first."""
    overdue: Mapping[str, int]
    """Cards that have waited for ``review.remind_after`` → whole days."""
    held: Mapping[str, str]
    """Questions that cannot be answered as things are → why, and what to do."""
    entries: dict[str, Entry]
    chart: Chart
    banks: Mapping[str, int]
    lines: dict[str, tuple[str, BankLine]]
    posted: Mapping[str, Decimal]
    imports: Mapping[str, ImportRecord]
    _corrected: dict[str, tuple[Leg, ...]] | None = None
    _by_vendor: dict[str, list[Entry]] | None = None
    _groups: dict[tuple[Any, ...], list[str]] | None = None
    _frequency: Counter[int] = field(default_factory=Counter)

    @property
    def rows(self) -> list[QueueRow]:
        return [queue_row(self, card) for card in self.cards.values()]


def read_queue(host: Host) -> QueueSnapshot:
    """The last commit's queue and books."""
    with host.open_for_reading() as repo:
        head = repo.read_head()
        snapshot = Snapshot(repo, head)
        source = CommittedSource(snapshot)
        books, bank = open_books(host, source)
        cards = {c.id: c for c in queue_files.load_cards(source, host.layout.queue_dir).values() if c.status == "open"}
        wanted = {str(c.details["line"]) for c in cards.values() if c.kind == LINE.name and "line" in c.details}
        entries = {e.entry_id: e for e in books.iter_entries()}
        wanted |= {e.reference for c in cards.values() if (e := entries.get(c.entry_id or "")) and e.reference}
        lines = {line.line_id: (account, line) for account in bank.list_accounts() for line in bank.iter_account_lines(account)
                 if line.line_id in wanted}  # fmt: skip
        return QueueSnapshot(
            head, host.config.business.name, cards, _overdue_days(host, cards.values()),
            Questions(host, repo, snapshot, cards).list_held(), entries, books.chart,
            dict(host.ledger_accounts), lines,
            {ref: bank.posted_amount(ref) for ref in wanted},
            {r.file_sha256: r for r in reversed(bank.imports)},  # a file that came again: the first time counts
        )  # fmt: skip


def _overdue_days(host: Host, cards: Iterable[Card]) -> dict[str, int]:
    now = host.clock.now()
    late = age.overdue_cards(cards, now, host.config.review.remind_after)
    return {card.id: (age.waiting_time(card, now) or timedelta()).days for card in late}


# -- one card ---------------------------------------------------------------------------------------------------------


def queue_row(picture: QueueSnapshot, card: Card) -> QueueRow:
    entry, line = entry_of(picture, card), line_of(picture, card)
    if entry is not None:
        amount = line[1].amount if line else entry.amount
        return QueueRow(
            card.id, card.kind, entry.date.isoformat(), money.format_amount(amount), entry.description, entry.entry_id
        )
    if line is not None:
        return QueueRow(card.id, card.kind, line[1].posted_date.isoformat(), money.format_amount(line[1].amount),
                   line[1].description, None)  # fmt: skip
    return QueueRow(card.id, card.kind, card.created_at[:10], "", card.title, card.entry_id)


def entry_of(picture: QueueSnapshot, card: Card) -> Entry | None:
    return picture.entries.get(card.entry_id) if card.entry_id else None


def line_of(picture: QueueSnapshot, card: Card) -> tuple[str, BankLine] | None:
    """The bank line that the card is about, and its bank account's name."""
    entry = entry_of(picture, card)
    reference = entry.reference if entry is not None else str(card.details.get("line", ""))
    return picture.lines.get(reference)


def posts_line(picture: QueueSnapshot, card: Card) -> bool:
    """Whether rejecting it leaves a bank line of which an outcome is asked."""
    entry = entry_of(picture, card)
    return entry is not None and bool(entry.reference) and picture.posted.get(entry.reference, ZERO) != 0


def show_card(picture: QueueSnapshot, identity: str) -> CardView:
    """A card in full. Raises ``UsageError`` where it is not open (any more)."""
    card = picture.cards.get(identity)
    if card is None:
        raise UsageError(f"there is no open card {identity!r}", remedy="cleared queue list shows them.")
    listed = queue_row(picture, card)
    heading = kind_named(card.kind).title
    covered = card_group(picture, identity)
    return CardView(
        card.id, card.kind, heading, listed.text, listed.amount, tuple(_card_sections(picture, card)),
        card_choices(card, held=identity in picture.held),
        len(covered.rows) if covered else 1, card.kind == PROPOSAL.name or card.entry_id is not None,
        "file" in card.details or line_of(picture, card) is not None,
    )  # fmt: skip


def card_choices(card: Card, *, held: bool = False) -> tuple[CardChoice, ...]:
    """What can be done about this kind of card; the first is what ``a`` does."""
    if held:
        return (CardChoice("retry", "Have it asked again"),)
    actions = {verb: CardChoice(verb, label) for verb, label in kind_named(card.kind).actions.items()}
    retry = [actions.pop("retry")] if "retry" in actions else []
    answers = [CardChoice("answer", f"{k}: {v}" if v else k, k) for k, v in answer_choices(card).items()]
    agree = [CardChoice("agree", f"Agree with {each.get('by')}") for each in card.agreed[-1:] if "correct" in actions]
    return (*actions.values(), *answers, *agree, *retry)


def _card_sections(picture: QueueSnapshot, card: Card) -> Iterable[CardSection]:
    details = card.details
    for each in card.agreed[-1:]:
        yield CardSection("The first of two", (f"{each.get('by')} decided: {each.get('says')}", f"at {each.get('at')}"))
    if card.kind in (ENTRY.name, LINE.name):
        yield from _bookkeeping_sections(picture, card)
    elif card.kind == PROPOSAL.name:
        yield CardSection("What it would change", tuple(str(x) for x in details.get("says", ())))
    elif card.kind == FAILED_RUN.name:
        yield CardSection("Cause", tuple(str(details.get("cause", card.title)).splitlines()))
        yield CardSection("Not done", (str(details.get("not_done", "")),))
        yield CardSection("To try again", (str(details.get("retry", "")),))
    elif card.id in picture.held:
        yield CardSection("It asks", (str(details.get("question", card.title)),))
        yield CardSection("It cannot be answered", (picture.held[card.id],))
    elif card.kind == QUESTION.name:
        yield CardSection("It asks", (str(details.get("question", card.title)),))
        for choice in details.get("choices", ()):
            yield CardSection(f"If you answer {choice}", tuple(_answer_preview(details.get("futures", {}).get(choice))))
    else:
        yield from _detail_sections(details)
    if card.id in picture.overdue:
        days = picture.overdue[card.id]
        yield CardSection(
            "Waiting", (f"for {days} day{'' if days == 1 else 's'}" if days else f"since {card.created_at}",)
        )


def _bookkeeping_sections(picture: QueueSnapshot, card: Card) -> Iterable[CardSection]:
    """What the bank said, what was made of it and how surely, what was done with its like."""
    entry, found = entry_of(picture, card), line_of(picture, card)
    if found is not None:
        account, line = found
        source = picture.imports.get(line.file_sha256)
        where = f"{source.name}, row {line.row}" if source else f"row {line.row}"
        yield CardSection("The bank said", (
            line.description, f"{line.posted_date}   {money.format_amount(line.amount)} {line.currency}   {account}   ({where})",
        ))  # fmt: skip
    if entry is not None:
        lines = [
            f"{account_label(picture, x.account_id)}   {money.format_amount(x.amount)}"
            for x in changeable_legs(picture, entry)
        ]
        if not lines:
            lines = [
                f"{account_label(picture, x.account_id)}   {money.format_amount(x.amount)}"
                for x in effective_legs(picture, entry)
            ]
        if entry.counterparty:
            lines.append(f"Vendor: {entry.counterparty}")
        if entry.status != "pending-review":
            lines.append(f"Status now: {entry.status}")
        if entry.notes:
            lines.append(f"Note: {entry.notes}")
        yield CardSection(f"{card.agent or 'It was'} decided" if card.agent else "It was booked as", tuple(lines))
        asked = str(card.details.get("description", ""))
        why = [f"{confidence_text(entry.confidence)}: {entry.evidence or 'no evidence given'}"]
        if asked and asked not in (entry.description, entry.evidence):
            why.append(asked)
        yield CardSection("How sure", tuple(why))
    elif found is not None:
        yield CardSection("Why it waits", (card.title.split(": ", 1)[-1],))
    else:
        yield from _detail_sections(card.details)
    past = similar_entries(picture, card)
    if past:
        yield CardSection("Similar before", rows=tuple(
            (e.date.isoformat(), money.format_amount(e.amount), _account_summary(picture, e), e.status, e.description) for e in past
        ))  # fmt: skip
    else:
        yield CardSection("Similar before", ("Nothing like it yet.",))


def confidence_text(confidence: str) -> str:
    """``0.60`` → ``60 % sure``, in words that need no colour."""
    try:
        percent = (Decimal(confidence) * 100).quantize(Decimal(1))
    except InvalidOperation:
        return "Not said how sure"
    return f"{percent} % sure" if percent else "Not sure at all"


def _answer_preview(found: Any) -> list[str]:
    """What a rehearsal of an answer would have done."""
    if not isinstance(found, Mapping):
        return ["Not rehearsed."]
    if "error" in found:
        return [f"It would fail: {found['error']}"]
    said = [f"{e.get('date')}  {e.get('amount')}  {e.get('description')}" for e in found.get("entries", ())[:5]]
    more = len(found.get("entries", ())) - len(said)
    said += [f"… and {more} more entries"] if more > 0 else []
    said += [f"Asks: {title}" for title in found.get("cards", ())[:3]]
    return said or ["Nothing would be posted."]


def _detail_sections(details: Mapping[str, Any]) -> Iterable[CardSection]:
    """Whatever a card holds, as fields and tables."""
    fields = []
    for key, value in details.items():
        if key.startswith("_"):  # for the program
            continue
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            columns = list(dict.fromkeys(k for each in value[:50] for k in each if k != "line"))
            rows = [tuple(columns), *(tuple(str(each.get(c, "")) for c in columns) for each in value[:50])]
            yield CardSection(key.replace("_", " ").capitalize(), rows=tuple(rows))
        elif value not in ("", None, []):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            fields.append(f"{key.replace('_', ' ')}: {shown}")
    if fields:
        yield CardSection("Details", tuple(fields))


def account_label(picture: QueueSnapshot, account: int) -> str:
    found = picture.chart.find_account(account)
    return f"{account} {found.account_name}" if found else str(account)


def _account_summary(picture: QueueSnapshot, entry: Entry) -> str:
    legs = changeable_legs(picture, entry) or list(effective_legs(picture, entry))
    names = [account_label(picture, x.account_id) for x in legs]
    return names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1} more" if names else ""


def effective_legs(picture: QueueSnapshot, entry: Entry) -> tuple[Leg, ...]:
    """The entry's legs with its standing corrections."""
    if picture._corrected is None:
        found: dict[str, list[Entry]] = defaultdict(list)
        for each in picture.entries.values():
            of = _corrected_entry_id(picture, each)
            if of:
                found[of].append(each)
        picture._corrected = {}
        for name, corrections in found.items():
            totals: dict[int, Decimal] = {}
            for x in (x for e in (picture.entries[name], *corrections) for x in e.legs):
                totals[x.account_id] = totals.get(x.account_id, ZERO) + x.amount
            picture._corrected[name] = tuple(
                Leg(a, max(v, ZERO), max(-v, ZERO)) for a, v in totals.items() if v
            )  # fmt: skip
    return picture._corrected.get(entry.entry_id, entry.legs)


def _corrected_entry_id(picture: QueueSnapshot, entry: Entry) -> str:
    """The standing entry that this one only amends."""
    if entry.status == "voided" or CORRECTS not in entry.tags:
        return ""
    for tag in entry.tags.split(";"):
        of = picture.entries.get(tag.removeprefix(CORRECTS)) if tag.startswith(CORRECTS) else None
        if of is not None and of.status != "voided":
            return of.entry_id
    return ""


def changeable_legs(picture: QueueSnapshot, entry: Entry) -> list[Leg]:
    """The legs that are not of a bank."""
    banks = set(picture.banks.values())
    return [x for x in effective_legs(picture, entry) if x.account_id not in banks]


# -- vendors and groups -----------------------------------------------------------------------------------------------


def vendor_key(counterparty: str, description: str) -> str:
    """What entries of one vendor have in common: its name, else the first words of the bank's text without digits."""
    if counterparty.strip():
        return normalise_description(counterparty)
    text = normalise_description(description)
    return " ".join(_WORD.findall(text)[:3]) or text


def _entries_by_vendor(picture: QueueSnapshot) -> dict[str, list[Entry]]:
    if picture._by_vendor is None:
        picture._by_vendor = defaultdict(list)
        for entry in picture.entries.values():
            if entry.status == "voided" or _corrected_entry_id(picture, entry):
                continue
            for key in {vendor_key(entry.counterparty, entry.description), vendor_key("", entry.description)}:
                picture._by_vendor[key].append(entry)
            if entry.status != "pending-review":
                picture._frequency.update(x.account_id for x in changeable_legs(picture, entry))
    return picture._by_vendor


def _same_vendor_entries(picture: QueueSnapshot, card: Card) -> list[Entry]:
    entry, line = entry_of(picture, card), line_of(picture, card)
    description = entry.description if entry is not None else line[1].description if line else ""
    if not description:
        return []
    keys = {vendor_key(entry.counterparty if entry is not None else "", description), vendor_key("", description)}
    found = {e.entry_id: e for key in keys for e in _entries_by_vendor(picture).get(key, ())}
    found.pop(card.entry_id or "", None)
    return sorted(found.values(), key=lambda e: (e.date, e.month, e.number), reverse=True)


def similar_entries(picture: QueueSnapshot, card: Card) -> list[Entry]:
    """The newest entries of the same vendor or text from before this one; none that came later."""
    entry, line = entry_of(picture, card), line_of(picture, card)
    if entry is not None:
        limit = (entry.date, entry.month, entry.number)
        return [e for e in _same_vendor_entries(picture, card) if (e.date, e.month, e.number) < limit][:SIMILAR]
    return [e for e in _same_vendor_entries(picture, card) if line is None or e.date <= line[1].posted_date][:SIMILAR]


def _group_key(picture: QueueSnapshot, card: Card) -> tuple[Any, ...] | None:
    entry, line = entry_of(picture, card), line_of(picture, card)
    if card.kind == ENTRY.name and entry is not None:
        accounts = tuple(sorted(x.account_id for x in changeable_legs(picture, entry)))
        return "entry", vendor_key(entry.counterparty, entry.description), accounts
    if card.kind == LINE.name and line is not None:
        return "line", vendor_key("", line[1].description), (line[0],)
    return None


def card_group(picture: QueueSnapshot, identity: str) -> CardGroup | None:
    """The open cards that one decision could cover; None where the kind of card has no groups."""
    card = picture.cards.get(identity)
    key = _group_key(picture, card) if card is not None else None
    if card is None or key is None:
        return None
    if picture._groups is None:
        picture._groups = defaultdict(list)
        for each in picture.cards.values():
            found = _group_key(picture, each)
            if found is not None:
                picture._groups[found].append(each.id)
    rows = tuple(queue_row(picture, picture.cards[i]) for i in picture._groups[key] if i in picture.cards)
    accounts = ", ".join(account_label(picture, a) for a in key[2]) if key[0] == "entry" else str(key[2][0])
    entry = entry_of(picture, card)
    vendor = (entry.counterparty if entry is not None else "") or str(key[1])
    total = money.format_amount(money.total([Decimal(r.amount) for r in rows]))
    return CardGroup(vendor, accounts, str(key[0]), rows, total)


def possible_duplicates(picture: QueueSnapshot, card: Card) -> list[Entry]:
    """Entries that this one may be a duplicate of: the same amount first, the nearest day first."""
    entry = entry_of(picture, card)
    if entry is None:
        return []
    same = [e for e in picture.entries.values() if e.amount == entry.amount and e.status != "voided"
            and e.entry_id != entry.entry_id and not _corrected_entry_id(picture, e)]  # fmt: skip
    return sorted(same, key=lambda e: abs((e.date - entry.date).days))[:8]


# -- accounts ---------------------------------------------------------------------------------------------------------


def match_accounts(picture: QueueSnapshot, identity: str, typed: str = "", limit: int = 50) -> list[AccountMatch]:
    """Accounts whose number begins with, or whose name holds, what was typed; most likely first: those used before
    for this vendor, then the most used. The one it has now comes last."""
    card = picture.cards.get(identity)
    used: Counter[int] = Counter()
    now: set[int] = set()
    own: set[int] = set()
    if card is not None:
        for each in _same_vendor_entries(picture, card):
            if each.status != "pending-review":
                used.update(x.account_id for x in changeable_legs(picture, each))
        entry, line = entry_of(picture, card), line_of(picture, card)
        if entry is not None:
            now = {x.account_id for x in changeable_legs(picture, entry)}
            own = {x.account_id for x in entry.legs} - now
        if line is not None and line[0] in picture.banks:
            own |= {picture.banks[line[0]]}
    _entries_by_vendor(picture)
    needle = " ".join(typed.casefold().split())
    types = {kept.account_type for n in now if (kept := picture.chart.find_account(n)) is not None}
    ranked = []
    for account in picture.chart.accounts.values():
        match = _match_rank(account, needle)
        open_ = account.status != "closed" and account.account_id not in picture.chart.parents
        if match is None or not open_ or account.account_id in own:
            continue
        number = account.account_id
        why = _match_reason(used[number], number in now)
        ranked.append(
            ((str(number) != needle, number in now, -used[number], -picture._frequency[number], match,
              account.account_type not in types, number),
             AccountMatch(number, account.account_name, account.account_type, why))
        )  # fmt: skip
    return [found for _, found in sorted(ranked, key=lambda pair: pair[0])[:limit]]


def _match_reason(used: int, now: bool) -> str:
    if now:
        return "as it is now"
    return f"used {used}× for this vendor" if used else ""


def _match_rank(account: Account, needle: str) -> int | None:
    """How well an account fits: 0 is best, None is not at all."""
    name = account.account_name.casefold()
    if not needle or str(account.account_id).startswith(needle) or name.startswith(needle):
        return 0
    if f" {needle}" in f" {name}":
        return 1
    return 2 if needle in name or needle in str(account.account_id) else None


def amount_to_split(picture: QueueSnapshot, identity: str) -> Decimal:
    """What the legs of a split must add up to; positive is a debit."""
    card = picture.cards.get(identity)
    entry = entry_of(picture, card) if card is not None else None
    if card is not None and entry is not None:
        return money.total([x.amount for x in changeable_legs(picture, entry)])
    line = line_of(picture, card) if card is not None else None
    return -(line[1].amount - picture.posted.get(line[1].line_id, ZERO)) if line is not None else ZERO


def parse_split(picture: QueueSnapshot, identity: str, typed: str) -> SplitInput:
    """``5020=30 5060=15.10``; the last amount may be left out (``5060=``): it takes the rest."""
    whole = amount_to_split(picture, identity)
    lines: list[tuple[int, Decimal]] = []
    words = typed.replace(",", " ").replace(";", " ").split()
    for at, word in enumerate(words):
        number, _, amount = word.partition("=")
        left = money.total([whole, *(-v for _, v in lines)])
        try:
            account = int(number)
            value = Decimal(amount) if amount else left
        except (ValueError, InvalidOperation):
            return SplitInput(tuple(lines), left, f"{word} is not ACCOUNT=AMOUNT")
        if picture.chart.find_account(account) is None:
            return SplitInput(tuple(lines), left, f"there is no account {account}")
        if not amount and at < len(words) - 1:
            return SplitInput(tuple(lines), left, f"how much for {account}?")
        if not value.is_finite() or not value:
            return SplitInput(
                tuple(lines), left, f"nothing is left for {account}" if not amount else f"{word}: no amount"
            )
        lines.append((account, value))
    left = money.total([whole, *(-v for _, v in lines)])
    return SplitInput(tuple(lines), left, f"{money.format_amount(left)} is not placed yet" if left else "")


# -- files ------------------------------------------------------------------------------------------------------------


def bank_file(host: Host, picture: QueueSnapshot, identity: str) -> FileView:
    """The bank file of a card, at its row. Raises ``UsageError`` where there is none, or it is not here."""
    card = picture.cards.get(identity)
    found = line_of(picture, card) if card is not None else None
    if card is None or (found is None and "file" not in card.details):
        raise UsageError("this card is not about a bank file", remedy="Entries and files have one.")
    rows = card.details.get("rows")
    first = rows[0].get("row") if isinstance(rows, list) and rows and isinstance(rows[0], dict) else None
    line = found[1].row if found is not None else card.details.get("row", first)
    if found is not None:
        record = picture.imports.get(found[1].file_sha256)
        name = record.name if record else ""
        data = _read_by_digest(host, found[1].file_sha256, name)
    else:
        name = str(card.details["file"])
        data = _read_import_file(host, name) or _read_import_file(host, f"{host.layout.processed_dir}/{name}")
    if data is None:
        raise UsageError(f"{name or 'the file'} is not on this machine", remedy="Look where it was imported.")
    return FileView(name, _decode_lines(data), line if isinstance(line, int) else None)


def _read_by_digest(host: Host, digest: str, name: str) -> bytes | None:
    """A processed file by its content: its name may have been taken, then it lies under another."""
    folder = host.layout.processed_dir
    with host.open_for_reading() as repo:
        paths = list(Snapshot(repo, repo.read_head()).list_entries(folder))
    kept = host.root / folder
    if kept.is_dir():
        paths += [p.relative_to(host.root).as_posix() for p in kept.rglob("*") if p.is_file()]
    stem = name.rsplit("/", 1)[-1]
    for path in sorted(dict.fromkeys(paths), key=lambda p: not p.endswith(stem)):
        data = _read_import_file(host, path)
        if data is not None and hashlib.sha256(data).hexdigest() == digest:
            return data
    return None


def _read_import_file(host: Host, path: str) -> bytes | None:
    """A file below ``import/``, as committed or as it lies there; a card may name anything."""
    if not path.startswith(f"{host.layout.import_dir}/"):
        return None
    with host.open_for_reading() as repo:
        data = Snapshot(repo, repo.read_head()).read_file(path)
    if data is not None:
        return data
    try:
        full = resolve_inside(host.root / host.layout.import_dir, path[len(host.layout.import_dir) + 1 :])
        return full.read_bytes() if full.is_file() and full.stat().st_size <= SHOWN_BYTES else None
    except (ClearedError, OSError, ValueError):
        return None


def _decode_lines(data: bytes) -> tuple[str, ...]:
    for encoding in ("utf-8-sig", "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "latin-1"):
        try:
            return tuple(data[:SHOWN_BYTES].decode(encoding).splitlines())
        except UnicodeDecodeError:
            continue
    return ()


def entry_script(host: Host, why: Mapping[str, Any]) -> FileView:
    """The script that made an entry, as it was then, at the line of the call. ``why``: what ``review.why`` found.

    Raises ``UsageError`` where a person posted it.
    """
    if not why.get("run"):
        raise UsageError("a person posted this entry; there is no script", remedy="cleared why shows who.")
    path = str(why["script"]["file"])
    call = why.get("call")
    with host.open_for_reading() as repo:
        data = Snapshot(repo, str(why["commit"]["id"])).read_file(path)
        other = str(call["file"]) if call else path
        if call and other != path:
            data, path = Snapshot(repo, str(why["commit"]["id"])).read_file(other) or data, other
    if data is None:
        raise UsageError(f"{path} is not in that commit", remedy="cleared why shows what is known.")
    return FileView(path, _decode_lines(data), int(call["line"]) if call else None,
                "" if call else "Which line made the entry is not known any more.")  # fmt: skip


def proposal_folder(card: Card) -> str:
    """The full name of a proposal's folder: its number alone may be two."""
    return str(card.details.get("proposal", card.id))


def cards_summary(rows: Sequence[QueueRow]) -> str:
    """What a decision was about, briefly."""
    return rows[0].text if len(rows) == 1 else f"{len(rows)} cards"
