"""The tree of commands, in the order and the sections of ``cleared --help``. Each is imported when it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer
from msgspec import Struct

from cleared import __version__
from cleared.base.errors import Interrupted
from cleared.base.terminal import print_line
from cleared.cli.command_groups import CommandGroup, completion_items
from cleared.cli.options import remember_command_line, remember_workspace

HELP = """Bank files in, balanced double-entry books out: small agent scripts, sandboxed, each run one git commit.

Results go to stdout, everything else to stderr. Exit codes: 0 done · 1 the script or a check failed · 2 usage ·
3 refused by policy · 4 workspace unusable · 5 busy · 130 interrupted; of cleared task next and run: 6 all done ·
7 none is ready.
"""


class Entry(Struct, frozen=True):
    """A command or group of the top level: where it is defined, and what ``cleared --help`` says of it."""

    name: str
    module: str
    attribute: str
    about: str
    more: str = ""
    """Of a group: what its own help says beside."""
    rest: str = ""
    """Of a group: the module that has the commands which are not in ``module``."""


SECTIONS: Final = {
    "Books": (
        Entry("import", "bank_files", "app", "Import bank files, show what is understood of one, undo an import"),
        Entry("bank", "bank", "app", "Add bank accounts by one of their files, and list them"),
        Entry("journal", "journal", "app", "Read, write, void and open entries"),
        Entry("split", "queue", "split_entry", "Split an entry over several accounts"),
        Entry("accounts", "accounts", "app", "List the chart of accounts, and change it"),
        Entry("server", "server", "serve_pages", "Serve the page: decide and look into anything, in a browser"),
        Entry("review", "review", "review_queue", "Decide about everything that waits, one key each"),
        Entry("queue", "queue", "app", "See the cards, questions that wait for a person, and decide"),
        Entry("teach", "teach", "teach_vendor", "Say where a vendor's lines always go"),
        Entry("improve", "improve", "improve_agents", "Have agents learn from your decisions, for you to approve"),
        Entry("transfers", "transfers", "app", "List transfers between your own accounts, and pair both sides"),
        Entry("receipt", "receipt", "app", "Keep receipts, link them to entries, list what is missing"),
        Entry("reconcile", "reconcile", "reconcile_with_bank", "Compare the books with a balance of the bank"),
        Entry("why", "explanation", "explain_one_record", "Say why a record is as it is"),
        Entry("report", "report", "show_report", "Show profit and loss, balance sheet, taxes and more"),
        Entry("search", "search", "search_entries", "Find entries by text, amount, account and days"),
        Entry("export", "export", "app", "Write the books for hledger, beancount, or an accountant"),
        Entry("period", "period", "app", "Close months and years, and reopen them"),
    ),
    "Agents": (
        Entry("agent", "agent", "app", "Run agents; write, check, propose and approve them", rest="proposals"),
        Entry("meta", "meta", "app", "Have a model write or change agents, for you to approve"),
        Entry("chat", "chat", "chat", "The same, turn by turn"),
        Entry("run", "runs", "app", "Look at past runs and every call they made"),
        Entry("replay", "replay", "replay_past_run", "Do a past run again, from what was recorded of it"),
        Entry("revert", "revert", "revert_past_run", "Take back what a run did, and what rests on it"),
        Entry("bisect", "bisect", "bisect_past_runs", "Find the run since which something is wrong"),
        Entry("test", "regression_tests", "app", "Keep what an agent did as a test"),
        Entry("primitives", "primitives", "list_primitives", "List what a script may call"),
    ),
    "Running": (
        Entry("up", "up", "serve_workspaces", "Run agents by themselves: schedules, files, events"),
        Entry("down", "up", "stop_service", "Stop that service"),
        Entry("status", "status", "show_status", "Show what is up, what ran, what is next, what waits"),
        Entry("logs", "status", "show_logs", "Show the log of the service"),
        Entry("schedule", "status", "show_schedule", "Show when agents come due"),
        Entry("event", "event", "app", "Hand in events that agents listen to"),
        Entry("webhook", "webhook", "app", "Let other programs start agents with signed calls"),
        Entry("service", "service", "app", "Have the system keep cleared up running"),
        Entry(
            "loop",
            "loop",
            "app",
            "Run jobs one at a time: reports, checks, agent runs",
            "cleared up runs agents when their triggers fire; cleared loop runs jobs, one at a time, in the order they "
            "are asked for.",
        ),
        Entry("fleet", "fleet", "app", "Serve many workspaces on many machines"),
        Entry("work", "work", "app", "See jobs, cycles and tasks in one list; end and pause them"),
        Entry("cycle", "cycle", "app", "Let a coding engine work, again and again, behind the gate"),
        Entry("task", "task", "app", "Work through tasks: claimed, verified and committed by the host"),
    ),
    "Workspace": (
        Entry("init", "setup", "init_workspace", "Make a workspace"),
        Entry("start-from", "migration", "start_books", "Take over opening balances or books of another program"),
        Entry("demo", "setup", "run_demo", "Make a sample workspace and walk through it"),
        Entry("config", "config", "app", "Read, change and approve settings"),
        Entry("definition", "definition", "app", "See and approve what says what records are (tables)"),
        Entry("llm", "llm", "app", "See which language model is asked, its key, and what it has cost"),
        Entry("trust", "trust", "trust_clone", "After cloning: say whose approvals count here"),
        Entry("key", "key", "app", "Give the approval key a passphrase"),
        Entry("passkey", "passkey", "app", "Let a phone or a security key sign in and decide"),
        Entry("check", "check", "check_records", "Check all that is recorded, and what changed it"),
        Entry("accept", "check", "accept_unknown_commit", "Answer for a commit that check names"),
        Entry("doctor", "doctor", "run_doctor", "Check this machine and workspace, with remedies"),
        Entry("backup", "backup", "backup_workspace", "Write all of the workspace to one sealed file"),
        Entry("restore", "backup", "restore_workspace", "Make a workspace of such a file, on a new machine too"),
        Entry("sync", "sync", "sync_workspace", "Join this clone's work with what others have pushed"),
        Entry("recover", "recover", "recover_rows", "Bring back what git took from the branch"),
        Entry("mcp", "mcp", "serve_mcp", "Serve the workspace to MCP clients (Claude, Cursor …)"),
        Entry("token", "token", "app", "Let programs read, and run agents, over HTTP"),
        Entry("rpc", "rpc", "serve_rpc", "Offer the workspace to programs, as JSON-RPC"),
        Entry("bridge", "rpc", "run_bridge", "Run scripts for a host in another process"),
    ),
}
"""Section of ``cleared --help`` → its commands."""
ENTRIES: Final = {entry.name: entry for entries in SECTIONS.values() for entry in entries}
"""Name of a top-level command → where it is."""


class RootGroup(CommandGroup):
    """The top level: lists its commands in sections without loading them, and loads the one that is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = cast("dict[str, Any]", dict.fromkeys(ENTRIES) | dict(self.commands))  # loaded by get_command

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, section by section."""
        width = max(map(len, ENTRIES))
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(f"{entry.name:<{width}}", entry.about) for entry in entries])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, loaded; None where there is none."""
        entry = ENTRIES.get(cmd_name)
        return None if entry is None else _load_command(entry, "")

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named and the arguments behind it. Of a group only the command that is named in it is
        made: to make the others takes longer than most commands that read."""
        entry = ENTRIES.get(args[0])
        if entry is None:
            return super().resolve_command(ctx, args)
        return entry.name, _load_command(entry, "".join(args[1:2])), args[1:]

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named. Raises ``Interrupted`` on Ctrl-C, which typer ends in silence."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None

    def complete_names(self, ctx: Any, incomplete: str) -> list[Any]:
        """Commands that begin so; none is loaded for that."""
        return completion_items(ctx, (name for name in ENTRIES if name.startswith(incomplete)))


def _add_entry(app: typer.Typer, entry: Entry, only: str = "") -> None:
    """``only``: of a group that has such a command nothing but this one."""
    loaded = getattr(import_module(f"cleared.cli.{entry.module}"), entry.attribute)
    if not isinstance(loaded, typer.Typer):
        app.command(entry.name)(loaded)
        return
    commands, groups = list(loaded.registered_commands), list(loaded.registered_groups)
    if entry.rest and not any(info.name == only for info in commands):
        rest = import_module(f"cleared.cli.{entry.rest}").app
        commands += rest.registered_commands
        groups += rest.registered_groups
    named = [info for info in commands if info.name == only]
    loaded = copy(loaded)
    loaded.registered_commands, loaded.registered_groups = (named, []) if named else (commands, groups)
    app.add_typer(loaded, name=entry.name, help=f"{entry.about}.\n\n{entry.more}")


@lru_cache
def _load_command(entry: Entry, only: str) -> Any:
    """The click command of an entry. ``only``: of a group that has such a command with nothing but this one."""
    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    _add_entry(app, entry, only)
    return typer.main.get_group(app).commands[entry.name]


def _print_version(value: bool) -> None:
    if value:
        print_line(f"cleared {__version__}")
        raise typer.Exit


def read_root_options(
    workspace: Annotated[
        Path | None, typer.Option("-C", "--workspace", metavar="DIR", help="The workspace to work in.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    remember_workspace(workspace)


_ROOT: Final[Mapping[str, Any]] = {
    "cls": RootGroup,
    "callback": read_root_options,
    "help": HELP,
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "add_completion": True,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}


def build_tree() -> typer.Typer:
    """All commands, as declared; for the reference page."""
    app = typer.Typer(**_ROOT)
    for entry in ENTRIES.values():
        _add_entry(app, entry)
    return app


@cache
def _load_root(add_completion: bool) -> Any:
    """The click command of the whole command line. ``add_completion``: with the options that install it in a shell."""
    return typer.main.get_command(typer.Typer(**{**_ROOT, "add_completion": add_completion}))


def command(argv: Sequence[str] = ()) -> Any:
    """The click command behind the command line ``argv``."""
    remember_command_line(argv)
    return _load_root(not argv or argv[0].startswith("-"))  # behind a command's name no option of the top level stands
