"""Commands in processes that kill themselves at a named step, without a new Python for each.

A process that has imported all, and used nothing of it (``Preloaded``), forks one for each command: the sandbox's
threads would not survive a fork of the test's own process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from preloaded import Preloaded

BROKEN = 70


class Forking:
    """The process that forks, and runs ``main`` of the class's module; a context manager."""

    def __enter__(self) -> Self:
        self.process = Preloaded(
            [],
            function=f"{type(self).__module__}:main",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        self.process.communicate()

    def order(self, order: dict[str, Any]) -> None:
        """Have a process forked that obeys, in the environment of now."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({**order, "env": dict(os.environ)}) + "\n")
        self.process.stdin.flush()

    def ended(self) -> int:
        """How it ended: its exit code, or minus the signal."""
        assert self.process.stdout is not None
        code = int(self.process.stdout.readline())
        assert code != BROKEN, "the command broke down"
        return code


class Forks(Forking):
    """Commands of the gate, and of tasks."""

    def start(self, root: Path, words: list[str], step: str = "", nth: int = 1) -> None:
        """Have the command begun: ``propose NAME``, ``approve P1``, ``reject P1 REASON``, ``rollback NAME``,
        ``set KEY VALUE``, ``task-plan FILE``, ``task-claim T-001`` …. It gets SIGKILL at the ``nth`` time of a step."""
        self.order({"root": str(root), "words": words, "step": step, "nth": nth})

    def killed_at(self, root: Path, words: list[str], step: str, nth: int = 1) -> bool:
        """Whether it came to that step. It did not where it was refused, or has no such step."""
        self.start(root, words, step, nth)
        return self.ended() == -signal.SIGKILL


def attend(obey: Callable[[dict[str, Any]], int]) -> None:
    """Fork a copy for each order that comes in, and say how it ended."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = BROKEN
            try:
                signal.alarm(60)
                with contextlib.redirect_stdout(sys.stderr):
                    code = _obeyed(obey, json.loads(line))
            except BaseException:  # noqa: BLE001 - the copy must not go on reading orders
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _obeyed(obey: Callable[[dict[str, Any]], int], order: dict[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(order["env"])
    return obey(order)


def command(root: Path, words: list[str], on_step: Callable[[str], None] | None = None) -> None:
    """What the command line does for these words, with a say in its steps."""
    from cleared.base.clock import clock_from
    from cleared.books.decisions.receipt_filing import file_inbox
    from cleared.changes.decisions.shown_cards import expecting
    from cleared.changes.workspace_opening import open_workspace
    from cleared.gate.proposals.approval import approve_proposal, reject_proposal
    from cleared.gate.proposals.rollback import roll_back_script
    from cleared.gate.proposals.setting_changes import set_setting
    from cleared.gate.proposals.shown_proposal import read_shown_proposal
    from cleared.gate.proposals.submission import propose_changes
    from cleared.work.task_runs.task_approvals import settle_awaiting
    from cleared.work.task_runs.task_archive import archive_tasks
    from cleared.work.task_runs.task_claims import claim_task
    from cleared.work.task_runs.task_completion import complete_task
    from cleared.work.task_runs.task_planning import SHOWN, digest_tasks, plan_tasks, read_plan
    from cleared.work.task_runs.task_renumbering import renumber_tasks
    from cleared.work.task_runs.task_run import run_tasks
    from cleared.work.task_runs.workers import CommandWorker

    def approve(proposal: str) -> None:
        shown = read_shown_proposal(host, proposal)
        with expecting({shown.proposal.folder: shown.digest}):
            approve_proposal(host, proposal, shown.proposal.id)

    def plan(path: str) -> None:
        tasks = read_plan(Path(path).read_bytes(), path)
        with expecting({SHOWN: digest_tasks(tasks)}):
            plan_tasks(host, tasks)

    host = open_workspace(root, clock=clock_from(os.environ.get("CLEARED_CLOCK")), on_step=on_step)
    do: dict[str, Callable[..., Any]] = {
        "propose": lambda name: propose_changes(host, [name]),
        "approve": approve,
        "reject": lambda proposal, reason: reject_proposal(host, proposal, reason),
        "rollback": lambda name: roll_back_script(host, name),
        "set": lambda key, value: set_setting(host, key, value),
        "task-plan": plan,
        "task-claim": lambda task: claim_task(host, task, "tester"),
        "task-done": lambda task: complete_task(host, task),
        "task-run": lambda command: run_tasks(host, CommandWorker(command), most=1),
        "task-run-two": lambda command: run_tasks(host, CommandWorker(command), most=2, workers=2),
        "task-archive": lambda: archive_tasks(host),
        "task-settle": lambda: settle_awaiting(host),
        "task-renumber": lambda other: renumber_tasks(host, other),
        "receipts": lambda: file_inbox(host),
        "cycle": lambda binary: run_one_cycle(host, Path(binary)),
    }
    do[words[0]](*words[1:])


def run_one_cycle(host: Any, binary: Path) -> None:
    from cleared.work.cycles.cycle_loop import CycleLoop
    from cleared.work.cycles.cycle_settings import read_cycle_settings

    flags = {"engine": "claude", "claude_bin": str(binary), "max_cycles": 1, "interval_seconds": 0.0}
    assert CycleLoop(host, read_cycle_settings(host.config, flags, {}), binary).run() == 0


def _obey(order: dict[str, Any]) -> int:
    from cleared.base.errors import ClearedError

    left = order["nth"]

    def stop(name: str) -> None:
        nonlocal left
        left -= name == order["step"]
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        command(Path(order["root"]), order["words"], stop)
    except ClearedError as error:
        return int(error.exit_code)
    return 0


def main() -> None:
    attend(_obey)
