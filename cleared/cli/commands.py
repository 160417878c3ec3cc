"""The tree of commands. What a command needs is imported when it runs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.cli.light_values import lighten
from cleared.cli.options import choose

HELP = """Bank files in, balanced double-entry books out: small agent scripts, sandboxed, each run one git commit.

Exit codes: 0 done · 1 the script or a check failed · 2 usage · 3 refused by policy · 4 workspace unusable ·
5 busy · 130 interrupted. Results go to stdout, everything else to stderr.
"""


def _version(value: bool) -> None:
    if value:
        from cleared import __version__
        from cleared.cli.output import out

        out(f"cleared {__version__}")
        raise typer.Exit


def root(
    workspace: Annotated[
        Path | None, typer.Option("-C", "--workspace", metavar="DIR", help="The workspace to work in.")
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    choose(workspace)


def _empty() -> typer.Typer:
    return typer.Typer(
        callback=root, help=HELP, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
        add_completion=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )  # fmt: skip


_GROUPS = {
    "agent": ("agent", "app"), "run": ("runs", "app"), "journal": ("journal", "app"), "queue": ("queue", "app"),
    "period": ("period", "app"), "test": ("proposals", "test_app"), "event": ("up", "event_app"),
    "service": ("service", "app"), "loop": ("loop", "app"),
}  # fmt: skip
"""Name of the group → its module here, and what it is called there."""


def _group(name: str) -> typer.Typer:
    module, attribute = _GROUPS[name]
    found = getattr(import_module(f"cleared.cli.{module}"), attribute)
    assert isinstance(found, typer.Typer)
    return found


def tree() -> typer.Typer:
    """All commands."""
    from cleared.cli import queue, recover, review, setup, tools, trust, up

    app = _empty()
    setup.register(app)
    up.register(app)
    for name in _GROUPS:
        app.add_typer(_group(name), name=name)
    tools.register(app)
    app.command("trust")(trust.trust)
    app.command("why")(queue.why)
    app.command("recover")(recover.recover)
    app.command("review")(review.review)
    return app


def command(argv: Sequence[str] = ()) -> Any:
    """The click command behind it all.

    For arguments that begin with a group's name it has only that group, and of it only the command that is named: to
    make all is a good part of a start.
    """
    lighten()
    if argv and argv[0] in _GROUPS:
        chosen, group = _empty(), copy(_group(argv[0]))
        named = [c for c in group.registered_commands if argv[1:2] == [c.name]]
        group.registered_commands = named or group.registered_commands
        chosen.add_typer(group, name=argv[0])
    else:
        chosen = tree()
    return typer.main.get_command(chosen)
