"""``cleared fleet``: what happens to a workspace is done once, by whichever worker, and pushed."""

from __future__ import annotations

import itertools
import subprocess
import tempfile
from datetime import datetime
from pathlib import Path

import pytest
from fleets import FleetOfOne, Machine
from harness import CLOCK, JANUARY, Workspace, chase, command, remove_tree, take_ok
from running import eventually
from synced import run_git, tip_of
from world import World

from cleared.base.programs import own_command

pytestmark = pytest.mark.slow

POST = 'journal_add_double("2025-02-09", "daily", 5070, 1010, "1.00")\n1\n'
FEBRUARY = chase(("02/04/2025", "GITHUB *PRO", "-4.00"), ("02/05/2025", "CORNER SHOP", "-5.00"))


def test_a_job_of_the_loop_is_refused_as_no_worker_has_one(fleet: FleetOfOne) -> None:
    """On one machine the loop would take it in; here nobody ever would."""
    fleet.ws.agent(
        "asks", 'loop_enqueue("books_check")\ngit_commit("asked")\n', "grants: [loop_enqueue:books_check, git.commit]\n"
    )
    fleet.ws.ok("agent", "run", "asks")
    fleet.ws.ok("sync")
    fleet.owner("run", "acme", "asks", "--wait", "0", "--key", "once")
    fleet.work("one", CLOCK)
    ended = fleet.owner("run", "acme", "asks", "--key", "once", "--json").json
    assert ended["status"] == "failed" and "have no loop" in ended["said"], ended
    assert "ctx_emit" in ended["said"]
    log = fleet.fetch().git("log", "--format=%s")
    assert log.count("asked") == 1


def test_a_dropped_file_is_imported_once_by_whichever_worker(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "february.csv").write_text(FEBRUARY)
    assert "1 file handed in" in fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv")).out
    fleet.work("one")
    assert len(fleet.fetch().entries()) == 2
    tip = tip_of(fleet.shared)
    assert "handed in before" in fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv")).out
    fleet.work("two")
    (tmp_path / "again.csv").write_text(FEBRUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "again.csv"))
    fleet.work("two")
    assert len(fleet.fetch().entries()) == 2
    row = fleet.row()
    assert (row["problem"], row["waiting"], row["doing"], row["cards"]) == ("", 0, 0, 1 + (tip != tip_of(fleet.shared)))
    assert fleet.owner.json("status", "acme")["files"] == []


def test_each_time_of_a_schedule_has_one_run_whichever_worker_it_comes_to(fleet: FleetOfOne) -> None:
    ws = fleet.ws
    ws.put("agents/daily.py", '"""\nname: daily\ntrigger: schedule\nschedule: 0 6 * * *\n"""\nctx_emit("day", 1)\n1\n')
    take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "daily")["id"]))
    ws.ok("sync")
    fleet.work("one", CLOCK)
    for day, names in ((11, ("one",)), (12, ("two", "one")), (13, ("one",))):
        for name in names:
            fleet.work(name, f"2025-02-{day}T06:00:30Z")
    runs = fleet.fetch().json("run", "list", "--agent", "daily")
    assert sorted(run["started_at"] for run in runs) == [f"2025-02-{day}T06:00:30Z" for day in range(11, 14)]


def test_an_event_starts_who_listens_also_from_a_decision_that_somebody_pushed(fleet: FleetOfOne) -> None:
    ws = fleet.ws
    header = '"""\nname: seen\ntrigger: event\nevent: card.resolved\n"""\n'
    ws.put("agents/seen.py", f'{header}journal_add_double("2025-02-09", "seen", 5070, 1010, "1.00")\n1\n')
    take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "seen")["id"]))
    ws.drop("february.csv", FEBRUARY)
    ws.run("ingest")
    ws.ok("sync")
    fleet.work("one", CLOCK)
    (waiting,) = ws.cards()
    ws.ok("queue", "approve", str(waiting["entry_id"]))
    ws.ok("sync")
    fleet.make_due(CLOCK)
    fleet.work("two", CLOCK)
    fleet.work("one", CLOCK)
    # The proposal's own card was decided, too.
    assert [entry["description"] for entry in fleet.fetch().entries()].count("seen") == 2


