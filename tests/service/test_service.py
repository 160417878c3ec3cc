"""What the service does with schedules, files, events and answers, on a clock that is moved by hand."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Workspace, chase, refused, take_ok, trust_books, unchanged
from synced import follow
from world import World, instants

BEAT = 'ctx_emit("beat", {"due": ctx_event()["payload"]["due"]})\n'


@pytest.fixture
def world(ws: Workspace) -> Iterator[World]:
    for name in ("ingest", "monthly_summary", "review_reminder"):
        ws.git("rm", "-q", f"agents/{name}.py")
    ws.git("commit", "-q", "-m", "only what the test is about")
    made = World(ws)
    yield made
    made.stop()


def agent(world: World, name: str, header: str, body: str) -> None:
    text = f'"""\nname: {name}\n{header}"""\n{body}\n'
    path = f"agents/{name}.py"
    world.ws.put(path, text)
    world.ws.commit(path, *world.ws.approve(path), message=f"agent: {name}")


# --- schedules -------------------------------------------------------------------------------------------------------


def test_c1_a_schedule_fires_once_when_the_clock_crosses_its_time(world: World) -> None:
    """Row C1."""
    agent(world, "beat", "trigger: schedule\nschedule: 0 6 * * *\n", BEAT)
    world.time.at = world.time.at.replace(hour=5, minute=59, second=50)
    with world:
        world.until("2025-02-10T05:59:59Z")
        assert world.keys("beat") == []
        world.until("2025-02-10T06:00:00Z")
        assert world.keys("beat") == instants("2025-02-10T06:00")
        world.until("2025-02-11T05:59:59Z")
        assert len(world.ran()) == 1
        world.until("2025-02-12T07:00:00Z")
    assert world.keys("beat") == instants("2025-02-10T06:00", "2025-02-11T06:00", "2025-02-12T06:00")
    assert [e for e in world.commits("Event") if e.startswith("schedule")] == [
        f"schedule {at}" for at in world.keys("beat")
    ]


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        ("none", []),
        ("latest", ["2025-02-12T05:00"]),
        ("all", [f"2025-02-{d:02}T{h:02}:00" for d in (10, 11, 12) for h in range(24)][7 : 7 + 48 - 1]),
    ],
)
def test_c2_two_days_down_are_made_up_for_as_configured(world: World, catch_up: str, expected: list[str]) -> None:
    """Row C2: 48 hours down."""
    agent(world, "beat", f"trigger: schedule\nschedule: 0 * * * *\ncatch_up: {catch_up}\n", BEAT)
    with world:
        world.until("2025-02-10T06:30:00Z")
        ran = len(world.ran())
    world.time.at = world.time.at.replace(day=12, hour=5, minute=59)
    if catch_up == "all":
        expected = [e for e in expected if e <= "2025-02-12T05:00"]
    with world:
        world.settle()
        assert world.keys("beat")[ran:] == instants(*expected)
        world.until("2025-02-12T06:00:00Z")
        assert world.keys("beat")[ran:] == instants(*expected, "2025-02-12T06:00")


def test_c2_a_machine_that_slept_makes_up_for_it_too(world: World) -> None:
    agent(world, "beat", "trigger: schedule\nschedule: 0 * * * *\ncatch_up: latest\n", BEAT)
    with world:
        world.settle()
        world.time.forward(hours=5, minutes=30)
        world.settle()
        assert world.keys("beat") == instants("2025-02-10T11:00")


def test_c2_clocks_that_are_set_lose_nothing_and_double_nothing(world: World) -> None:
    """Row C2: daylight saving, through the whole service."""
    agent(world, "gap", "trigger: schedule\nschedule: 30 1 * * *\ntimezone: Europe/London\n", BEAT)
    world.time.at = world.time.at.replace(month=3, day=29, hour=12)
    with world:
        world.until("2025-03-31T12:00:00Z")
    assert world.keys("gap") == instants("2025-03-30T01:00", "2025-03-31T00:30")
    world.time.at = world.time.at.replace(month=10, day=25, hour=12)
    with world:  # the months between are one missed time made up for
        world.settle()
        before = len(world.ran())
        world.until("2025-10-27T12:00:00Z")
    assert world.keys("gap")[before:] == instants("2025-10-26T00:30", "2025-10-27T01:30")


def test_a_clock_that_is_set_back_repeats_nothing(world: World) -> None:
    agent(world, "beat", "trigger: schedule\nschedule: 0 * * * *\n", BEAT)
    with world:
        world.until("2025-02-10T09:30:00Z")
        world.time.forward(hours=-3)
        world.until("2025-02-10T10:30:00Z")
    assert world.keys("beat") == instants(
        "2025-02-10T07:00", "2025-02-10T08:00", "2025-02-10T09:00", "2025-02-10T10:00"
    )


def test_without_its_state_a_schedule_goes_on_from_the_history(world: World) -> None:
    agent(world, "beat", "trigger: schedule\nschedule: 0 * * * *\ncatch_up: all\n", BEAT)
    with world:
        world.until("2025-02-10T08:30:00Z")
    shutil.rmtree(world.state_dir)
    world.time.at = world.time.at.replace(hour=11)
    with world:
        world.settle()
    hours = instants(*(f"2025-02-10T{hour:02}:00" for hour in range(7, 12)))
    assert world.commits("Event") == [f"schedule {at}" for at in hours]


def test_a_new_agent_makes_up_for_nothing(world: World) -> None:
    agent(world, "old", "trigger: schedule\nschedule: 0 6 * * *\n", BEAT)
    with world:
        world.until("2025-02-10T12:00:00Z")
        agent(world, "new", "trigger: schedule\nschedule: 0 * * * *\ncatch_up: all\n", BEAT)
        world.settle()
        assert world.keys("new") == []
        world.until("2025-02-10T13:00:00Z")
        assert world.keys("new") == instants("2025-02-10T13:00")


def test_jitter_delays_by_less_than_said_and_always_by_the_same(world: World) -> None:
    agent(world, "beat", "trigger: schedule\nschedule: 0 * * * *\njitter: 10m\n", BEAT)
    with world:
        world.until("2025-02-10T07:00:00Z")
        first = world.service.view.inbox.next_due_at() if world.service else None
    with world:
        world.settle()
        assert first is not None and world.service is not None
        assert first == world.service.view.inbox.next_due_at() and 0 < (first - world.time.at).total_seconds() < 600
        world.until("2025-02-10T07:10:00Z")
    assert world.keys("beat") == instants("2025-02-10T07:00")


@pytest.mark.parametrize(("overlap", "expected"), [("skip", 1), ("queue", 4)])
def test_c6_a_second_trigger_of_a_running_agent_is_skipped_or_queued(world: World, overlap: str, expected: int) -> None:
    """Row C6."""
    agent(world, "slow", f"trigger: schedule\nschedule: '*/10 * * * *'\noverlap: {overlap}\n".replace("'", ""), BEAT)
    world.before_run = lambda name, event: world.time.forward(minutes=35) and None if not world.ran() else None
    with world:
        world.until("2025-02-10T06:10:00Z")
        assert len(world.ran("slow")) == expected
    skipped = [row["due"] for row in world.log("schedule.skipped")]
    assert skipped == (
        instants("2025-02-10T06:20", "2025-02-10T06:30", "2025-02-10T06:40") if overlap == "skip" else []
    )


# --- approved only ---------------------------------------------------------------------------------------------------


def test_c7_a_hand_edited_agent_is_not_triggered_until_approved(world: World) -> None:
    """Rows C7, D17: edited in the working tree (the approved version goes on), then committed by hand (nothing runs),
    then approved, with the service up all the time."""
    agent(world, "beat", "trigger: schedule\nschedule: 0 * * * *\n", BEAT)
    path = "agents/beat.py"
    with world:
        world.until("2025-02-10T07:00:00Z")
        world.ws.put(path, world.ws.read(path) + "ctx_log('changed')\n")
        world.until("2025-02-10T08:00:00Z")
        world.ws.commit(path)
        world.until("2025-02-10T09:00:00Z")
        assert world.keys("beat") == instants("2025-02-10T07:00", "2025-02-10T08:00")
        assert [row["key"] for row in world.log("run.refused")] == instants("2025-02-10T09:00")
        world.ws.commit(*world.ws.approve(path))
        world.until("2025-02-10T10:00:00Z")
    assert world.keys("beat") == instants("2025-02-10T07:00", "2025-02-10T08:00", "2025-02-10T10:00")


def test_an_event_for_an_agent_that_may_not_run_is_kept_until_it_may(world: World) -> None:
    agent(world, "hears", "trigger: event\nevent: ping\n", 'ctx_emit("heard")')
    path = "agents/hears.py"
    with world:
        text = world.ws.read(path)
        world.ws.put(path, text + "# edited\n")
        world.ws.commit(path)
        world.ws.ok("event", "emit", "ping")
        world.settle()
        assert world.waiting() == [("hears", "event", "held")]
        world.ws.put(path, text)
        world.ws.commit(path)
        world.forward(seconds=61)
        assert len(world.ran("hears")) == 1 and world.waiting() == []


def test_a_rollback_takes_effect_at_once(world: World) -> None:
    agent(world, "beat", "trigger: schedule\nschedule: 0 * * * *\n", BEAT)
    with world:
        world.until("2025-02-10T07:00:00Z")
        world.ws.ok("agent", "rollback", "beat", "--reason", "no")
        world.until("2025-02-10T09:00:00Z")
    assert world.keys("beat") == instants("2025-02-10T07:00")


# --- events ----------------------------------------------------------------------------------------------------------


def test_c5_an_emitted_event_runs_those_who_listen_after_the_commit(world: World) -> None:
    """Row C5: ``ctx_emit`` runs listeners, with the payload and the chain recorded."""
    agent(world, "says", "trigger: on_demand\n", 'ctx_emit("statement.read", {"rows": 3})')
    agent(world, "hears", "trigger: event\nevent: [statement.*]\n", 'e = ctx_event()\nctx_emit("got", e)\ne')
    agent(world, "deaf", "trigger: event\nevent: [other]\n", 'ctx_emit("got")')
    with world:
        world.settle()
        first = world.ws.run("says")["run_id"]
        world.settle()
        assert len(world.ran("hears")) == 1 and world.ran("deaf") == []
        got = world.ws.json("run", "show", world.ran("hears")[0]["run"])["result"]
    assert got == {"id": f"{first}/0", "kind": "event", "name": "statement.read", "payload": {"rows": 3}}
    assert f"event {first}/0" in world.commits("Event")


def test_an_event_emitted_while_the_service_was_down_is_delivered_once(world: World) -> None:
    agent(world, "says", "trigger: on_demand\n", 'ctx_emit("ping")')
    agent(world, "hears", "trigger: event\nevent: ping\n", "ctx_log('heard')")
    world.ws.run("says")
    for _ in range(3):
        with world:
            world.settle()
    assert len(world.ran("hears")) == 1, "a run without effects is remembered here, though it made no commit"


def test_without_its_state_the_service_delivers_what_is_undelivered_and_nothing_else(world: World) -> None:
    agent(world, "says", "trigger: on_demand\n", 'ctx_emit("ping", ctx_now())')
    agent(world, "hears", "trigger: event\nevent: ping\n", 'ctx_emit("heard", ctx_event()["id"])')
    with world:
        world.ws.run("says")
        world.settle()
    second = world.ws.run("says")["run_id"]
    shutil.rmtree(world.state_dir)
    world.time.forward(minutes=5)
    with world:
        world.settle()
    delivered = [e for e in world.commits("Event") if e.startswith("event ")]
    assert len(delivered) == 2 and delivered[-1] == f"event {second}/0"


def test_a_clone_delivers_nothing_that_another_workspace_committed(world: World, tmp_path: Path) -> None:
    agent(world, "says", "trigger: on_demand\n", 'ctx_emit("ping")')
    agent(world, "hears", "trigger: event\nevent: [ping, run.*, card.*]\n", 'ctx_emit("heard")')
    world.ws.run("says")
    there = tmp_path / "clone"
    world.ws.git("clone", "-q", str(world.ws.root), str(there))
    trust_books(there)
    clone = World(Workspace(there))
    with clone:
        clone.settle()
        assert clone.ran() == []
        clone.ws.run("says")
        clone.settle()
        assert {row["agent"] for row in clone.ran()} == {"hears"}, "its own it does"


def test_c5_ping_pong_is_stopped_with_a_card_that_shows_the_cycle(world: World) -> None:
    """Row C5: A ↔ B."""
    agent(world, "ping", "trigger: event\nevent: pong\n", 'ctx_emit("ping")')
    agent(world, "pong", "trigger: event\nevent: ping\n", 'ctx_emit("pong")')
    with world:
        world.ws.ok("event", "emit", "ping")
        world.settle()
        assert len(world.ran()) == 8, "triggers.max_depth"
        [card] = world.ws.cards()
        assert card["kind"] == "event_cycle" and "pong → ping → pong" in card["title"]
        assert len(card["details"]["chain"]) == 9 and world.waiting() == []
        world.forward(hours=2)
        assert len(world.ran()) == 8 and len(world.ws.cards()) == 1


SPOKEN = "new transactions imported"


@pytest.mark.parametrize(
    "header",
    [f"event: {SPOKEN}", f'event: "{SPOKEN}"', f"event: [till.*, {SPOKEN}]", "event: new * imported"],
)
def test_c5_an_event_has_a_name_of_several_words(world: World, header: str) -> None:
    """Row C5: by a script, by hand and in a header; its trailers, its dry run and its failure read as any other's."""
    agent(world, "hears", f"trigger: event\n{header}\n", "ctx_emit('heard it')\nctx_event()['name']")
    agent(world, "says", "", f"ctx_emit({SPOKEN!r}, {{'n': 2}})")
    with world:
        world.ws.run("says")
        world.settle()
        world.ws.ok("event", "emit", SPOKEN, "--data", '{"n": 3}')
        world.settle()
        assert len(world.ran("hears")) == 2 and world.waiting() == []
        assert world.ws.git("log", "-2", "--format=%s").splitlines()[1] == f"event: {SPOKEN}"
        names = [json.loads(line)["name"] for line in world.ws.read("logs/events-2025-02.jsonl").splitlines()]
        assert names == [SPOKEN, "heard it", SPOKEN, "heard it"]
    assert world.ws.run("hears", "--dry-run")["result"] == ""
    world.ws.in_order()


