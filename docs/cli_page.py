"""The generated page about the command line: every command as it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints


def cli(note: str) -> str:
    """Every command with its arguments and options."""
    from cleared.cli.commands import build_tree

    out = [
        "# Commands",
        "",
        note,
        "",
        "Results go to stdout, everything else to stderr. `--json` prints one JSON value and nothing else; where the",
        'command is refused, that is `{"error": {type, message, place, remedy, exit_code}}`. A command that works in a',
        "workspace looks for `config.yaml` in the current directory and above it, as git does; `-C DIR`, before or",
        "after the command, names another place. `CLEARED_CLOCK`, an ISO 8601 time with an offset, fixes the clock.",
        "",
        "## Exit codes",
        "",
        *list_exit_codes(),
        "",
        "## Overview",
        "",
        "| command | what it does |",
        "|---|---|",
    ]
    found = list(_commands(build_tree(), "cleared"))
    for name, command in found:
        out.append(f"| [`{name}`](#{name.replace(' ', '-')}) | {_doc(command).splitlines()[0]} |")
    out += [
        "",
        "`cleared --version` prints the version; `--install-completion` and `--show-completion` are for shells.",
        "",
    ]
    for name, command in found:
        out += [f"## {name}", "", "```text", _usage(name, command), "```", "", _doc(command), ""]
        rows = list(_options(command))
        if rows:
            out += ["| | | default |", "|---|---|---|", *rows, ""]
    return "\n".join(out).rstrip() + "\n"


def list_exit_codes() -> list[str]:
    """The rows of a table of exit codes."""
    from cleared.base.errors import ExitCode

    meaning = {
        ExitCode.DONE: "done",
        ExitCode.FAILED: "the script failed, or a check found something",
        ExitCode.USAGE: "the command was called wrongly",
        ExitCode.REFUSED: "refused by policy: not allowed, or not now",
        ExitCode.UNUSABLE: "the workspace cannot be used as it is",
        ExitCode.BUSY: "another command is writing and did not end in time, or another program has what it takes",
        ExitCode.ALL_DONE: "`cleared task next` and `run`: every task is completed",
        ExitCode.BLOCKED: "it waits for you: `cleared task next` and `run`: no task is ready, and some are left; "
        "`cleared meta`: the model asks you",
        ExitCode.INTERRUPTED: "Ctrl-C; a commit that was made before is named, and stands",
    }
    return ["| code | meaning |", "|---|---|", *(f"| {int(code)} | {meaning[code]} |" for code in ExitCode)]


def _commands(app: Any, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    for command in app.registered_commands:
        if not command.hidden:
            name = command.name or command.callback.__name__.rstrip("_").replace("_", "-")
            yield f"{path} {name}", command.callback
    for group in app.registered_groups:
        yield from _commands(group.typer_instance, f"{path} {group.name}")


def _doc(command: Callable[..., Any]) -> str:
    return (inspect.getdoc(command) or "").replace("``", "`")


def _parameters(command: Callable[..., Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    """Name, type, typer's description and default of each parameter."""
    signature = inspect.signature(command)
    for name, hint in get_type_hints(command, include_extras=True).items():
        if get_origin(hint) is Annotated:
            kind, about = get_args(hint)[:2]
            if not about.hidden:
                yield name, kind, about, signature.parameters[name].default


def _is_argument(about: Any) -> bool:
    return type(about).__name__ == "ArgumentInfo"


def _usage(name: str, command: Callable[..., Any]) -> str:
    arguments = [
        word if default is inspect.Parameter.empty else f"[{word}]"
        for word, about, default in (
            (about.metavar or name.upper(), about, default) for name, _, about, default in _parameters(command)
        )
        if _is_argument(about)
    ]
    options = [a for _, _, a, _ in _parameters(command) if not _is_argument(a)]
    return " ".join([name, *(["[OPTIONS]"] if options else []), *arguments])


def _options(command: Callable[..., Any]) -> Iterator[str]:
    for name, kind, about, default in _parameters(command):
        choices = _choices(kind)
        if _is_argument(about):
            shown = f"`{about.metavar or name.upper()}`"
        else:
            value = "CHOICE" if choices else _VALUES[_bare(kind)]
            value = about.metavar or value
            shown = ", ".join(f"`{flag} {value}`" if value else f"`{flag}`" for flag in _flags(name, about))
        text = (about.help or "").replace("|", "\\|")
        if choices:
            text += f" One of {', '.join(f'`{c}`' for c in choices)}."
        if default is inspect.Parameter.empty:
            given = "required"
        else:
            given = "" if default in (None, False, "") else f"`{getattr(default, 'value', default)}`"
        yield f"| {shown} | {text} | {given} |"


_VALUES: Final = {bool: "", str: "TEXT", int: "NUMBER", float: "NUMBER", Path: "PATH"}


def _flags(name: str, about: Any) -> list[str]:
    """In ``Annotated``, typer takes the first flag for the default until it builds the command."""
    found = [d for d in (about.default, *(about.param_decls or ())) if isinstance(d, str) and d.startswith("-")]
    return found or [f"--{name.replace('_', '-')}"]


def _bare(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        kind = next(a for a in get_args(kind) if a is not type(None))
    return get_args(kind)[0] if get_origin(kind) is list else kind


def _choices(kind: Any) -> list[str]:
    bare = _bare(kind)
    return [member.value for member in bare] if isinstance(bare, EnumType) else []
