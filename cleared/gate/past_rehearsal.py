"""Both versions of an agent over its past runs, on all cores.

Python computes on one core at a time, so of many runs a part is rehearsed in further processes. What these do not
bring, as one was killed or could not be started, is rehearsed in this one.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Final

from msgspec import Struct

from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.domains.installed_domains import load_comparisons
from cleared.gate.check_result import Subject
from cleared.gate.dry_run import DryRun, Setup, dry_run_script
from cleared.gate.past_runs import DryRunInput
from cleared.git import Repository, Snapshot
from cleared.runs.approved_scripts import Script, Scripts
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.secrets import Redactor

LEAST_SHARE: Final = 10
"""Runs: for fewer of them another process is not started, which takes as long as four of 100 rows."""
_PROGRAM: Final = "from cleared.gate.past_rehearsal import rehearse_share; rehearse_share()"


class RehearsedRun(Struct, frozen=True):
    """What the two versions would have done. ``ids``: key of a record → the id that the run really gave it."""

    old: DryRun
    new: DryRun
    ids: Mapping[str, str]


class _Version(Struct, frozen=True):
    """A ``Setup`` for another process."""

    config: Config
    texts: dict[str, bytes | None]


class _Share(Struct, frozen=True):
    """What another process is to rehearse. ``today``: the commit from which scripts and approvals come."""

    today: Snapshot
    agent: str
    approved: _Version
    proposed: _Version
    redactor: Redactor
    runs: Sequence[DryRunInput]


class _ShareWriter(pickle.Pickler):
    """Writes of a snapshot the id of its commit."""

    def persistent_id(self, value: object) -> tuple[str | None] | None:
        return (value.commit,) if isinstance(value, Snapshot) else None


class _ShareReader(pickle.Unpickler):
    """Gives the snapshots of a repository that this process has opened."""

    def __init__(self, file: IO[bytes], repo: Repository) -> None:
        super().__init__(file)
        self._repo = repo

    def persistent_load(self, found: tuple[str | None]) -> Snapshot:
        return Snapshot(self._repo, found[0])


def rehearse_past_runs(repo: Repository, subject: Subject, past: Sequence[DryRunInput]) -> list[RehearsedRun]:
    """Each of these runs with the approved version of the script and with the new one, in their order."""
    processes = max(1, min(count_cores(), len(past) // LEAST_SHARE))
    share = max(1, -(-len(past) // processes))
    with ExitStack() as stack:
        starts = range(share, len(past), share)
        others = [stack.enter_context(_start_process(subject, past[at : at + share])) for at in starts]
        results = dict(enumerate(_rehearse_here(repo, subject, past[:share])))
        for at, other in zip(starts, others, strict=True):
            if other is not None and other[0].wait() == 0:
                other[1].seek(0)
                results.update(enumerate(pickle.load(other[1]), at))
    left = [at for at in range(len(past)) if at not in results]
    results.update(zip(left, _rehearse_here(repo, subject, [past[at] for at in left]), strict=True))
    return [results[at] for at in range(len(past))]


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _rehearse_here(repo: Repository, subject: Subject, past: Sequence[DryRunInput]) -> Iterator[RehearsedRun]:
    assert subject.old is not None and subject.script is not None
    return _rehearse_pairs(repo, (subject.approved_setup, subject.old), (subject.proposed_setup, subject.script), past)


def _rehearse_pairs(
    repo: Repository, approved: tuple[Setup, Script], proposed: tuple[Setup, Script], past: Sequence[DryRunInput]
) -> Iterator[RehearsedRun]:
    """The two versions side by side, as each waits for a worker of its own half of the time."""
    with ThreadPoolExecutor(1) as beside:
        for inputs in past:
            awaited = beside.submit(rehearse_run, repo, *approved, inputs)
            new = rehearse_run(repo, *proposed, inputs)
            yield RehearsedRun(awaited.result(), new, _find_ids(approved[0].host, inputs))


def rehearse_run(
    repo: Repository,
    setup: Setup,
    script: Script,
    inputs: DryRunInput,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    dry_run: bool = False,
) -> DryRun:
    """A script over one input. ``answers``: of language models; None: those on record."""
    return dry_run_script(
        setup,
        repo,
        inputs.snapshot,
        script,
        label=inputs.label,
        inputs=inputs.inputs,
        now=inputs.now or setup.host.clock.now(),
        dry_run=dry_run,
        event=inputs.event,
        answers=inputs.model_answers(setup.host) if answers is None else answers,
    )


def _find_ids(host: Host, inputs: DryRunInput) -> dict[str, str]:
    """The key of a record → the id that it has since the run really made it."""
    if inputs.after is None:
        return {}
    layout, after = host.layout, CommittedSource(inputs.after)
    return {key: id_ for each in load_comparisons().values() for key, id_ in each.find_ids(layout, after).items()}


@contextmanager
def _start_process(
    subject: Subject, past: Sequence[DryRunInput]
) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]] | None]:
    """A process that rehearses these runs, and where it puts what came of them; it ends with the block. None where
    there can be none."""
    now, then = subject.approved_setup, subject.proposed_setup
    share = _Share(
        now.scripts.snapshot,
        subject.name,
        _Version(now.host.config, dict(now.scripts.texts)),
        _Version(then.host.config, dict(then.scripts.texts)),
        now.host.redactor,
        past,
    )
    command = [sys.executable, "-P", "-c", _PROGRAM, str(now.host.root)]
    with ExitStack() as stack:
        try:
            order, output = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            _ShareWriter(order).dump(share)
            order.seek(0)
            process = subprocess.Popen(command, stdin=order, stdout=output, stderr=subprocess.DEVNULL)
        except OSError:  # a full disk, say
            yield None
            return
        stack.callback(process.wait)
        stack.callback(process.terminate)
        yield process, output


def rehearse_share() -> None:
    """The whole of such a process: what to do comes in, what came of it goes out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the process that started this one
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # its files of bank lines are removed
    parent = os.getppid()
    host = open_workspace(Path(sys.argv[1]))
    with host.keep_executor(), host.open_for_reading() as repo:
        share: _Share = _ShareReader(sys.stdin.buffer, repo).load()

        def load(version: _Version) -> tuple[Setup, Script]:
            under = host.with_config(version.config)
            under.redactor = share.redactor
            scripts = Scripts(under, share.today, texts=version.texts)
            return Setup(under, scripts), scripts.load_agent(share.agent)

        found = []
        for each in _rehearse_pairs(repo, load(share.approved), load(share.proposed), share.runs):
            if os.getppid() != parent:
                return
            found.append(each)
    pickle.dump(found, sys.stdout.buffer)
