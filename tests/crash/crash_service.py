"""The service in processes that kill themselves at a chosen point, forked off one that has imported all.

A point is a step of a run or a decision and its seal (``Host.on_step``), or one of the service's own: before or after
each thing it writes down. ``Services.serve`` has the service do all there is to do at a given time, or be killed on
the way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from forked import Forking, attend

AROUND = ("count_start", "finish_delivery", "retry_delivery")
AFTER = (
    "add_delivery",
    "drop_delivery",
    "set_cursor",
    "set_schedule_marks",
    "add_handled_files",
    "remove_handled_files",
)
"""Methods of the inbox around which a process can be killed; the others are parts of what is done at once."""


class Services(Forking):
    """The service in forked processes."""

    def serve(self, root: Path, at: str, stop: int = 0, name: str = "") -> list[str]:
        """The points it came by, in order. Killed at the ``stop``-th of them, or of those of that ``name``; 0: not at
        all."""
        told = root.parent / f"{root.name}.points"
        told.unlink(missing_ok=True)
        self.order({"root": str(root), "at": at, "stop": stop, "name": name, "told": str(told)})
        code = self.ended()
        points = told.read_text().splitlines()
        killed = stop and sum(name in ("", point) for point in points) == stop
        assert code == (-signal.SIGKILL if killed else 0), (code, points[-3:])
        return points


class Hand:
    """A clock that stands still but where the service sleeps a moment."""

    def __init__(self, at: str) -> None:
        self.at = datetime.fromisoformat(at)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()


def serve(root: Path, at: str, point: Callable[[str], None]) -> None:
    """What there is to do at that time, by the real service."""
    from cleared.changes.host import Host
    from cleared.changes.workspace_opening import open_workspace
    from cleared.service.workspace_actions import WorkspaceActions
    from cleared.service.workspace_service import WorkspaceService
    from cleared.triggers.service_log import ServiceLog

    clock = Hand(at)

    def open_stepped(root: Path) -> Host:
        return open_workspace(root, clock=clock, on_step=point, say=lambda _: None)

    _attach(point)
    with WorkspaceActions(root, open_stepped) as served:
        service = WorkspaceService(root, served, ServiceLog(root / ".cleared", clock, lambda _: None), lambda _: None)
        for _ in range(3):  # looks at the folders once more when all is done, as it does every minute
            service.hint_files()
            while service.run_step() or _sleeps(service, clock):
                pass
        assert service.problem is None, service.problem
        service.close()


def _sleeps(service: Any, clock: Hand) -> bool:
    wake = service.wake_at()
    if wake is None or wake > clock.at + timedelta(seconds=0.5):
        return False
    time.sleep(max(0.0, (wake - clock.at).total_seconds()))
    clock.at = max(clock.at, wake)
    return True


_doing: list[str] = []


@contextlib.contextmanager
def _within(name: str) -> Iterator[None]:
    """Points that are passed meanwhile are told apart from others of their kind."""
    _doing.append(name)
    yield
    _doing.pop()


def _attach(point: Callable[[str], None]) -> None:
    from cleared.service.delivery import DeliveryRunner
    from cleared.triggers import service_notices
    from cleared.triggers.pending_deliveries import Inbox

    def attach(owner: Any, name: str, *, before: bool = True, within: bool = False) -> None:
        real = getattr(owner, name)

        def told(*args: Any, **kwargs: Any) -> Any:
            if before:
                point(f"before {name}")
            with _within(name if within else ""):
                found = real(*args, **kwargs)
            point(f"after {name}")
            return found

        setattr(owner, name, told)

    for name in AROUND:
        attach(Inbox, name)
    for name in AFTER:
        attach(Inbox, name, before=False)
    attach(DeliveryRunner, "_handle_result")
    attach(DeliveryRunner, "_split_files")
    for name in ("report_event_cycle", "set_file_aside"):
        attach(service_notices, name, within=True)
    transaction = Inbox.transaction

    @contextlib.contextmanager
    def all_at_once(self: Inbox) -> Any:
        with transaction(self):
            yield
        point("after transaction")

    Inbox.transaction = all_at_once  # type: ignore[method-assign]


def _obey(order: dict[str, Any]) -> int:
    left = order["stop"]
    with Path(order["told"]).open("a") as told:

        def point(name: str) -> None:
            nonlocal left
            name = " ".join([*filter(None, _doing), name])
            told.write(f"{name}\n")
            told.flush()
            left -= order["name"] in ("", name)
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        serve(Path(order["root"]), order["at"], point)
    return 0


def main() -> None:
    import pydantic_monty  # noqa: F401

    import cleared.changes.workspace_opening
    import cleared.review.questions
    import cleared.runs.execution
    import cleared.sandbox.monty
    import cleared.service.workspace_service  # noqa: F401

    attend(_obey)
