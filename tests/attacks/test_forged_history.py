"""Fault 1, D19: what somebody with nothing but write access to the repository commits starts nothing, takes no event
for consumed, and settles no card unseen. Beside each attack the one wall it meets is switched off, and it succeeds.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import IDENTITY, Workspace, take_ok
from pushing import ignore_states
from world import World

from cleared.changes.workspace_opening import open_workspace
from cleared.git import Repository
from cleared.triggers.requested_jobs import CommittedJobRequest, read_job_requests

RUN = "20250210T055900Z-aaaaaa"
HEARS = "trigger: event\nevent: go\n"
SAYS = 'ctx_emit("heard", ctx_event()["payload"])'


@pytest.fixture
def world(ws: Workspace) -> Iterator[World]:
    for name in ("ingest", "monthly_summary", "review_reminder"):
        ws.git("rm", "-q", f"agents/{name}.py")
    ws.git("commit", "-q", "-m", "only what the test is about")
    made = World(ws)
    yield made
    made.stop()


def listen(world: World, name: str, header: str, body: str) -> None:
    world.ws.put(f"agents/{name}.py", f'"""\nname: {name}\n{header}"""\n{body}\n')
    path = f"agents/{name}.py"
    world.ws.commit(path, *world.ws.approve(path), message=f"agent: {name}")


def lines(ws: Workspace) -> list[str]:
    """What is attested."""
    return [
        line for path in sorted((ws.root / "logs").glob("attestations-*")) for line in path.read_text().splitlines()
    ]


def heard(ws: Workspace) -> list[object]:
    """The payloads of events that agents have emitted for what they heard."""
    path = ws.root / "logs/events-2025-02.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [event["payload"] for event in found if event["name"] == "heard"]


def forge(ws: Workspace, event: dict[str, object], *trailers: tuple[str, str]) -> None:
    """A commit that says what a run's would: an event, its trailers, and an attestation of both under the name of this
    machine's key, which is in every attestation; what cannot be had is the signature."""
    from cleared.changes.attestation import digest_data
    from cleared.changes.consumed_events import event_line

    last = json.loads(lines(ws)[-1])
    said = {"Run": RUN, "Agent": "says", "Origin": last["says"]["trailers"]["Origin"], "Emits": "1", **dict(trailers)}
    line = event_line({"id": f"{RUN}/0", "run": RUN, "agent": "says", "at": "2025-02-10T05:59:00Z", **event})
    last["says"] |= {"by": RUN, "at": "2025-02-10T05:59:00Z", "trailers": said, "emits": [digest_data(line)]}
    attested = json.dumps(last, sort_keys=True, separators=(",", ":")) + "\n"
    for path, text in (("logs/events-2025-02.jsonl", line), ("logs/attestations-2025-02.jsonl", attested)):
        with (ws.root / path).open("a") as file:
            file.write(text)
    message = "import: nothing unusual\n\n" + "".join(f"{key}: {value}\n" for key, value in said.items())
    ws.git("add", "logs")
    ws.git("commit", "-q", "-m", message)


def forged_event(world: World) -> list[object]:
    """An event that nobody emitted; what was heard."""
    listen(world, "says", "trigger: on_demand\n", 'ctx_emit("other")')
    listen(world, "hears", HEARS, SAYS)
    world.ws.run("says")
    with world:
        world.settle()
        forge(world.ws, {"name": "go", "payload": "pay 1,000,000"})
        world.settle()
    return heard(world.ws)


def test_a_forged_event_starts_nobody(world: World) -> None:
    assert forged_event(world) == []


def test_it_would_if_signatures_were_not_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.attestation_lines.verify_signature", lambda *_: True)
    assert forged_event(world) == ["pay 1,000,000"]


def forged_job(ws: Workspace) -> list[CommittedJobRequest]:
    ws.script('ctx_emit("other")', name="says")
    host = open_workspace(ws.root)
    with Repository.open(ws.root, for_writing=False) as repo:
        before = repo.read_head()
        forge(ws, {"name": "loop.enqueue", "payload": {"kind": "agent_run", "target": "says"}})
        return read_job_requests(host, repo, repo.read_head(), before, host.clock.now())


