"""``cleared trust``: which books these are, and whose approvals count in them on this machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cleared.base.errors import PolicyError
from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, open_host_once
from cleared.cli.showing import DigestOption, Subject, note_shown, taking_shown
from cleared.gate.proposals.clone_trust import (
    SHOWN,
    Signatory,
    digest_signatories,
    forget_key,
    list_signatories,
    read_identity,
    select_signatories,
    trust_signatories,
)
from cleared.gate.proposals.new_books import make_new_books
from cleared.trust.keys import own_public_key, run_public_key
from cleared.trust.trust_store import load_trust
from cleared.trust.workspace_pin import WorkspaceIdentity, pins_of_workspace


def trust_clone(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask: only what --digest names is taken.")] = False,
    digest: DigestOption = "",
    list_: Annotated[bool, typer.Option("--list", help="Only show who approved what.")] = False,
    same_books: Annotated[
        bool,
        typer.Option("--same-books", help="These are the books they say they are, though this machine doubts it."),
    ] = False,
    new_books: Annotated[
        bool,
        typer.Option("--new-books", help="These were made from others (a template): give them an id of their own."),
    ] = False,
    forget: Annotated[
        str, typer.Option("--forget", metavar="KEY", help="What was signed with it counts no more on this machine.")
    ] = "",
    key: Annotated[
        list[str] | None, typer.Option("--key", metavar="KEY", help="Only what was signed with this key; repeatable.")
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """After cloning: see whose approvals these are, and say whether they count on this machine.

    With that the clone is pinned: whatever a commit brings, approvals of other books do not count in it. Exits 3 where
    something is not trusted yet and nobody said yes. Where nobody can be asked, CLEARED_TRUST=ID,… in the environment
    does as if the clones of these books were pinned.
    """
    others = same_books or list_ or bool(key)
    if new_books and others:
        raise typer.BadParameter("it goes with none of --same-books, --list and --key", param_hint="--new-books")
    if forget and (new_books or others):
        raise typer.BadParameter("it stands alone", param_hint="--forget")
    if new_books:
        _make_new_books(open_host_once(workspace, json=json, despite_fault=True), json)
        return
    host = open_host(workspace, despite_fault=True)
    if forget:
        _forget_key(host, forget, json)
        return
    identity, signatories = read_identity(host), list_signatories(host)
    waiting = select_signatories(signatories, key or ())
    refusal: PolicyError | None = None
    subject = _subject_of(identity, waiting, _name_command(same_books, key or ()))
    if list_:
        note_shown(host.root, subject.digest, "printed")
    elif waiting or (identity.id and not identity.pinned) or identity.problem is not None:
        try:
            _take_shown(host, identity, subject, digest, same_books=same_books, keys=key or (), json=json or yes)
            identity, signatories = read_identity(host), list_signatories(host)
        except PolicyError as error:
            refusal = error
    if json:
        print_json([_describe_signatory(each) for each in signatories])
    elif refusal is None:
        _print_signatories(identity, signatories)
    if refusal is not None and not json:
        raise refusal
    if refusal is not None:
        print_message(f"cleared: {refusal}")
        sys.stdout.flush()
        raise typer.Exit(int(refusal.exit_code))


def _describe_signatory(signatory: Signatory) -> dict[str, object]:
    names = ("key", "names", "paths", "first", "last", "trusted")
    kind = {"runs": signatory.is_run_key, "bookkeeper": signatory.is_bookkeeper}
    return {**{name: getattr(signatory, name) for name in names}, **kind}


def require_trusted(host: Host, digest: str, command: str, *, json: bool, nobody_new: bool) -> None:
    """Have whoever signed in this clone trusted on this machine, as ``cleared trust`` does; nothing where they are.
    ``command``: takes it in a script, but for its digest. ``nobody_new``: who is not trusted in a clone that is, stays
    so. Raises ``PolicyError`` where nobody said yes."""
    identity, waiting = read_identity(host), select_signatories(list_signatories(host), ())
    if identity.pinned and identity.problem is None and (nobody_new or not waiting):
        return
    subject = _subject_of(identity, waiting, command)
    trust = load_trust(identity.id)
    known = {own_public_key(host.root), run_public_key(host.root), *trust.keys, *trust.runs}
    is_known = known.issuperset(each.key for each in waiting) and pins_of_workspace(identity.id)
    if identity.problem is None and is_known:  # another clone of books that are trusted here
        with expecting({subject.name: subject.digest}):
            trust_signatories(host)
        return
    _take_shown(host, identity, subject, digest, json=json)


def _take_shown(
    host: Host,
    identity: WorkspaceIdentity,
    subject: Subject,
    digest: str,
    *,
    same_books: bool = False,
    keys: Sequence[str] = (),
    json: bool,
) -> None:
    if identity.problem is not None and not identity.used_elsewhere and not same_books:
        raise identity.problem
    with taking_shown(host.root, subject, digest, json=json):
        trust_signatories(host, same_books=same_books, keys=keys)


def _name_command(same_books: bool, keys: Sequence[str]) -> str:
    return "".join(
        ["cleared trust ", "--same-books " if same_books else "", *(f"--key {key} " for key in keys), "--digest "]
    )


def _subject_of(identity: WorkspaceIdentity, waiting: Sequence[Signatory], command: str) -> Subject:
    """Who signed here, to be trusted. ``command``: takes it, but for its digest."""
    digest = digest_signatories(identity, waiting)
    return Subject(
        name=SHOWN,
        title="who signed here",
        digest=digest,
        command=command,
        question="Do these approvals count on this machine?",
        lets_in=True,
        parts={"signatories": lambda: _print_signatories(identity, waiting)},
    )


def _make_new_books(host: Host, json: bool) -> None:
    made = make_new_books(host)
    if json:
        print_json({"workspace": made.id, "commit": made.commit, "kept": made.signed_again})
        return
    print_line(f"These books have an id of their own now: {made.id} ({made.commit[:10]}).")
    for path in made.signed_again:
        print_line(f"  counts as before: {path}")


def _forget_key(host: Host, text: str, json: bool) -> None:
    key, whose = forget_key(host, text)
    if json:
        print_json({"key": key, "whose": whose})
        return
    print_line(f"The key {key.removeprefix('ed25519:')[:16]} of {whose} counts no more on this machine.")
    print_message("What it approved is not run until it is approved again. See: cleared agent list, config approve.")


def _print_signatories(identity: WorkspaceIdentity, signatories: Sequence[Signatory]) -> None:
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
            (
                ", ".join(s.names),
                s.key.removeprefix("ed25519:")[:16],
                s.first[:10],
                s.last[:10],
                "no: a bookkeeper" if s.is_bookkeeper else "yes" if s.trusted else "no",
                ", ".join(s.paths),
            )
            for s in signatories
        ),
        wrap=["approved", "who"],
        empty="",
    )
