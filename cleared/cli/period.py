"""``cleared period …``: closing the books, and opening them again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cleared.base.date_spans import DateSpan, parse_span
from cleared.base.terminal import print_json, print_line, print_table
from cleared.books.decisions.period_closing import close_period, reopen_period
from cleared.books.queries import read_periods
from cleared.changes.host import Host
from cleared.cli.command_groups import new_group
from cleared.cli.options import JsonOption, ReasonOption, WorkspaceOption, open_host

app = new_group()


def _open_for_span(text: str, workspace: Path | None) -> tuple[Host, DateSpan]:
    """The opened workspace, and the days that are meant there. Raises ``UsageError``, ``WorkspaceError``."""
    parse_span(text)  # what is no period is refused before anything is opened
    host = open_host(workspace)
    return host, parse_span(text, host.config.fiscal.start_month)


@app.command("close")
def close_books(
    through: Annotated[
        str,
        typer.Argument(metavar="DATE", help="The last day (2025-01-31), month (2025-01) or year to close."),
    ],
    filed: Annotated[bool, typer.Option("--filed", help="Mark it as filed with the authorities.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="A note.")] = "",
    despite: Annotated[
        str, typer.Option("--despite", metavar="REASON", help="Why to close though bank lines are held or missing.")
    ] = "",
    with_pending: Annotated[
        bool, typer.Option("--with-pending", help="Close though decisions about that time wait.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Close everything up to a day: nothing new can be dated there.

    Refused while entries of that time wait for a decision, and while bank lines of it are held, voided and not posted
    again, or missing (a gap in the balance). What is decided later is dated in the first open period.
    """
    day = parse_span(through).end
    host = open_host(workspace)
    commit = close_period(host, day, filed=filed, reason=reason, despite=despite, with_pending=with_pending)
    if json:
        print_json({"through": day.isoformat(), "commit": commit})
    else:
        print_line(f"The books are closed through {day} ({commit[:10]}).")


@app.command("reopen")
def reopen_books(
    start: Annotated[str, typer.Argument(metavar="DATE", help="The first day (2025-01-01) or month to open again.")],
    reason: ReasonOption,
    filed: Annotated[bool, typer.Option("--filed", help="Also what was marked as filed.")] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Reopen everything from a day on; a commit with a reason. Refused without --filed for what was filed."""
    host, span = _open_for_span(start, workspace)
    day = span.start
    commit = reopen_period(host, day, reason, filed=filed)
    if json:
        print_json({"from": day.isoformat(), "commit": commit})
    else:
        print_line(f"The books are open from {day} ({commit[:10]}).")


@app.command("list")
def list_closings(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List every closing and reopening."""
    closings = read_periods(open_host(workspace))
    if json:
        print_json(closings)
        return
    print_table(
        ["through", "state", "by", "at", "reason"],
        ((m["through"] or "(all open)", m["state"], m["by"], m["at"], m["reason"]) for m in closings),
        wrap=["reason", "at"],
        empty="No period has been closed.",
    )
