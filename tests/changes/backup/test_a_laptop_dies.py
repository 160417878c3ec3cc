"""A workspace in which everything was used goes on, on a new machine, where the old one was."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from backups import LivedIn, all_files, back_up, other_machine, restore
from fake_provider import FakeProvider
from harness import Workspace, chase, remove_tree
from program_client import Program
from scripted_model import DIGEST, KEY, script_change, use_provider, write_file
from soft_passkey import sign_in
from web_client import inner_server
from world import World

from cleared.api.mcp_server.http_transport import load_token
from cleared.changes.workspace_opening import open_workspace
from cleared.workspace.location import cleared_home
from cleared.workspace.stores import STORES, find_store

pytestmark = pytest.mark.slow

HEADER = '"""\nname: nightly\ntrigger: schedule\nschedule: 0 3 * * *\n"""\n'
NIGHTLY = f'{HEADER}ctx_emit("night", ctx_now())\ngit_commit("night")\n'
HEADER = '"""\nname: hears\ntrigger: event\nevent: night\n"""\n'
HEARS = f'{HEADER}ctx_emit("heard", ctx_event()["payload"])\ngit_commit("heard")\n'
QUIET = '"""\nname: quiet\ntrigger: event\nevent: night\n"""\n1\n'
"""It leaves no commit: that it ran is known beside git only."""
FEBRUARY = chase(("02/03/2025", "GITHUB *PRO", "-4.00", "2442.40"))


@pytest.fixture
def lived(ws: Workspace) -> LivedIn:
    return LivedIn(ws)


def test_everything_goes_on_where_it_was(lived: LivedIn, tmp_path: Path) -> None:
    old = lived.ws
    before = {name: old.json(*name.split()) for name in ("webhook list", "token list", "passkey list", "queue list")}
    files, stash = all_files(old.root), old.git("stash", "list")
    refs, log, index = old.git("show-ref"), old.git("log", "-g", "--format=%H %gs"), old.git("ls-files", "-s")
    file = back_up(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with other_machine(tmp_path / "new") as home:
        done = restore(file, tmp_path / "new/books")
        assert done.code == 0, done
        assert "git pull" in done.err and "--beside" in done.err
        remove_tree(old.root)
        new = Workspace(tmp_path / "new/books")

        # What was there.
        found = all_files(new.root)
        same = [
            path for path in files if not path.startswith(".git/") and not path.endswith((".db", ".db-wal", ".db-shm"))
        ]
        left_out = {path for path in same if found.get(path) != files[path]}
        assert all(path.startswith(".cleared/") for path in left_out), left_out
        assert found["receipts/inbox/photo.pdf"] == b"%PDF-1.4 nothing"
        assert found["notes.txt"] == b"neither staged nor committed\n" and found["shortcut"] == b"notes.txt"
        assert (new.git("show-ref"), new.git("log", "-g", "--format=%H %gs")) == (refs, log)
        assert (new.git("stash", "list"), new.git("ls-files", "-s")) == (stash, index)
        assert new.git("rev-list", "--count", "origin/main..main").strip() == "1"
        assert new.git("stash", "show", "-p").count("+stashed") == 1
        assert {name: new.json(*name.split()) for name in before} == before
        assert all(p.stat().st_mode & 0o077 == 0 for p in home.rglob("*-key"))

        # What could start a program does not come along by itself.
        assert not (new.root / ".git/hooks").exists() and (new.root / ".git/from-backup/hooks/post-commit").exists()
        assert "fsmonitor" not in (new.root / ".git/config").read_text()

        # It goes on.
        new.git("reset", "-q", "--hard")
        assert new.json("check") == {"ok": True, "violations": []}
        assert {a["state"] for a in new.json("status")["agents"]} <= {"approved", "starter"}
        new.drop("february.csv", FEBRUARY)
        assert new.run("ingest")["status"] == "succeeded"
        new.ok("queue", "approve", "2025-01-002")
        assert "agent: asked" in new.ok("queue", "answer", lived.question, "yes").err, "the run that waited goes on"
        new.ok("task", "claim", "T-001")
        assert str(new.root) in new.ok("service", "install", "--print").out
        new.ok("loop", "run", "--once")
        (job,) = [j for j in new.json("loop", "jobs") if j["job_id"] == lived.job]
        assert job["status"] == "succeeded", job
        with inner_server(new.root) as server:
            assert sign_in(server, lived.device).status == 303 and server.cookie
            assert Program(server, token=lived.token).call("journal.balance")[0] == 200
        assert new.json("check") == {"ok": True, "violations": []}


def test_a_call_that_waits_is_run_once_and_a_schedule_does_nothing_twice(
    lived: LivedIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = lived.ws
    ws.git("reset", "-q", "--hard")
    ws.config("triggers.scan_seconds=3600")  # two nights of looking each minute are a tenth of a minute
    ws.put("agents/nightly.py", NIGHTLY)
    ws.commit("agents/nightly.py", *ws.approve("agents/nightly.py"), message="agent: nightly")
    ws.put("agents/hears.py", HEARS)
    ws.put("agents/quiet.py", QUIET)
    paths = ("agents/hears.py", "agents/quiet.py")
    ws.commit(*paths, *ws.approve(*paths), message="agents")
    with World(ws, at="2025-02-10T06:00:00Z") as world:
        world.until("2025-02-12T12:00:00Z")
        assert len(world.keys("nightly")) == 2 and len(world.keys("hears")) == 2
        assert len(world.keys("orders")) == 1 and len(world.keys("quiet")) == 2
        file = back_up(ws)  # while its service is up
    with other_machine(tmp_path / "new"):
        assert restore(file, tmp_path / "new/books").code == 0
        new = World(Workspace(tmp_path / "new/books"), at="2025-02-12T12:00:00Z")
        counted = len(new.log("run.succeeded"))
        with new:
            new.forward(hours=1)
            assert len(new.log("run.succeeded")) == counted, "nothing that the old machine has done is done again"
            new.until("2025-02-13T13:00:00Z")
        assert len(new.keys("nightly")) == 3 and len(new.keys("hears")) == 3 and len(new.keys("orders")) == 1


def test_what_was_pushed_after_the_backup_comes_back_and_is_not_done_again(ws: Workspace, tmp_path: Path) -> None:
    ws.put("agents/nightly.py", NIGHTLY)
    ws.put("agents/hears.py", HEARS)
    paths = ("agents/nightly.py", "agents/hears.py")
    ws.commit(*paths, *ws.approve(*paths), message="agents")
    ws.git("init", "-q", "--bare", str(tmp_path / "remote.git"))
    ws.git("remote", "add", "origin", str(tmp_path / "remote.git"))
    with World(ws) as world:
        world.until("2025-02-12T12:00:00Z")
        ws.git("push", "-q", "-u", "origin", "main")
        file = back_up(ws)
        world.until("2025-02-13T12:00:00Z")
        ws.git("push", "-q")
    nights = ws.git("log", "--format=%s", "--grep=^night\\|^heard").splitlines()
    assert len(nights) == 6
    with other_machine(tmp_path / "new"):
        assert restore(file, tmp_path / "new/books").code == 0
        new = Workspace(tmp_path / "new/books")
        new.git("pull", "-q")
        with World(new, at="2025-02-13T12:30:00Z") as world:
            world.forward(hours=1)
        assert new.git("log", "--format=%s", "--grep=^night\\|^heard").splitlines() == nights
        assert new.json("check") == {"ok": True, "violations": []}


def test_a_call_that_waits_goes_along(lived: LivedIn, tmp_path: Path) -> None:
    file = back_up(lived.ws)
    with other_machine(tmp_path / "new"):
        assert restore(file, tmp_path / "new/books").code == 0
        ws = Workspace(tmp_path / "new/books")
        ws.git("reset", "-q", "--hard")
        with World(ws) as world:
            world.forward(minutes=1)
            assert world.keys("orders") == ["hook/msg_1"]
        with World(ws) as world:
            world.forward(minutes=1)
            assert world.keys("orders") == ["hook/msg_1"]


def test_a_job_that_ended_is_told_of_once(ws: Workspace, tmp_path: Path) -> None:
    """Results are signed for the place of the loop, and the restored one has another. One was told of before."""
    job_finished = HEARS.replace("event: night", "event: loop.job_finished").replace(
        '["payload"]', '["payload"]["job_id"]'
    )
    ws.put("agents/hears.py", job_finished)
    ws.put("agents/quiet.py", QUIET.replace("event: night", "event: loop.job_finished"))
    paths = ("agents/hears.py", "agents/quiet.py")
    ws.commit(*paths, *ws.approve(*paths), message="agents")
    ws.ok("loop", "run", "--once")
    with World(ws) as world:
        world.forward(minutes=1)
        ws.ok("loop", "run", "--once", "--enqueue", "git_status_summary")
        world.forward(minutes=5)
        assert len(world.keys("quiet")) == len(world.keys("hears")) == 1
    ws.ok("loop", "run", "--once", "--enqueue", "git_status_summary")
    file = back_up(ws)
    with other_machine(tmp_path / "new"):
        assert restore(file, tmp_path / "new/books").code == 0
        for _ in range(2):
            with World(Workspace(tmp_path / "new/books"), at="2025-02-10T06:05:00Z") as new:
                new.forward(minutes=5)
                assert len(new.keys("quiet")) == len(new.keys("hears")) == 2


def test_what_is_written_beside_git_is_declared(lived: LivedIn, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a file says whether a backup carries it."""
    ws = lived.ws
    with World(ws) as world:
        world.forward(hours=1)
    ws.ok("loop", "run", "--once")
    ws.git("reset", "-q", "--hard")
    (ws.root / "shortcut").unlink()
    ws.ok("task", "claim", "T-001")
    ws.put("docs/T-001.txt", "done\n")
    ws.ok("task", "done", "T-001")
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)
    with FakeProvider() as provider:
        use_provider(ws, provider)
        script_change(provider, write_file("agents/digest.py", DIGEST))
        ws.ok("meta", "A note every morning")
    load_token(open_workspace(ws.root))
    ws.ok("doctor", "--rebuild")
    back_up(ws)
    root, home = ws.root, cleared_home()
    found = [
        *(("home", p.relative_to(home).as_posix()) for p in home.rglob("*") if p.is_file()),
        *(
            ("state", p.relative_to(root / ".cleared").as_posix())
            for p in (root / ".cleared").rglob("*")
            if p.is_file()
        ),
        *(
            ("git", p.relative_to(root / ".git").as_posix())
            for p in (root / ".git").glob("cleared-*/**/*")
            if p.is_file()
        ),
        *(("git", p.name) for p in (root / ".git").glob("cleared-*") if p.is_file()),
    ]
    assert len(found) > 30
    assert [each for each in found if find_store(*each) is None] == []
    assert len({(s.place, s.pattern) for s in STORES}) == len(STORES)
