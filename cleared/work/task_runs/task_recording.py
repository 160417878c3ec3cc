"""Recording: lines of the ledger, and the commit that holds them with what the task changed.

The commit comes first. Whoever is killed between commit and ledger has left a note; the next appender adds the line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.base.safe_files import write_atomic
from cleared.base.short_text import replace_surrogates
from cleared.changes.commit_messages import CommitSubject
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.jobs.tasks.ledger_lines import render_line
from cleared.jobs.tasks.task_definition import skill_path
from cleared.jobs.tasks.task_ledger import LEDGER, LedgerWriter, TaskLedger
from cleared.jobs.tasks.task_states import StatusLine, may_follow
from cleared.jobs.tasks.task_store import TaskFiles, TaskSet, load_tasks
from cleared.workspace.lock import ensure_state_dir

MAX_COMMITTED: Final = 64 << 20
"""Bytes: a larger ledger is no longer committed."""
MAX_SUMMARY: Final = 2_000
STEPS: Final = ("task-noted", "task-committed", "task-recorded")
"""The instants between which recording can be killed, beside those of the commit and of the append."""


class Recorded(Struct, frozen=True):
    """What was recorded: lines of the ledger, and the commit (None where nothing was to be committed)."""

    lines: tuple[StatusLine, ...]
    commit: str | None


def open_ledger(host: Host) -> TaskLedger:
    """The workspace's ledger."""
    return TaskLedger(
        host.root,
        clock=host.clock,
        wait_seconds=host.config.lock.wait_seconds,
        show_message=host.show_message,
        on_step=host.report_step,
    )


def read_task_set(host: Host) -> TaskSet:
    """Every task of the working tree."""
    return load_tasks(TaskFiles(host.root))


def list_skill_files(host: Host) -> list[str]:
    """The files of the skills that tasks name, which their workers are told."""
    return sorted({skill_path(name) for task in read_task_set(host).live.values() for name in task.skills})


@contextmanager
def open_recorder(host: Host, activity: str) -> Iterator[Recorder]:
    """The ledger for appending and committing; what a killed one had committed is added first."""
    ledger = open_ledger(host)
    with ledger.open_for_appending(activity) as writer:
        recorder = Recorder(host, writer, activity)
        recorder.finish_interrupted()
        yield recorder


def finish_interrupted(host: Host) -> None:
    """Bring the ledger up to a commit whose maker was killed; nothing where there is none."""
    if _note_path(host).exists():
        with open_recorder(host, "task recovery"):
            pass


