"""Cards about files that were refused, in whatever folder they lie: one that cannot be read, or that git brought."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.errors import ClearedError, Place
from cleared.base.safe_files import read_stable
from cleared.cards.card import Card
from cleared.cards.kinds import BAD_FILE
from cleared.workspace.watched_names import escape_name

MAX_HASHED_LINES: Final = 500
_MAX_NAMED: Final = 50
_MAX_REFUSAL_KINDS: Final = 20
_VARIABLE_PART: Final = r"'[^']*'|\"[^\"]*\"|[0-9]+"


def hash_lines(data: bytes) -> list[str]:
    """Something short for each line of a file, by which another file that holds the same lines is known."""
    return [hashlib.sha256(line.strip()).hexdigest()[:8] for line in data.splitlines()]


def read_fingerprint(path: Path, max_bytes: int, place: Place | None) -> dict[str, Any]:
    """What a file that could not be read is known by later: its digest, its lines, the line that was wrong; of no
    interest to people."""
    try:
        data, _ = read_stable(path, max_bytes)
    except ClearedError:
        return {}
    fingerprint: dict[str, Any] = {"sha256": hashlib.sha256(data).hexdigest()}
    if place is not None and place.line is not None and data.count(b"\n") <= MAX_HASHED_LINES:
        fingerprint |= {"line": place.line, "lines": hash_lines(data)}
    return {"_known_by": fingerprint}


def stage_refusals(
    refused: Mapping[str, ClearedError],
    folder: Path,
    shown: str,
    max_bytes: int,
    stage_card: Callable[..., object],
    fate: str = "imported",
) -> None:
    """Stage a card for each kind of refusal, however many files it met. ``folder``: where they lie, ``shown`` relative
    to the workspace; ``fate``: what they were not."""
    kinds: dict[str, list[str]] = {}
    for name, error in refused.items():
        kind = type(error).__name__ + re.sub(_VARIABLE_PART, "", error.message.replace(name, ""))
        kinds.setdefault(kind if kind in kinds or len(kinds) < _MAX_REFUSAL_KINDS else "", []).append(name)
    for names in kinds.values():
        first, error = escape_name(names[0]), refused[names[0]]
        about: dict[str, Any] = {"file": f"{shown}/{first}"}
        key: tuple[str, ...] = (first, _file_stamp(folder / names[0]), error.message)
        title = f"{first[:120]} was"
        fingerprint = read_fingerprint(folder / names[0], max_bytes, error.place)
        if len(names) > 1:
            key = ("many", *(f"{escape_name(name)}:{_file_stamp(folder / name)}" for name in names))
            title = f"{len(names)} files were"
            fingerprint = {}
            about = {"count": len(names), "files": [f"{shown}/{escape_name(name)}" for name in names[:_MAX_NAMED]]}
        stage_card(
            BAD_FILE.name,
            key,
            f"{title} not {fate}: {_describe_error(error)}",
            **about,
            cause=error.message,
            place=str(error.place or ""),
            remedy=error.remedy or "",
            **fingerprint,
        )


def _file_stamp(path: Path) -> str:
    try:
        stat = path.lstat()
    except OSError:
        return ""
    return f"{stat.st_size}:{stat.st_mtime_ns}"


def _describe_error(error: ClearedError) -> str:
    """Where in the file, why, and what to do; the file itself is named already."""
    place = replace(error.place, file=None) if error.place else Place()
    where = f"{place}: " if str(place) else ""
    remedy = f". {error.remedy}" if error.remedy else ""
    return f"{where}{error.message.rstrip('.')}{remedy}".splitlines()[0][:500]


def list_card_files(card: Card) -> list[str]:
    """The paths of the files that a card is about; empty where it does not name them all."""
    files, count = card.details.get("files"), card.details.get("count")
    if isinstance(files, list):
        return [str(path) for path in files] if len(files) == count else []
    return [str(card.details["file"])] if card.details.get("file") else []
