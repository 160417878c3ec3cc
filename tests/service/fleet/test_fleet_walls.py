"""Whoever can write to the database, the store or the remote, or has a worker, approves nothing and loses nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
import pytest
from fleets import FleetOfOne, Machine, read_fact, read_owner
from harness import CLOCK, JANUARY, Workspace, chase
from synced import run_git, tip_of
from unit_files import verify_unit

pytestmark = pytest.mark.slow


def _refused(fleet: FleetOfOne, why: str, name: str = "one") -> None:
    """A worker does nothing, and says why; the next one would not either."""
    before = tip_of(fleet.shared)
    fleet.make_due(CLOCK)
    fleet.work(name, CLOCK)
    assert why in fleet.row()["problem"], fleet.row()
    assert tip_of(fleet.shared) == before


def test_what_the_owner_did_not_say_runs_nothing(fleet: FleetOfOne, tmp_path: Path) -> None:
    """The tables only carry what the owner has signed."""
    fleet.worker("one")
    said, signature = fleet.query("SELECT statement, signature FROM fleet_workspaces")[0]
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    fleet.query("UPDATE fleet_workspaces SET statement = replace(encode(statement, 'escape'), 'main', 'evil')::bytea")
    _refused(fleet, "not signed by the fleet's owner")
    fleet.query("UPDATE fleet_workspaces SET statement = %s, signature = %s", said, signature)
    (workers,) = fleet.query("SELECT value FROM fleet_facts WHERE name = 'workers'")[0]
    fleet.query("UPDATE fleet_facts SET value = replace(value, 'revoked', 'Revoked') WHERE name = 'workers'")
    assert "not signed by the fleet's owner" in fleet.worker("one")("worker", "--once").err
    fleet.query("UPDATE fleet_facts SET value = %s WHERE name = 'workers'", workers)
    fleet.add()  # the owner says something later
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert len(fleet.fetch().entries()) == 4
    fleet.query("UPDATE fleet_workspaces SET statement = %s, signature = %s", said, signature)
    _refused(fleet, "has said something else")


def test_one_name_cannot_stand_for_the_books_of_another(fleet: FleetOfOne) -> None:
    fleet.worker("one")
    fleet.query(
        "INSERT INTO fleet_workspaces (name, statement, signature) SELECT 'other', statement, signature "
        "FROM fleet_workspaces"
    )
    fleet.query("DELETE FROM fleet_workspaces WHERE name = 'acme'")
    _refused(fleet, "is what the owner said of acme")


def test_a_file_of_another_content_is_not_imported(fleet: FleetOfOne, tmp_path: Path) -> None:
    fleet.worker("one")
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    (kept,) = fleet.store.iterdir()
    kept.write_text(JANUARY.replace("-4.00", "-400.00"))
    _refused(fleet, "another content")
    fleet.query("UPDATE fleet_files SET name = '../../../agents/evil.py'")
    kept.write_text(JANUARY)
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert not (fleet.worker("one").home / "fleet/clones/acme/agents/evil.py").exists()
    assert len(fleet.fetch().entries()) == 4


def test_a_history_that_was_taken_back_stops_the_work(fleet: FleetOfOne) -> None:
    fleet.work("one", CLOCK)
    run_git(fleet.shared, "config", "receive.denyNonFastForwards", "false")
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    fleet.ws.ok("sync")
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert fleet.row()["problem"] == ""
    run_git(fleet.ws.root, "push", "-q", "-f", "origin", "HEAD~1:main")
    _refused(fleet, "has lost the commit", "one")
    _refused(fleet, "has lost the commit", "two")
    assert (
        f"whoever can push to {fleet.shared} can take commits back" in fleet.owner("add", "acme", str(fleet.shared)).err
    )


@pytest.mark.parametrize(
    ("setting", "taken", "words"),
    [
        ("receive.denyNonFastForwards", "take commits back", ("push", "-f", "origin", "HEAD~1:main")),
        ("receive.denyDeletes", "delete the branch", ("push", "origin", ":main")),
    ],
)
def test_a_push_that_would_lose_work_is_refused_by_the_remote(
    fleet: FleetOfOne, setting: str, taken: str, words: tuple[str, ...]
) -> None:
    """Where it would be taken, the workspace is not, and nothing is changed there by asking."""
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    fleet.ws.ok("sync")
    run_git(fleet.shared, "symbolic-ref", "HEAD", "refs/heads/other")  # which git lets nobody delete in any case
    before = run_git(fleet.shared, "for-each-ref")
    pushed = subprocess.run(["git", *words], cwd=fleet.ws.root, capture_output=True, text=True, check=False)
    assert pushed.returncode == 1 and "[remote rejected]" in pushed.stderr, pushed
    run_git(fleet.shared, "config", setting, "false")
    refused = fleet.owner("add", "acme", str(fleet.shared))
    assert refused.code == 4 and f"can {taken}" in refused.err and f"{setting} true" in refused.err, refused
    assert run_git(fleet.shared, "for-each-ref") == before


def test_a_worker_that_was_not_let_in_ends_at_once(fleet: FleetOfOne, tmp_path: Path) -> None:
    """And says how the owner lets it in; also by its name."""
    machine = Machine(tmp_path / "new")
    words = ("--database", fleet.database, "--store", str(fleet.store), "--owner", read_owner(fleet.owner.home))
    machine.ok("join", *words)
    done = machine("worker")
    assert done.code == 3 and "is not trusted by the fleet's owner yet" in done.err and "Traceback" not in done.err
    assert [row["trusted"] for row in fleet.owner.json("trust")] == [False]
    fleet.owner.ok("trust", os.uname().nodename)
    assert done.err.split("cleared fleet trust ")[1].strip(" .\n") in fleet.owner.ok("trust").out
    machine.ok("worker", "--once", CLEARED_CLOCK=CLOCK)
    assert fleet.row()["problem"] == "" and fleet.row()["looked_at"] == CLOCK


def test_a_worker_that_was_revoked_does_nothing_any_more(fleet: FleetOfOne, tmp_path: Path) -> None:
    """What it has pushed before counts; what it pushes afterwards stops the work."""
    one = fleet.worker("one")
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    fleet.work("one", CLOCK)
    fleet.owner.ok("trust", (one.home / "run-key.pub").read_text().strip(), "--revoke")
    fleet.make_due(CLOCK)
    refused = one("worker", "--once", CLEARED_CLOCK=CLOCK)
    assert refused.code == 3 and "was revoked" in refused.err
    fleet.work("two", CLOCK)
    assert len(fleet.fetch().entries()) == 4 and fleet.row()["problem"] == ""
    stolen = Workspace(one.home / "fleet/clones/acme")
    stolen.drop("february.csv", chase(("02/04/2025", "STAPLES", "-9.00")))
    home = {**os.environ, "CLEARED_HOME": str(one.home / "fleet/homes/acme")}
    assert stolen.process("agent", "run", "ingest", env=home).code == 0
    run_git(stolen.root, "push", "-q", "origin", "HEAD:main")
    _refused(fleet, "a worker that was revoked has pushed", "two")
    assert "add NAME GIT-URL --rewritten" in fleet.row()["problem"]
    fleet.owner.ok("add", "acme", str(fleet.shared), "--rewritten")
    fleet.make_due(CLOCK)
    fleet.work("two", CLOCK)
    assert fleet.row()["problem"] == "" and len(fleet.fetch().entries()) == 5


def test_a_database_that_is_away_is_said(fleet: FleetOfOne, tmp_path: Path) -> None:
    worker = fleet.worker("one")
    gone = fleet.database.replace("host=", "host=%2Fnowhere")
    for words in (("list",), ("worker", "--once"), ("run", "acme", "ingest")):
        done = worker(*words, CLEARED_FLEET_DATABASE=gone)
        assert done.code == 4 and "cannot be reached" in done.err and "Traceback" not in done.err, done
    wrong = worker("list", CLEARED_FLEET_DATABASE="not a url")
    assert wrong.code == 2 and "Traceback" not in wrong.err, wrong
    alone = fleet.worker("one").__class__(tmp_path / "nobody")
    assert alone("list").code == 2 and "belongs to no fleet" in alone("list").err
    with psycopg.connect(fleet.database, autocommit=True) as db:
        db.execute("UPDATE fleet_facts SET value = '99' WHERE name = 'oldest'")
    late = worker("worker", "--once")
    assert late.code == 2 and "Install the newer cleared" in late.err


def test_only_the_owner_says_what_is_in_the_fleet(fleet: FleetOfOne) -> None:
    worker = fleet.worker("one")
    for words in (("add", "more", str(fleet.shared)), ("remove", "acme"), ("upgrade",)):
        done = worker(*words)
        assert done.code == 3 and ("owner" in done.err or "no approval key" in done.err), done
    assert fleet.owner("add", "twice", str(fleet.shared)).code == 2
    assert fleet.owner("add", "../evil", str(fleet.shared)).code == 2
    gone = fleet.owner("add", "gone", f"{fleet.shared}-not")
    assert gone.code == 4 and f"{fleet.shared}-not cannot be read" in gone.err and "origin" not in gone.err, gone
    assert [row["name"] for row in fleet.owner.json("list")] == ["acme"]


def test_what_was_taken_out_or_revoked_does_not_come_back(fleet: FleetOfOne) -> None:
    """Whoever can write to the database puts old rows back."""
    fleet.work("one", CLOCK)
    fleet.query("CREATE TABLE old_facts AS SELECT * FROM fleet_facts")
    fleet.query("CREATE TABLE old_workspaces AS SELECT * FROM fleet_workspaces")
    fleet.owner.ok("remove", "acme")
    fleet.query("INSERT INTO fleet_workspaces SELECT * FROM old_workspaces")
    _refused(fleet, "has taken acme out of the fleet")
    fleet.query(
        "UPDATE fleet_facts f SET value = o.value FROM old_facts o WHERE f.name = o.name AND f.name = 'workers'"
    )
    late = fleet.worker("one")("worker", "--once", CLEARED_CLOCK=CLOCK)
    assert late.code == 3 and "has said something else of the workers" in late.err
    assert "has said something else of the workers" in fleet.owner("trust").err
    fleet.owner.ok("trust", (fleet.worker("one").home / "run-key.pub").read_text().strip())
    fleet.add()
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert fleet.row()["problem"] == ""


def test_an_owner_takes_over_a_history_that_was_rewritten(fleet: FleetOfOne) -> None:
    fleet.work("one", CLOCK)
    fleet.ws.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    fleet.ws.ok("sync")
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    run_git(fleet.shared, "update-ref", "refs/heads/main", "main~1")
    _refused(fleet, "has lost the commit")
    fleet.add("--rewritten")
    for name in ("one", "two"):
        fleet.make_due(CLOCK)
        fleet.work(name, CLOCK)
        assert fleet.row()["problem"] == ""


def test_what_waits_is_not_forgotten_in_passing(fleet: FleetOfOne, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("no bank has this\n")
    (tmp_path / "january.csv").write_text(JANUARY)
    both = [str(tmp_path / name) for name in ("bad.csv", "january.csv")]
    done = fleet.owner("drop", "acme", *both, str(tmp_path / "none.csv"))
    assert done.code == 2 and "none.csv cannot be read" in done.err and not fleet.owner.json("status", "acme")["files"]
    fleet.owner.ok("drop", "acme", *both)
    assert fleet.owner("withdraw", "acme", "bad.csv", "none.csv").code == 2
    refused = fleet.owner("remove", "acme")
    assert refused.code == 3 and "2 files, runs and calls of acme wait still: bad.csv" in refused.err
    (kept,) = [path for path in fleet.store.iterdir() if b"no bank" in path.read_bytes()]
    kept.unlink()  # one file that cannot be had keeps no other back
    fleet.work("one", CLOCK)
    assert "bad.csv was not handed in" in fleet.row()["problem"] and len(fleet.fetch().entries()) == 4
    (tmp_path / "same.csv").write_text("no bank has this\n")
    assert "same.csv waits under this name now" in fleet.owner.ok("drop", "acme", str(tmp_path / "same.csv")).out
    assert fleet.owner("withdraw", "acme", "bad.csv").code == 2
    fleet.owner.ok("withdraw", "acme", "same.csv")
    fleet.make_due(CLOCK)
    fleet.work("one", CLOCK)
    assert fleet.row()["problem"] == ""
    fleet.owner.ok("remove", "acme")
    assert fleet.owner.json("list") == []


def test_what_cannot_be_is_refused_where_it_is_said(fleet: FleetOfOne, tmp_path: Path) -> None:
    owner, worker = fleet.owner, fleet.worker("one")
    secret = owner("add", "b3", "https://bob:hunter2@git.example/b3.git")
    assert secret.code == 2 and "password" in secret.err and "hunter2" not in secret.err
    assert "no branch nope" in owner("add", "acme", str(fleet.shared), "--branch", "nope").err
    run_git(tmp_path, "init", "-q", "--bare", "-b", "main", "empty.git")
    run_git(tmp_path, "clone", "-q", "empty.git", "plain")
    (tmp_path / "plain/file").write_text("x")
    run_git(tmp_path / "plain", "add", "file")
    run_git(tmp_path / "plain", "commit", "-q", "-m", "x")
    run_git(tmp_path / "plain", "push", "-q", "origin", "HEAD:main")
    assert "there are no books" in owner("add", "nobooks", str(tmp_path / "empty.git")).err
    assert "no public key" in worker("join", "--database", fleet.database, "--owner", "nonsense").err
    assert worker("join", "--database", fleet.database, "--owner", read_owner(owner.home), "--store", "s3://").code != 0
    assert "of another owner" in Machine(tmp_path / "mallory")("init", "--database", fleet.database).err
    for wrong in ("", " ", "fleet", "host=/tmp dbname=fleet", "mysql://db/fleet"):
        done = owner("init", "--database", wrong)
        assert done.code == 2 and "is not one" in done.err, done
    assert "no workspace" in owner("queue", "nobody").err
    unit = worker.ok("install", "--concurrency", "4", "--print").out
    assert '"fleet" "worker" "--concurrency" "4"' in unit and f"CLEARED_HOME={worker.home}" in unit
    page = owner.ok("install", "--server", "--port", "8123", "--print").out
    assert '"fleet" "server" "--port" "8123"' in page and "Description=cleared fleet server in " in page
    assert "cleared fleet uninstall.\n" in unit and "cleared fleet uninstall --server.\n" in page
    for name, text in (("worker", unit), ("page", page)):
        (tmp_path / f"{name}.service").write_text(text)
        assert verify_unit(tmp_path / f"{name}.service", tmp_path) == ""
    assert "belongs to no fleet" in Machine(tmp_path / "nobody")("install", "--print").err
    owner.ok("init", "--database", fleet.database)
    assert read_fact(owner.home, "store") == f"file://{fleet.store}"


def test_a_job_that_somebody_has_written_holds_no_workspace(fleet: FleetOfOne, tmp_path: Path) -> None:
    """Whoever can write to the database writes one with arguments that are none."""
    insert = "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, args) VALUES ('cleared', %s, 'acme', %s)"
    for args in ("[1]", '"text"', "null", "7"):
        with pytest.raises(psycopg.errors.CheckViolation):
            fleet.query(insert, "serve_workspace", args)
    for task, args in (
        ("serve_workspace", "{}"),
        ("serve_workspace", '{"workspace": 5, "kind": [], "key": {}}'),
        ("serve_workspace", '{"workspace": "nobody", "kind": "due", "key": "", "more": 1}'),
        ("serve_workspace", '{"workspace": "../../x", "kind": "due", "key": ""}'),
        ("no_task", "{}"),
    ):
        fleet.query(insert, task, args)
    (tmp_path / "january.csv").write_text(JANUARY)
    fleet.owner.ok("drop", "acme", str(tmp_path / "january.csv"))
    fleet.work("one", CLOCK)
    assert fleet.owner.json("queue") == [] and len(fleet.fetch().entries()) == 4


def test_what_was_decided_and_not_pushed_outlives_other_books_of_that_name(fleet: FleetOfOne, tmp_path: Path) -> None:
    """The owner's clone is set aside, and not made anew in its place."""
    fleet.desk.ok("journal", "add", "2025-02-05", "by hand", "5070=9", "1010=-9")
    decided = fleet.desk.head()
    fleet.add_other("beta")
    fleet.owner.ok("remove", "beta")
    fleet.owner.ok("add", "acme", str(fleet.shared_of("beta")))
    assert fleet.desk.head() != decided
    assert Workspace(fleet.desk.root.with_name("acme.before-1")).head() == decided
