"""What the runtime asks of a domain, and nothing more.

A domain is a kind of records that agents work on: the books, tables. It has primitives, and it opens its records as of
a commit; what a run or decision stages on them becomes part of the one commit. It may say how its records stand, and
what takes back an act that ``cleared queue undo`` does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from msgspec import Struct

from cleared.base.effects import Effect
from cleared.base.errors import ClearedError
from cleared.base.file_source import FileSource
from cleared.domains.record_audit import RecordAudit, Violation
from cleared.domains.record_comparison import Record, RecordComparison
from cleared.git import Snapshot
from cleared.sandbox.header import HeaderKey
from cleared.workspace.location import Layout
from cleared.workspace.settings.model import Config

if TYPE_CHECKING:
    from cleared.domains.renamed_records import RenamedRecords

RunContext: TypeAlias = Any
"""The ``Context`` of a run or decision (``primitives.context``, which stands above this room)."""
RunHost: TypeAlias = Any
"""The ``Host`` of the open workspace (``changes.host``, which stands above this room)."""
RecordReview: TypeAlias = Any
"""A ``RecordReview`` (``review.record_review``, which stands above this room)."""
LessonSource: TypeAlias = Any
"""A ``LessonSource`` (``gate.improvements``, which stands above this room)."""
Lessons: TypeAlias = Any
"""``Lessons`` (``gate.improvements``, which stands above this room)."""
CardKind: TypeAlias = Any
"""A ``CardKind`` (``cards.kinds``, which stands above this room)."""
ShownCard: TypeAlias = Any
"""A ``Card`` (``cards.card``, which stands above this room)."""


Grant: TypeAlias = Any
"""A ``Grant`` (``primitives.registry.grants``, which stands above this room)."""


class Duty(Protocol):
    """What the service does for a domain from time to time, between the deliveries."""

    @property
    def due_at(self) -> datetime | None:
        """When to look again; None: whenever the service has something to do."""

    def perform_if_due(self, host: RunHost, now: datetime) -> None:
        """Do what is due. Raises ``ClearedError`` or ``OSError`` where the workspace cannot be used."""

    def notice_commit(self) -> None:
        """There was a commit since the last step."""

    def handle_clock_set_back(self, now: datetime) -> None:
        """What was planned would wait longer: plan it anew."""


class TakenFile(Protocol):
    """A file that a run takes out of the drop folder."""

    @property
    def data(self) -> bytes: ...
    @property
    def sha256(self) -> str: ...
    @property
    def processed_as(self) -> str | None:
        """The path where it lies afterwards."""


class ImportedFile(Struct, frozen=True):
    """A file of the drop folder that a run or decision took in, as the records of a domain say."""

    name: str
    """Its name in the drop folder."""
    sha256: str
    imported_by: str
    """The id of the run or decision."""
    description: Mapping[str, str]
    """How the event ``import.new`` describes it."""


class DraftDescription(Struct, frozen=True):
    """What a draft would do to the records of a domain, in values that JSON takes."""

    records: Mapping[str, Mapping[str, Any]] = {}
    """The records that it adds, as they would be, by their id; in the order in which they were staged."""
    statuses: Mapping[str, str] = {}
    """Committed record → the status that it gets."""
    set_aside: Mapping[str, str] = {}
    """What was read and becomes no record (a line of a file) → what becomes of it."""


class Staged(Protocol):
    """The records of a domain as of one commit, and what is staged on them. What derives from it says only what its
    domain has."""

    @property
    def has_changes(self) -> bool:
        """Whether the draft would change anything of the domain."""

    def draft_key(self) -> object:
        """Equal for two states of the draft only where nothing was staged in between."""

    def describe_draft(self) -> DraftDescription:
        """What the draft would do: what ``agent run --json`` prints, dry runs compare and cards show."""

    def adopt_later(self, source: FileSource) -> None:
        """Take in what a later commit has that scripts may name, such as accounts, beside what is there: a dry run over
        the past may be of a script that is newer."""
        return None

    def stage_questions(self, context: RunContext) -> None:
        """Stage a card about each record that the script leaves to a person without asking; at the end of each run,
        dry ones too, so that what waits for a person is always asked."""
        return None

    def renew_questions(self, context: RunContext, snapshot: Snapshot, *, settles: bool) -> None:
        """Stage a card about whatever waits for a person in a commit and no card asks about any more, as git may have
        taken back what was decided. ``settles``: a person decides it, so cards of what is gone are settled, too."""
        return None

    def stage_findings(self, context: RunContext) -> None:
        """Stage a card for whatever a person should look at in what the run has taken in; at the end of each run that
        is kept. It stops no run."""
        return None

    def list_effects(self) -> list[Effect]:
        """What the draft does that may take a reviewer's right, or two reviewers."""
        return []

    def find_answered_cards(self, context: RunContext) -> Iterable[tuple[str, str]]:
        """The ids of open cards that are answered by what this run takes in or refuses, each with the answer. Only
        where that is certain."""
        return ()

    def complete_draft(self, context: RunContext, snapshot: Snapshot, *, stays_open: bool) -> None:
        """Stage what follows from a draft that is in order, just before its commit. ``snapshot``: the commit that it
        builds on. ``stays_open``: whether the program goes on after it, so that what is opened is worth keeping."""
        return None

    def find_violations(self) -> list[Violation]:
        """What is wrong with the records together with the draft."""

    def render_files(self, run_id: str) -> Mapping[str, bytes | None]:
        """What the draft makes of the domain's files: path → content (None: deleted), only what differs."""

    def taken_files(self) -> Mapping[str, TakenFile]:
        """The files that leave the drop folder with this draft, by the path where they lie."""
        return {}

    def verify_files(self) -> None:
        """Raises ``PrimitiveError`` where a file that the draft was made from is another by now."""
        return None

    def count_waiting_bytes(self) -> int:
        """How large the files together are that a run has to read."""
        return 0

    def statements(self) -> Mapping[str, object]:
        """What the attestation of the commit says of the draft beside its files; empty values are left out."""
        return {}


