"""Running a program that the approved settings name: text on its standard input, bounded output, an end in time.

It is started in an empty folder with a small environment, and never where it, or a file it is given, lies in the
workspace: what is approved are the words of the command, and such a file changes without anybody's approval.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cleared.base.clock import Clock
from cleared.base.programs import find_program, search_path

_PASSED_VARIABLES: Final = ("PATH", "HOME", "LANG", "TZ")
_STDERR_BYTES: Final = 8_192
"""Bytes of its standard error that are kept: the end of it."""
_POLL_PAUSE: Final = 0.02


class CommandFailed(Exception):
    """The command could not be started, took too long, or ended with an error; the text says which."""


@dataclass(slots=True)
class _Output:
    """What a program has written so far: the beginning of its output, the end of its errors."""

    most: int
    stdout: bytes = b""
    stderr: bytes = b""

    def take(self, name: str, part: bytes) -> None:
        if name == "stdout":
            self.stdout = (self.stdout + part)[: self.most]
        else:
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
    try:
        # An empty folder: interpreters take modules, and tools their settings, from the one they are started in.
        with tempfile.TemporaryDirectory(prefix="cleared-") as empty, tempfile.TemporaryFile() as source:
            source.write(stdin)
            source.seek(0)
            process = subprocess.Popen(
                list(argv),
                executable=program,
                stdin=source,
                stderr=subprocess.PIPE,
                stdout=subprocess.PIPE if most_output else subprocess.DEVNULL,
                cwd=empty,
                env=environment,
                close_fds=True,
                start_new_session=True,
            )
            with process:
                output = _wait_for_end(process, clock, seconds, most_output)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
        raise CommandFailed(f"{argv[0]}: {reason}") from None
    name = Path(argv[0]).name
    if output is None:
        raise CommandFailed(f"{name} was ended after {seconds:g} seconds")
    if process.returncode:
        lines = output.stderr.decode("utf-8", "replace").splitlines()
        last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        ending = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
        raise CommandFailed(f"{name}: {ending}: {last.strip()}")
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


def _wait_for_end(process: subprocess.Popen[bytes], clock: Clock, seconds: float, most: int) -> _Output | None:
    """Wait for the command to end; None where it took too long and was killed, with all that it had started."""
    output = _Output(most)
    end = clock.monotonic() + seconds
    with selectors.DefaultSelector() as ready:
        for name, pipe in (("stdout", process.stdout), ("stderr", process.stderr)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                ready.register(pipe, selectors.EVENT_READ, name)
        while True:
            over = process.poll() is not None
            for _ in range(32):  # bounded, so that a command that writes without end is ended, too
                events = ready.select(0.0 if over else _POLL_PAUSE) if ready.get_map() else []
                if not events:
                    break
                for key, _mask in events:
                    part = os.read(key.fd, 65_536)
                    output.take(key.data, part)
                    if not part:
                        ready.unregister(key.fileobj)
            if over:  # do not wait for a child of it that holds a pipe open
                return output
            if clock.monotonic() > end:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                return None
            if not ready.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_PAUSE)
