"""What the machine refuses (files, memory, databases) as one paragraph with its cause and remedy.

Anything else that is not a ``ClearedError`` is a mistake of this program, and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

from cleared.base.errors import CheckFailed, ClearedError, Interrupted, WorkspaceError

DEBUG: Final = "CLEARED_DEBUG"
"""Where it is set, the traceback is shown as well."""
_NO_MAPPING: Final = (
    "failed to map segment",
    "cannot allocate memory",
    "can't start new thread",
    "can't spawn worker thread",
    "null without setting an exception",
    "error return without exception set",
)
_REMEDIES: Final = {
    errno.ENOSPC: "Make room on it, then run the command again.",
    errno.EDQUOT: "Make room, or ask for a larger quota, then run the command again.",
    errno.EROFS: "Make it writable (mount), or work on a copy that is.",
    errno.EACCES: "See who may read and write it: ls -ld.",
    errno.EPERM: "See who may read and write it: ls -ld.",
    errno.ENAMETOOLONG: "Use a shorter name, or a workspace with a shorter path.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n).",
    errno.ENFILE: "Close other programs: the system has no more open files to give.",
    errno.EIO: "See whether the disk is sound; then cleared doctor.",
}


def as_refusal(error: BaseException) -> ClearedError | None:
    """The refusal that an exception is; None for a mistake of this program."""
    if isinstance(error, ClearedError):
        return error
    if isinstance(error.__cause__, KeyboardInterrupt):  # Python 3.11 says so of one that comes while a class is made
        return Interrupted("interrupted")
    if _lacks_memory(error):
        return WorkspaceError(
            "there is not enough memory for this",
            remedy="Close other programs, or raise the limit that holds here (ulimit -v, or the container's).",
        )
    if type(error).__name__ == "PanicException" and "too many open files" in str(error).lower():
        return WorkspaceError("too many files are open", remedy=_REMEDIES[errno.EMFILE])
    if isinstance(error, RecursionError):
        return CheckFailed("the input is nested too deeply", remedy="Give it in a simpler form.")
    if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
        from cleared.base.safe_files import describe_os_error

        where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        remedy = _REMEDIES.get(error.errno or 0, "Put that right, then look what is there: cleared doctor.")
        return WorkspaceError(f"{where}{describe_os_error(error)}", remedy=remedy)
    database = sys.modules.get("sqlite3")  # where it was never loaded, it cannot be the cause
    if database is not None and isinstance(error, database.Error):
        return WorkspaceError(
            f"a database in .cleared/ cannot be used: {error}",
            remedy="See which: cleared doctor. What is in them can be made again: cleared doctor --rebuild.",
        )
    return None


def _lacks_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    # The sandbox's client panics where it gets no thread; that is an exception of its own, below no other.
    named = isinstance(error, ImportError | RuntimeError | SystemError) or type(error).__name__ == "PanicException"
    message = str(error).lower() if named else ""
    return any(text in message for text in _NO_MAPPING)
