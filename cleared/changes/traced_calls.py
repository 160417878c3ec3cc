"""Which calls of a run its trace keeps whole, and the sums of the others: a script can make a million in its time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from typing import Final

from msgspec import Struct

from cleared.base.bounds import MAX_FIRST_CALLS, MAX_LAST_CALLS
from cleared.primitives.dispatch import Call

_MAX_PICKED: Final = 1_000
_FIRST_OF_NAME: Final = 10
_MAX_SITES: Final = 200


class CallSum(Struct):
    """Calls of one primitive at one place of a script, of which no more is kept."""

    first: Call
    """The first of them, without its arguments and result."""
    last_number: int
    calls: int = 0
    duration: float = 0.0
    """Seconds, of all of them."""


class TracedCalls:
    """The calls of one run, in order. Whole are the first, the last, those that failed, and the first few of each
    primitive; ``sums`` has the others, by place."""

    def __init__(self) -> None:
        self.total = 0
        self._first: list[Call] = []
        self._picked: list[Call] = []
        self._last: deque[Call] = deque()
        self._by_name: Counter[str] = Counter()
        self._sums: dict[tuple[str, str | None, int | None], CallSum] = {}

    def __iter__(self) -> Iterator[Call]:
        return chain(self._first, self._picked, self._last)

    @property
    def sums(self) -> list[CallSum]:
        """The calls that are not kept whole, in the order of the first of each place."""
        return list(self._sums.values())

    def add_call(self, call: Call) -> Call | None:
        """Add a call that begins. Returns one that is not kept any more, if there is one."""
        self.total += 1
        if self.total <= MAX_FIRST_CALLS:
            self._first.append(call)
            return None
        self._last.append(call)
        if len(self._last) <= MAX_LAST_CALLS:
            return None
        oldest = self._last.popleft()
        if self._is_picked(oldest, call.depth):
            self._picked.append(oldest)
            return None
        self._sum_up(oldest)
        return oldest

    def _is_picked(self, call: Call, depth: int) -> bool:
        """``depth``: of the newest call; one that is less deep may be running still."""
        if len(self._picked) >= _MAX_PICKED:
            return False
        self._by_name[call.name] += 1
        return call.error is not None or call.depth < depth or self._by_name[call.name] <= _FIRST_OF_NAME

    def _sum_up(self, call: Call) -> None:
        key = call.name, call.place.file, call.place.line
        found = self._sums.get(key)
        if found is None:
            if len(self._sums) >= _MAX_SITES:  # the last place stands for all further ones
                key = next(reversed(self._sums))
            bare = Call(call.number, call.name, (), {}, call.place, call.depth, call.started)
            found = self._sums.setdefault(key, CallSum(bare, call.number))
        found.last_number = call.number
        found.calls += 1
        found.duration += call.duration
