"""``cleared config …``: the settings in ``config.yaml``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleared.base.terminal import count_noun, print_json, print_line, print_message
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.cli.command_groups import new_group
from cleared.cli.completion import complete_settings
from cleared.cli.options import JsonOption, WorkspaceOption, open_host, open_readable_host
from cleared.cli.showing import DigestOption, Subject, ask_about, has_terminal, taking_shown
from cleared.workspace.settings.protected_settings import is_within
from cleared.workspace.settings.secrets import is_secret
from cleared.workspace.settings.setting_keys import rank_setting, reserved_settings, starts_something, write_value
from cleared.workspace.settings.setting_lookup import get_setting as read_setting

if TYPE_CHECKING:
    from cleared.gate.proposals.setting_changes import SettingsOutcome
    from cleared.gate.proposals.waiting_settings import WaitingSetting

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
    value = read_setting(open_readable_host(workspace).config, key)
    if json or isinstance(value, dict | list | bool):
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
    """Change a setting in config.yaml, in one commit; its comments stay. Refused where the value is not valid.

    What decides what scripts may do (gate, sandbox, thresholds, limits …) is approved by this very step. Where the file
    is not valid it mends this key, and says what else is wrong; nothing is approved before nothing is.
    """
    from cleared.gate.proposals.setting_changes import set_setting

    change = set_setting(open_host(workspace, tells_waiting=False, despite_fault=True), key, value)
    _print_change(change, key, "set" if is_secret(key) else f"now {value}", workspace, json=json)
    if key in reserved_settings() and not json:
        print_message(f"{key} is reserved: cleared itself does not read it yet.")


@app.command("unset")
def remove_setting(
    key: Annotated[
        str, typer.Argument(metavar="KEY", autocompletion=complete_settings, help="Dotted, such as loop.log_dir.")
    ],
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Take a key out of config.yaml, in one commit, so that it is as shipped. Comments stay.

    It takes out keys that no setting has as well, and of a key that is given twice the later ones. In a file that is
    not valid it approves nothing: what was in force stays so.
    """
    from cleared.gate.proposals.setting_changes import unset_setting

    change = unset_setting(open_host(workspace, tells_waiting=False, despite_fault=True), key)
    _print_change(change, key, "taken out", workspace, json=json)


@app.command("restore")
def restore_file(json: JsonOption = False, workspace: WorkspaceOption = None) -> None:
    """Put the newest config.yaml that was committed and valid in the place of one that is not, in one commit.

    It approves nothing. The file that lay there is kept in .cleared/.
    """
    from cleared.gate.proposals.setting_restoring import restore_settings

    restored = restore_settings(open_host(workspace, tells_waiting=False, despite_fault=True))
    if json:
        print_json(
            {
                "from": restored.taken_from,
                "commit": restored.commit,
                "kept": restored.kept or None,
                "by_hand": restored.by_hand,
            }
        )
        return
    where = f" ({restored.commit[:10]})" if restored.commit else ""
    if restored.by_hand:
        where = '; not committed: git add config.yaml && git commit -m "config.yaml is a file again"'
    kept = f" The one that lay there is {restored.kept}." if restored.kept else ""
    print_message(f"config.yaml is as it was in {restored.taken_from[:10]}{where}.{kept}")
    open_host(workspace)  # which says what waits for approval


def _print_change(change: SettingsOutcome, key: str, shown: str, workspace: Path | None, *, json: bool) -> None:
    """What was changed, and what is wrong in the file yet, or waits for approval."""
    host = open_host(workspace, tells_waiting=False, despite_fault=True)
    force = host.policy
    fault = force.fault if force is not None else None
    if json:
        print_json(
            {
                "key": key,
                "commit": change.commit,
                "file_committed": not change.is_uncommitted,
                "policy": [list(c) for c in change.changes],
                "problems": [str(each) for each in fault.problems] if fault is not None else [],
                "remedy": fault.remedy if fault is not None else None,
            }
        )
        return
    _print_changes(change.changes)
    if change.next_step:
        print_message(change.next_step)
    if change.is_uncommitted:
        why = "a secret stays out of git" if is_secret(key) else "it has other edits of yours"
        where = (
            f" ({change.commit[:10]}); the file is not committed: {why}" if change.commit else f"; not committed: {why}"
        )
    else:
        where = f" ({change.commit[:10]})" if change.commit else "; it was before"
    print_message(f"config.yaml: {key} is {shown}{where}")
    if fault is not None:
        print_message(f"The file is not valid yet, so nothing of it was approved. {fault}")
    elif force is not None and any(is_within(each, (key,)) for each, _, _ in force.unapproved):
        print_message(force.waiting)


