"""Inside a job's own process: finds its function, calls it, and says by output and exit code how it went."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NoReturn

from cleared.errors import ClearedError
from cleared.jobs.forbidden_files import ForbiddenFiles

NO_INPUT: Final = 66
"""Exit code of a job whose input is not there (``EX_NOINPUT`` of sysexits.h): not the job's fault."""
BOOTSTRAP: Final = (
    "import json, sys; spec = json.loads(sys.argv[1]); sys.path[:] = spec['path']; "
    "from cleared.loop.job_process import main; main(spec)"
)
"""What the interpreter of such a process is given to run."""


class JobFailed(Exception):
    """A job says why it failed, in one line."""


class NoInput(JobFailed):
    """What a job is to work on is not there."""


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job's function is given. What it prints is the job's output; what it returns, its summary."""

    root: Path
    """The workspace."""
    target: str
    """What it was asked for, empty where nothing was."""
    by: str
    """Who asked for it: ``person``, ``rotation``, ``run:<id>``."""
    default_paths: tuple[str, ...]
    """The paths that the configuration names for this kind."""
    _forbidden: ForbiddenFiles = field(repr=False)

    def read(self, relative: str, most: int = 4 << 20) -> bytes:
        """A file below the workspace. Raises ``JobFailed`` where it is forbidden, ``NoInput`` where there is none."""
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
        """The files below a path that a job may read; none where there is nothing. Raises ``JobFailed``."""
        try:
            top = self._forbidden.resolve_path(relative)
        except ClearedError as error:
            raise JobFailed(str(error)) from None
        return self._forbidden.readable_files(top)


def main(spec: Mapping[str, Any]) -> NoReturn:
    """Be the job that ``spec`` describes."""
    root = Path(spec["root"])
    job = JobContext(
        root, spec["target"], spec["by"], tuple(spec["usual"]), ForbiddenFiles(root, tuple(spec["forbidden"]))
    )
    code = 1
    try:
        summary = load_function(spec["function"])(job)
        said, code = str(summary), 0
    except NoInput as error:
        said, code = str(error), NO_INPUT
    except (JobFailed, ClearedError) as error:
        said = str(error)
    except Exception as error:  # noqa: BLE001  (whatever it was, the result says it)
        traceback.print_exc(file=sys.stdout)
        said = f"{type(error).__name__}: {error}"
    sys.stdout.write("\n" + " ".join(said.split()) + "\n")
    sys.stdout.flush()
    os._exit(code)


def load_function(reference: str) -> Callable[[Any], Any]:
    """``module:name``, imported."""
    module, _, name = reference.partition(":")
    found: Callable[[Any], Any] = getattr(import_module(module), name)
    return found


def build_command(
    function: str, forbidden: ForbiddenFiles, target: str, by: str, usual: list[str], path: list[str]
) -> list[str]:
    """How to start such a process; ``path``: where it is to find modules."""
    spec = {
        "function": function, "root": str(forbidden.root), "target": target, "by": by, "usual": usual,
        "forbidden": list(forbidden.patterns), "path": path,
    }  # fmt: skip
    return [sys.executable, "-I", "-c", BOOTSTRAP, json.dumps(spec)]


def module_search_path(root: Path) -> list[str]:
    """Where this process finds modules, but not in the workspace: what lies there is not our code."""
    own = str(Path(__file__).parents[2])
    return [own, *(p for p in sys.path if Path(p).is_absolute() and p != own and Path(p).resolve() != root)]
