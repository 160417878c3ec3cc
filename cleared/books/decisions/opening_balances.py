"""Posting what bank accounts held before their first row, as config.yaml or the bank's own files say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Final

from cleared.base.errors import PolicyError
from cleared.books.decisions import book_subjects
from cleared.books.decisions.bank_agreement import read_reconciliation
from cleared.books.decisions.bank_standing import Opening, iter_bank_facts, list_openings, read_facts, read_openings
from cleared.books.decisions.hand_posting import add_entry_by_hand
from cleared.books.index.journal_index import EntryFilter, JournalIndex, open_index
from cleared.books.ledger.account_facts import AccountFacts
from cleared.books.ledger.chart import OPENING_BALANCES
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import MOVED_IN, OPENING, Entry
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.stated_balances import find_day_before
from cleared.books.queries import open_committed_books
from cleared.books.staged_books import books_of
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.decisions.shown_cards import digest_shown, refuse_changed_record
from cleared.changes.host import Host

SHOWN: Final = "opening balances"
"""What their digest is called among those of what a person was shown."""


def list_opening_balances(host: Host) -> list[Opening]:
    """The opening balances that would be posted now."""
    with open_committed_books(host) as (_, snapshot, _books, bank):
        known = read_openings(host, snapshot, bank)
        return _list_due(known, _find_posted(open_index(host.layout, snapshot, host.decimal_places)))


def digest_openings(openings: Iterable[Opening]) -> str:
    """The digest of what is to be posted, as a person is shown it."""
    return digest_shown([[each.account, str(each.day), str(each.balance)] for each in openings])


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
        index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
        posted, accounts = _find_posted(index), {each.id: each for each in host.config.bank_accounts}
        due = _list_due(list_openings(host, index, books_of(context).bank), posted)
        refuse_changed_record(SHOWN, "what is to be posted", lambda: digest_openings(due))
        for name, day, balance, evidence in due:
            account = accounts[name]
            legs = [make_leg(account.ledger_account, balance), make_leg(OPENING_BALANCES, -balance)]
            entry = books.add_entry(
                day,
                f"Opening balance of {account.name or account.id}",
                legs,
                reference=_reference_of(name),
                status=MOVED_IN,
                confidence="1.00",
                evidence=evidence,
                tags=OPENING,
            )
            context.log_action("journal_open", f"{entry.date} {entry.amount} {entry.description}", entry.entry_id)
            entries.append(entry)
        if not entries:
            raise _find_foreign_row(host, index, books_of(context).bank) or _nothing_to_open(posted)
        return Decision(book_subjects.opening_balances_posted(len(entries)))

    return entries, require_commit(commit_decision(host, "journal open", stage_opening_balances, collects=[entries]))


def post_typed_opening(host: Host, account: int, day: date, balance: str) -> Entry:
    """Post what a person says that an account of a bank held at the end of a day, before its first row. What the books
    have of it by then is left out.

    Raises ``PolicyError`` for a day that is not over or not before the account's first row, and where its opening
    balance is posted; ``UsageError`` for what is no amount of money or no bank's account.
    """
    data = read_reconciliation(host, account, day, balance)
    booked, missing = Decimal(data["booked"]), Decimal(data["stated"]) - Decimal(data["booked"])
    if not missing:
        raise PolicyError(
            f"the books hold {data['stated']} on account {account} at the end of {day} already",
            remedy="Nothing is left to book.",
        )

    def refuse_opening(decision_context: DecisionContext) -> None:
        index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
        facts = read_facts(host, index, books_of(decision_context.context).bank, account)
        if day > decision_context.context.today:
            raise PolicyError(f"{day} is not over yet", remedy="Say what it held at the end of a day that is past.")
        _refuse_where_opened(facts, day)
        if facts.balance_on(day) != booked:
            raise PolicyError(f"what the books have of account {account} has changed", remedy="Look at it again.")

    lines = [(account, missing), (OPENING_BALANCES, -missing)]
    return add_entry_by_hand(host, day, "Opening balance", lines, refuse=refuse_opening).entry


def _refuse_where_opened(facts: AccountFacts, day: date) -> None:
    """Raises ``PolicyError`` where the account has its opening balance, or rows of its bank on that day or before."""
    standing = [entry for _, entry, _ in facts.legs if entry.status != "voided"]
    opened = [e.entry_id for e in standing if e.is_opening]
    if opened:
        raise PolicyError(
            f"the opening balance of account {facts.account} is posted already: {', '.join(opened)}",
            remedy=f"Where it is wrong, take it back first: cleared journal void {opened[0]} --reason …",
        )
    posted = [entry.date for _, entry, line in facts.legs if line and entry.status != "voided"]
    first = min([*posted, *(line.posted_date for line in facts.unposted)], default=date.max)
    if first <= day:
        raise PolicyError(
            f"the first row of account {facts.account} is of {first}",
            remedy=f"Say what it held before that: at the end of {find_day_before(first)}, or of an earlier day.",
        )


def _reference_of(account: str) -> str:
    return f"opening:{account}"


def _find_posted(index: JournalIndex) -> dict[str, str]:
    """Reference → entry of the opening balances that stand."""
    openings = index.iter_entries(EntryFilter(account=OPENING_BALANCES))
    return {e.reference: e.entry_id for e in openings if e.status != "voided" and OPENING in e.tags.split(";")}


def _list_due(openings: Iterable[Opening], posted: Collection[str]) -> list[Opening]:
    """Those that are not nothing, and are not posted yet. ``posted``: references."""
    return [each for each in openings if each.balance and _reference_of(each.account) not in posted]


def _find_foreign_row(host: Host, index: JournalIndex, bank: BankBook) -> PolicyError | None:
    """The error that names a row in another currency for which an account's opening balance has to wait."""
    for account, facts, _ in iter_bank_facts(host, index, bank):
        line = facts.find_foreign_row()
        if line is not None and account.opening is None and not facts.list_openings():
            return PolicyError(
                f"what {account.id} held before its first row is not known while a row in another currency waits: "
                f"{line.posted_date} {line.amount} {line.currency} {line.description}",
                remedy="Enter what it cost (cleared journal add), answer its card with ignore, then say it again.",
            )
    return None


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
