"""``cleared queue …``: what needs a human."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, host_of
from cleared.cli.output import out_json, table

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
