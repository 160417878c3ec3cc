"""A real repository with a base commit made by git itself, and what the tests ask of it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cleared.git import Author, CommitHeader, Repository, commit_changes

AUTHOR = Author("Ann Lee", "ann@example.com")
WHEN = datetime(2025, 2, 1, 6, tzinfo=UTC)
BASE = {
    "books/2025/01/journal.csv": b"id,amount\r\n2025-01-001,4.00\n",
    "books/2025/02/journal.csv": b"id,amount\n",
    "queue/only/card.yaml": b"kind: entry\n",
    "config.yaml": b"business:\n  name: Acme\n",
    "other.txt": b"mine\n",
}
CHANGES: dict[str, bytes | None] = {
    "books/2025/01/journal.csv": b"id,amount\r\n2025-01-001,4.00\n2025-01-002,5.00\n",
    "books/2025/03/journal.csv": b"id,amount\n",
    "queue/only/card.yaml": None,
}

_IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "User"), ("EMAIL", "user@example.com"))
}


def git(root: Path, *args: str, check: bool = True, plain: bool = True) -> str:
    """The user's git; ``plain`` without whatever the repository's settings would run."""
    safe = [
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=false",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "maintenance.auto=false",
    ]
    done = subprocess.run(
        ["git", *(safe if plain else []), *args],
        cwd=root,
        env=os.environ | _IDENTITY,
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    if check:
        assert done.returncode == 0, done.stderr.decode()
    return (done.stdout if check else done.stdout + done.stderr).decode("utf-8", "surrogateescape")


class Work:
    def __init__(self, root: Path, repo: Repository) -> None:
        self.root = root
        self.repo = repo
        self.base = repo.read_head()

    @classmethod
    def make(cls, root: Path, *init: str) -> Work:
        from harness import write_tree  # not where a child has this module alone

        write_tree(_make_base(init), root)
        return cls(root, Repository.open(root, for_writing=True))

    def git(self, *args: str, check: bool = True, plain: bool = True) -> str:
        return git(self.root, *args, check=check, plain=plain)

    def seal(self, changes: Mapping[str, bytes | None] = CHANGES, **options: Any) -> str:
        options.setdefault("base", self.repo.read_head())
        options.setdefault("trailers", [("Run", "r-1"), ("Event", "e-1")])
        message, trailers = options.pop("message", "import: 1 transaction"), options.pop("trailers")
        said = {name: options.pop(name) for name in ("merges", "command_key") if name in options}
        header = CommitHeader(message, trailers, AUTHOR, WHEN, **said)
        return commit_changes(self.repo, changes=changes, header=header, **options)

    def files(self) -> dict[str, bytes]:
        """All that is in the working tree, but git's and our own."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if not name.startswith((".git/", ".cleared/")) and (path.is_file() or path.is_symlink()):
                found[name] = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
        return found

    def status(self) -> str:
        return self.git("status", "--porcelain", "-uall")

    def left_over(self) -> list[str]:
        """Files that a seal makes only for itself."""
        own = [p for p in (self.root / ".git").iterdir() if p.name.startswith(("cleared", "index."))]
        own += self.root.rglob(".cleared-*.tmp")
        if (self.root / ".cleared").is_dir():
            own += (self.root / ".cleared").iterdir()
        own += (self.root / ".git").rglob("*.lock")
        return [str(path) for path in own]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.repo.close()


@cache
def _make_base(init: tuple[str, ...]) -> Any:
    """The repository that all begin with, as ``read_tree`` has it; made once, by git itself."""
    from harness import read_tree

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        git(root, "init", "-q", "-b", "main", *init)
        for path, content in BASE.items():
            put(root, path, content)
        put(root, ".gitignore", b"/.cleared/\n")
        put(root, "run.sh", b"#!/bin/sh\n")
        (root / "run.sh").chmod(0o755)
        (root / "link").symlink_to("config.yaml")
        root.chmod(0o755)
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "base")
        return read_tree(root)


def put(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def after(before: Mapping[str, bytes], changes: Mapping[str, bytes | None]) -> dict[str, bytes]:
    merged = {**before, **changes}
    return {path: content for path, content in sorted(merged.items()) if content is not None}
