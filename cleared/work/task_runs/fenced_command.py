"""One command in the fence: no network, writing only in the tree that it gets, bounded in time and output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cleared.base.errors import WorkspaceError
from cleared.base.tree_removal import remove_tree
from cleared.changes.host import Host
from cleared.jobs.job_process import module_search_path
from cleared.jobs.signing import KEY_NAME, JobSigner
from cleared.processes.leftovers import FOLDER_VARIABLE
from cleared.trust.keys import cleared_home
from cleared.trust.person_only import JOB
from cleared.work.task_runs.fenced_process import BOOTSTRAP

MAX_OUTPUT: Final = 256 << 10
"""Bytes of output that are kept: the first quarter, and the last."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"


@dataclass(frozen=True, slots=True)
class CommandResult:
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
) -> CommandResult:
    """Run ``argv`` in ``folder``, the only place where it may write beside a folder for temporary files.

    ``name``: what it is inside of, for those who look (``CLEARED_JOB``); nothing in it can decide anything. Where the
    kernel cannot confine, ``sandbox.confine`` says whether it runs, and a line says so. When this returns, no process
    of it is left. Raises ``WorkspaceError`` where it cannot be started.
    """
    if not (cleared_home() / KEY_NAME).exists():
        JobSigner(host.layout.state_dir)  # on this key it is tested that the fence is in force
    scratch = Path(tempfile.mkdtemp(prefix="cleared-task-"))
    spec: dict[str, Any] = {
        "argv": list(argv),
        "root": str(host.root),
        "cwd": str(folder),
        "scratch": str(scratch),
        "reads": [str(path) for path in reads],
        "environment": _make_environment(name, scratch, environment or {}),
        "input": input_text,
        "seconds": seconds,
        "keep": MAX_OUTPUT,
        "confine": host.config.sandbox.confine,
        "path": module_search_path(host.root),
        "parent": os.getpid(),
    }
    try:
        found = _run_helper(spec)
    finally:
        with suppress(OSError):
            remove_tree(scratch)
    if not found["started"]:
        raise WorkspaceError(f"the command cannot be started: {found['reason']}")
    if not found["confined"]:
        host.show_message("this machine cannot confine commands: it ran with all your rights")
    return CommandResult(
        found["exit_code"],
        found["reason"],
        host.redactor.redact_output(found["output"]),
        found["total"],
        found["confined"],
    )


def _run_helper(spec: Mapping[str, Any]) -> dict[str, Any]:
    helper = subprocess.Popen(
        [sys.executable, "-I", "-c", BOOTSTRAP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
        encoding="utf-8",
    )
    try:
        out, _ = helper.communicate(json.dumps(spec))
    except BaseException:  # Ctrl-C: it ends the command, and all that the command has started
        helper.terminate()
        helper.wait()
        raise
    try:
        found: dict[str, Any] = json.loads(out)
    except ValueError:
        raise WorkspaceError(
            f"the process that runs the command ended by itself ({helper.returncode})", remedy="See: cleared doctor."
        ) from None
    return found


def _make_environment(name: str, scratch: Path, extra: Mapping[str, str]) -> dict[str, str]:
    return {
        "PATH": _PATH,
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        JOB: name,
        FOLDER_VARIABLE: str(scratch),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        **extra,
    }
