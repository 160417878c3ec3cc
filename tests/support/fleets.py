"""A fleet on one machine: PostgreSQL in a folder, a repository that is pushed to, an owner, and workers with homes of
their own."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import preloaded
import psycopg
import pytest
from harness import Done, Workspace, command
from held_pushes import hold_push
from patience import PATIENCE
from running import eventually
from synced import follow, run_git
from web_client import Server

from cleared.base.errors import WorkspaceError
from cleared.service.fleet.local_postgres import LocalPostgres, find_postgres_program
from cleared.workspace.location import cleared_home


def skip_without_postgres() -> None:
    """Where PostgreSQL is not installed, no fleet is tried."""
    try:
        find_postgres_program("initdb")
    except WorkspaceError as error:
        pytest.skip(str(error))


@contextmanager
def running_cluster(run: str, process: str) -> Iterator[LocalPostgres]:
    """A PostgreSQL that is up, for one process of a test run. What takes long is done once for all of them, in a folder
    that the last one removes. PostgreSQL's own user must reach it, so it does not lie among pytest's."""
    template, folder = (Path(tempfile.gettempdir()) / f"pg-{run}-{part}" for part in ("template", process))
    with template.with_suffix(".lock").open("w") as lock, template.with_suffix(".making").open("w") as making:
        fcntl.flock(making, fcntl.LOCK_EX)
        fcntl.flock(lock, fcntl.LOCK_SH)
        LocalPostgres(template).make()
        fcntl.flock(making, fcntl.LOCK_UN)
        shutil.copytree(template, folder)
        account = template.stat()
        for parent, _, names in os.walk(folder):
            for path in (parent, *(f"{parent}/{name}" for name in names)):
                os.chown(path, account.st_uid, account.st_gid)
        made = LocalPostgres(folder)
        made.start()
        try:
            yield made
        finally:
            made.stop(how="immediate")
            shutil.rmtree(folder)
            with suppress(BlockingIOError):  # the last one
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(template, ignore_errors=True)
                for suffix in (".lock", ".making"):
                    template.with_suffix(suffix).unlink(missing_ok=True)


@contextmanager
def new_database(cluster: LocalPostgres, name: str) -> Iterator[str]:
    """An empty database; its URL."""
    with psycopg.connect(cluster.url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    yield cluster.url.replace("/postgres?", f"/{name}?")
    with psycopg.connect(cluster.url, autocommit=True) as db:
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Machine:
    """A machine of the fleet: a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.started: list[subprocess.Popen[bytes]] = []
        self.variables: dict[str, str] = {}
        """Others that its programs get."""

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        return {**os.environ, "CLEARED_HOME": str(self.home), **self.variables, **more}

    def __call__(self, *argv: str, **variables: str) -> Done:
        return command("fleet", *argv, env=self.environment(variables))

    def ok(self, *argv: str, **variables: str) -> Done:
        done = self(*argv, **variables)
        assert done.code == 0, (argv, done)
        return done

    def json(self, *argv: str) -> Any:
        return self.ok(*argv, "--json").json

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        """A worker in a process group of its own, by the machine's clock."""
        return self.begin("worker", *argv)

    def begin(self, *argv: str) -> subprocess.Popen[bytes]:
        """A command of the fleet that goes on, by the machine's clock."""
        return self._begin(["fleet", *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def begin_function(self, function: str, *argv: str) -> subprocess.Popen[bytes]:
        """A function of the tests (``module:name``) that is told these words; what it says is in the file ``said``."""
        with (self.home / "said").open("ab") as said:
            return self._begin(argv, function=function, stdout=said, stderr=said)

    def _begin(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        environment = self.environment({})
        environment.pop("CLEARED_CLOCK", None)
        started = preloaded.Preloaded(argv, stdin=subprocess.DEVNULL, env=environment, **options)
        self.started.append(started)
        return started


class FleetOfOne:
    """A fleet with one workspace, ``acme``: the books ``ws``, pushed to ``shared``. The owner is the test's user."""

    def __init__(self, ws: Workspace, database: str, folder: Path) -> None:
        self.database, self._folder = database, folder
        self.ws, _, self.shared = follow(ws, folder)
        run_git(self.shared, "config", "receive.denyDeletes", "true")
        self.store = folder / "store"
        self.owner = Machine(cleared_home())
        said = self.owner.ok("init", "--database", database, "--store", str(self.store)).err
        self._joining = shlex.split(said.partition("cleared fleet ")[2])
        self._workers: dict[str, Machine] = {}

    def add(self, *options: str) -> Done:
        return self.owner.ok("add", "acme", str(self.shared), *options)

    def add_other(self, name: str) -> None:
        """A second workspace, made anew."""
        root, shared = self._folder / f"{name}-made", self.shared_of(name)
        assert command("init", str(root), "--name", name.title()).code == 0
        run_git(self._folder, "clone", "-q", "--bare", f"file://{root}", str(shared))
        for setting in ("receive.denyNonFastForwards", "receive.denyDeletes"):
            run_git(shared, "config", setting, "true")
        self.owner.ok("add", name, str(shared))

    def shared_of(self, name: str) -> Path:
        """Where the history of another one is pushed to."""
        return self._folder / f"{name}.git"

    @property
    def desk(self) -> Workspace:
        """The owner's clone, which the fleet's server shows."""
        return self.desk_of("acme")

    def desk_of(self, name: str) -> Workspace:
        return Workspace(self.owner.home / "fleet/desk" / name)

    @contextmanager
    def serving(self) -> Iterator[Server]:
        """The server of the fleet, in a process of its own, by the machine's clock."""
        process = self.owner.begin("server", "--json", "--port", "0")
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()
            place = json.loads(line)
            yield Server.at(place["url"], place["code"])
        finally:
            said = end(process)
        assert "Traceback" not in said and "not joined" not in said, said

    def worker(self, name: str = "one") -> Machine:
        """A worker that is trusted."""
        if name not in self._workers:
            self.take_in(name, Machine(self._folder / name))
        return self._workers[name]

    def take_in(self, name: str, machine: Machine) -> None:
        """Let a machine be a worker."""
        key = self.owner.json("trust")
        machine.ok(*(self.database if word == "URL" else word for word in self._joining))
        (new,) = [row for row in self.owner.json("trust") if row not in key]
        self.owner.ok("trust", str(new["key"]))
        self._workers[name] = machine

    def end_all(self) -> None:
        """Let no worker outlive its test, however that ended."""
        for machine in self._workers.values():
            for process in machine.started:
                if process.poll() is None:
                    process.kill()
                    process.communicate()

    def work(self, name: str = "one", at: str | None = None) -> Done:
        """A worker does all that is due and waits."""
        return self.worker(name).ok("worker", "--once", **({"CLEARED_CLOCK": at} if at else {}))

    def kill_after_push(self, folder: Path, agent: str) -> None:
        """Ask the first worker for a run under the key *a*, and kill it when its push was taken: before it writes that
        down."""
        held = hold_push(self.shared, folder, "post-receive")
        self.owner("run", "acme", agent, "--wait", "0", "--key", "a")
        first = self.worker("one").start("--patience", "2")
        eventually(Path(f"{held}-waits").exists)
        first.kill()
        first.communicate()
        held.unlink()

    def make_due(self, at: str) -> None:
        """Have the next worker look at the workspace."""
        self.query("UPDATE fleet_workspaces SET asked_due = NULL, due = %s", at)

    def row(self) -> dict[str, Any]:
        (row,) = self.owner.json("list")
        assert isinstance(row, dict)
        return row

    def fetch(self) -> Workspace:
        """The owner's books, with all that was pushed, in order."""
        self.ws.ok("sync")
        self.ws.in_order()
        return self.ws

    def query(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        """As whoever can write to the database asks it."""
        with psycopg.connect(self.database, autocommit=True) as db:
            cursor = db.execute(text, values)
            return cursor.fetchall() if cursor.description is not None else []


def read_owner(home: Path) -> str:
    """The public key of the fleet's owner."""
    return read_fact(home, "owner")


def read_fact(home: Path, name: str) -> str:
    """What a machine has written down of its fleet."""
    return str(json.loads((home / "fleet.json").read_bytes())[name])


def end(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> str:
    """End a worker; what it has said."""
    process.send_signal(number)
    return process.communicate(timeout=PATIENCE)[1].decode()
