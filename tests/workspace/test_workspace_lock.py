"""One writer at a time; whoever dies lets go."""

import multiprocessing
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from patience import PATIENCE

from cleared.base.errors import BusyError, ExitCode, WorkspaceError
from cleared.workspace.lock import LockHolder, read_holder, writer_lock

HOLD = """
import sys, time
from pathlib import Path
from cleared.workspace.lock import writer_lock
with writer_lock(Path(sys.argv[1]), 5, "agent run ingest"):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / ".cleared"


def other_process(state: Path, seconds: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state), str(seconds)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_state_folder_is_private_and_unknown_to_git(state: Path) -> None:
    with writer_lock(state, 0, "x"):
        pass
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert (state / ".gitignore").read_text() == "*\n"


def test_the_holder_is_named_to_who_waits_and_to_who_gives_up(state: Path) -> None:
    process = other_process(state, 60)
    told: list[LockHolder | None] = []
    with pytest.raises(BusyError) as caught, writer_lock(state, 0.3, "y", on_wait=told.append):
        pass
    assert caught.value.exit_code == ExitCode.BUSY
    assert f"agent run ingest (process {process.pid}, since 20" in str(caught.value)
    assert "(it was 0.3)" in str(caught.value)
    assert [found.pid for found in told if found] == [process.pid]
    assert read_holder(state) == told[0]
    process.kill()
    process.wait()
    assert read_holder(state) is None  # its text is still there, its lock is not
    with writer_lock(state, 0, "z"):
        found = read_holder(state)
        assert found is not None
        assert (found.pid, found.what) == (os.getpid(), "z")
    assert read_holder(state) is None


def test_who_waits_gets_it_when_it_is_free(state: Path) -> None:
    process = other_process(state, 0.3)
    with writer_lock(state, 30, "y"):
        assert process.wait(PATIENCE) == 0


def test_the_same_thread_twice_is_a_fault_and_another_thread_waits(state: Path) -> None:
    seen: list[str] = []

    def other() -> None:
        with writer_lock(state, 10, "other"):
            seen.append("other")

    with writer_lock(state, 0, "first"):
        with pytest.raises(RuntimeError, match="already"), writer_lock(state, 0, "again"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.1)
        seen.append("first")
    thread.join()
    assert seen == ["first", "other"]
    assert not list(state.glob("waiting-*")), "nobody waits any more"
    with writer_lock(state, 0, "after"):
        pass


def test_an_error_inside_lets_go(state: Path) -> None:
    with pytest.raises(ZeroDivisionError), writer_lock(state, 0, "x"):
        raise ZeroDivisionError
    with writer_lock(state, 0, "x"):
        pass


def test_ctrl_c_while_waiting_passes_through(state: Path) -> None:
    process = other_process(state, 60)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), writer_lock(state, 30, "y"):
        pass
    process.kill()
    process.wait()
    with writer_lock(state, 0, "y"):
        pass


def test_programs_the_holder_starts_do_not_keep_it(state: Path) -> None:
    with writer_lock(state, 0, "x"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], close_fds=False)
    with writer_lock(state, 0, "y"):
        child.kill()
    child.wait()


def test_the_child_of_a_holder_that_was_killed_is_waited_for(state: Path) -> None:
    """It has a copy of the lock until its exec is through: for a moment, or as here for as long as it keeps it."""
    keeps = HOLD.replace(
        "    time.sleep",
        """    import os
    if not os.fork():
        os.close(1)
        time.sleep(float(sys.argv[3]))
        os._exit(0)
    time.sleep""",
    )
    for seconds, is_freed in (("0.3", True), ("20", False)):
        holder = subprocess.Popen(
            [sys.executable, "-c", keeps, str(state), "60", seconds],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        time.sleep(0.1)
        holder.kill()
        holder.wait()
        if is_freed:
            with writer_lock(state, 0, "repair"):
                pass
        else:
            with pytest.raises(BusyError), writer_lock(state, 0, "repair"):
                pass
            os.killpg(holder.pid, signal.SIGKILL)


def test_a_state_folder_deleted_meanwhile_is_made_again(state: Path) -> None:
    process = other_process(state, 60)
    timer = threading.Timer(0.2, lambda: shutil.rmtree(state))
    timer.start()
    killer = threading.Timer(0.5, process.kill)
    killer.start()
    with writer_lock(state, 30, "y"), pytest.raises(BusyError), _in_thread(state):
        pass
    process.wait()


class _in_thread:
    """The lock, tried from another thread."""

    def __init__(self, state: Path) -> None:
        self.state = state

    def __enter__(self) -> None:
        found: list[BaseException] = []

        def attempt() -> None:
            try:
                with writer_lock(self.state, 0, "z"):
                    pass
            except BusyError as error:
                found.append(error)

        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
        if found:
            raise found[0]

    def __exit__(self, *_: object) -> None:
        pass


def test_a_state_folder_that_is_something_else(state: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    state.symlink_to("elsewhere")
    with pytest.raises(WorkspaceError, match="not a file or a link"), writer_lock(state, 0, "x"):
        pass


def _count(state: Path, times: int) -> None:
    for _ in range(times):
        with writer_lock(state, 60, "count"):
            path = state / "n"
            number = int(path.read_text()) if path.exists() else 0
            time.sleep(0.001)
            path.write_text(str(number + 1))


def test_many_writers_lose_no_update(state: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count, args=(state, 15)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (state / "n").read_text() == "60"
