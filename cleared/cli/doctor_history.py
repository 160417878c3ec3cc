"""Rows of ``cleared doctor``: whether git has the whole history, undamaged, and the branch all that was committed."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from cleared.cli.doctor_row import Row

if TYPE_CHECKING:
    from cleared.changes.host import Host

NAME = "history"


def check_history(host: Host) -> Row:
    """Every object that git has, read; those of the last commit named by their path."""
    from cleared.vcs import Repository
    from cleared.vcs.object_check import find_damaged_objects

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
    return Row(NAME, "fail", detail, "Keep a copy of the directory, then take the objects from another clone "
               "(docs/howto/recover.md, \"git's own files are damaged\"). See all of it: git fsck --full.")  # fmt: skip


def check_branch(host: Host) -> Row:
    """Whether git took something out of the branch that runs and decisions had committed here."""
    from cleared.changes.lost_rows import REMEDY, find_lost_rows
    from cleared.vcs import Repository, Snapshot

    with Repository.open(host.root, for_writing=False) as repo:
        lost = find_lost_rows(host.layout, repo, Snapshot(repo, repo.read_head()))
    if lost is None:
        return Row("branch", "ok", "it has all that was committed here")
    return Row("branch", "fail", str(lost), REMEDY)
