"""Teaching an agent a vendor: a row in the table of its script, checked and proposed; a person's key approves it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import Place, UsageError
from cleared.base.short_text import join_words
from cleared.base.terminal import count_noun
from cleared.books.ledger.bank_lines import normalise_description
from cleared.books.ledger.staged_journal import Books
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.books.teaching.matched_lines import FittingLine, find_matched_lines, row_accounts
from cleared.books.teaching.row_limits import NO_LIMITS, RowLimits
from cleared.books.teaching.table_scripts import TableScript, find_table_script
from cleared.books.teaching.vendor_table import (
    MAX_WORDS,
    VendorRow,
    contains_words,
    read_confidence,
    teach_row,
)
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.impact import describe_not_comparable
from cleared.gate.proposals.proposal import Proposal
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.gate.proposals.submission import propose_changes
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.source_edits import remove_item
from cleared.trust.person_only import refuse_in_job

_MIN_LETTERS: Final = 2


class Lesson(Struct, frozen=True):
    """A row as it was taught or taken out: proposed, not live yet."""

    row: VendorRow
    agent: str
    proposal: Proposal
    lines: tuple[FittingLine, ...]
    """All past bank lines that it fits, oldest first."""
    difference: str
    """What the change would have done on the user's own history, in one line."""
    doubts: tuple[str, ...]
    """Why it takes more than a key; empty where a key may approve it."""
    shown: str
    """The digest of its card, as it was when this was taught."""
    is_removal: bool = False


def propose_vendor(
    host: Host, words: str, account: int, *, limits: RowLimits = NO_LIMITS, vendor: str = "", agent: str = ""
) -> Lesson:
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
    row = VendorRow(words, _check_text(host, "vendor", vendor or words.title()), account, limits)
    with host.open_last_commit() as snapshot:
        books, bank = open_books(host.layout, CommittedSource(snapshot))
        banks = ledger_accounts(host.config)
        for field, number in [("account", account), *(("split", number) for number, _ in limits.split)]:
            _require_account(host, books, banks, number, field)
        _check_limits(banks, limits, account)
        script = find_table_script(Scripts(host, snapshot), agent, limits)
        lines = tuple(find_matched_lines(books, bank, banks, row))
        committed = snapshot.read_file(script.path)
    enough = host.config.thresholds.auto_confirm
    if any(known == row and read_confidence(node) >= enough for known, node in script.table.rows):
        raise UsageError(f"{script.path} knows that already", remedy="Nothing is to be done.")
    taught = teach_row(script.source, script.table, row)
    replaced = [known for known, _ in script.table.rows if known.is_same_rule(row)]
    message = f"Always: {row.describe()}, which is {row.vendor}."
    return _propose(host, script, taught, message, _Change(row, replaced, banks.values()), lines, committed)


def propose_removal(host: Host, words: str, *, limits: RowLimits | None = None, agent: str = "") -> Lesson:
    """Take a row out of an agent's vendor table, and propose that; nothing is live yet.

    ``limits``: those of the row; None: the only row of these words. Raises ``UsageError`` where there is no such row,
    or several; else as ``propose_vendor``.
    """
    refuse_in_job()
    with host.open_last_commit() as snapshot:
        script = find_table_script(Scripts(host, snapshot), agent, NO_LIMITS)
        wanted = normalise_description(words)
        having = [
            (row, node)
            for row, node in script.table.rows
            if normalise_description(row.words) == wanted and (limits is None or row.limits.scope == limits.scope)
        ]
        if len(having) != 1:
            shown = "; ".join(row.describe() for row, _ in having)
            raise UsageError(
                f"{script.path} has several such rows: {shown}" if having else f"{script.path} has no row {wanted!r}",
                remedy="Say which, with its --out, --in, --account, --min and --max."
                if having
                else "cleared teach --list shows them.",
            )
        row, node = having[0]
        books, bank = open_books(host.layout, CommittedSource(snapshot))
        banks = ledger_accounts(host.config)
        lines = tuple(find_matched_lines(books, bank, banks, row))
        committed = snapshot.read_file(script.path)
    text = remove_item(script.source, node)
    change = _Change(row, [row], banks.values(), is_removal=True)
    return _propose(host, script, text, f"No row any more: {row.describe()}.", change, lines, committed)


class _Change(Struct, frozen=True):
    """A row that comes or goes, and the rows that go with it."""

    row: VendorRow
    gone: Sequence[VendorRow]
    banks: Collection[int]
    is_removal: bool = False


def _propose(
    host: Host,
    script: TableScript,
    text: str,
    message: str,
    change: _Change,
    lines: tuple[FittingLine, ...],
    committed: bytes | None,
) -> Lesson:
    proposal, _ = propose_changes(host, [script.path], texts={script.path: text.encode("utf-8")}, message=message)
    history = proposal.data["behaviour"]["history"]
    doubts = _find_doubts(host, change, proposal, history)
    if script.is_starter:
        doubts.insert(0, script.is_starter)
    elif committed != script.source.encode("utf-8"):
        doubts.insert(0, f"{script.path} was committed by hand since it was approved, and that would be replaced")
    difference = _describe_difference(change, history)
    shown = read_shown_proposal(host, proposal.folder).digest
    return Lesson(change.row, script.agent, proposal, lines, difference, tuple(doubts), shown, change.is_removal)


