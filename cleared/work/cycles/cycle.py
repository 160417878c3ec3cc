"""One cycle: the engine works once in a private clone; what it leaves is checked and taken over, or not.

A kill while it is taken over loses nothing and does nothing twice: what is to be taken over is noted beside the clone
first. Each step finds out whether it was done already; the next start does those that are left, and only then is the
note removed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from cleared.base.errors import ClearedError
from cleared.base.safe_files import read_stable, write_atomic
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.processes.leftovers import end_job_processes
from cleared.work.cycles.consensus import CONSENSUS, MAX_BYTES, ConsensusFile, find_problems
from cleared.work.cycles.cycle_handover import FOLDER, Handover, forget_handover, note_handover, read_handover
from cleared.work.cycles.cycle_log import locate_log
from cleared.work.cycles.cycle_prompt import PROMPT_FILE, assemble_prompt, describe_pending
from cleared.work.cycles.cycle_settings import CycleSettings
from cleared.work.cycles.engine_changes import TakenChanges, leave_note, take_changes
from cleared.work.cycles.engine_process import EngineRun, find_limit, run_engine
from cleared.work.cycles.engines.engine import EngineReport
from cleared.work.cycles.guiding_texts import list_unknown_texts, read_own_texts, require_known_texts, take_text
from cleared.work.cycles.included_texts import list_include_problems
from cleared.work.cycles.pending_work import commit_start, read_pending
from cleared.work.cycles.usage_limit import UsageLimit
from cleared.work.loop.private_clone import PrivateClone, TooManyChanges, make_private_clone

Outcome = Literal["ok", "soft_ok", "no_progress", "failed", "limit", "stopped"]


class CycleResult(Struct):
    """How a cycle ended. ``summary``: one line for logs. ``limit``: where the account's usage limit was reached."""

    outcome: Outcome
    summary: str
    log: str
    exit_code: int | None = None
    cost: Decimal | None = None
    limit: UsageLimit | None = None
    tokens: int = 0
    seconds: float = 0.0
    """Of the engine's work, whatever the clock was set to meanwhile."""
    taken: TakenChanges = field(default_factory=TakenChanges)


class CycleRequest(Struct, frozen=True):
    """What one cycle is to do. ``number``: over all engines; ``stalled``: the Next Action was the same twice."""

    number: int
    began: datetime
    stalled: bool


def end_left_engine(host: Host) -> None:
    """End what an engine left that outlived its loop: the loop was killed. Called where no other loop runs."""
    end_job_processes(host.layout.state_dir / FOLDER / "tmp", -1)


def run_cycle(
    host: Host,
    settings: CycleSettings,
    binary: Path,
    request: CycleRequest,
    should_stop: Callable[[], bool],
    show: Callable[[str], None],
) -> CycleResult:
    """Run one cycle. ``show`` gets what the engine says and does meanwhile.

    Raises ``WorkspaceError`` where the prompt is gone or the engine cannot be started, ``PolicyError`` where nobody
    here knows what would guide it.
    """
    engine = settings.engine
    log = engine.cycle_log(request.number, request.began.strftime("%Y%m%d-%H%M%S"))
    own = read_own_texts(host.root)
    before = own[CONSENSUS]
    folder = host.layout.state_dir / FOLDER
    scratch = folder / "tmp"
    end_left_engine(host)
    remove_tree(scratch)
    scratch.mkdir(parents=True)
    pending = read_pending(host)
    clone = make_private_clone(host, folder / "clone", commit_start(host, pending))
    host.report_step("cycle-clone-made")
    try:
        waits = describe_pending(pending.all_files, pending.declined)
        prompt = assemble_prompt(own[PROMPT_FILE], before, request.number, stalled=request.stalled, waits=waits)
        require_known_texts(list_unknown_texts(host, clone.base, own=own), "cleared cycle start")
        for path, data in own.items():
            take_text(host, path, data)  # what was only written here is perhaps committed next
        _copy_in(clone.folder, own)
        started = host.clock.monotonic()
        run = run_engine(
            host,
            settings,
            binary,
            prompt=prompt,
            folder=clone.folder,
            scratch=scratch,
            log=locate_log(host.root, log),
            timeout=settings.cycle_timeout_seconds,
            environment=os.environ,
            should_stop=should_stop,
            show=show,
        )
        host.report_step("cycle-engine-ended")
        return _judge(host, settings, request, clone, run, before, log, host.clock.monotonic() - started)
    finally:
        if read_handover(host) is None:
            clone.remove()
        remove_tree(scratch)


def _copy_in(clone: Path, own: Mapping[str, bytes]) -> None:
    """The prompt and the consensus as they lie in the workspace, committed or not."""
    for path, data in own.items():
        (clone / path).parent.mkdir(exist_ok=True)
        write_atomic(clone / path, data, fsync=False)


