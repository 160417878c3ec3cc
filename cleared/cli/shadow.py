"""``cleared agent shadow …``: a proposed version beside the live one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cleared.base.terminal import print_json, print_line
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, ProposalArgument, WorkspaceOption, open_host

if TYPE_CHECKING:
    from cleared.gate.shadow import Shadow

app = new_group()


@app.command("start")
def start_shadow(
    proposal: ProposalArgument,
    days: Annotated[int, typer.Option("--days", min=1, max=366, help="For how long.")] = 14,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Run a proposed version beside the live one on every real event. It asks, sends and spends nothing, and nothing of
    it is kept.

    What it would have done otherwise stands on the proposal's card.
    """
    from cleared.gate import shadow

    _print_shadow(shadow.start_shadow(open_host(workspace), proposal, days), json=json)


@app.command("stop")
def stop_shadow(proposal: ProposalArgument, json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """End it; what it has shown stays on the proposal's card."""
    from cleared.gate import shadow

    _print_shadow(shadow.stop_shadow(open_host(workspace), proposal), json=json)


@app.command("status")
def show_shadows(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Show which proposals run beside what is live, and in how many runs they would have done the same."""
    from cleared.gate import shadow

    shadows = list(shadow.read_shadows(open_host(workspace)).values())
    if json:
        print_json([each.to_dict() for each in shadows])
        return
    for each in shadows:
        _print_shadow(each, json=False)
    if not shadows:
        print_line("No proposal runs beside what is live: cleared agent shadow start P7")


def _print_shadow(found: Shadow, *, json: bool) -> None:
    from cleared.gate.shadow import describe_shadow

    if json:
        print_json(found.to_dict())
        return
    print_line(f"{found.proposal.partition('-')[0]} ({', '.join(found.agents)})")
    for line in describe_shadow(found):
        print_line(f"  {line}")