class Opening(Struct, frozen=True):
    """What the records of a domain are opened from. ``stage_card`` stages a card (kind, key, title, **details)."""

    layout: Layout
    source: FileSource
    has_file: Callable[[str], bool]
    """Whether the commit has a file, a symbolic link or a submodule at a path."""
    today: date
    stage_card: Callable[..., object]
    find_doubt: Callable[[str], str]
    """Why the definition at a path of the commit does not count here (``RecordAudit.is_definition``); empty where it
    does: its text is one that a person has approved."""
    drop_folder: Path | None = None
    """Stands in for ``import/``."""
    only: frozenset[str] | None = None
    """The files of the drop folder that can be seen; None: all."""


def import_when_called(reference: str) -> Callable[..., Any]:
    """The function that ``module:name`` names: imported when it is first called, as naming a domain costs nothing."""

    def call(*args: Any) -> Any:
        module, _, name = reference.partition(":")
        return getattr(import_module(module), name)(*args)

    return call


class Domain(Struct, frozen=True):
    """One domain, as the runtime knows it: what stands first it must have, the rest where it has such. Modules are
    named, and imported when they are used."""

    name: str
    about: str
    record_noun: tuple[str, str]
    """What one of its records is called, and several: ``("entry", "entries")``. JSON lists them under the latter."""
    open: Callable[[Opening], Staged]
    opens_late: bool = False
    """Whether a draft that uses none of its primitives has nothing to do with it, not even a check."""

    primitive_modules: Sequence[str] = ()
    """Where its primitives are declared."""
    list_grants: Callable[[], Sequence[Grant]] = tuple
    """The grants that they name, beside those of the runtime."""
    list_header_keys: Callable[[], Sequence[HeaderKey]] = tuple
    """What a script's header may say about its records, such as a budget; primitives find the values in
    ``ctx.permissions.header_values``."""
    lint_modules: Sequence[str] = ()
    """Where rules about its scripts are declared, as ``RULES``."""
    operation_modules: Sequence[str] = ()
    """Where what programs may ask of it is declared, as ``OPERATIONS``."""
    job_type_modules: Sequence[str] = ()
    """Where its types of jobs are declared, as ``JOB_TYPES``."""

    count_records: Callable[[RunHost], int] = lambda _: 0
    """How many records the last commit has. Raises ``WorkspaceError`` where they cannot be read."""
    record_schema: Callable[[], Mapping[str, Any]] = lambda: {"type": "object"}
    """JSON Schema of one of its records, as drafts describe them."""
    describe_number: Callable[[Iterable[Record]], str] = lambda _: ""
    """How many of its records there are, in words: ``3 rows of prices change``; empty: their number and noun."""
    comparison: Callable[[], RecordComparison] = RecordComparison
    """How its records are compared and shown."""
    audit: Callable[[Layout], RecordAudit] = RecordAudit
    """How its records are judged, in any commit and in the working tree."""
    latest_rows: Mapping[str, Sequence[int]] = {}
    """The names of its files of which, of all rows about the same, the last counts; with the columns that say what a
    row is about, from 0 on: none where all are about the same. It holds of the files of months, too:
    ``name-YYYY-MM.csv``."""
    list_checks: Callable[[], Mapping[str, str]] = dict
    """What holds of its records, by the names of the checks, beside what holds of all (``record_audit``)."""
    list_acts: Callable[[], Sequence[Act]] = tuple
    """How decisions about its records are taken back where ``cleared queue undo`` does not."""
    review: Callable[[], RecordReview] | None = None
    """How its records are decided about, shown, taken back and explained; None: not at all."""
    read_outcomes: Callable[[RunHost, Snapshot], Mapping[str, RecordOutcome]] = lambda *_: {}
    """What became of the records that scripts made, by their ids. Raises ``WorkspaceError``."""
    find_lessons: Callable[[LessonSource], Lessons] | None = None
    """What its agents could do better, as persons decided; None: nothing is learned. Raises ``WorkspaceError``."""
    describe_rows: Callable[[str, str, str, Config, Mapping[str, str]], Sequence[str]] = lambda *_: ()
    """What a change of a script says in words, a sentence each: given its path, it before and after, the settings, and
    names of what records may be about. None where anything else differs than rows of a table that it knows."""
    list_card_kinds: Callable[[], Sequence[CardKind]] = tuple
    """The kinds of its cards, beside those that are in ``cards.kinds``."""
    open_card_facts: Callable[[Layout, Snapshot, bool], Callable[[ShownCard], ShownCard]] = lambda *_: lambda card: card
    """Opens the records of a commit. What it gives puts into an open card what they say of what it is about: anybody
    who can push may have written the card. The flag: whether the process stays, and may keep what was read."""
    make_duties: Callable[[Callable[..., None]], Sequence[Duty]] = lambda _: ()
    """What the service does for it, in the name of ``actors``; made once for a workspace. It is given the service's
    log: called with the name of what happened, a sentence, and ``level=``."""

    redo: Callable[[RunContext, FileSource, FileSource, RenamedRecords], Collection[str]] = lambda *_: ()
    """Stages on the records of one commit what a run or decision did on another one, given the files before and after
    it; which files that is all of. Records that get other ids are noted. Raises ``WorkConflict`` where it would mean
    something else here, and ``PrimitiveError`` where it is not possible any more."""
    join_file: Callable[..., bytes | None] = lambda *_: None
    """A file that a person's act or hand changed, as it is to be beside what others did: given the layout, the records
    of a commit that has theirs, its path, and it before and after the act, and theirs. None for a file of another sort.
    Raises ``WorkConflict`` where both changed the same part of it, or it would not fit."""

    actors: Sequence[str] = ()
    """Who its duties decide as, where no person does: ``cleared queue undo`` passes over what they did."""

    standing_name: str = ""
    """What programs call the rows of ``read_standing``; empty where it has nothing to say."""
    read_standing: Callable[[RunHost], Standing] = lambda _: Standing()
    """How its records stand: for the first message of a month. Raises ``ClearedError`` where they cannot be read."""

    read_imported_files: Callable[[FileSource, Layout], Sequence[ImportedFile]] = lambda *_: ()
    """The files that were taken in up to a commit, oldest first. Raises ``WorkspaceError`` for damaged records."""
    find_sample_time: Callable[[Layout, FileSource, datetime], datetime] = lambda _layout, _source, now: now
    """At which time sample files can be taken in by the records of a commit: the given one, or a later one."""
    make_sample_files: Callable[[Config, date], Mapping[str, bytes]] = lambda *_: {}
    """Made-up files of the days before this one, for dry runs: name in the drop folder → bytes."""
    make_probe_files: Callable[[Config, date, Sequence[str], Sequence[Decimal]], Mapping[str, bytes]] = lambda *_: {}
    """Made-up files of the day before this one with these texts and amounts, as ``make_sample_files``: they show what a
    new condition of a script would do where no file of the past met it."""
    find_setting_faults: Callable[[Layout, Config, FileSource], Mapping[str, ClearedError]] = lambda *_: {}
    """The settings that cannot hold beside its records: key → why. They are refused when they are to be approved."""
    read_lint_facts: Callable[[Layout, FileSource], object] = lambda *_: None
    """What the lint rules look things up in, such as the accounts that there are; they find it by the domain's name."""


