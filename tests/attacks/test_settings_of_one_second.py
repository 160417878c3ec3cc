"""Settings that were approved before others count no more, though both were approved within one second."""

from __future__ import annotations

from harness import Workspace

from cleared.trust.approval_record import CONFIG


def test_what_was_approved_before_in_the_same_second_does_not_come_back(ws: Workspace) -> None:
    ws.config("sandbox.timeout=29")
    before = {path: ws.read(path) for path in (CONFIG, "config.yaml")}
    ws.config("sandbox.timeout=31")
    for path, text in before.items():
        ws.put(path, text)
        ws.git("add", path)
    ws.git("commit", "-qm", "my notes")
    assert ws.json("config", "get", "sandbox.timeout") == 31.0
