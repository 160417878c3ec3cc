"""One command in the fence: no network, writing only in the tree that it gets, bounded in time and output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleared.base.errors import WorkspaceError
from cleared.base.temporary_folders import open_temporary_folder
from cleared.changes.host import Host
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.signing import KEY_NAME, JobSigner
from cleared.processes.confinement import ConfinementUnavailable
from cleared.processes.fences import require_walls
from cleared.processes.kept_programs import run_kept
from cleared.processes.program import Program, end_at
from cleared.trust.keys import cleared_home
from cleared.work.loop.job_confinement import job_fence, make_bare_environment

MAX_OUTPUT: Final = 256 << 10
"""Bytes of output that are kept: the first quarter, and the last."""
_STOPPED: Final = "stopped"


class BoundedOutput:
    """The first and the last bytes of an output, ``most`` together."""

    def __init__(self, most: int) -> None:
        self._head_size, self._tail_size = most // 4, most - most // 4
        self._head, self._tail, self.total = b"", b"", 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail = (self._tail + data[room:])[-self._tail_size :] if data[room:] else self._tail

    def text(self) -> str:
        """As text; what is left out is named."""
        cut = self.total - len(self._head) - len(self._tail)
        middle = f"\n[{cut} bytes are not kept]\n".encode() if cut else b""
        return (self._head + middle + self._tail).decode("utf-8", "replace")


class CommandResult(Struct, frozen=True):
    """How a command ended. ``exit_code``: None where it was not started, negative for a signal; ``reason``: why it was
    ended, empty where it ended by itself; ``total``: bytes of output, kept or not."""

    exit_code: int | None
    reason: str
    output: str
    total: int
    is_confined: bool

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and not self.reason

    @property
    def summary(self) -> str:
        """How it ended, in a few words."""
        if self.reason:
            return self.reason
        if self.exit_code is not None and self.exit_code < 0:
            return f"killed by signal {-self.exit_code}"
        return f"exit code {self.exit_code}"


def run_fenced(
    host: Host,
    argv: Sequence[str],
    folder: Path,
    *,
    name: str,
    seconds: float,
    input_text: str = "",
    environment: Mapping[str, str] | None = None,
    reads: Sequence[Path] = (),
    should_stop: Callable[[], bool] = bool,
) -> CommandResult:
    """Run ``argv`` in ``folder``, the only place where it may write beside a folder for temporary files.

    ``name``: what it is inside of, for those who look (``CLEARED_JOB``); nothing in it can decide anything. Where the
    kernel cannot confine, ``sandbox.confine`` says whether it runs, and a line says so. When this returns, no process
    of it is left. Raises ``WorkspaceError`` where it cannot be started, ``KeyboardInterrupt`` where it ``should_stop``.
    """
    if not (cleared_home() / KEY_NAME).exists():
        JobSigner(host.layout.state_dir)  # on this key it is tested that the fence is in force
    output = BoundedOutput(MAX_OUTPUT)
    with open_temporary_folder("task") as scratch:
        fence = job_fence(ForbiddenFiles(folder.resolve()), reads, [folder, scratch], [], trust=False, root=host.root)
        try:
            fence = require_walls(fence, host.config.sandbox.confine)
            program = Program(
                argv,
                folder,
                make_bare_environment(name, scratch) | dict(environment or {}),
                fence,
                input_text.encode("utf-8"),
            )
            is_over = end_at(seconds)
            ending = run_kept(program, output.add, lambda: _STOPPED if should_stop() else is_over())
        except (ConfinementUnavailable, OSError) as error:
            raise WorkspaceError(f"the command cannot be started: {error}") from None
    if ending.reason == _STOPPED:
        raise KeyboardInterrupt
    if fence is None:
        host.show_message("this machine cannot confine commands: it ran with all your rights")
    text = host.redactor.redact_output(output.text())
    return CommandResult(ending.code, ending.reason, text, output.total, fence is not None)
