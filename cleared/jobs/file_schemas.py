"""The JSON Schemas (draft 7) of the loop's files (``schemas/``), which every write and read is checked against."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import read_stable, write_atomic

SchemaName = Literal["state", "manifest", "result", "tree", "wakeup", "inbox", "bridge", "asked"]
SCHEMA_FOLDER: Final = Path(__file__).parent / "schemas"
MAX_BYTES: Final = 8 << 20
PRIVATE_MODE: Final = 0o600
"""Permissions of the loop's files: a job may have read what other users may not."""


class DamagedFile(WorkspaceError):
    """A file whose content is not as its schema says."""


def load_schema(name: SchemaName) -> dict[str, Any]:
    """A schema as shipped."""
    schema: dict[str, Any] = json.loads((SCHEMA_FOLDER / f"{name}.json").read_bytes())
    return schema


def check_record(name: SchemaName, data: Any, file: str, checked: str = "") -> None:
    """Raises ``DamagedFile``, naming the field, where ``data`` is not as the schema says.

    ``checked``: a field that is not looked into, as it was checked by itself.
    """
    from fastjsonschema import JsonSchemaValueException

    try:
        _compile_validator(name, checked)(data)
    except JsonSchemaValueException as error:
        field = str(error.name or "data").removeprefix("data").lstrip(".")
        message = f"it is no {name}: {error.message.removeprefix(str(error.name)).strip()[:200]}"
        raise DamagedFile(message, place=Place(file=file, field=field or None)) from None


def read_record(name: SchemaName, path: Path, *, shown: str | None = None) -> Any:
    """The checked content of a file, which errors call ``shown``.

    Raises ``DamagedFile``, or ``WorkspaceError`` where the file cannot be read.
    """
    data, _ = read_stable(path, MAX_BYTES, shown=shown or str(path))
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"it is not JSON: {str(error)[:100]}", place=Place(file=shown or str(path))) from None
    check_record(name, value, shown or str(path))
    return value


def write_record(name: SchemaName, path: Path, data: Any, *, fsync: bool = False, checked: str = "") -> None:
    """Check ``data`` and write it to ``path`` in one step. Raises ``WorkspaceError``; then the file is as before.

    ``checked`` as in ``check_record``.
    """
    check_record(name, data, str(path), checked)
    write_atomic(path, encode_record(data), fsync=fsync, mode=PRIVATE_MODE)


def write_copies(name: SchemaName, paths: Sequence[Path], data: Any, *, fsync: bool) -> None:
    """The same into several files, one after the other. ``fsync``: of the first; the others are copies of it."""
    check_record(name, data, str(paths[0]))
    encoded = encode_record(data)
    for number, path in enumerate(paths):
        write_atomic(path, encoded, fsync=fsync and not number, mode=PRIVATE_MODE)


def encode_record(data: Any) -> bytes:
    """JSON as the files have it: one line of ASCII. (``json`` is ten times slower with line breaks.)"""
    return (json.dumps(data, ensure_ascii=True) + "\n").encode("ascii")


@cache
def _compile_validator(name: SchemaName, checked: str) -> Callable[[Any], Any]:
    import fastjsonschema

    schema = load_schema(name)
    if checked:
        schema["properties"][checked] = {"type": "object"}
    validator: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)
    return validator
