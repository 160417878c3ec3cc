"""Which tasks a person of this machine has taken: a signature over each definition.

A task's verification command is run by the host, and it comes from a file that everybody with the repository can write.
So it is run only where a person said ``cleared task plan`` or ``add`` to this very definition on this machine. The key
lies outside of every repository, where no job and no worker reads it; its public half is enough to look.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from cleared.base.errors import Place, PolicyError
from cleared.base.safe_files import write_atomic
from cleared.jobs.tasks.task_definition import Task
from cleared.trust.keys import Key, task_key, task_public_key, verify_signature
from cleared.workspace.lock import ensure_state_dir

_FOLDER: Final = "task-seals"


class TaskSeals:
    """The seals of one workspace, in ``.cleared/task-seals``."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def seal(self, task: Task, by: str, at: str) -> None:
        """Sign a task's definition. Raises ``WorkspaceError`` where the key cannot be made or the disk refuses."""
        key = task_key(self._root, create=True)
        assert key is not None
        ensure_state_dir(self._root / ".cleared")
        record = {"id": task.id, "digest": task.digest, "by": by, "at": at, "signature": key.sign(self._message(task))}
        write_atomic(self._path(task), (json.dumps(record) + "\n").encode("ascii"), mode=0o600)

    def describe_fault(self, task: Task) -> str | None:
        """Why the task may not be worked on here; None where it is sealed as it is."""
        try:
            record = json.loads(self._path(task).read_bytes())
            signature, digest = str(record["signature"]), str(record["digest"])
        except (OSError, ValueError, KeyError, TypeError):
            return "nobody has taken it on this machine"
        if digest != task.digest:
            return "it was altered since it was taken"
        if not verify_signature(task_public_key(self._root), signature, self._message(task)):
            return "its seal is not this machine's"
        return None

    def read(self, task: Task) -> bytes | None:
        """The seal that lies there under this id, whether it counts or not."""
        path = self._path(task)
        return path.read_bytes() if path.is_file() else None

    def put_back(self, task: Task, seal: bytes | None) -> None:
        """Have it as it was read; with None there is none."""
        if seal is None:
            self._path(task).unlink(missing_ok=True)
        else:
            write_atomic(self._path(task), seal, mode=0o600)

    def require_sealed(self, task: Task) -> None:
        """Raises ``PolicyError`` where the task may not be worked on here."""
        fault = self.describe_fault(task)
        if fault:
            raise PolicyError(
                f"{task.id} is refused: {fault}, and its verification command would be run by this machine",
                place=Place(task.path, field="verification_command"),
                remedy=f"Read it (cleared task show {task.id}); if you want it so: cleared task plan.",
            )

    def _path(self, task: Task) -> Path:
        return self._root / ".cleared" / _FOLDER / f"{task.id}.json"

    def _message(self, task: Task) -> bytes:
        return _message_of(self._root, task.id, task.digest)


def move_seals(folder: Path, old: tuple[Path, Key], new: tuple[Path, Key]) -> None:
    """Seal again, for another place and key, what was sealed for the old one. ``folder``: where the workspace lies now.

    Raises ``WorkspaceError`` where the disk refuses.
    """
    for path in sorted((folder / ".cleared" / _FOLDER).glob("*.json")):
        try:
            record = json.loads(path.read_bytes())
            name, digest, signature = (str(record[key]) for key in ("id", "digest", "signature"))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # it counts for nothing anyway
        if verify_signature(old[1].public, signature, _message_of(old[0], name, digest)):
            record["signature"] = new[1].sign(_message_of(new[0], name, digest))
            write_atomic(path, (json.dumps(record) + "\n").encode("ascii"), mode=0o600)


def _message_of(root: Path, name: str, digest: str) -> bytes:
    return json.dumps(["task", str(root), name, digest]).encode("ascii")
