"""Running a program that the approved settings name: text on its standard input, bounded output, an end in time.

It is started in an empty folder with a small environment, and never where it, or a file it is given, lies in the
workspace: what is approved are the words of the command, and such a file changes without anybody's approval.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.clock import Clock
from cleared.base.programs import find_program, search_path
from cleared.base.temporary_folders import open_temporary_folder
from cleared.processes.program import Program, end_at, run_program

_PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG", "TZ")
_STDERR_BYTES: Final = 8_192
"""Bytes of its standard error that are kept: the end of it."""


class CommandFailed(Exception):
    """The command could not be started, took too long, or ended with an error; the text says which."""


class _Output(Struct):
    """What a program has written so far: the beginning of its output, the end of its errors."""

    most: int
    stdout: bytes = b""
    stderr: bytes = b""

    def take_text(self, part: bytes) -> None:
        self.stdout = (self.stdout + part)[: self.most]

    def take_errors(self, part: bytes) -> None:
        self.stderr = (self.stderr + part)[-_STDERR_BYTES:]


def run_outside_command(
    argv: Sequence[str], stdin: bytes, *, root: Path, clock: Clock, seconds: float, most_output: int = 0
) -> bytes:
    """The first ``most_output`` bytes of what the command writes. ``root`` is the workspace's.

    Raises ``CommandFailed``.
    """
    environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    environment["PATH"] = search_path(outside=root)
    program = _find_outside_program(argv, root, environment["PATH"])
    output = _Output(most_output)
    try:
        # An empty folder: interpreters take modules, and tools their settings, from the one they are started in.
        with open_temporary_folder("command") as empty:
            started = Program(argv, empty, environment, input=stdin, executable=program, may_leave=True)
            find_reason = end_at(seconds, clock.monotonic)
            ending = run_program(started, output.take_text, find_reason, output.take_errors)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
        raise CommandFailed(f"{argv[0]}: {reason}") from None
    name = Path(argv[0]).name
    if ending.reason:
        raise CommandFailed(f"{name} was ended after {seconds:g} seconds")
    if ending.code:
        lines = output.stderr.decode("utf-8", "replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        how = f"exit code {ending.code}" if ending.code > 0 else f"signal {-ending.code}"
        raise CommandFailed(f"{name}: {how}: {last.strip()}")
    return output.stdout


def _find_outside_program(argv: Sequence[str], root: Path, path: str) -> str:
    """The program's absolute path. Raises ``CommandFailed`` where it, or what it is given, lies in the workspace."""
    inside = root.resolve()
    for word in argv:
        named = root / word
        with suppress(OSError, ValueError):
            exists = named.exists() if Path(word).is_absolute() else word and named.is_file()
            if exists and named.resolve().is_relative_to(inside):
                raise CommandFailed(
                    f"{word} lies in the workspace, where it changes without approval; keep it elsewhere"
                )
    if "/" in argv[0]:
        return str(root / argv[0])
    program = find_program(argv[0], path)
    if program is None or Path(program).resolve().is_relative_to(inside):
        raise CommandFailed(f"{argv[0]}: there is no such program on the PATH")
    return program
