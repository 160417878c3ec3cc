"""What follows on a piece of work by an engine, in AI cycles and tasks alike.

It waits for its account, cools down after failures in a row, ends at a cap, or goes on.

What is used is counted for both together, in ``.cleared/engine-spending.json``.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.changes.host import Host
from cleared.work.cycles.cycle_settings import CycleSettings
from cleared.work.cycles.usage_limit import UsageLimit
from cleared.workspace.location import Layout
from cleared.workspace.lock import writer_lock

_FILE: Final = "engine-spending.json"
_LOCK: Final = "engine-spending.lock"
_LOCK_SECONDS: Final = 10.0
_MAX_BYTES: Final = 64 << 10
_LEAST_LIMIT_WAIT: Final = 60.0
"""Seconds, where ``limit_wait_seconds`` is not less: who says "in 0 seconds" is not asked on and on."""


class Spending(Struct, frozen=True, forbid_unknown_fields=True):
    """What engines have used since the last reset of the consensus: US dollars and tokens as far as they name them,
    and seconds of work."""

    cost: Decimal = Decimal(0)
    tokens: int = 0
    seconds: float = 0.0

    def add(self, other: Spending) -> Spending:
        """Both together."""
        seconds = round(self.seconds + other.seconds, 3)
        return Spending(self.cost + other.cost, self.tokens + other.tokens, seconds)

    def to_state(self) -> dict[str, Any]:
        """As the state of the cycles has it."""
        return {"total_cost": f"{self.cost:f}", "total_tokens": self.tokens, "total_seconds": self.seconds}


def read_spending(root: Path) -> Spending:
    """What was spent so far. Raises ``WorkspaceError`` where the file is damaged: a cap must not begin anew."""
    path = root / Layout.state / _FILE
    if not path.exists() and not path.is_symlink():
        return Spending()
    try:
        return msgspec.json.decode(read_stable(path, _MAX_BYTES, shown=path.name)[0], type=Spending)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise WorkspaceError(
            f"what engines have used cannot be read: {str(error)[:200]}",
            place=Place(f"{Layout.state}/{_FILE}"),
            remedy=f"Remove it, and it is counted from zero: rm {Layout.state}/{_FILE}",
        ) from None


def reset_spending(host: Host) -> None:
    """Count from zero."""
    _change_spending(host, None)


def _change_spending(host: Host, used: Spending | None) -> Spending:
    """Add to what was spent; None: begin anew."""
    with writer_lock(host.layout.state_dir, _LOCK_SECONDS, "engine spending", clock=host.clock, name=_LOCK):
        total = read_spending(host.root).add(used) if used is not None else Spending()
        write_atomic(host.layout.state_dir / _FILE, msgspec.json.encode(total), mode=0o600)
    return total


class Following(Struct, frozen=True):
    """What follows: a wait of ``seconds``, or the end where ``status`` is ``stopped`` or ``failed``."""

    status: Literal["sleeping", "paused", "cooldown", "waiting_limit", "stopped", "failed"]
    reason: str | None
    seconds: float = 0.0


class EnginePolicy:
    """One for each start. ``failures``: in a row, so far."""

    def __init__(self, host: Host, settings: CycleSettings, failures: int = 0) -> None:
        self._host, self._settings, self.failures = host, settings, failures

    @property
    def limit_wait_seconds(self) -> float:
        """How long it waits where nobody says until when."""
        return self._settings.limit_wait_seconds

    def record_use(self, used: Spending) -> Spending:
        """Count what a piece of work has used; all of it so far."""
        return _change_spending(self._host, used)

    def find_cap(self) -> str:
        """Which of the caps is reached, and what to do; empty while none is."""
        reached = self._describe_cap()
        return f"{reached}; raise it, or count from zero: cleared cycle reset-consensus" if reached else ""

    def _describe_cap(self) -> str:
        settings, spent = self._settings, read_spending(self._host.root)
        if settings.cost_cap and spent.cost >= settings.cost_cap:
            return f"the cost cap of {settings.cost_cap} USD is reached ({spent.cost:f} spent)"
        if settings.max_tokens and spent.tokens >= settings.max_tokens:
            return f"the cap of {settings.max_tokens:,} tokens is reached ({spent.tokens:,} used)"
        if settings.max_minutes and spent.seconds >= settings.max_minutes * 60:
            return f"the cap of {settings.max_minutes:,} minutes of work is reached"
        return ""

    def find_following(self, *, failed: bool, limit: UsageLimit | None = None) -> Following | None:
        """What follows on a piece of work; None: the next one. A limit is no failure; one that a person must see to is
        the end."""
        settings, now = self._settings, self._host.clock.now()
        if limit is not None and limit.is_administrative:
            return Following("failed", f"the account needs a person: {limit.words}")
        if limit is None:
            self.failures = self.failures + 1 if failed else 0
        if reached := self.find_cap():
            return Following("failed", reached)
        if limit is not None:
            until = limit.until or now + timedelta(seconds=self.limit_wait_seconds)
            least = min(_LEAST_LIMIT_WAIT, self.limit_wait_seconds)
            return Following("waiting_limit", limit.words, max((until - now).total_seconds(), least))
        if failed and self.failures >= settings.max_consecutive_errors:
            return Following("cooldown", f"{self.failures} failures in a row", settings.cooldown_seconds)
        return None

    def end_wait(self, following: Following) -> None:
        """It is over: after a cooldown failures are counted anew."""
        if following.status == "cooldown":
            self.failures = 0
