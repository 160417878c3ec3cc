"""``python -m tests.crash --kills 1000``: the campaign of kills at random times, as long as you like.

With ``--loop`` it is the loop of jobs that is killed; with ``--beside-git`` a commit is stopped at every call to the
system while a person uses git.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parent))

import crash_beside
import crash_loop
from crash_books import make_template
from crash_random import part


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.crash", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--loop", action="store_true", help="kill the loop of jobs")
    parser.add_argument("--beside-git", action="store_true", help="use git beside a commit that is being made")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    args = parser.parse_args()
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_CONFIG")):
            del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="crash-"))
    os.environ["HOME"] = str(folder)
    began = time.monotonic()
    if args.beside_git:
        _beside(folder, args.processes, began)
        return
    share = -(-args.kills // args.processes)
    print(f"seed {args.seed}: {args.kills} kills in {args.processes} processes, in {folder}", flush=True)
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        if args.loop:
            _loops(folder, args, share, pool, began)
            return
        template = make_template(folder / "template")
        jobs = [(template, folder / f"part{i}", args.seed + i, share) for i in range(args.processes)]
        parts = list(pool.map(part, jobs))
    kills, whole, nothing, repaired = (
        sum(getattr(told, name) for told in parts) for name in ("kills", "whole", "nothing", "repaired")
    )
    print(
        f"{kills} kills in {time.monotonic() - began:.0f} s: {whole} commands were found done, {nothing} not begun; "
        f"{repaired} were repaired; no entry lost or twice"
    )


def _beside(folder: Path, processes: int, began: float) -> None:
    template = crash_beside.make_template(folder / "template")
    jobs = [
        (template, folder / f"{name.replace(' ', '')}{i}", name, 1 + i, processes)
        for name in crash_beside.DEEDS
        for i in range(processes)
    ]
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        parts = [(job[2], found) for job, found in zip(jobs, pool.map(crash_beside.part, jobs), strict=True)]
    for name in crash_beside.DEEDS:
        stops, sealed, gave_way = (
            sum(getattr(found, field) for of, found in parts if of == name) for field in ("stops", "sealed", "gave_way")
        )
        print(
            f"git {name}: at {stops} calls; {sealed} commits were made, {gave_way} gave way; nothing lost", flush=True
        )
    print(f"in {time.monotonic() - began:.0f} s")


def _loops(folder: Path, args: argparse.Namespace, share: int, pool: ProcessPoolExecutor, began: float) -> None:
    os.environ["CLEARED_HOME"] = str(folder / "cleared-home")
    parts = list(pool.map(crash_loop.part, [(folder / f"p{i}", args.seed + i, share) for i in range(args.processes)]))
    kills, loops, supervisors, ended, jobs = (
        sum(getattr(told, name) for told in parts) for name in ("kills", "loops", "supervisors", "ended", "jobs")
    )
    print(
        f"{kills} times in {time.monotonic() - began:.0f} s: {loops} loops and {supervisors} supervisors were killed, "
        f"{ended} loops told to end; {jobs} jobs, none lost or run twice"
    )


if __name__ == "__main__":
    main()
