"""The command line. Results on stdout, everything else on stderr; start-up imports nothing heavy."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit with a documented code (``cleared.errors.ExitCode``)."""
    from cleared.cli.run import run

    sys.exit(run(sys.argv[1:]))
