"""What a job needs of keys and trust: a ``CLEARED_HOME`` of the workspace's own, made from what the fleet's owner said.

No approval key lies in it. What one workspace is trusted with, and its secrets, are known only to the process of a job
in it, which ends with the job.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from cleared import __version__
from cleared.base.clock import Clock
from cleared.base.errors import Place, WorkspaceError
from cleared.base.safe_files import write_atomic
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.owner_statements import WorkersStatement, WorkspaceStatement
from cleared.service.fleet.worker_clone import being_made
from cleared.trust.clone_marks import RUN_KEY
from cleared.trust.keys import run_key
from cleared.trust.trust_store import load_trust
from cleared.workspace.fleet_clones import CLONES, fleet_folder

_SECRETS: Final = "secrets"
"""The folder of files ``NAME.env``, below the worker's own: a line ``VARIABLE=value`` for each secret."""
_OWN: Final = (
    "CLEARED_FLEET_DATABASE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "PGPASSWORD",
)
"""Variables of the worker that no job needs."""


def enter_home(folder: Path, worker_home: Path, said: WorkspaceStatement, workers: WorkersStatement) -> None:
    """Make this process one of that workspace's home: its keys, its trust, its secrets. ``folder``: the worker's, for
    the fleet; ``worker_home``: where the key of its runs lies."""
    home = folder / "homes" / said.name
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in (RUN_KEY, f"{RUN_KEY}.pub"):
        data = (worker_home / name).read_bytes()
        if not (home / name).exists() or (home / name).read_bytes() != data:
            write_atomic(home / name, data, mode=0o600)
    os.environ["CLEARED_HOME"] = str(home)
    trust = load_trust(said.books)
    before = (dict(trust.keys), dict(trust.runs), set(trust.withdrawn), dict(trust.barred), dict(trust.newest))
    trust.keys = dict(said.keys)
    trust.runs = {**said.runs, **workers.keys, **workers.revoked}
    trust.withdrawn |= set(said.withdrawn)
    trust.barred |= {name: max(at, trust.barred.get(name, "")) for name, at in said.barred.items()}
    trust.newest |= {name: max(at, trust.newest.get(name, "")) for name, at in said.newest.items()}
    if before != (trust.keys, trust.runs, trust.withdrawn, trust.barred, trust.newest):
        if before[0] != trust.keys:
            trust.settings = {}  # they may have been approved with a key that counts no more
        trust.save()
    for name in _OWN:
        os.environ.pop(name, None)
    os.environ.update(_read_secrets(folder / _SECRETS / f"{said.name}.env"))


def _read_secrets(path: Path) -> dict[str, str]:
    """Raises ``WorkspaceError`` where others can read the file."""
    try:
        mode = path.stat().st_mode
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"the secrets cannot be read: {error}", place=Place(str(path))) from None
    if stat.S_IMODE(mode) & 0o077:
        raise WorkspaceError(
            "others on this machine can read these secrets", place=Place(str(path)), remedy=f"chmod 600 {path}"
        )
    pairs = (line.partition("=") for line in text.splitlines() if line.strip() and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def introduce_worker(database: FleetDatabase, clock: Clock) -> None:
    """Let the owner see this machine's key of runs, which they trust, or do not."""
    key = run_key(fleet_folder(), create=True)
    assert key is not None
    database.note_worker(key.public, os.uname().nodename, __version__, clock.now())


def forget_workspace(folder: Path, name: str) -> None:
    """Remove what this machine keeps for a workspace, but for its secrets."""
    clone = folder / CLONES / name
    for each in (folder / "homes" / name, clone, being_made(clone)):
        shutil.rmtree(each, ignore_errors=True)
