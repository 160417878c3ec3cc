"""Enqueue, run, pause, resume, begin anew, kill, tamper, corrupt, in any order: each job is run once, or never.

After every step: every file is as its schema says; nothing is run twice, or beside another, or out of turn; nothing
that was altered is run as what it was made into. At the end all that was asked for has a result, and the state counts
what is there. ``CLEARED_LOOP_EXAMPLES=200`` goes on for longer, another way each time.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import copy_books, remove_tree
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from looped import STEPS, TURN, Life, Loops, plugged_in, prepare
from machine_runs import run_machine

LONGER = "CLEARED_LOOP_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("CLEARED_LOOP_EXAMPLES", "4"))
STEPS_EACH = 25
KIND = st.sampled_from(("note", "note", "turn_b", "broken"))
SEED = st.integers(0, 99)
FORGED = "job_20250101T000000Z_forged"


class LoopMachine(RuleBasedStateMachine):
    """What was asked for is kept here, and read off the files otherwise."""

    template: Path
    loops: Loops

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.life = Life(copy_books(self.template, self.folder / "books"))
        self.kinds: dict[str, str] = {}
        """Job → the kind that was asked for."""
        self.seen: dict[str, dict[str, Any]] = {}
        """Queued jobs as they have been in the state, each as it was sealed."""
        self.never: set[str] = set()
        """Jobs that must not be run any more."""
        self.by: dict[str, tuple[str, str]] = {}
        self.paused = False
        self.enqueue("note", 1)

    def teardown(self) -> None:
        if not hasattr(self, "life"):
            return
        try:
            if self.paused:
                self.pause_or_resume()
            self.life.drain(self.loops)
            self.life.check(stops=None, notices=None)
            for job, kind in self.kinds.items():
                assert self.life.results().get(job, {"kind": kind})["kind"] == kind
        except BaseException as error:
            error.add_note(f"look at {self.folder}")
            raise
        remove_tree(self.folder)

    # -- what happens -----------------------------------------------------------------------------------------------

    @rule(kind=KIND, count=st.integers(1, 3))
    def enqueue(self, kind: str, count: int) -> None:
        self.life.enqueue(kind, count)
        self._asked(kind)

    @rule(kind=KIND)
    def leave_a_message(self, kind: str) -> None:
        self.life.leave(kind)
        self._asked(kind)

    @rule()
    def enqueue_what_is_refused(self) -> None:
        self.life.refused()
        assert self.life.state()["stop"]["code"] == "safety_stop"
        assert "rm -rf" in self.life.state()["safety_stops"][-1]["reason"]

    @rule()
    def an_enqueue_that_is_killed(self) -> None:
        """Nobody was told its id: it is run once, or never."""
        assert self.loops.killed_at(self.life, "messages taken", do="enqueue", kind="note")

    @rule(rotate=st.booleans())
    def run_once(self, rotate: bool) -> None:
        """Row E4: the first that waits; one of the rotation only where none does."""
        state, marks = self._state(), self.life.marks()
        waits, sound = self._waiting(state)
        self.loops.run(self.life, once=True, auto_rotate=rotate, sleep_seconds=0.0)
        if state is None or state["running"] is not None or not sound:
            return
        began = [job for what, job in self.life.marks()[len(marks) :] if what == "b"]
        if self.paused:
            assert began == []
        elif waits:
            assert began == waits[:1], (began, waits)
        else:
            assert len(began) == rotate

    @rule(cycles=st.integers(2, 4), rotate=st.booleans())
    def run(self, cycles: int, rotate: bool) -> None:
        self.loops.run(self.life, max_cycles=cycles, auto_rotate=rotate, sleep_seconds=0.0)

    @rule(step=st.sampled_from(STEPS), nth=st.integers(1, 2), rotate=st.booleans())
    def kill(self, step: str, nth: int, rotate: bool) -> None:
        self.loops.killed_at(self.life, step, nth, max_cycles=3, auto_rotate=rotate, sleep_seconds=0.0)

    @rule()
    def pause_or_resume(self) -> None:
        from cleared.work.loop.control import set_paused

        self.paused = not self.paused
        set_paused(self.life.host, self.life.knobs, "pause" if self.paused else "resume")
        assert self.life.state()["paused"] == self.paused

    @rule()
    def begin_anew(self) -> None:
        """Row E30: what waits goes with the state that is archived, which is kept."""
        archived = len(self._archived())
        self.loops.begin(self.life, do="init")
        code = self.loops.ended()
        state = self.life.state()
        assert code == (3 if state["running"] else 0)
        if code:
            return
        assert len(self._archived()) == archived + 1
        assert state["queue"] == state["jobs"] == [] and not any(state["counts"].values()), state
        self.paused = False
        results = set(self.life.results())
        waited = (set(self.life.ids) | set(self.seen)) - results
        self.life.before, self.never = results, self.never | waited
        self.life.dropped |= waited

    @rule(seed=SEED, how=st.sampled_from(("kind", "target", "job_id", "by", "seal")))
    def tamper_with_what_waits(self, seed: int, how: str) -> None:
        """Row E3: it is not run as that. What it was may come back with the backup."""
        state = self._state()
        mine = [job for job in state["queue"] if job["by"] == "person"] if state else []
        if state is None or not mine:
            return
        job = mine[seed % len(mine)]
        self.life.dropped.add(job["job_id"])
        job[how] = {"kind": "slow", "target": "elsewhere", "job_id": FORGED, "by": "rotation", "seal": "0" * 64}[how]
        self._put(state)

    @rule(seed=SEED)
    def tamper_with_a_message(self, seed: int) -> None:
        found = sorted(self.life.runtime.inbox_folder.glob("*.json"))
        if not found:
            return
        path = found[seed % len(found)]
        message = json.loads(path.read_bytes())
        if message["job"]:
            self.life.dropped.add(message["job"]["job_id"])
            message["job"]["kind"] = "slow"
            path.write_text(json.dumps(message))

    @rule(seed=SEED)
    def queue_again_what_was_queued_once(self, seed: int) -> None:
        """As it was sealed, whether it has ended or waits still."""
        state = self._state()
        known = sorted(set(self.seen) - self.never - self.life.before)
        if state is not None and known:
            state["queue"].append(self.seen[known[seed % len(known)]])
            self._put(state)

    @rule(seed=SEED, how=st.sampled_from(("cut", "gone", "backup")))
    def corrupt_the_state(self, seed: int, how: str) -> None:
        """Row E29."""
        path, backup = self.life.runtime.state_path, self.life.runtime.backup_path
        if not path.exists() or not backup.exists() or self._state() is None:
            return
        whole = path.read_bytes()
        path.unlink()
        if how == "cut":
            path.write_bytes(whole[: len(whole) * seed // 100])
        elif how == "backup":
            path.write_bytes(backup.read_bytes())

    @rule()
    def raise_the_flag(self) -> None:
        """Row E12: a loop that has nothing to do, and would sleep, does not."""
        state = self._state()
        self.life.runtime.wakeup_path.write_text(
            json.dumps(
                {
                    "schema_version": "single_agent_wakeup_v1",
                    "reason": "look",
                    "time": "2025-02-10T06:00:00Z",
                    "job_id": None,
                    "artifact": None,
                }
            )
        )
        idle = state is not None and not self._waiting(state)[0] and not state["running"]
        # A loop that slept would be ended by its alarm, long before that is over.
        self.loops.run(self.life, max_cycles=2, sleep_seconds=600.0 if idle else 0.0)
        assert not idle or not self.life.runtime.wakeup_path.exists()

    # -- what must be true ------------------------------------------------------------------------------------------

    @invariant()
    def all_is_in_order(self) -> None:
        if not hasattr(self, "life"):
            return
        try:
            self._check()
        except BaseException as error:
            error.add_note(f"look at {self.folder}")
            raise

    def _check(self) -> None:
        life, state = self.life, self._state()
        if state is not None:
            life.check_files()
            for job in state["queue"]:
                if job["job_id"] not in life.dropped:
                    self.seen.setdefault(job["job_id"], job)
        life.check_marks()
        began = [job for what, job in life.marks() if what == "b"]
        assert not self.never & set(began)
        assert FORGED not in began and FORGED not in life.results()
        rotated = [kind for kind, by in map(self._of, began) if by == "rotation"]
        fresh = [kind for job in began if job not in life.before for kind, by in [self._of(job)] if by == "rotation"]
        assert fresh == [TURN[n % len(TURN)] for n in range(len(fresh))], rotated

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _asked(self, kind: str) -> None:
        self.kinds |= {job: kind for job in self.life.ids if job not in self.kinds}

    def _of(self, job: str) -> tuple[str, str]:
        """Of which job type it is, and who asked for it."""
        if job not in self.by:
            manifest = json.loads(self.life.runtime.manifest_path(job).read_bytes())
            self.by[job] = (manifest["kind"], manifest["by"])
        return self.by[job]

    def _state(self) -> dict[str, Any] | None:
        """None where it cannot be read as it is now."""
        try:
            return self.life.state()
        except (OSError, ValueError):
            return None

    def _put(self, state: dict[str, Any]) -> None:
        path = self.life.runtime.state_path
        staged = path.with_name("staged")
        staged.write_text(json.dumps(state))
        staged.replace(path)

    def _waiting(self, state: dict[str, Any] | None) -> tuple[list[str], bool]:
        """The jobs that wait, in order; whether nobody has altered any of them, and none is done."""
        from cleared.jobs import loop_reader

        if state is None:
            return [], False
        found = [job["job_id"] for job in loop_reader.list_waiting(self.life.runtime, state)]  # type: ignore[arg-type]
        done = {job for _, job in self.life.marks()} | self.life.dropped | {FORGED}
        return found, not done & set(found) and len(set(found)) == len(found)

    def _archived(self) -> list[Path]:
        return list(self.life.runtime.archive_folder.glob("*.archived.json"))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory, starting_point: Path) -> Iterator[type[LoopMachine]]:
    folder = tmp_path_factory.mktemp("loop")
    with plugged_in(folder / "plugin"), Loops() as loops:
        LoopMachine.template = prepare(copy_books(starting_point, folder / "books"))
        LoopMachine.loops = loops
        yield LoopMachine


def test_each_job_is_run_once_or_never(machine: type[LoopMachine]) -> None:
    """Rows E3, E4, E6, E8, E10, E29, E30."""
    run_machine(machine, EXAMPLES, STEPS_EACH, derandomize=not LONGER, phases=(Phase.generate,))


@pytest.mark.parametrize("how", ["cut", "gone"])
def test_beginning_anew_after_the_state_was_lost(machine: type[LoopMachine], how: str) -> None:
    """Row E30: the backup is no reason to go on with what was there."""
    m = machine()
    m.begin()
    m.run(2, True)
    m.enqueue("note", 2)
    m.corrupt_the_state(50, how)
    m.begin_anew()
    m.all_is_in_order()
    m.run_once(True)
    m.all_is_in_order()
    m.teardown()


def test_a_loop_that_is_told_to_end_twice_ends_its_job_too(machine: type[LoopMachine]) -> None:
    m = machine()
    m.begin()
    m.enqueue("note", 1)
    m.loops.begin(m.life, max_cycles=10_000, auto_rotate=True, sleep_seconds=0.0)
    for _ in range(2):
        m.loops.signal(m.life, signal.SIGTERM)
    assert m.loops.ended() in (0, -signal.SIGTERM)
    m.all_is_in_order()
    m.teardown()
