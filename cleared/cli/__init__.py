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
    from cleared.cli.run import run

    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)
