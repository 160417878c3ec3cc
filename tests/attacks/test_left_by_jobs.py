"""What jobs leave to those that start and judge them: how they end, where a link leads, what goes on after them."""

from __future__ import annotations

import resource
from unittest.mock import Mock

import pytest
from held_jobs import Jobs
from running import eventually, has_ended

from cleared.base.tree_removal import remove_tree
from cleared.processes import fenced_start, leftovers
from cleared.processes.confinement import landlock_abi
from cleared.work.loop import job_confinement

pytestmark = pytest.mark.skipif(not landlock_abi(), reason="this kernel has nothing to hold a job with")


@pytest.mark.parametrize("number", [9, 34, 40, 64])
def test_a_job_may_end_by_any_signal(jobs: Jobs, number: int) -> None:
    """Most of those for real time have no name: who watches over it says their number, and ends not by it."""
    jobs.run(f"os.kill(os.getpid(), {number})")
    (job,) = jobs.ws.json("loop", "jobs")
    assert (job["status"], job["exit_code"]) == ("failed", -number) and "killed by" in job["summary"], job


@pytest.mark.parametrize("wall", [True, False])
@pytest.mark.parametrize("place", ["agents", "agents/approvals", "scripts", ".git/hooks"])
def test_a_link_gives_a_plug_in_nothing_that_it_may_not_write(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, place: str, wall: bool
) -> None:
    """A push can bring a link in the place of the folder that its type names."""
    if not wall:
        monkeypatch.setattr(job_confinement, "PROTECTED", ())
    (jobs.ws.root / place).mkdir(parents=True, exist_ok=True)
    (jobs.ws.root / "made").rmdir()
    (jobs.ws.root / "made").symlink_to(jobs.ws.root / place)
    found = jobs.run("(job.root / 'made/evil').write_text('x')")
    (job,) = jobs.ws.json("loop", "jobs")
    assert (jobs.ws.root / place / "evil").exists() is not wall, job
    assert ("what no plug-in's may" in job["summary"] and found is None) is wall, job


DEEP = """
for place in (job.root / "made", os.environ["TMPDIR"]):
    os.chdir(place)
    for _ in range(3000):
        os.mkdir("a")
        os.chdir("a")
    open(".env", "w").close()
"""


def test_folders_without_end_stop_no_later_job(jobs: Jobs) -> None:
    """Those of a job are looked through before each later one, for what is forbidden, and its own are removed."""
    jobs.run(DEEP)
    try:
        assert jobs.run("said['ran'] = True; said['text'] = (job.root / 'config.yaml').read_text()[:0]") is not None
        assert [job["status"] for job in jobs.ws.json("loop", "jobs")] == ["succeeded"] * 2
        assert not list((jobs.ws.root / ".cleared/loop").glob("scratch/*"))
    finally:
        remove_tree(jobs.ws.root / "made")
    assert not (jobs.ws.root / "made").exists()


HEADLESS = """
import threading
if os.fork() == 0:
    os.setsid()
    for descriptor in range(3):
        os.close(descriptor)
    def go_on():
        held = hold_mark(job.root / "made/headless")
        time.sleep(600)
    threading.Thread(target=go_on).start()
    libc.syscall(ctypes.c_long(60 if os.uname().machine == "x86_64" else 93), 0)
while not (job.root / "made/headless").exists():
    time.sleep(0.01)
said["done"] = True
"""


def test_a_process_whose_first_thread_has_ended_is_ended(jobs: Jobs) -> None:
    """Without a process namespace: the kernel calls it a zombie, though its other threads run on."""
    assert jobs.run(HEADLESS) == {"done": True}
    assert has_ended(jobs.ws.root / "made/headless")


FORK_LATE = """
if os.fork() == 0:
    os.setsid()
    for descriptor in range(3):
        os.close(descriptor)
    held = hold_mark(job.root / "made/left")
    while not (job.root / "made/ending").exists():
        time.sleep(0.01)
    made = libc.fork()
    if made == 0:
        time.sleep(60)
    (job.root / "made/written").write_text("refused" if made < 0 else "made")
    (job.root / "made/written").rename(job.root / "made/outcome")
    time.sleep(60)
while not (job.root / "made/left").exists():
    time.sleep(0.01)
said["done"] = True
"""


@pytest.mark.parametrize("wall", [True, False])
def test_what_a_job_has_left_makes_no_more_processes(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    """Without a process namespace: processes that are always another would else be gone before each can be ended. One
    fork says it: what hops without end fills the machine with processes instead."""
    made, end_children = jobs.ws.root / "made", leftovers.end_children

    def end_after_the_attempt() -> None:
        if (made / "left").exists():
            (made / "ending").touch()
            eventually((made / "outcome").exists)
        end_children()

    monkeypatch.setattr(leftovers, "end_children", end_after_the_attempt)
    if not wall:
        monkeypatch.setattr(fenced_start, "_ending", Mock(is_set=lambda: False))
    assert jobs.run(FORK_LATE) == {"done": True}
    assert (made / "outcome").read_text() == ("refused" if wall else "made")
    assert has_ended(made / "left")


@pytest.mark.parametrize("wall", [True, False])
def test_a_job_leaves_no_core_file(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, wall: bool) -> None:
    """With exactly this limit the kernel starts no program for it either."""
    if not wall:
        monkeypatch.setattr(fenced_start, "core_limit", lambda: resource.getrlimit(resource.RLIMIT_CORE)[1])
    found = jobs.run("import resource\nsaid['core'] = resource.getrlimit(resource.RLIMIT_CORE)")
    outside = resource.getrlimit(resource.RLIMIT_CORE)[1]
    assert found["core"] == [min(outside, 1) if outside >= 0 else 1] * 2 if wall else [outside] * 2
