"""Every way ``cleared`` says no.

    ClearedError            exit
    ├── CheckFailed           1   a script failed, or a check found violations
    │   └── PrimitiveError    1   a primitive refused a call (seen by the script, latched by the host)
    ├── UsageError            2   the command was called wrongly
    ├── PolicyError           3   what was asked is not allowed (now)
    ├── WorkspaceError        4   the workspace cannot be used as it is
    ├── BusyError             5   somebody else holds the writer lock
    └── Interrupted         130   Ctrl-C

Every error names its cause (``message``), its place and a remedy. It is printed as one paragraph; no
traceback reaches a user for anything they can cause.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from shlex import quote
from typing import Final

from msgspec import Struct

from cleared.base.bounds import clip_text
from cleared.base.short_text import list_first


class ExitCode(IntEnum):
    """The documented, stable exit codes of every command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    UNUSABLE = 4
    BUSY = 5
    ALL_DONE = 6
    BLOCKED = 7
    INTERRUPTED = 130


class Place(Struct, frozen=True):
    """Where something is wrong: a file (relative to the workspace), a 1-based line and column, a field."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where += f":{self.line}" if where else f"line {self.line}"
            if self.column is not None:
                where += f":{self.column}"
        if self.field:
            where += f" ({self.field})" if where else self.field
        return where


class ClearedError(Exception):
    """Base of all refusals. ``str()`` is the one-paragraph text a user reads; of 10 kB at the most."""

    exit_code: ExitCode = ExitCode.FAILED

    def __init__(self, message: str, *, place: Place | None = None, remedy: str | None = None) -> None:
        message = clip_text(message)  # it may quote what it is about
        super().__init__(message)
        self.message = message
        self.place = place
        self.remedy = clip_text(remedy) if remedy is not None else None

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place and str(self.place) else self.message
        if self.remedy:
            text = text.rstrip(".")
            text = f"{text}{'' if text.endswith(('?', '!')) else '.'} {self.remedy}"
        return text


class CheckFailed(ClearedError):
    """The script failed, or a check found something wrong."""

    exit_code = ExitCode.FAILED


class PrimitiveError(CheckFailed):
    """A primitive refused a call: a bad argument, an unknown account, a missing file.

    ``field`` of the place names the argument. The sandbox shows it to the script as a ``ValueError``; the
    host remembers it whatever the script does with it (failure latches). ``faults``: all of them, where it has several.
    """

    faults: tuple[PrimitiveError, ...] = ()


_PATTERN: Final = frozenset("*?[\\")
"""By which git takes a path for a pattern."""
MAX_FAULTS: Final = 20
"""Faults that one refusal names."""


def merge_faults(faults: Iterable[PrimitiveError]) -> PrimitiveError:
    """One refusal for all faults of a call; its place is that of the first."""
    every = (one for f in faults for one in (f.faults or (f,)))
    found = list({f.message: f for f in every}.values())
    if len(found) == 1:
        return found[0]
    # Of the first the place is told already.
    texts = [found[0].message] + [
        f"{f.place.field}: {f.message}" if f.place and f.place.field and f.place.field not in f.message else f.message
        for f in found[1:]
    ]
    remedies = dict.fromkeys(f.remedy for f in found[:MAX_FAULTS] if f.remedy)
    told = list_first([text.rstrip(".") for text in texts], MAX_FAULTS, "; ")
    error = PrimitiveError(told, place=found[0].place, remedy=" ".join(remedies) or None)
    error.faults = tuple(found)
    return error


class UsageError(ClearedError):
    """The command was called wrongly."""

    exit_code = ExitCode.USAGE


class PolicyError(ClearedError):
    """What was asked for is not allowed, or not allowed now."""

    exit_code = ExitCode.REFUSED


class WorkspaceError(ClearedError):
    """The workspace (its git repository, its files, its configuration) cannot be used as it is."""

    exit_code = ExitCode.UNUSABLE


class BusyError(ClearedError):
    """Another process holds the writer lock and did not let go in time."""

    exit_code = ExitCode.BUSY


class Interrupted(ClearedError):
    """The user pressed Ctrl-C; what is not committed is not done."""

    exit_code = ExitCode.INTERRUPTED


class RestoreRemedy(str):
    """How to bring a damaged file back: from the last commit, or, where somebody committed it so, from an older one,
    which only a check can name, as it judges them. ``also``: what else may be done."""

    file: str
    also: str

    def __new__(cls, file: str, also: str = "") -> RestoreRemedy:
        where = "; where it was committed so, cleared check names the version to go back to"
        remedy = super().__new__(cls, _describe_restoring(f"git checkout HEAD -- {quote_path(file)}{where}", also))
        remedy.file, remedy.also = file, also
        return remedy

    def name_version(self, commit: str) -> str:
        """The same, once it is known which commit has the version that is right; empty: none is known."""
        path = quote_path(self.file)
        way = f"git checkout {commit or 'HEAD'} -- {path}"
        if not commit:
            way += f". Where it was committed so: git log -- {path} shows which versions there are"
        elif commit != "HEAD":
            way += ", and commit that"
        return _describe_restoring(way, self.also)


def _describe_restoring(way: str, also: str) -> str:
    return f"Restore it: {way}{also and f'. {also}'}"


def quote_path(file: str) -> str:
    """A path as it is typed to git in a shell: that file alone, where git would read a pattern of many in its name."""
    return quote(f":(literal){file}" if file.startswith(":") or not _PATTERN.isdisjoint(file) else file)
