"""Steering all work of a workspace at once: ending it, pausing it, going on."""

from __future__ import annotations

from cleared.changes.host import Host
from cleared.work.cycles import cycle_control
from cleared.work.loop import control
from cleared.work.loop.loop_settings import LoopSettings
from cleared.work.task_runs.task_run import tasks_of


def stop_work(host: Host, settings: LoopSettings, *, now: bool, wait: float) -> list[str]:
    """Have jobs, cycles and tasks end after what is on, or ``now`` with it; what was ended, in words.

    All are asked before one is waited for. Raises ``BusyError`` where one still runs after ``wait`` seconds: nothing
    further begins then.
    """
    tasks = tasks_of(host.root)
    on_task = tasks.ask_to_end(now=now)
    said = [cycle_control.stop_loop(host, now=now)]
    loop = control.stop_loop(host, settings, now=now, wait=wait)
    said.append(f"The loop of jobs has ended (process {loop.pid})." if loop else "No loop of jobs runs here.")
    if on_task is not None:
        tasks.wait_ended(on_task, wait, host.clock)
    said.append(f"The run of tasks has ended (process {on_task.holder.pid})." if on_task else "No tasks are run here.")
    return said


def pause_work(host: Host, settings: LoopSettings) -> None:
    """Have no further job, cycle or turn at a task begin in the loop, nor a cycle beside it."""
    cycle_control.set_paused(host.root, True)
    control.set_paused(host, settings, "pause")


def resume_work(host: Host, settings: LoopSettings) -> None:
    """Go on after ``pause_work``."""
    cycle_control.set_paused(host.root, False)
    control.set_paused(host, settings, "resume")
