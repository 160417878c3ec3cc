"""Results kept for the newest versions of few files, for a process that reads a file again after each commit."""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Concatenate, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_CHANGING: Final = 2
"""Files that one command changes while it reads them again: those of a month, and of the one before."""


def keep_newest(
    files: int, versions: int
) -> Callable[
    [Callable[Concatenate[bytes | None, tuple[bytes | None, T] | None, P], T]],
    Callable[Concatenate[bytes | None, P], T],
]:
    """Remember what a function makes of a file's content, its first argument. The others but the second name the file:
    of so many files that were asked for last, the newest version is kept, and of the last two so many versions. The
    second is the newest version of the file that is kept, with what was made of it: most of that is right for the next
    one, too. A result is shared: do not alter it."""

    def decorate(
        function: Callable[Concatenate[bytes | None, tuple[bytes | None, T] | None, P], T],
    ) -> Callable[Concatenate[bytes | None, P], T]:
        known: OrderedDict[Hashable, list[tuple[bytes | None, T]]] = OrderedDict()
        lock = threading.Lock()

        @functools.wraps(function)
        def remembered(data: bytes | None, /, *args: P.args, **kwargs: P.kwargs) -> T:
            name = (args, *kwargs.items())
            with lock:
                kept = known.get(name, [])
                for version in kept:
                    if version[0] == data:
                        known.move_to_end(name)
                        return version[1]
            made = function(data, kept[-1] if kept else None, *args, **kwargs)
            with lock:
                known[name] = [*known.get(name, ()), (data, made)][-versions:]
                known.move_to_end(name)
                if len(known) > files:
                    known.popitem(last=False)
                for other in list(known)[:-_CHANGING]:
                    del known[other][:-1]
            return made

        return remembered

    return decorate
