"""What holds of the books, by the names of the checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

BOOK_CHECKS: Final = {
    "balanced": "1. The legs of one entry balance.",
    "one_side": "2. Each leg has exactly one of debit and credit.",
    "account_exists": "3. Every account exists and may be posted to.",
    "month": "4. Every date lies in its file's month.",
    "ids": "5. Entry ids are unique and contiguous in the month; legs run a, b, c …",
    "exact": "6. Amounts are exact decimals with the currency's places, positive and within bounds.",
    "lines_accounted": "7. Every bank line is posted, held for review or ignored with a reason.",
    "period_open": "8. Nothing new is dated inside a closed period.",
    "counts_once": "9. An entry, with what took it back and what stands in its place, counts once on every day, or "
    "not at all; so does a bank line.",
    "reconciled": "What the books once met still holds: balances that were reconciled, and those of bank files.",
    "receipts": "Kept receipts are the files that were filed, and the entries that they were given to are there.",
    "bank_files": "Imported bank files that git keeps are what was imported.",
}


def list_checks() -> Mapping[str, str]:
    """What holds of the books, by the names of the checks."""
    return BOOK_CHECKS
