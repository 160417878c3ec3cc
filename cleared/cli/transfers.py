"""``cleared transfers``: transfers between own accounts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from cleared.base.terminal import print_json, print_line, print_table
from cleared.books.decisions.transfer_pairing import pair_transfer
from cleared.books.transfer_list import read_transfers
from cleared.cli.command_groups import DefaultingGroup
from cleared.cli.completion import complete_cards_and_entries
from cleared.cli.options import JsonOption, WorkspaceOption, open_host


class TransferGroup(DefaultingGroup):
    """``cleared transfers`` is ``cleared transfers list``."""

    default = "list"


app = typer.Typer(cls=TransferGroup, rich_markup_mode=None)
EntryId = Annotated[
    str, typer.Argument(metavar="ENTRY", autocompletion=complete_cards_and_entries, help="One side of it.")
]


@app.command("list")
def list_transfers(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List transfers between your own accounts: paired, with one side missing, and what looks like one.

    The word list may be left out. Both sides go through the clearing account (1090); they stay two entries.
    """
    data = read_transfers(open_host(workspace))
    if json:
        print_json(data)
        return
    _print_pairs("Both sides are in:", data["pairs"], "No transfer has both sides.")
    if data["unpaired"]:
        print_line("")
        print_line("The other side is missing:")
        print_table(
            ["entry", "date", "account", "amount", "text"],
            ((s["entry_id"], s["date"], s["account_id"], s["amount"], s["text"]) for s in data["unpaired"]),
            right=["amount"],
            wrap=["text"],
            empty="",
        )
    if data["proposed"]:
        print_line("")
        _print_pairs("Perhaps one transfer (cleared transfers pair ENTRY ENTRY):", data["proposed"], "")


def _print_pairs(heading: str, pairs: Sequence[dict[str, Any]], empty: str) -> None:
    if pairs:
        print_line(heading)
    print_table(
        ["out", "date", "account", "in", "date", "account", "amount", "text"],
        (
            (
                p["out"]["entry_id"],
                p["out"]["date"],
                p["out"]["account_id"],
                p["in"]["entry_id"],
                p["in"]["date"],
                p["in"]["account_id"],
                p["in"]["amount"],
                p["out"]["text"],
            )
            for p in pairs
        ),
        right=["amount"],
        wrap=["text"],
        empty=empty,
    )


@app.command("pair")
def pair_entries(one: EntryId, other: EntryId, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Book two entries as both sides of one transfer: each goes through the clearing account (1090).

    Nothing is edited: correcting entries are posted, in one commit. cleared queue undo takes it back.
    """
    result = pair_transfer(open_host(workspace), one, other)
    if json:
        print_json({"entries": result.records, "posted": result.added, "commit": result.commit})
    else:
        print_line(f"Paired: {one} and {other}, posted {', '.join(result.added)} ({result.commit[:10]}).")
