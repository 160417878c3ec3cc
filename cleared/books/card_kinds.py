"""The kinds of cards about the books: entries, bank lines, transfers, receipts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cleared.cards.kinds import SEEN, CardKind

ENTRY: Final = CardKind(
    "entry",
    "Entry to confirm",
    "",
    "An entry to confirm or correct.",
    "Confirming, correcting, rejecting or voiding the entry.",
    actions={"confirm": "Confirm as it is", "correct": "Correct the account", "reject": "Reject"},
    person_only=True,
)
LINE: Final = CardKind(
    "line",
    "Bank line on hold",
    "on hold",
    "A bank line that is held, not posted: its day is closed, its currency is another, or a script was not sure.",
    "Posting the line.",
    answers={"ignore": "The line is set aside for good."},
    actions={"correct": "Post it to an account"},
    person_only=True,
)
ADJUSTMENT: Final = CardKind(
    "adjustment",
    "Adjusting entry",
    "adjusting",
    "An entry that somebody proposes, such as your accountant.",
    "Approving or rejecting it.",
    actions={"confirm": "Post it as it is", "reject": "Reject: nothing is posted"},
    person_only=True,
)
NEAR_MATCH: Final = CardKind(
    "near_match",
    "Look-alike rows",
    "look-alikes",
    "A row looks like one that came before under another text or id.",
    "",
    answers={"different": "Both rows are right.", "seen": "Seen."},
)
REVISION: Final = CardKind(
    "revision",
    "Amount changed by the bank",
    "revision",
    "The bank changed the amount of a line it had reported. Both stay until somebody answers.",
    "",
    answers={
        "both": "They are two payments: both stay.",
        "replace": "The new amount counts: the entry of the earlier one is voided.",
        "keep": "The earlier amount counts, as the new row is of an older file: its entry is voided.",
    },
    person_only=True,
)
BALANCE_GAP: Final = CardKind(
    "balance_gap",
    "Gap in the balance",
    "gap",
    "The running balance jumps: rows are missing.",
    "An import of the rows that were missing.",
    answers=SEEN,
)
RECURRING: Final = CardKind(
    "recurring",
    "Odd monthly charge",
    "monthly",
    "A charge that comes every month did not come, came twice, or costs a fifth more.",
    "",
    answers={"seen": "Seen.", "stop": "Seen; say nothing of this payee's charges any more."},
)
TRANSFER: Final = CardKind(
    "transfer",
    "Perhaps a transfer",
    "transfer",
    "Two entries on two of your own accounts that look like both sides of one transfer.",
    "Decisions about both entries.",
    answers={"pair": "It is: both go through the clearing account.", "different": "They are two different things."},
)
RECEIPT: Final = CardKind(
    "receipt",
    "Receipt of an entry",
    "receipt",
    "A receipt that seems to belong to an entry, by amount and day.",
    "Linking the receipt, or removing it.",
    answers={"link": "It is the receipt of this entry.", "different": "It belongs to something else."},
)


def list_card_kinds() -> Sequence[CardKind]:
    """All of them, in the order in which they are defined."""
    return (ENTRY, LINE, ADJUSTMENT, NEAR_MATCH, REVISION, BALANCE_GAP, RECURRING, TRANSFER, RECEIPT)
