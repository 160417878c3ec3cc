"""A signal that comes while a process forks is not lost: what its handler raises in a hook, Python ignores."""

from __future__ import annotations

import subprocess
import sys

import pytest
from patience import PATIENCE

FORKING = """
import os, signal, sys
from pathlib import Path

from cleared.base.programs import fork_process
from cleared.processes.fenced_start import start_fenced
from cleared.processes.fences import make_fence

number = int(sys.argv[1])
signal.signal(number, signal.default_int_handler)
parent = os.getpid()
os.register_at_fork(before=lambda: os.kill(parent, number), after_in_parent=lambda: None)
try:
    if sys.argv[2] == "fork":
        if fork_process() == 0:
            os._exit(0)
    else:
        fence = make_fence([], [], [], outside=Path("/nowhere"))
        if fence is None:
            sys.exit(8)
        start_fenced(fence, [sys.executable, "-c", ""], start_new_session=True).wait()
except KeyboardInterrupt:
    sys.exit(7)
"""


@pytest.mark.parametrize("way", ["fork", "fenced"])
@pytest.mark.parametrize("number", [2, 15], ids=["ctrl-c", "sigterm"])
def test_a_signal_that_comes_while_a_process_forks_is_not_lost(number: int, way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING, str(number), way], capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode == 8:
        pytest.skip("this kernel confines no programs")
    assert done.returncode == 7, (done.returncode, done.stderr)
