"""The logs of cycles: one line each thing in the main log, one file each cycle, so many of the newest kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from cleared.base.clock import Clock, format_iso
from cleared.base.safe_files import append_rotated
from cleared.base.safe_names import resolve_inside
from cleared.base.terminal import escape_text
from cleared.work.cycles.engines import load_engine
from cleared.work.cycles.engines.engine import Engine
from cleared.workspace.settings.ai_cycle_section import ENGINE_NAMES
from cleared.workspace.settings.secrets import Redactor

ROTATE_BYTES: Final = 10 << 20
_KEPT_MAIN_LOGS: Final = 3
_FOLDER: Final = "logs"
CYCLE_LOG: Final = re.compile(r"cycle(?:-(?P<engine>[a-z]+))?-(?P<number>[0-9]{4,9})-(?P<stamp>[0-9]{8}-[0-9]{6})\.log")


class CycleLog:
    """The main log of one engine."""

    def __init__(self, root: Path, engine: Engine, clock: Clock, redactor: Redactor) -> None:
        self._path, self._clock, self._redactor = locate_log(root, engine.main_log), clock, redactor

    def write(self, text: str) -> str:
        """Add a line; the line as it was written."""
        line = f"[{format_iso(self._clock.now())}] {escape_text(self._redactor.redact_text(text))}"
        append_rotated(self._path, f"{line}\n".encode(), ROTATE_BYTES, _KEPT_MAIN_LOGS)
        return line


def locate_log(root: Path, path: str) -> Path:
    """The place of a log, whose folder is made. Raises ``PolicyError`` where a link leads out of the workspace."""
    folder = resolve_inside(root, _FOLDER)
    folder.mkdir(exist_ok=True)
    return folder / Path(path).name


def list_cycle_logs(root: Path) -> list[Path]:
    """The logs of cycles of every engine, by the number of the cycle: several may begin within one second. What is no
    plain file is none."""
    folder = resolve_inside(root, _FOLDER)
    named = [path for path in folder.glob("cycle-*.log") if CYCLE_LOG.fullmatch(path.name)]
    found = [path for path in named if path.is_file() and not path.is_symlink()]
    return sorted(found, key=lambda path: (*_read_name(path), path.name))


def last_cycle_number(root: Path) -> int:
    """The highest number that a log names; 0 where there is none."""
    return max((_read_name(path)[0] for path in list_cycle_logs(root)), default=0)


def remove_old_logs(root: Path, most: int) -> int:
    """Keep the ``most`` newest logs of cycles; how many were removed."""
    old = list_cycle_logs(root)[: -most or None] if most else list_cycle_logs(root)
    for path in old:
        path.unlink(missing_ok=True)
    return len(old)


def list_main_logs(root: Path) -> list[Path]:
    """The main logs of all engines, whether they exist or not."""
    folder = resolve_inside(root, _FOLDER)
    return [folder / Path(load_engine(name).main_log).name for name in ENGINE_NAMES]


def _read_name(path: Path) -> tuple[int, str]:
    """Number and beginning of the cycle, as the name of its log says them."""
    match = CYCLE_LOG.fullmatch(path.name)
    return (int(match["number"]), match["stamp"]) if match else (0, "")