def _judge(
    host: Host,
    settings: CycleSettings,
    request: CycleRequest,
    clone: PrivateClone,
    run: EngineRun,
    before: bytes,
    log: str,
    seconds: float,
) -> CycleResult:
    report = settings.engine.read_output(run.output)
    result = CycleResult("failed", "", log, run.exit_code, report.cost, tokens=report.tokens, seconds=seconds)
    if run.ended_by == "stop":
        result.outcome, result.summary = "stopped", "it was stopped"
        return result
    limit = find_limit(run, report, host.clock.now())
    if limit is not None:
        result.outcome, result.limit, result.summary = "limit", limit, f"usage limit: {limit.words}"
        return result
    after = _read_consensus(clone.folder)
    problems = find_problems(after) or list_include_problems(host, clone.base, CONSENSUS, after)
    cause = _find_failure(run, report, after, before, problems)
    if cause:
        result.summary = cause
        return result
    result.outcome = "soft_ok" if run.ended_by == "timeout" else "ok"
    handover = Handover(
        settings.engine.name,
        request.number,
        request.began,
        clone.base,
        result.outcome,
        run.exit_code,
        report.cost,
        log,
        report.tokens,
        before,
        after,
        seconds=seconds,
    )
    note_handover(host, handover)
    try:
        return _take_over(host, clone, handover, result)
    except (ClearedError, OSError) as error:  # what it has used counts with the rest
        return CycleResult("failed", f"what it left is kept, and waits to be taken over: {error}", log, run.exit_code)


def _find_failure(run: EngineRun, report: EngineReport, after: bytes, before: bytes, problems: list[str]) -> str:
    """Why the cycle failed; empty where it did not."""
    if report.question:
        return f"it asked for permission, and nobody is there to answer: {report.question}"
    if run.ended_by == "timeout":
        return "" if not problems and after != before else "its time was over, and it left no new consensus"
    if run.exit_code != 0:
        return f"the engine ended with {run.exit_code}: {' '.join((report.text or run.tail)[-300:].split())}"
    if report.failed:
        return f"the engine reports a failure: {' '.join(report.text[-300:].split())}"
    return f"its consensus is none: {'; '.join(problems)}" if problems else ""


def _take_over(host: Host, clone: PrivateClone, handover: Handover, result: CycleResult) -> CycleResult:
    if handover.after == handover.before:
        result.outcome = "no_progress"
    result.taken, notes = take_over(host, clone, handover)
    if result.taken.problem:
        result.outcome = "failed"
    result.summary = "; ".join([{"soft_ok": "time over, consensus taken"}.get(result.outcome, "done"), *notes])
    forget_handover(host)
    return result


def resume_cycle(host: Host) -> tuple[CycleRequest, CycleResult] | None:
    """Take over the rest of a cycle whose loop was killed meanwhile, or which could not be, and remove its clone; None
    where there is none.

    An engine that outlived its loop is ended. Called where no other loop runs. Raises ``ClearedError`` or ``OSError``
    where it cannot be taken over yet: the rest stays.
    """
    end_left_engine(host)
    clone = host.layout.state_dir / FOLDER / "clone"
    handover, resumed = read_handover(host), None
    if handover is not None:
        result = CycleResult(handover.outcome, "", handover.log, handover.exit_code, handover.cost)
        result.tokens, result.seconds = handover.tokens, handover.seconds
        request = CycleRequest(handover.number, handover.began, False)
        resumed = request, _take_over(host, PrivateClone(host, clone, handover.base), handover, result)
    forget_handover(host)
    remove_tree(clone)
    return resumed


def _read_consensus(folder: Path) -> bytes:
    """The consensus that the engine left; empty for anything that is no plain file of bounded size."""
    path = folder / CONSENSUS
    try:
        if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
            return b""
        return read_stable(path, MAX_BYTES, shown=CONSENSUS)[0]
    except (ClearedError, OSError):
        return b""


def take_over(host: Host, clone: PrivateClone, handover: Handover) -> tuple[TakenChanges, list[str]]:
    """Take over what is not yet: the consensus, then the changes. What became of it, and what is to be said of it.

    Raises ``ClearedError`` or ``OSError`` where that cannot be done now, as the workspace is locked or its disk full.
    """
    notes: list[str] = []
    before, after = handover.before, handover.after
    if after == before:
        notes.append("warning: the consensus is as it was")
    else:
        consensus = ConsensusFile(host.root)
        current = consensus.read()
        if current == before:
            consensus.keep_backup()
            take_text(host, CONSENSUS, after)
            consensus.replace(after)
        if current in (before, after):
            consensus.keep_backup()
        else:
            path = consensus.put_beside(after, handover.number)
            notes.append(f"somebody edited the consensus meanwhile; the cycle's is {path}")
            text = f"You edited {CONSENSUS} while the cycle ran. Yours stays; its is {path}."
            notes += leave_note(host, handover.name, handover.author, text)
        host.report_step("cycle-consensus-taken")
    taken = TakenChanges()
    try:
        taken = take_changes(host, clone, handover)
    except TooManyChanges as error:
        taken.problem = f"its changes were not taken over: {error}"
        notes += [taken.problem, *leave_note(host, handover.name, handover.author, taken.problem)]
    notes += [f"proposed as {taken.proposal}"] if taken.proposal else []
    notes += [f"files on the branch {taken.branch}"] if taken.branch else []
    return taken, notes + taken.notes
