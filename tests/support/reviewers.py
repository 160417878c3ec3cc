"""Several people at one workspace, each with a key of their own, and the rules of who may decide."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness import Done, Workspace, take_ok, take_shown, trust_books

from cleared.changes.attestation import workspace_id
from cleared.changes.workspace_opening import open_workspace
from cleared.git import Snapshot
from cleared.trust.keys import Key, run_key
from cleared.trust.trust_store import load_trust


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
        self._trust_machines(names)

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

    def _trust_machines(self, names: Sequence[str]) -> None:
        """Each has said ``cleared trust`` about the machines of the others, and of who has made the books."""

        def everywhere(act: Callable[[], object]) -> list[object]:
            done = [act()]
            for name in names:
                with self.at_the_keyboard(name):
                    done.append(act())
            return done

        host = open_workspace(self.ws.root)
        with host.open_for_reading() as repo:
            workspace = workspace_id(host, Snapshot(repo, repo.read_head()))
        made = everywhere(lambda: run_key(self.ws.root, create=True))
        keys = {key.public: "a colleague's machine" for key in made if isinstance(key, Key)}

        def trust_all() -> None:
            trust = load_trust(workspace)
            trust.runs.update(keys)
            trust.save()

        everywhere(trust_all)

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
