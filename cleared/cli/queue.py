"""``cleared queue …``: what needs a human."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, host_of
from cleared.cli.output import fields, out, out_json, table

app = typer.Typer(help="See what needs a human.", no_args_is_help=True, rich_markup_mode=None)


class Which(StrEnum):
    """Cards by what became of them."""

    open = "open"
    resolved = "resolved"
    all = "all"


@app.command("list")
def list_(
    status: Annotated[Which, typer.Option("--status", help="Which cards.")] = Which.open,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """List the cards, oldest first."""
    from cleared.queries import cards

    found = cards(host_of(workspace), status.value)
    if json:
        out_json(found)
        return
    table(
        ["card", "kind", "entry", "since", "title"],
        ((c["id"], c["kind"], c["entry_id"], c["created_at"][:10], c["title"]) for c in found),
        empty="Nothing waits for you.",
    )


@app.command("show")
def show(
    card: Annotated[str, typer.Argument(metavar="CARD", help="Its id, the beginning of it, or its entry's id.")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show a card: what is asked, and everything known about it."""
    from cleared.queries import card as find_card

    found = find_card(host_of(workspace), card)
    if json:
        out_json(found)
        return
    fields((k, v) for k, v in found.items() if k != "details" and v is not None)
    for key, value in found["details"].items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            out(f"{key}:")
            table(list(value[0]), ([row.get(c) for c in value[0]] for row in value), empty="")
        else:
            fields([(key, ", ".join(map(str, value)) if isinstance(value, list) else value)])
