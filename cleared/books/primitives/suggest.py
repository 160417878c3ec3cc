"""``suggest_*``: what persons have decided before, as a suggestion; no language model is asked."""

from __future__ import annotations

from cleared.books.card_kinds import TRANSFER
from cleared.books.primitives.book_shapes import AccountSuggestion
from cleared.books.staged_books import books_of
from cleared.books.transfer_cards import refused_transfers
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Amount, Line, Text


@primitive(effect=Effect.READ, grant="journal.read")
def suggest_account(
    ctx: Context, description: Text, amount: Amount, reference: Line | None = None
) -> AccountSuggestion | None:
    """The account that persons' decisions suggest for a bank line, or None where nothing like it was decided.

    ``amount`` as the bank has it: negative is money out. ``reference`` of a transaction: its own entry is not counted,
    and its day and amount tell transfers, refunds and monthly charges. ``split`` is empty for one account.
    ``confidence`` is cautious: 0.95 takes nine equal decisions. Post what you are not sure of as pending-review.
    """
    staged = books_of(ctx)
    if staged.categoriser is None:
        # Late: what learns from the books is six modules, and most scripts ask for no suggestion.
        from cleared.books.ledger.all_booked_lines import AllBookedLines
        from cleared.books.ledger.categoriser import Categoriser
        from cleared.books.ledger.standing_entries import list_standing_entries

        standing = list_standing_entries(staged.books.iter_entries())
        staged.categoriser = Categoriser(
            AllBookedLines.join(standing, staged.ledger_accounts.values()),
            refused_transfers(ctx.cards.committed_cards.list_kind(TRANSFER.name)),
        )
    account, line = staged.bank.find_line(reference or "") or ("", None)
    found = staged.categoriser.suggest(
        description,
        amount,
        reference or "",
        day=line.posted_date if line else None,
        bank=staged.ledger_accounts.get(account, 0),
    )
    if found is None:
        return None
    return {
        "account_id": found.account,
        "counterparty": found.counterparty or None,
        "confidence": found.confidence,
        "evidence": found.evidence,
        "split": [{"account_id": account, "amount": amount} for account, amount in found.parts],
    }
