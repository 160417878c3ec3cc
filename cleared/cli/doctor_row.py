"""One row of ``cleared doctor``, and what checks of machine and workspace share."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from cleared.cli.machine_errors import as_refusal

Status = Literal["ok", "warn", "fail"]
_MEND_FIRST: Final = "Put that right, then look again."
_LOW_SPACE, _TOO_LOW_SPACE = 1 << 30, 64 << 20


class Row(Struct, frozen=True):
    """One thing that was looked at. ``remedy`` is empty where there is nothing to do."""

    name: str
    status: Status
    detail: str
    remedy: str = ""


def run_check(name: str, look: Callable[[], Row]) -> Row:
    try:
        return look()
    except Exception as error:
        e = as_refusal(error)
        if e is None:
            raise
        cause = f"{e.place}: {e.message}" if e.place and e.place.file else e.message
        return Row(name, "fail", cause, e.remedy or _MEND_FIRST)


def check_space(name: str, folder: Path) -> Row:
    free = shutil.disk_usage(folder).free
    shown = f"{folder}: {size_text(free)} free"
    if free < _LOW_SPACE:
        return Row(name, "fail" if free < _TOO_LOW_SPACE else "warn", shown, "Make room on the disk.")
    return Row(name, "ok", shown)


def size_text(number: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if number < 1000:
            return f"{number:.0f} {unit}"
        number /= 1000
    return f"{number:.1f} GB"
