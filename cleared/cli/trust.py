"""``cleared trust``: which books these are, and whose approvals count in them on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import print_json, print_line, print_message, print_table

if TYPE_CHECKING:
    from cleared.approvals.workspace_pin import WorkspaceIdentity
    from cleared.changes.host import Host
    from cleared.proposals.clone_trust import Signatory


def trust_clone(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Trust all that is shown, without being asked.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only show who approved what.")] = False,
    same_books: Annotated[
        bool,
        typer.Option("--same-books", help="These are the books they say they are, though this machine doubts it."),
    ] = False,
    new_books: Annotated[
        bool,
        typer.Option("--new-books", help="These were made from others (a template): give them an id of their own."),
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """After cloning: see whose approvals these are, and say whether they count on this machine.

    With that the clone is pinned: whatever a commit brings, approvals of other books do not count in it. Exits 3 where
    something is not trusted yet and nobody said yes. Where nobody can be asked, CLEARED_TRUST=ID,… in the environment
    does as if the clones of these books were pinned.
    """
    from cleared.errors import PolicyError
    from cleared.proposals.clone_trust import list_signatories, read_identity, trust_keys

    if new_books and (same_books or list_):
        raise typer.BadParameter("it goes with neither --same-books nor --list", param_hint="--new-books")
    host = open_host(workspace)
    if new_books:
        _make_new_books(host, json)
        return
    identity, signatories = read_identity(host), list_signatories(host)
    waiting = [s for s in signatories if not s.trusted]
    open_ = bool(waiting) or (bool(identity.id) and not identity.pinned) or identity.problem is not None
    if not list_ and open_ and not yes and sys.stdin.isatty() and sys.stdout.isatty() and not json:
        _print_signatories(identity, waiting)
        yes = typer.confirm("Do these approvals count on this machine?", default=False)
    if yes and open_ and not list_:
        trust_keys(host, [s.key for s in waiting], same_books=same_books)
        identity, signatories, open_ = read_identity(host), list_signatories(host), False
    if json:
        print_json([{"key": s.key, "names": s.names, "paths": s.paths, "first": s.first, "last": s.last,
                   "trusted": s.trusted, "runs": s.is_run_key} for s in signatories])  # fmt: skip
    else:
        _print_signatories(identity, signatories)
    if not list_ and open_:
        option = " --same-books" if same_books else ""
        refusal = identity.problem if identity.problem is not None and not same_books else PolicyError(
            "the approvals of these keys do not count on this machine yet" if signatories else
            "this clone is not trusted on this machine yet",
            remedy=f"To trust them: cleared trust{option} --yes.",
        )  # fmt: skip
        if not json:
            raise refusal
        print_message(f"cleared: {refusal}")
        sys.stdout.flush()
        raise typer.Exit(int(refusal.exit_code))


def _make_new_books(host: Host, json: bool) -> None:
    from cleared.proposals.new_books import make_new_books

    made = make_new_books(host)
    if json:
        print_json({"workspace": made.id, "commit": made.commit, "kept": made.signed_again})
        return
    print_line(f"These books have an id of their own now: {made.id} ({made.commit[:10]}).")
    for path in made.signed_again:
        print_line(f"  counts as before: {path}")


def _print_signatories(identity: WorkspaceIdentity, signatories: list[Signatory]) -> None:
    if identity.copy_of:
        print_line(f"This is a copy of {Path(identity.copy_of).parent}.")
    if identity.id:
        print_line(f"Books {identity.id}, {'pinned' if identity.pinned else 'not pinned'} on this machine.")
    if not signatories:
        print_line("Nothing was approved here by signature: there is nobody to trust.")
        return
    print_table(
        ["who", "key", "from", "to", "trusted", "approved"],
        (
            (", ".join(s.names), s.key.removeprefix("ed25519:")[:16], s.first[:10], s.last[:10],
             "yes" if s.trusted else "no", ", ".join(s.paths))
            for s in signatories
        ),
        wrap=["approved", "who"], empty="",
    )  # fmt: skip
