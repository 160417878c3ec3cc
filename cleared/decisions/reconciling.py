"""Recording that books and bank agreed on a day, and withdrawing it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from cleared.approvals.person_only import refuse_in_job
from cleared.books_index.journal_index import EntryFilter, JournalIndex, open_index
from cleared.changes import commit_messages
from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.errors import PolicyError, UsageError
from cleared.ledger.agreed_balances import WITHDRAWN, AgreedBalance, append_agreed_balances
from cleared.ledger.entry import Entry
from cleared.ledger.reconciliation import AccountFacts, read_account_facts
from cleared.ledger.staged_bank_lines import BankBook


def record_agreement(host: Host, account: int, day: date, stated: Decimal) -> str | None:
    """Record that the account held ``stated`` at the end of a day, by the bank and by the books; the commit, None where
    that is on record already.

    Raises ``PolicyError`` where the books do not agree, for a day that is not over, and inside a job.
    """
    refuse_in_job()

    def stage_agreement(decision_context: DecisionContext) -> Decision | None:
        context, bank = decision_context.context, decision_context.context.bank
        if day > context.today:
            raise PolicyError(f"{day} is not over yet", remedy="Reconcile with the statement of a day that is past.")
        index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
        booked = read_facts(host, index, bank, account).balance_on(day)
        if booked != stated:
            raise PolicyError(f"the books have {booked} now, not {stated}", remedy="Compare again: cleared reconcile.")
        if any((each.account, each.day, each.amount) == (account, day, stated) for each in bank.agreed_balances):
            return None
        made = AgreedBalance(account, day, stated, decision_context.by, format_iso(context.now))
        path = bank.paths.reconciliations
        files = {path: append_agreed_balances(bank.source.read(path), [made])}
        return Decision(commit_messages.account_reconciled(account, day, stated), files)

    return commit_decision(host, "reconcile", stage_agreement, collects=[])


def withdraw_agreement(host: Host, account: int, day: date, reason: str) -> str:
    """Take back that an account was reconciled on a day; the commit. Raises ``UsageError`` without a reason, or where
    it is not on record."""
    refuse_in_job()
    reason = " ".join(host.redactor.redact_text(reason).split())[:500]
    if not reason:
        raise UsageError("withdrawing needs a reason", remedy='Such as --withdraw "the bank corrected it".')

    def stage_withdrawal(decision_context: DecisionContext) -> Decision:
        bank = decision_context.context.bank
        standing = [each for each in bank.agreed_balances if (each.account, each.day) == (account, day)]
        if not standing:
            days = ", ".join(str(each.day) for each in bank.agreed_balances if each.account == account)
            raise UsageError(f"{account} was not reconciled on {day}", remedy=f"On record: {days or 'none'}.")
        files = withdraw_balances(decision_context, standing, reason)
        return Decision(commit_messages.reconciliation_withdrawn(account, day, reason), files)

    return require_commit(commit_decision(host, "reconcile", stage_withdrawal, collects=[]))


def withdraw_balances(
    decision_context: DecisionContext, standing: list[AgreedBalance], reason: str
) -> dict[str, bytes | None]:
    """The file with rows that withdraw these."""
    context = decision_context.context
    path, at = context.bank.paths.reconciliations, format_iso(context.now)
    rows = [AgreedBalance(x.account, x.day, x.amount, decision_context.by, at, WITHDRAWN, reason) for x in standing]
    return {path: append_agreed_balances(context.bank.source.read(path), rows)} if rows else {}


def read_facts(host: Host, index: JournalIndex, bank: BankBook, account: int) -> AccountFacts:
    """What is known of an account of the ledger that bank accounts use."""
    names = [each.id for each in host.config.bank_accounts if each.ledger_account == account]
    return read_account_facts(iter_legs(index, account), bank, names, account)


def iter_legs(index: JournalIndex, account: int) -> Iterator[tuple[str, Decimal, Entry]]:
    """Every leg on an account: its id, its amount (debit minus credit), its entry."""
    for posting in index.iter_postings(EntryFilter(account=account)):
        yield posting.leg_id, posting.debit - posting.credit, posting.entry
