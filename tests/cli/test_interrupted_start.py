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

LOAD = """
import os, signal, sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "msgspec":
            os.kill(os.getpid(), signal.SIGINT)
        if name == "msgspec.structs":
            print("loaded")
        if name == "typer":
            print("begun")

sys.meta_path.insert(0, Interrupted())
from cleared.cli import main

main()
"""

MAKE = """
import sys

class Field:
    def __set_name__(self, *_):
        raise KeyboardInterrupt

class Interrupted:
    def find_spec(self, name, *_):
        if name == "typer":
            type("Made", (), {"field": Field()})

sys.meta_path.insert(0, Interrupted())
from cleared.cli import main

main()
"""

LEARN = """
import signal, sys, tempfile
from pathlib import Path
from cleared.workspace.settings.kept_tree import parse_kept

called = []

def look(frame, event, argument):
    if event == "call" and "msgspec" in frame.f_code.co_filename:
        called.append(frame.f_code.co_name)

with tempfile.TemporaryDirectory() as folder:
    sys.setprofile(look)
    parse_kept("business: {name: A}", Path(folder))
    sys.setprofile(None)
print(called, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_ctrl_c_while_modules_load_ends_with_its_code_and_no_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "cleared: interrupted\n")


def test_ctrl_c_while_msgspec_loads_comes_after_that() -> None:
    """Fault: in the middle of that it crashed the process in one of some hundred tries."""
    done = subprocess.run([sys.executable, "-c", LOAD], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "loaded\n", "cleared: interrupted\n")


def test_ctrl_c_while_a_class_is_made_is_ctrl_c() -> None:
    """Python makes another error of it."""
    done = subprocess.run([sys.executable, "-c", MAKE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "cleared: interrupted\n")


def test_no_type_is_learned_while_settings_are_read() -> None:
    """Fault: Ctrl-C in the middle of that ended one command in fifty with a segmentation fault."""
    done = subprocess.run([sys.executable, "-c", LEARN], capture_output=True, text=True, check=True)
    assert done.stdout == "[] False\n"
