"""Values that a process keeps of what it asked for last, within a bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class LastValues(Generic[T]):
    """The values of the places that were asked for last, as long as they weigh no more than ``most`` together; the last
    one stays in any case. Safe to share between threads."""

    def __init__(self, most: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._most, self._weigh = most, weigh
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, T] = OrderedDict()

    def find(self, place: Hashable) -> T | None:
        with self._lock:
            if place in self._values:
                self._values.move_to_end(place)
            return self._values.get(place)

    def keep(self, place: Hashable, value: T) -> None:
        with self._lock:
            self._values[place] = value
            self._values.move_to_end(place)
            weight = sum(map(self._weigh, self._values.values()))
            while weight > self._most and len(self._values) > 1:
                weight -= self._weigh(self._values.popitem(last=False)[1])
