"""``cleared task check``: everything about tasks and their ledger that is not as it must be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from cleared.base.errors import Place
from cleared.changes.host import Host
from cleared.jobs.tasks.ledger_lines import MAX_LINE, parse_line
from cleared.jobs.tasks.schema_faults import list_faults, load_task_schema
from cleared.jobs.tasks.task_ledger import LEDGER
from cleared.jobs.tasks.task_seals import TaskSeals
from cleared.jobs.tasks.task_states import BLOCKED, FAILED, IN_PROGRESS, PENDING, may_follow
from cleared.work.task_runs.task_claims import read_claim
from cleared.work.task_runs.task_planning import list_task_faults
from cleared.work.task_runs.task_recording import open_ledger, read_task_set

MAX_FINDINGS: Final = 1_000


def check_tasks(host: Host) -> list[tuple[Place, str]]:
    """What is wrong, at most ``MAX_FINDINGS``. Raises ``WorkspaceError`` where there is no ledger."""
    ledger = open_ledger(host)
    ledger.require()
    findings: list[tuple[Place, str]] = []
    for finding in (*_check_files(host), *_check_ledger(host)):
        findings.append(finding)
        if len(findings) >= MAX_FINDINGS:
            break
    return findings


def _check_files(host: Host) -> Iterator[tuple[Place, str]]:
    known, lines = read_task_set(host), open_ledger(host).read_all()
    yield from known.faults
    open_tasks = {
        name: task
        for name, task in known.live.items()
        if name not in lines or lines[name].status in (PENDING, FAILED, BLOCKED)
    }
    yield from list_task_faults(host, known.tasks, open_tasks)
    seals = TaskSeals(host.root)
    for name, task in known.live.items():
        if name not in lines:
            yield Place(task.path), "it is not in the ledger. Take it in: cleared task plan"
        fault = seals.describe_fault(task) if name in open_tasks else None
        if fault:
            yield Place(task.path, field="verification_command"), f"{fault}. Read it, then: cleared task plan"
    for name, line in lines.items():
        if name not in known.tasks:
            yield Place(LEDGER), f"{name} is in the ledger, and there is no such task"
        claim = read_claim(host, name) if line.status == IN_PROGRESS else None
        if claim is not None and claim.is_dead:
            yield Place(LEDGER), f"{name}: its worker is gone; cleared task next gives it back"


def _check_ledger(host: Host) -> Iterator[tuple[Place, str]]:
    states: dict[str, str] = {}
    schema = load_task_schema("task_status")
    with open_ledger(host).path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            place, record = Place(LEDGER, line=number), parse_line(line)
            if not line.endswith(b"\n") and record is None:
                yield place, "the last line is torn; the next append sets it aside"
            elif record is None:
                yield place, f"it is no record: {_describe_line(line)}"
            else:
                for field, text in list_faults(schema, dict(record.data)):
                    yield Place(LEDGER, line=number, field=field), f"it {text}"
                before = states.get(record.id)
                if before != record.status and not may_follow(before, record.status):
                    yield place, f"{record.id} went from {before or 'nothing'} to {record.status}"
                states[record.id] = record.status


def _describe_line(line: bytes) -> str:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return "not JSON"
    return "it has no id and status of a task"
