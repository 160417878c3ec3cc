"""Posting what bank accounts held before their first row, as config.yaml or the bank's own files say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import Final, NamedTuple

from cleared.base import money
from cleared.base.errors import PolicyError
from cleared.books.decisions import book_subjects
from cleared.books.decisions.reconciling import iter_legs, read_facts
from cleared.books.index.journal_index import open_index
from cleared.books.ledger.chains import REVERSES
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import BY_FILES, OPENING, Entry
from cleared.books.ledger.reconciliation import AccountFacts, read_account_facts
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.queries import open_committed_books
from cleared.books.staged_books import books_of
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.decisions.shown_cards import digest_shown, refuse_changed_record
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.workspace.settings.bank_section import BankAccount

SHOWN: Final = "opening balances"
"""What their digest is called among those of what a person was shown."""


class Opening(NamedTuple):
    """What an account held at the end of a day, and who says so."""

    account: BankAccount
    day: date
    balance: Decimal
    evidence: str


def list_opening_balances(host: Host) -> list[Opening]:
    """The opening balances that would be posted now."""
    with open_committed_books(host) as (_, snapshot, books, bank):
        return list(_list_due(host, snapshot, books, bank))


def digest_openings(openings: Iterable[Opening]) -> str:
    """The digest of what is to be posted, as a person is shown it."""
    return digest_shown([[each.account.id, str(each.day), str(each.balance)] for each in openings])


def post_opening_balances(host: Host) -> tuple[list[Entry], str]:
    """Post the opening balance of every bank account that has none yet; ``(entries, commit)``.

    Against 3900 Opening balances, tagged ``@kind=opening``: as ``config.yaml`` says, else on the day before the
    account's first row, as the balances in its files say. What the books have of the account by then is part of the
    balance: it is left out, and the rest dated before it. The balance is signed as the bank sees it: what is owed on a
    card is negative. Raises ``PolicyError`` where there is none to post.
    """
    entries: list[Entry] = []

    def stage_opening_balances(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = books_of(context).books
        due = list(_list_due(host, decision_context.snapshot, books, books_of(context).bank))
        refuse_changed_record(SHOWN, "what is to be posted", lambda: digest_openings(due))
        for account, day, balance, evidence in due:
            legs = [make_leg(account.ledger_account, balance), make_leg(OPENING_BALANCES, -balance)]
            entry = books.add_entry(
                day,
                f"Opening balance of {account.name or account.id}",
                legs,
                reference=_reference_of(account),
                status="bootstrap-confirmed",
                confidence="1.00",
                evidence=evidence,
                tags=OPENING,
            )
            context.log_action("journal_open", f"{entry.date} {entry.amount} {entry.description}", entry.entry_id)
            entries.append(entry)
        if not entries:
            raise _nothing_to_open(_find_posted(books))
        return Decision(book_subjects.opening_balances_posted(len(entries)))

    return entries, require_commit(commit_decision(host, "journal open", stage_opening_balances, collects=[entries]))


def _reference_of(account: BankAccount) -> str:
    return f"opening:{account.id}"


def _find_posted(books: Books) -> dict[str, str]:
    """Reference → entry of the opening balances that stand."""
    openings = (e for e in books.iter_entries() if e.status != "voided" and OPENING in e.tags.split(";"))
    return {entry.reference: entry.entry_id for entry in openings}


def _list_due(host: Host, snapshot: Snapshot, books: Books, bank: BankBook) -> Iterator[Opening]:
    """Those that are known, and are not nothing, and are not posted yet."""
    done = _find_posted(books)
    for each in _list_known(host, snapshot, bank):
        if each.balance and _reference_of(each.account) not in done:
            yield each


def _list_known(host: Host, snapshot: Snapshot, bank: BankBook) -> Iterator[Opening]:
    users = Counter(account.ledger_account for account in host.config.bank_accounts)
    index = open_index(host.layout, snapshot, host.decimal_places)
    for account in host.config.bank_accounts:
        if account.opening is not None:
            balance = money.decode(account.opening.balance, host.decimal_places)
            is_shared = users[account.ledger_account] > 1
            legs = iter_legs(index, account.ledger_account)
            facts = read_account_facts(legs, bank, [account.id], account.ledger_account, is_shared=is_shared)
            yield _make_opening(account, account.opening.date, balance, facts, is_shared=is_shared)
        elif users[account.ledger_account] == 1:  # of a shared one no file says what the whole of it held
            facts = read_facts(host, index, bank, account.ledger_account)
            found = facts.find_unbooked_opening()
            if found is not None:
                yield Opening(account, found.day, found.amount, BY_FILES)


def _make_opening(
    account: BankAccount, day: date, balance: Decimal, facts: AccountFacts, *, is_shared: bool
) -> Opening:
    """What is to be posted, so that the account holds ``balance`` at the end of a day."""
    # Of a shared account only the lines of this bank are known to be in this balance.
    known = [(amount, entry) for amount, entry, line in facts.legs if entry.date <= day and (line or not is_shared)]
    booked = money.total([amount for amount, _ in known]) + facts.in_transit(day)
    first = min((e.date for _, e in known if e.status != "voided" and REVERSES not in e.tags), default=date.max)
    evidence = "config.yaml: bank_accounts.opening"
    if first > day:
        return Opening(account, day, balance - booked, evidence)
    evidence += f", {money.format_amount(balance)} on {day} with {money.format_amount(booked)} that was booked before"
    return Opening(account, first - timedelta(days=1), balance - booked, evidence)


def _nothing_to_open(done: Mapping[str, str]) -> PolicyError:
    """``done``: the references of opening balances that are posted, each with its entry."""
    posted = [entry for reference, entry in done.items() if reference.startswith("opening:")]
    if posted:
        return PolicyError(
            f"the opening balances are posted already: {', '.join(posted)}",
            remedy="To correct one: cleared journal void ID --reason …, then cleared journal open.",
        )
    return PolicyError(
        "there is no opening balance to post: neither config.yaml nor the bank's files say one that the books lack",
        remedy='Where you know it: cleared journal add DATE "Opening balance" ACCOUNT=AMOUNT '
        f"{OPENING_BALANCES}=-AMOUNT",
    )
