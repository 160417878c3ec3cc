"""How a domain judges its records wherever they lie: in a commit, between two commits, in the working tree.

What it finds are violations: values, listed all together. Faults are exceptions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from cleared.base.csv_text import split_rows
from cleared.base.effects import Effect
from cleared.base.errors import CheckFailed, Place, WorkspaceError
from cleared.base.file_source import FileSource
from cleared.base.short_text import list_lines
from cleared.base.terminal import count_noun
from cleared.git import Snapshot
from cleared.workspace.location import Layout

ASKED: Final = "asked"
"""The name of the check that ``cleared check --card`` mends: it opens the cards that are missing."""
CHECKS: Final = {
    "format": "The file is the CSV that cleared writes.",
    "unchanged": "What was committed does not change, but for a status, that one way only, and for the payee, tags and "
    "notes that a decision amends.",
    "provenance": "Every commit that touches records came through a run or a decision, or merges such and no more; "
    "every settled card was settled by one.",
    ASKED: "A card asks about whatever waits for a person, and about nothing that is gone.",
    "definition": "What says what records are, such as the columns of a table, is as a person approved it.",
    "approval": "What lies in `agents/approvals` is as it was made, and the settings' record is there.",
    "lost": "Nothing that was committed here has been taken out of the branch since.",
    "authority": "Since there are reviewers, every decision is one of theirs, and of two of them where it takes two.",
}
"""What holds of the records of every domain, by the names of the checks; each domain has more."""
TWO_CLONES_PAGE: Final = "docs/howto/two-clones.md"
"""The page that says what to do where two clones have written the same thing."""


class Violation(Struct, frozen=True):
    """One thing wrong with the records."""

    check: str
    message: str
    remedy: str
    place: Place | None = None
    record_id: str | None = None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place and str(self.place) else ""
        record = f"{self.record_id}: " if self.record_id else ""
        return f"{where}{record}{self.message}. {self.remedy}"


def describe_error(error: WorkspaceError, check: str = "format") -> Violation:
    """That a file cannot be read."""
    return Violation(check, error.message, error.remedy or "Restore the file.", error.place)


class RecordsViolated(CheckFailed):
    """What was to be committed breaks invariants of the records; nothing was."""

    def __init__(self, violations: list[Violation]) -> None:
        shown = list_lines([f"- [{v.check}] {v}" for v in violations], 20)
        count = count_noun(len(violations), "invariant is", "invariants are")
        super().__init__("\n  ".join([f"{count} violated; nothing was committed:", *shown]))
        self.violations = violations


NamedRow = tuple[tuple[str, ...], str]
"""The values that tell a row from others of its kind, and its id."""


class RowKind(Struct, frozen=True):
    """One kind of rows that stay once they are committed: that a branch has lost some is told, and they come back."""

    key: str
    """Its name in JSON and in what this machine remembers: ``entries``."""
    noun: tuple[str, str]
    """What one is called in messages, and several: ``("bank line", "bank lines")``."""
    read_rows: Callable[[str], Iterable[NamedRow]]
    """The rows in the text of a file, as far as they can be read. Ids that a second import gives anew are not among
    the values, nor is what may change later."""
    label: str = ""
    """What stands before a list of their ids; empty: the noun."""
    counted_as: str = ""
    """What is said where only their number is known: ``rows of entries``; empty: it is not kept."""
    shows_ids: bool = False
    """Whether a message names some of them."""


class SharedFile(Struct, frozen=True):
    """A file of records to which people may add by hand; who alters what is there makes a decision of it."""

    path: str
    noun: str
    """What is in it: ``accounts``."""
    remedy: str
    """How it is altered: a sentence with the command."""
    describe_changes: Callable[[Snapshot, Snapshot], Sequence[str]]
    """What is altered or gone between two commits, in words each, the first of which names it; nothing where there is
    only more of it."""


class DefinitionChange(Struct, frozen=True):
    """What it does to approve another text of a definition."""

    lines: Sequence[str]
    """In words, for the person who is asked."""
    files: Mapping[str, bytes | None] = {}
    """What is committed with it: path → content (None: removed)."""


class RecordAudit:
    """The judge of one domain's records. By itself it finds nothing: a domain says more where it can."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    # -- states ---------------------------------------------------------------------------------------------------

    def check_records(self, source: FileSource, commit: Snapshot | None = None) -> list[Violation]:
        """What is wrong with the records in a source. ``commit``: the commit that it reads, where what was found of its
        files may be kept, and what was kept of them need not be read again. Raises ``WorkspaceError`` where a file
        cannot be read at all."""
        return []

    def check_edits(self, source: FileSource, committed: FileSource) -> list[Violation]:
        """What somebody has changed of committed records, by hand and not yet committed. Raises as
        ``check_records``."""
        return []

    def find_damage(self, source: FileSource) -> Iterable[Violation]:
        """What cannot be read of the files of a source that only runs read; of a commit's, ``check_history`` has it."""
        return ()

    def check_history(self, commit: Snapshot, since: Snapshot | None = None) -> Iterable[Violation]:
        """What commits up to this one did to the records without saying so, and no other check finds. ``since``: a
        commit up to which that was nothing."""
        return ()

    # -- changes --------------------------------------------------------------------------------------------------

    def list_effects(self, before: FileSource, after: FileSource, files: Collection[str]) -> list[Effect]:
        """What was done from one commit to another that may take a reviewer's right. ``files``: those that differ.
        Raises ``WorkspaceError`` where records cannot be read."""
        return []

    def name_decisions(self, files: Collection[str]) -> Iterable[str]:
        """What a commit that changes these files does that only a person may, beside its effects: ``closed or reopened
        a period``."""
        return ()

    # -- files ----------------------------------------------------------------------------------------------------

    @property
    def folders(self) -> Sequence[str]:
        """The folders of the working tree that belong to the records: only runs and decisions change files there."""
        return ()

    @property
    def shared_files(self) -> Sequence[SharedFile]:
        """The files to which people may add by hand."""
        return ()

    def is_record_file(self, path: str) -> bool:
        """Whether a file holds records of the domain, wherever it lies. Only runs and decisions change such."""
        return False

    def is_definition(self, path: str) -> bool:
        """Whether a file says what the records are, such as the columns of a table. People edit it; a text of it counts
        once a person has approved that, and no run changes it."""
        return False

    def describe_definition(
        self, path: str, before: bytes | None, after: bytes | None, source: FileSource
    ) -> DefinitionChange:
        """What another text of a definition does. ``before``: the approved text (None: there is none); ``after``: None
        where the file goes; ``source``: the records as they are. Raises ``UsageError`` or ``WorkspaceError`` for a text
        that cannot be."""
        return DefinitionChange(())

    def list_fixed_rows(self, path: str, data: bytes) -> list[bytes]:
        """The rows of a file without what may change in them."""
        return split_rows(data)

    # -- rows that stay -------------------------------------------------------------------------------------------

    @property
    def row_kinds(self) -> Sequence[RowKind]:
        """The kinds of rows that stay, in the order in which messages name them."""
        return ()

    def find_row_kind(self, path: str) -> RowKind | None:
        """What the rows of a file are; None where it has none that stay."""
        return None

    def list_roots(self, commit: Snapshot) -> Collection[str]:
        """The folders of a commit, below which files have rows that stay."""
        return ()
