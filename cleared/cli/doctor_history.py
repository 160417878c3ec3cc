"""Rows of ``cleared doctor``: whether git has the whole history, undamaged, the branch all that was committed, whether
its records are in order, and whether anything of it is in a second place."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from cleared.base.errors import BusyError
from cleared.base.terminal import count_noun
from cleared.cli.doctor_row import Row

if TYPE_CHECKING:
    from cleared.changes.host import Host

NAME = "history"
_OTHER_ROWS = ("lost", "unchanged")
"""What the rows ``branch`` and ``managed files`` say."""


def check_history(host: Host) -> Row:
    """Every object that git has, read; those of the last commit named by their path."""
    from cleared.git import Repository
    from cleared.git.object_check import find_damaged_objects

    with Repository.open(host.root, for_writing=False) as repo:
        damaged = find_damaged_objects(repo)
    if damaged is None:
        return Row(NAME, "ok", "every object is there and whole")
    named = [path or f"object {oid[:10]}" for oid, path in damaged.objects.items()]
    shown = f"{', '.join(named[:5])}{' …' if len(named) > 5 else ''}" if named else damaged.git_messages[0]
    detail = f"damaged or missing: {shown}"
    if named and len(damaged.repairable) == len(named):
        commands = [
            f"rm -f {shlex.quote(os.fspath(file))} && git hash-object -w --no-filters {shlex.quote(path)}"
            for path, file in damaged.repairable.items()
        ]
        return Row(NAME, "fail", detail, "The working tree has it: " + "; ".join(commands))
    return Row(
        NAME,
        "fail",
        detail,
        "Keep a copy of the directory, then take the objects from another clone "
        '(docs/howto/recover.md, "git\'s own files are damaged"). See all of it: git fsck --full.',
    )


def check_backup(host: Host) -> Row:
    """How old the last backup is, and what is in no second place."""
    from cleared.changes.backup.last_backup import read_safety
    from cleared.git import Repository

    now = host.clock.now()
    with Repository.open(host.root, for_writing=False) as repo:
        safety = read_safety(repo)
    unpushed = safety.describe_unpushed()
    detail = safety.describe_backup(now) + (f"; no remote has {unpushed}" if unpushed else "")
    if not safety.is_late(now):
        return Row("backup", "ok", detail)
    only_here = f"only this disk has what was committed since {safety.unsaved.oldest:%Y-%m-%d}"
    return Row("backup", "warn", f"{detail}\n{only_here}", "Back it up: cleared backup FILE; or push it: git push.")


def check_branch(host: Host) -> Row:
    """Whether git took something out of the branch that runs and decisions had committed here."""
    from cleared.git import Repository, Snapshot

    with Repository.open(host.root, for_writing=False) as repo:
        try:
            lost = host.find_lost_rows(repo, Snapshot(repo, repo.read_head()))
        except BusyError as busy:
            return Row("branch", "warn", busy.message, busy.remedy or "")
    if lost is None:
        return Row("branch", "ok", "it has all that was committed here")
    return Row("branch", "fail", str(lost), lost.remedy)


def check_records(host: Host) -> Row:
    """Whether a check of the records names something: a forged commit, too, that only adds to them."""
    from cleared.changes.audit.record_violations import find_violations

    try:
        violations = [each for each in find_violations(host) if each.check not in _OTHER_ROWS]
    except BusyError as busy:
        return Row("records", "warn", busy.message, busy.remedy or "")
    if not violations:
        return Row("records", "ok", "every invariant holds, and somebody answers for each commit")
    first = violations[0]
    detail = f"{count_noun(len(violations), 'violation')}, the first: [{first.check}] {first.message}"
    return Row("records", "fail", detail, f"{first.remedy} See each: cleared check.")