@pytest.mark.parametrize(
    "name", ["New x", "new  x", "new x ", " new", "new.x y", "new\ttab", "", "x" * 101, "run.failed"]
)
def test_what_is_no_name_of_an_event_is_refused(ws: Workspace, name: str) -> None:
    with unchanged(ws):
        refused(ws("event", "emit", name), 2)
    assert ws.script(f"ctx_emit({name!r})", code=1)["error"]["primitive"] == "ctx_emit"


def test_an_agent_that_events_start_too_often_waits_and_says_so(world: World) -> None:
    world.ws.config("triggers.max_event_runs=3")
    agent(world, "hears", "trigger: event\nevent: tick\n", "ctx_log('x')")
    with world:
        for _ in range(5):
            world.ws.ok("event", "emit", "tick")
        world.settle()
        assert len(world.ran("hears")) == 3
        [card] = world.ws.cards()
        assert card["kind"] == "event_cycle" and "3 times within an hour" in card["title"]
        world.forward(hours=1, minutes=1)
        assert len(world.ran("hears")) == 5, "nothing is lost"


def test_built_in_events_are_told_to_those_who_listen(world: World) -> None:
    """run.succeeded, run.failed, proposal.approved, card.resolved, import.new."""
    names = "[run.*, proposal.approved, card.resolved, import.new]"
    agent(world, "hears", f"trigger: event\nevent: {names}\n", 'e = ctx_event()\nctx_log(e["name"])\ne')
    agent(
        world,
        "books",
        "trigger: on_demand\n",
        (
            'for f in importer_scan():\n    for t in importer_parse(f["name"]):\n'
            '        journal_add_double(date=t["date"], description="x", debit_account=1010, credit_account=4010,'
            ' amount=abs(t["amount"]), reference=t["reference"])\n    importer_mark_processed(f["name"])\n'
        ),
    )
    agent(world, "fails", "trigger: on_demand\n", "1 / 0")
    with world:
        world.ws.drop("jan.csv", chase(("01/03/2025", "A", "5.00")))
        world.ws.run("books")
        world.ws.run("fails", code=1)
        world.ws.ok("queue", "approve", "2025-01-001")
        world.ws.put("agents/new.py", '"""\nname: new\ntrigger: on_demand\n"""\nctx_log("x")\n')
        world.ws.ok("agent", "propose", "new")
        take_ok(world.ws, "agent", "approve", "P1")
        world.settle()
        told = [world.ws.json("run", "show", row["run"])["result"] for row in world.ran("hears")]
    names_told = [t["name"] for t in told]
    assert names_told == ["run.succeeded", "import.new", "run.failed", "card.resolved", "proposal.approved"] or (
        sorted(names_told[:2]) == ["import.new", "run.succeeded"]
    )
    by_name = {t["name"]: t["payload"] for t in told}
    assert by_name["import.new"]["files"][0]["name"] == "jan.csv"
    assert by_name["run.failed"]["agent"] == "fails"
    assert by_name["card.resolved"]["cards"][0]["resolution"] == "approved"
    assert by_name["proposal.approved"]["proposal"].startswith("P1-")


