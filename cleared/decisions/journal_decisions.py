"""What people decide of the books: voiding an entry, posting opening balances, answering for a commit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from cleared.cards.card import card_id
from cleared.cards.kinds import ENTRY
from cleared.changes import commit_messages
from cleared.changes.host import Host
from cleared.decisions.decision_context import UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.errors import PolicyError
from cleared.ledger.chart import OPENING_BALANCES
from cleared.ledger.entry import ZERO, Leg
from cleared.primitives.voiding import void_with_corrections
from cleared.schema import money


def void_entry(host: Host, entry_id: str, reason: str) -> tuple[str, str, str]:
    """Void an entry; ``(entry id, reversal's id, commit)``."""
    ids: list[str] = []

    def stage_void(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        original = context.books.get_entry(entry_id)
        reversal = void_with_corrections(context, entry_id, reason)
        ids.extend((original.entry_id, reversal["entry_id"]))
        card = context.cards.committed_cards.get(card_id(ENTRY.name, original.entry_id))
        about = [card.id, original.entry_id] if card is not None and card.status == "open" else [original.entry_id]
        subject = commit_messages.entry_voided(original.entry_id, reason)
        return Decision(subject, trailers=((UNDO_TRAILER, " ".join(about)),))

    commit = require_commit(commit_decision(host, f"journal void {entry_id}", stage_void, collects=[ids]))
    return ids[0], ids[1], commit


def post_opening_balances(host: Host) -> tuple[list[str], str]:
    """Post the opening balance of every bank account that names one and has none yet; ``(entry ids, commit)``.

    Against 3900 Opening balances, on the day ``config.yaml`` says, tagged ``@kind=opening``. The balance is signed as
    the bank sees it: what is owed on a card is negative.
    """
    ids: list[str] = []

    def stage_opening_balances(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = context.books
        openings = (e for e in books.iter_entries() if e.status != "voided" and "@kind=opening" in e.tags.split(";"))
        done = {entry.reference: entry.entry_id for entry in openings}
        for account in host.config.bank_accounts:
            reference = f"opening:{account.id}"
            if account.opening is None or reference in done or account.opening.balance == 0:
                continue
            amount = money.decode(account.opening.balance, host.decimal_places)
            legs = [_signed_leg(account.ledger_account, amount), _signed_leg(OPENING_BALANCES, -amount)]
            entry = books.add_entry(
                account.opening.date, f"Opening balance of {account.name or account.id}", legs, reference=reference,
                status="bootstrap-confirmed", confidence="1.00", evidence="config.yaml: bank_accounts.opening",
                tags="@kind=opening",
            )  # fmt: skip
            context.log_action("journal_open", f"{entry.date} {entry.amount} {entry.description}", entry.entry_id)
            ids.append(entry.entry_id)
        if not ids:
            raise _nothing_to_open(host, done)
        return Decision(commit_messages.opening_balances_posted(len(ids)))

    return ids, require_commit(commit_decision(host, "journal open", stage_opening_balances, collects=[ids]))


def _nothing_to_open(host: Host, done: Mapping[str, str]) -> PolicyError:
    """``done``: the references of opening balances that are posted, each with its entry."""
    posted = [entry for a in host.config.bank_accounts if a.opening and (entry := done.get(f"opening:{a.id}"))]
    if posted:
        return PolicyError(
            f"the opening balances of config.yaml are posted already: {', '.join(posted)}",
            remedy="To correct one: cleared journal void ID --reason …, then cleared journal open.",
        )
    return PolicyError(
        "there is no opening balance to post",
        remedy="Write opening: { date: …, balance: … } under the bank account in config.yaml.",
    )


def _signed_leg(account: int, amount: Decimal) -> Leg:
    """A leg that debits a positive amount and credits a negative one."""
    return Leg(account, amount, ZERO) if amount > 0 else Leg(account, ZERO, -amount)


def require_commit(commit: str | None) -> str:
    """The commit of a decision that cannot come to nothing."""
    assert commit is not None
    return commit
