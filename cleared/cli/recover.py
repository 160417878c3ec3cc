"""``cleared recover``: what the branch has lost of what was committed here."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.changes.decisions.lost_row_recovery import SHOWN, digest_lost, forget_lost, read_lost, recover_lost
from cleared.changes.lost_rows import LostRows
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.cli.showing import DigestOption, Subject, taking_shown


def recover_rows(
    forget: Annotated[bool, typer.Option("--forget", help="It is meant to be gone: say no more of it.")] = False,
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Bring back what git took from the branch of what runs and decisions had committed here, in one commit.

    git reset, git update-ref or a commit of old files can take entries, bank lines, cards and bank files out of the
    branch. Every command then says so, and nothing is written until this one has been run. With --forget it shows what
    is missing, and asks.
    """
    host = open_host(workspace, despite_fault=True)
    if forget:
        lost = read_lost(host)
        if lost is not None:
            with taking_shown(host.root, _subject_of(lost), digest, json=json):
                lost = forget_lost(host)
        if json:
            print_json({"forgotten": lost.to_dict() if lost else None})
        else:
            print_line(f"Forgotten: {lost}." if lost else "Nothing is missing.")
        return
    recovery = recover_lost(host)
    if json:
        print_json(
            {
                "lost": recovery.lost.to_dict() if recovery.lost else None,
                "commit": recovery.commit or None,
                "files": recovery.files,
                "left": recovery.left_files,
            }
        )
        return
    if recovery.lost is None:
        print_line("Nothing is missing.")
        return
    files = count_noun(len(recovery.files), "file")
    print_line(f"Brought back {recovery.lost.summary} in {files} ({recovery.commit[:10]}).")
    for path in recovery.left_files:
        print_message(f"left as it is, somebody has changed it since: {path}")


def _subject_of(lost: LostRows) -> Subject:
    """What the branch has lost, to be forgotten."""
    digest = digest_lost(lost)
    return Subject(
        name=SHOWN,
        title="what is missing",
        digest=digest,
        command="cleared recover --forget --digest ",
        question="Is it meant to be gone?",
        parts={"lost": lambda: _print_lost(lost)},
    )


def _print_lost(lost: LostRows) -> None:
    """What is missing, in words, and each of it."""
    print_line(f"{lost}.")
    for kind in lost.kinds:
        if ids := lost.ids.get(kind.key):
            print_line(f"{kind.label or kind.noun[1]}: {', '.join(ids)}")
