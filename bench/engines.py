"""Engines: what much output of one costs."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

from bench.measure import Result, seconds
from bench.pace import judge_time, take_paced, time_act
from bench.workspaces import host, place, workspace
from cleared.gate.proposals.setting_changes import set_setting
from cleared.work.cycles.cycle_settings import read_cycle_settings
from cleared.work.cycles.engine_process import run_engine

BYTES = 200 << 20
_LINES = ("abc def", "{}", "token: abcdefgh", '{"type": "system", "text": "%s"}' % ("x" * 900))


def engine_output(quick: bool) -> Result:
    """An engine that prints 200 MB (quick: 4) in lines of one kind; of four kinds the slowest."""
    root = workspace()
    set_setting(host(root), "loop.ai.program_folders", f"[{sys.prefix}, {sys.base_prefix}]")
    folder = place()
    size = BYTES // 50 if quick else BYTES
    took = {line: take_paced(partial(_run_engine, root, folder, line, size), 1) for line in _LINES}
    slowest = max(took, key=lambda line: took[line].at_reference)
    least = min(each.measured for each in took.values())
    return judge_time(
        f"taking 200 MB of an engine's output, the slowest of {len(_LINES)} kinds of lines ({slowest[:9]}), "
        "processor time",
        took[slowest],
        10,
        baseline=f"{seconds(least)} the quickest",
        ratio=took[slowest].measured / least,
    )


def _run_engine(root: Path, folder: Path, line: str, size: int) -> float:
    """Processor seconds of taking it: the engine is a process of its own."""
    here, programs = folder / str(_LINES.index(line)), folder / f"program{_LINES.index(line)}"
    for each in (here / "clone", here / "tmp", programs):
        each.mkdir(parents=True)
    program = programs / "engine"
    program.write_text(
        f"#!{sys.executable}\nimport sys\npiece = {line!r} + chr(10)\npiece *= 65536 // len(piece)\n"
        f"for _ in range({size} // len(piece)):\n    sys.stdout.write(piece)\n"
    )
    program.chmod(0o755)
    opened = host(root)
    settings = read_cycle_settings(opened.config, {"engine": "claude", "claude_bin": str(program)}, {})
    return time_act(
        lambda: run_engine(
            opened,
            settings,
            program,
            prompt="",
            folder=here / "clone",
            scratch=here / "tmp",
            log=here / "log",
            timeout=600,
            environment=os.environ,
        )
    )
