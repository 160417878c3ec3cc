"""Secrets of a workspace, which only its jobs have."""

from __future__ import annotations

import threading
from pathlib import Path

from fake_provider import Call, FakeProvider, Reply, Request
from fleets import FleetOfOne, Machine, end
from harness import CLOCK, Workspace
from modelled import use_model
from patience import PATIENCE
from running import eventually

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
