"""``cleared server``: the page in a browser."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleared.base.garbage import give_memory_back
from cleared.base.terminal import print_json, print_line, print_message
from cleared.cli.machine_errors import as_refusal
from cleared.cli.options import JsonOption, WorkspaceOption, chosen_workspace, open_host
from cleared.trust.person_only import refuse_in_job
from cleared.workspace.location import find_workspace

if TYPE_CHECKING:  # all of it takes longer than what other commands do that have these options
    from cleared.web.exposure import Exposure
    from cleared.web.fleet_pages import FleetPages
    from cleared.web.page_server import PageServer

PortOption = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: a free one.")]
CodeOption = Annotated[bool, typer.Option("--code", help="Print a code to type instead of a link.")]
BindOption = Annotated[
    str | None,
    typer.Option("--bind", metavar="ADDRESS", help="Listen there and not on loopback; TLS and a passkey are needed."),
]
NameOption = Annotated[
    str | None, typer.Option("--name", metavar="HOST", help="With --bind: the name by which others reach it.")
]
CertificateOption = Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="Its certificate, PEM.")]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's key, PEM.")]
LinkOption = Annotated[
    bool, typer.Option("--link", help="Print a new link that signs in to the server that runs at --port, and end.")
]
ProxyOption = Annotated[
    bool, typer.Option("--behind-proxy", help="A proxy speaks TLS and hands the requests on, with their Host.")
]


def serve_pages(
    directories: Annotated[
        list[Path] | None, typer.Argument(metavar="DIR…", help="Workspaces to serve (default: the current one).")
    ] = None,
    port: PortOption = 8765,
    code: CodeOption = False,
    bind: BindOption = None,
    name: NameOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    behind_proxy: ProxyOption = False,
    link: LinkOption = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Serve the page, where a person decides and looks into anything, to browsers of this machine.

    Programs call it, too: webhooks start agents, and the HTTP API reads and runs. It prints a link that signs in once.
    Ctrl-C ends it. --json: print address and code as one object.
    """
    from cleared.web import page_server
    from cleared.web.exposure import read_exposure

    page_server.require_packages()
    if link:
        print_link(port, json=json)
        return
    chosen: list[Path | None] = [*directories] if directories else [chosen_workspace(workspace)]
    roots = [find_workspace(each) for each in chosen]
    exposure = read_exposure(bind, name, tls_cert, tls_key, behind_proxy)
    page_server.serve_pages(make_server(roots, port, code, exposure), place_printer(json))


def place_printer(json: bool) -> Callable[[dict[str, Any]], None]:
    """What prints address and code for a program, where it is to."""

    def print_place(place: dict[str, Any]) -> None:
        if json:
            print_json(place)
            sys.stdout.flush()

    return print_place


def print_link(port: int, *, json: bool = False) -> None:
    """A link to the server of this user at a port; inside a job it is refused."""
    from cleared.web.running_servers import make_link

    refuse_in_job()
    link = make_link(port)
    if json:
        print_json({"link": link})
        return
    print_line(link)
    print_message("It counts once, for ten minutes.")


def make_server(
    roots: list[Path],
    port: int,
    code: bool,
    exposure: Exposure,
    *,
    has_link: bool = True,
    fleet: FleetPages | None = None,
) -> PageServer:
    """The server of these workspaces, with the program's own way to open them."""
    from cleared.web.page_server import PageServer

    opening = partial(open_host, tell=_say_nothing)
    return PageServer(
        roots,
        opening,
        as_refusal,
        port,
        exposure,
        type_code=code,
        has_link=has_link,
        fleet=fleet,
        tidy_up=give_memory_back,
    )


def _say_nothing(text: str) -> None:
    """What the program tells on the way is for a terminal; the page shows what came of it."""
