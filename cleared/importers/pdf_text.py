"""The text of a PDF from standard input, on standard output: a process of its own, with little time and memory.

The file is a stranger's, and PDF readers can be made to work for hours. What cannot be read has no text.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from io import BytesIO
from typing import Final

CPU_SECONDS: Final = 10
MEMORY_BYTES: Final = 1 << 30
MAX_PAGES: Final = 5
"""A receipt says what it costs on its first pages, and on its last."""
MAX_CHARS: Final = 200_000


def print_text() -> None:
    """Read the PDF, and print its text."""
    _limit_resources()
    with suppress(Exception):  # the library raises many things for damaged files
        from pypdf import PdfReader

        pages = PdfReader(BytesIO(sys.stdin.buffer.read())).pages
        wanted = sorted({*range(min(len(pages), MAX_PAGES)), len(pages) - 1})
        for number in wanted:
            sys.stdout.buffer.write(pages[number].extract_text()[:MAX_CHARS].encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()


def _limit_resources() -> None:
    with suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


if __name__ == "__main__":
    print_text()
