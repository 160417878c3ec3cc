"""Loops in processes that are killed, jobs that leave a mark for each time they are run, and what must be true then.

A process that has imported all forks one for each order. It gets SIGKILL from itself at a step of the machine
(``Machine.step``), or any signal at any time from whoever knows its number.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import running
from forked import Forking, attend
from patience import PATIENCE

STEPS = (
    "messages taken",
    "watcher ready",
    "start recorded",
    "job assigned",
    "flag written",
    "result written",
    "job ended",
    "collected",
)
TURN = ("turn_a", "turn_b", "turn_c")
NAMES = ("note", "slow", "waits", "broken", "noop", *TURN)
RAN = "ran/log"
"""Where each job says that it begins, and that it ends."""
_PLUG_IN = f"""
from cleared.jobs.job_types import JobType

def kind(name, between="", **more):
    text = f'echo "b $CLEARED_JOB" >>{RAN}; {{between}} echo "e $CLEARED_JOB" >>{RAN}; echo noted'
    return JobType(name, "Leaves a mark.", command=("sh", "-c", text), default_target="mark", reads=("ran",),
                writes=("ran",), **more)

note = kind("note", rotates=False)
slow = kind("slow", "sleep 0.2;", rotates=False)
waits = kind("waits", "while [ ! -e ran/go ]; do sleep 0.05; done;", rotates=False)
broken = kind("broken", 'echo "e $CLEARED_JOB" >>{RAN}; exit 1;', rotates=False)
noop = JobType("noop", "Does nothing.", command=("true",), default_target="nothing", reads=("ran",))
turn_a, turn_b, turn_c = kind("turn_a"), kind("turn_b"), kind("turn_c")
"""


def plug_in(folder: Path) -> None:
    """The kinds, as an installed distribution lies on the path."""
    info = folder / "marking_kinds-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / "marking_kinds.py").write_text(_PLUG_IN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: marking_kinds\nVersion: 1.0\n")
    lines = "".join(f"{name} = marking_kinds:{name}\n" for name in NAMES)
    (info / "entry_points.txt").write_text(f"[cleared.jobs]\n{lines}")


@contextmanager
def plugged_in(folder: Path) -> Iterator[None]:
    """Where those kinds are, and in real time: two jobs of one second have different ids all the same."""
    import pytest

    plug_in(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        patch.setenv("PYTHONPATH", str(folder))
        for name in [n for n in os.environ if n.startswith("SINGLE_AGENT_") or n == "CLEARED_CLOCK"]:
            patch.delenv(name)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield
    sys.modules.pop("marking_kinds", None)


def prepare(root: Path) -> Path:
    """Have a workspace's settings name those kinds; nothing of them is ever trimmed, and failures stop nothing."""
    from harness import Workspace

    Workspace(root).config(
        f"loop.plugins=[{', '.join(NAMES)}]",
        f"loop.rotation=[{', '.join(TURN)}]",
        "loop.max_failures=1000",
        "loop.keep_jobs=100000",
    )
    (root / "ran").mkdir()
    return root


class Loops(Forking):
    """Loops in forked processes, one at a time."""

    def begin(self, life: Life, step: str = "", nth: int = 1, do: str = "run", **flags: Any) -> None:
        """Have a loop begun with these flags; killed at the ``nth`` time of a step."""
        life.told.unlink(missing_ok=True)
        self.order(
            {
                "root": str(life.root),
                "folder": str(life.folder),
                "told": str(life.told),
                "step": step,
                "nth": nth,
                "do": do,
                "flags": flags,
            }
        )

    def killed_at(self, life: Life, step: str, nth: int = 1, do: str = "run", **flags: Any) -> bool:
        """Whether it came to that step."""
        self.begin(life, step, nth, do, **flags)
        code = self.ended()
        assert code in (0, -signal.SIGKILL), code
        return code != 0

    def run(self, life: Life, do: str = "run", **flags: Any) -> list[str]:
        """The steps that it came by."""
        self.begin(life, do=do, **flags)
        code = self.ended()
        assert code == 0, code
        return life.told.read_text().splitlines()[1:]

    def signal(self, life: Life, number: int) -> None:
        """Send it a signal, if it is there still."""
        pid = eventually(lambda: self._pid(life))
        with suppress(ProcessLookupError):
            at = os.pidfd_open(pid)
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) == self.process.pid:
                    signal.pidfd_send_signal(at, number)
            except FileNotFoundError:
                pass
            finally:
                os.close(at)

    def up(self, life: Life) -> None:
        """Wait until it has begun."""
        eventually(lambda: self._pid(life))

    def _pid(self, life: Life) -> int | None:
        if not life.told.exists():
            return None
        first, end, _ = life.told.read_text().partition("\n")
        return int(first) if end else None


