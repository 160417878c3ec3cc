"""The file ``config.yaml`` of a workspace: what it says, what is wrong in it, and the command that mends that."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from cleared.base.errors import ClearedError, Place, WorkspaceError
from cleared.base.safe_files import read_stable
from cleared.workspace.settings.loading import (
    MAX_BYTES,
    ConfigError,
    ConfigReading,
    Problem,
    read_valid_part,
)
from cleared.workspace.settings.model import Config

RESTORE: Final = "Put the newest version of it that is valid in its place: cleared config restore."
_MOST_NAMED: Final = 5


def load_config_file(path: Path) -> Config:
    """The configuration in a file. Raises ``ConfigError``, which names the commands that mend it."""
    config, fault = read_config_file(path)
    if fault is not None:
        raise fault
    return config


def read_config_file(path: Path) -> tuple[Config, ConfigError | None]:
    """What of the configuration in a file is valid, and what is wrong in it, with the commands that mend it."""
    try:
        text, found = read_text(path)
    except ConfigError as error:
        return Config(), error
    return found.config, describe_fault(text, found)


def read_bytes(path: Path) -> bytes:
    """The bytes of the file, whatever they say. Raises ``ConfigError`` where it is no file, or cannot be read."""
    try:
        return read_stable(path, MAX_BYTES, shown=path.name)[0]
    except WorkspaceError as error:
        raise ConfigError([Problem(Place(path.name), error.message)], RESTORE) from None


def read_text(path: Path) -> tuple[str, ConfigReading]:
    """A file's text, and what of it is valid. Raises ``ConfigError`` where it is not YAML, or no file."""
    data = read_bytes(path)
    try:
        text = _decode_text(data, path.name)
        found = read_valid_part(text, path.name, path.parent / ".cleared")
        if found.root is not None and found.root.kind != "map" and not found.root.is_null:
            raise ConfigError(found.problems)
        return text, found
    except ConfigError as error:
        raise ConfigError(error.problems, f"No command changes a part of such a file. {RESTORE}") from None


def describe_fault(text: str, found: ConfigReading) -> ConfigError | None:
    """What is wrong in a text that was read so, with the commands that mend it; None where nothing is."""
    if not found.problems:
        return None
    named = dict.fromkeys(_name_mend(text, found, problem) for problem in found.problems)
    commands = [each for each in named if each]
    if not commands or len(commands) < len(named):
        return ConfigError(found.problems, RESTORE)
    more = f" And {len(commands) - _MOST_NAMED} more." if len(commands) > _MOST_NAMED else ""
    return ConfigError(found.problems, f"Mend it: {'; '.join(commands[:_MOST_NAMED])}.{more}")


def _name_mend(text: str, found: ConfigReading, problem: Problem) -> str:
    """The command that mends one problem; empty where none does but ``config restore``."""
    from cleared.workspace.settings.editing import can_be_set, remove_value
    from cleared.workspace.settings.tree_paths import find_keys

    dotted = problem.place.field or ""
    if not dotted.isprintable():
        return ""
    is_repeated = problem.message.startswith("given twice")
    if not is_repeated and can_be_set(found.root, dotted):
        return f"cleared config set {shlex.quote(dotted)} VALUE"
    while dotted:
        if find_keys(found.root, dotted) is not None:
            with suppress(ClearedError):
                rest = read_valid_part(remove_value(text, dotted)).problems
                is_mended = _count_alike(problem, rest) < _count_alike(problem, found.problems)
                if is_mended or len(rest) < len(found.problems):
                    return f"cleared config unset {shlex.quote(dotted)}"
        dotted = _parent_of(dotted)
    return ""


def _count_alike(problem: Problem, problems: Sequence[Problem]) -> int:
    return sum((each.place.field, each.message) == (problem.place.field, problem.message) for each in problems)


def _parent_of(dotted: str) -> str:
    return dotted[: max(dotted.rfind("."), dotted.rfind("["), 0)]


def _decode_text(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte {error.start} is not UTF-8; save the file as UTF-8"
        raise ConfigError([Problem(Place(file, line), message)]) from None