def test_what_emits_when_it_succeeds_and_hears_that_comes_to_an_end(world: World) -> None:
    agent(world, "echo", "trigger: event\nevent: run.succeeded\n", 'ctx_emit("x")')
    agent(world, "says", "trigger: on_demand\n", 'ctx_emit("y")')
    with world:
        world.ws.run("says")
        world.settle()
    assert len(world.ran("echo")) == 8 and [c["kind"] for c in world.ws.cards()] == ["event_cycle"]


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_run_that_fails_is_tried_again_with_growing_pauses_then_given_up(world: World) -> None:
    agent(world, "fails", "trigger: schedule\nschedule: 0 7 * * *\nretries: 3\n", "1 / 0")
    agent(world, "beat", "trigger: schedule\nschedule: 0 7 * * *\n", BEAT)
    with world:
        world.until("2025-02-10T07:00:00Z")
        assert len(world.log("run.failed")) == 1 and len(world.ran("beat")) == 1, "the others go on"
        world.until("2025-02-10T07:00:09Z")
        assert len(world.log("run.failed")) == 1
        world.until("2025-02-10T07:00:10Z")
        assert len(world.log("run.failed")) == 2
        world.until("2025-02-10T07:01:30Z")
        assert len(world.log("run.failed")) == 4 and len(world.log("delivery.given_up")) == 1
        world.until("2025-02-10T12:00:00Z")
        assert len(world.log("run.failed")) == 4
    assert [c["kind"] for c in world.ws.cards()] == ["failed_run"], "the same failure is one card"
    assert world.commits("Attempt") == ["schedule 2025-02-10T07:00:00Z"] * 4
    assert world.commits("Event") == ["schedule 2025-02-10T07:00:00Z"], "the failed ones consume nothing"


