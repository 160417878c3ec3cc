"""``cleared report``: statements and lists made of the books."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cleared.base.terminal import escape_lines, print_batches, print_line, print_message, print_table
from cleared.books.reports.catalogue import ReportRequest, make_report
from cleared.books.reports.cell_texts import format_cell, format_label
from cleared.books.reports.report import Report
from cleared.cli.completion import complete_accounts
from cleared.cli.options import JsonOption, WorkspaceOption, chosen_workspace
from cleared.cli.quick_books import open_report_books
from cleared.workspace.location import find_workspace


def show_report(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="pnl, balance-sheet, trial-balance, cash-flow, ledger, vendors, monthly or tax."
        ),
    ],
    period: Annotated[
        str | None,
        typer.Option(
            "--period",
            metavar="PERIOD",
            help="2025, 2025-Q1, 2025-03, 2025-01..2025-03, FY2025 (default: the fiscal year of the newest entries).",
        ),
    ] = None,
    compare: Annotated[
        str | None, typer.Option("--compare", metavar="WITH", help="previous, or year: the same a year earlier.")
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", metavar="FORMAT", help="table, csv, json, html or xlsx.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it there; its ending says the format.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    account: Annotated[
        int | None,
        typer.Option("--account", metavar="N", autocompletion=complete_accounts, help="Of the ledger: only this one."),
    ] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Of taxes: even while entries wait for review.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show a report of the books as they were last committed; entries that wait for review are named at its top.

    The general ledger, and every other report as CSV or JSON, is written while it is made.
    """
    chosen = _choose_format("json" if json else format, output)
    with open_report_books(workspace) as books:
        report = make_report(books, ReportRequest(name, period, compare, draft, account))
        if output is not None:
            _write_report(report, chosen, output, force, workspace, books.index.places)
        elif chosen == "table":
            _print_report(report)
        else:
            from cleared.books.reports.renderings import join_texts, write_text

            if chosen == "csv":
                for warning in report.list_warnings():
                    print_message(f"cleared: {warning}")
            is_terminal = sys.stdout.isatty()  # a file has the bank's texts as they are
            for text in join_texts(write_text(report, chosen)):
                sys.stdout.write(escape_lines(text.replace("\r\n", "\n")) if is_terminal else text)


def _choose_format(format: str | None, output: Path | None) -> str:
    known = ("table", "csv", "json", "html", "xlsx")
    ending = output.suffix[1:].lower() if output is not None else ""
    if format is None and ending and ending not in known:
        raise typer.BadParameter(
            f"its ending .{ending[:20]} is not one of csv, json, html, xlsx: give --format", param_hint="--output"
        )
    chosen = format or ending or ("csv" if output is not None else "table")
    if chosen not in known:
        raise typer.BadParameter(f"{chosen!r} is not one of {', '.join(known)}", param_hint="--format")
    if chosen == "xlsx" and output is None:
        raise typer.BadParameter("a workbook is no text: say where to write it with --output FILE.xlsx")
    if chosen == "table" and output is not None:
        raise typer.BadParameter("a table is for the terminal: write csv, json, html or xlsx", param_hint="--output")
    return chosen


def _write_report(report: Report, format: str, path: Path, force: bool, workspace: Path | None, places: int) -> None:
    from cleared.books.exports.export_target import open_target
    from cleared.books.reports.renderings import write_file

    with open_target(find_workspace(chosen_workspace(workspace)), path, force=force) as file:
        write_file(report, format, file, places)
    print_line(f"{path}: {report.title}, {report.span}.")
    for warning in report.list_warnings():
        print_message(f"cleared: {warning}")


def _print_report(report: Report) -> None:
    for line in report.list_heads():
        print_line(line)
    titles = [report.label_title, *(c.title for c in report.columns)]
    right = [c.title for c in report.columns if c.kind in ("amount", "count")]
    cells = (
        (
            "  " * row.depth + format_label(row),
            *(format_cell(cell, column, row) for cell, column in zip(row.cells, report.columns, strict=False)),
            *([""] * (len(report.columns) - len(row.cells))),
        )
        for row in report.rows
    )
    if isinstance(report.rows, list):
        print_table(titles, cells, right=right, wrap=[report.label_title], empty="Nothing was booked.")
        return
    _print_long(report)


def _print_long(report: Report) -> None:
    """Of a report whose rows are made while they are taken: some rows at a time."""
    from collections.abc import Iterator, Sequence
    from itertools import islice

    titles = [report.label_title, *(c.title for c in report.columns)]

    def read_batches() -> Iterator[Sequence[Sequence[str]]]:
        yield [[title] for title in titles]
        rows = iter(report.rows)
        while batch := list(islice(rows, 1_000)):
            labels = ["  " * row.depth + format_label(row) for row in batch]
            columns = [
                [format_cell(row.cells[n], column, row) if row.cells else "" for row in batch]
                for n, column in enumerate(report.columns)
            ]
            yield [labels, *columns]

    right = [c.title for c in report.columns if c.kind in ("amount", "count")]
    print_batches(
        titles, read_batches, right=right, wrap=[report.label_title, "counterparty"], empty="Nothing was booked."
    )
