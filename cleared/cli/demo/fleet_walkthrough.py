"""``cleared fleet demo``: a whole fleet on one machine, made and used by the commands that anybody types."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from shlex import join
from typing import IO, Final

from cleared.base.clock import SystemClock
from cleared.base.errors import CheckFailed, ClearedError, WorkspaceError
from cleared.base.programs import own_command
from cleared.base.safe_files import write_atomic
from cleared.base.terminal import print_line, print_message
from cleared.base.tree_removal import remove_tree
from cleared.changes.workspace_creation import create_workspace
from cleared.cli.demo.sample_firm import bank_files, demo_files
from cleared.git import Repository
from cleared.git.git_process import Git
from cleared.git.made_commits import forget_commits
from cleared.git.remote_branch import RemoteBranch, push_commit
from cleared.service.fleet.fleet_database import FleetDatabase
from cleared.service.fleet.fleet_home import read_fleet
from cleared.service.fleet.job_queue import count_jobs
from cleared.service.fleet.local_postgres import LocalPostgres, find_postgres_program

_NAMES: Final = ("north", "south")
_END_SECONDS: Final = 300.0
_KEEPER: Final = """while read -r process; do all="$all $process"; done
for process in $all; do kill $process; done
for process in $all; do while kill -0 $process; do sleep 0.1; done; done
kill -INT $(head -n 1 "$1")
"""
"""Ends the processes that it is told, and then PostgreSQL, once whoever tells it is gone. ``$1``: PostgreSQL's file."""


def run_fleet_demo(directory: Path | None, workers: int, *, stay: bool) -> None:
    """``stay``: keep all of it up until Ctrl-C. Raises ``WorkspaceError`` where there is no PostgreSQL or the directory
    is not new or empty, ``CheckFailed`` where a step failed."""
    find_postgres_program("initdb")
    if directory is not None and directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        what = "is not empty" if directory.is_dir() else "is no folder"
        raise WorkspaceError(f"{directory.absolute()} {what}", remedy="Choose another: cleared fleet demo DIR.")
    is_new = directory is None or not directory.exists()
    folder = (directory or Path(tempfile.mkdtemp(prefix="cleared-fleet-"))).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o711)  # PostgreSQL's own user has a folder in it
        _Demo(folder, workers).run(stay=stay)
    except CheckFailed:  # a step failed: what there is says why
        raise
    except (ClearedError, OSError):  # as the machine is, there is no demo
        _remove_demo(folder, is_new=is_new)
        raise


def _remove_demo(folder: Path, *, is_new: bool) -> None:
    """Leave nothing of it; a folder that was there stays, and is empty as it was."""
    with suppress(OSError):
        for path in [folder] if is_new else [*folder.iterdir()]:
            remove_tree(path)
    forget_commits(told=False)  # they are gone with it


