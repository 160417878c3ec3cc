"""Secrets of a workspace, which only its jobs have; and what the scripts of a job may reach."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

import pytest
from fake_provider import Call, FakeProvider, Reply, Request
from fleets import FleetOfOne, Machine, end
from harness import CLOCK, Workspace
from modelled import use_model
from patience import PATIENCE
from running import eventually, list_descendants

from cleared.sandbox.worker_pool import confinement_level

pytestmark = pytest.mark.slow

BODY = 'llm_classify("TRAIN TO LYON", ["travel", "office"])\nctx_emit("asked")\n'
GRANTS = "grants: [llm.classify:0.05, ctx.emit]\n"


def _write_secrets(worker: Machine, workspace: str, text: str) -> Path:
    path = worker.home / f"fleet/secrets/{workspace}.env"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o600)
    return path


def test_secrets_that_others_can_read_are_not_used(fleet: FleetOfOne) -> None:
    path = _write_secrets(fleet.worker("one"), "acme", "TEST_MODEL_KEY=key-of-acme\n")
    path.chmod(0o640)
    fleet.work("one", CLOCK)
    assert "can read these secrets" in fleet.row()["problem"]
    path.chmod(0o600)
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert fleet.row()["problem"] == ""


@pytest.mark.skipif(not confinement_level().is_full, reason="this system does not confine scripts")
def test_scripts_are_confined_as_on_one_machine(fleet: FleetOfOne) -> None:
    """The kernel says so of the process that runs one; and it has nothing of the worker's environment."""
    fleet.ws.agent("slow", "n = 0\nwhile n < 3000000:\n    n = n + 1\n1\n")
    fleet.ws.agent("stays", "while True:\n    1\n", "timeout: 1\n")
    fleet.ws.ok("sync")
    worker = fleet.worker("one").start()
    for agent in ("slow", "stays"):
        fleet.owner("run", "acme", agent, "--wait", "0", "--key", agent)

    def look() -> list[tuple[str, bytes]]:
        found = []
        for pid in list_descendants(worker.pid):
            with suppress(OSError):
                if (Path(f"/proc/{pid}/comm")).read_text() == "monty\n":
                    status, environment = Path(f"/proc/{pid}/status"), Path(f"/proc/{pid}/environ")
                    found.append((status.read_text(), environment.read_bytes()))
        return found

    status, environment = eventually(look, pause=0.005)[0]
    assert "NoNewPrivs:\t1\n" in status and "Seccomp:\t2\n" in status and environment == b""
    eventually(lambda: not fleet.owner.json("status")["requests"])
    ended = {agent: fleet.owner("run", "acme", agent, "--key", agent, "--json").json for agent in ("slow", "stays")}
    assert ended["slow"]["status"] == "succeeded"
    assert ended["stays"]["status"] == "failed" and "within 1 s" in ended["stays"]["said"], ended
    assert "Traceback" not in end(worker)


def test_jobs_side_by_side_have_each_the_secrets_of_its_workspace(fleet: FleetOfOne) -> None:
    """One worker is at all three at once, as the model answers nobody before all have asked. One has no secret."""
    together = threading.Barrier(3)

    def answer(request: Request) -> Reply:
        together.wait(PATIENCE)
        return Reply(calls=(Call(request.body["tools"][0]["name"], {"choice": "travel", "confidence": 0.9}),))

    with FakeProvider(answer) as provider:
        for name in ("beta", "gamma"):
            fleet.add_other(name)
        for name, books in (("acme", fleet.ws), ("beta", fleet.desk_of("beta")), ("gamma", fleet.desk_of("gamma"))):
            use_model(books, provider)
            books.agent("asks", BODY, GRANTS)
            books.ok("sync")
            assert fleet.owner("run", name, "asks", "--wait", "0", "--key", name).code == 5
        worker = fleet.worker("one")
        for name in ("acme", "beta"):
            _write_secrets(worker, name, f"TEST_MODEL_KEY=key-of-{name}\n")
        started = worker.start("--concurrency", "3")
        eventually(lambda: not fleet.owner.json("status")["requests"])
        assert "Traceback" not in end(started)
        for name in ("acme", "beta", "gamma"):
            assert fleet.owner.json("run", name, "asks", "--key", name)["status"] == "succeeded"
        asked = sorted(request.headers.get("authorization", "") for request in provider.requests)
        assert asked == ["", "Bearer key-of-acme", "Bearer key-of-beta"]
    for name in ("acme", "beta"):
        emitted = Workspace(fleet.shared_of(name) if name != "acme" else fleet.shared).git("log", "--format=%B", "main")
        assert "Agent: asks" in emitted and "key-of-" not in emitted
    assert not (worker.home / "approval-key").exists() and not list(worker.home.glob("fleet/homes/*/approval-key"))
