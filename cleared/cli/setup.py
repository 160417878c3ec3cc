"""``init``, ``demo``: getting books."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_message
from cleared.changes.workspace_creation import create_workspace
from cleared.cli.options import JsonOption, read_clock


class Entity(StrEnum):
    """Kinds of business a chart of accounts is shipped for."""

    llc_single_member = "llc_single_member"
    s_corp = "s_corp"
    sole_proprietor = "sole_proprietor"
    generic = "generic"


def init_workspace(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where the workspace will be; new or empty.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the business (default: of the directory).")
    ] = None,
    entity: Annotated[
        Entity, typer.Option("--entity", help="Decides the chart of accounts.")
    ] = Entity.llc_single_member,
    currency: Annotated[
        str, typer.Option("--currency", metavar="CODE", help="Currency of the books (ISO 4217).")
    ] = "USD",
    json: JsonOption = False,
) -> None:
    """Make a workspace: folders, chart of accounts, starter agents, one commit."""
    root, commit = create_workspace(
        directory, name=name, entity_type=entity.value, currency=currency, clock=read_clock(), say=print_message
    )
    if json:
        print_json({"workspace": str(root), "commit": commit})
        return
    print_line(f"Made the workspace {root} ({commit[:10]}).")
    print_message(
        f"Next: cd {shlex.quote(str(directory))}, copy bank files into import/, then: cleared agent run ingest"
    )


def run_demo(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where to make it; new or empty (default: a temporary one).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Make a sample workspace with six months of bank files, and walk through the main job."""
    from cleared.cli.demo.walkthrough import run_demo

    run_demo(directory, json)
