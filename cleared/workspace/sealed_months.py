"""What was made of each month's files, sealed: of all but the newest it is made once.

Each month lies beside the ids that git has for what it follows from, so one that has changed since is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from cleared.workspace.sealed_files import SealedFiles

_KIND: Final = ".past"
T = TypeVar("T")


def make_months_once(
    sealed: SealedFiles, name: str, kind: type[T], versions: Mapping[str, Sequence[str]], make: Callable[[str], T]
) -> dict[str, T]:
    """What ``make`` makes of each month, the oldest first. ``versions``: month → all that this follows from; of a month
    that has none, it is not kept."""
    data = sealed.read(f"{name}{_KIND}") if len(versions) > 1 else None
    kept = msgspec.msgpack.decode(data, type=dict[str, tuple[list[str], kind]]) if data is not None else {}  # type: ignore[valid-type]
    found: dict[str, tuple[list[str], T]] = {}
    for month in sorted(versions):
        known = kept.get(month)
        is_known = known is not None and versions[month] and known[0] == versions[month]
        found[month] = known if known is not None and is_known else ([*versions[month]], make(month))
    past = {month: each for month, each in found.items() if each[0] and month != max(found)}
    if any(each is not kept.get(month) for month, each in past.items()):
        # Of an older commit, which a rehearsal reads, others are not among them.
        with suppress(ValueError):  # a text that was read need not be one that can be written
            sealed.write(f"{name}{_KIND}", msgspec.msgpack.encode(kept | past))
    return {month: each for month, (_, each) in found.items()}