def test_a_run_that_a_person_asks_for_has_its_end_told(fleet: FleetOfOne) -> None:
    asked = fleet.owner("run", "acme", "monthly_summary", "--wait", "0", "--key", "first")
    assert asked.code == 5 and "--key first" in asked.err
    fleet.work()
    ended = fleet.owner.json("run", "acme", "monthly_summary", "--key", "first")
    assert ended["status"] == "succeeded"
    assert fleet.owner.ok("run", "acme", "monthly_summary", "--key", "first").out == "monthly_summary: succeeded\n"
    fleet.owner("run", "acme", "nobody", "--wait", "0", "--key", "second")
    fleet.work()
    refused = fleet.owner("run", "acme", "nobody", "--key", "second")
    assert refused.code == 3 and "there is no agent" in refused.out
    assert fleet.owner("run", "elsewhere", "nobody").code == 2
    fleet.ws.agent("asks", 'queue_ask("Which colour?", ["red", "blue"])\n')
    fleet.ws.ok("sync")
    fleet.owner("run", "acme", "asks", "--wait", "0", "--key", "third")
    fleet.work()
    asked = fleet.owner.ok("run", "acme", "asks", "--key", "third").out
    assert "waits for your answer" in asked and "Which colour?" in asked


def test_a_key_is_of_one_agent_in_one_workspace(fleet: FleetOfOne) -> None:
    fleet.add_other("beta")
    for books in (fleet.ws, fleet.desk_of("beta")):
        for agent in ("one", "two"):
            body = f'ctx_emit("{agent}.ran", 1)\ngit_commit("{agent} has run")\n'
            books.agent(agent, body, "grants: [ctx.emit, git.commit]\n")
        books.ok("sync")
    asked = [("acme", "one"), ("acme", "two"), ("beta", "one")]
    for names in asked:
        assert fleet.owner("run", *names, "--wait", "0", "--key", "2025-02").code == 5
    fleet.work("one", CLOCK)
    fleet.work("one", CLOCK)
    ended = [fleet.owner.json("run", *names, "--key", "2025-02") for names in asked]
    assert [each["status"] for each in ended] == ["succeeded"] * 3 and len({each["commit"] for each in ended}) == 3
    assert [log_of(fleet.shared).count(f"{agent} has run") for agent in ("one", "two")] == [1, 1]
    assert [log_of(fleet.shared_of("beta")).count(f"{agent} has run") for agent in ("one", "two")] == [1, 0]


def log_of(shared: Path) -> str:
    return run_git(shared, "log", "--format=%s", "main")


