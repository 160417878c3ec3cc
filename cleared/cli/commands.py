"""The tree of commands. What a command needs is imported when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.cli.light_values import skip_pydantic
from cleared.cli.options import remember_workspace

HELP = """Bank files in, balanced double-entry books out: small agent scripts, sandboxed, each run one git commit.

Exit codes: 0 done · 1 the script or a check failed · 2 usage · 3 refused by policy · 4 workspace unusable ·
5 busy · 130 interrupted. Results go to stdout, everything else to stderr.
"""


def _print_version(value: bool) -> None:
    if value:
        from cleared import __version__
        from cleared.terminal import print_line

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


def _new_root() -> typer.Typer:
    return typer.Typer(
        callback=read_root_options,
        help=HELP,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )


_GROUPS = {
    "agent": ("agent", "app"), "run": ("runs", "app"), "journal": ("journal", "app"), "queue": ("queue", "app"),
    "period": ("period", "app"), "test": ("proposals", "test_app"), "event": ("up", "event_app"),
    "service": ("service", "app"), "loop": ("loop", "app"),
}  # fmt: skip
"""Name of the group → its module here, and what it is called there."""


def _load_group(name: str) -> typer.Typer:
    module, attribute = _GROUPS[name]
    found = getattr(import_module(f"cleared.cli.{module}"), attribute)
    assert isinstance(found, typer.Typer)
    return found


def build_tree() -> typer.Typer:
    """All commands."""
    from cleared.cli import queue, recover, review, setup, tools, trust, up

    app = _new_root()
    setup.register_commands(app)
    up.register_commands(app)
    for name in _GROUPS:
        app.add_typer(_load_group(name), name=name)
    tools.register_commands(app)
    app.command("trust")(trust.trust_clone)
    app.command("why")(queue.explain_entry)
    app.command("recover")(recover.recover_rows)
    app.command("review")(review.review_queue)
    return app


def command(argv: Sequence[str] = ()) -> Any:
    """The click command behind it all.

    For arguments that begin with a group's name it has only that group, and of it only the command that is named: to
    make all is a good part of a start.
    """
    skip_pydantic()
    if argv and argv[0] in _GROUPS:
        chosen, group = _new_root(), copy(_load_group(argv[0]))
        named = [c for c in group.registered_commands if argv[1:2] == [c.name]]
        group.registered_commands = named or group.registered_commands
        chosen.add_typer(group, name=argv[0])
    else:
        chosen = build_tree()
    return typer.main.get_command(chosen)
