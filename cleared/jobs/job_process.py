"""Runs inside a job's own process: calls its function, and reports by output and exit code."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

import cleared
from cleared.base.errors import ClearedError
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_types import load_function

NO_INPUT: Final = 66
"""Exit code of a job whose input is missing (EX_NOINPUT of sysexits.h)."""
BOOTSTRAP: Final = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path']; "
    "from cleared.jobs.job_process import main; main(spec)"
)
"""The program text that the interpreter of such a process runs."""


class JobFailed(Exception):
    """Raised by a job that has failed; the message is its summary, in one line."""


class NoInput(JobFailed):
    """Raised by a job whose input is missing."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """The argument of a job's function. What the function prints is the job's output, what it returns the summary."""

    root: Path
    """The workspace."""
    target: str
    """The target that was asked for, empty where none was."""
    by: str
    """Who requested it: ``person``, ``rotation``, or ``run:<id>`` for a script."""
    default_paths: tuple[str, ...]
    """The paths that the configuration names for this job type."""
    _forbidden: ForbiddenFiles = field(repr=False)

    def read(self, relative: str, most: int = 4 << 20) -> bytes:
        """The content of a file below the workspace, at most ``most`` bytes.

        Raises ``JobFailed`` where it is forbidden, ``NoInput`` where there is none.
        """
        try:
            path = self._forbidden.resolve_path(relative)
        except ClearedError as error:
            raise JobFailed(str(error)) from None
        try:
            with path.open("rb") as file:
                return file.read(most)
        except FileNotFoundError:
            raise NoInput(f"{relative}: there is no such file") from None
        except OSError as error:
            raise JobFailed(f"{relative}: {error.strerror}") from None

    def files(self, relative: str) -> Iterator[Path]:
        """The files below a path that a job may read; none where there are none. Raises ``JobFailed``."""
        try:
            top = self._forbidden.resolve_path(relative)
        except ClearedError as error:
            raise JobFailed(str(error)) from None
        return self._forbidden.readable_files(top)


def main(spec: Mapping[str, Any]) -> NoReturn:
    """Run the job that ``spec`` describes, and end the process."""
    root = Path(spec["root"])
    job = JobContext(
        root, spec["target"], spec["by"], tuple(spec["default_paths"]), ForbiddenFiles(root, tuple(spec["forbidden"]))
    )
    code = 1
    try:
        summary, code = str(load_function(spec["function"])(job)), 0
    except NoInput as error:
        summary, code = str(error), NO_INPUT
    except (JobFailed, ClearedError) as error:
        summary = str(error)
    except Exception as error:  # noqa: BLE001  (whatever it was, the result says it)
        traceback.print_exc(file=sys.stdout)
        summary = f"{type(error).__name__}: {error}"
    sys.stdout.write("\n" + " ".join(summary.split()) + "\n")
    sys.stdout.flush()
    os._exit(code)


def build_command(
    function: str, forbidden: ForbiddenFiles, target: str, by: str, default_paths: list[str], path: list[str]
) -> list[str]:
    """The command line of such a process; ``path``: where its Python finds modules."""
    spec = {
        "function": function,
        "root": str(forbidden.root),
        "target": target,
        "by": by,
        "default_paths": default_paths,
        "forbidden": list(forbidden.patterns),
        "path": path,
    }
    return [sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(spec)]


def module_search_path(root: Path) -> list[str]:
    """Where this process finds modules, without the workspace: what lies there is not our code."""
    own = str(Path(cleared.__file__).parents[1])
    return [own, *(p for p in sys.path if Path(p).is_absolute() and p != own and Path(p).resolve() != root)]
