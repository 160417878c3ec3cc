"""``cleared accounts …``: the chart of accounts."""

from __future__ import annotations

from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import print_json, print_table

app = new_group()


@app.command("list")
def list_accounts(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List all accounts."""
    from cleared.queries import read_accounts

    found = read_accounts(open_host(workspace))
    if json:
        print_json(found)
        return
    print_table(
        ["account", "name", "type", "tax line", "status"],
        ((a["account_id"], a["account_name"], a["account_type"], a["tax_line"], a["status"]) for a in found),
        wrap=["tax line", "name"],
        empty="The chart of accounts is empty.",
    )
