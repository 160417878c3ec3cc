"""Copying bank files into the drop folder, so that no watcher sees half of one."""

from __future__ import annotations

from pathlib import Path

from cleared.errors import UsageError
from cleared.safe_files import read_stable, write_atomic
from cleared.safe_names import require_safe_name


def copy_to_drop_folder(root: Path, import_dir: str, sources: list[Path], max_bytes: int) -> list[str]:
    """Copy bank files into the drop folder, each atomically; the names they got.

    Raises ``UsageError`` for what cannot be copied; then nothing was.
    """
    plan = []
    for source in sources:
        name = require_safe_name(source.name, "file")
        data, _ = read_stable(source.resolve(), max_bytes, shown=str(source))
        plan.append((name, data))
    if len({name for name, _ in plan}) < len(plan):
        raise UsageError("two of the files have the same name", remedy="Import them one after the other.")
    for name, _ in plan:
        if (root / import_dir / name).exists():
            raise UsageError(
                f"{import_dir}/{name} is waiting there already", remedy="Run the agent first, or rename the file."
            )
    for name, data in plan:
        write_atomic(root / import_dir / name, data)
    return [name for name, _ in plan]
