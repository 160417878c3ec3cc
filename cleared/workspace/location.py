"""Where a workspace is, where everything in it lies, and where what is this user's and no workspace's lies.

Where git keeps its history is read from git's files (gitrepository-layout): no program is started.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from cleared.base.errors import Place, UsageError, WorkspaceError
from cleared.base.safe_files import TEMPORARY_PATTERN
from cleared.base.safe_names import require_safe_name

if TYPE_CHECKING:
    from cleared.workspace.settings.model import Config

CONFIG_NAME: Final = "config.yaml"
APPROVED_CONFIG: Final = "agents/approvals/config.json"
"""The record that approves it."""


def find_workspace(start: Path | None = None) -> Path:
    """The root of the workspace that holds ``start`` (default: the current directory).

    Looks upwards for ``config.yaml``, as git does for ``.git``. Raises ``WorkspaceError``.
    """
    try:
        first = (start or Path.cwd()).resolve(strict=True)
    except (OSError, RuntimeError):
        raise WorkspaceError(f"there is no directory {start or 'here any more'}") from None
    for folder in (first, *first.parents):
        try:
            if (folder / CONFIG_NAME).is_file() or (folder / APPROVED_CONFIG).is_file():
                return folder  # without the file the first command says what brings it back
        except OSError:
            break  # not allowed to look: nothing above is ours
    raise WorkspaceError(
        f"{first} is not in a workspace: no {CONFIG_NAME} here or above",
        remedy="Make one with: cleared init DIR",
    )


USED_FOLDERS: Final = frozenset(
    (
        ".git",
        ".cleared",
        "import",
        "agents",
        "scripts",
        "logs",
        "queue",
        "accounts",
        "tests",
        "receipts",
        "records",
        "state",
    )
)
"""Folders at the top of a workspace, beside that of the books, that no setting may name for something else."""


class Layout(Struct, frozen=True):
    """Paths of a workspace, as POSIX texts relative to its root, as git names them.

    ``paths.books`` is the folder of the books. Where it is ``.`` (the published layout) the years are at the top, and
    all else is in ``books/``: the top level keeps only folders that a person knows.
    """

    root: Path
    config: Config

    config_file = CONFIG_NAME
    agents_dir = "agents"
    approvals_dir = "agents/approvals"
    scripts_dir = "scripts"
    import_dir = "import"
    processed_dir = "import/processed"
    queue_dir = "queue"
    logs_dir = "logs"
    # Of these there is a file a month (events-YYYY-MM.jsonl); earlier versions had one for all months.
    events = "logs/events.jsonl"
    imported_files = "logs/files.csv"
    state = ".cleared"
    shadows = ".cleared/shadow.json"

    @property
    def books_dir(self) -> str:
        """Where the books lie, or all of them but the years."""
        books = self.config.paths.books.strip("/")
        return "books" if books == "." else books

    @property
    def state_dir(self) -> Path:
        """``.cleared/``, absolute: what can be rebuilt or is only operational."""
        return self.root / self.state

    def agent_path(self, name: str) -> str:
        """The script of an agent. Raises ``UsageError`` for a name that is not one."""
        return f"{self.agents_dir}/{require_safe_name(name, 'agent')}.py"

    def script_path(self, name: str) -> str:
        """A shared script. Raises ``UsageError`` for a name that is not one."""
        return f"{self.scripts_dir}/{require_safe_name(name, 'script')}.py"


def name_script(path: str) -> str:
    """What commands call the agent or shared script that lies at a path."""
    return path.rsplit("/", 1)[-1].removesuffix(".py")


def cleared_home() -> Path:
    """Where this user's key and trust lie: ``$CLEARED_HOME``, else the platform's configuration folder.

    Raises ``UsageError`` where the variable that says so is not absolute: each folder that a command is run in would
    be another home, with other keys, and nobody trusted there.
    """
    chosen = _read_folder("CLEARED_HOME")
    if chosen is not None:
        return chosen
    if sys.platform == "win32":
        return (_read_folder("APPDATA") or user_home() / "AppData" / "Roaming") / "cleared"
    return config_home() / "cleared"


def config_home() -> Path:
    """Where the programs of this user keep their settings: ``$XDG_CONFIG_HOME``, else ``~/.config``. Raises as
    ``cleared_home``."""
    return _read_folder("XDG_CONFIG_HOME") or user_home() / ".config"


def user_home() -> Path:
    """The user's home directory: ``$HOME``, else what the system knows. Raises ``UsageError`` where it is not absolute,
    or there is none."""
    named = os.environ.get("HOME") if sys.platform != "win32" else None
    if named is not None:
        return _require_absolute("HOME", named)
    try:
        return Path.home()
    except RuntimeError:  # no variable, and the system does not know this user
        raise UsageError(
            "this user has no home directory to keep keys in",
            place=Place(field="HOME"),
            remedy="Set HOME (or CLEARED_HOME) to an absolute path.",
        ) from None


def trust_folder() -> Path:
    """Where it is kept whom this user trusts, a file for each workspace; it is written to whenever one changes."""
    return cleared_home() / "workspaces"


def _read_folder(variable: str) -> Path | None:
    """The folder that a variable names; None where it is not set, or empty."""
    text = os.environ.get(variable)
    return _require_absolute(variable, text) if text else None


@functools.lru_cache(maxsize=16)
def _require_absolute(variable: str, text: str) -> Path:
    folder = Path(text)
    if folder.is_absolute():
        return folder
    examples = {"HOME": "/home/ana", "XDG_CONFIG_HOME": "/home/ana/.config, or unset it"}
    example = examples.get(variable, "/home/ana/keys, or unset it")
    raise UsageError(
        f"{text[:200]!r} is not an absolute path, so your keys would lie elsewhere in each folder that you are in",
        place=Place(field=variable),
        remedy=f"Set {variable} to an absolute path, such as {example}.",
    )


_LINK: Final = "gitdir:"
_REMEMBERED: Final = "refs/worktree/cleared"
_MAX_NAME_BYTES: Final = 150


def find_git_folders(root: Path) -> tuple[Path, Path] | None:
    """The git directory of ``root``, and the one it shares with linked working trees (``commondir``), links followed.

    The same where it shares none; None where ``root`` is no top of a working tree.
    """
    folder = f"{root}{os.sep}.git"  # asked so often that a Path for each step costs more than the rest
    try:
        mode = os.stat(folder).st_mode  # noqa: PTH116
        if stat.S_ISREG(mode):
            text = read_git_line(folder)
            if not text.startswith(_LINK):
                return None
            folder = os.path.join(root, text.removeprefix(_LINK).strip())  # noqa: PTH118
            mode = os.stat(folder).st_mode  # noqa: PTH116
    except (OSError, ValueError):
        return None
    if not stat.S_ISDIR(mode):
        return None
    real = Path(os.path.realpath(folder))
    common = read_git_line(f"{folder}{os.sep}commondir")
    return real, (Path(folder) / common).resolve() if common else real


def exclude_temporaries(root: Path) -> None:
    """Have git pass over temporary files that have to lie beside others, in every working tree of the repository."""
    folders = find_git_folders(root)
    if folders is None:
        return
    path = folders[1] / "info" / "exclude"
    text = read_git_text(path)
    if TEMPORARY_PATTERN in text.splitlines():
        return
    gap = "\n" if text and not text.endswith("\n") else ""
    with suppress(OSError):  # whoever may not write there commits nothing either
        path.parent.mkdir(exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            os.write(descriptor, f"{gap}{TEMPORARY_PATTERN}\n".encode("ascii"))
        finally:
            os.close(descriptor)


def read_git_line(path: Path | str) -> str:
    """The text of a file of git that has one line; empty where it cannot be read."""
    return read_git_text(path).rstrip("\r\n")


def remembered_ref(branch: str) -> str:
    """The name of the reference that remembers the last commit of a branch, by the branch's full name."""
    # Escaped, so that the reference of one branch is never a folder of another's.
    name = branch.removeprefix("refs/heads/").replace("%", "%25").replace("/", "%2F")
    if len(name.encode("utf-8", "surrogateescape")) > _MAX_NAME_BYTES:
        name = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{_REMEMBERED}/{name}"


def read_git_text(path: Path | str) -> str:
    """The text of a file of git; empty where it cannot be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read().decode("utf-8", "surrogateescape")
    except OSError:
        return ""
