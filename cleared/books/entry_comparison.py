"""Entries as dry runs, tests and roll-backs compare them. Of corrected ones only the legs count."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, ClassVar, Final

from cleared.base.errors import UsageError
from cleared.base.file_source import FileSource
from cleared.base.json_values import require_text
from cleared.base.short_text import join_words, quote_text
from cleared.books.ledger.entry import entry_to_json
from cleared.books.staged_books import ledger_accounts, open_books
from cleared.domains.record_comparison import (
    Record,
    RecordComparison,
    RecordDifference,
    RecordSummary,
    describe_status,
    describe_status_change,
)
from cleared.workspace.location import Layout

_TOLD: Final = ("date", "description", "amount", "reference")
"""Fields of which a difference is said whatever else differs."""
_LEG_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_PLAIN_NAME: Final = re.compile(r"[\w&'/ -]{1,60}")


def _quote_name(name: str) -> str:
    """An account's name; in quotation marks where it has more than words, so that it reads as none of ours."""
    is_plain = _PLAIN_NAME.fullmatch(name) and not any(unicodedata.category(letter) == "Lm" for letter in name)
    return name if is_plain else quote_text(name, 60)


class EntryComparison(RecordComparison):
    """Entries are paired by the bank line that they post, else by their words. A correction holds legs by bank line:
    ``{bank line: [[account, debit, credit], …]}``."""

    shown_fields: ClassVar = frozenset(
        ("status", "amount", "accounts", "description", "date", "counterparty", "confidence")
    )
    correction_key: ClassVar = "legs"

    def strip_ids(self, record: Record) -> Record:
        lines = [{key: value for key, value in line.items() if key != "leg_id"} for line in record["lines"]]
        return {**{key: value for key, value in record.items() if key != "entry_id"}, "lines": lines}

    def summarise(self, record: Record) -> RecordSummary:
        texts = {name: require_text(record[name]) for name in ("date", "description", "status", "amount")}
        return RecordSummary(str(record.get("reference") or f"{texts['date']} {texts['description']}"), **texts)

    def flatten(self, record: Record) -> Mapping[str, Any]:
        flat = {name: value for name, value in record.items() if name != "lines"}
        legs = [f"{x['account_id']}:{_signed_amount(x['debit'], x['credit'])}" for x in record["lines"]]
        return {**flat, "accounts": " ".join(legs)}

    def list_references(self, record: Record) -> Collection[str]:
        return [str(line["account_id"]) for line in record["lines"]]

    def name_references(self, layout: Layout, source: FileSource) -> Mapping[str, str]:
        books, _ = open_books(layout, source)
        return {
            str(a.account_id): f"{a.account_id} {_quote_name(a.account_name)}" for a in books.chart.accounts.values()
        }

    def describe_difference(
        self, before: Record | None, after: Record | None, names: Mapping[str, str]
    ) -> RecordDifference:
        """By the accounts that it moves from and to, and by whether it asks."""
        if before is None or after is None:
            only = after if after is not None else before
            assert only is not None
            verb = "" if before is None else "not booked any more: "
            words = f"{_describe_way(only, names)}, {describe_status(only['status'])}"
            more = [f"{name} {only[name]}" for name in ("counterparty", "confidence") if only[name]]
            cells = ["" if each is None else "; ".join((words, *more)) for each in (before, after)]
            return RecordDifference(f"{verb}{words}", *cells)
        old, new = (set(self.list_references(each)) for each in (before, after))
        away, to = (_name_accounts(each - other, names) for each, other in ((old, new), (new, old)))
        flat = [self.flatten(each) for each in (before, after)]
        others = [name for name in flat[0] if flat[0][name] != flat[1].get(name) and name not in ("accounts", "status")]
        group = [f"{away or 'nothing'} → {to or 'nothing'}"] if away or to else [_describe_way(after, names)]
        if _list_amounts(before) != _list_amounts(after):
            group.append("other amounts")
        now, then = after["status"], before["status"]
        if now != then:
            group.append(describe_status_change(now))
        # Who it is and how sure follows from another account or status; day, text and amount do not.
        unlike = [name for name in others if name in _TOLD or not (away or to or now != then)]
        if unlike:
            group.append(f"other {join_words(unlike)}")
        cells = []
        for record, accounts in ((before, away), (after, to)):
            said = (
                [accounts] if accounts else [_describe_legs_by_name(record, names)] if "other amounts" in group else []
            )
            said += [describe_status(record["status"])] if now != then else []
            cells.append("; ".join([*said, *(f"{n} {record[n]}" if record[n] else f"no {n}" for n in others)]))
        return RecordDifference(", ".join(group), *cells)

    def find_ids(self, layout: Layout, source: FileSource) -> Mapping[str, str]:
        _, bank = open_books(layout, source)
        return {line: pairs[0][0].rstrip(_LEG_LETTERS) for line, pairs in bank.matches.items()}

    def read_added(
        self, layout: Layout, before: FileSource, after: FileSource, files: Collection[str]
    ) -> Mapping[str, Record]:
        old, _ = open_books(layout, before)
        new, _ = open_books(layout, after)
        added: dict[str, Record] = {}
        for month in sorted({m for file in files if (m := new.paths.find_month(file)) is not None}):
            earlier = {entry.entry_id for entry in old.iter_entries(*month)}
            added |= {e.entry_id: entry_to_json(e) for e in new.iter_entries(*month) if e.entry_id not in earlier}
        return added

    def read_standing(self, layout: Layout, source: FileSource, ids: Collection[str]) -> Mapping[str, Record]:
        books, _ = open_books(layout, source)
        entries = [books.find_entry(entry_id) for entry_id in ids]
        return {e.entry_id: entry_to_json(e) for e in entries if e is not None and e.status != "voided"}

    def correct_records(
        self, layout: Layout, before: FileSource, after: FileSource, corrections: Mapping[str, int]
    ) -> tuple[Mapping[str, Any], str]:
        """The legs that entries should have had: the account given, in place of the one not of a bank."""
        books, bank = open_books(layout, after)
        earlier, _ = open_books(layout, before)
        banks = set(ledger_accounts(layout.config).values())
        legs, months = {}, set()
        for entry_id, account in corrections.items():
            entry = books.find_entry(entry_id)
            if entry is None or earlier.find_entry(entry_id) is not None:
                raise KeyError(entry_id)
            others = [leg for leg in entry.legs if leg.account_id not in banks]
            if len(others) != 1 or not entry.reference:
                raise UsageError(f"{entry_id} is not an entry of a bank line with one other account")
            why = books.chart.why_not_postable(account, entry.date)
            if why:
                raise UsageError(why[0], remedy=why[1])
            legs[entry.reference] = [
                [
                    account if line["account_id"] == others[0].account_id else line["account_id"],
                    line["debit"],
                    line["credit"],
                ]
                for line in entry_to_json(entry)["lines"]
            ]
            found = bank.find_line(entry.reference)
            months.add(f"{found[1].posted_date if found is not None else entry.date:%Y-%m}")
        return legs, min(months)

    def check_correction(self, expected: Any) -> None:
        for reference, legs in expected.items():
            require_text(reference)
            for account, debit, credit in legs:
                if type(account) is not int or not isinstance(debit, str) or not isinstance(credit, str):
                    raise ValueError("a leg is not [account, debit, credit]")

    def describe_correction(self, expected: Any, names: Mapping[str, str]) -> list[str]:
        legs = {
            line: [f"{names.get(str(a), a)} {_signed_amount(d, c)}" for a, d, c in expected[line]] for line in expected
        }
        return [f"bank line {line}: {', '.join(each)}" for line, each in legs.items()]

    def compare_correction(self, expected: Any, records: Sequence[Record]) -> list[str]:
        entries = {str(record["reference"]): record for record in records}
        differences = []
        for reference, legs in expected.items():
            entry = entries.get(reference)
            got = [[x["account_id"], x["debit"], x["credit"]] for x in entry["lines"]] if entry else None
            if got is None or _sum_by_account(got) != _sum_by_account(legs):
                shown = f"{entry['date']} {entry['description'][:60]}" if entry else f"bank line {reference}"
                differences.append(
                    f"{shown}: to be {_describe_legs(legs)}, but it is {_describe_legs(got) if got else 'not posted'}"
                )
        return differences