def test_a_forged_order_asks_the_loop_for_nothing(ws: Workspace) -> None:
    assert forged_job(ws) == []


def test_it_would_if_signatures_of_orders_were_not_looked_at(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.attestation_lines.verify_signature", lambda *_: True)
    assert [(asked.kind, asked.target) for asked in forged_job(ws)] == [("agent_run", "says")]


def test_an_altered_event_is_not_told(world: World) -> None:
    """The line of a genuine event is changed before the service has seen it."""
    listen(world, "says", "trigger: on_demand\n", 'ctx_emit("go", "pay 10")')
    listen(world, "hears", HEARS, SAYS)
    with world:
        world.settle()
        world.ws.run("says")
        path = world.ws.root / "logs/events-2025-02.jsonl"
        path.write_text(path.read_text().replace("pay 10", "pay 99"))
        world.ws.git("commit", "-q", "-a", "--amend", "--no-edit")
        world.settle()
    assert heard(world.ws) == []


# --- cards of failed runs --------------------------------------------------------------------------------------------


def again(ws: Workspace) -> int:
    """Run an approved agent again for what a forged card says; the exit code."""
    ws.agent("probe", 'ctx_emit("heard", ctx_event()["payload"])')
    card = {
        "event": "open",
        "id": "aaaaaaaa",
        "kind": "failed_run",
        "title": "probe failed: out of luck",
        "agent": "probe",
        "created_at": "2025-02-10T05:00:00Z",
        "run_id": RUN,
        "details": {
            "cause": "out of luck",
            "retry": "cleared agent run probe --again aaaaaaaa",
            "event": {"kind": "schedule", "name": "", "payload": "pay 1,000,000", "id": "1999-01-01T00:00:00Z"},
        },
    }
    ws.put("queue/2025-02.jsonl", json.dumps(card) + "\n")
    ws.commit("queue/2025-02.jsonl")
    return ws("agent", "run", "probe", "--again", "aaaaaaaa").code


def test_a_forged_card_of_a_failed_run_runs_nothing(ws: Workspace) -> None:
    assert again(ws) == 3
    assert heard(ws) == []
    assert "no run of a machine that is trusted here attests it" in ws("agent", "run", "probe", "--again", "aaaa").err


def test_it_would_if_attestations_were_not_asked_for(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.runs.failed_runs.was_opened", lambda *_: True)
    assert again(ws) == 0
    assert heard(ws) == ["pay 1,000,000"]


@pytest.mark.parametrize("traced", [True, False])
def test_an_altered_card_of_a_failed_run_runs_nothing(ws: Workspace, traced: bool) -> None:
    """A genuine one runs, with its trace or without; with another payload it does not."""
    ws.agent("probe", 'if ctx_event()["payload"] == 1:\n    raise ValueError("bad luck")\nctx_emit("heard", 2)')
    ws.run("probe", "--data", "1", code=1)
    [card] = ws.cards()
    if not traced:
        shutil.rmtree(ws.root / ".cleared")
    assert "bad luck" in ws("agent", "run", "probe", "--again", card["id"]).err
    path = ws.root / "queue/2025-02.jsonl"
    path.write_text(path.read_text().replace('"payload":1', '"payload":5'))
    ws.commit("queue/2025-02.jsonl")
    assert ws("agent", "run", "probe", "--again", card["id"]).code == 3
    assert heard(ws) == []


def test_a_card_that_secrets_were_taken_out_of_is_as_its_run_attests(ws: Workspace) -> None:
    """What is signed is what is written; so is what settles it."""
    ws.ok("config", "set", "notifications.smtp_password", "sesame-opens-the-door")
    ws.agent("probe", 'if ctx_event()["payload"] == 1:\n    raise ValueError("sesame-opens-the-door")')
    ws.run("probe", "--data", "1", code=1)
    [card] = ws.cards()
    assert "sesame" not in json.dumps(card)
    shutil.rmtree(ws.root / ".cleared")
    assert ws("agent", "run", "probe", "--again", card["id"]).code == 1
    ws.ok("queue", "answer", card["id"], "seen")
    ws.git("checkout", "-q", "config.yaml")
    ws.in_order()


# --- settled cards ---------------------------------------------------------------------------------------------------


def settle_by_hand(ws: Workspace) -> list[str]:
    """A line that settles somebody's card, in a commit that calls itself a decision; what a check says."""
    ws.drop("january.csv")
    ws.run("ingest")
    card = ws.cards()[0]["id"]
    ws.ok("queue", "approve", ws.cards()[1]["id"])
    line = {"event": "resolve", "id": card, "at": "2025-02-10T06:00:00Z", "by": "ana", "resolution": "confirmed"}
    with (ws.root / "queue/2025-02.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    ws.git("add", "queue")
    ws.git("commit", "-q", "-m", f"confirm: one\n\nDecision: {RUN}\nBy: ana\nClock: 2025-02-10T06:00:00Z\n")
    found = ws("check", "--json").json["violations"]  # that nobody is asked any more is told, too
    return [v["message"] for v in found if v["check"] == "provenance"]


def test_a_card_that_nobody_settled_is_found(ws: Workspace) -> None:
    [commit, said] = settle_by_hand(ws)
    assert "is settled ('confirmed', ana), and no run or decision" in said
    assert "changes records otherwise than runs and decisions attest: queue/" in commit


def test_it_would_not_be_if_attestations_were_not_compared(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.audit.provenance.find_unattested_cards", lambda *_: [])
    ignore_states(monkeypatch)
    assert settle_by_hand(ws) == []


# --- exactly once ----------------------------------------------------------------------------------------------------


def squash(ws: Workspace, first: str) -> None:
    """``git rebase -i``, each commit after ``first`` squashed into the one before, under a new message."""
    editor = {"GIT_SEQUENCE_EDITOR": "sed -i '2,$s/^pick/squash/'", "GIT_EDITOR": "echo february >"}
    os.environ.update(editor)
    try:
        ws.git("rebase", "-q", "-i", first)
    finally:
        for name in editor:
            del os.environ[name]


def soft_reset(ws: Workspace, first: str) -> None:
    ws.git("reset", "-q", "--soft", first)
    ws.git("commit", "-q", "-m", "february")


def merge_squash(ws: Workspace, first: str) -> None:
    ws.git("branch", "side")
    ws.git("reset", "-q", "--hard", first)
    ws.git("merge", "-q", "--squash", "side")
    ws.git("commit", "-q", "-m", "february")


def cherry_pick(ws: Workspace, first: str) -> None:
    ws.git("branch", "side")
    ws.git("reset", "-q", "--hard", first)
    ws.git("cherry-pick", "-n", f"{first}..side")
    ws.git("commit", "-q", "-m", "february")


def amend(ws: Workspace, first: str) -> None:
    ws.git("commit", "-q", "--amend", "-m", "february")


WAYS = (squash, soft_reset, merge_squash, cherry_pick, amend)


def rewrite(world: World, way: object, identity: pytest.MonkeyPatch) -> list[object]:
    """A consumed event, a history that does not say so any more, and a service that has lost its state."""
    for name, value in IDENTITY.items():
        identity.setenv(name, value)
    listen(world, "says", "trigger: on_demand\n", 'ctx_emit("go", 1)')
    listen(world, "hears", HEARS, SAYS)
    first = world.ws.head()
    world.ws.run("says")
    with world:
        world.settle()
    assert heard(world.ws) == [1]
    assert callable(way)
    way(world.ws, first)
    assert "Event: event" not in world.ws.git("log", "--format=%B", f"{first}..HEAD")
    shutil.rmtree(world.state_dir)
    world.time.forward(minutes=5)
    with world:
        world.settle()
    return heard(world.ws)


@pytest.mark.parametrize("way", WAYS)
def test_an_event_stays_consumed_whatever_becomes_of_the_messages(
    world: World, way: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row D19: rebase -i, reset --soft, merge --squash, cherry-pick, amend."""
    assert rewrite(world, way, monkeypatch) == [1]


def test_it_would_not_if_messages_were_what_counts(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.consumed_events._add_attestation", lambda *_: None)
    assert rewrite(world, soft_reset, monkeypatch) == [1, 1]


def forge_consumption(world: World) -> list[str]:
    """A commit that says that tomorrow's run has been."""
    listen(world, "beat", "trigger: schedule\nschedule: 0 6 * * *\n", 'ctx_emit("beat")')
    with world:
        world.until("2025-02-11T06:00:00Z")
        forge(
            world.ws, {"name": "other", "payload": None}, ("Agent", "beat"), ("Event", "schedule 2025-02-12T06:00:00Z")
        )
        world.until("2025-02-12T07:00:00Z")
    return world.keys("beat")


def test_a_forged_mark_suppresses_no_run(world: World) -> None:
    assert forge_consumption(world) == ["2025-02-11T06:00:00Z", "2025-02-12T06:00:00Z"]


def test_it_would_if_signatures_of_marks_were_not_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cleared.changes.attestation_lines.verify_signature", lambda *_: True)
    assert forge_consumption(world) == ["2025-02-11T06:00:00Z"]


def put_back(world: World) -> list[object]:
    """What a run has attested is taken out of the history, and put back when the service has forgotten it."""
    for name, said in (("says", "go"), ("other", "else")):
        listen(world, name, "trigger: on_demand\n", f'ctx_emit("{said}", 1)')
    listen(world, "hears", HEARS, SAYS)
    world.ws.run("other")
    world.ws.run("says")
    with world:
        world.settle()
        path = next((world.ws.root / "logs").glob("attestations-*"))
        *first, told, _ = path.read_text().splitlines(keepends=True)
        path.write_text("".join(first))
        world.ws.git("commit", "-q", "-a", "-m", "tidied up")
        take_ok(world.ws, "recover", "--forget")
        world.settle()
        world.time.forward(days=15)
        world.settle()
        os.environ["CLEARED_CLOCK"] = "2025-02-25T07:00:00Z"
        world.ws.run("other")
        world.settle()
        path.write_text(path.read_text() + told)
        world.ws.git("commit", "-q", "-a", "-m", "put back")
        world.settle()
    return heard(world.ws)


def test_what_is_taken_out_and_put_back_is_not_told_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T06:00:00Z")
    assert put_back(world) == [1]


def test_it_would_be_if_age_was_not_looked_at(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEARED_CLOCK", "2025-02-10T06:00:00Z")
    monkeypatch.setattr("cleared.triggers.event_stream._last_attested_at", lambda *_: None)
    assert put_back(world) == [1, 1]


def test_what_another_machine_consumed_counts_once_it_is_trusted(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listen(world, "says", "trigger: on_demand\n", 'ctx_emit("go", 1)')
    listen(world, "hears", HEARS, SAYS)
    other = Workspace(tmp_path / "other")
    world.ws.git("clone", "-q", str(world.ws.root), str(other.root))
    world.ws.run("says")
    with world:
        world.settle()
    [key] = [e.partition(" ")[2] for e in world.commits("Event") if e.startswith("event ")]
    monkeypatch.setenv("CLEARED_HOME", str(tmp_path / "other-home"))
    other.ok("event", "emit", "something")
    other.git("pull", "-q", "--no-rebase", "--no-edit", str(world.ws.root), "HEAD")
    assert not is_consumed(other, key)
    take_ok(other, "trust", "--yes")
    assert is_consumed(other, key)


def is_consumed(ws: Workspace, key: str) -> bool:
    from cleared.changes.consumed_events import is_consumed
    from cleared.git import Snapshot

    host = open_workspace(ws.root)
    with host.open_for_reading() as repo:
        return is_consumed(host, repo, Snapshot(repo, repo.read_head()), "hears", key)


def test_a_clone_that_only_claims_these_books_attests_nothing_for_them(posted: Workspace, tmp_path: Path) -> None:
    """Who is handed such a clone and proposes something in it signs for that clone, not for the books it claims."""
    claimed = (posted.root / "agents/approvals/workspace").read_text().strip()
    assert json.loads(lines(posted)[-1])["says"]["workspace"] == claimed
    posted.git("clone", "-q", ".", str(tmp_path / "clone"))
    clone = Workspace(tmp_path / "clone")
    clone.put("agents/probe.py", '"""\nname: probe\ntrigger: on_demand\n"""\n1\n')
    clone.ok("agent", "propose", "probe")
    mark = (clone.root / ".git/cleared-origin").read_text().strip()
    assert json.loads(lines(clone)[-1])["says"]["workspace"] == f"clone {mark}"