@app.command("approve")
def approve_edited_settings(
    keys: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY…]", autocompletion=complete_settings, help="Only these; without: all that wait."),
    ] = None,
    digest: DigestOption = "",
    json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Approve settings as they stand in config.yaml: shows each with who changed it, and asks.

    What a commit brought is asked about apart from your own edit. In a script your own edit is taken, and nothing that
    was committed, unless you name the digest of what was shown.
    """
    from cleared.gate.proposals.setting_changes import approve_settings
    from cleared.gate.proposals.waiting_settings import SHOWN, group_by_commit, list_waiting_settings

    host = open_host(workspace, tells_waiting=False, despite_fault=True)
    waiting = list_waiting_settings(host, keys or [])
    if waiting and has_terminal(json) and not digest:
        groups = [group for group in group_by_commit(waiting) if ask_about(host.root, _subject_of(group, host=host))]
        waiting = [one for group in groups for one in group]
        if not waiting:
            print_message("Nothing was approved.")
            raise typer.Exit(1)
        keys = [one.key for one in waiting]
        is_seen: AbstractContextManager[None] = expecting({SHOWN: _subject_of(waiting).digest})
    elif waiting:
        subject = _subject_of(waiting, keys or ())
        is_own = not any(one.commit for one in waiting)
        is_seen = taking_shown(host.root, subject, digest, json=json, is_own=is_own)
    else:
        is_seen = nullcontext()
    with is_seen:
        approved = approve_settings(host, keys or ())
    if not json and not has_terminal():
        _print_waiting(waiting)
    if json:
        print_json({"commit": approved.commit, "policy": [list(c) for c in approved.changes]})
    else:
        apart = " config.yaml itself is not committed: other changes of it wait, or a secret stays out of git."
        print_message(
            f"Approved ({approved.commit[:10]}).{apart if approved.is_uncommitted else ''}"
            if approved.commit
            else "There was nothing to approve."
        )
        if approved.next_step:
            print_message(approved.next_step)


def _subject_of(waiting: Sequence[WaitingSetting], keys: Sequence[str] = (), host: Host | None = None) -> Subject:
    """Settings, to be approved. ``host``: where what agents would do otherwise is to be shown, too."""
    from cleared.gate.proposals.setting_effects import list_setting_effects
    from cleared.gate.proposals.waiting_settings import SHOWN, digest_changes

    effects, is_grave = list_setting_effects(host, waiting) if host is not None else ([], False)
    digest = digest_changes((one.key, one.before, one.after) for one in sorted(waiting, key=lambda one: one.key))
    return Subject(
        name=SHOWN,
        title=count_noun(len(waiting), "setting"),
        digest=digest,
        command=f"cleared config approve {''.join(f'{key} ' for key in keys)}--digest ",
        question=f"Approve {'this setting' if len(waiting) == 1 else f'these {len(waiting)} settings'}?",
        parts={
            "settings": lambda: _print_waiting(waiting),
            "effects": lambda: _print_lines(effects),
        },
        word=next((one.key for one in waiting if is_grave or starts_something(one.key, one.after)), ""),
    )


def _print_waiting(waiting: Iterable[WaitingSetting]) -> None:
    """Each with what it was and is to be, and the commit that brought it; none is named for one's own edit."""
    for one in sorted(waiting, key=lambda one: rank_setting(one.key)):
        brought = f"   ({one.by} in {one.commit})" if one.commit else ""
        runs = ": this machine acts by it" if starts_something(one.key, one.after) else ""
        print_line(f"{one.key}: {write_value(one.before)} → {write_value(one.after)}{runs}{brought}")


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print_line(line)


def _print_changes(changes: Iterable[tuple[str, object, object]]) -> None:
    for key, old, new in changes:
        print_line(f"{key}: {write_value(old)} → {write_value(new)}")
