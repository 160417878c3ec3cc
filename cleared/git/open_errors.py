"""Why git does not open a directory as a repository, as an error that a person can act on."""

from __future__ import annotations

from pathlib import Path

from cleared.base.errors import WorkspaceError
from cleared.git.git_process import first_line


def open_error(root: Path, answers: list[str], err: bytes) -> WorkspaceError:
    """The error for ``root``, from what git printed when it was asked which repository ``root`` belongs to."""
    text = err.decode("utf-8", "replace")
    if not root.is_dir():
        return WorkspaceError(f"{root} is not a directory")
    if "dubious ownership" in text:
        command = next((line.strip() for line in text.splitlines() if "safe.directory" in line), "")
        return WorkspaceError(
            f"git does not trust {root}: it belongs to another user",
            remedy=f"If you do: {command}" if command else "See git's setting safe.directory.",
        )
    if len(answers) >= 2 and answers[1] == "true":
        return WorkspaceError(f"{root} is a bare repository, without files", remedy="Clone it and use the clone.")
    if "not a git repository" in text:
        return WorkspaceError(f"{root} is not a git repository", remedy="Make it one: git init.")
    if "must be run in a work tree" in text:
        return WorkspaceError(
            f"{root} is the inside of a git repository, not its working tree",
            remedy="Use the directory that holds the files.",
        )
    return WorkspaceError(f"git cannot open {root}: {first_line(err) or 'its path is not one line'}")
