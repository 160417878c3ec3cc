"""How the records of a domain are compared and shown, wherever they come from: drafts, dry runs, tests, commits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct

from cleared.base.file_source import FileSource
from cleared.workspace.location import Layout

Record = Mapping[str, Any]
"""A record in values that JSON takes, as ``DraftDescription`` has it; with or without its ids."""


class RecordSummary(Struct, frozen=True):
    """What a record is told apart and counted by."""

    key: str
    """Pairs it with the record of another dry run: what it was made from, such as a line of a file, else its words."""
    description: str = ""
    """What it is, in a few words."""
    date: str = ""
    """``YYYY-MM-DD``; empty where it is of no day."""
    amount: str = ""
    """As its digits; empty where it is about none."""
    status: str = ""
    """How it stands, in the domain's word, if it has any. ``pending-review``: it waits for a person;
    ``auto-confirmed``: it waits for nobody."""

    @property
    def heading(self) -> dict[str, str]:
        """What a list of differences shows of it."""
        return {"date": self.date, "description": self.description, "amount": self.amount}


class RecordDifference(Struct, frozen=True):
    """How a record would be another one, in words of its domain."""

    group: str
    """What happens to it, the same for the records that are said together: ``5030 Office → 5070 Meals, without asking
    you``. Stands after their number."""
    before: str = ""
    """The record as it was, in a cell of a table; empty where there was none."""
    after: str = ""


_VERBS: Final = {(False, True): "new", (True, False): "no more", (True, True): "changed"}
"""Whether there was one, and is one → what happens to it, where a domain has no other words."""
_HOW: Final = {"pending-review": "asks you", "auto-confirmed": "without asking you"}
"""Status of a record → what it means to a person."""


_CHANGES: Final = {"pending-review": "and you are asked", "auto-confirmed": "and you are no longer asked"}


def describe_status_change(status: str) -> str:
    """What it means to a person that a record stands so from then on, and did not before: ``and you are asked``."""
    return _CHANGES.get(status, f"and is {status}")


def describe_status(status: str) -> str:
    """What it means to a person that a record stands so: ``asks you``; a domain's own word as it is."""
    return _HOW.get(status, status)


class RecordComparison:
    """What is compared of one domain's records. By itself it tells nothing apart: a domain says more where it can."""

    shown_fields: ClassVar[frozenset[str]] = frozenset()
    """Of ``flatten``: what is shown of a record that another dry run does not have."""
    correction_key: ClassVar[str] = ""
    """Under which a test holds what corrected records should have been; empty where records are not corrected."""

    def strip_ids(self, record: Record) -> Record:
        """The record without what differs each time though the same is meant."""
        return record

    def summarise(self, record: Record) -> RecordSummary:
        """Raises ``KeyError`` or ``TypeError`` for what is not a record: a file may hold anything."""
        return RecordSummary(str(dict(record)))

    def flatten(self, record: Record) -> Mapping[str, Any]:
        """The record as names and values, so that what differs can be said one by one. Raises as ``summarise``."""
        return record

    def list_references(self, record: Record) -> Collection[str]:
        """What a record is about, by the keys of ``name_references``: the accounts of an entry. Raises as
        ``summarise``."""
        return ()

    def name_references(self, layout: Layout, source: FileSource) -> Mapping[str, str]:
        """Whatever a script may name that decides where something goes, such as an account: as scripts write it → as
        people read it. Raises ``WorkspaceError`` where it cannot be read."""
        return {}

    def describe_difference(
        self, before: Record | None, after: Record | None, names: Mapping[str, str]
    ) -> RecordDifference:
        """How a record differs between two dry runs; one of the two may be None. ``names``: as ``name_references`` gave
        them. Raises as ``summarise``."""
        flat = [self.flatten(each) if each is not None else {} for each in (before, after)]
        differing = [name for name in dict.fromkeys((*flat[0], *flat[1])) if flat[0].get(name) != flat[1].get(name)]
        shown = [name for name in differing if name in self.shown_fields or (before and after)]
        cells = ["; ".join(f"{name} {each[name]}" for name in shown if each.get(name)) for each in flat]
        verb = _VERBS[(before is not None, after is not None)]
        return RecordDifference(f"{verb}: {', '.join(shown)}" if before and after and shown else verb, *cells)

    def find_ids(self, layout: Layout, source: FileSource) -> Mapping[str, str]:
        """``RecordSummary.key`` → the id of the record in a commit, as far as that is known."""
        return {}

    def read_added(
        self, layout: Layout, before: FileSource, after: FileSource, files: Collection[str]
    ) -> Mapping[str, Record]:
        """The records that came from one commit to another, by their ids. ``files``: those that differ."""
        return {}

    def read_standing(self, layout: Layout, source: FileSource, ids: Collection[str]) -> Mapping[str, Record]:
        """Of these records of a commit those that still count, in the order of ``ids``."""
        return {}

    def correct_records(
        self, layout: Layout, before: FileSource, after: FileSource, corrections: Mapping[str, int]
    ) -> tuple[Mapping[str, Any], str]:
        """What a test holds records to that a run should have made otherwise, and the month that it is filed under
        (``YYYY-MM``). ``corrections``: id → what it should have had, such as another account.

        Raises ``KeyError`` with an id that the run did not make, ``UsageError`` for a correction that cannot be.
        """
        raise KeyError(next(iter(corrections)))

    def check_correction(self, expected: Any) -> None:
        """Raises ``ValueError`` or ``TypeError`` for what ``correct_records`` never gives."""

    def describe_correction(self, expected: Any, names: Mapping[str, str]) -> list[str]:
        """What each corrected record should be, in words, one line each. ``names``: as ``name_references`` gave them.
        Raises as ``check_correction``."""
        return [str(expected)]

    def compare_correction(self, expected: Any, records: Sequence[Record]) -> list[str]:
        """How the records of a dry run differ from what they should have been, one sentence each."""
        return []
