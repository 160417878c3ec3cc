"""``cleared export …``: the books for other programs and other people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import count_noun, print_json, print_line, print_message

app = new_group()
DirectoryArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="Where to write it; made where it is missing, such as exports/.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what was exported there before.")]


@app.command("hledger")
def export_for_hledger(
    directory: DirectoryArgument,
    force: ForceOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write DIR/books.journal, which hledger check accepts, with the same balance in every account.

    Balances of bank statements that the books meet become assertions; ids, links and tags stay as metadata.
    """
    _export_journal("hledger", directory, force, json, workspace)


@app.command("beancount")
def export_for_beancount(
    directory: DirectoryArgument,
    force: ForceOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write DIR/books.beancount, which bean-check accepts, with the same balance in every account.

    It ends with the trial balance as assertions, so that bean-check proves every total to the cent.
    """
    _export_journal("beancount", directory, force, json, workspace)


def _export_journal(format: str, directory: Path, force: bool, json: bool, workspace: Path | None) -> None:
    from cleared.exports.journal_export import export_journal

    written = export_journal(open_host(workspace), format, directory, force=force)
    if json:
        print_json(written)
    else:
        print_line(f"{written['file']}: {count_noun(written['entries'], 'entry', 'entries')}.")
    for warning in written["warnings"]:
        print_message(f"cleared: {warning}")
