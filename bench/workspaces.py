"""Workspaces and bank files to measure on: made in a temporary directory, the same every time."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from cleared.base.clock import FixedClock, format_iso
from cleared.changes.host import Host
from cleared.changes.workspace_creation import create_workspace
from cleared.changes.workspace_opening import open_workspace
from cleared.git.housekeeping import LOCK
from cleared.primitives import primitive_registry
from cleared.trust.approval_record import WORKSPACE, ApprovalRecord, digest_of, record_path, sign_record
from cleared.trust.keys import own_key
from cleared.trust.workspace_pin import identify_workspace, new_workspace_id, pin_clone
from cleared.workspace import template

NOW = datetime(2025, 12, 31, 12, tzinfo=UTC)
HEADER = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #"
_number = itertools.count()
_folder = tempfile.TemporaryDirectory(prefix="cleared-bench-")

# As a row of the documented script: two of three are known to it, the third waits for a person.
_TEXTS = ("GITHUB INC", "AWS EMEA", "CORNER SHOP")


def place() -> Path:
    """A new path under the one temporary directory."""
    return Path(_folder.name) / str(next(_number))


def remove_places() -> None:
    """Remove all of them: for a process that ends without a word."""
    _folder.cleanup()


def chase(rows: int, *, days: int = 28, texts: Sequence[str] = _TEXTS) -> bytes:
    """A Chase checking file of so many different rows over ``days`` days from 1 January 2025; ``texts`` in turns."""
    balance = rows * 10_000
    lines = []
    for n in range(rows):
        day = date(2025, 1, 1) + timedelta(days=n * days // rows)
        cents = 100 + n % 9_000
        balance -= cents
        text = f"{texts[n % len(texts)]} {n:06d}"
        lines.append(f"DEBIT,{day:%m/%d/%Y},{text},-{cents // 100}.{cents % 100:02d},ACH_DEBIT,{balance / 100:.2f},,")
    return "\n".join([HEADER, *reversed(lines), ""]).encode()


def use_own_home() -> None:
    """Nothing is measured with the keys of whoever measures."""
    os.environ["CLEARED_HOME"] = str(Path(_folder.name) / "home")


def ingest_script() -> str:
    """The starter agent's script, as shipped."""
    return template.starter_files()["agents/ingest.py"].decode()


def workspace(*, files: dict[str, bytes] | None = None, agents: dict[str, str] | None = None) -> Path:
    """A new workspace with bank files in ``import/`` and further agents, committed and approved."""
    extra = approved({f"agents/{name}.py": text.encode() for name, text in (agents or {}).items()})
    root, _ = create_workspace(
        place(), name="Bench", entity_type="llc_single_member", currency="USD", clock=FixedClock(NOW), extra=extra
    )
    for name, data in (files or {}).items():
        (root / "import" / name).write_bytes(data)
    return root


def approved(scripts: dict[str, bytes], books: str = "") -> dict[str, bytes]:
    """The scripts, records for them, and the books that these are bound to (new ones where none are given): the gate
    would take longer than what is measured."""
    use_own_home()
    key = own_key(Path(_folder.name) / "nowhere", create=True)
    assert key is not None
    books = books or new_workspace_id()  # settings that one figure approves are nothing to the books of another
    found = dict(scripts) | {WORKSPACE: f"{books}\n".encode()}
    for path, data in scripts.items():
        digest = digest_of(data)
        record = ApprovalRecord(
            "script", path, digest, "bench", format_iso(NOW), books, grants=tuple(primitive_registry())
        )
        found[record_path(path, digest)] = sign_record(record, key).render()
    return found


def copy(root: Path) -> Path:
    """A copy of a workspace, as it is; on the disk, so that what is measured does not wait for that."""
    lock = root / ".git" / LOCK
    if lock.exists():  # git packs in the background for a moment, and removes folders meanwhile
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX)
    made = Path(shutil.copytree(root, place(), symlinks=True))
    claim = made / WORKSPACE
    pin_clone(made, identify_workspace(made, claim.read_bytes() if claim.exists() else None).claimed)
    os.sync()
    return made


def host(root: Path) -> Host:
    return open_workspace(root, clock=FixedClock(NOW))


def git(root: Path, *args: str) -> None:
    """Plain git, as a person would call it."""
    subprocess.run(
        ["git", "-c", "user.name=Bench", "-c", "user.email=bench@localhost", *args],
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def write_and_commit(root: Path, files: dict[str, bytes]) -> None:
    """The files, and two calls of git."""
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    git(root, "add", *files)
    git(root, "commit", "-q", "-m", "bench")
