"""How tables, their files and their rows are called."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

FOLDER: Final = "records"
_NAME: Final = r"(?a)[a-z][a-z0-9_-]{0,59}"

Key: TypeAlias = tuple[str, ...]


def table_path(name: str) -> str:
    return f"{FOLDER}/{name}.csv"


def schema_path(name: str) -> str:
    return f"{FOLDER}/{name}.yaml"


def is_table_name(name: str) -> bool:
    """Whether it can name a table: small letters, digits, ``-`` and ``_``."""
    return re.fullmatch(_NAME, name) is not None


def table_of(path: str, ending: str) -> str | None:
    """The table whose file with this ending is at a path; None where that is no such file."""
    folder, _, file = path.partition("/")
    name, _, found = file.rpartition(".")
    return name if folder == FOLDER and found == ending and is_table_name(name) else None


def row_id(table: str, key: Iterable[str]) -> str:
    """What a row is called in cards and by ``cleared why``: ``prices/ABC-1``."""
    return "/".join([table, *(part.replace("%", "%25").replace("/", "%2F") for part in key)])


def parse_row_id(name: str) -> tuple[str, Key] | None:
    """The inverse of ``row_id``; None for what is none."""
    table, *parts = name.split("/")
    return (table, tuple(part.replace("%2F", "/").replace("%25", "%") for part in parts)) if table and parts else None