class Recorder:
    """Writes the ledger while its lock is held."""

    def __init__(self, host: Host, writer: LedgerWriter, activity: str) -> None:
        self._host, self.ledger, self._activity = host, writer, activity
        self._note = _note_path(host)

    def make_line(
        self,
        task_id: str,
        status: str,
        summary: str,
        delta: Mapping[str, Sequence[str]] | None = None,
        awaits: Mapping[str, str] | None = None,
    ) -> StatusLine:
        """A line of now, if that state may follow on the newest one. Raises ``PolicyError`` where it may not."""
        before = self.ledger.read_latest(task_id)
        state = before.status if before is not None else None
        if not may_follow(state, status):
            raise PolicyError(
                f"{task_id} is {state or 'not in the ledger'}, and cannot become {status} from there",
                remedy=_REMEDIES.get((state or "", status)) or f"See: cleared task show {task_id}.",
            )
        words = replace_surrogates(" ".join(summary.split()))  # an engine prints such, too
        text = self._host.redactor.redact_text(words)[:MAX_SUMMARY]
        return StatusLine(task_id, status, format_iso(self._host.clock.now()), text, delta, awaits)

    def append(self, *lines: StatusLine) -> None:
        """Add lines to the ledger without a commit: the next one holds them."""
        self.ledger.append(*lines)

    def commit(
        self,
        lines: Sequence[StatusLine],
        subject: CommitSubject,
        files: Mapping[str, bytes | None] | None = None,
        *,
        by: str | None = None,
        stage: Callable[[DecisionContext], None] | None = None,
    ) -> Recorded:
        """Commit ``files`` and the ledger with ``lines``, then add these. ``by``: who did it where no person did;
        ``stage``: stages what else belongs to it.

        Raises as ``commit_decision`` does; nothing is recorded then.
        """
        host = self._host
        added = b"".join(map(render_line, lines))
        before = self.ledger.read_bytes(MAX_COMMITTED)
        changed = dict(files or {})
        if before is None:
            host.show_message(f"{LEDGER} is larger than {MAX_COMMITTED >> 20} MB: it is no longer committed")
        else:
            changed[LEDGER] = before + added
            ensure_state_dir(host.layout.state_dir)
            write_atomic(self._note, json.dumps({"before": len(before), "added": added.decode("ascii")}).encode())
        host.report_step("task-noted")
        marks = (("Task", ",".join(line.id for line in lines)[:200]),) if lines else ()
        tried: list[str] = []

        def stage_record(decision_context: DecisionContext) -> Decision:
            tried.append("once")
            if stage is not None:
                stage(decision_context)
            return Decision(subject, changed, marks, edited_files=(LEDGER,))

        try:
            commit = commit_decision(host, self._activity, stage_record, by=by, collects=[tried])
        except BaseException:
            if before is not None and not self._is_committed(len(before), added):
                self._note.unlink(missing_ok=True)
            raise
        host.report_step("task-committed")
        self._add_missing(len(before) if before is not None else None, added)
        self._note.unlink(missing_ok=True)
        host.report_step("task-recorded")
        return Recorded(tuple(lines), commit)

    def finish_interrupted(self) -> None:
        """Add the lines of a commit whose maker was killed before it could."""
        try:
            note = json.loads(self._note.read_bytes())
            before, added = int(note["before"]), str(note["added"]).encode("ascii")
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError):
            self._note.unlink(missing_ok=True)
            return
        self._complete_commit()
        if self._is_committed(before, added):
            self._add_missing(before, added)
            self._host.show_message("what was committed of a task, and not in the ledger yet, is there now")
        self._note.unlink(missing_ok=True)

    def _complete_commit(self) -> None:
        """Finish or undo a commit that was killed: only then it is known whether it was made."""
        with self._host.open_for_writing("task recovery"):
            pass

    def _is_committed(self, before: int, added: bytes) -> bool:
        """Whether the last commit's ledger has these lines at that place."""
        with Repository.open(self._host.root, for_writing=False) as repo:
            committed = Snapshot(repo, repo.find_head()).read_file(LEDGER)
        return committed is not None and bool(added) and committed[before:].startswith(added)

    def _add_missing(self, before: int | None, added: bytes) -> None:
        """Add the lines, unless the commit has put them into the file."""
        current = self.ledger.read_bytes(MAX_COMMITTED)
        if before is not None and current is not None and current[before:].startswith(added):
            return
        if added:
            self.ledger.append_bytes(added)


def _note_path(host: Host) -> Path:
    return host.layout.state_dir / "task-recording.json"


def read_states(host: Host) -> dict[str, str]:
    """Id → newest state. Raises ``WorkspaceError`` where there is no ledger."""
    return {name: line.status for name, line in open_ledger(host).read_all().items()}


def state_folder(host: Host, name: str) -> Path:
    """A folder of ``.cleared`` for what belongs to tasks; made where there is none."""
    ensure_state_dir(host.layout.state_dir)
    folder = host.layout.state_dir / name
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


_REMEDIES: Final = {
    ("pending", "completed"): "Claim it first: cleared task claim ID.",
    ("pending", "failed"): "Claim it first: cleared task claim ID.",
    ("failed", "in-progress"): "Try it again: cleared task retry ID, then claim it.",
    ("awaiting-approval", "in-progress"): "Approve what it made, or try it again: cleared task retry ID.",
    ("blocked", "in-progress"): "Try it again: cleared task retry ID, then claim it.",
    ("completed", "pending"): "If it no longer holds: cleared task fail ID, then cleared task retry ID.",
}
