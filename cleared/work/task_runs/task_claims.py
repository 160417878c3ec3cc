"""Claims: who works on a task, since when, and what the files were like at that moment."""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.base.process_identity import is_alive, process_start
from cleared.base.safe_files import write_atomic
from cleared.changes.host import Host
from cleared.git import Repository
from cleared.jobs.tasks.task_definition import Task
from cleared.jobs.tasks.task_graph import list_blockers
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.jobs.tasks.task_states import IN_PROGRESS, PENDING, StatusLine
from cleared.work.task_runs.task_approvals import settle_awaiting
from cleared.work.task_runs.task_delta import list_dirty_files
from cleared.work.task_runs.task_recording import Recorder, open_recorder, read_task_set, state_folder


class Claim(Struct, frozen=True):
    """One claim. ``process``: number and start of the process that works on it, where one does; it is the claim's for
    as long as that process lives. A person's has none and lasts until the person is done."""

    task_id: str
    by: str
    at: str
    machine: str
    base: str
    """The commit that the work begins on."""
    dirty: Mapping[str, str | None]
    """Files that differed from the base at that moment: path → blob id (None: deleted)."""
    token: str
    process: tuple[int, str] | None = None
    is_program: bool = False
    """Whether no person works on it: what it changes is a program's."""

    @property
    def is_dead(self) -> bool:
        """Whether the process that worked on it is gone."""
        return self.process is not None and not is_alive(*self.process)


def claim_task(host: Host, task_id: str, by: str, *, worker_pid: int | None = None, is_program: bool = False) -> Claim:
    """Claim a task that is ready: one claimant wins. ``worker_pid``: the process whose end frees it again.

    Raises ``PolicyError`` where it is not ready, somebody has it, or it is not sealed here; ``UsageError`` where there
    is none.
    """
    settle_awaiting(host)
    with open_recorder(host, f"task claim {task_id}") as recorder:
        recover_dead_claims(host, recorder)
        tasks = read_task_set(host)
        task = tasks.require_task(task_id)
        states = {name: line.status for name, line in recorder.ledger.read_all().items()}
        _refuse_unready(recorder, task, tasks.tasks, states)
        TaskSeals(host.root).require_sealed(task)
        with Repository.open(host.root, for_writing=False) as repo:
            base = repo.read_head()
            dirty = {} if is_program else list_dirty_files(host, repo, base)
        since = process_start(worker_pid) if worker_pid is not None else None
        if worker_pid is not None and since is None:
            raise PolicyError(f"there is no process {worker_pid} that could work on it")
        claim = Claim(
            task_id,
            by,
            format_iso(host.clock.now()),
            socket.gethostname(),
            base,
            dirty,
            secrets.token_hex(8),
            (worker_pid, since) if worker_pid is not None and since is not None else None,
            is_program,
        )
        line = recorder.make_line(task_id, IN_PROGRESS, f"Assigned to {by}")
        path = _claim_path(host, task_id)
        write_atomic(path, json.dumps(asdict(claim)).encode("ascii"), mode=0o600)
        host.report_step("claim-noted")
        recorder.append(line)
        host.report_step("claim-made")
    return claim


def read_claim(host: Host, task_id: str) -> Claim | None:
    """The claim that this machine has noted for a task; None where there is none, or it cannot be read."""
    try:
        data: dict[str, Any] = json.loads(_claim_path(host, task_id).read_bytes())
        process = data.pop("process", None)
        return Claim(**data, process=(int(process[0]), str(process[1])) if process else None)
    except (OSError, ValueError, TypeError, KeyError, IndexError):
        return None


def require_claim(host: Host, task_id: str, latest: StatusLine | None) -> Claim:
    """The claim of a task that is worked on. Raises ``PolicyError`` where nobody here has it."""
    if latest is None or latest.status != IN_PROGRESS:
        raise PolicyError(
            f"{task_id} is {latest.status if latest else 'not in the ledger'}, and nobody works on it",
            remedy=f"Claim it first: cleared task claim {task_id}.",
        )
    claim = read_claim(host, task_id)
    if claim is None:
        raise PolicyError(
            f"{task_id} was claimed in another copy of these books ({latest.summary})",
            remedy=f"Finish it there, or take it back: cleared task retry {task_id}.",
        )
    return claim


def drop_claim(host: Host, task_id: str) -> None:
    """Forget a claim; the ledger says what became of the task."""
    _claim_path(host, task_id).unlink(missing_ok=True)


def recover_dead_claims(host: Host, recorder: Recorder) -> None:
    """Give back the tasks whose workers are gone, with a line each."""
    for task_id, line in recorder.ledger.read_all().items():
        if line.status != IN_PROGRESS:
            continue
        claim = read_claim(host, task_id)
        if claim is None or not claim.is_dead:
            continue
        text = f"Recovered: {claim.by} (process {claim.process[0] if claim.process else '?'}) is gone since its claim"
        recorder.append(recorder.make_line(task_id, PENDING, text))
        drop_claim(host, task_id)
        host.show_message(f"{task_id}: its worker is gone; it is pending again")


def recover_claims(host: Host) -> None:
    """The same where nobody holds the ledger yet; no lock is taken where all workers live."""
    folder = host.layout.state_dir / "task-claims"
    names = [path.stem for path in folder.glob("T-*.json")] if folder.is_dir() else []
    if any((claim := read_claim(host, name)) is not None and claim.is_dead for name in names):
        with open_recorder(host, "task recovery") as recorder:
            recover_dead_claims(host, recorder)


def _refuse_unready(recorder: Recorder, task: Task, tasks: Mapping[str, Task], states: Mapping[str, str]) -> None:
    latest = recorder.ledger.read_latest(task.id)
    if latest is not None and latest.status == IN_PROGRESS:
        raise PolicyError(
            f"{task.id} is claimed already, since {latest.updated_at} ({latest.summary})",
            remedy=f"Take another one: cleared task next; or take it back: cleared task retry {task.id}.",
        )
    blockers = list_blockers(task, tasks, states)
    if blockers:
        raise PolicyError(
            f"{task.id} is not ready: it waits for {', '.join(blockers)}", remedy="See: cleared task next."
        )


def _claim_path(host: Host, task_id: str) -> Path:
    return state_folder(host, "task-claims") / f"{os.path.basename(task_id)}.json"  # noqa: PTH119
