"""``cleared recover``: what the branch has lost of what was committed here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import count_noun, print_json, print_line, print_message


def recover_rows(
    forget: Annotated[bool, typer.Option("--forget", help="It is meant to be gone: say no more of it.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring back what git took from the branch of what runs and decisions had committed here, in one commit.

    git reset, git update-ref or a commit of old files can take entries, bank lines, cards and bank files out of the
    branch. Every command then says so, and nothing is written until this one has been run.
    """
    from cleared.decisions.lost_row_recovery import forget_lost, recover_lost

    host = open_host(workspace)
    if forget:
        lost = forget_lost(host)
        if json:
            print_json({"forgotten": asdict(lost) if lost else None})
        else:
            print_line(f"Forgotten: {lost}." if lost else "Nothing is missing.")
        return
    recovery = recover_lost(host)
    if json:
        print_json({"lost": asdict(recovery.lost) if recovery.lost else None, "commit": recovery.commit or None,
                  "files": recovery.files, "left": recovery.left_files})  # fmt: skip
        return
    if recovery.lost is None:
        print_line("Nothing is missing.")
        return
    lost_rows = recovery.lost
    counts = (
        (lost_rows.entries, "entries"),
        (lost_rows.lines, "bank lines"),
        (lost_rows.cards, "cards"),
        (lost_rows.periods, "periods"),
    )
    counted = ", ".join(f"{len(ids)} {name}" for ids, name in counts if ids)
    print_line(f"Brought back {counted} in {count_noun(len(recovery.files), 'file')} ({recovery.commit[:10]}).")
    for path in recovery.left_files:
        print_message(f"left as it is, somebody has changed it since: {path}")
