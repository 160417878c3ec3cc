"""Coding engines for the tests of AI cycles: real programs that record what they got and do as they are told."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Done, Workspace
from patience import PATIENCE
from running import HOLD_MARK

GOOD = "# Auto Company Consensus\n\n## Company State\n\n{state}\n\n## Next Action\n\n{action}\n"

_PROGRAM = """#!{python}
import json, os, pathlib, signal, subprocess, sys, time
{mark}
prompt = sys.stdin.read()
home = pathlib.Path({home!r})
calls = home / "calls.jsonl"
plan = json.loads((home / "plan.json").read_text())
number = len(calls.read_text().splitlines()) if calls.exists() else 0
with calls.open("a") as file:
    file.write(json.dumps({{"argv": sys.argv[1:], "prompt": prompt, "cwd": os.getcwd(),
                            "environment": dict(os.environ)}}) + "\\n")
step = plan[min(number, len(plan) - 1)]
for path, text in step.get("write", {{}}).items():
    target = pathlib.Path(path)
    try:
        if text is None:
            target.unlink()
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    except OSError as error:
        print("refused", path, error.strerror, file=sys.stderr)
for path in step.get("read", []):
    try:
        print("READ", path, pathlib.Path(path).read_text()[:50], file=sys.stderr)
    except OSError as error:
        print("refused", path, error.strerror, file=sys.stderr)
if step.get("run"):
    subprocess.run([sys.executable, *step["run"]], check=False)
for _ in range(step.get("flood", 0)):
    sys.stderr.write(("x" * 1023 + "\\n") * 1024)
if step.get("grandchild"):
    lines = ("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)", {mark!r},
             "held = hold_mark(" + repr(str(home / "grandchild")) + "); time.sleep(600)")
    subprocess.Popen([sys.executable, "-c", "\\n".join(lines)],
                     start_new_session=step["grandchild"] == "detached")
    while not (home / "grandchild").exists():
        time.sleep(0.01)
if step.get("ignore_term"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stderr.write(step.get("stderr", ""))
sys.stdout.write(step.get("stdout", ""))
sys.stdout.flush()
if step.get("hang"):
    held = hold_mark(home / "hangs")
    while not (home / "go").exists():
        time.sleep(0.02)
sys.exit(step.get("exit", 0))
"""


class FakeEngine:
    """One program with a plan: a step a call, the last one again and again."""

    def __init__(self, folder: Path, name: str = "engine") -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.binary = folder / name
        self.binary.write_text(_PROGRAM.format(python=sys.executable, home=str(folder), mark=HOLD_MARK))
        self.binary.chmod(self.binary.stat().st_mode | stat.S_IXUSR)
        self.plan({})

    def plan(self, *steps: dict[str, Any]) -> None:
        (self.folder / "plan.json").write_text(json.dumps(steps))

    def let_go(self) -> None:
        """End what hangs, and all that would."""
        (self.folder / "go").touch()

    def argv(self, *more: str, name: str = "claude") -> list[str]:
        """``cycle start`` with this program: one cycle, without waits unless ``more`` says so."""
        words = ["cycle", "start", "--engine", name, "--allow-ai", f"--{name}-bin", str(self.binary), "--interval", "0"]
        return [*words, *(() if "--max-cycles" in more else ("--max-cycles", "1")), *more]

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def good(state: str = "Done.", action: str = "Go on.", **more: Any) -> dict[str, Any]:
    """A step of Claude Code that succeeds and leaves a consensus."""
    write = {"memories/consensus.md": GOOD.format(state=state, action=action), **more.pop("write", {})}
    return {"write": write, "stdout": result(), **more}


def result(text: str = "did it", *, error: bool = False, cost: float = 0.25, **more: Any) -> str:
    """The output of Claude Code: one JSON object."""
    return json.dumps({"type": "result", "is_error": error, "result": text, "total_cost_usd": cost, **more}) + "\n"


def start(ws: Workspace, engine: FakeEngine, *argv: str, name: str = "claude") -> Done:
    """``cleared cycle start`` in a process of its own; without waits unless ``argv`` says so."""
    return ws.process(*engine.argv(*argv, name=name))


def time_out(ws: Workspace, engine: FakeEngine) -> Done:
    """A cycle whose time is over while the engine hangs: where the machine is too slow for one second, it gets more."""
    (engine.folder / "hangs").unlink(missing_ok=True)
    for seconds in (1, 10, 100):
        done = start(ws, engine, "--timeout", str(seconds))
        if (engine.folder / "hangs").exists():
            return done
    raise AssertionError(done)


def begin_hanging(ws: Workspace, engine: FakeEngine, *more: str, name: str = "claude", **options: Any) -> Any:
    """A loop, in a process that is waited for elsewhere, whose engine hangs by now."""
    (engine.folder / "hangs").unlink(missing_ok=True)
    process = ws.start(
        "cycle", "start", "--engine", name, "--allow-ai", f"--{name}-bin", str(engine.binary), *more, **options
    )
    wait_until(lambda: (engine.folder / "hangs").exists(), process)
    return process


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until and (process is None or process.poll() is None)
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    """Whether a process has ended, waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True
