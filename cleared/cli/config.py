"""``cleared config …``: the settings in ``config.yaml``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_settings
from cleared.cli.options import JsonOption, WorkspaceOption, open_host
from cleared.terminal import print_json, print_line, print_message

app = new_group()


@app.command("get")
def get_setting(
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY", autocompletion=complete_settings, help="Dotted, such as thresholds.auto_confirm."
        ),
    ],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Print a setting (never a secret)."""
    from cleared.config.loading import get_setting as read_setting

    value = read_setting(open_host(workspace).config, key)
    if json or isinstance(value, dict | list):
        print_json(value)
    else:
        print_line(str(value))


@app.command("set")
def change_setting(
    key: Annotated[
        str, typer.Argument(metavar="KEY", autocompletion=complete_settings, help="Dotted, such as business.timezone.")
    ],
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

    change = set_setting(open_host(workspace), key, value)
    shown = "set" if is_secret(key) else f"now {value}"
    if json:
        print_json({"key": key, "commit": change.commit, "file_committed": not change.is_uncommitted,
                  "policy": [list(c) for c in change.changes]})  # fmt: skip
        return
    _print_changes(change.changes)
    if change.is_uncommitted:
        why = "a secret stays out of git" if is_secret(key) else "it has other edits of yours"
        where = (
            f" ({change.commit[:10]}); the file is not committed: {why}" if change.commit else f"; not committed: {why}"
        )
    else:
        where = f" ({change.commit[:10]})" if change.commit else "; it was before"
    print_message(f"config.yaml: {key} is {shown}{where}")
    if key in reserved_settings():
        print_message(f"{key} is reserved: cleared itself does not read it yet.")


@app.command("approve")
def approve_edited_settings(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Approve config.yaml as it was edited by hand, after showing what takes effect by it."""
    from cleared.proposals.setting_changes import approve_settings

    host = open_host(workspace)
    approved = approve_settings(host)
    if not json:
        _print_changes(approved.changes)
    if json:
        print_json({"commit": approved.commit, "policy": [list(c) for c in approved.changes]})
    else:
        apart = " config.yaml itself is not committed: a secret stays out of git." if approved.is_uncommitted else ""
        print_message(
            f"Approved ({approved.commit[:10]}).{apart}" if approved.commit else "There was nothing to approve."
        )


def _value_text(value: object) -> object:
    return "as shipped" if value is None else value


def _print_changes(changes: Iterable[tuple[str, object, object]]) -> None:
    for key, old, new in changes:
        print_line(f"{key}: {_value_text(old)} → {_value_text(new)}")
