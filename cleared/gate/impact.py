"""Impact: what another version of a script would have done on your own books.

Both versions have a dry run over each past run of the agent, on the books as they stood before it and the files it
took. Records are paired as their domain says (entries by the bank line that they post), else by their place among
equals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from cleared.base.terminal import count_noun
from cleared.domains.installed_domains import count_records, load_comparisons
from cleared.domains.record_comparison import Record, RecordComparison
from cleared.gate.dry_run import DryRun
from cleared.gate.past_runs import DryRunInput
from cleared.gate.run_outputs import KINDS

Names = Mapping[str, Mapping[str, str]]
_MOST_OUTPUTS: Final = 5
"""Of one kind, that differ from each other."""


class Impact(Struct):
    """How two versions differ over past runs. ``entries`` holds every difference, oldest run first."""

    runs: int = 0
    not_comparable: list[str] = []
    """Runs whose input is not in the repository, and those that fail today with both versions."""
    entries: list[dict[str, Any]] = []
    records: Counter[str] = field(default_factory=Counter)
    """What they are called (``entries``) → how many of them differ."""
    before: Counter[str] = field(default_factory=Counter)
    """Entries by status, and cards, of the one version."""
    after: Counter[str] = field(default_factory=Counter)
    calls_before: Counter[str] = field(default_factory=Counter)
    calls_after: Counter[str] = field(default_factory=Counter)
    failed: list[str] = []
    """Runs the new version fails where the old one did not, with the reason."""
    outputs: list[dict[str, Any]] = []
    """What else a person would see otherwise (``run_outputs``): each difference once, with its number of runs;
    ``more``: in how many further runs it was another one that is not shown."""

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
            "outputs": self.outputs,
            "before": dict(self.before),
            "after": dict(self.after),
            "new_primitives": sorted(set(self.calls_after) - set(self.calls_before)),
            "calls": {"before": dict(self.calls_before), "after": dict(self.calls_after)},
        }

    def add_run(
        self, occasion: DryRunInput, ids: Mapping[str, str], old: DryRun, new: DryRun, names: Names | None = None
    ) -> None:
        """Compare the two dry runs over one past run. ``ids``: key of a record → the id that it really got; ``names``:
        of what records may be about (``name_references``), for words that people read."""
        if old.error is not None and new.error is not None:
            self.not_comparable.append(occasion.run or occasion.label)
            return
        self.runs += 1
        for counts, rehearsal in ((self.before, old), (self.after, new)):
            counts.update(rehearsal.count_statuses())
            counts["cards"] += len(rehearsal.cards)
        self.calls_before.update(old.calls)
        self.calls_after.update(new.calls)
        if new.error is not None and old.error is None:
            self.failed.append(f"{occasion.label}: {new.error}")
        for name, comparison in load_comparisons().items():
            found = (old.records.get(name, ()), new.records.get(name, ()))
            entries = [*_compare_records(comparison, *found, (names or {}).get(name, {}))]
            run = occasion.label.rsplit(" ", 1)[-1]
            self.entries += [{"run": run, "noun": name, "entry_id": ids.get(key), **entry} for key, entry in entries]
            self.records[name] += len(entries)
        self._add_outputs(old.outputs, new.outputs)

    def _add_outputs(self, old: Mapping[str, Sequence[str]], new: Mapping[str, Sequence[str]]) -> None:
        for kind in KINDS:
            before, after = list(old.get(kind, ())), list(new.get(kind, ()))
            if before == after:
                continue
            difference = {"kind": kind, "before": before, "after": after}
            known = next((each for each in self.outputs if difference.items() <= each.items()), None)
            if known is not None:
                known["runs"] += 1
            else:
                mine = [each for each in self.outputs if each["kind"] == kind]
                if len(mine) < _MOST_OUTPUTS:
                    self.outputs.append({**difference, "runs": 1, "more": 0})
                else:
                    mine[-1]["more"] += 1

    def add_agent(self, other: Impact, agent: str) -> None:
        """Add the differences of another agent."""
        self.runs += other.runs
        self.not_comparable += other.not_comparable
        self.entries += [{"agent": agent, **e} for e in other.entries]
        self.outputs += [{"agent": agent, **each} for each in other.outputs]
        self.failed += other.failed
        self.records.update(other.records)
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
    """What differs of a record, in words: ``status confirmed, no counterparty``."""
    return ", ".join(f"{k} {v}" if v else f"no {k}" for k, v in values.items()) if values else "nothing"


def example_line(entry: Mapping[str, Any]) -> str:
    """One difference, as a line."""
    what = entry["entry_id"] or entry["change"]
    was, becomes = describe_sides(entry)
    return (
        f"  {what}  {entry['date']}  {entry['amount']}  {str(entry['description'])[:50]}: "
        f"{was or 'nothing'} → {becomes or 'nothing'}"
    )


def group_effects(entries: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Differences of one agent that are alike, the largest group first."""
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for entry in entries:
        key = (str(entry.get("agent", "")), str(entry.get("noun", "")), entry["change"], str(entry.get("group", "")))
        groups.setdefault(key, []).append(entry)
    return sorted(groups.values(), key=len, reverse=True)


def name_group(members: Sequence[Mapping[str, Any]]) -> str:
    """``3 entries: 5010 becomes 5020``: how many of a group there are, and what is alike in them."""
    first = members[0]
    return f"{count_records({str(first.get('noun', '')): len(members)})}: {first.get('group') or first['change']}"


def describe_sides(entry: Mapping[str, Any]) -> tuple[str, str]:
    """The record before and after; in words of its domain, where it was compared by this version of the program."""
    was, becomes = (str(entry.get(key) or "") for key in ("was", "becomes"))
    if was or becomes:
        return was, becomes
    before, after = (describe_values(entry[key]) if entry[key] else "" for key in ("before", "after"))
    return before, after


def _compare_records(
    comparison: RecordComparison, old: Iterable[Record], new: Iterable[Record], names: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The key of each record that differs, and how."""
    olds, news = _key_records(comparison, old), _key_records(comparison, new)
    for key in [*olds, *(k for k in news if k not in olds)]:
        a, b = olds.get(key), news.get(key)
        if a == b:
            continue
        present = b or a
        assert present is not None
        words = comparison.describe_difference(a, b, names)
        was, becomes = (comparison.flatten(each) if each else None for each in (a, b))
        yield (
            key[0],
            {
                "change": "changed" if a and b else "removed" if a else "added",
                **comparison.summarise(present).heading,
                "before": _differing_values(comparison, was, becomes),
                "after": _differing_values(comparison, becomes, was),
                "group": words.group,
                "was": words.before,
                "becomes": words.after,
            },
        )


def _key_records(comparison: RecordComparison, records: Iterable[Record]) -> dict[tuple[str, int], Record]:
    seen: Counter[str] = Counter()
    out = {}
    for record in records:
        name = comparison.summarise(record).key
        out[(name, seen[name])] = record
        seen[name] += 1
    return out


def _differing_values(
    comparison: RecordComparison, mine: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None
) -> dict[str, Any] | None:
    """What differs of a record, flat; all that is shown where there is no other."""
    if mine is None or theirs is None:
        return {k: v for k, v in mine.items() if k in comparison.shown_fields and v is not None} if mine else None
    return {k: v for k, v in mine.items() if theirs[k] != v}
