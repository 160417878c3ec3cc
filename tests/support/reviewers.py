"""Several people at one workspace, each with a key of their own, and the rules of who may decide."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import Done, Workspace, take_ok, take_shown, trust_books


class People:
    """``ana``, ``ben`` … as whom commands are run. The first of those who are named approves the rules, and who
    has made the books trusts them."""

    def __init__(self, ws: Workspace, folder: Path, names: Sequence[str] = ("ana", "ben"), two: str = "") -> None:
        self.ws, self.folder = ws, folder
        rules = "".join(f"  - {{name: {name}, key: {self.key(name)!r}}}\n" for name in names)
        config = f"{ws.read('config.yaml').rstrip()}\nreviewers:\n{rules}"
        ws.put("config.yaml", config)
        self.ok(names[0], "config", "approve")
        if two:
            self.ok(names[0], "config", "set", "thresholds.two_person", two)
        take_ok(ws, "trust", "--yes")

    def home(self, name: str) -> Path:
        return self.folder / f"home-of-{name}"

    @contextmanager
    def at_the_keyboard(self, name: str) -> Iterator[None]:
        before = os.environ.get("CLEARED_HOME")
        home = self.home(name)
        os.environ["CLEARED_HOME"] = str(home)
        try:
            if not home.exists():
                home.mkdir()
                trust_books(self.ws.root)
            yield
        finally:
            if before is None:
                del os.environ["CLEARED_HOME"]
            else:
                os.environ["CLEARED_HOME"] = before

    def key(self, name: str) -> str:
        with self.at_the_keyboard(name):
            return str(self.ws.json("queue", "reviewers")["key"])

    def __call__(self, name: str, *argv: str) -> Done:
        with self.at_the_keyboard(name):
            return take_shown(self.ws, *argv)

    def ok(self, name: str, *argv: str) -> Done:
        done = self(name, *argv)
        assert done.code == 0, (name, argv, done)
        return done

    def json(self, name: str, *argv: str) -> Any:
        return self.ok(name, *argv, "--json").json

    def both(self, *argv: str) -> None:
        """The same by the one, then by the other."""
        for name in ("ana", "ben"):
            self(name, *argv)
