"""``python -m tests.fuzz --minutes 10``: lint, header, traps and the gate against texts nobody meant to write."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from cleared.changes import workspace_opening

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parent))

from fuzz_targets import Fuzzer
from harness import environment, here


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the first batch; a failure names the seed of its own")
    args = parser.parse_args()
    for name in [n for n in os.environ if n.startswith(("GIT_", "CLEARED_", "XDG_CONFIG"))]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        top = Path(name).resolve()
        os.environ.update(environment(top))
        done = here("init", str(top / "books"), "--name", "Acme")
        assert done.code == 0, done
        (top / "cwd").mkdir()
        (top / "tmp").mkdir()
        os.environ["TMPDIR"] = tempfile.tempdir = str(top / "tmp")
        checkout = Path.cwd()
        os.chdir(top / "cwd")
        try:
            began = time.monotonic()
            fuzzer = Fuzzer(
                workspace_opening.open_workspace(top / "books"), (top / "books", top / "cwd", top / "tmp"), top / "last"
            )
            examples = fuzzer.run(args.minutes * 60, args.seed)
            print(f"{examples} examples in {time.monotonic() - began:.0f} s: nothing found", flush=True)
        finally:
            os.chdir(checkout)


if __name__ == "__main__":
    main()
