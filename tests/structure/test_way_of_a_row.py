"""How far one bank row goes: the files and functions of ``cleared`` that ``agent run ingest`` passes for it. What is
called while a module is imported does not count, nor do comprehensions, which are part of their function.

The figures are printed (``pytest -s``). They may fall; what makes them rise is to be looked at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from harness import Workspace

ROW = 'DEBIT,01/31/2025,"GITHUB *PRO SUBSCRIPTION",-4.00,ACH_DEBIT,4771.35,,\n'
HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
MOST = {"files": 169, "functions": 1_120, "changes of file": 2_289}
"""Some 30 functions write git's index and move the branch, where three processes of git did it once. A commit's files
stand in another module than its objects: 150 changes of file more, and no two modules that import each other. What a
primitive takes is read when it is called: nine functions that ran while modules were imported. The settings' tree is
kept in a file of its own, with the digest of its parser. Imports lie in a file a month, and have a module. Cards of
entries whose numbers are given again are void. What is needed of the lines of past months is kept, and has a module.
A commit is noted as seen when it is made, and its rows are not compared by the next command: the first run notes two.
Where a process has no need of it, no format of bank files is imported, no zone, and no digest made of the program: that
is found by a function each."""
MEASURE = """
import inspect, json, sys
from pathlib import Path
import cleared
from cleared.__main__ import main
from cleared.base import safe_files

safe_files._SLOW_SECONDS = float("inf")  # a slow disk has one function more, so the figure would be the machine's
root = str(Path(cleared.__file__).parent)
functions, changes, last = set(), 0, ""

def is_importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(root):
            return True
        frame = frame.f_back
    return False

def look(frame, event, argument):
    global changes, last
    code = frame.f_code
    # From Python 3.12 on most comprehensions have no frame of their own.
    is_function = code.co_flags & inspect.CO_OPTIMIZED and (code.co_name[0] != "<" or code.co_name == "<lambda>")
    if event != "call" or not code.co_filename.startswith(root) or not is_function or is_importing(frame):
        return
    functions.add((code.co_filename, code.co_firstlineno, code.co_name))
    if code.co_filename != last:
        changes, last = changes + 1, code.co_filename

sys.argv = ["cleared", "agent", "run", "ingest"]
sys.setprofile(look)
try:
    main()
finally:
    sys.setprofile(None)
    figures = {"files": len({f for f, *_ in functions}), "functions": len(functions), "changes of file": changes}
    print(json.dumps(figures), file=sys.stderr)
"""


def test_the_way_of_a_row_grows_no_longer(ws: Workspace) -> None:
    ws.drop("january.csv", HEADER + ROW)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], cwd=ws.root, env=os.environ, capture_output=True, text=True, check=True
    )
    figures = json.loads(done.stderr.splitlines()[-1])
    print(figures)
    assert all(figures[name] <= most for name, most in MOST.items()), figures
