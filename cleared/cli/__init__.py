"""The command line. Results on stdout, everything else on stderr; start-up imports nothing heavy."""

from __future__ import annotations

import sys
from typing import NoReturn

GC_THRESHOLD = (100_000, 20, 50)


def main() -> NoReturn:
    """Run the command line and exit with a documented code (``cleared.errors.ExitCode``)."""
    import gc

    # Looking for garbage while modules load, and in all that is left at the exit, is a fifth of a short command.
    gc.set_threshold(*GC_THRESHOLD)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    from cleared.cli.run import run

    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def _open_streams() -> None:
    """Where whoever started this has closed the standard streams: no file that is opened may get their numbers."""
    import os

    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
