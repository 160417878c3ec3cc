"""Impact: what another version of a script would have done on your own books.

Both versions have a dry run over each past run of the agent, on the books as they stood before it and the files it
took. Entries are paired by the bank line they post, else by their place among equals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cleared.base.terminal import count_noun
from cleared.gate.dry_run import DryRun
from cleared.gate.past_runs import DryRunInput

_FIELDS_SHOWN = ("status", "amount", "accounts", "description", "date", "counterparty", "confidence")


@dataclass(slots=True)
class Impact:
    """How two versions differ over past runs. ``entries`` holds every difference, oldest run first."""

    runs: int = 0
    not_comparable: list[str] = field(default_factory=list)
    """Runs whose input is not in the repository, and those that fail today with both versions."""
    entries: list[dict[str, Any]] = field(default_factory=list)
    before: Counter[str] = field(default_factory=Counter)
    """Entries by status, and cards, of the one version."""
    after: Counter[str] = field(default_factory=Counter)
    calls_before: Counter[str] = field(default_factory=Counter)
    calls_after: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    """Runs the new version fails where the old one did not, with the reason."""

    def count_changes(self, change: str) -> int:
        return sum(1 for e in self.entries if e["change"] == change)

    def to_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "changed": self.count_changes("changed"),
            "added": self.count_changes("added"),
            "removed": self.count_changes("removed"),
            "entries": self.entries,
            "not_comparable": self.not_comparable,
            "failed": self.failed,
            "before": dict(self.before),
            "after": dict(self.after),
            "new_primitives": sorted(set(self.calls_after) - set(self.calls_before)),
            "calls": {"before": dict(self.calls_before), "after": dict(self.calls_after)},
        }

    def add_run(self, occasion: DryRunInput, ids: Mapping[str, str], old: DryRun, new: DryRun) -> None:
        """Compare the two dry runs over one past run. ``ids``: bank line → the entry that was really posted for it."""
        if old.error is not None and new.error is not None:
            self.not_comparable.append(occasion.run or occasion.label)
            return
        self.runs += 1
        for counts, rehearsal in ((self.before, old), (self.after, new)):
            counts.update(str(e["status"]) for e in rehearsal.entries)
            counts["cards"] += len(rehearsal.cards)
        self.calls_before.update(old.calls)
        self.calls_after.update(new.calls)
        if new.error is not None and old.error is None:
            self.failed.append(f"{occasion.label}: {new.error}")
        olds, news = _key_entries(old.entries), _key_entries(new.entries)
        for key in [*olds, *(k for k in news if k not in olds)]:
            a, b = olds.get(key), news.get(key)
            if a == b:
                continue
            change = "changed" if a and b else "removed" if a else "added"
            present = b or a
            assert present is not None
            self.entries.append(
                {
                    "run": occasion.label.rsplit(" ", 1)[-1],
                    "change": change,
                    "entry_id": ids.get(key[0]),
                    "date": present["date"],
                    "description": present["description"],
                    "amount": present["amount"],
                    "before": _differing_values(a, b),
                    "after": _differing_values(b, a),
                }
            )

    def add_agent(self, other: Impact, agent: str) -> None:
        """Add the differences of another agent."""
        self.runs += other.runs
        self.not_comparable += other.not_comparable
        self.entries += [{"agent": agent, **e} for e in other.entries]
        self.failed += other.failed
        self.before.update(other.before)
        self.after.update(other.after)
        self.calls_before.update(other.calls_before)
        self.calls_after.update(other.calls_after)

    def find_warnings(self) -> list[str]:
        """What a person should read first: everything confirmed, or many more cards."""
        warnings = []
        confirmed = self.after["auto-confirmed"]
        if confirmed and not self.after["pending-review"] and self.before["pending-review"]:
            warnings.append(
                f"it confirms everything now: {count_noun(confirmed, 'entry', 'entries')}, none left for review"
            )
        if self.before["cards"] and self.after["cards"] >= 2 * self.before["cards"]:
            warnings.append(
                f"the review queue would double: {count_noun(self.before['cards'], 'card')} before, "
                f"{self.after['cards']} now"
            )
        return warnings


def describe_not_comparable(runs: Sequence[str]) -> str:
    """The same of ``not_comparable``, in one sentence."""
    return (
        f"{count_noun(len(runs), 'more run')} cannot be compared: the files are not in the repository, or both "
        "versions fail over them today."
    )


def describe_values(values: Mapping[str, Any] | None) -> str:
    """What differs of an entry, in words: ``status confirmed, no counterparty``."""
    return ", ".join(f"{k} {v}" if v else f"no {k}" for k, v in values.items()) if values else "nothing"


def _key_entries(entries: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], Mapping[str, Any]]:
    seen: Counter[str] = Counter()
    out = {}
    for entry in entries:
        name = str(entry["reference"] or f"{entry['date']} {entry['description']}")
        out[(name, seen[name])] = entry
        seen[name] += 1
    return out


def _differing_values(entry: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What differs of an entry; all that is shown where there is no other."""
    if entry is None:
        return None
    mine, theirs = _flatten_entry(entry), _flatten_entry(other) if other else {}
    return {
        k: v
        for k, v in mine.items()
        if (k in _FIELDS_SHOWN and theirs.get(k) != v) or (other is not None and theirs[k] != v)
    }


def _signed_amount(debit: object, credit: object) -> str:
    """What is debited as +, what is credited as -."""
    return f"-{credit}" if not str(debit).strip("0.") else f"+{debit}"


def _flatten_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    flat = {k: v for k, v in entry.items() if k != "lines"}
    flat["accounts"] = " ".join(f"{x['account_id']}:{_signed_amount(x['debit'], x['credit'])}" for x in entry["lines"])
    return flat