def _check_text(host: Host, field: str, text: str) -> str:
    text = " ".join(host.redactor.redact_text(text).split())
    if not text or len(text) > MAX_WORDS or not text.isprintable():
        raise UsageError(
            f"{text[:60]!r} cannot stand in a vendor table",
            place=Place(field=field),
            remedy=f"Write one to {MAX_WORDS} characters on one line.",
        )
    return text


def _require_account(host: Host, books: Books, banks: Mapping[str, int], account: int, field: str) -> None:
    """Raises ``UsageError`` for an account that no vendor's money goes to."""
    why = books.chart.why_not_postable(account, host.clock.now().date())
    if why is not None:
        raise UsageError(why[0], place=Place(field=field), remedy=why[1])
    for bank, number in banks.items():
        if number == account:
            raise UsageError(
                f"{account} is the bank account {bank} itself",
                place=Place(field=field),
                remedy="Between your own accounts use the clearing account, 1090.",
            )


def _check_limits(banks: Mapping[str, int], limits: RowLimits, account: int) -> None:
    """Raises ``UsageError`` for limits that no bank line keeps, and for a split that leaves nothing to split."""
    if limits.bank is not None and limits.bank not in banks.values():
        known = ", ".join(f"{number} ({bank})" for bank, number in banks.items())
        raise UsageError(
            f"{limits.bank} is no bank account", place=Place(field="--account"), remedy=f"There are: {known}."
        )
    if limits.least is not None and limits.most is not None and limits.least > limits.most:
        raise UsageError(
            f"no amount is from {limits.least} to {limits.most}", place=Place(field="--max"), remedy="Swap them."
        )
    numbers = [number for number, _ in limits.split]
    shares = sum(Decimal(part[:-1]) for _, part in limits.split if part.endswith("%"))
    if len({*numbers, account}) != len(numbers) + 1 or shares >= 100:
        raise UsageError(
            "the parts leave nothing to the row's own account",
            place=Place(field="--split"),
            remedy="Name each other account once, and less than 100 %; what is left goes to ACCOUNT.",
        )


def _find_doubts(host: Host, change: _Change, proposal: Proposal, history: Mapping[str, Any]) -> list[str]:
    """What is more than the row says; each is a reason to have it looked at as a card."""
    doubts = []
    if host.config.reviewers:
        doubts.append("reviewers decide here")
    other = [e for e in history["entries"] if not _is_expected(change, e)]
    if other:
        first = other[0]
        doubts.append(
            f"{count_noun(len(other), 'entry', 'entries')} would be others than it says, such as "
            f"{first['date']} {first['amount']} {str(first['description'])[:60]}"
        )
    if not all(_is_expected_latent(change, latent) for latent in proposal.data["latent"].values()):
        doubts.append("it may do more than it says, which no dry run showed")
    doubts += [f"it fails over {failure}" for failure in history["failed"]]
    return doubts


def _is_expected_latent(change: _Change, latent: Mapping[str, Any]) -> bool:
    """Whether all that no dry run showed is the row: its words, which no past line has, and its accounts."""
    rows = [change.row, *change.gone]
    texts = {text for row in rows for text in (row.words, row.vendor, *row.limits.texts())}
    accounts = row_accounts(change.row)
    goes = all(any(reference.startswith(f"{number} ") for number in accounts) for reference in latent["references"])
    return not latent["lines"] and goes and {f"“{text}”" for text in texts}.issuperset(latent["values"])


def _is_expected(change: _Change, entry: Mapping[str, Any]) -> bool:
    """Whether a difference is what the row says: a line with its words, which stays or goes to its accounts."""
    row = change.row
    if entry["change"] != "changed" or not contains_words(str(entry["description"]), row.words):
        return False
    accounts = (entry["after"] or {}).get("accounts")
    if accounts is None or change.is_removal:
        return True
    numbers = _account_numbers(entry)
    return row.account in numbers and numbers <= row_accounts(row) | set(change.banks)


def _account_numbers(entry: Mapping[str, Any]) -> set[int]:
    """The accounts that a difference leaves an entry at."""
    return {int(part.partition(":")[0]) for part in str(entry["after"]["accounts"]).split()}


def _describe_difference(change: _Change, history: Mapping[str, Any]) -> str:
    runs = history["runs"]
    left_out = f" {describe_not_comparable(history['not_comparable'])}" if history["not_comparable"] else ""
    if not runs:
        return f"There are no past runs to compare with.{left_out}"
    moved = [e for e in history["entries"] if (e["after"] or {}).get("accounts") is not None]
    alone = {change.row.account}
    splits = bool(change.row.limits.split) and not change.is_removal
    odd = sum(1 for e in moved if splits and _account_numbers(e) - set(change.banks) == alone)
    accounts = [str(change.row.account), *(str(number) for number, _ in change.row.limits.split)]
    where = "elsewhere" if change.is_removal else f"to {join_words(accounts)}"
    gone = count_noun(len(moved) - odd, "entry", "entries")
    text = f"Over {count_noun(runs, 'past run')}: {gone} would have gone {where}"
    if odd:
        text += f", {odd} would have waited at {change.row.account}, as the parts do not fit"
    cards = history["before"].get("cards", 0) - history["after"].get("cards", 0)
    if cards:
        text += f", {count_noun(abs(cards), 'card')} {'fewer' if cards > 0 else 'more'}"
    rest = len(history["entries"]) - len(moved)
    surer = "less sure" if change.is_removal else "surer"
    others = f"{rest} more would only be {surer}" if rest else "nothing else changes"
    return f"{text}; {others}.{left_out}"
