"""Opening a workspace: the one place that says which parts it is made of."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cleared.base.clock import Clock, SystemClock, clock_from
from cleared.changes.host import Host, repair_interrupted_commit
from cleared.sandbox.executor import Executor
from cleared.trust.keys import restore_access
from cleared.trust.policy_in_force import SettingsInForce, settings_in_force, settings_stamp
from cleared.trust.workspace_pin import follow_moved_clone
from cleared.workspace.location import CONFIG_NAME, Layout, find_workspace
from cleared.workspace.settings.config_file import read_config_file


def open_workspace(
    start: Path | None = None,
    *,
    clock: Clock | None = None,
    say: Callable[[str], None] | None = None,
    on_step: Callable[[str], None] | None = None,
    tells_waiting: bool = True,
    despite_fault: bool = False,
) -> Host:
    """The workspace that holds ``start`` (default: the current directory), its configuration read and checked.

    ``tells_waiting``: say which settings wait for approval. ``despite_fault``: where ``config.yaml`` is not valid, open
    it by the settings that were approved, for a command that mends the file or only reads; ``Host.policy`` has the
    fault.

    Raises ``WorkspaceError`` where there is none, ``ConfigError`` where its configuration is wrong.
    """
    for path in restore_access():
        if say is not None:
            say(
                f"you could no longer read {path}: something, a job perhaps, had taken the right away; it is given back"
            )
    root = find_workspace(start)
    repair_interrupted_commit(root, clock or SystemClock(), say or (lambda _: None))
    moved = follow_moved_clone(root, _sign_moved)
    if moved and say is not None:
        say(f"these books were moved here from {moved}; what was approved in them goes on counting")

    def read() -> tuple[Layout, SettingsInForce]:
        config, fault = read_config_file(root / CONFIG_NAME)
        if fault is not None and not despite_fault:
            raise fault
        force = settings_in_force(root, config, fault)
        return Layout(root, force.config), force

    stamp = settings_stamp(root)
    layout, force = read()
    if settings_stamp(root) != stamp:  # what was verified for the first time is remembered
        stamp = settings_stamp(root)
        layout, force = read()
    if tells_waiting and force.waiting and say is not None:
        say(force.waiting)
    return Host(
        layout.root,
        layout,
        layout.config,
        clock or SystemClock(),
        say or (lambda _: None),
        on_step,
        policy=force,
        reread_policy=read,
        policy_stamp=stamp,
        make_executor=make_executor,
    )


def open_for_job(root: Path) -> Host:
    """The workspace that a job is about. What there is to say becomes the job's output."""
    return open_workspace(root, clock=clock_from(os.environ.get("CLEARED_CLOCK")), say=print)


@contextmanager
def make_executor(host: Host) -> Iterator[Executor]:
    """The sandbox as ``sandbox.transport`` says: in this process's own worker, or behind a bridge process."""
    if host.config.sandbox.transport == "bridge":
        from cleared.sandbox.bridge.client import BridgeExecutor

        with BridgeExecutor(confine=host.config.sandbox.confine) as bridge:
            yield bridge
    else:
        from cleared.sandbox.monty import Sandbox

        with Sandbox(confine=host.config.sandbox.confine) as sandbox:
            yield sandbox


def _sign_moved(root: Path, old_root: Path) -> None:
    from cleared.jobs.relocation import sign_moved_workspace  # hardly ever, and it takes long to load

    sign_moved_workspace(root, old_root)
