"""Whoever reads slowly, over a pipe that does not block, gets all of it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest
from patience import PATIENCE

pytestmark = pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="pipes have one size here")


def start(*argv: str) -> tuple[subprocess.Popen[bytes], int]:
    """A command, and the end from which its output is read; the pipe takes 4 KB at once, and does not block."""
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(write, False)
    program = [sys.executable, "-m", "cleared", *argv]
    process = subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    return process, read


@pytest.mark.parametrize("argv", [["primitives", "--json"], ["primitives", "--stubs"]])
def test_all_that_is_printed_arrives(argv: list[str]) -> None:
    """Fault: what the pipe did not take at once was dropped, and the command ended as if all were well."""
    plain = subprocess.run([sys.executable, "-m", "cleared", *argv], capture_output=True, check=True).stdout
    process, read = start(*argv)
    with open(read, "rb") as output:
        time.sleep(0.5)  # the pipe is full by then
        assert output.read() == plain and len(plain) > 8_000
    assert process.communicate(timeout=PATIENCE)[1] == b"" and process.returncode == 0


@pytest.mark.parametrize("how", ["gone", "Ctrl-C"])
def test_it_does_not_wait_for_nobody(how: str) -> None:
    process, read = start("primitives", "--json")
    assert os.read(read, 1) == b"["
    if how == "gone":
        os.close(read)
        assert process.wait(PATIENCE) == 0
    else:
        process.send_signal(signal.SIGINT)
        os.set_blocking(read, True)
        with open(read, "rb") as output:
            output.read()
        assert process.wait(PATIENCE) == 130
    assert b"Traceback" not in process.communicate()[1]


def test_ctrl_c_ends_it_though_nobody_reads_the_rest() -> None:
    """Fault: it said that it was interrupted, and waited for room again; the next Ctrl-C was a traceback."""
    process, read = start("primitives", "--json")
    assert os.read(read, 1) == b"["
    time.sleep(0.5)  # the pipe is full by then
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(PATIENCE) == 130
    finally:
        process.kill()
        os.close(read)
    told = process.communicate()[1]
    assert told == b"cleared: interrupted\n"