@contextlib.contextmanager
def mended_by_the_second_try(world: World, header: str = "") -> Iterator[None]:
    """A run for an event fails, for an account that is missing; after the block it is there, and it is tried again."""
    agent(
        world,
        "hears",
        f"trigger: event\nevent: ping\n{header}",
        'journal_add_double(date="2025-02-01", description="x", debit_account=5030, credit_account=1010, amount=1)',
    )
    chart = "accounts/chart-of-accounts.csv"
    good = world.ws.read(chart)
    with world:
        world.ws.put(chart, "".join(line for line in good.splitlines(True) if not line.startswith("5030")))
        world.ws.commit(chart)
        world.ws.ok("event", "emit", "ping")
        world.settle()
        yield
        world.ws.put(chart, good)
        world.ws.commit(chart)
        world.forward(seconds=15)


def test_a_run_that_fails_once_is_done_at_the_second_try(world: World) -> None:
    with mended_by_the_second_try(world):
        assert len(world.log("run.failed")) == 1
    assert len(world.ran("hears")) == 1
    assert len(world.ws.entries()) == 1


def test_n6_a_budget_that_trips_under_a_trigger_stops_the_run_and_nothing_is_committed(world: World) -> None:
    """Row N6: one cent over."""
    body = 'journal_add_double(date="2025-02-01", description="x", debit_account=5030, credit_account=1010, amount={})'
    head = "trigger: schedule\nschedule: 0 7 * * *\nretries: 0\nmax_total: 10.00\n"
    agent(world, "over", head, body.format("10.01"))
    agent(world, "within", head, body.format("10.00"))
    with world:
        world.until("2025-02-10T07:00:30Z")
    assert [row["agent"] for row in world.log("run.failed")] == ["over"]
    assert [e["agent"] for e in world.ws.entries()] == ["within"] if "agent" in world.ws.entries()[0] else True
    assert len(world.ws.entries()) == 1
    [card] = [c for c in world.ws.cards() if c["kind"] == "failed_run"]
    assert "max_total" in card["details"]["cause"]


