"""What a fleet tells the outside world: after the push, from what was pushed, under one key; and spans of its jobs."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fleets import FleetOfOne, end
from harness import CLOCK, Workspace
from held_pushes import hold_push
from running import eventually, list_descendants
from span_collector import collecting, read_parents
from synced import run_git, tip_of

pytestmark = pytest.mark.slow

HEADER = "grants: [notify.send, git.commit]\n"
TELLS = 'notify_send("Two things", "first")\ngit_commit("told")\n'


class Receiver:
    """A program that is given the messages, on whichever worker; it does not end while ``held`` exists."""

    def __init__(self, fleet: FleetOfOne, folder: Path) -> None:
        path, self._kept, self.held = folder / "notify.py", folder / "kept.jsonl", folder / "receiver-held"
        path.write_text(
            f"#!{sys.executable}\nimport os, sys, time\nopen({str(self._kept)!r}, 'a').write(sys.stdin.read())\n"
            f"while os.path.exists({str(self.held)!r}): time.sleep(0.05)\n"
        )
        path.chmod(0o755)
        fleet.ws.config(f"notifications.command={path}", "notifications.method=exec")
        fleet.ws.agent("tells", TELLS, HEADER)
        fleet.ws.agent("fails", "1 // 0\n")
        fleet.ws.ok("sync")

    @property
    def messages(self) -> list[dict[str, Any]]:
        """But digests: the clock goes on by months here."""
        return [message for message in self.read_all() if message["kind"] != "digest"]

    def read_all(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._kept.read_text().splitlines()] if self._kept.exists() else []


def test_a_push_that_is_rejected_tells_nobody(fleet: FleetOfOne, tmp_path: Path) -> None:
    receiver = Receiver(fleet, tmp_path)
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    run_git(fleet.ws.root, "push", "-q", "origin", "main:refs/heads/prepared")
    hook = fleet.shared / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    move = "env -u GIT_QUARANTINE_PATH git update-ref refs/heads/main refs/heads/prepared"
    hook.write_text(f"#!/bin/sh\n[ -e {tmp_path}/once ] || {{ : > {tmp_path}/once; {move}; }}\n")
    hook.chmod(0o755)
    fleet.owner("run", "acme", "tells", "--wait", "0", "--key", "once")
    assert "somebody has pushed meanwhile" in fleet.work("one", CLOCK).err
    (message,) = receiver.messages
    assert f"Run: {message['run']}" in run_git(fleet.shared, "log", "--format=%B", "main")
    assert message["run"] in message["key"]


def test_a_worker_that_is_killed_after_its_push_has_it_told_by_the_next_one_once(
    fleet: FleetOfOne, tmp_path: Path
) -> None:
    receiver = Receiver(fleet, tmp_path)
    fleet.work("one", CLOCK)
    fleet.kill_after_push(tmp_path, "tells")
    fleet.owner("run", "acme", "fails", "--wait", "0", "--key", "b")
    second = fleet.worker("two").start("--patience", "2")
    eventually(lambda: not fleet.owner.json("status")["requests"])
    assert "Traceback" not in end(second)
    (message,) = receiver.messages
    assert message["subject"].endswith("Two things")
    for name, seconds in (("one", 60), ("two", 120)):
        fleet.work(name, (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ"))
    (_, failure) = receiver.messages
    assert failure["kind"] == "failure" and failure["failures"][0]["agent"] == "fails"


def test_a_worker_that_is_killed_while_it_tells_has_it_told_again_under_the_same_key(
    fleet: FleetOfOne, tmp_path: Path
) -> None:
    receiver = Receiver(fleet, tmp_path)
    receiver.held.touch()
    fleet.owner("run", "acme", "tells", "--wait", "0", "--key", "a")
    first = fleet.worker("one").start("--patience", "2")
    eventually(lambda: receiver.messages)
    first.kill()
    first.communicate()
    receiver.held.unlink()
    second = fleet.worker("two").start("--patience", "2")
    eventually(lambda: len(receiver.messages) == 2)
    end(second)
    assert len({message["key"] for message in receiver.messages}) == 1


def test_a_worker_that_was_paused_after_its_push_tells_nothing_once_another_has(
    fleet: FleetOfOne, tmp_path: Path
) -> None:
    """Nor does it put back what it had known of the workspace."""
    receiver = Receiver(fleet, tmp_path)
    fleet.work("one", CLOCK)
    held = hold_push(fleet.shared, tmp_path, "post-receive")
    fleet.owner("run", "acme", "tells", "--wait", "0", "--key", "a")
    first = fleet.worker("one").start("--patience", "2")
    eventually(Path(f"{held}-waits").exists)
    paused = [first.pid, *list_descendants(first.pid)]
    try:
        signal_all(paused, signal.SIGSTOP)
        (fleet.shared / "hooks/post-receive").unlink()
        second = fleet.worker("two").start("--patience", "2")
        eventually(lambda: receiver.messages)
        fleet.owner.ok("run", "acme", "tells", "--key", "b")
        eventually(lambda: len(receiver.messages) == 2)
        assert "Traceback" not in end(second)
        head = tip_of(fleet.shared)
    finally:  # nothing outlives the test, however it ends
        held.unlink()
        signal_all(reversed(paused), signal.SIGCONT)
    said = end(first)
    assert len({message["key"] for message in receiver.messages}) == len(receiver.messages) == 2
    assert fleet.row()["head"] == head
    assert "another worker has taken this job over" in said and "Traceback" not in said, said


def signal_all(processes: Iterable[int], number: int) -> None:
    """Those that are there: a hook has others for a moment."""
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def test_a_digest_counts_the_runs_of_all_workers_and_names_the_workspace(fleet: FleetOfOne, tmp_path: Path) -> None:
    """No worker has the traces of another; and where its clone lies helps nobody."""
    receiver = Receiver(fleet, tmp_path)
    for name, key in (("one", "a"), ("two", "b"), ("one", "c")):
        fleet.owner("run", "acme", "fails", "--wait", "0", "--key", key)
        fleet.work(name, CLOCK)
    fleet.make_due(CLOCK)
    fleet.work("one", "2025-02-11T09:00:00Z")
    told = {message["kind"]: message for message in receiver.read_all()}
    assert told["digest"]["failed"] == {"fails": 3} and told["failure"]["count"] == 3
    assert "Look and decide: the page of your fleet, or cleared review in a clone of acme" in told["digest"]["text"]
    assert "The workspace is acme" in told["failure"]["text"]
    for message in told.values():
        assert message["workspace"] == "acme" and str(tmp_path) not in json.dumps(message), message


def test_a_failed_run_of_a_worker_that_is_killed_after_its_push_is_one_failure(
    fleet: FleetOfOne, tmp_path: Path
) -> None:
    receiver = Receiver(fleet, tmp_path)
    fleet.work("one", CLOCK)
    fleet.kill_after_push(tmp_path, "fails")
    second = fleet.worker("two").start("--patience", "2")
    ended = fleet.owner("run", "acme", "fails", "--key", "a", "--json")
    assert "Traceback" not in end(second)
    assert ended.code == 1 and ended.json["status"] == "failed" and "division" in ended.json["said"], ended
    failed = run_git(fleet.shared, "log", "--format=%H", "--grep=Outcome: failed", "main")
    assert failed.split() == [ended.json["commit"]]
    assert [run["status"] for run in fleet.fetch().json("run", "list") if run["agent"] == "fails"] == ["failed"]
    fleet.work("two", (datetime.now(UTC) + timedelta(seconds=90)).strftime("%Y-%m-%dT%H:%M:%SZ"))
    (failure,) = receiver.messages
    assert failure["count"] == 1


def test_a_job_is_a_span_with_its_runs_and_pushes(fleet: FleetOfOne) -> None:
    pytest.importorskip("opentelemetry.sdk")
    fleet.ws.agent("books", 'journal_add_double("2025-02-09", "a private matter", 5070, 1010, "1.00")\n1\n')
    fleet.ws.ok("sync")
    fleet.owner("run", "acme", "books", "--wait", "0", "--key", "asked-once")
    with collecting() as (variables, received):
        worker = fleet.worker("one")
        worker.variables = dict(variables)
        fleet.work("one", CLOCK)
    pairs = {("run books", "job of acme"), ("push", "job of acme"), ("journal_add_double", "run books")}
    assert pairs | {("job of acme", "")} <= read_parents(received, "acme")
    whole = b"".join(received)
    assert b"asked-once" in whole and fleet.row()["head"].encode() in whole and b"a private matter" not in whole
    assert fleet.row()["problem"] == ""
    clone = Workspace(worker.home / "fleet/clones/acme")
    (run,) = [each for each in clone.json("run", "list") if each["agent"] == "books"]
    assert "journal_add_double" in clone.ok("run", "show", run["run_id"]).out, "its trace stays there"
