"""The failures of a script's run, with positions in the author's text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from cleared.base.errors import CheckFailed, ClearedError, Place

FailureKind = Literal["error", "timeout", "memory", "calls", "output", "crash", "result", "syntax", "recursion"]

FAULTS: Final = frozenset({"error", "result", "syntax", "recursion"})
"""The kinds for which the script's own text is the reason."""
_SHOWN_FRAMES = 12  # frames shown at each end of a deep traceback
_MAX_MESSAGE = 2000


class Position(Struct, frozen=True):
    """A place in the author's text: 1-based line and column, counted in characters."""

    file: str
    line: int
    column: int


class Frame(Struct, frozen=True):
    """One level of a traceback, outermost first. ``function`` is ``<module>`` outside of functions."""

    file: str
    line: int
    column: int
    function: str
    source_line: str


class ScriptError(CheckFailed):
    """The script failed.

    ``kind`` says how: ``error`` (it raised), ``syntax``, ``recursion``, ``result`` (a value that cannot be a result), a
    limit (``timeout``, ``memory``, ``calls``, ``output``), or ``crash`` (its worker died). ``type`` is the name of the
    exception's type in the script.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind,
        type: str,
        place: Place,
        remedy: str | None = None,
        frames: Sequence[Frame] = (),
    ) -> None:
        super().__init__(clip_message(message), place=place, remedy=remedy)
        self.kind: FailureKind = kind
        self.type = type
        self.frames = tuple(frames)

    @property
    def traceback(self) -> str:
        """As Python prints it, with the script's own file name, lines and columns."""
        has_type = self.message.startswith(self.type)
        return format_traceback(self.frames, self.message if has_type else f"{self.type}: {self.message}")


class HostCallFailed(CheckFailed):
    """A primitive raised an exception, which ended the run; the script cannot catch it.

    ``original`` is that exception, ``name`` the primitive, ``position`` the call, ``frames`` the script's stack.
    Message, remedy and exit code are those of the original.
    """

    def __init__(self, original: Exception, *, name: str, position: Position, frames: Sequence[Frame] = ()) -> None:
        inner = original if isinstance(original, ClearedError) else None
        super().__init__(
            clip_message(inner.message if inner else str(original) or type(original).__name__),
            place=Place(
                position.file,
                position.line,
                position.column,
                inner.place.field if inner and inner.place else None,
            ),
            remedy=inner.remedy if inner else None,
        )
        if inner:
            self.exit_code = inner.exit_code
        self.original = original
        self.name = name
        self.position = position
        self.frames = tuple(frames)

    @property
    def traceback(self) -> str:
        return format_traceback(self.frames, f"{type(self.original).__name__}: {self.message}")


def format_traceback(frames: Sequence[Frame], last: str) -> str:
    """The text of a traceback; the middle of a very deep one is left out."""
    lines = ["Traceback (most recent call last):"] if frames else []
    for index, frame in enumerate(frames):
        if len(frames) > 2 * _SHOWN_FRAMES and _SHOWN_FRAMES <= index < len(frames) - _SHOWN_FRAMES:
            if index == _SHOWN_FRAMES:
                lines.append(f"  [{len(frames) - 2 * _SHOWN_FRAMES} more levels]")
            continue
        lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
        if text := frame.source_line.strip():
            lines.append(f"    {text[:160]}")
            indent = len(frame.source_line) - len(frame.source_line.lstrip())
            if indent < frame.column <= indent + 160:
                lines.append(f"    {' ' * (frame.column - 1 - indent)}^")
    return "\n".join([*lines, last])


def clip_message(message: str) -> str:
    """A message cut to a bounded length: a script can raise one of megabytes."""
    return message if len(message) <= _MAX_MESSAGE else f"{message[:_MAX_MESSAGE]} …"
