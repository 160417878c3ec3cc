"""Teaching an agent a vendor: a row in the table of its script, checked and proposed; a person's key approves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

from cleared.base import money
from cleared.base.errors import Place, UsageError
from cleared.base.terminal import count_noun
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.corrections import find_corrections
from cleared.books.ledger.entry import ZERO, Entry, parse_entry_id
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.books.teaching.vendor_table import (
    MAX_WORDS,
    VendorRow,
    contains_words,
    find_vendor_table,
    read_confidence,
    teach_row,
)
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.impact import describe_not_comparable
from cleared.gate.proposals.proposal import Proposal
from cleared.gate.proposals.submission import propose_changes
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.trust.person_only import refuse_in_job
from cleared.workspace import template

_MIN_LETTERS: Final = 2


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """A past bank line that has the words, and the accounts it is booked to now."""

    day: date
    amount: Decimal
    description: str
    accounts: str
    waiting: tuple[str, ...] = ()
    """Its entries that wait for a person."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A vendor as it was taught: proposed, not live yet."""

    row: VendorRow
    agent: str
    proposal: Proposal
    lines: tuple[MatchedLine, ...]
    """All past bank lines that have the words, oldest first."""
    difference: str
    """What the change would have done on the user's own history, in one line."""
    doubts: tuple[str, ...]
    """Why it takes more than a key; empty where a key may approve it."""


def propose_vendor(host: Host, words: str, account: int, *, vendor: str = "", agent: str = "") -> Lesson:
    """Put a row into an agent's vendor table, and propose that; nothing is live yet.

    ``agent``: the only one that has a table, where it is left out. Raises ``UsageError`` for words, names and accounts
    that no row can have, where the table says so already and where there is no table; ``GateFailed`` where the checks
    do not pass.
    """
    refuse_in_job()
    words = normalise_description(_check_text(host, "words", words))
    if sum(c.isalpha() for c in words) < _MIN_LETTERS:
        raise UsageError(
            f"{words!r} names nobody", place=Place(field="words"), remedy="Give a word of the bank's text."
        )
    row = VendorRow(words, _check_text(host, "vendor", vendor or words.title()), account)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        books, bank = open_books(host.layout, CommittedSource(snapshot))
        _require_account(host, books, account)
        path, source, added = _find_script(host, Scripts(host, snapshot), agent)
        lines = tuple(_find_lines(host, books, bank, words))
        committed = snapshot.read_file(path)
    table = find_vendor_table(source, path)
    assert table is not None
    enough = host.config.thresholds.auto_confirm
    if any(known == row and read_confidence(node) >= enough for known, node in table.rows):
        raise UsageError(f"{path} knows that already", remedy="Nothing is to be done.")
    taught = teach_row(source, table, row)
    message = f"Always: {words} is {row.vendor}, account {account}."
    proposal, _ = propose_changes(host, [path], texts={path: taught.encode("utf-8")}, message=message)
    history = proposal.data["behaviour"]["history"]
    doubts = _find_doubts(host, row, proposal, history)
    if not added and committed != source.encode("utf-8"):
        doubts.insert(0, f"{path} was committed by hand since it was approved, and that would be replaced")
    if added:
        doubts.insert(0, f"{path} had no vendor table; the proposal brings the starter of this version, which has one")
    name = path.rsplit("/", 1)[-1].removesuffix(".py")
    return Lesson(row, name, proposal, lines, _describe_difference(row, history), tuple(doubts))


def _check_text(host: Host, field: str, text: str) -> str:
    text = " ".join(host.redactor.redact_text(text).split())
    if not text or len(text) > MAX_WORDS or not text.isprintable():
        raise UsageError(
            f"{text[:60]!r} cannot stand in a vendor table",
            place=Place(field=field),
            remedy=f"Write one to {MAX_WORDS} characters on one line.",
        )
    return text


def _require_account(host: Host, books: Books, account: int) -> None:
    """Raises ``UsageError`` for an account that no vendor's money goes to."""
    why = books.chart.why_not_postable(account, host.clock.now().date())
    if why is not None:
        raise UsageError(why[0], place=Place(field="account"), remedy=why[1])
    for bank, number in ledger_accounts(host.config).items():
        if number == account:
            raise UsageError(
                f"{account} is the bank account {bank} itself",
                place=Place(field="account"),
                remedy="Between your own accounts use the clearing account, 1090.",
            )


def _find_script(host: Host, scripts: Scripts, agent: str) -> tuple[str, str, bool]:
    """The agent's path, the approved text to change, and whether that text is another starter than the approved one.

    Raises ``UsageError`` where no agent has a vendor table, or several have one and none is named.
    """
    folder = host.layout.agents_dir
    paths = (
        [host.layout.agent_path(agent)]
        if agent
        else [p for p in sorted(scripts.snapshot.list_entries(folder)) if p.endswith(".py") and p.count("/") == 1]
    )
    approved = {path: data for path in paths if (data := scripts.approvals.approved_version(path)[0]) is not None}
    if agent and not approved:
        raise UsageError(f"there is no approved agent {agent!r}", remedy="cleared agent list shows them.")
    texts = {path: data.decode("utf-8", "replace") for path, data in approved.items()}
    having = [path for path, text in texts.items() if find_vendor_table(text, path) is not None]
    if len(having) == 1:
        return having[0], texts[having[0]], False
    if having:
        names = ", ".join(path.rsplit("/", 1)[-1].removesuffix(".py") for path in having)
        raise UsageError(f"several agents have a vendor table: {names}", remedy="Say which: --agent NAME.")
    for path, data in approved.items():
        today = template.starter_files().get(path, b"").decode("utf-8")
        if template.was_shipped(path, data) and find_vendor_table(today, path) is not None:
            return path, today, True
    raise UsageError(
        f"{'the agent ' + agent if agent else 'no agent'} has {'no' if agent else 'a'} vendor table",
        remedy="A table is a list of (words, vendor, account, confidence) at the top of the script, as in "
        "agents/ingest.py of a new workspace. Ask a model for it: cleared meta, or write it and propose it.",
    )


