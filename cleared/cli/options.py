"""Options many commands share, and opening the workspace they name."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleared.cli.completion import complete_accounts, complete_agents
from cleared.terminal import print_message

if TYPE_CHECKING:
    from decimal import Decimal

    from cleared.changes.host import Host
    from cleared.clock import Clock

WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "-C", "--workspace", metavar="DIR", help="The workspace (default: the one that holds the current directory)."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON value and nothing else.")]
AgentName = Annotated[
    str, typer.Argument(metavar="NAME", autocompletion=complete_agents, help="The stem of its file in agents/.")
]
AccountArgument = Annotated[
    int, typer.Argument(metavar="NUMBER", autocompletion=complete_accounts, help="As cleared accounts list shows it.")
]
LegArguments = Annotated[
    list[str],
    typer.Argument(metavar="ACCOUNT=AMOUNT…", help="Accounts with amounts, such as 5220=120.00 1590=-120.00."),
]
MonthOption = Annotated[str | None, typer.Option("--month", metavar="YYYY-MM", help="Only this month.")]

_chosen: dict[str, Path | None] = {"workspace": None}


def remember_workspace(workspace: Path | None) -> None:
    """Remember ``cleared -C DIR`` given before the command."""
    _chosen["workspace"] = workspace


def chosen_workspace(workspace: Path | None) -> Path | None:
    """The directory the command line names: the command's own option first."""
    return workspace or _chosen["workspace"]


def parse_day(text: str) -> date:
    """``2025-01-31``. Raises ``BadParameter``."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a day; write 2025-01-31") from None


def parse_leg(text: str, hint: str = "ACCOUNT=AMOUNT") -> tuple[int, Decimal]:
    """``5060=12.50`` as account and amount. ``hint``: the option or argument it is of. Raises ``BadParameter``."""
    from decimal import Decimal, InvalidOperation

    account, _, amount = text.partition("=")
    try:
        return int(account), Decimal(amount)
    except (ValueError, InvalidOperation):
        raise typer.BadParameter(f"{text!r} is not ACCOUNT=AMOUNT", param_hint=hint) from None


def parse_payload(text: str) -> Any:
    """The value of ``--data JSON``. Raises ``BadParameter``."""
    from cleared.bridge import jsonrpc

    try:
        return jsonrpc.parse_payload(text.encode())
    except ValueError as error:
        raise typer.BadParameter(f"--data is not JSON: {error}") from None


def open_host(workspace: Path | None, tell: Callable[[str], None] = print_message) -> Host:
    """The opened workspace; ``tell`` takes lines for whoever watches. Raises ``WorkspaceError``."""
    from cleared.app import open_workspace

    return open_workspace(chosen_workspace(workspace), clock=read_clock(), say=tell)


def read_clock() -> Clock:
    """The clock that the environment names: the system's, unless CLEARED_CLOCK is an instant."""
    from cleared.clock import clock_from

    return clock_from(os.environ.get("CLEARED_CLOCK"))
