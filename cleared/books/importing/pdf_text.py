"""The text of a PDF: read in a process of its own, confined as the sandbox's worker, with little time and memory.

The file is a stranger's, and PDF readers can be made to work for hours, or to do what the file says. The process has
its input and its output, and may read Python's own library; no other file, no network, no program. What cannot be read
has no text.
"""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from cleared.processes import landlock, seccomp
from cleared.processes.confinement import (
    ConfinementUnavailable,
    Restrictions,
    core_limit,
    drop_capabilities,
    landlock_abi,
    restrict_thread,
)
from cleared.processes.program import Program, end_at, run_program

PDF_SECONDS: Final = 20
_CPU_SECONDS: Final = 10
_MEMORY_BYTES: Final = 1 << 30
_MAX_BYTES: Final = 800_000
"""Of text, of all pages together."""
_MAX_PAGES: Final = 5
"""A receipt says what it costs on its first pages, and on its last."""
_MAX_CHARS: Final = 200_000
COMMAND: Final = (sys.executable, "-I", "-m", "cleared.books.importing.pdf_text")


def can_read_pdf() -> bool:
    """Whether the library for PDF files is there."""
    return find_spec("pypdf") is not None


def read_pdf(data: bytes, confine: Literal["best", "require", "off"] = "best") -> str:
    """The text of its first pages and of its last; empty where there is none, or it cannot be read. ``confine``:
    ``sandbox.confine``; with ``require`` nothing is read where the kernel lacks a wall."""
    if not can_read_pdf():
        return ""
    text, is_over = bytearray(), end_at(PDF_SECONDS)
    program = Program([*COMMAND, confine], Path("/"), {}, input=data)
    with suppress(OSError):
        run_program(program, text.extend, lambda: is_over() or ("enough" if len(text) > _MAX_BYTES else ""), bool)
    return bytes(text[:_MAX_BYTES]).decode("utf-8", "replace")


def print_text(confine: str) -> None:
    """In the process of its own: read the PDF on the standard input, and print its text."""
    with suppress(Exception):  # the library raises many things for damaged files
        from pypdf import PdfReader

        _limit_resources()
        if confine != "off":
            _confine_process(required=confine == "require")
        pages = PdfReader(BytesIO(sys.stdin.buffer.read())).pages
        wanted = sorted({*range(min(len(pages), _MAX_PAGES)), len(pages) - 1})
        for number in wanted:
            sys.stdout.buffer.write(pages[number].extract_text()[:_MAX_CHARS].encode("utf-8", "replace") + b"\n")
            sys.stdout.buffer.flush()


def _limit_resources() -> None:
    with suppress(ImportError, ValueError, OSError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (_MAX_BYTES, _MAX_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (core_limit(), core_limit()))


def _confine_process(*, required: bool) -> None:
    """Put the walls of a worker on this process. Raises ``ConfinementUnavailable`` where the kernel refuses one, or has
    none though all are required."""
    abi, program = landlock_abi(), seccomp.worker_program(platform.machine())
    if required and (not abi or program is None):
        raise ConfinementUnavailable("this machine has no Landlock, or no filter is written for it")
    if sys.platform == "linux":
        rules = tuple(landlock.open_folder_rule(folder) for folder in _find_library())
        drop_capabilities()
        restrict_thread(Restrictions(abi, (landlock.ruleset_attributes(abi), rules) if abi else None, program))


def _find_library() -> list[Path]:
    """Where the reader's modules lie, of which some are imported when they are needed."""
    import sysconfig

    places = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    spec = find_spec("pypdf")
    if spec is not None and spec.origin:
        places.append(Path(spec.origin).parent)
    return [place for place in places if place.exists()]


if __name__ == "__main__":
    print_text(sys.argv[1])
