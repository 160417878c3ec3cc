"""``file_*`` and ``csv_rows``: reading what lies in the folders that the agent's header watches."""

from __future__ import annotations

from typing import Any

from cleared.base.bounds import MAX_ITEMS
from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Line


@primitive(effect=Effect.READ, grant="file.read")
def file_list(ctx: Context) -> list[str]:
    """The paths of the files that the header watches (``trigger: file_watch``, ``watch: suppliers/``), sorted; no
    hidden ones, none through a link, and never settings, scripts, records or keys."""
    return list(ctx.files.list_paths())


@primitive(effect=Effect.READ, grant="file.read")
def file_read(ctx: Context, path: Line) -> str:
    """The text of a watched file, which must be UTF-8. It is read once in a run: what was read first holds."""
    text = ctx.files.read_text(path)
    _log_reading(ctx, path)
    return text


@primitive(effect=Effect.READ, grant="file.read")
def csv_rows(ctx: Context, path: Line, delimiter: Line = ",") -> list[Any]:
    """The rows of a watched CSV file: a dict each, by the names in its first line; all values are texts.

    Refused where a row has more or less fields than the first line, or a name stands there twice.
    """
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise PrimitiveError("a delimiter is one character", place=Place(field="delimiter"), remedy='Such as ";".')
    rows = ctx.files.read_rows(path, delimiter)
    if len(rows) > MAX_ITEMS:
        raise PrimitiveError(
            f"{path} has {len(rows):,} rows; {MAX_ITEMS:,} are allowed", place=Place(field="path"), remedy="Split it."
        )
    _log_reading(ctx, path)
    return rows


def _log_reading(ctx: Context, path: str) -> None:
    """Once in a run: what it was made from is on record."""
    if path not in ctx.files.told:
        ctx.files.told.add(path)
        ctx.log_action("file_read", f"{path} sha256:{ctx.files.digests[path]}"[:500])
