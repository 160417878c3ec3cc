"""``cleared receipt …``: receipts, and the entries that they prove."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from cleared.base.terminal import count_noun, escape_text, print_json, print_line, print_message, print_table
from cleared.books.decisions.receipt_filing import (
    FiledReceipts,
    file_inbox,
    file_receipt,
    link_receipt,
    remove_receipt,
    unlink_receipt,
)
from cleared.books.importing.pdf_text import can_read_pdf
from cleared.books.receipt_list import list_missing_receipts, list_receipts
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_cards_and_entries
from cleared.cli.options import JsonOption, WorkspaceOption, open_host

app = new_group()
_MAX_LIKELY: Final = 5
"""Payments that are shown where several fit a receipt."""
ReceiptArgument = Annotated[
    str,
    typer.Argument(metavar="RECEIPT", help="The beginning of its digest (cleared receipt list), or its name."),
]
EntryArgument = Annotated[
    str, typer.Argument(metavar="ENTRY", autocompletion=complete_cards_and_entries, help="Such as 2025-01-015.")
]


@app.command("add")
def add_receipts(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE…]", help="Default: all that lies in receipts/inbox/.")
    ] = None,
    entry: Annotated[
        str | None,
        typer.Option("--entry", metavar="ID", autocompletion=complete_cards_and_entries, help="The entry it proves."),
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Keep receipts by their digest, in receipts/. Without --entry, an entry of that amount and day is proposed.

    The proposal is a card: nothing is linked by itself. Amounts and days are read from the name and, of text, HTML,
    mail and PDF files (PDF needs pip install '.[receipts]'), from the text. A file of the inbox leaves it; any other
    stays where it is. Exits 1 where a file of the inbox was refused.
    """
    host = open_host(workspace)
    if entry is not None and len(files or []) != 1:
        raise typer.BadParameter("name the one file that proves the entry", param_hint="--entry")
    results = [file_receipt(host, path, entry) for path in files] if files else [file_inbox(host)]
    if json:
        print_json(
            {
                "receipts": [
                    {
                        "name": f.receipt.name,
                        "sha256": f.receipt.sha256,
                        "file": f.receipt.file,
                        "new": f.is_new,
                        "entries": list(f.entries),
                        "proposed": f.proposed.entry_id if f.proposed else None,
                        "likely": [payment.entry_id for payment in f.likely],
                    }
                    for result in results
                    for f in result.filed
                ],
                "refused": [{"name": name, "why": why} for result in results for name, why in result.refused],
                "commits": [result.commit for result in results if result.commit],
            }
        )
    else:
        _print_filed(results, inbox=not files)
    if any(result.refused for result in results):
        sys.stdout.flush()
        raise typer.Exit(1)


def _print_filed(results: list[FiledReceipts], *, inbox: bool) -> None:
    filed = [each for result in results for each in result.filed]
    for each in filed:
        receipt, fate = each.receipt, "Kept" if each.is_new else "Kept before"
        entries = f", of {', '.join(each.entries)}" if each.entries else ""
        print_line(f"{fate}: {escape_text(receipt.name)} ({receipt.sha256[:8]}){entries}.")
        if each.proposed is not None:
            payment = each.proposed
            print_line(f"  Perhaps of {payment.entry_id}, {payment.day} {payment.amount} {escape_text(payment.text)}.")
        elif each.likely:
            print_line(f"  {len(each.likely)} payments fit it. cleared receipt link {receipt.sha256[:8]} with one of:")
            for payment in each.likely[:_MAX_LIKELY]:
                print_line(f"    {payment.entry_id}  {payment.day}  {payment.amount}  {escape_text(payment.text)}")
    if inbox and not filed and not any(result.refused for result in results):
        print_line("Nothing lies in receipts/inbox/.")
    for result in results:
        for name, why in result.refused:
            print_message(f"receipts/inbox/{escape_text(name)} stays there: {why}")
        if result.is_rest:
            print_message("More lie in receipts/inbox/: say it again.")
    if any(each.proposed for each in filed):
        print_message("Decide about the proposals: cleared review.")
    if any(each.receipt.name.lower().endswith(".pdf") for each in filed) and not can_read_pdf():
        print_message("PDF files were matched by their names alone; pip install '.[receipts]' reads them.")


@app.command("list")
def list_kept_receipts(
    loose: Annotated[bool, typer.Option("--loose", help="Only those that prove no entry yet.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List the receipts that are kept, newest first, with the entries that they prove."""
    data = list_receipts(open_host(workspace), loose=loose)
    if json:
        print_json(data)
        return
    print_table(
        ["receipt", "name", "entries", "bytes", ""],
        (
            (
                r["sha256"][:8],
                r["name"],
                _format_entries(r["entries"], r["voided"]),
                r["bytes"],
                "" if r["is_here"] else "not in this clone",
            )
            for r in data["receipts"]
        ),
        right=["bytes"],
        wrap=["name"],
        empty="No receipt is kept." if not loose else "Each receipt has its entry.",
    )
    if data["inbox"]:
        print_message(f"{count_noun(len(data['inbox']), 'file')} in receipts/inbox/ to keep: cleared receipt add")


def _format_entries(entries: list[str], voided: list[str]) -> str:
    return ", ".join(f"{each} (voided)" if each in voided else each for each in entries)


@app.command("missing")
def list_payments_without_receipt(
    over: Annotated[str, typer.Option("--over", metavar="AMOUNT", help="Only payments of more than this.")] = "0",
    period: Annotated[
        str | None, typer.Option("--period", metavar="PERIOD", help="2025, 2025-Q1, 2025-03 … (default: all).")
    ] = None,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List payments that no receipt proves: money that went out of a bank account, and was not a transfer."""
    from decimal import Decimal, InvalidOperation

    try:
        least = Decimal(over)
    except InvalidOperation:
        raise typer.BadParameter(f"{over!r} is not an amount; write 75", param_hint="--over") from None
    data = list_missing_receipts(open_host(workspace), least, period)
    if json:
        print_json(data)
        return
    print_table(
        ["entry", "date", "amount", "text"],
        ((p["entry_id"], p["date"], p["amount"], p["text"]) for p in data["payments"]),
        right=["amount"],
        wrap=["text"],
        empty="Each of these payments has its receipt.",
    )
    if data["payments"]:
        count = count_noun(len(data["payments"]), "payment")
        print_message(f"{count} of {data['total']} {data['currency']} without a receipt.")


@app.command("link")
def link_to_entry(receipt: ReceiptArgument, entry: EntryArgument, workspace: WorkspaceOption = None) -> None:
    """Say which entry a kept receipt proves. One may prove several, and an entry may have several."""
    commit = link_receipt(open_host(workspace), receipt, entry)
    print_line(f"{entry} has the receipt{f' ({commit[:10]})' if commit else ' already'}.")


@app.command("unlink")
def unlink_from_entry(receipt: ReceiptArgument, entry: EntryArgument, workspace: WorkspaceOption = None) -> None:
    """Take back that a receipt proves an entry. The receipt stays."""
    print_line(f"{entry} has not that receipt any more ({unlink_receipt(open_host(workspace), receipt, entry)[:10]}).")


@app.command("remove")
def remove_kept_receipt(receipt: ReceiptArgument, workspace: WorkspaceOption = None) -> None:
    """Keep a receipt no more. Where git had it, its history still has it."""
    print_line(f"Removed ({remove_receipt(open_host(workspace), receipt)[:10]}).")
