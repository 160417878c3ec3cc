"""Balances of the bank that the books agreed with when a person reconciled (``books/bank/reconciliations.csv``).

Append-only: the last row of an account and day counts. What was agreed has to hold from then on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

from cleared.errors import Place, WorkspaceError
from cleared.ledger.csv_text import CsvDamage, format_record, read_records
from cleared.ledger.entry import ZERO, Entry, leg_suffix
from cleared.ledger.violations import Violation
from cleared.light_dataclass import dataclass
from cleared.schema import money

HEADER: Final = ("account_id", "date", "balance", "state", "by", "at", "reason")
AGREED, WITHDRAWN = "agreed", "withdrawn"


@dataclass(frozen=True, slots=True)
class AgreedBalance:
    """What an account of the ledger held at the end of a day, by the bank and by the books. ``state``: ``agreed``, or
    ``withdrawn`` with a ``reason``."""

    account: int
    day: date
    amount: Decimal
    by: str
    at: str
    state: str = AGREED
    reason: str = ""

    def to_csv(self) -> str:
        return format_record(
            (
                str(self.account), self.day.isoformat(), money.format_amount(self.amount), self.state, self.by, self.at,
                self.reason,
            )
        )  # fmt: skip


def parse_agreed_balances(data: bytes | None, file: str) -> list[AgreedBalance]:
    """Those that stand, by account and day. Raises ``WorkspaceError`` with the damaged line."""
    latest: dict[tuple[int, date], AgreedBalance] = {}
    try:
        for line, r in read_records(data, HEADER) if data is not None else ():
            try:
                made = AgreedBalance(int(r[0]), date.fromisoformat(r[1]), Decimal(r[2]), r[4], r[5], r[3], r[6])
            except (ValueError, InvalidOperation):
                made = None
            if made is None or made.state not in (AGREED, WITHDRAWN) or not made.amount.is_finite():
                raise _damage_error(file, line, "a reconciliation is not readable")
            latest[(made.account, made.day)] = made
    except CsvDamage as e:
        raise _damage_error(file, e.line, str(e)) from None
    standing = [each for each in latest.values() if each.state == AGREED]
    return sorted(standing, key=lambda each: (each.account, each.day))


def append_agreed_balances(data: bytes | None, balances: Iterable[AgreedBalance]) -> bytes:
    """The file with these at its end."""
    rows = "".join(each.to_csv() for each in balances)
    return (data if data is not None else format_record(HEADER).encode()) + rows.encode()


def _damage_error(file: str, line: int, message: str) -> WorkspaceError:
    return WorkspaceError(message, place=Place(file, line), remedy=f"Restore it: git checkout -- {file}")


class AgreementCheck:
    """Sums the books up to each agreed day, entry by entry, and says where they do not agree any more.

    A leg that posts a bank line counts on the line's day (``days``: line id → day), any other on its entry's.
    """

    def __init__(
        self,
        agreed: Iterable[AgreedBalance],
        matches: Mapping[str, list[tuple[str, Decimal]]],
        days: Mapping[str, date],
    ) -> None:
        self._by_account: dict[int, list[AgreedBalance]] = {}
        for each in agreed:
            self._by_account.setdefault(each.account, []).append(each)
        self._sums = {account: [ZERO] * len(each) for account, each in self._by_account.items()}
        self._day_of: dict[str, date] = {}
        if self._by_account:
            self._day_of = {leg: days[line] for line, legs in matches.items() if line in days for leg, _ in legs}

    def add_entry(self, entry: Entry) -> None:
        """Count one entry, voided ones and reversals too."""
        for i, leg in enumerate(entry.legs):
            agreed = self._by_account.get(leg.account_id)
            if agreed:
                day = self._day_of.get(entry.entry_id + leg_suffix(i), entry.date)
                place = bisect_left(agreed, day, key=lambda each: each.day)
                if place < len(agreed):
                    self._sums[leg.account_id][place] += leg.amount

    def list_violations(self, file: str) -> list[Violation]:
        """A violation for each balance that does not hold any more."""
        violations = []
        for account, agreed in self._by_account.items():
            booked = ZERO
            for each, moved in zip(agreed, self._sums[account], strict=True):
                booked += moved
                if booked != each.amount:
                    stated = money.format_amount(each.amount)
                    violations.append(
                        Violation(
                            "reconciled",
                            f"{account} was reconciled on {each.day} by {each.by} ({stated}); "
                            f"the books have {money.format_amount(booked)} now",
                            f"Find what changed (cleared reconcile {account} --date {each.day} --balance "
                            f"{stated}), or withdraw it: --withdraw REASON.",
                            Place(file), account_id=account,
                        )
                    )  # fmt: skip
        return violations