class DraftParts(dict[str, Staged]):
    """What is staged of each domain, by its name: of one that opens late, once it is used."""

    def __init__(self, opening: Opening, domains: Iterable[Domain]) -> None:
        self._opening = opening
        self._late = {domain.name: domain.open for domain in domains if domain.opens_late}
        super().__init__((each.name, each.open(opening)) for each in domains if not each.opens_late)

    def __missing__(self, name: str) -> Staged:
        part = self[name] = self._late[name](self._opening)
        return part


class RecordOutcome(Struct, frozen=True):
    """How sure a script was of a record, from 0 to 1, and what a person decided about it."""

    confidence: Decimal
    agreed: bool | None
    """Whether it stayed as the script had it; None: no person has decided about it."""


class Standing(Struct, frozen=True):
    """``heading`` and ``lines`` are for people, ``rows`` the same for programs; by itself there is nothing to say."""

    heading: str = ""
    lines: Sequence[str] = ()
    rows: Sequence[Mapping[str, Any]] = ()


IsReversed: TypeAlias = Callable[[Layout, FileSource, FileSource], bool]
"""Given the files as the act left them, and as they are now. Raises ``WorkspaceError`` where they cannot be read."""


class WayBack(Struct, frozen=True):
    """``name``: of what was acted on, among acts of one ``kind``. ``remedy``: the command; empty where this act itself
    took back another one of that kind and name, or is none that a person made."""

    kind: str
    name: str
    remedy: str
    is_about_records: bool = False
    """Whether decisions before it rest on the records as it left them."""
    is_reversed: IsReversed | None = None
    """Whether it is taken back already, though no act after it says so; None: then it is not."""


class Act(Struct, frozen=True):
    """One sort of act. The groups of ``pattern``, which begins the first line of its commit, are its name."""

    pattern: str
    kind: str
    remedy: str
    is_about_records: bool = False
    is_reversed: IsReversed | None = None


def match_act(acts: Iterable[Act], subject: str) -> WayBack | None:
    """The way back of the first act that a commit's first line fits; None where it fits none."""
    for act in acts:
        if match := re.match(act.pattern, subject):
            return WayBack(act.kind, " ".join(match.groups()), act.remedy, act.is_about_records, act.is_reversed)
    return None
