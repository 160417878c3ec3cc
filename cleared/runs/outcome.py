"""How a run ended, as values: what ``agent run --json`` prints and the trace keeps; and what it leaves beside its
commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct, field

from cleared.base.errors import ClearedError, ExitCode
from cleared.base.json_values import to_json
from cleared.cards.card import Card
from cleared.changes.host import Host
from cleared.domains.installed_domains import Records, no_records
from cleared.primitives.ctx import NOTIFY_SEND_EVENT

Status = Literal["succeeded", "failed", "dry_run", "interrupted", "waiting"]
MADE: Final = "made"
"""What the attestation of a run calls how many records it added, in digits: 0 says so, too."""


class RunError(Struct):
    """Why a run failed. ``line`` is the script's line, ``primitive`` the call that was refused, if one was."""

    type: str
    message: str
    line: int | None = None
    primitive: str | None = None
    remedy: str | None = None
    file: str | None = None
    traceback: str | None = None
    is_of_script: bool = False
    """Whether the script is at fault, and no limit, model or machine: tried again, it fails again."""

    def __str__(self) -> str:
        return f"{self.cause} {self.remedy}" if self.remedy else self.cause

    @property
    def cause(self) -> str:
        """Place and message: words of the script, or of what it read, as well as the host's."""
        where = f"{self.file}:{self.line}: " if self.file and self.line else ""
        return f"{where}{self.full_message.rstrip('.')}."

    @property
    def full_message(self) -> str:
        """The message, which names the primitive once where a call was refused."""
        named = not self.primitive or self.message.startswith(self.primitive)
        return self.message if named else f"{self.primitive}: {self.message}"

    def to_json_object(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "message": self.message,
            "file": self.file,
            "line": self.line,
            "primitive": self.primitive,
            "remedy": self.remedy,
        }


class RunResult(Struct):
    """One ended run."""

    run_id: str
    agent: str
    status: Status
    result: Any = None
    commits: list[str] = []
    records: Records = field(default_factory=no_records)
    """What it added."""
    cards: list[Card] = []
    events: list[Mapping[str, Any]] = []
    duration_ms: int = 0
    error: RunError | None = None
    message: str | None = None
    """The commit's first line."""
    warnings: list[str] = []
    edited: list[str] = []
    """Scripts that ran as committed while their working copies were others."""

    @property
    def messages(self) -> list[Mapping[str, Any]]:
        """What it sends with ``notify_send`` once it is committed; of a dry run, what it would send."""
        return [event["payload"] for event in self.events if event["name"] == NOTIFY_SEND_EVENT]

    @property
    def exit_code(self) -> ExitCode:
        return {"failed": ExitCode.FAILED, "interrupted": ExitCode.INTERRUPTED}.get(self.status, ExitCode.DONE)

    def to_json_object(self) -> dict[str, Any]:
        """The one object of ``--json``."""
        from cleared.cards.card_json import card_to_json

        return {
            "run_id": self.run_id,
            "agent": self.agent,
            "status": self.status,
            "result": to_json(self.result),
            "commits": self.commits,
            **{name: list(records.values()) for name, records in self.records.items()},
            "cards": [card_to_json(c) for c in self.cards],
            "messages": to_json(self.messages),
            "duration_ms": self.duration_ms,
            "error": self.error.to_json_object() if self.error else None,
            "edited": self.edited,
            "warnings": self.warnings,
        }


def make_run_error(
    error: ClearedError, *, primitive: str | None = None, line: int | None = None, file: str | None = None
) -> RunError:
    """The error as a value. Where it is told by the script's ``line``, its own place (a line of a bank file, an
    argument) goes into the message."""
    place, message = error.place, error.message
    if line is not None and place is not None and (place.file or (place.field and place.field not in message)):
        message = f"{place}: {message}"
    return RunError(
        getattr(error, "type", type(error).__name__),
        message,
        line if line is not None else (place.line if place else None),
        primitive,
        error.remedy,
        file or (place.file if place else None),
    )


def wake_loop_of(host: Host) -> None:
    """Wake the loop, which finds in the commit what it was asked for; if it sleeps on, it will find it later."""
    from cleared.jobs.inbox import wake_loop
    from cleared.jobs.runtime_directory import own_runtime

    with contextlib.suppress(ClearedError, OSError):
        wake_loop(own_runtime(host.root, host.config))


@contextlib.contextmanager
def tolerate_lost_trace(host: Host) -> Iterator[None]:
    """The trace is operational: what keeps it from being written is said, and stops nothing."""
    import sqlite3

    try:
        yield
    except (OSError, sqlite3.Error, ClearedError) as e:
        host.show_message(f"the trace of this run could not be kept: {e}")
