"""Three workers on machines of their own, as far as the network goes, which is cut, and comes back.

The kernel's network namespaces: this file runs itself once more in one that has the database and the git host, each at
an address of its own, and starts each worker in another one. Nothing of the machine's own network is touched.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from fleets import FleetOfOne, Machine, new_database, skip_without_postgres
from harness import Workspace, chase
from patience import PATIENCE
from running import eventually
from synced import run_git

from cleared.base.errors import WorkspaceError
from cleared.service.fleet.local_postgres import LocalPostgres

pytestmark = pytest.mark.slow

INSIDE = "CLEARED_TEST_NAMESPACE"
DATABASE, GIT = "10.9.1.1", "10.9.2.1"
_NEW_NETWORK = 0x40000000
_ROWS = [("02/04/2025", f"SHOP {n}", f"-{n}.00") for n in range(1, 9)]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def enter_namespace(name: str) -> None:
    with open(f"/run/netns/{name}") as file:
        assert ctypes.CDLL(None, use_errno=True).setns(file.fileno(), _NEW_NETWORK) == 0


def run_worker() -> int:
    """The process of a worker: its namespace, then the words of the command."""
    from cleared.cli.command_runner import run

    enter_namespace(sys.argv[1])
    return run(["fleet", "worker", *sys.argv[2:]])


class NetworkPostgres(LocalPostgres):
    """It listens on the network, too."""

    def make(self) -> None:
        super().make()
        with (self.folder / "data/pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.9.0.0/16 trust\n")

    def start(self) -> None:
        options = f"-k '{self.folder}' -c listen_addresses={DATABASE} -c fsync=off -c max_connections=200"
        data, log = str(self.folder / "data"), str(self.folder / "log")
        self._run("pg_ctl", ["-D", data, "-w", "-t", "60", "-l", log, "-o", options, "start"])


class Remote(Machine):
    """A machine with a network of its own."""

    def __init__(self, home: Path, number: int) -> None:
        super().__init__(home)
        self.name, self.link = f"cleared-{os.getpid()}-{number}", f"v{number}"
        ip("netns", "add", self.name)
        ip("link", "add", "dev", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        near, far = f"10.9.3.{4 * number + 1}", f"10.9.3.{4 * number + 2}"
        ip("addr", "add", f"{near}/30", "dev", self.link)
        ip("link", "set", self.link, "up")
        for words in (
            ("addr", "add", f"{far}/30", "dev", "eth0"),
            ("link", "set", "lo", "up"),
            ("link", "set", "eth0", "up"),
            ("route", "add", "default", "via", near),
        ):
            ip("-n", self.name, *words)

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        return self.begin_function("test_fleet_network:run_worker", self.name, "--patience", "2", *argv)


def find_git_daemon() -> str | None:
    return shutil.which("git-daemon", path=run_git(Path(), "--exec-path").strip())


class NetworkFleet(FleetOfOne):
    """Workers reach the database and the repository by their addresses."""

    remotes: list[Remote]
    git_host: subprocess.Popen[bytes] | None = None

    def start_git_host(self) -> None:
        """Anew, where there is one."""
        self.kill_git_host()
        daemon = find_git_daemon()
        assert daemon is not None  # by its path: "git daemon" is a process that starts this one, which stays
        options = ["--export-all", "--enable=receive-pack", "--reuseaddr", f"--listen={GIT}"]
        folder = str(self._folder)
        words = [daemon, *options, f"--base-path={folder}", folder]
        self.git_host = subprocess.Popen(words, stderr=subprocess.DEVNULL)

    def kill_git_host(self) -> None:
        if self.git_host is not None:
            self.git_host.kill()
            self.git_host.wait()

    def add(self, *options: str) -> None:  # type: ignore[override]
        self.owner.ok("add", "acme", f"git://{GIT}/{self.shared.name}", *options)

    def remote(self, number: int) -> Remote:
        machine = Remote(self._folder / f"remote{number}", number)
        self.take_in(machine.name, machine)
        self.remotes.append(machine)
        return machine


@pytest.fixture
def network_fleet(
    plain_environment: None, ws: Workspace, tmp_path: Path
) -> Iterator[tuple[NetworkFleet, LocalPostgres]]:
    ip("link", "set", "lo", "up")
    for address in (DATABASE, GIT):
        ip("addr", "add", f"{address}/32", "dev", "lo")
    folder = Path(tempfile.mkdtemp())  # not among pytest's: PostgreSQL's own user must reach it
    folder.chmod(0o711)
    cluster = NetworkPostgres(folder / "pg")
    with cluster.running(), new_database(cluster, "fleet"):
        fleet = NetworkFleet(ws, f"postgresql://postgres@{DATABASE}/fleet", tmp_path)
        fleet.remotes = []
        try:
            fleet.start_git_host()
            yield fleet, cluster
        finally:
            fleet.end_all()
            fleet.kill_git_host()
            for each in fleet.remotes:
                ip("netns", "del", each.name)
    shutil.rmtree(folder)


@pytest.mark.skipif(INSIDE not in os.environ, reason="the test below runs it, in a network namespace")
def test_inside(network_fleet: tuple[NetworkFleet, LocalPostgres], tmp_path: Path) -> None:
    fleet, cluster = network_fleet
    fleet.add()
    machines = [fleet.remote(number) for number in range(3)]
    running = [machine.start() for machine in machines]

    def cut(address: str) -> None:
        ip("addr", "del", f"{address}/32", "dev", "lo")
        time.sleep(2)
        ip("addr", "add", f"{address}/32", "dev", "lo")

    def kill() -> None:
        running[0].kill()
        running[0].wait()
        running[0] = machines[0].start()

    def pause() -> None:
        os.kill(running[1].pid, signal.SIGSTOP)
        ip("link", "set", machines[2].link, "down")  # so that one is left
        time.sleep(3)
        ip("link", "set", machines[2].link, "up")
        os.kill(running[1].pid, signal.SIGCONT)

    def restart() -> None:
        cluster.stop(how="immediate")
        cluster.start()

    def kill_database() -> None:
        os.kill(int((cluster.folder / "data/postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        eventually(start_database)  # once what it has left has ended

    def start_database() -> bool:
        with suppress(WorkspaceError):
            cluster.start()
            return True
        return False

    cuts = [partial(cut, DATABASE), partial(cut, GIT)]
    more = [pause, restart, fleet.start_git_host, kill_database, kill]
    steps: list[Callable[[], object]] = [kill, *cuts, *more]
    for number, disturb in enumerate(steps):
        path = tmp_path / f"{number}.csv"
        path.write_text(chase(_ROWS[number]))
        fleet.owner.ok("drop", "acme", str(path))
        disturb()
    eventually(lambda: not fleet.owner.json("status", "acme")["files"])
    ip("link", "set", machines[2].link, "down")  # one that is cut off ends, too, long before the system's own bound
    for process in running:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
    said = "".join((machine.home / "said").read_text() for machine in machines)
    assert "Traceback" not in said, said[-3000:]
    amounts = sorted(entry["amount"] for entry in fleet.fetch().entries())
    assert amounts == [f"{n + 1}.00" for n in range(len(steps))], amounts


def test_machines_whose_network_is_cut_do_all_once() -> None:
    skip_without_postgres()
    if shutil.which("ip") is None or find_git_daemon() is None:
        pytest.skip("there is no ip, or no git daemon (apt install iproute2 git)")
    if subprocess.run(["unshare", "-n", "ip", "netns", "list"], capture_output=True).returncode or os.geteuid():
        pytest.skip("the kernel gives this user no network namespaces of their own")
    inner = [sys.executable, "-m", "pytest", "-v", "-n0"]
    done = subprocess.run(
        ["unshare", "-n", *inner, f"{__file__}::test_inside"],
        env={**os.environ, INSIDE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout[-6000:]
