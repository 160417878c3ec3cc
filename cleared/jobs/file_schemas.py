"""The JSON Schemas (draft 7) of the loop's files, shipped beside this module, asked on every write and read."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

from cleared.errors import Place, WorkspaceError
from cleared.workspace.safe_files import read_stable, write_atomic

SchemaName = Literal["state", "manifest", "result", "tree", "wakeup", "inbox", "bridge", "asked"]
SCHEMA_FOLDER: Final = Path(__file__).parent / "schemas"
MAX_BYTES: Final = 8 << 20
PRIVATE_MODE: Final = 0o600
"""Permissions of what a loop writes: a job may have read what is not for everybody."""


class DamagedFile(WorkspaceError):
    """A file that is not what its schema says."""


def load_schema(name: SchemaName) -> dict[str, Any]:
    """A schema as shipped."""
    found: dict[str, Any] = json.loads((SCHEMA_FOLDER / f"{name}.json").read_bytes())
    return found


def check_record(name: SchemaName, data: Any, file: str, checked: str = "") -> None:
    """Raises ``Damaged``, naming the field, where ``data`` is not as the schema says, but for the ``checked`` field."""
    from fastjsonschema import JsonSchemaValueException

    try:
        _compile_validator(name, checked)(data)
    except JsonSchemaValueException as error:
        field = str(error.name or "data").removeprefix("data").lstrip(".")
        message = f"it is no {name}: {error.message.removeprefix(str(error.name)).strip()[:200]}"
        raise DamagedFile(message, place=Place(file=file, field=field or None)) from None


def read_record(name: SchemaName, path: Path, *, shown: str | None = None) -> Any:
    """The content of a file, checked. Raises ``Damaged``, or ``WorkspaceError`` where it cannot be read."""
    data, _ = read_stable(path, MAX_BYTES, shown=shown or str(path))
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"it is not JSON: {str(error)[:100]}", place=Place(file=shown or str(path))) from None
    check_record(name, value, shown or str(path))
    return value


def write_record(name: SchemaName, path: Path, data: Any, *, fsync: bool = False, checked: str = "") -> None:
    """Put ``data``, checked, at ``path`` in one step. Raises ``WorkspaceError``; then nothing has changed.

    ``checked``: a field that was just checked, as a file of its own.
    """
    check_record(name, data, str(path), checked)
    write_atomic(path, encode_record(data), fsync=fsync, mode=PRIVATE_MODE)


def encode_record(data: Any) -> bytes:
    """As it stands in the files: one line of ASCII. (With line breaks it would take ten times as long.)"""
    return (json.dumps(data, ensure_ascii=True) + "\n").encode("ascii")


@cache
def _compile_validator(name: SchemaName, checked: str) -> Callable[[Any], Any]:
    import fastjsonschema

    schema = load_schema(name)
    if checked:
        schema["properties"][checked] = {"type": "object"}
    compiled: Callable[[Any], Any] = fastjsonschema.compile(schema, use_default=False)
    return compiled