def _find_lines(host: Host, books: Books, bank: BankBook, words: str) -> list[MatchedLine]:
    lines = []
    bank_accounts = set(ledger_accounts(host.config).values())
    for account in bank.list_accounts():
        for line in bank.scan_account_lines(account):
            if contains_words(line.description, words):
                numbers: dict[int, None] = {}
                waiting: dict[str, None] = {}
                for leg_id, _ in bank.matches.get(line.line_id, ()):
                    entry = books.find_entry(leg_id) if parse_entry_id(leg_id) else None
                    if entry is not None and entry.status != "voided":
                        numbers |= _accounts_of(entry, find_corrections(books, entry), bank_accounts)
                        waiting |= {entry.entry_id: None} if entry.status == "pending-review" else {}
                booked = "+".join(map(str, numbers)) or "not posted"
                lines.append(MatchedLine(line.posted_date, line.amount, line.description, booked, tuple(waiting)))
    return sorted(lines, key=lambda each: each.day)


def _accounts_of(entry: Entry, corrections: Sequence[Entry], bank_accounts: set[int]) -> dict[int, None]:
    """The accounts of an entry with its corrections, but the bank's."""
    totals: dict[int, Decimal] = {}
    for leg in (leg for each in (entry, *corrections) for leg in each.legs):
        totals[leg.account_id] = totals.get(leg.account_id, ZERO) + leg.amount
    return {account: None for account, amount in totals.items() if amount and account not in bank_accounts}


def _find_doubts(host: Host, row: VendorRow, proposal: Proposal, history: Mapping[str, Any]) -> list[str]:
    """What is more than the row says; each is a reason to have it looked at as a card."""
    doubts = []
    if host.config.reviewers:
        doubts.append("reviewers decide here")
    other = [e for e in history["entries"] if not _is_expected(row, e)]
    if other:
        first = other[0]
        doubts.append(
            f"{count_noun(len(other), 'entry', 'entries')} would be others than it says, such as "
            f"{first['date']} {first['amount']} {str(first['description'])[:60]}"
        )
    if not all(_is_expected_latent(row, latent) for latent in proposal.data["latent"].values()):
        doubts.append("it may do more than it says, which no dry run showed")
    doubts += [f"it fails over {failure}" for failure in history["failed"]]
    return doubts


def _is_expected_latent(row: VendorRow, latent: Mapping[str, Any]) -> bool:
    """Whether all that no dry run showed is the row: its words, which no past line has, and its account."""
    values = {f"“{row.words}”", f"“{row.vendor}”"}
    goes = all(reference.startswith(f"{row.account} ") for reference in latent["references"])
    return not latent["lines"] and goes and values.issuperset(latent["values"])


def _is_expected(row: VendorRow, entry: Mapping[str, Any]) -> bool:
    """Whether a difference is what the row says: a line with its words, which stays or goes to its account."""
    if entry["change"] != "changed" or not contains_words(str(entry["description"]), row.words):
        return False
    accounts = (entry["after"] or {}).get("accounts")
    return accounts is None or any(part.startswith(f"{row.account}:") for part in str(accounts).split())


def _describe_difference(row: VendorRow, history: Mapping[str, Any]) -> str:
    runs = history["runs"]
    left_out = f" {describe_not_comparable(history['not_comparable'])}" if history["not_comparable"] else ""
    if not runs:
        return f"There are no past runs to compare with.{left_out}"
    moved = sum(1 for e in history["entries"] if (e["after"] or {}).get("accounts") is not None)
    text = (
        f"Over {count_noun(runs, 'past run')}: {count_noun(moved, 'entry', 'entries')} would have gone to {row.account}"
    )
    cards = history["before"].get("cards", 0) - history["after"].get("cards", 0)
    if cards > 0:
        text += f", {count_noun(cards, 'card')} fewer"
    rest = len(history["entries"]) - moved
    others = f"{rest} more would only be surer" if rest else "nothing else changes"
    return f"{text}; {others}.{left_out}"


def describe_lines(lesson: Lesson, limit: int = 20) -> list[str]:
    """The past lines that have the words, as a person reads them; the newest where there are many."""
    shown = [
        f"{line.day}  {money.format_amount(line.amount)}  {line.accounts}  {line.description}"
        for line in lesson.lines[-limit:]
    ]
    hidden = len(lesson.lines) - len(shown)
    return ([f"… {hidden} older"] if hidden > 0 else []) + shown