def _list_amounts(record: Record) -> list[str]:
    """What is moved, on whichever accounts."""
    return sorted(_signed_amount(line["debit"], line["credit"]) for line in record["lines"])


def _name_accounts(accounts: Iterable[str], names: Mapping[str, str]) -> str:
    return ", ".join(names.get(each, each) for each in sorted(accounts))


def _describe_way(record: Record, names: Mapping[str, str]) -> str:
    """``from 1010 Checking to 5070 Meals``."""
    sides: dict[str, set[str]] = {"from": set(), "to": set()}
    for line in record["lines"]:
        sides["to" if str(line["debit"]).strip("0.") else "from"].add(str(line["account_id"]))
    return " ".join(f"{side} {_name_accounts(accounts, names)}" for side, accounts in sides.items() if accounts)


def _describe_legs_by_name(record: Record, names: Mapping[str, str]) -> str:
    return ", ".join(
        f"{names.get(str(x['account_id']), x['account_id'])} {_signed_amount(x['debit'], x['credit'])}"
        for x in record["lines"]
    )


def _signed_amount(debit: object, credit: object) -> str:
    """What is debited as +, what is credited as -."""
    return f"-{credit}" if not str(debit).strip("0.") else f"+{debit}"


def _sum_by_account(legs: Iterable[Iterable[Any]]) -> dict[int, Decimal]:
    """Account → what is moved on it."""
    totals: dict[int, Decimal] = {}
    for account, debit, credit in legs:
        totals[account] = totals.get(account, Decimal(0)) + Decimal(str(debit)) - Decimal(str(credit))
    return {account: amount for account, amount in totals.items() if amount}


def _describe_legs(legs: Iterable[Iterable[Any]]) -> str:
    return ", ".join(f"{account} {'+' if str(d) not in ('0', '0.00', '') else '-'}" for account, d, _ in legs)
