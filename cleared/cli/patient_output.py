"""Output to whoever reads it slowly over a pipe that does not block: Python would drop what does not fit at once."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _PatientFile(io.FileIO):
    """Waits until there is room, until Ctrl-C. Whether the pipe blocks stays as it is: others may have it open, too."""

    patient: ClassVar = True

    def write(self, data: ReadableBuffer, /) -> int:
        while (written := super().write(data)) is None and _PatientFile.patient:
            try:
                select.select([], [self], [])
            except KeyboardInterrupt:  # nor is the end to wait, for what is left
                _PatientFile.patient = False
                raise
        return written


def wait_for_readers() -> None:
    """Let standard output and error wait for room where they are not made to."""
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if not os.get_blocking(number) and isinstance(stream, io.TextIOWrapper):
            stream.flush()
            patient = io.BufferedWriter(_PatientFile(number, "wb", closefd=False))
            made = io.TextIOWrapper(patient, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
            setattr(sys, name, made)
