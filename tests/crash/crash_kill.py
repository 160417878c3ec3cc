"""Starting the process that is killed, and killing it."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from preloaded import Preloaded


class Child:
    """One process, warm: what it imports it has imported."""

    def __init__(self) -> None:
        self.process = Preloaded(
            [], function="crash_child:main", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self, root: Path, command: list[str], stop: str = "", nth: int = 1, *, hold: bool = False) -> None:
        """Returns when the command is about to begin."""
        assert self.process.stdin is not None and self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"
        order = {"root": str(root), "command": command, "stop": stop, "nth": nth, "hold": hold}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "go\n"

    def held(self) -> None:
        """Waits until it has stopped itself."""
        self.process.wait_stopped()

    def wait(self) -> str:
        """What it said until its end."""
        assert self.process.stdout is not None
        text = self.process.stdout.read()
        self.process.wait()
        return text

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def stopped_at(root: Path, command: list[str], stop: str, nth: int = 1) -> bool:
    """Does the command and has it kill itself at a step; whether it came there."""
    with Child() as child:
        child.start(root, command, stop, nth)
        said = child.wait()
        killed = child.process.returncode == -signal.SIGKILL
        assert killed or said.endswith("done\n"), said
        return killed


class Killer:
    """Kills commands at random times, spread over as long as they take; the next process is started ahead."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.next = Child()
        self.longest: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.next.kill()

    def measure(self, root: Path, command: list[str]) -> None:
        """How long the command takes if nobody kills it."""
        with self._take() as child:
            child.start(root, command)
            began = time.monotonic()
            assert child.wait().endswith("done\n")
            self.longest[command[0]] = time.monotonic() - began

    def kill(self, root: Path, command: list[str], longest: float | None = None) -> bool:
        """Whether it was killed before its end. ``longest`` (default: as measured) is how late it may be killed.

        Every other kill is for the second half, where the commit is made.
        """
        latest = self.longest[command[0]] if longest is None else longest
        with self._take() as child:
            child.start(root, command)
            time.sleep(self.random.uniform(self.random.choice((0, latest / 2)), latest))
            child.kill()
            return child.process.returncode == -signal.SIGKILL

    def finish(self, root: Path, command: list[str]) -> None:
        with self._take() as child:
            child.start(root, command)
            assert child.wait().endswith("done\n")

    def _take(self) -> Child:
        child, self.next = self.next, Child()
        return child
