"""``python -m cleared.sandbox.bridge [best|require|off]``: the bridge process that ``sandbox.bridge.client`` starts."""

from __future__ import annotations

import sys
from typing import cast

from cleared.sandbox.bridge.server import serve_bridge
from cleared.sandbox.worker_pool import Confine


def main() -> None:
    """Serve on the standard streams; ends with code 0."""
    confine = sys.argv[1] if len(sys.argv) > 1 else "best"
    if confine not in ("best", "require", "off"):
        sys.exit("usage: python -m cleared.sandbox.bridge [best|require|off]")
    try:
        serve_bridge(sys.stdin.buffer, sys.stdout.buffer, confine=cast("Confine", confine))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
