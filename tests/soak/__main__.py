"""``python -m tests.soak --files 2000``: files dropped while the service is killed about once in twenty of them;
``--looks 300``: the books checked so many times beside imports."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parent))

from harness import environment
from soak_campaign import campaign
from soak_looks import look_beside_imports
from soak_service import workspace


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--files", type=int, default=2000)
    parser.add_argument("--looks", type=int, default=0, help="check the books so many times beside imports instead")
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between two files, at most")
    parser.add_argument("--lose", type=float, default=0.0, help="how often .cleared/ is deleted with a kill, 0 to 1")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    args = parser.parse_args()
    for name in [n for n in os.environ if n.startswith(("GIT_", "CLEARED_", "XDG_CONFIG"))]:
        del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="soak-")).resolve()
    os.environ.update(environment(folder))
    os.environ["CLEARED_HOME"] = str(folder / "home")
    if args.looks:
        print(f"in {folder}", flush=True)
        imports = look_beside_imports(workspace(folder / "books"), args.looks)
        print(f"{args.looks} looks beside {imports} imports: in order")
        return
    print(f"seed {args.seed}: {args.files} files, in {folder}", flush=True)
    told = campaign(folder, args.files, args.seed, pause=args.pause, lose=args.lose)
    print(
        f"{told.files} files, {told.entries} entries, {told.runs} committed runs ({told.failed_runs} of them failed) "
        f"in {told.seconds:.0f} s; {told.kills} kills ({told.in_runs} in a run, {told.in_starts} in a start), "
        f"{told.terms} SIGTERM, .cleared/ lost {told.lost} times, {told.torn} files written too slowly: the same books "
        "as undisturbed, nothing lost, nothing twice",
        flush=True,
    )


if __name__ == "__main__":
    main()
