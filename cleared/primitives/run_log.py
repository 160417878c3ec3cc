"""The rows that a run writes to the agent log: the first and the last of them whole, what is between counted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from cleared.base.bounds import MAX_LOG_BYTES, MAX_LOG_LAST, MAX_LOG_ROWS

_LAST_BYTES: Final = 1 << 20


@dataclass(slots=True)
class LogRow:
    """What was done, and to which entry."""

    action: str
    details: str
    entry_id: str = ""

    @property
    def size(self) -> int:
        return len(self.action) + len(self.details) + len(self.entry_id)


class RunLog:
    """A run may make as many rows as it has time for; so many of them are kept."""

    def __init__(self, most: int = MAX_LOG_ROWS, last: int = MAX_LOG_LAST, size: int = MAX_LOG_BYTES) -> None:
        self._most, self._size = most - last, size - _LAST_BYTES
        self._first: list[LogRow] = []
        self._last: deque[LogRow] = deque()
        self._most_last, self._size_last = last, _LAST_BYTES
        self._left_out: Counter[str] = Counter()

    def add_row(self, row: LogRow) -> None:
        if not self._last and len(self._first) < self._most and self._size >= row.size:
            self._first.append(row)
            self._size -= row.size
            return
        self._last.append(row)
        self._size_last -= row.size
        while len(self._last) > self._most_last or (self._size_last < 0 and len(self._last) > 1):
            oldest = self._last.popleft()
            self._size_last += oldest.size
            self._left_out[oldest.action] += 1

    def __iter__(self) -> Iterator[LogRow]:
        yield from self._first
        if self._left_out:
            summary = ", ".join(f"{count} {action}" for action, count in self._left_out.most_common())
            yield LogRow("log", f"… {self._left_out.total()} more rows are not written out: {summary}")
        yield from self._last

    def copy_rows(self) -> RunLog:
        """Another log with these rows; more may be added to it."""
        made = RunLog()
        made._most, made._size, made._most_last, made._size_last = (
            self._most,
            self._size,
            self._most_last,
            self._size_last,
        )
        made._first, made._last, made._left_out = [*self._first], deque(self._last), Counter(self._left_out)
        return made
