"""``docs/fleet/compose.yaml``: what it starts is started here without docker, each command in its order, with the
volumes in a folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import psycopg
import pytest
import yaml
from bucket_server import serve_bucket
from fleets import Machine
from harness import Workspace, chase, command, remove_tree, take_ok
from listening import find_free_port
from patience import PATIENCE
from program_client import KEEP, Program
from running import eventually
from signed_calls import send
from web_client import Server

from cleared.service.fleet.local_postgres import LocalPostgres

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/fleet"
IN_IMAGE = "/cleared"
"""Where the image has the checkout."""


class Composed:
    """The services of the file but PostgreSQL's, whose socket's volume the folder ``socket`` is."""

    def __init__(self, folder: Path, socket: Path) -> None:
        self.services: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
        self._folder, self._volumes = folder, {"socket": socket}
        self.port = find_free_port()
        self.said: dict[str, str] = {}
        """Variables of whoever says ``up``."""
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def mounts(self, name: str) -> list[tuple[str, Path]]:
        """Where a service has which folder."""
        pairs = [text.split(":") for text in self.services[name].get("volumes", [])]
        return [(place, self._volumes.get(volume, self._folder / volume)) for volume, place in pairs]

    def translate(self, name: str, text: str) -> str:
        """What a service is told, with the folders in the place of what it would have mounted."""
        for place, folder in [*self.mounts(name), (IN_IMAGE, ROOT)]:
            text = re.sub(rf"(^|=){re.escape(place)}(?=[/&]|$)", rf"\g<1>{folder}", text)
        return text

    def fill_in(self, name: str) -> dict[str, str]:
        """The variables of a service: what has no value, and what names another, is as whoever says ``up`` has it."""
        variables: dict[str, str | None] = self.services[name]["environment"]
        given = {key: value for key, value in variables.items() if value is not None}
        given |= {key: value for key, value in self.said.items() if key in variables.keys() - given.keys()}
        return {
            key: re.sub(r"\$\{(\w+):-([^}]*)\}", lambda named: self.said.get(named[1]) or named[2], value)
            for key, value in given.items()
        }

    def start(self, name: str) -> None:
        for _, folder in self.mounts(name):
            folder.mkdir(exist_ok=True)
        told = {key: self.translate(name, value) for key, value in self.fill_in(name).items()}
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CLEARED_")} | told
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
        if "PORT" in told:
            environment["PORT"] = str(self.port)
        argv = [self.translate(name, word) for word in self.services[name]["command"]]
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                argv, env=environment, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def restart_failed(self) -> None:
        """What has failed is started again, as the file asks for."""
        for name, process in list(self._running.items()):
            if process.poll() and self.services[name]["restart"] == "unless-stopped":
                assert process.poll() == 3, (name, self.read_log(name))  # not let in yet
                self.start(name)

    def read_log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text()

    def is_healthy(self, name: str) -> bool:
        self.restart_failed()
        kind, *argv = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        return subprocess.run([self.translate(name, word) for word in argv], check=False).returncode == 0

    def end(self) -> dict[str, int]:
        """End all as docker does; how each has ended."""
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)
        return {name: process.wait(PATIENCE) for name, process in self._running.items()}


def answers(url: str) -> bool:
    """Whether the page is there."""
    try:
        with urlopen(url) as answer:
            return bool(answer.status == 200)
    except URLError:
        return False


@pytest.fixture
def composed(cluster: LocalPostgres, plain_environment: None) -> Iterator[Composed]:
    with psycopg.connect(cluster.url, autocommit=True) as db:
        db.execute("CREATE ROLE cleared SUPERUSER LOGIN")
        db.execute("CREATE DATABASE fleet OWNER cleared")
    folder = Path(tempfile.mkdtemp(prefix="cleared-compose-"))
    made = Composed(folder, cluster.folder)
    try:
        yield made
    finally:
        made.end()
        remove_tree(folder)
        with psycopg.connect(cluster.url, autocommit=True) as db:
            db.execute("DROP DATABASE fleet WITH (FORCE)")
            db.execute("DROP ROLE cleared")


def test_what_the_compose_file_starts_is_a_fleet(
    composed: Composed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a page, webhooks and metrics; and with a bucket, where whoever starts it names one."""
    postgres = composed.services["postgres"]
    assert postgres["command"] == ["postgres", "-c", "listen_addresses="] and "ports" not in postgres
    assert {"POSTGRES_USER": "cleared", "POSTGRES_DB": "fleet"}.items() <= postgres["environment"].items()
    workers = [name for name in composed.services if name.startswith("worker-")]
    assert composed.services["owner"]["environment"]["WORKERS"].split() == workers and len(workers) == 3
    composed.start("owner")
    eventually(lambda: composed.is_healthy("owner"))
    eventually(lambda: answers(f"http://127.0.0.1:{composed.port}/healthz"))  # which waits for no worker
    for name in workers:
        composed.start(name)
    owner = Machine(dict(composed.mounts("owner"))["/keys"])
    eventually(lambda: composed.is_healthy("owner") and owner.json("status")["alive"] == 3)
    (tmp_path / "shop.csv").write_text(chase(("02/05/2025", "CORNER SHOP", "-5.00")))
    owner.ok("drop", "acme", str(tmp_path / "shop.csv"))
    eventually(lambda: not owner.json("status", "acme")["files"])
    assert owner.json("status")["problems"] == 0
    desk = Workspace(owner.home / "fleet/desk/acme")
    eventually(lambda: "CORNER SHOP" in desk.git("log", "-p", "--all", "--", "books"))
    monkeypatch.setenv("CLEARED_HOME", str(owner.home))
    server = Server.at(f"http://127.0.0.1:{composed.port}", "")
    token = command("token", "add", "monitor", "--fleet", "--json").json["token"]
    assert '\ncleared_workers{state="alive"} 3\n' in Program(server, token=token).send("GET", "/metrics").body
    desk.put("agents/orders.py", f'"""\nname: orders\ntrigger: webhook\nsample: {{"order": 0}}\n"""\n{KEEP}\n')
    take_ok(desk, "agent", "approve", str(desk.json("agent", "propose", "orders")["id"]))
    secret = str(desk.json("webhook", "add", "orders")["secret"])
    status, answer = send(server, secret, "m1", {"order": 7}, "?wait=30")
    assert status == 200 and answer["run"]["result"] == {"order": 7}, answer
    revoked = owner.json("trust")[0]["key"]
    owner.ok("trust", "--revoke", revoked)
    ended = composed.end()
    assert set(ended.values()) <= {0, 3, -signal.SIGTERM}, ended

    composed.start("owner")
    eventually(lambda: answers(f"http://127.0.0.1:{composed.port}/healthz"))
    assert {each["key"]: each["trusted"] for each in owner.json("trust")}[revoked] is False
    composed.end()

    with serve_bucket() as bucket:
        composed.said = {"FILES": "s3://files/here", **bucket.variables}
        owner.variables = dict(bucket.variables)
        for name in ("owner", *workers[:2]):  # one of them at least is let in
            composed.start(name)
        eventually(lambda: answers(f"http://127.0.0.1:{composed.port}/healthz"))
        (tmp_path / "kiosk.csv").write_text(chase(("02/06/2025", "KIOSK", "-6.00")))
        owner.ok("drop", "acme", str(tmp_path / "kiosk.csv"))
        assert [path.rpartition("/")[0] for path in bucket.kept] == ["/files/here"]
        eventually(lambda: not owner.json("status", "acme")["files"])
        assert owner.json("status")["problems"] == 0
        composed.end()


def test_the_image_has_what_its_commands_name() -> None:
    """No docker is needed to see that."""
    text = (FOLDER / "Dockerfile").read_text()
    assert f"COPY . {IN_IMAGE}" in text and "[fleet,web]" in text and " git " in text
    for service in yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"].values():
        if "build" in service:
            assert (FOLDER / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
            script = Path(service["command"][-1])
            assert (ROOT / script.relative_to(IN_IMAGE)).is_file()
            assert subprocess.run(["sh", "-n", ROOT / script.relative_to(IN_IMAGE)], check=False).returncode == 0
