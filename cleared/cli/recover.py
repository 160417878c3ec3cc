"""``cleared recover``: what the branch has lost of what was committed here."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, host_of
from cleared.cli.output import out, out_json, say


def recover(
    forget: Annotated[bool, typer.Option("--forget", help="It is meant to be gone: say no more of it.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring back what git took from the branch of what runs and decisions had committed here, in one commit.

    git reset, git update-ref or a commit of old files can take entries, bank lines, cards and bank files out of the
    branch. Every command then says so, and nothing is written until this one has been run.
    """
    from cleared.decisions.lost_row_recovery import forget_lost, recover_lost

    host = host_of(workspace)
    if forget:
        lost = forget_lost(host)
        if json:
            out_json({"forgotten": asdict(lost) if lost else None})
        else:
            out(f"Forgotten: {lost}." if lost else "Nothing is missing.")
        return
    done = recover_lost(host)
    if json:
        out_json({"lost": asdict(done.lost) if done.lost else None, "commit": done.commit or None,
                  "files": done.files, "left": done.left})  # fmt: skip
        return
    if done.lost is None:
        out("Nothing is missing.")
        return
    found = done.lost
    counts = (
        (found.entries, "entries"),
        (found.lines, "bank lines"),
        (found.cards, "cards"),
        (found.periods, "periods"),
    )
    what = ", ".join(f"{len(ids)} {name}" for ids, name in counts if ids)
    out(f"Brought back {what} in {len(done.files)} files ({done.commit[:10]}).")
    for path in done.left:
        say(f"left as it is, somebody has changed it since: {path}")
