"""``cleared primitives``: what a script may call."""

from __future__ import annotations

from typing import Annotated

import typer

from cleared.base.terminal import print_json, print_line, print_table
from cleared.cli.options import JsonOption
from cleared.primitives import primitive_registry
from cleared.primitives.registry import projections


def list_primitives(
    stubs: Annotated[bool, typer.Option("--stubs", help="As declarations for a type checker.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As the reference page.")] = False,
    json: JsonOption = False,
) -> None:
    """List what agent scripts can call."""
    if stubs:
        print_line(projections.render_stubs(primitive_registry()).rstrip())
    elif markdown:
        print_line(projections.render_markdown(primitive_registry()).rstrip())
    elif json:
        print_json([projections.describe_primitive(p) for p in primitive_registry().values()])
    else:
        print_table(
            ["primitive", "effect", "grant", "what it does"],
            (
                (p.name, p.effect.value, p.grant, p.doc.split("\n", 1)[0].replace("``", ""))
                for p in primitive_registry().values()
            ),
            wrap=["what it does"],
            empty="",
        )
