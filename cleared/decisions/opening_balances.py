"""Posting what bank accounts held before their first row, as config.yaml or the bank's own files say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from cleared.books_index.journal_index import open_index
from cleared.changes import commit_messages
from cleared.changes.host import Host
from cleared.config.bank_section import BankAccount
from cleared.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.decisions.reconciling import read_facts
from cleared.errors import PolicyError
from cleared.ledger.chart import OPENING_BALANCES
from cleared.ledger.corrections import make_leg
from cleared.ledger.entry import OPENING, Entry
from cleared.schema import money


class _Opening(NamedTuple):
    """What an account held at the end of a day, and who says so."""

    account: BankAccount
    day: date
    balance: Decimal
    evidence: str


def post_opening_balances(host: Host) -> tuple[list[Entry], str]:
    """Post the opening balance of every bank account that has none yet; ``(entries, commit)``.

    Against 3900 Opening balances, tagged ``@kind=opening``: as ``config.yaml`` says, else on the day before the
    account's first row, as the balances in its files say. The balance is signed as the bank sees it: what is owed on a
    card is negative. Raises ``PolicyError`` where there is none to post.
    """
    entries: list[Entry] = []

    def stage_opening_balances(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = context.books
        openings = (e for e in books.iter_entries() if e.status != "voided" and OPENING in e.tags.split(";"))
        done = {entry.reference: entry.entry_id for entry in openings}
        for account, day, balance, evidence in list(_list_openings(host, decision_context)):
            reference = f"opening:{account.id}"
            if reference in done or balance == 0:
                continue
            legs = [make_leg(account.ledger_account, balance), make_leg(OPENING_BALANCES, -balance)]
            entry = books.add_entry(
                day, f"Opening balance of {account.name or account.id}", legs, reference=reference,
                status="bootstrap-confirmed", confidence="1.00", evidence=evidence, tags=OPENING,
            )  # fmt: skip
            context.log_action("journal_open", f"{entry.date} {entry.amount} {entry.description}", entry.entry_id)
            entries.append(entry)
        if not entries:
            raise _nothing_to_open(done)
        return Decision(commit_messages.opening_balances_posted(len(entries)))

    return entries, require_commit(commit_decision(host, "journal open", stage_opening_balances, collects=[entries]))


def _list_openings(host: Host, decision_context: DecisionContext) -> Iterator[_Opening]:
    users = Counter(account.ledger_account for account in host.config.bank_accounts)
    index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
    for account in host.config.bank_accounts:
        if account.opening is not None:
            balance = money.decode(account.opening.balance, host.decimal_places)
            yield _Opening(account, account.opening.date, balance, "config.yaml: bank_accounts.opening")
        elif users[account.ledger_account] == 1:  # of a shared one no file says what the whole of it held
            facts = read_facts(host, index, decision_context.context.bank, account.ledger_account)
            found = facts.find_unbooked_opening()
            if found is not None:
                yield _Opening(account, found.day, found.amount, "the first balance in the bank's files")


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
