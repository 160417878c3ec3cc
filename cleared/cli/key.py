"""``cleared key``: the passphrase of the key that approvals are signed with."""

from __future__ import annotations

from cleared.base.terminal import print_fields, print_json, print_line
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption
from cleared.trust.key_protection import change_passphrase, protect_key, unprotect_key
from cleared.trust.keys import describe_approval_key

app = new_group()


@app.command("protect")
def protect_approval_key() -> None:
    """Give the approval key a passphrase: asked for at each approval, on the terminal.

    A program that runs as you, such as a coding agent, can then not approve by itself. Where there is no key yet, one
    is made. Nobody can recover a lost passphrase.
    """
    public = protect_key()
    print_line(f"The approval key {public} has a passphrase now.")


@app.command("unprotect")
def unprotect_approval_key() -> None:
    """Take the passphrase away from the approval key. Asks for it."""
    unprotect_key()
    print_line("The approval key has no passphrase any more: every program that runs as you can approve with it.")


@app.command("change")
def change_key_passphrase() -> None:
    """Change the passphrase of the approval key. Asks for the old one and the new one."""
    change_passphrase()
    print_line("The approval key has the new passphrase now.")


@app.command("status")
def show_key_status(json: JsonOption = False) -> None:
    """Show where the approval key lies, its public half, and whether it has a passphrase."""
    status = describe_approval_key()
    if json:
        print_json(status)
    else:
        print_fields((name.replace("_", " "), value) for name, value in status.items())