def test_a_workspace_in_trouble_runs_nothing_and_loses_nothing(world: World) -> None:
    agent(world, "hears", "trigger: event\nevent: ping\n", 'ctx_emit("heard")')
    with world:
        world.ws.ok("event", "emit", "ping")
        log = world.ws.root / "logs/agent-log-2025-02.csv"
        text = log.read_bytes()
        log.write_bytes(text + b"by hand\n")
        world.settle()
        assert (
            world.ran() == []
            and world.service is not None
            and "differ from the last commit" in str(world.service.problem)
        )
        log.write_bytes(text)
        world.forward(seconds=31)
        assert len(world.ran("hears")) == 1 and world.service.problem is None


# --- files -----------------------------------------------------------------------------------------------------------

TAKE = (
    'total = 0\nfor f in importer_scan():\n    for t in importer_parse(f["name"]):\n        total = total + 1\n'
    '        if "POISON" in t["description"]:\n            1 / 0\n'
    '        journal_add_double(date=t["date"], description=t["description"], debit_account=1010, credit_account=4010,'
    ' amount=abs(t["amount"]), reference=t["reference"])\n    importer_mark_processed(f["name"])\ntotal\n'
)
IN = chase(*((f"01/0{n}/2025", f"INVOICE {n}", "5.00", f"{n * 5}.00") for n in range(1, 5)))
WATCH = "trigger: file_watch\nwatch: import/\n"


def test_c4_files_dropped_while_it_was_down_are_handled_at_start_once(world: World) -> None:
    """Row C4."""
    agent(world, "take", WATCH, TAKE)
    world.ws.drop("january.csv", IN)
    for _ in range(2):
        with world:
            world.settle()
    assert len(world.ran("take")) == 1 and len(world.ws.entries()) == 4


def test_many_files_at_once_are_one_run(world: World) -> None:
    agent(world, "take", WATCH, TAKE)
    with world:
        for n in range(300):
            world.ws.drop(f"{n}.csv", chase(("01/03/2025", f"ROW {n}", "1.00")))
        world.settle()
    assert len(world.ran("take")) == 1 and len(world.ws.entries()) == 300


