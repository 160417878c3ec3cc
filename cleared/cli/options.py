"""Options many commands share, and opening the workspace they name."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cleared.base.terminal import print_json, print_message
from cleared.cli.completion import complete_accounts, complete_agents, complete_proposals, complete_runs

if TYPE_CHECKING:
    from decimal import Decimal

    from cleared.base.clock import Clock
    from cleared.changes.host import Host

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
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", autocompletion=complete_runs, help="Its id, or an end or beginning of it that is unique."
    ),
]
AccountArgument = Annotated[
    int, typer.Argument(metavar="NUMBER", autocompletion=complete_accounts, help="As cleared accounts list shows it.")
]
LegArguments = Annotated[
    list[str],
    typer.Argument(metavar="ACCOUNT=AMOUNT…", help="Accounts with amounts, such as 5220=120.00 1590=-120.00."),
]
ReasonOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it stays on record.")]
PrintOption = Annotated[bool, typer.Option("--print", help="Print the file that would be written, and end.")]
AccountOption = Annotated[
    int | None,
    typer.Option("--account", metavar="N", autocompletion=complete_accounts, help="Only entries that touch it."),
]
MapOption = Annotated[
    Path | None, typer.Option("--map", metavar="FILE", help="CSV of ACCOUNT,NUMBER for accounts it cannot place.")
]
WaitOption = Annotated[float, typer.Option("--wait", metavar="SECONDS", min=0, help="How long to wait for it.")]
FollowOption = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is added, until Ctrl-C.")]
LinesOption = Annotated[int, typer.Option("--lines", "-n", min=0, max=100_000, help="How many of the newest.")]
ProposalArgument = Annotated[
    str,
    typer.Argument(metavar="PROPOSAL", autocompletion=complete_proposals, help="Such as P7 (cleared queue list)."),
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", metavar="NAME", autocompletion=complete_agents, help="Only this agent's.")
]
MonthOption = Annotated[str | None, typer.Option("--month", metavar="YYYY-MM", help="Only this month.")]

_TYPED: Final = re.compile(r"(?:^|[ (])(?:git|mv|cp|rm) ")
"""What is typed in a shell, with paths."""
_chosen: dict[str, Path | None] = {"workspace": None}
_asked: list[Path | None] = []
"""The directory that the command was about, once it has asked."""
_command_line: list[str] = []


def remember_command_line(argv: Sequence[str]) -> None:
    """Remember what the command was called with."""
    _command_line[:] = argv


def remember_workspace(workspace: Path | None) -> None:
    """Remember ``cleared -C DIR`` given before the command."""
    _chosen["workspace"] = workspace


def chosen_workspace(workspace: Path | None) -> Path | None:
    """The directory the command line names: the command's own option first. ``tell_directory`` goes by it."""
    _asked[:] = [workspace or _chosen["workspace"]]
    return _asked[0]


def tell_directory(remedies: Iterable[str]) -> None:
    """Say on stderr where to type what these remedies name, where that is not here: paths in them are relative to the
    workspace that the command was about."""
    from cleared.base.errors import WorkspaceError
    from cleared.workspace.location import find_workspace

    if not _asked or not any(map(_TYPED.search, remedies)):
        return
    try:
        root, here = find_workspace(_asked[0]), Path.cwd().resolve()
    except (WorkspaceError, OSError):  # there is none, or no directory here any more
        return
    if here != root:
        print_message(f"cleared: type it in the workspace: cd {quote(str(root))}")


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
        if "E" in amount.upper() or "_" in text:  # 1E+3 and 1_000 are numbers, and no way to write money
            raise ValueError
        return int(account), Decimal(amount)
    except (ValueError, InvalidOperation):
        raise typer.BadParameter(f"{text!r} is not ACCOUNT=AMOUNT, such as 5060=1250.00", param_hint=hint) from None


def parse_payload(text: str) -> Any:
    """The value of ``--data JSON``. Raises ``BadParameter``."""
    from cleared.sandbox.bridge import jsonrpc

    try:
        return jsonrpc.parse_payload(text.encode())
    except ValueError as error:
        raise typer.BadParameter(f"--data is not JSON: {error}") from None


def open_host(
    workspace: Path | None,
    tell: Callable[[str], None] = print_message,
    *,
    tells_waiting: bool = True,
    despite_fault: bool = False,
) -> Host:
    """The opened workspace; ``tell`` takes lines for whoever watches, ``tells_waiting``: of settings that wait for
    approval too. ``despite_fault``: also where ``config.yaml`` is not valid. Raises ``WorkspaceError``."""
    from cleared.changes.workspace_opening import open_workspace

    return open_workspace(
        chosen_workspace(workspace),
        clock=read_clock(),
        say=tell,
        tells_waiting=tells_waiting,
        despite_fault=despite_fault,
    )


def open_readable_host(workspace: Path | None) -> Host:
    """As ``open_host``, for a command that only reads: where ``config.yaml`` is not valid, by the settings that were
    approved on this machine. Raises ``ConfigError`` where none were."""
    host = open_host(workspace, tells_waiting=False, despite_fault=True)
    force = host.policy
    if force is not None and force.fault is not None and force.approved is None:
        raise force.fault
    if force is not None and force.waiting:
        print_message(force.waiting)
    return host


def open_host_once(workspace: Path | None, *, json: bool, despite_fault: bool = False) -> Host:
    """As ``open_host``, for a command that does it once more when it is said again.

    Where the very same command was killed after its commit and could not tell, that is told now, and the command ends:
    said again after that, it is meant. Raises ``typer.Exit`` then.
    """
    import hashlib

    from cleared.git import find_unreported_commit, has_command_note, note_commit

    host = open_host(workspace, despite_fault=despite_fault)
    # Nothing of it is kept readable: it may hold what nobody is to read.
    host.command_key = hashlib.sha256("\0".join(_command_line).encode("utf-8", "surrogateescape")).hexdigest()
    made, state_dir = None, host.layout.state_dir
    if has_command_note(state_dir, host.command_key):
        with host.open_for_reading() as repo:
            made = find_unreported_commit(repo, state_dir, host.command_key, host.clock.now())
    if made is None:
        return host
    note_commit(state_dir, made.id)  # which is told now
    print_message(
        f"cleared: done already, by this very command, which was killed before it could say so: {made.id[:10]} "
        f"{made.subject}. Nothing was done now; say it again where you want it a second time."
    )
    if json:
        print_json({"commit": made.id, "done_before": True})
    raise typer.Exit


def read_clock() -> Clock:
    """The clock that the environment names: the system's, unless CLEARED_CLOCK is an instant."""
    from cleared.base.clock import clock_from

    return clock_from(os.environ.get("CLEARED_CLOCK"))


def warn_of_doubt(host: Host) -> None:
    """Say on stderr where the books are not what is attested: what is read of them then says nothing."""
    from cleared.changes.audit.attested_state import read_doubt

    if doubt := read_doubt(host):
        print_message(f"cleared: {doubt}. Before you rely on them: cleared check.")
