"""Ctrl-C while the program is still loading."""

from __future__ import annotations

import subprocess
import sys

START = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "cleared.cli.command_runner":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from cleared.cli import main

main()
"""


def test_ctrl_c_while_modules_load_ends_with_its_code_and_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "cleared: interrupted\n")
