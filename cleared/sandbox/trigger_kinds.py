"""The kinds of triggers: what can start an agent. This is the only list of them.

From it come the keys that a header may have and the check that a trigger and its key stand together (``header``), the
sentence on a proposal's card (``gate.proposals.change_text``), what ``cleared status`` lists, and the sample event of
a dry run (``gate.dry_run_inputs``). To add a kind, declare it here and write its source of deliveries
(``triggers.trigger_source``), which ``WorkspaceService.sources`` lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from msgspec import Struct

from cleared.base.short_text import join_words, quote_name
from cleared.sandbox import header_values


class TriggerHeader(Protocol):
    """What kinds of triggers read of a script's header (``header.Header``)."""

    @property
    def triggers(self) -> tuple[str, ...]: ...

    @property
    def timezone(self) -> str | None: ...

    def value_of(self, key: str) -> Any: ...


class TriggerKind(Struct, frozen=True):
    """One kind of trigger, as it is declared, read and shown."""

    name: str
    """What stands after ``trigger:`` in a header, in trailers and in records."""
    label: str
    """When agents with this kind run, in a list: "Runs …"."""
    describe: Callable[[TriggerHeader, str, datetime], str]
    """When the agent runs, for a sentence "It runs …", from its header, the workspace's time zone, and the time from
    which examples are given."""
    key: str = ""
    """The header's key that says which times, files or events; empty where none is needed."""
    read_key: header_values.Reader = header_values.read_words
    """Reads the value of ``key``. Raises ``BadValue``."""
    example: str = ""
    """A value of ``key``, for the finding that it is missing."""
    options: Mapping[str, header_values.Reader] = {}
    """Other keys of the header that are about this kind of trigger."""
    sample: str = ""
    """The one of ``options`` that gives the payload of the sample event of a dry run; empty where none does."""

    def values(self, header: TriggerHeader) -> tuple[str, ...]:
        """What the header says under ``key``."""
        value = header.value_of(self.key) if self.key else None
        if value is None:
            return ()
        return (value,) if isinstance(value, str) else tuple(value)

    def sample_payload(self, header: TriggerHeader) -> Any:
        """The payload of the sample event of a dry run, as the header says it; None where it says none."""
        return header.value_of(self.sample) if self.sample else None


def _describe_schedule(header: TriggerHeader, timezone: str, after: datetime) -> str:
    from cleared.sandbox.schedule_words import describe_schedule  # only cards say it

    return join_words([describe_schedule(each, header.timezone or timezone, after) for each in SCHEDULE.values(header)])


def _describe_watch(header: TriggerHeader, *_: object) -> str:
    return f"when a file is dropped into {join_words([*map(quote_name, FILE_WATCH.values(header))])}"


def _describe_event(header: TriggerHeader, *_: object) -> str:
    return f"after the event {join_words([*map(quote_name, EVENT.values(header))])}"


SCHEDULE: Final = TriggerKind(
    "schedule",
    "on a schedule",
    _describe_schedule,
    "schedule",
    header_values.read_cron,
    "0 6 * * *",
    {"timezone": header_values.read_timezone},
)
FILE_WATCH: Final = TriggerKind(
    "file_watch",
    "when a file is dropped",
    _describe_watch,
    "watch",
    header_values.read_paths,
    "import/*.csv",
)
EVENT: Final = TriggerKind(
    "event",
    "after an event",
    _describe_event,
    "event",
    header_values.read_event_names,
    "import.done",
)
WEBHOOK: Final = TriggerKind(
    "webhook",
    "when a program calls",
    lambda *_: "when a program that has its secret calls",
    options={"sample": header_values.read_json},
    sample="sample",
)
ON_DEMAND: Final = TriggerKind("on_demand", "when you start it", lambda *_: "when you start it")

TRIGGER_KINDS: Final = (SCHEDULE, FILE_WATCH, EVENT, WEBHOOK, ON_DEMAND)
TRIGGER_NAMES: Final = tuple(kind.name for kind in TRIGGER_KINDS)
KEYED_KINDS: Final = tuple(kind for kind in TRIGGER_KINDS if kind.key)


def kinds_of(header: TriggerHeader) -> tuple[TriggerKind, ...]:
    """The kinds that a header names, in its order."""
    return tuple(next(kind for kind in TRIGGER_KINDS if kind.name == name) for name in header.triggers)


def header_readers() -> dict[str, header_values.Reader]:
    """Header key → what reads its value, for all keys that are about triggers."""
    readers: dict[str, header_values.Reader] = {}
    for kind in TRIGGER_KINDS:
        readers |= {kind.key: kind.read_key} if kind.key else {}
        readers |= kind.options
    return readers
