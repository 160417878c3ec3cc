"""``accounts``, ``config``, ``primitives``, ``doctor``, ``bridge``, ``rpc``: looking under the bonnet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, host_of
from cleared.cli.output import out, out_json, say, table

accounts_app = typer.Typer(help="The chart of accounts.", no_args_is_help=True, rich_markup_mode=None)
config_app = typer.Typer(help="The settings in config.yaml.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    app.add_typer(accounts_app, name="accounts")
    app.add_typer(config_app, name="config")
    app.command("primitives")(primitives)
    app.command("doctor")(doctor)
    app.command("rpc")(rpc)
    app.command("bridge")(bridge)


@accounts_app.command("list")
def accounts_list(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List all accounts."""
    from cleared.queries import accounts

    found = accounts(host_of(workspace))
    if json:
        out_json(found)
        return
    table(
        ["account", "name", "type", "tax line", "status"],
        ((a["account_id"], a["account_name"], a["account_type"], a["tax_line"], a["status"]) for a in found),
        empty="The chart of accounts is empty.",
    )


@config_app.command("get")
def config_get(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Dotted, such as thresholds.auto_confirm.")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print a setting (never a secret)."""
    from cleared.config.loading import get

    value = get(host_of(workspace).config, key)
    if json or isinstance(value, dict | list):
        out_json(value)
    else:
        out(str(value))


@config_app.command("set")
def config_set(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Dotted, such as business.timezone.")],
    value: Annotated[str, typer.Argument(metavar="VALUE")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Change a setting in config.yaml, in one commit; its comments stay. Refused where the result is not valid.

    What decides what scripts may do (gate, sandbox, thresholds, limits …) is approved by this very step.
    """
    from cleared.app import set_setting
    from cleared.config.loading import is_secret

    done = set_setting(host_of(workspace), key, value)
    shown = "set" if is_secret(key) else f"now {value}"
    if json:
        out_json({"key": key, "commit": done.commit, "file_committed": not done.apart,
                  "policy": [list(c) for c in done.changes]})  # fmt: skip
        return
    _show_policy(done.changes)
    if done.apart:
        why = "a secret stays out of git" if is_secret(key) else "it has other edits of yours"
        where = f" ({done.commit[:10]}); the file is not committed: {why}" if done.commit else f"; not committed: {why}"
    else:
        where = f" ({done.commit[:10]})" if done.commit else "; it was before"
    say(f"config.yaml: {key} is {shown}{where}")


@config_app.command("approve")
def config_approve(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Approve config.yaml as it was edited by hand, after showing what takes effect by it."""
    from cleared.app import approve_settings

    host = host_of(workspace)
    done = approve_settings(host)
    if not json:
        _show_policy(done.changes)
    if json:
        out_json({"commit": done.commit, "policy": [list(c) for c in done.changes]})
    else:
        apart = " config.yaml itself is not committed: a secret stays out of git." if done.apart else ""
        say(f"Approved ({done.commit[:10]}).{apart}" if done.commit else "There was nothing to approve.")


def _shown(value: object) -> object:
    return "as shipped" if value is None else value


def _show_policy(changes: Iterable[tuple[str, object, object]]) -> None:
    for key, old, new in changes:
        out(f"{key}: {_shown(old)} → {_shown(new)}")


def primitives(
    stubs: Annotated[bool, typer.Option("--stubs", help="As declarations for a type checker.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As the reference page.")] = False,
    json: JsonOption = False,
) -> None:
    """List what agent scripts can call."""
    from cleared.primitives import registry
    from cleared.registry import projections

    if stubs:
        out(projections.stubs(registry()).rstrip())
    elif markdown:
        out(projections.markdown(registry()).rstrip())
    elif json:
        out_json([projections.describe(p) for p in registry().values()])
    else:
        table(
            ["primitive", "effect", "grant", "what it does"],
            ((p.name, p.effect.value, p.grant, p.doc.split("\n", 1)[0].replace("``", "")) for p in registry().values()),
            empty="",
        )


def doctor(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Complete an interrupted commit and begin the trace database anew.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Say what this machine and workspace are fit for: git, sandbox, confinement, locks, stale files.

    Each row is ok, warn or fail, with its remedy. Exits 4 where one fails.
    """
    from cleared.cli.doctor import doctor as examine

    examine(workspace, json, rebuild)


def bridge() -> None:
    """Run scripts for whoever holds the primitives: JSON-RPC 2.0 lines on stdin and stdout."""
    import sys

    from cleared.bridge.server import serve_bridge

    serve_bridge(sys.stdin.buffer, sys.stdout.buffer)


def rpc(
    stdio: Annotated[bool, typer.Option("--stdio", help="Serve on stdin and stdout.")] = False,
    socket: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="Serve on a Unix socket, for this user only.")
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Offer this workspace's reading primitives and commands as JSON-RPC 2.0 lines; never decisions."""
    from cleared.rpc.workspace_server import serve_socket, serve_stdio

    if stdio == (socket is not None):
        raise typer.BadParameter("give exactly one of --stdio and --socket PATH")
    host_of(workspace)
    if socket is not None:
        serve_socket(lambda: host_of(workspace), socket)
    else:
        serve_stdio(lambda: host_of(workspace))
