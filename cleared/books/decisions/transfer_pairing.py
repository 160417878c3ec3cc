"""Transfers between own accounts: which are in the books from both sides, and which are not."""

from __future__ import annotations

from typing import Any

from cleared.base.errors import PolicyError
from cleared.books.decisions import book_subjects
from cleared.books.index.journal_index import EntryFilter
from cleared.books.ledger.transfers import TransferPair, TransferSide, find_sides, find_transfers
from cleared.books.opened_books import ledger_accounts
from cleared.books.queries import open_journal_index
from cleared.changes.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.review.decision_staging import DecisionResult, pair_entries, settle_decided_transfers
from cleared.trust.person_only import refuse_in_job


def read_transfers(host: Host) -> dict[str, Any]:
    """``{pairs, unpaired, proposed, balance}``: both sides are in; one is; they look like both sides and are booked
    otherwise. Amounts are digits."""
    with open_journal_index(host) as (index, _):
        sides = find_sides(index.iter_entries(EntryFilter()), set(ledger_accounts(host.config).values()))
    found = find_transfers(sides)
    return {
        "pairs": [_pair_data(pair) for pair in found.pairs],
        "unpaired": [_side_data(side) for side in found.unpaired],
        "proposed": [_pair_data(pair) for pair in found.proposed],
    }


def _pair_data(pair: TransferPair) -> dict[str, Any]:
    return {"out": _side_data(pair.out), "in": _side_data(pair.into), "days": pair.days}


def _side_data(side: TransferSide) -> dict[str, Any]:
    return {
        "entry_id": side.entry_id,
        "date": side.day.isoformat(),
        "account_id": side.account,
        "amount": str(side.amount),
        "text": side.text,
        "status": side.status,
    }


def pair_transfer(host: Host, one: str, other: str) -> DecisionResult:
    """Book two entries as both sides of one transfer, in one commit; ``cleared queue undo`` takes it back.

    Raises ``UsageError`` where they cannot be, ``PolicyError`` where they are, and inside a job.
    """
    refuse_in_job()
    result = DecisionResult()

    def stage_pairing(decision_context: DecisionContext) -> Decision:
        pair_entries(decision_context, [one, other], result)
        if not result.entries:
            raise PolicyError("both go through the clearing account already", remedy="Nothing needs doing.")
        settle_decided_transfers(decision_context, result)
        settled = " ".join([*result.cards, *result.entries])
        subject = book_subjects.transfer_paired([one, other])
        return Decision(subject, trailers=((UNDO_TRAILER, settled),), subject=("transfers pair", one, other))

    result.commit = commit_decision(host, "transfers pair", stage_pairing, collects=[result]) or ""
    return result
