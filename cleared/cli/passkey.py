"""``cleared passkey …``: phones and security keys that sign in to the page, and sign what is decided there."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Final

import typer

from cleared.base.errors import PolicyError, UsageError
from cleared.base.terminal import print_json, print_line, print_message, print_table
from cleared.changes.host import Host
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.cli.showing import Subject, has_terminal, taking_shown
from cleared.gate.proposals import passkey_registration
from cleared.gate.proposals.passkey_registration import (
    SHOWN,
    NewPasskey,
    read_passkeys,
    register_passkey,
    require_person_name,
)
from cleared.review.reviewer_list import list_reviewers
from cleared.trust.keys import unlock_own_key
from cleared.trust.passkey_assertions import host_of
from cleared.trust.passkey_records import Passkey
from cleared.trust.person_only import refuse_in_job
from cleared.web.page_server import require_packages
from cleared.web.passkey_invitations import INVITED_SECONDS, Invitation, invited
from cleared.web.running_servers import find_server

app = new_group()
_POLL_SECONDS: Final = 0.3


@app.command("add")
def add_passkey(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The person's; reviewers are listed by theirs.")],
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Where the browser reaches cleared server, which must be open.")
    ] = "http://localhost:8765",
    code: Annotated[bool, typer.Option("--code", help="Print a short code to type on the device, not a link.")] = False,
    like: Annotated[
        Path | None,
        typer.Option("--like", metavar="DIR", help="The device that counts as theirs in that workspace of yours."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Invite a person to register a device: prints a link (or a code) that counts once, for ten minutes, and waits.

    Open the link with that device, in the running cleared server. Its page names the passkey that it made; so does this
    command, and asks; in a script it reads that name as a line. Your approval key signs that it counts.
    """
    require_packages("cleared passkey add")
    refuse_in_job()
    require_person_name(name)
    host = open_host(workspace)
    unlock_own_key(host.root)
    _require_may_decide(host)
    if like is not None:
        for new in _list_elsewhere(host, open_host(like), name):
            with taking_shown(host.root, _subject_of(name, new), json=json, is_own=True):
                _report(host, register_passkey(host, name, new), json=json)
        return
    with invited(host.root, name, is_typed=code, server=find_server(url)) as invitation:
        address = f"{url.rstrip('/')}/passkeys/new{'' if code else f'#{invitation.code}'}"
        print_message(f"Open with the device (cleared server must be running): {address}")
        if code:
            print_message(f"Code: {invitation.code}")
        what = "code" if code else "link"
        print_message(f"The {what} counts once, for ten minutes. This command waits; Ctrl-C takes it back.")
        new = _wait_for_device(invitation)
    if not has_terminal(json):
        _require_named(name, new)
    with taking_shown(host.root, _subject_of(name, new), json=json, is_own=True):
        passkey = register_passkey(host, name, new)
    _report(host, passkey, json=json)


def _list_elsewhere(host: Host, other: Host, name: str) -> list[NewPasskey]:
    """The person's passkeys that count in the other workspace and not in this one. Raises ``UsageError`` where there
    is none."""
    here = {each.key for each in read_passkeys(host)}
    found = [each for each in read_passkeys(other) if each.name == name and each.key not in here]
    if not found:
        raise UsageError(
            f"{name} has no passkey in {other.root} that does not count here already",
            remedy=f"See: cleared passkey list -C {other.root}.",
        )
    return [NewPasskey(each.key, each.credential, each.counter) for each in found]


def _report(host: Host, passkey: Passkey, *, json: bool) -> None:
    """Say that a passkey counts, and what is missing."""
    if json:
        print_json({"id": passkey.id, "name": passkey.name, "host": passkey.host, "key": passkey.key})
        return
    print_line(passkey.id)
    print_message(f"the passkey of {passkey.name} counts from now on, at {passkey.host}")
    if host.config.reviewers and all(each.key != passkey.key for each in host.config.reviewers):
        print_message(
            "It is no reviewer's yet: name its key (cleared passkey list --json) among reviewers: in "
            "config.yaml, then cleared config approve."
        )


def _subject_of(name: str, new: NewPasskey) -> Subject:
    """A passkey that a device has made, to count from now on."""
    digest = new.digest_for(name)
    return Subject(
        name=SHOWN,
        title=f"the passkey of {name}",
        digest=digest,
        command="cleared passkey add ",
        question=f"Does the page of {name}'s device name this passkey?",
        parts={"passkey": lambda: print_line(f"A device has made the passkey {new.id}, at {host_of(new.key)}.")},
    )


def _require_named(name: str, new: NewPasskey) -> None:
    """Where there is no terminal to ask on: the line that is read must be the passkey's id, as the device's page has
    it. Whoever else had the link has made another one. Raises ``PolicyError``."""
    print_message(
        f"A device has made the passkey {new.id}, at {host_of(new.key)}. It counts once a line is read that has what "
        f"the page of {name}'s device names."
    )
    if sys.stdin.readline().strip() != new.id:
        raise PolicyError(
            f"the passkey {new.id} was not confirmed; nothing was registered",
            remedy="Run the command in a terminal; in a script, write the id that the device's page names to it.",
        )


def _require_may_decide(host: Host) -> None:
    """Before a device makes a passkey for nothing."""
    if not list_reviewers(host)["may_decide"]:
        raise PolicyError(
            "only reviewers may register a passkey here", remedy="Ask one of them: cleared queue reviewers."
        )


def _wait_for_device(invitation: Invitation) -> NewPasskey:
    end = time.monotonic() + INVITED_SECONDS
    while time.monotonic() < end:
        new = invitation.read_result()
        if new is not None:
            return new
        time.sleep(_POLL_SECONDS)
    raise PolicyError("nobody has opened the link in time; nothing was registered", remedy="Run the command again.")


@app.command("list")
def list_passkeys(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List the passkeys that count in this workspace, on this machine."""
    passkeys = read_passkeys(open_host(workspace))
    if json:
        print_json(
            [{"id": p.id, "name": p.name, "host": p.host, "by": p.by, "at": p.at, "key": p.key} for p in passkeys]
        )
        return
    print_table(
        ["id", "name", "host", "by", "at"],
        ((p.id, p.name, p.host, p.by, p.at) for p in passkeys),
        empty="No passkey is registered. Register one: cleared passkey add NAME.",
    )


@app.command("remove")
def remove_passkey(
    id: Annotated[str, typer.Argument(metavar="ID", help="As in the list, or its beginning.")],
    workspace: WorkspaceOption = None,
) -> None:
    """Have a passkey count no more, at once; what it has signed stays valid."""
    host = open_host(workspace)
    removed = passkey_registration.remove_passkey(host, id)
    print_message(f"the passkey of {removed.name} ({removed.id}) counts no more")
    if any(each.key == removed.key for each in host.config.reviewers):
        print_message("Take its key out of reviewers: in config.yaml, too, then: cleared config approve.")
