"""``python -m tests.properties.gate_campaign --examples 500``: the gate's state machine for as long as you like."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parent))

from forked import Forks
from gate_world import GateMachine
from harness import environment, here
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.properties.gate_campaign", description=__doc__)
    parser.add_argument("--examples", type=int, default=500)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after the first round that ends later")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--no-shrink", action="store_true", help="show the first failure as it is")
    args = parser.parse_args()
    for name in list(os.environ):
        if name.startswith(("GIT_", "XDG_CONFIG", "CLEARED_")):
            del os.environ[name]
    folder = Path(tempfile.mkdtemp(prefix="gate-campaign-"))
    os.environ.update(environment(folder))
    os.environ["CLEARED_HOME"] = str(folder / "home")
    assert here("init", str(folder / "books"), "--name", "Acme").code == 0
    GateMachine.template = folder / "books"
    phases = [Phase.generate] if args.no_shrink else [Phase.generate, Phase.shrink]
    began, done, number = time.monotonic(), 0, args.seed
    with Forks() as GateMachine.forks:
        while done < args.examples and time.monotonic() - began < 60 * args.minutes:
            size = min(25, args.examples - done)
            print(f"seed {number}: {size} examples of up to {args.steps} steps", flush=True)
            machine = seed(number)(type(f"Seed{number}", (GateMachine,), {}))
            run_state_machine_as_test(  # type: ignore[no-untyped-call]
                machine,
                settings=settings(
                    max_examples=size,
                    stateful_step_count=args.steps,
                    deadline=None,
                    database=None,
                    phases=phases,
                    suppress_health_check=list(HealthCheck),
                    print_blob=False,
                ),
            )
            done, number = done + size, number + 1
    print(f"{done} examples in {time.monotonic() - began:.0f} s: nothing unapproved ran")


if __name__ == "__main__":
    main()