def test_the_same_content_dropped_again_says_so_in_a_card(world: World) -> None:
    agent(world, "take", WATCH, TAKE)
    with world:
        world.ws.drop("january.csv", IN)
        world.settle()
        world.ws.drop("again.csv", IN)
        world.settle()
    assert len(world.ws.entries()) == 4 and not list((world.ws.root / "import").glob("*.csv"))
    [card] = [c for c in world.ws.cards() if c["kind"] == "duplicate_file"]
    assert "again.csv" in card["title"]


def test_a_file_nobody_takes_fires_once_whatever_its_name_and_times(world: World) -> None:
    agent(world, "look", "trigger: file_watch\nwatch: letters/*.txt\n", 'ctx_emit("letter", ctx_event()["payload"])')
    with world:
        letter = world.ws.put("letters/a.txt", "hello")
        world.ws.put("letters/b.pdf", "not watched")
        world.settle()
        assert len(world.ran("look")) == 1
        letter.touch()
        world.settle()
        letter.rename(letter.with_name("c.txt"))
        world.settle()
        assert len(world.ran("look")) == 1
    shutil.rmtree(world.state_dir)
    with world:
        world.settle()
        assert len(world.log("run.succeeded")) == 0, "the history knows (the log went with the state)"
        world.ws.put("letters/d.txt", "hello")
        world.settle()
        [card] = world.ws.cards()
        assert card["kind"] == "duplicate_file" and "letters/d.txt" in card["title"]
        world.ws.put("letters/e.txt", "something else")
        world.settle()
        assert len(world.ran("look")) == 1
    assert world.ws.read("logs/files-2025-02.csv").count("\n") == 3


def test_a_file_that_an_earlier_version_listed_as_had_starts_nothing(world: World) -> None:
    """One list had those of all months: it counts, and is not written."""
    agent(world, "look", "trigger: file_watch\nwatch: letters/*.txt\n", 'ctx_emit("letter", ctx_event()["payload"])')
    with world:
        world.ws.put("letters/a.txt", "hello")
        world.settle()
    world.ws.git("mv", "logs/files-2025-02.csv", "logs/files.csv")
    world.ws.git("commit", "-qm", "as before")
    text = world.ws.read("logs/files.csv")
    shutil.rmtree(world.state_dir)
    with world:
        world.settle()
        world.ws.put("letters/b.txt", "hello")
        world.ws.put("letters/c.txt", "another")
        world.settle()
        assert [card["kind"] for card in world.ws.cards()] == ["duplicate_file"]
    assert world.ws.read("logs/files.csv") == text
    assert [row.split(",")[2] for row in world.ws.read("logs/files-2025-02.csv").splitlines()[1:]] == ["letters/c.txt"]


def test_files_that_agents_of_two_clones_have_had_are_joined(world: World, tmp_path: Path) -> None:
    agent(world, "look", "trigger: file_watch\nwatch: letters/*.txt\n", 'ctx_emit("letter", ctx_event()["payload"])')
    with world:
        world.ws.put("letters/a.txt", "first")
        world.settle()
    _, other, _ = follow(world.ws, tmp_path)
    for each, name in ((World(other), "b"), (world, "c")):
        with each:
            each.ws.put(f"letters/{name}.txt", name)
            each.settle()
        each.ws.ok("sync")
    rows = world.ws.read("logs/files-2025-02.csv").splitlines()[1:]
    assert [row.split(",")[2] for row in rows] == ["letters/a.txt", "letters/b.txt", "letters/c.txt"]
    assert world.ws.read("logs/events-2025-02.jsonl").count("\n") == 3
    world.ws.in_order("letters/")


def test_a_poisoned_file_is_set_aside_with_a_card_and_the_others_go_on(world: World) -> None:
    agent(world, "take", WATCH + "retries: 2\n", TAKE)
    with world:
        for n in range(9):
            text = "POISON" if n == 5 else f"ROW {n}"
            world.ws.drop(f"{n}.csv", chase(("01/03/2025", text, "1.00")))
        world.forward(minutes=10)
    assert len(world.ws.entries()) == 8
    assert [p.name for p in (world.ws.root / "import/failed").iterdir()] == ["5.csv"]
    assert not list((world.ws.root / "import").glob("*.csv"))
    [card] = [c for c in world.ws.cards() if c["kind"] in ("set_aside", "failed_run")]
    assert "import/5.csv" in card["title"] and "ZeroDivisionError" in card["details"]["cause"]
    assert world.waiting() == []
    world.ws.in_order()