@dataclass
class Life:
    """One runtime directory, from its first loop to its last, and what was asked of it."""

    root: Path
    ids: list[str] = field(default_factory=list)
    """Those that ``enqueue`` has returned."""
    shot: set[str] = field(default_factory=set)
    """Those that need not have a result of their own."""
    killed: set[tuple[int, str]] = field(default_factory=set)
    """Processes that watched over jobs, one after the other, until they were killed."""
    dropped: set[str] = field(default_factory=set)
    """Those that need not be run any more: archived with a state, or altered."""
    before: set[str] = field(default_factory=set)
    """Those whose results are of a state that is archived."""

    def __post_init__(self) -> None:
        from cleared.changes.workspace_opening import open_workspace
        from cleared.work.loop.loop_settings import read_settings

        self.host = open_workspace(self.root)
        self.folder = self.root / ".cleared/loop"
        self.told = self.root.parent / f"{self.root.name}.told"
        self.knobs = read_settings(self.root, self.host.config, {"runtime_dir": str(self.folder)})
        self.runtime = self.knobs.runtime

    # -- what is done to it -----------------------------------------------------------------------------------------

    def enqueue(self, kind: str, count: int = 1) -> str:
        from cleared.work.loop.control import enqueue_job

        for _ in range(count):
            self.ids.append(enqueue_job(self.host, self.knobs, kind, None))
        return self.ids[-1]

    def leave(self, kind: str, count: int = 1) -> None:
        """Enqueue without taking in, as whoever is killed in between does."""
        from cleared.jobs import inbox

        for _ in range(count):
            self.ids.append(inbox.enqueue_job(self.runtime, self.host.config, kind, None, "person", self.host.clock))

    def refused(self, kind: str = "rm -rf") -> None:
        from cleared.base.errors import PolicyError
        from cleared.work.loop.control import enqueue_job

        try:
            enqueue_job(self.host, self.knobs, kind, None)
        except PolicyError:
            return
        raise AssertionError(f"{kind} was not refused")

    def kill_supervisor(self) -> bool:
        """Kill the process that watches over the job that is on, if one does."""
        from cleared.base import process_identity

        running = self.state()["running"] if self.runtime.state_path.exists() else None
        if running is None:
            return False
        try:
            at = os.pidfd_open(running["pid"])
        except OSError:
            return False
        try:
            if process_identity.process_start(running["pid"]) != running["pid_started"]:
                return False
            signal.pidfd_send_signal(at, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(at)
        self.killed.add((running["pid"], running["pid_started"]))
        return True

    def drain(self, loops: Loops, **flags: Any) -> None:
        """Start the loop again, with these flags, until nothing waits and nothing runs."""
        end, cycles = time.monotonic() + PATIENCE, 3
        while cycles:
            loops.run(self, max_cycles=cycles, sleep_seconds=0.02, **flags)
            cycles = min(50, self.left())
            assert not cycles or time.monotonic() < end, self.state()

    # -- what there is ----------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.runtime.state_path.read_bytes())
        return found

    def left(self) -> int:
        state = self.state()
        inbox = [p for p in self.runtime.inbox_folder.iterdir() if p.suffix == ".json"]
        return len(state["queue"]) + (state["running"] is not None) + len(inbox)

    def results(self) -> dict[str, dict[str, Any]]:
        found = self.runtime.jobs_folder.glob("job_*.result.json")
        return {p.name.removesuffix(".result.json"): json.loads(p.read_bytes()) for p in found}

    def marks(self) -> list[tuple[str, str]]:
        """``b`` or ``e``, and a job's id, in order."""
        path = self.root / RAN
        lines = path.read_text().splitlines() if path.exists() else []
        return [(line[0], line[2:]) for line in lines]

    # -- what must be true ------------------------------------------------------------------------------------------

    def check_files(self) -> None:
        """Every file is as its schema says."""
        from cleared.jobs import file_schemas

        for path, name in files(self):
            file_schemas.read_record(name, path)

    def was_shot(self, job: str) -> bool:
        """Whether it may have died with the process that watched over it."""
        manifest = json.loads(self.runtime.manifest_path(job).read_bytes())
        return job in self.shot or (manifest["pid"], manifest["pid_started"]) in self.killed

    def check_marks(self) -> None:
        """Nothing is run twice, and nothing beside another."""
        marks = self.marks()
        twice = [mark for mark, times in Counter(marks).items() if times > 1]
        assert twice == [], twice
        how = {job: (found["status"], found["summary"]) for job, found in self.results().items()}
        for (what, job), (then, other) in pairwise(marks):
            if what == "b":
                is_cut = self.was_shot(job) or how.get(job, ("", ""))[1].startswith("stopped by a person")
                assert (then, other) == ("e", job) or is_cut, f"{other} ran beside {job}: {how}"
            else:
                assert then == "b", (job, other)

    def check(self, *, stops: int | None = 0, notices: int | None = 0) -> None:
        """What holds when nothing waits and nothing runs any more, whatever was killed before."""
        self.check_files()
        self.check_marks()
        state, results = self.state(), self.results()
        assert self.left() == 0, state
        assert len(set(self.ids)) == len(self.ids)
        lost = set(self.ids) - self.dropped - set(results)
        assert not lost, f"lost: {lost}"
        for job, result in results.items():
            assert result["job_id"] == job and self.runtime.manifest_path(job).exists(), result
            self._check_result(result, {what for what, name in self.marks() if name == job})
        assert {job for _, job in self.marks()} <= set(results)
        for path in self.runtime.jobs_folder.glob("job_*.manifest.json"):
            assert json.loads(path.read_bytes())["status"] == "queued" or path.name.split(".")[0] in results, path
        counts = Counter(r["status"] for job, r in results.items() if job not in self.before)
        assert state["counts"] == {s: counts[s] for s in ("succeeded", "failed", "failed_or_no_result")}, counts
        rows = {row["job_id"]: row for row in state["jobs"]}
        assert len(rows) == len(state["jobs"]) == min(25, counts.total())
        for job, row in rows.items():
            assert {k: v for k, v in row.items() if k != "by"}.items() <= results[job].items(), (row, results[job])
        lost_jobs = [job for job, result in results.items() if result["status"] == "failed_or_no_result"]
        failed = Counter(json.loads(self.runtime.manifest_path(job).read_bytes())["pid"] for job in lost_jobs)
        assert all(times == 1 for times in failed.values()), "each that was killed has watched over one job then"
        tree = json.loads(self.runtime.tree_path.read_bytes())
        assert {k: tree["summary"][k] for k in state["counts"]} == state["counts"]
        assert stops is None or len(state["safety_stops"]) == stops, state["safety_stops"]
        assert notices is None or len(state["notices"]) == notices, state["notices"]

    def _check_result(self, result: dict[str, Any], marks: set[str]) -> None:
        job, how = result["job_id"], result["status"]
        if result["kind"] not in NAMES or result["kind"] == "noop":
            return
        wanted = "failed" if result["kind"] == "broken" else "succeeded"
        if how == "failed_or_no_result":
            assert self.was_shot(job), result
        elif result["summary"].startswith("stopped by a person"):
            assert how == "failed", result
            return
        else:
            assert how == wanted, result
        if how != "failed_or_no_result":
            assert marks == {"b", "e"}, (result, marks)


def files(life: Life) -> Iterator[tuple[Path, Any]]:
    """The files of a loop that have a schema, with its name."""
    runtime = life.runtime
    for path, name in (
        (runtime.state_path, "state"),
        (runtime.backup_path, "state"),
        (runtime.tree_path, "tree"),
        (runtime.wakeup_path, "wakeup"),
    ):
        if path.exists():
            yield path, name
    for folder, pattern, name in (
        (runtime.jobs_folder, "*.manifest.json", "manifest"),
        (runtime.jobs_folder, "*.result.json", "result"),
        (runtime.inbox_folder, "*.json", "inbox"),
    ):
        for path in folder.glob(pattern):
            if not path.name.startswith("."):
                yield path, name


def eventually(what: Callable[[], Any], seconds: float = PATIENCE) -> Any:
    """What it gives, as soon as that is something: sooner than elsewhere, what is to be killed may be gone again."""
    return running.eventually(what, seconds, pause=0.002)


# -- in the forked process --------------------------------------------------------------------------------------------


def _obey(order: dict[str, Any]) -> int:
    from cleared.base.errors import ClearedError, Interrupted
    from cleared.changes.host_cache import HostCache
    from cleared.changes.workspace_opening import open_workspace
    from cleared.work.loop import control
    from cleared.work.loop.loop_settings import read_settings
    from cleared.work.loop.runner import run_loop

    left = order["nth"]
    signal.alarm(300)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with Path(order["told"]).open("a") as told:

        def point(name: str) -> None:
            nonlocal left
            told.write(f"{name}\n")
            told.flush()
            left -= name == order["step"]
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        open_ = partial(open_workspace, Path(order["root"]), on_step=point, say=lambda _: None)
        host, flags = open_(), order["flags"]
        once, kind = flags.pop("once", False), flags.pop("kind", "note")
        found = read_settings(host.root, host.config, {"runtime_dir": order["folder"], **flags})
        do: dict[str, Callable[[], Any]] = {
            "run": lambda: run_loop(host, HostCache(open_), found, once=once),
            "init": lambda: control.init_loop(host, found),
            "enqueue": lambda: control.enqueue_job(host, found, kind, None),
        }
        told.write(f"{os.getpid()}\n")
        told.flush()
        try:
            do[order["do"]]()
        except Interrupted:
            return 0
        except ClearedError as error:
            print(error, file=sys.stderr)
            return int(error.exit_code)
    return 0


def main() -> None:
    from cleared.base.errors import WorkspaceError
    from cleared.jobs import file_schemas
    from cleared.jobs.job_types import load_job_types
    from cleared.workspace.settings.model import Config, Loop

    for path in file_schemas.SCHEMA_FOLDER.glob("*.json"):
        with suppress(WorkspaceError):
            file_schemas.check_record(path.stem, {}, "")  # type: ignore[arg-type]
    with suppress(WorkspaceError):
        file_schemas.check_record("tree", {}, "", "state")
    with suppress(WorkspaceError):
        load_job_types(Config(loop=Loop(plugins=NAMES)))
    attend(_obey)
