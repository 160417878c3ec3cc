"""What takes back an act that ``cleared queue undo`` does not: known by the first line of the act's commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from cleared.base.file_source import FileSource
from cleared.workspace.location import Layout

IsReversed: TypeAlias = Callable[[Layout, FileSource, FileSource], bool]
"""Given the files as the act left them, and as they are now. Raises ``WorkspaceError`` where they cannot be read."""


class WayBack(NamedTuple):
    """``name``: of what was acted on, among acts of one ``kind``. ``remedy``: the command; empty where this act itself
    took back another one of that kind and name, or is none that a person made."""

    kind: str
    name: str
    remedy: str
    is_about_records: bool = False
    """Whether decisions before it rest on the records as it left them."""
    is_reversed: IsReversed | None = None
    """Whether it is taken back already, though no act after it says so; None: then it is not."""


class Act(NamedTuple):
    """One sort of act. The groups of ``pattern``, which begins the first line of its commit, are its name."""

    pattern: str
    kind: str
    remedy: str
    is_about_records: bool = False
    is_reversed: IsReversed | None = None


def match_act(acts: Iterable[Act], subject: str) -> WayBack | None:
    """The way back of the first act that a commit's first line fits; None where it fits none."""
    for act in acts:
        if match := re.match(act.pattern, subject):
            return WayBack(act.kind, " ".join(match.groups()), act.remedy, act.is_about_records, act.is_reversed)
    return None