def test_an_agent_that_fails_on_every_file_sets_few_of_them_aside(world: World) -> None:
    agent(world, "take", WATCH + "retries: 0\n", "1 / 0\n" + TAKE)
    with world:
        for n in range(12):
            world.ws.drop(f"{n}.csv", chase(("01/03/2025", f"ROW {n}", "1.00")))
        world.forward(minutes=30)
        assert len(list((world.ws.root / "import/failed").iterdir())) == 3
        agent(world, "take", WATCH + "retries: 0\n", TAKE)
        world.forward(minutes=1)
        assert len(world.ws.entries()) == 9, "a better version goes on at once"


def test_a_file_run_sees_only_files_that_are_complete(world: World) -> None:
    agent(world, "take", WATCH, TAKE)
    world.before_run = lambda *_: world.ws.drop("half.csv", chase(("01/04/2025", "HALF", "1.00"))) and None
    with world:
        world.ws.drop("whole.csv", chase(("01/03/2025", "WHOLE", "1.00")))
        world.until_run()
    assert [e["description"] for e in world.ws.entries()] == ["WHOLE"]


def test_a_bad_file_is_tried_again_when_the_settings_change(world: World) -> None:
    agent(world, "take", WATCH, TAKE)
    with world:
        world.ws.drop("odd.csv", "a;b;c\n1;2;3\n")
        world.settle()
        runs = len(world.ran("take"))
        world.settle()
        assert len(world.ran("take")) == runs == 1
        world.ws.config("import.max_rows=1000")
        world.time.forward(seconds=1)
        world.settle()
        assert len(world.ran("take")) == 2
    assert [c["kind"] for c in world.ws.cards()] == ["bad_file"]


# --- questions -------------------------------------------------------------------------------------------------------


def test_an_answer_is_taken_up_and_a_question_nobody_answers_takes_its_default(world: World) -> None:
    ask = (
        'a = queue_ask("Really?", ["yes", "no"], default="no", on_timeout="default", timeout="1d")\nctx_emit("said", a)'
    )
    agent(world, "asks", "trigger: event\nevent: ping\n", ask)
    with world:
        world.ws.ok("event", "emit", "ping")
        world.settle()
        [card] = world.ws.cards()
        assert card["kind"] == "question" and world.waiting() == [] and len(world.log("run.waiting")) == 1
        world.until("2025-02-11T05:59:00Z")
        assert len(world.ws.cards()) == 1
        world.until("2025-02-11T06:00:01Z")
        assert world.ws.cards() == []
    assert '"name":"said","payload":"no"' in world.ws.read("logs/events-2025-02.jsonl")


def test_an_event_whose_run_waits_for_an_answer_is_not_delivered_again(world: World) -> None:
    agent(world, "asks", "trigger: event\nevent: ping\n", 'queue_ask("Really?", ["yes", "no"])')
    with world:
        world.ws.ok("event", "emit", "ping")
        world.settle()
    shutil.rmtree(world.state_dir)
    with world:
        world.settle()
        assert len(world.ws.cards()) == 1


def test_a_run_that_failed_can_be_run_again_by_hand_for_the_same_event(world: World) -> None:
    agent(
        world, "hears", "trigger: event\nevent: ping\nretries: 0\n", 'ctx_emit("n", 10 / ctx_event()["payload"]["n"])'
    )
    with world:
        world.ws.ok("event", "emit", "ping", "--data", '{"n": 0}')
        world.settle()
        [card] = world.ws.cards()
        assert card["details"]["retry"] == f"cleared agent run hears --again {card['id']}"
        assert world.ws("agent", "run", "hears", "--again", card["id"]).code == 1
        text = world.ws.read("agents/hears.py").replace('10 / ctx_event()["payload"]["n"]', "1")
        world.ws.put("agents/hears.py", text)
        world.ws.commit("agents/hears.py", *world.ws.approve("agents/hears.py"))
        world.ws.ok("agent", "run", "hears", "--again", card["id"])
        again = world.ws("agent", "run", "hears", "--again", card["id"])
        assert again.code == 2 and "has had its run" in again.err
        wrong = world.ws("agent", "run", "other", "--again", card["id"])
        assert wrong.code == 2 and "failed run of other" in wrong.err


def test_a_changed_agent_does_not_have_again_what_it_had(world: World) -> None:
    agent(world, "look", "trigger: file_watch\nwatch: letters/\n", 'ctx_emit("letter")')
    with world:
        world.ws.put("letters/a.txt", "hello")
        world.settle()
        agent(world, "look", "trigger: file_watch\nwatch: letters/\n", 'ctx_emit("letter", 2)')
        world.forward(minutes=2)
        assert len(world.ran("look")) == 1
        world.ws.put("letters/b.txt", "other")
        world.forward(minutes=2)
        assert len(world.ran("look")) == 2


