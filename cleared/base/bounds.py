"""How much may cross the door between a script and the host, and how much of a run is kept. Each bound once.

What a workspace may set for itself is in ``config.yaml``: ``limits.max_text_bytes``, and everything of ``sandbox``.
"""

from __future__ import annotations

from typing import Final

MAX_ITEMS: Final = 200_000
"""Items of a list, and values of plain data, in an argument or an answer; as many as a bank file may have rows."""
MAX_DIGITS: Final = 40
"""Digits of a number, before and after its point."""
MAX_ANSWER_BYTES: Final = 128 << 20
"""Of what a primitive gives, written out; as much as a line of JSON-RPC may have."""
MAX_ERROR_BYTES: Final = 10_240
"""Of an error's message, and of its remedy; the rest is cut off."""

MAX_LOG_ROWS: Final = 100_000
"""Rows that a run writes to the agent log. Of more, the first and the last are kept whole, the rest is counted."""
MAX_LOG_BYTES: Final = 16 << 20
"""Of these rows, together."""
MAX_LOG_LAST: Final = 1_000
"""How many of them are the last."""
MAX_SHOWN_LINES: Final = 1_000
"""Lines of a run's log that are shown while it runs, and lines that it prints."""

MAX_FIRST_CALLS: Final = 2_000
"""Calls of a run, its first, that ``runs.db`` keeps whole; with those that failed, and the first of each primitive."""
MAX_LAST_CALLS: Final = 1_000
"""And its last. What lies between is summed up, by the line of the script."""
MAX_TRACE_BYTES: Final = 16 << 20
"""Of one run's arguments, results and errors in ``runs.db``, and of what is held of results until it ends."""
MAX_TRACES_BYTES: Final = 256 << 20
"""Of all of ``runs.db``; the oldest runs are taken out."""

LIMIT_TEXTS: Final = (
    ("a text that is passed", "`limits.max_text_bytes`"),
    ("items of a list that is passed or given", f"{MAX_ITEMS:,}, or `import.max_rows` where that is more"),
    ("values of plain data that is passed", "the same"),
    ("digits of a number, before and after its point", f"{MAX_DIGITS}"),
    ("an answer, written out", f"{MAX_ANSWER_BYTES >> 20} MB"),
    ("an error's message", f"{MAX_ERROR_BYTES >> 10} kB; the rest is cut off"),
    ("lines of a run's log that are shown", f"{MAX_SHOWN_LINES:,}, and `sandbox.max_output_kb`; the rest is not shown"),
    (
        "rows of a run in the agent log",
        f"{MAX_LOG_ROWS:,}, and {MAX_LOG_BYTES >> 20} MB; the first and the last "
        f"{MAX_LOG_LAST:,} stay, the rest is counted in one row",
    ),
    (
        "a run's trace",
        f"the first {MAX_FIRST_CALLS:,} calls, the last {MAX_LAST_CALLS:,} and those that failed, with "
        f"{MAX_TRACE_BYTES >> 20} MB of arguments and results; the others are summed up by line",
    ),
    ("all traces", f"{MAX_TRACES_BYTES >> 20} MB; the oldest go"),
)
"""All of it in words, for the reference page."""


def clip_text(text: str, most: int = MAX_ERROR_BYTES) -> str:
    """The beginning of a text, where it has more than so many bytes."""
    if len(text) * 4 <= most:
        return text
    data = text[: most + 1].encode("utf-8", "replace")
    return text if len(data) <= most else data[:most].decode("utf-8", "ignore") + " …"
