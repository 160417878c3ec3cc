"""Dry runs: a real run over books and files of the past, or over sample data, that is never committed."""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from cleared.base.errors import ClearedError, PolicyError
from cleared.base.json_values import to_json
from cleared.base.temporary_folders import open_temporary_folder
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.session import recent_commits
from cleared.domains.domain import DraftDescription
from cleared.domains.installed_domains import describe_drafts, load_comparisons
from cleared.domains.record_audit import RecordsViolated, Violation
from cleared.domains.record_comparison import Record
from cleared.gate.run_outputs import list_outputs
from cleared.git import Repository, Snapshot
from cleared.primitives.context import taken_files
from cleared.primitives.loop_jobs import DryRunLoop
from cleared.runs.approved_scripts import Script, Scripts
from cleared.runs.attempt import Attempt, Event, Resumption
from cleared.runs.outcome import RunError


class Setup(Struct, frozen=True):
    """A configuration and scripts to run with: the approved ones, or those of a candidate."""

    host: Host
    scripts: Scripts


class DryRun(Struct, frozen=True):
    """What a script would have done. Without ids and times, so that two dry runs can be compared."""

    label: str
    error: RunError | None
    result: Any
    records: Mapping[str, tuple[Record, ...]]
    """What they are called (``entries``) → the new ones."""
    cards: tuple[tuple[str, str], ...]
    events: tuple[Mapping[str, Any], ...]
    lines: Mapping[str, str] = {}
    """Lines of files that were set aside: line → outcome."""
    files: tuple[str, ...] = ()
    """Files marked processed."""
    calls: Mapping[str, int] = {}
    violations: tuple[Violation, ...] = ()
    """What the books' invariants say of it."""
    answers: Mapping[str, Mapping[str, Any]] = {}
    """What language models had answered, as far as the script asked it: the request's key → answer."""
    printed: tuple[str, ...] = ()
    """What the script printed, as it came."""
    statuses: Mapping[str, str] = {}
    """Committed record → the status that it gets."""
    outputs: Mapping[str, tuple[str, ...]] = {}
    """What else a person would see of it, as they would see it: kind (``run_outputs.KINDS``) → texts."""

    @property
    def effects(self) -> dict[str, Any]:
        """All that would be committed, in a comparable form."""
        return {
            **{name: list(records) for name, records in self.records.items()},
            "cards": list(self.cards),
            "events": list(self.events),
            "lines": dict(self.lines),
            **({"statuses": dict(self.statuses)} if self.statuses else {}),
            "files": list(self.files),
            "error": self.error.message if self.error else None,
            "violations": [v.message for v in self.violations],
        }

    def count_statuses(self) -> Counter[str]:
        """How many of the records there are of each status, where they have one."""
        compared = load_comparisons()
        found = (compared[name].summarise(r).status for name, records in self.records.items() for r in records)
        return Counter(filter(None, found))

    def to_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            **{name: len(records) for name, records in self.records.items()},
            "statuses": dict(self.count_statuses()),
            "cards": len(self.cards),
            "files": len(self.files),
            "calls": dict(self.calls),
            "error": self.error.to_json_object() if self.error else None,
        }


def dry_run_script(
    world: Setup,
    repo: Repository,
    snapshot: Snapshot,
    script: Script,
    *,
    label: str,
    inputs: Mapping[str, bytes],
    now: datetime,
    dry_run: bool = False,
    event: Event | None = None,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
) -> DryRun:
    """Run ``script`` over the books of ``snapshot`` with ``inputs`` as the drop folder; nothing is kept. No language
    model is asked: ``answers`` has what was answered before. Accounts that were added since are there, too."""
    log: list[str] = []
    with make_drop_folder(inputs) as folder:
        attempt = Attempt(
            world.host,
            repo,
            snapshot,
            script,
            Resumption(event or Event(), now=now),
            dry_run=dry_run,
            scripts=world.scripts,
            drop_folder=folder,
            say=log.append,
            model_answers=answers,
        )
        # As the history was then; that something was proposed since must not change what it would do.
        rev = snapshot.commit or "HEAD"
        attempt.context.host.list_commits = lambda limit: recent_commits(world.host, limit, rev, proposed=False)
        attempt.context.loop = DryRunLoop(world.host.root, world.host.config)
        error: RunError | None = None
        result: object = None
        violations: tuple[Violation, ...] = ()
        try:
            today = world.scripts.snapshot
            if today.commit != snapshot.commit:
                for part in attempt.context.parts.values():
                    part.adopt_later(CommittedSource(today))
            result = attempt.execute_script()
            for part in attempt.context.parts.values():
                part.verify_files()
            attempt.context.host.check_draft()
        except RecordsViolated as e:
            violations = tuple(e.violations)
        except ClearedError as e:
            error = attempt.explain_error(e)
        return _collect_dry_run(label, attempt, error, result, violations, log)


@contextlib.contextmanager
def make_drop_folder(inputs: Mapping[str, bytes]) -> Iterator[Path]:
    with open_temporary_folder("rehearsal") as made:
        folder = made.resolve()
        for path, data in inputs.items():
            if not is_input_name(path):
                raise PolicyError(f"{path[:80]!r} is not the name of a file in the drop folder")
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        yield folder


def is_input_name(name: str) -> bool:
    """Whether a name from elsewhere stays inside the drop folder: a relative path without ``..``, of usual length."""
    if len(name) > 1_000 or "\0" in name or (os.name == "nt" and re.search(r"[\\:]", name)):
        return False
    return all(part not in ("", ".", "..") and len(os.fsencode(part)) <= 255 for part in name.split("/"))


def _collect_dry_run(
    label: str,
    attempt: Attempt,
    error: RunError | None,
    result: object,
    violations: tuple[Violation, ...],
    log: Sequence[str],
) -> DryRun:
    context, compared = attempt.context, load_comparisons()
    drafts = {name: DraftDescription() for name in compared} if error else describe_drafts(context.parts)
    statuses = {record: status for draft in drafts.values() for record, status in draft.statuses.items()}
    folder = f"{attempt.host.layout.import_dir}/"
    return DryRun(
        label,
        error,
        to_json(result),
        {name: tuple(map(compared[name].strip_ids, draft.records.values())) for name, draft in drafts.items()},
        () if error else tuple((c.kind, c.title) for c in context.cards.added.values()),
        () if error else tuple(context.events),
        {line: outcome for draft in drafts.values() for line, outcome in draft.set_aside.items()},
        () if error else tuple(path.removeprefix(folder) for path in taken_files(context)),
        dict(attempt.counts),
        violations,
        dict(context.model_answers.used),
        tuple(attempt.printed),
        statuses,
        {} if error else list_outputs(attempt, statuses, to_json(result), log),
    )


def compare_dry_runs(one: DryRun, other: DryRun) -> list[str]:
    """How the effects of two dry runs differ, one sentence each; empty where they are the same."""
    differences = []
    a, b = one.effects, other.effects
    for key in a | b:
        if key not in a or key not in b:
            differences.append(f"{key} differ")
            continue
        if a[key] == b[key]:
            continue
        if isinstance(a[key], list):
            differences.append(
                f"{key}: {len(a[key])} and {len(b[key])}" if len(a[key]) != len(b[key]) else f"{key} differ"
            )
        else:
            differences.append(f"{key}: {a[key]!r} and {b[key]!r}"[:300])
    return differences