def test_a_run_that_takes_the_process_down_each_time_is_given_up_with_a_card(world: World) -> None:
    """As by a machine without memory: five times the process dies, then it counts as a failure."""
    agent(world, "deadly", "trigger: event\nevent: ping\nretries: 0\n", "1")
    agent(world, "other", "trigger: event\nevent: ping\n", 'ctx_emit("fine")')

    class Died(BaseException):
        pass

    def die(name: str, event: object) -> None:
        if name == "deadly":
            raise Died

    world.before_run = die
    world.ws.ok("event", "emit", "ping")
    for _ in range(5):
        world.start()
        with pytest.raises(Died):
            world.settle()
        world.stop()
    with world:
        world.settle()
        assert len(world.ran("other")) == 1 and world.waiting() == []
        [card] = world.ws.cards()
        assert card["kind"] == "failed_run" and "the process died 5 times" in card["title"]
        assert card["agent"] == "deadly" and card["details"]["retry"].endswith(f"--again {card['id']}")
        world.ws.ok("agent", "run", "deadly", "--again", card["id"])


def test_a_failed_run_is_told_by_the_command_that_was_approved(world: World, tmp_path: Path) -> None:
    """The notifier in the service: set up while it runs, without a restart."""
    import sys
    import time

    from cleared.service.service_process import ServedWorkspace

    told = tmp_path / "told"
    agent(world, "fails", "trigger: event\nevent: ping\nretries: 0\n", "1 / 0")
    world.start()
    assert world.served is not None
    member = ServedWorkspace(world.ws.root, world.served, world.time, lambda text: None)
    try:
        code = f"import sys, pathlib; pathlib.Path({str(told)!r}).write_bytes(sys.stdin.buffer.read())"
        path = world.ws.root / "config.yaml"
        line = f"notifications:\n  method: exec\n  command: [{sys.executable}, -c, {code!r}]\n"
        path.write_text(path.read_text() + "\n" + line)
        take_ok(world.ws, "config", "approve")
        world.ws.ok("event", "emit", "ping")
        while member.service.run_step():
            pass
        member.send_notifications()
        assert not told.exists()
        world.time.forward(seconds=40)
        for _ in range(500):
            member.send_notifications()
            if member.notifier.status_data()["last_sent_at"]:
                break
            time.sleep(0.02)
        assert b"ZeroDivisionError" in told.read_bytes()
    finally:
        member.close()


def test_a_run_that_goes_well_at_another_try_settles_its_own_card(world: World) -> None:
    with mended_by_the_second_try(world, "retries: 3\n"):
        assert [c["kind"] for c in world.ws.cards()] == ["failed_run"]
    assert "failed_run" not in [c["kind"] for c in world.ws.cards()]


def test_a_file_that_was_set_aside_and_put_back_is_imported_and_leaves_no_trace(world: World) -> None:
    agent(world, "take", WATCH + "retries: 0\n", "1 / 0\n" + TAKE)
    with world:
        world.ws.drop("a.csv", IN)
        world.forward(minutes=1)
        aside = world.ws.root / "import/failed/a.csv"
        assert aside.exists()
        agent(world, "take", WATCH, TAKE)
        aside.rename(world.ws.root / "import/a.csv")
        world.forward(minutes=1)
    assert len(world.ws.entries()) == 4
    assert "set_aside" not in [c["kind"] for c in world.ws.cards()]
    world.ws.in_order()


def test_nobody_can_tell_what_the_program_itself_tells(world: World) -> None:
    refused = world.ws("event", "emit", "run.failed")
    assert refused.code == 2 and "told by the program itself" in refused.err
    agent(world, "lies", "trigger: on_demand\n", 'ctx_emit("run.succeeded")')
    assert "told by the program itself" in world.ws.run("lies", code=1)["error"]["message"]


def test_two_clones_that_see_an_answer_do_not_both_go_on(world: World, tmp_path: Path) -> None:
    agent(world, "asks", "trigger: event\nevent: ping\n", 'ctx_emit("said", queue_ask("Really?", ["yes", "no"]))')
    with world:
        world.ws.ok("event", "emit", "ping")
        world.settle()
    there = tmp_path / "clone"
    world.ws.git("clone", "-q", str(world.ws.root), str(there))
    trust_books(there)
    from cleared.changes.workspace_opening import open_workspace
    from cleared.review.card_decisions import answer_card

    [card] = world.ws.cards()
    answer_card(
        open_workspace(world.ws.root), card["id"], "yes"
    )  # the run is not gone on with, as if it were killed here
    clone = World(Workspace(there))
    clone.ws.git("pull", "-q")
    with clone:
        clone.settle()
    assert (
        clone.commits("Outcome") == ["asks"]
        and "said" not in clone.ws.read("logs/events-2025-02.jsonl").split("ping")[-1]
    )
    with world:
        world.settle()
    assert '"said"' in world.ws.read("logs/events-2025-02.jsonl")
