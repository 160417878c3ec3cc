"""Tasks: definitions as dicts, and a workspace that has a ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import Done, Workspace

from cleared.base.clock import SystemClock
from cleared.jobs.tasks.task_ledger import TaskLedger
from cleared.jobs.tasks.task_states import StatusLine

LEDGER = "docs/current/task-status.jsonl"


def task(number: int, **changes: Any) -> dict[str, Any]:
    """A definition that every check passes; ``files``, ``docs`` and ``skills`` go into its context."""
    name = f"T-{number:03d}"
    context = {
        key: changes.pop(key, default)
        for key, default in (("files", [f"docs/{name}.txt"]), ("docs", []), ("skills", []))
    }
    return {
        "id": name,
        "title": f"Task {number}",
        "description": "What it is for.",
        "requires": [],
        "context": context,
        "acceptance_criteria": ["It is there."],
        "verification_command": f"test -s docs/{name}.txt",
        **changes,
    }


class Tasks:
    """The commands of a workspace's tasks."""

    def __init__(self, ws: Workspace) -> None:
        self.ws = ws
        ws.ok("task", "init")

    def __call__(self, *argv: str) -> Done:
        return self.ws("task", *argv)

    def ok(self, *argv: str) -> Done:
        return self.ws.ok("task", *argv)

    def file(self, value: object) -> str:
        path = self.ws.root.parent / "plan.json"
        path.write_text(json.dumps(value))
        return str(path)

    def plan(self, *tasks: dict[str, Any]) -> Done:
        return self("plan", self.file(list(tasks)))

    def planned(self, *tasks: dict[str, Any]) -> None:
        done = self.plan(*tasks)
        assert done.code == 0, done

    def finish(self, name: str, text: str = "done\n") -> None:
        """Claim the task, write its file, have it verified and recorded."""
        self.ok("claim", name)
        self.ws.put(f"docs/{name}.txt", text)
        self.ok("done", name)

    def complete(self, *names: str) -> None:
        """Have the ledger say so, for what comes after."""
        ledger = TaskLedger(self.ws.root, clock=SystemClock())
        with ledger.open_for_appending("test") as writer:
            at = "2026-02-07T15:00:00Z"
            writer.append(*(StatusLine(n, s, at, "…") for n in names for s in ("in-progress", "completed")))

    @property
    def ledger(self) -> Path:
        return self.ws.root / LEDGER

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ledger.read_text().splitlines()]

    def states(self) -> dict[str, str]:
        return {row["id"]: row["status"] for row in self.ws.json("task", "list")}
