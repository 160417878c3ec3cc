"""``accounts``, ``config``, ``primitives``, ``doctor``, ``bridge``, ``rpc``: looking under the bonnet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import print_json, print_line, print_message, print_table

accounts_app = typer.Typer(help="The chart of accounts.", no_args_is_help=True, rich_markup_mode=None)
config_app = typer.Typer(help="The settings in config.yaml.", no_args_is_help=True, rich_markup_mode=None)


def register_commands(app: typer.Typer) -> None:
    app.add_typer(accounts_app, name="accounts")
    app.add_typer(config_app, name="config")
    app.command("primitives")(list_primitives)
    app.command("doctor")(run_doctor)
    app.command("rpc")(serve_rpc)
    app.command("bridge")(run_bridge)


@accounts_app.command("list")
def list_accounts(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """List all accounts."""
    from cleared.queries import read_accounts

    found = read_accounts(open_host(workspace))
    if json:
        print_json(found)
        return
    print_table(
        ["account", "name", "type", "tax line", "status"],
        ((a["account_id"], a["account_name"], a["account_type"], a["tax_line"], a["status"]) for a in found),
        empty="The chart of accounts is empty.",
    )


@config_app.command("get")
def get_setting(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Dotted, such as thresholds.auto_confirm.")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print a setting (never a secret)."""
    from cleared.config.loading import get_setting

    value = get_setting(open_host(workspace).config, key)
    if json or isinstance(value, dict | list):
        print_json(value)
    else:
        print_line(str(value))


@config_app.command("set")
def change_setting(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Dotted, such as business.timezone.")],
    value: Annotated[str, typer.Argument(metavar="VALUE")],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Change a setting in config.yaml, in one commit; its comments stay. Refused where the result is not valid.

    What decides what scripts may do (gate, sandbox, thresholds, limits …) is approved by this very step.
    """
    from cleared.config.loading import is_secret
    from cleared.config.setting_keys import reserved_settings
    from cleared.proposals.setting_changes import set_setting

    done = set_setting(open_host(workspace), key, value)
    shown = "set" if is_secret(key) else f"now {value}"
    if json:
        print_json({"key": key, "commit": done.commit, "file_committed": not done.is_uncommitted,
                  "policy": [list(c) for c in done.changes]})  # fmt: skip
        return
    _print_changes(done.changes)
    if done.is_uncommitted:
        why = "a secret stays out of git" if is_secret(key) else "it has other edits of yours"
        where = f" ({done.commit[:10]}); the file is not committed: {why}" if done.commit else f"; not committed: {why}"
    else:
        where = f" ({done.commit[:10]})" if done.commit else "; it was before"
    print_message(f"config.yaml: {key} is {shown}{where}")
    if key in reserved_settings():
        print_message(f"{key} is reserved: nothing reads it yet.")


@config_app.command("approve")
def approve_edited_settings(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Approve config.yaml as it was edited by hand, after showing what takes effect by it."""
    from cleared.proposals.setting_changes import approve_settings

    host = open_host(workspace)
    done = approve_settings(host)
    if not json:
        _print_changes(done.changes)
    if json:
        print_json({"commit": done.commit, "policy": [list(c) for c in done.changes]})
    else:
        apart = " config.yaml itself is not committed: a secret stays out of git." if done.is_uncommitted else ""
        print_message(f"Approved ({done.commit[:10]}).{apart}" if done.commit else "There was nothing to approve.")


def _value_text(value: object) -> object:
    return "as shipped" if value is None else value


def _print_changes(changes: Iterable[tuple[str, object, object]]) -> None:
    for key, old, new in changes:
        print_line(f"{key}: {_value_text(old)} → {_value_text(new)}")


def list_primitives(
    stubs: Annotated[bool, typer.Option("--stubs", help="As declarations for a type checker.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As the reference page.")] = False,
    json: JsonOption = False,
) -> None:
    """List what agent scripts can call."""
    from cleared.primitives import primitive_registry
    from cleared.registry import projections

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
            empty="",
        )


def run_doctor(
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Complete an interrupted commit and begin the trace database anew.")
    ] = False,
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Say what this machine and workspace are fit for: git, sandbox, confinement, locks, stale files.

    Each row is ok, warn or fail, with its remedy. Exits 4 where one fails.
    """
    from cleared.cli.doctor import print_doctor as examine

    examine(workspace, json, rebuild)


def run_bridge() -> None:
    """Run scripts for whoever holds the primitives: JSON-RPC 2.0 lines on stdin and stdout."""
    import sys

    from cleared.bridge.server import serve_bridge

    serve_bridge(sys.stdin.buffer, sys.stdout.buffer)


def serve_rpc(
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
    open_host(workspace)
    if socket is not None:
        serve_socket(lambda: open_host(workspace), socket)
    else:
        serve_stdio(lambda: open_host(workspace))
