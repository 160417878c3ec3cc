"""Checking all that is recorded, and answering for a commit that the check names."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from cleared.base.errors import WorkspaceError
from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.changes.audit.acceptance import accept_commit, list_accepted_changes
from cleared.changes.audit.record_violations import describe_violations
from cleared.changes.host import Host
from cleared.cli.options import (
    JsonOption,
    WorkspaceOption,
    open_host,
    open_host_once,
    open_readable_host,
    tell_directory,
)
from cleared.cli.showing import has_terminal
from cleared.domains.installed_domains import describe_number_of_records
from cleared.review.damage_cards import DamageUpdate, update_damage_cards


def check_records(
    card: Annotated[
        bool, typer.Option("--card", help="Also make a card of each thing that is wrong; settle those that are gone.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Check every invariant over all records, and compare them with the last commit.

    Finds what was damaged by hand, and names commits that touched records without a run or a decision, or that
    decided what was not theirs to decide. Exits 1 where anything is wrong.
    """
    host = open_host(workspace) if card else open_readable_host(workspace)
    violations = describe_violations(host)
    update, refused = _make_cards(host, violations) if card else (DamageUpdate(), None)
    if json:
        print_json({"ok": not violations, "violations": violations} | ({"no_cards": str(refused)} if refused else {}))
    elif not violations:
        print_line(f"All is in order: {describe_number_of_records(host)}, every invariant holds.")
    for v in [] if json else violations:
        where = "".join(f"{v[key]}: " for key in ("place", "record_id") if v[key])
        print_line(f"[{v['check']}] {where}{v['message']}. {v['remedy']}")
    if update.commit:
        print_message(
            f"{count_noun(len(update.opened), 'card')} made, {len(update.settled)} settled ({update.commit[:10]})"
        )
    if refused:
        print_message(f"no card was made: {refused}")
    if violations:
        print_message(f"cleared: {count_noun(len(violations), 'violation')}")
        tell_directory(v["remedy"] for v in violations)
        sys.stdout.flush()
        raise typer.Exit(refused.exit_code if refused else 1)


def _make_cards(host: Host, violations: Sequence[Mapping[str, Any]]) -> tuple[DamageUpdate, WorkspaceError | None]:
    """What became of the cards, and why none was made though something is wrong: nothing is committed where rows are
    lost, or files differ. Where the check did not find that either, it is raised."""
    try:
        return update_damage_cards(host), None
    except WorkspaceError as error:
        if not violations:
            raise
        return DamageUpdate(), error


def accept_unknown_commit(
    commit: Annotated[str, typer.Argument(metavar="COMMIT", help="A commit that check names.")],
    reason: Annotated[str, typer.Option("--reason", help="Why it is right.")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Answer for a commit that changed records without a run or a decision; check names it no more.

    On a terminal it shows each row that the commit adds or takes away, and asks.
    """
    host = open_host_once(workspace, json=json)
    found, lines = list_accepted_changes(host, commit, reason)
    if lines and has_terminal(json):
        for line in lines:
            print_message(f"  {line}")
        if not typer.confirm(f"Answer for commit {found[:10]}?", default=False, err=True):
            raise typer.Exit(1)
    accepted, answer = accept_commit(host, found, reason)
    if json:
        print_json({"accepted": accepted, "commit": answer})
    else:
        print_line(f"{accepted[:10]} is accepted ({answer[:10]}).")
