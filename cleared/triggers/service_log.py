"""The service's own log: ``.cleared/service.log``, one JSON object a line, rotated."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from cleared.base.clock import Clock
from cleared.base.json_values import parse_json_object
from cleared.base.safe_files import append_rotated
from cleared.workspace.settings.secrets import Redactor

FILE_NAME: Final = "service.log"
MAX_BYTES: Final = 2 << 20
OLD_FILES: Final = 3
"""Old files beside the one that is written: service.log.1 is the newest of them."""
_MAX_TEXT_LENGTH: Final = 2_000


class ServiceLog:
    """Appends what happens; also as a line for whoever watches (``say``). A full disk stops nothing."""

    def __init__(self, state_dir: Path, clock: Clock, say: Callable[[str], None]) -> None:
        self.path = state_dir / FILE_NAME
        self._clock, self._say = clock, say
        self.redactor = Redactor()

    def __call__(self, what: str, text: str = "", *, level: str = "info", **fields: Any) -> None:
        """Write that ``what`` (a stable name such as ``run.succeeded``) happened; ``text`` is for people."""
        clean = self.redactor.redact_text
        row = {
            "at": self._clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": level,
            "what": what,
        }
        row |= {k: clean(v)[:_MAX_TEXT_LENGTH] if isinstance(v, str) else v for k, v in fields.items() if v is not None}
        if text:
            row["text"] = clean(text)[:_MAX_TEXT_LENGTH]
            self._say(row["text"])
        with suppress(OSError):
            line = json.dumps(row, ensure_ascii=True, default=str) + "\n"
            append_rotated(self.path, line.encode("ascii"), MAX_BYTES, OLD_FILES)


def read_last_rows(state_dir: Path, count: int) -> list[dict[str, Any]]:
    """The newest lines, oldest first, over rotated files too."""
    lines: list[bytes] = []
    for path in (state_dir / FILE_NAME, *(Path(f"{state_dir / FILE_NAME}.{n}") for n in range(1, OLD_FILES + 1))):
        if len(lines) >= count:
            break
        try:
            lines = path.read_bytes().splitlines() + lines
        except OSError:
            continue
    return list(parse_rows(lines[-count:] if count else []))


def parse_rows(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """The lines that are rows of the log."""
    # Of a process that was killed there may be half a line.
    return filter(None, map(parse_json_object, lines))
