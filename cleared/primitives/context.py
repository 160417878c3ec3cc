"""What a primitive works on: the run's view of the workspace, and the draft of what it wants to change.

Of the rows that it writes to the agent log the first and the last are kept whole, what is between is counted.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from typing import Any, Final

from msgspec import Struct, field

from cleared.base.bounds import MAX_LOG_BYTES, MAX_LOG_LAST, MAX_LOG_ROWS
from cleared.base.clock import format_iso
from cleared.base.errors import Place, PrimitiveError
from cleared.base.file_source import FileSource
from cleared.cards.card import Card, card_id
from cleared.cards.card_draft import VOID, CardDraft
from cleared.domains.domain import Staged, TakenFile
from cleared.primitives.loop_jobs import WorkspaceLoop
from cleared.primitives.model_requests import ModelAnswers
from cleared.primitives.registry.vocabulary import DecodingContext
from cleared.primitives.watched_files import WatchedFiles
from cleared.workspace.settings.model import Config

_LAST_BYTES: Final = 1 << 20


class LogRow(Struct):
    """What was done, and to which entry."""

    action: str
    details: str
    record_id: str = ""

    @property
    def size(self) -> int:
        return len(self.action) + len(self.details) + len(self.record_id)


class RunLog:
    """A run may make as many rows as it has time for; so many of them are kept."""

    def __init__(self, most: int = MAX_LOG_ROWS, last: int = MAX_LOG_LAST, size: int = MAX_LOG_BYTES) -> None:
        self._most, self._size = most - last, size - _LAST_BYTES
        self._first: list[LogRow] = []
        self._last: deque[LogRow] = deque()
        self._most_last, self._size_last = last, _LAST_BYTES
        self._left_out: Counter[str] = Counter()

    def add_row(self, row: LogRow) -> None:
        if not self._last and len(self._first) < self._most and self._size >= row.size:
            self._first.append(row)
            self._size -= row.size
            return
        self._last.append(row)
        self._size_last -= row.size
        while len(self._last) > self._most_last or (self._size_last < 0 and len(self._last) > 1):
            oldest = self._last.popleft()
            self._size_last += oldest.size
            self._left_out[oldest.action] += 1

    def __iter__(self) -> Iterator[LogRow]:
        yield from self._first
        if self._left_out:
            summary = ", ".join(f"{count} {action}" for action, count in self._left_out.most_common())
            yield LogRow("log", f"… {self._left_out.total()} more rows are not written out: {summary}")
        yield from self._last

    def copy_rows(self) -> RunLog:
        """Another log with these rows; more may be added to it."""
        made = RunLog()
        made._most, made._size, made._most_last, made._size_last = (
            self._most,
            self._size,
            self._most_last,
            self._size_last,
        )
        made._first, made._last, made._left_out = [*self._first], deque(self._last), Counter(self._left_out)
        return made


MAX_EVENTS: Final = 1_000


class Permissions(Struct):
    """What one script may do: what its header says, job types from its approval."""

    header_values: Mapping[str, Any] = {}
    """What the header says under keys that domains declare, such as budgets; none of it where it does not say so."""
    enqueue_grants: frozenset[str] = frozenset()
    """The job types that it may ask for, each as the grant ``loop_enqueue:KIND``."""


class HostCalls(Struct):
    """What a primitive asks of the program around the run."""

    show_log_line: Callable[[str], None]
    """Shows a line to whoever watches the run."""
    list_commits: Callable[[int], list[dict[str, Any]]]
    """The newest commits, for ``git_log``."""
    run_script: Callable[[str, Mapping[str, Any]], Any]
    """Runs a shared script in the same draft."""
    check_draft: Callable[[], None]
    """Raises ``RecordsViolated`` where base + draft breaks an invariant."""


class QuestionState(Struct):
    """The questions that this run asks, and what people have answered."""

    answers: Mapping[str, str] = {}
    """Question key → choice."""
    stops_to_ask: bool = False
    """Whether a question without an answer stops the run; else it takes its default, or the first choice."""
    asked_keys: list[str] = []
    """The keys of the questions that the run has come to."""


class Context(Struct):
    """What the primitives of one run work on.

    First what stands still during the run, then what it reads and stages (base + draft), then what it leaves behind.
    """

    run_id: str
    agent: str
    event: Mapping[str, Any]
    now: datetime
    today: date
    dry_run: bool
    config: Config
    env: DecodingContext
    host: HostCalls
    loop: WorkspaceLoop
    files: WatchedFiles

    source: FileSource
    """The files of the commit that the run builds on."""
    cards: CardDraft
    parts: dict[str, Staged] = {}
    """What is staged of each domain, by its name."""

    permissions: Permissions = field(default_factory=Permissions)
    questions: QuestionState = field(default_factory=QuestionState)
    model_answers: ModelAnswers = field(default_factory=ModelAnswers)
    log: RunLog = field(default_factory=RunLog)
    events: list[dict[str, Any]] = []
    commit_messages: list[str] = []
    attested: dict[str, object] = {}
    """What the attestation of the commit says beside all this, by name; empty values are left out."""

    @property
    def has_changes(self) -> bool:
        """Whether the draft would change anything."""
        settled = self.cards.added or self.cards.resolved or self.cards.went_on
        moved = self.cards.skipped or self.cards.brought_forward
        return bool(settled or moved or self.events) or any(part.has_changes for part in self.parts.values())

    def log_action(self, action: str, details: str, record_id: str = "") -> None:
        """A row for the agent log."""
        self.log.add_row(LogRow(action, details, record_id))

    def stage_event(self, name: str, payload: Any) -> None:
        if len(self.events) >= MAX_EVENTS:
            raise PrimitiveError(f"the run emitted more than {MAX_EVENTS} events", remedy="Emit one event for many.")
        if len(json.dumps(payload, default=str)) > 65_536:
            raise PrimitiveError("the event's payload is larger than 64 kB", remedy="Emit ids, not data.")
        self.events.append({"name": name, "payload": payload})

    def stage_card(
        self, kind: str, key: tuple[str, ...], title: str, *, record_id: str | None = None, **details: Any
    ) -> str:
        """Stage a card unless it was asked before; its id. What was void has been answered by nobody."""
        identity = card_id(kind, *key)
        while (known := self.cards.committed_cards.get(identity)) is not None and known.resolution == VOID:
            key = (*key, "again")
            identity = card_id(kind, *key)
        if known is None:
            at = format_iso(self.now)
            self.cards.add_card(Card(identity, kind, title, at, self.run_id, record_id, self.agent, details))
        return identity


def budget_error(key: str, what: str, allowed: object) -> PrimitiveError:
    """What a script gets that does more than ``key`` of its header allows."""
    return PrimitiveError(
        f"{what} is beyond the script's budget ({key}: {allowed})",
        place=Place(field=key),
        remedy=f"If it is meant, raise {key}: in the script's header.",
    )


def taken_files(context: Context) -> dict[str, TakenFile]:
    """The files that leave the drop folder with this draft, by the path where they lie."""
    return {path: file for part in context.parts.values() for path, file in part.taken_files().items()}
