"""``cleared server``: the page in a browser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cleared.base.terminal import print_json
from cleared.cli.machine_errors import as_refusal
from cleared.cli.options import JsonOption, WorkspaceOption, chosen_workspace, open_host
from cleared.web import page_server
from cleared.web.exposure import Exposure, read_exposure
from cleared.web.page_server import PageServer
from cleared.workspace.location import find_workspace

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
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Serve the page, where a person decides and looks into anything, to browsers of this machine.

    Programs call it, too: webhooks start agents, and the HTTP API reads and runs. It prints a link that signs in once.
    Ctrl-C ends it. --json: print address and code as one object.
    """
    page_server.require_packages()
    chosen: list[Path | None] = [*directories] if directories else [chosen_workspace(workspace)]
    roots = [find_workspace(each) for each in chosen]
    exposure = read_exposure(bind, name, tls_cert, tls_key, behind_proxy)

    def print_place(place: dict[str, Any]) -> None:
        if json:
            print_json(place)
            sys.stdout.flush()

    page_server.serve_pages(make_server(roots, port, code, exposure), print_place)


def make_server(roots: list[Path], port: int, code: bool, exposure: Exposure) -> PageServer:
    """The server of these workspaces, with the program's own way to open them."""
    return PageServer(roots, lambda root: open_host(root, _say_nothing), as_refusal, port, exposure, type_code=code)


def _say_nothing(text: str) -> None:
    """What the program tells on the way is for a terminal; the page shows what came of it."""