def test_who_is_faster_is_not_lost(fleet: FleetOfOne, tmp_path: Path) -> None:
    """A push that is rejected: what the job did is done again on top of theirs."""
    fleet.worker("one")
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    run_git(fleet.ws.root, "push", "-q", "origin", "main:refs/heads/prepared")
    prepared = run_git(fleet.shared, "rev-parse", "prepared").strip()
    hook = fleet.shared / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    # Between what the worker sees and its push, once.
    move = f"env -u GIT_QUARANTINE_PATH git update-ref refs/heads/main {prepared}"
    hook.write_text(f"#!/bin/sh\n[ -e {tmp_path}/once ] || {{ : > {tmp_path}/once; {move}; }}\n")
    hook.chmod(0o755)
    (tmp_path / "february.csv").write_text(FEBRUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv"))
    said = fleet.work("one").err
    assert "somebody has pushed meanwhile" in said
    ids = [entry["entry_id"] for entry in fleet.fetch().entries()]
    assert len(ids) == len(set(ids)) == 3
    assert fleet.row()["problem"] == ""


def test_who_is_never_the_first_tells_it_by_a_card(fleet: FleetOfOne, tmp_path: Path) -> None:
    fleet.work("one", CLOCK)
    commits = []
    for number in range(5):
        fleet.ws.ok("journal", "add", "2025-02-05", f"by hand {number}", "5070=9", "1010=-9")
        commits.append(fleet.ws.head())
    run_git(fleet.ws.root, "push", "-q", "origin", "main:refs/heads/prepared")
    (tmp_path / "commits").write_text("".join(f"{commit}\n" for commit in commits))
    hook = fleet.shared / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f'#!/bin/sh\nnext=$(head -n 1 {tmp_path}/commits)\n[ -n "$next" ] || exit 0\n'
        f"sed -i 1d {tmp_path}/commits\nenv -u GIT_QUARANTINE_PATH git update-ref refs/heads/main $next\n"
    )
    hook.chmod(0o755)
    (tmp_path / "february.csv").write_text(FEBRUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv"))
    fleet.work("one", CLOCK)
    assert "others have pushed 5 times" in fleet.row()["problem"]
    assert [card["kind"] for card in fleet.fetch().cards()] == ["push_rejected"]
    fleet.make_due("2025-02-10T06:05:00Z")
    fleet.work("one", "2025-02-10T06:05:00Z")
    assert fleet.row()["problem"] == "" and len(fleet.fetch().entries()) == 7


def test_the_database_can_be_made_again_from_git_and_the_store(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "february.csv").write_text(FEBRUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv"))
    fleet.work("one", CLOCK)
    tip = tip_of(fleet.shared)
    fleet.query("DROP SCHEMA public CASCADE")
    fleet.query("CREATE SCHEMA public")
    assert "no fleet in it yet" in fleet.owner("list").err
    fleet.owner.ok("init", "--database", fleet.database, "--store", str(fleet.store))
    fleet.add()
    fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv"))
    fleet.work("one", CLOCK)
    assert len(fleet.fetch().entries()) == 2
    assert run_git(fleet.shared, "merge-base", "--is-ancestor", tip, "main") == ""


def test_a_lost_database_forgets_no_schedule_and_no_event(fleet: FleetOfOne) -> None:
    """What had its run has none again, and what had none yet has it."""
    ws = fleet.ws
    ws.put("agents/daily.py", '"""\nname: daily\ntrigger: schedule\nschedule: 0 6 * * *\n"""\nctx_emit("day", 1)\n1\n')
    ws.put("agents/seen.py", '"""\nname: seen\ntrigger: event\nevent: card.resolved\n"""\nctx_emit("seen", 1)\n1\n')
    for name in ("daily", "seen"):
        take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", name)["id"]))
    ws.drop("february.csv", FEBRUARY)
    ws.run("ingest")
    ws.ok("sync")
    fleet.work("one", CLOCK)
    fleet.work("one", "2025-02-11T06:00:30Z")
    ws.ok("sync")
    before = len(ws.json("run", "list", "--agent", "seen"))
    (waiting,) = [card for card in ws.cards() if card["kind"] == "entry"]
    ws.ok("queue", "approve", str(waiting["entry_id"]))
    ws.ok("sync")
    fleet.query("DROP SCHEMA public CASCADE")
    fleet.query("CREATE SCHEMA public")
    fleet.owner.ok("init", "--database", fleet.database, "--store", str(fleet.store))
    fleet.add()
    for name, at in (("two", "2025-02-11T06:05:00Z"), ("one", "2025-02-12T06:00:30Z"), ("two", "2025-02-12T06:01:00Z")):
        fleet.work(name, at)
    runs = fleet.fetch().json("run", "list", "--agent", "daily")
    assert sorted(run["started_at"] for run in runs) == [f"2025-02-{day}T06:00:30Z" for day in (11, 12)]
    assert len(ws.json("run", "list", "--agent", "seen")) == before + 1


def test_a_service_beside_the_fleet_books_nothing_twice(fleet: FleetOfOne) -> None:
    """Somebody says ``cleared up`` in a clone all the same."""
    ws = fleet.ws
    ws.put("agents/daily.py", f'"""\nname: daily\ntrigger: schedule\nschedule: 0 6 * * *\n"""\n{POST}')
    take_ok(ws, "agent", "approve", str(ws.json("agent", "propose", "daily")["id"]))
    with World(ws, CLOCK) as world:
        world.settle()
        ws.ok("sync")
        fleet.work("one", CLOCK)
        world.time.at = datetime.fromisoformat("2025-02-11T06:00:30Z")
        world.settle()
    fleet.work("one", "2025-02-11T06:00:30Z")
    for books in (ws, Workspace(fleet.worker("one").home / "fleet/clones/acme")):
        assert [entry["description"] for entry in books.entries()] == ["daily"]
    ws.ok("sync")
    assert [entry["description"] for entry in fleet.fetch().entries()] == ["daily"]


def test_a_lost_store_costs_what_was_not_imported_yet(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Which is named, and handed in again; runs go on."""
    for name, text in (("january.csv", JANUARY), ("february.csv", FEBRUARY)):
        (tmp_path / name).write_text(text)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    fleet.work("one", CLOCK)
    fleet.owner.ok("drop", "acme", str(tmp_path / "february.csv"))
    remove_tree(fleet.store)
    fleet.owner("run", "acme", "monthly_summary", "--wait", "0", "--key", "meanwhile")
    fleet.work("two", CLOCK)
    assert "february.csv was not handed in" in fleet.row()["problem"] and len(fleet.fetch().entries()) == 4
    assert fleet.owner.json("run", "acme", "monthly_summary", "--key", "meanwhile")["status"] == "succeeded"
    for name in ("january.csv", "february.csv"):
        fleet.owner.ok("drop", "acme", str(tmp_path / name))
    fleet.make_due(CLOCK)
    fleet.work("two", CLOCK)
    assert fleet.row()["problem"] == "" and len(fleet.fetch().entries()) == 6


def test_what_a_workspace_may_use_and_when_it_is_looked_at_are_shown(fleet: FleetOfOne) -> None:
    fleet.add("--spread", "600", "--budget", "1")
    fleet.add()  # such as for a new colleague: what is not named stays
    fleet.work("one", CLOCK)
    row = fleet.row()
    assert row["spread_seconds"] == 600 and not str(row["due"]).endswith("00:00Z")
    fleet.add("--spread", "0")
    fleet.work("one", CLOCK)
    row = fleet.row()
    assert (row["spread_seconds"], row["budget_seconds"], row["branch"]) == (0, 1, "main")
    assert str(row["due"]).endswith("00:00Z")


def test_what_jobs_take_is_of_the_budget_of_a_day(fleet: FleetOfOne) -> None:
    """Also what their scripts take, which have processes of their own."""
    fleet.ws.agent("little", "1\n")
    fleet.ws.agent("much", "n = 0\nwhile n < 3000000:\n    n = n + 1\n1\n")
    fleet.ws.ok("sync")
    fleet.work("one", CLOCK)
    spent = [fleet.row()["spent_seconds"]]
    for agent in ("little", "much"):
        fleet.owner("run", "acme", agent, "--wait", "0", "--key", agent)
        fleet.work("one", CLOCK)
        spent.append(fleet.row()["spent_seconds"])
    of_little, of_much = (after - before for before, after in itertools.pairwise(spent))
    assert 0 < of_little < of_much, spent
    while (so_far := fleet.row()["spent_seconds"]) < 1:  # the least that a budget is
        fleet.owner("run", "acme", "much", "--wait", "0", "--key", f"after {so_far}")
        fleet.work("one", CLOCK)
    fleet.add("--budget", "1")
    fleet.owner("run", "acme", "little", "--wait", "0", "--key", "more")
    fleet.work("one", CLOCK)
    row = fleet.row()
    assert "used up" in row["problem"] and row["due"] == "2025-02-11T00:00:00Z"
    status = fleet.owner.json("status")
    assert status["ended"]["put_off"] > 0 == status["ended"]["failed"] and status["requests"] == 1
    fleet.work("one", "2025-02-11T00:00:10Z")
    assert fleet.row()["problem"] == "" and fleet.owner.json("status")["requests"] == 0


def test_who_asks_while_much_waits_is_told_so(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "february.csv").write_text(FEBRUARY)
    wait = "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args) SELECT 'later', 'later', 'later', '{}' "
    fleet.query(f"{wait} FROM generate_series(1, 10000)")
    for words in (("drop", "acme", str(tmp_path / "february.csv")), ("run", "acme", "ingest")):
        refused = fleet.owner(*words)
        assert refused.code == 5 and "10,000 jobs wait in the fleet" in refused.err, refused
    assert fleet.owner.json("status", "acme")["files"] == []


def test_the_demo_makes_a_whole_fleet(tmp_path: Path, cluster: object, plain_environment: None) -> None:
    """In a folder that PostgreSQL's own user can reach."""
    folder = Path(tempfile.mkdtemp(prefix="cleared-fleet-test-"))
    try:
        done = command("fleet", "demo", str(folder), "--workers", "2")
        assert done.code == 0, done
        assert done.out.count("All is in order: 508 entries") == 2
        assert command("fleet", "demo", str(folder)).code == 4
    finally:
        remove_tree(folder)


def test_a_demo_that_cannot_be_made_names_the_cause_and_leaves_nothing(cluster: object) -> None:
    """PostgreSQL's own user must reach the folder. A file may be half a megabyte there, as on a disk that is full."""
    folder = Path(tempfile.mkdtemp(prefix="cleared-fleet-test-"))
    try:
        folder.chmod(0o755)
        (folder / "file").touch()
        (folder / "empty").mkdir()
        refused = command("fleet", "demo", str(folder / "file"))
        assert refused.code == 4 and f"{folder}/file is no folder. Choose another" in refused.err
        limited = ["/bin/sh", "-c", 'ulimit -f 1000; exec "$@"', "sh", *own_command("fleet", "demo")]
        for name in ("empty", "new"):
            done = subprocess.run([*limited, folder / name], capture_output=True, text=True, check=False)
            assert done.returncode == 4 and "Traceback" not in done.stderr, done
            assert f"could not be used in {folder}/{name}/postgres: initdb ended with 1: could not" in done.stderr
            assert "File too large. Put that right, or use another folder." in done.stderr
        assert sorted(path.name for path in folder.iterdir()) == ["empty", "file"]
        assert not [*(folder / "empty").iterdir()]
    finally:
        remove_tree(folder)


def test_a_demo_that_is_killed_leaves_nothing_running(tmp_path: Path, cluster: object, plain_environment: None) -> None:
    folder = Path(tempfile.mkdtemp(prefix="cleared-fleet-test-"))
    try:
        demo = Machine(tmp_path).begin("demo", str(folder), "--workers", "1", "--stay")
        assert demo.stderr is not None
        while b"All of it is up" not in (line := demo.stderr.readline()):
            assert line
        up = folder / "postgres/data/postmaster.pid"
        assert up.exists()
        demo.kill()
        demo.communicate()
        eventually(lambda: not up.exists())
    finally:
        remove_tree(folder)
