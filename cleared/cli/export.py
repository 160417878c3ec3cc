"""``cleared export …``: the books for other programs and other people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.books.exports.accountant_package import default_path, export_package
from cleared.books.exports.journal_export import export_journal
from cleared.books.exports.workbook_export import export_workbook
from cleared.changes.host import Host
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, warn_of_doubt

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


@app.command("xlsx")
def export_as_workbook(
    directory: DirectoryArgument,
    period: Annotated[
        str | None,
        typer.Option("--period", metavar="PERIOD", help="2025, 2025-Q1 … (default: the newest fiscal year)."),
    ] = None,
    force: ForceOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write DIR/books.xlsx: statements with formulas that sum, accounts, journal and bank lines of a period."""
    written = export_workbook(_open_host(workspace), directory, period, force=force)
    _print_written(written, f"{written['file']}: {written['period']}.", json)


@app.command("package")
def export_for_accountant(
    year: Annotated[str, typer.Argument(metavar="YEAR", help="2025, or FY2025 for a fiscal year.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Where (default: exports/package-YEAR.zip).")
    ] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Although entries wait for review; it says so.")] = False,
    force: ForceOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Write the package for your accountant, one zip: statements, journal, bank lines, receipts, and a manifest.

    Refused while entries of the year wait for review, unless --draft is given.
    """
    host = _open_host(workspace)
    path = output if output is not None else default_path(host, year)
    written = export_package(host, year, path, draft=draft, force=force)
    _print_written(written, f"{written['file']}: {written['period']}, {len(written['files'])} files.", json)


def _export_journal(format: str, directory: Path, force: bool, json: bool, workspace: Path | None) -> None:
    written = export_journal(_open_host(workspace), format, directory, force=force)
    entries = count_noun(written["entries"], "entry", "entries")
    _print_written(written, f"{written['file']}: {entries}.", json)


def _open_host(workspace: Path | None) -> Host:
    host = open_host(workspace)
    warn_of_doubt(host)
    return host


def _print_written(written: dict[str, Any], summary: str, json: bool) -> None:
    if json:
        print_json(written)
    else:
        print_line(summary)
    for warning in written["warnings"]:
        print_message(f"cleared: {warning}")
