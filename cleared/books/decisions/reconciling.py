"""Recording that books and bank agreed on a day, and withdrawing it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.books.decisions import book_subjects
from cleared.books.decisions.bank_standing import read_facts_at
from cleared.books.index.journal_index import open_index
from cleared.books.ledger.agreed_balances import AGREED, WITHDRAWN, AgreedBalance
from cleared.books.ledger.stated_balances import StatedBalance
from cleared.books.staged_books import books_of
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.host import Host
from cleared.trust.person_only import refuse_in_job


def record_agreement(host: Host, account: int, day: date, stated: Decimal) -> str | None:
    """Record that the account held ``stated`` at the end of a day, by the bank and by the books; the commit, None where
    that is on record already.

    Raises ``PolicyError`` where the books do not agree, for a day that is not over or before all entries, and inside
    a job.
    """
    refuse_in_job()

    def stage_agreement(decision_context: DecisionContext) -> Decision | None:
        context, bank = decision_context.context, books_of(decision_context.context).bank
        if day > context.today:
            raise PolicyError(f"{day} is not over yet", remedy="Reconcile with the statement of a day that is past.")
        index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
        if (day.year, day.month) < min(index.months, default=(day.year, day.month + 1)):
            raise PolicyError(f"the books have no entry by {day}", remedy="Reconcile with a statement of their time.")
        said = StatedBalance(day, stated)
        facts = read_facts_at(host, index, bank, account, said)
        if facts.compare(said):
            booked = facts.balance_on(day)
            raise PolicyError(f"the books have {booked} now, not {stated}", remedy="Compare again: cleared reconcile.")
        known = ((each.account, each.day, each.amount, each.state) for each in bank.list_agreed_balances())
        if (account, day, stated, AGREED) in known:
            return None
        bank.new_agreed.append(AgreedBalance(account, day, stated, decision_context.by, format_iso(context.now)))
        return Decision(book_subjects.account_reconciled(account, day, stated))

    return commit_decision(host, "reconcile", stage_agreement, collects=[])


def withdraw_agreement(host: Host, account: int, day: date, reason: str) -> str:
    """Take back that an account was reconciled on a day; the commit. Raises ``UsageError`` without a reason, or where
    it is not on record."""
    refuse_in_job()
    reason = " ".join(host.redactor.redact_text(reason).split())[:500]
    if not reason:
        raise UsageError("withdrawing needs a reason", remedy='Such as --withdraw "the bank corrected it".')

    def stage_withdrawal(decision_context: DecisionContext) -> Decision:
        bank = books_of(decision_context.context).bank
        standing = [each for each in bank.list_agreed_balances() if (each.account, each.day) == (account, day)]
        if not standing:
            days = ", ".join(str(each.day) for each in bank.list_agreed_balances() if each.account == account)
            raise UsageError(f"{account} was not reconciled on {day}", remedy=f"On record: {days or 'none'}.")
        take_back_balances(decision_context, standing, reason, WITHDRAWN)
        return Decision(book_subjects.reconciliation_withdrawn(account, day, reason))

    return require_commit(commit_decision(host, "reconcile", stage_withdrawal, collects=[]))


def take_back_balances(
    decision_context: DecisionContext, standing: list[AgreedBalance], reason: str, state: str
) -> None:
    """Stage that these do not stand any more; ``state``: ``WITHDRAWN`` or ``LAPSED``."""
    context, by = decision_context.context, decision_context.by
    at = format_iso(context.now)
    books_of(context).bank.new_agreed += [
        AgreedBalance(x.account, x.day, x.amount, by, at, state, reason) for x in standing
    ]