class _Demo:
    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._owner, self._postgres = folder, folder / "owner", LocalPostgres(folder / "postgres")
        self._workers = [f"worker-{number}" for number in range(1, workers + 1)]

    def run(self, *, stay: bool) -> None:
        os.environ["CLEARED_HOME"] = str(self._owner)
        print_message(f"Everything lies in {self._folder}. PostgreSQL is started in it.")
        with self._keeping() as keeper, self._postgres.running() as url, ExitStack() as stack:
            self._make_fleet(url)
            for name in self._workers:
                stack.enter_context(self._working(name, keeper))
            self._hand_in_files(url)
            if stay:
                print_message(
                    f"All of it is up. In another terminal: export CLEARED_HOME={self._owner}. Ctrl-C ends it."
                )
                while True:
                    time.sleep(1)
        print_message(f"The workers and PostgreSQL have ended. To look around: export CLEARED_HOME={self._owner}")

    def _make_fleet(self, url: str) -> None:
        self._run(self._owner, "fleet", "init", "--database", url, "--store", str(self._folder / "files"))
        for name in _NAMES:
            root, commit = create_workspace(
                self._folder / name,
                name=f"{name.title()} Lane Consulting LLC",
                entity_type="llc_single_member",
                currency="USD",
                clock=SystemClock(),
                extra=demo_files(),
            )
            address = self._publish(name, root, commit)
            self._run(self._owner, "fleet", "add", name, address)
        owner = read_fleet().owner
        for name in self._workers:
            store = str(self._folder / "files")
            self._run(self._folder / name, "fleet", "join", "--database", url, "--owner", owner, "--store", store)
        with FleetDatabase.connect(url) as database:
            keys = [worker.key for worker in database.list_workers()]
        for key in keys:
            self._run(self._owner, "fleet", "trust", key.removeprefix("ed25519:")[:16])

    def _publish(self, name: str, root: Path, commit: str) -> str:
        """Push the books to a bare repository, from which no commit can be taken back."""
        address = self._folder / "git" / f"{name}.git"
        address.mkdir(parents=True)
        remote = Git(address)
        remote.run("init", "--quiet", "--template=", "--bare", "--initial-branch=main", ".")
        for setting in ("receive.denyNonFastForwards", "receive.denyDeletes"):
            remote.run("config", setting, "true")
        with Repository.open(root, for_writing=False) as repo:
            repo.git.run("config", "remote.origin.url", str(address))
            try:
                push_commit(repo, RemoteBranch("origin", "main"), commit)
            except WorkspaceError as error:  # what is committed here goes, too
                raise WorkspaceError(error.message, remedy="Put that right, or use another folder.") from None
        return str(address)

    @contextmanager
    def _keeping(self) -> Iterator[IO[bytes]]:
        """Takes the numbers of processes, a line each: nothing of the demo outlives it, also where it is killed."""
        keeper = subprocess.Popen(
            ["/bin/sh", "-c", _KEEPER, "sh", str(self._postgres.folder / "data/postmaster.pid")],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert keeper.stdin is not None
        try:
            yield keeper.stdin
        finally:
            keeper.kill()  # all have ended
            keeper.communicate()

    @contextmanager
    def _working(self, name: str, keeper: IO[bytes]) -> Iterator[None]:
        with (self._folder / f"{name}.log").open("wb") as log:
            print_line(f"$ CLEARED_HOME={self._folder / name} cleared fleet worker &")
            process = subprocess.Popen(
                own_command("fleet", "worker"),
                env=self._environment(self._folder / name),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                keeper.write(b"%d\n" % process.pid)
                keeper.flush()
                yield
            finally:
                process.terminate()
                process.wait()

    def _hand_in_files(self, url: str) -> None:
        paths = []
        for name, data in bank_files().items():
            paths.append(self._folder / "downloads" / name)
            write_atomic(paths[-1], data, fsync=False)
        for name in _NAMES:
            self._run(self._owner, "fleet", "drop", name, *map(str, paths))
        until = time.monotonic() + _END_SECONDS
        with FleetDatabase.connect(url) as database:
            while count_jobs(database) or any(database.list_files(name) for name in _NAMES):
                if time.monotonic() > until:
                    raise CheckFailed(
                        "the workers did not import the files in time", remedy=f"Look at {self._folder}/worker-1.log."
                    )
                time.sleep(0.2)
        self._run(self._owner, "fleet", "list")
        for name in _NAMES:
            self._run(self._owner, "sync", "-C", str(self._folder / name))
            self._run(self._owner, "check", "-C", str(self._folder / name))

    def _run(self, home: Path, *words: str) -> None:
        """A command, shown as it would be typed."""
        print_line(f"$ {f'CLEARED_HOME={home} ' if home != self._owner else ''}cleared {join(words)}")
        sys.stdout.flush()
        done = subprocess.run(own_command(*words), env=self._environment(home), stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            command = join(takewhile(lambda word: not word.startswith("-"), words[:2]))
            raise CheckFailed(
                f"cleared {command} ended with {done.returncode}",
                remedy=f"What was made is in {self._folder}.",
            )

    def _environment(self, home: Path) -> dict[str, str]:
        return {**os.environ, "CLEARED_HOME": str(home)}
