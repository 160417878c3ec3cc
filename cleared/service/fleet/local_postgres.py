"""A PostgreSQL of one's own in a folder, for the demo and for tests: it listens on a socket in that folder only."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from cleared.base.errors import WorkspaceError
from cleared.base.programs import find_program

_PROGRAMS: Final = Path("/usr/lib/postgresql")
"""Where Debian puts the programs of each version."""
_USER: Final = "postgres"
"""PostgreSQL refuses to be run by root; then it is run by this user."""


class LocalPostgres:
    """``folder``: made by ``make``, and removed by whoever has made it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"postgresql:///postgres?host={quote(str(folder), safe='')}&user={_USER}"

    @contextmanager
    def running(self) -> Iterator[str]:
        """Make and start it, and stop it at the end; its URL. Raises ``WorkspaceError`` where there is no
        PostgreSQL."""
        self.make()
        self.start()
        try:
            yield self.url
        finally:
            self.stop()

    def make(self) -> None:
        """Make the folder's database. Whoever reaches its socket is its owner: nobody else enters the folder."""
        account = _find_account() if os.geteuid() == 0 else None
        self.folder.mkdir(parents=True, exist_ok=True)
        if account is not None:
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self.folder.chmod(0o700)
        if not (self.folder / "data" / "PG_VERSION").exists():
            data = ["-D", str(self.folder / "data"), "-U", _USER, "--auth=trust", "--no-sync", "-E", "UTF8"]
            self._run("initdb", [*data, "--locale=C"])

    def start(self) -> None:
        """Start it; it is ready then."""
        options = f"-k {_quote(str(self.folder))} -c listen_addresses= -c fsync=off -c max_connections=200"
        log = str(self.folder / "log")
        self._run("pg_ctl", ["-D", str(self.folder / "data"), "-w", "-t", "60", "-l", log, "-o", options, "start"])

    def stop(self, *, how: str = "fast") -> None:
        """``how``: *immediate* is as a power cut."""
        self._run("pg_ctl", ["-D", str(self.folder / "data"), "-w", "-m", how, "stop"])

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        command: list[str] = [find_postgres_program(name), *arguments]
        account = _find_account() if os.geteuid() == 0 else None
        with tempfile.TemporaryFile() as said:  # a pipe would be held open by the server
            done = subprocess.run(
                command,
                cwd="/",
                env={**os.environ, "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                check=False,
            )
            said.seek(0)
            text = said.read()
        if done.returncode:
            with suppress(OSError):
                text += (self.folder / "log").read_bytes()
            cause = _find_cause(text)
            raise WorkspaceError(
                f"PostgreSQL could not be used in {self.folder}: {name} ended with {done.returncode}{cause}",
                remedy="Put that right, or use another folder.",
            )


def _find_cause(text: bytes) -> str:
    """The first line that says what is wrong."""
    lines = [line.strip() for line in text.decode("utf-8", "replace").splitlines()]
    wrong = (line for line in lines if re.search(r"\b(error|FATAL|PANIC):", line))
    cause = next(wrong, lines[-1] if lines else "")
    return f": {re.sub(r'^.*?(error|FATAL|PANIC): *', '', cause)}" if cause else ""


def find_postgres_program(name: str) -> str:
    """A program of PostgreSQL: on the path, or where Debian puts it. Raises ``WorkspaceError`` where there is none."""
    versions = sorted(
        (path for path in _PROGRAMS.glob("*/bin") if re.fullmatch(r"\d+", path.parent.name)),
        key=lambda path: int(path.parent.name),
    )
    places = [find_program(name), *(shutil.which(name, path=str(path)) for path in reversed(versions))]
    found = next((place for place in places if place is not None), None)
    if found is None:
        raise WorkspaceError(
            "there is no PostgreSQL on this machine",
            remedy="Install it: apt install postgresql. Or give the URL of one: cleared fleet init --database URL.",
        )
    return found


def _find_account() -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(_USER)
    except KeyError:
        raise WorkspaceError(
            f"PostgreSQL does not run as root, and there is no user {_USER}", remedy="Run it as another user."
        ) from None


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
