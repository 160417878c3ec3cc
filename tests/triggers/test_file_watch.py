"""Hints from the real watchdog, about real directories."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import IDENTITY
from patience import PATIENCE

from cleared.base.clock import SystemClock
from cleared.triggers.file_watch import FolderWatcher
from cleared.triggers.watched_folder import WatchedFolder

QUIET = 0.3
LATE = 15.0


class Ear:
    """What a watcher told."""

    def __init__(self, *, polling: bool = False) -> None:
        self.heard: list[str] = []
        self.news = threading.Condition()
        self.polling = polling
        self.quiet = 2.3 if polling else QUIET
        self.watcher = FolderWatcher(self.hint, polling=polling)
        self.thread: threading.Thread | None = None

    def hint(self, tag: str) -> None:
        with self.news:
            self.thread = threading.current_thread()
            self.heard.append(tag)
            self.news.notify_all()

    def forget(self) -> None:
        """Wait until nothing comes any more, and begin anew."""
        while True:
            with self.news:
                self.heard.clear()
            time.sleep(self.quiet)
            if not self.heard:
                return

    def hears(self, tag: str = "a") -> bool:
        with self.news:
            return self.news.wait_for(lambda: tag in self.heard, LATE)

    def hears_nothing(self) -> bool:
        time.sleep(self.quiet)
        return not self.heard


@pytest.fixture(params=[False, True], ids=["told", "polling"])
def either(request: pytest.FixtureRequest) -> Iterator[Ear]:
    ear = Ear(polling=request.param)
    ear.watcher.start()
    yield ear
    ear.watcher.close()


@pytest.fixture
def ear() -> Iterator[Ear]:
    ear = Ear()
    ear.watcher.start()
    yield ear
    ear.watcher.close()


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    made = tmp_path / "import"
    made.mkdir()
    return made


def old(file: Path) -> None:
    os.utime(file, (1e9, 1e9))


def copied(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-p", str(source), str(target)], check=True)


ACTIONS: dict[str, Callable[[Path], object]] = {
    "made": lambda d: (d / "new.csv").write_text("1"),
    "made empty": lambda d: (d / "new.csv").touch(),
    "written to": lambda d: (d / "a.csv").write_text("longer than before"),
    "touched": lambda d: (d / "a.csv").touch(),
    "made old": lambda d: old(d / "a.csv"),
    "renamed": lambda d: (d / "a.csv.part").rename(d / "b.csv"),
    "moved in": lambda d: (d.parent / "outside.csv").rename(d / "b.csv"),
    "moved deeper": lambda d: (d / "a.csv").rename(d / "x/a.csv"),
    "copied with its times": lambda d: copied(d.parent / "outside.csv", d / "b.csv"),
    "written to, deeper": lambda d: (d / "x/c.csv").write_text("longer than before"),
    "in a new folder": lambda d: shutil.copytree(d / "x", d / "y/z"),
    "a folder moved in": lambda d: (d.parent / "folder").rename(d / "y"),
    "deleted": lambda d: (d / "a.csv").unlink(),
    "permitted": lambda d: (d / "a.csv").chmod(0o600),
    "an odd name": lambda d: Path(os.fsdecode(os.fsencode(d) + b"/a\n\xff.csv")).write_text("1"),
}


class TestWhatHints:
    @pytest.mark.parametrize("action", ACTIONS)
    def test_what_can_mean_new_content(self, ear: Ear, drop: Path, action: str) -> None:
        self.prepare(drop)
        assert ear.watcher.set_directories("a", [drop]) == []
        ACTIONS[action](drop)
        assert ear.hears()

    def test_what_can_mean_new_content_polled(self, drop: Path) -> None:
        ears = {action: Ear(polling=True) for action in ACTIONS}
        try:
            for n, ear in enumerate(ears.values()):
                each = drop.parent / str(n) / "import"
                each.mkdir(parents=True)
                self.prepare(each)
                ear.watcher.start()
                assert ear.watcher.set_directories("a", [each]) == []
            time.sleep(0.1)
            for n, action in enumerate(ACTIONS):
                ACTIONS[action](drop.parent / str(n) / "import")
            deaf = {action for action, ear in ears.items() if not ear.hears()}
            assert deaf == set()
        finally:
            for ear in ears.values():
                ear.watcher.close()

    def prepare(self, drop: Path) -> None:
        (drop / "x").mkdir()
        (drop.parent / "folder").mkdir()
        for path in ("import/a.csv", "import/a.csv.part", "import/x/c.csv", "outside.csv", "folder/f.csv"):
            (drop.parent / path).write_text("1")

    def test_looking_does_not(self, either: Ear, drop: Path) -> None:
        for n in range(5):
            (drop / f"{n}.csv").write_text("1")
            (drop / f"x{n}").mkdir()
            (drop / f"x{n}/a.csv").write_text("2")
        either.watcher.set_directories("a", [drop])
        time.sleep(0.1)
        looked = WatchedFolder(drop.parent, ["import/"], 0.05, SystemClock(), max_bytes=1 << 20)
        assert len(looked.scan_files().ready) == 10  # all read
        assert list(drop.rglob("*"))
        assert (drop / "0.csv").read_text()
        assert either.hears_nothing()

    def test_what_happens_elsewhere_does_not(self, either: Ear, drop: Path) -> None:
        (drop.parent / "other").mkdir()
        either.watcher.set_directories("a", [drop])
        (drop.parent / "other/a.csv").write_text("1")
        (drop.parent / "b.csv").write_text("1")
        assert either.hears_nothing()

    def test_each_tag_for_itself(self, ear: Ear, tmp_path: Path) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        one.mkdir()
        two.mkdir()
        ear.watcher.set_directories("a", [one])
        ear.watcher.set_directories("b", [two])
        ear.watcher.set_directories("c", [one, two])
        (one / "x").write_text("1")
        assert ear.hears("a")
        assert ear.hears("c")
        assert "b" not in ear.heard
        ear.forget()
        ear.watcher.set_directories("a", [two])
        (one / "x").write_text("2")
        assert ear.hears("c")
        assert ear.hears_nothing() or set(ear.heard) == {"c"}
        ear.forget()
        ear.watcher.set_directories("c", [])
        (two / "x").write_text("2")
        assert ear.hears("a")
        assert ear.hears("b")
        assert set(ear.heard) == {"a", "b"}

    def test_a_commit_is_told_by_the_directories_of_git(self, ear: Ear, tmp_path: Path) -> None:
        def git(*args: str) -> None:
            subprocess.run(["git", *args], cwd=tmp_path, env=os.environ | IDENTITY, check=True, capture_output=True)

        git("init", "-q")
        ear.watcher.set_directories("head", [tmp_path / ".git"], recursive=False)
        ear.watcher.set_directories("head", [tmp_path / ".git/refs/heads", tmp_path / ".git/logs"], recursive=True)
        (tmp_path / ".git/objects/aa").mkdir()
        (tmp_path / ".git/objects/aa/bb").write_text("1")
        assert ear.hears_nothing()
        git("update-ref", "refs/heads/x/y", git_commit(tmp_path))
        assert ear.hears("head")
        ear.forget()
        git("checkout", "-q", "-b", "other")
        assert ear.hears("head")

    def test_a_burst_is_few_hints_and_one_comes_after_the_last_file(self, ear: Ear, drop: Path) -> None:
        looked = WatchedFolder(drop.parent, ["import/"], 0.0, SystemClock(), max_bytes=1 << 20)
        ear.watcher.set_directories("a", [drop])
        found, hints = 0, 0
        writer = threading.Thread(target=lambda: [(drop / f"{n}.csv").write_text("1") for n in range(3000)])
        writer.start()
        while found < 3000 and ear.hears():
            with ear.news:
                hints += len(ear.heard)
                ear.heard.clear()
            found = len(looked.scan_files().ready)
        writer.join()
        assert found == 3000
        assert hints < 600

    @pytest.mark.slow
    def test_a_full_queue_of_the_system_does_not_silence_it(self, ear: Ear, drop: Path) -> None:
        ear.watcher.set_directories("a", [drop])
        subprocess.run(
            [sys.executable, "-c", "import sys\nfor n in range(20_000): open(f'{sys.argv[1]}/{n}', 'w').close()", drop],
            check=True,
        )
        assert ear.hears()
        ear.forget()
        (drop / "after.csv").write_text("1")
        assert ear.hears()


def git_commit(root: Path) -> str:
    """A commit that no branch knows."""
    tree = subprocess.run(["git", "mktree"], cwd=root, input=b"", capture_output=True, check=True).stdout.decode()
    made = subprocess.run(
        ["git", "commit-tree", tree.strip(), "-m", "x"],
        cwd=root,
        env=os.environ | IDENTITY,
        capture_output=True,
        check=True,
    )
    return made.stdout.decode().strip()


class TestFoldersThatComeAndGo:
    @pytest.mark.slow
    def test_one_that_is_not_there_yet(self, either: Ear, tmp_path: Path) -> None:
        drop = tmp_path / "a/b/import"
        assert either.watcher.set_directories("a", [drop]) == []
        (tmp_path / "unrelated.csv").write_text("1")
        (tmp_path / "a").mkdir()
        assert either.hears_nothing()
        drop.mkdir(parents=True)
        assert either.hears()
        either.forget()
        (drop / "x.csv").write_text("1")
        assert either.hears()

    def test_one_that_appears_with_its_files(self, ear: Ear, tmp_path: Path) -> None:
        drop = tmp_path / "a/b/import"
        ear.watcher.set_directories("a", [drop])
        drop.mkdir(parents=True)
        (drop / "x.csv").write_text("1")
        assert ear.hears()
        looked = WatchedFolder(tmp_path, ["a/b/import"], 0.0, SystemClock(), max_bytes=1 << 20)
        assert [f.path for f in looked.scan_files().ready] == ["a/b/import/x.csv"]

    @pytest.mark.slow
    def test_one_that_is_deleted_and_made_again(self, either: Ear, drop: Path) -> None:
        either.watcher.set_directories("a", [drop])
        for _ in range(1 if either.polling else 3):
            either.forget()
            shutil.rmtree(drop)
            assert either.hears()
            either.forget()
            drop.mkdir()
            assert either.hears()
            either.forget()
            (drop / "x.csv").write_text("1")
            assert either.hears()

    def test_one_that_is_deleted_and_made_again_at_once(self, either: Ear, drop: Path) -> None:
        either.watcher.set_directories("a", [drop])
        for n in range(1 if either.polling else 5):
            shutil.rmtree(drop)
            drop.mkdir()
            time.sleep(0.1)
            either.watcher.set_directories("a", [drop])  # as is done now and then
            either.forget()
            (drop / f"{n}.csv").write_text("1")
            assert either.hears(), n

    def test_one_that_is_moved_away_and_made_again(self, ear: Ear, drop: Path) -> None:
        ear.watcher.set_directories("a", [drop])
        drop.rename(drop.parent / "old")
        drop.mkdir()
        assert ear.watcher.set_directories("a", [drop]) == []
        ear.forget()
        (drop / "x.csv").write_text("1")
        assert ear.hears()
        ear.forget()
        (drop.parent / "old/x.csv").write_text("1")
        assert ear.hears_nothing()

    def test_the_workspace_that_goes_away_for_a_while(self, ear: Ear, tmp_path: Path) -> None:
        books = tmp_path / "books"
        (books / "import").mkdir(parents=True)
        ear.watcher.set_directories("a", [books / "import"])
        shutil.rmtree(books)
        assert ear.hears()
        ear.forget()
        (books / "import").mkdir(parents=True)
        assert ear.hears()
        ear.forget()
        (books / "import/x.csv").write_text("1")
        assert ear.hears()

    def test_one_that_is_reached_by_a_link(self, ear: Ear, drop: Path) -> None:
        link = drop.parent / "link"
        link.symlink_to(drop.parent)
        ear.watcher.set_directories("a", [link / "import"])
        (drop / "x.csv").write_text("1")
        assert ear.hears()

    def test_asking_again_changes_nothing(self, ear: Ear, drop: Path) -> None:
        ear.watcher.set_directories("a", [drop])
        threads = set(threading.enumerate())
        start = time.process_time()
        for _ in range(200):
            assert ear.watcher.set_directories("a", [drop]) == []
        assert time.process_time() - start < 0.2
        assert set(threading.enumerate()) == threads
        assert ear.hears_nothing()


class TestStartAndEnd:
    def test_both_may_be_said_twice(self, drop: Path) -> None:
        before = threading.active_count()
        ear = Ear()
        ear.watcher.close()
        ear.watcher.set_directories("a", [drop])  # begins with the start
        (drop / "x.csv").write_text("1")
        assert ear.hears_nothing()
        ear.watcher.start()
        ear.watcher.start()
        (drop / "x.csv").write_text("2")
        assert ear.hears()
        assert ear.thread not in (None, threading.main_thread())
        ear.forget()
        ear.watcher.close()
        ear.watcher.close()
        assert threading.active_count() == before
        (drop / "x.csv").write_text("3")
        assert ear.hears_nothing()
        assert ear.watcher.set_directories("a", [drop]) == []
        ear.watcher.start()
        (drop / "x.csv").write_text("4")
        assert ear.hears()
        ear.watcher.close()

    def test_closing_in_the_middle_of_it(self, drop: Path) -> None:
        for _ in range(5):
            ear = Ear()
            ear.watcher.start()
            ear.watcher.set_directories("a", [drop])
            stop = threading.Event()

            def write(stop: threading.Event = stop) -> None:
                while not stop.is_set():
                    (drop / "x.csv").write_text("1")

            writer = threading.Thread(target=write)
            writer.start()
            assert ear.hears()
            ear.watcher.close()
            told = len(ear.heard)
            time.sleep(0.05)
            assert len(ear.heard) == told
            stop.set()
            writer.join()

    def test_it_costs_nothing_when_nothing_happens(self, tmp_path: Path) -> None:
        code = """
import sys, time
from pathlib import Path
from cleared.triggers.file_watch import FolderWatcher
watcher = FolderWatcher(lambda tag: None)
watcher.start()
for n in range(10):
    folder = Path(sys.argv[1], str(n))
    folder.mkdir()
    watcher.set_directories(str(n), [folder])
start = time.process_time()
time.sleep(2)
print(time.process_time() - start)
"""
        done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
        assert float(done.stdout) < 0.01

    def test_it_says_nothing_on_the_terminal(self, drop: Path) -> None:
        code = """
import shutil, sys, time
from pathlib import Path
from cleared.triggers.file_watch import FolderWatcher
drop = Path(sys.argv[1])
watcher = FolderWatcher(lambda tag: None)
watcher.start()
watcher.set_directories("a", [drop])
for n in range(20):
    (drop / "x").mkdir(parents=True)
    (drop / "x/y").write_text("1")
    shutil.rmtree(drop)
watcher.set_directories("a", [drop])
watcher.close()
"""
        done = subprocess.run([sys.executable, "-c", code, drop], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limits are those of inotify")
class TestLimits:
    LIMITED = """
import sys, time
from pathlib import Path
from cleared.triggers.file_watch import FolderWatcher

def limit(name, n):
    Path("/proc/sys/user", name).write_text(str(n))

name, n, *folders = sys.argv[1:]
limit(name, n)
heard = []
watcher = FolderWatcher(heard.append)
watcher.start()
for _ in range(2):
    for folder in folders:
        for line in watcher.set_directories(folder, [Path(folder)]):
            print(line)
limit(name, 1000)
for folder in folders:
    assert watcher.set_directories(folder, [Path(folder)]) == []
    (Path(folder) / "deep/x").write_text("1")
end = time.monotonic() + 15
while set(heard) != set(folders) and time.monotonic() < end:
    time.sleep(0.01)
print(set(heard) == set(folders))
watcher.close()
"""

    def limited(self, name: str, n: int, *folders: Path) -> list[str]:
        """In a world of its own, where its limits can be lowered."""
        if shutil.which("unshare") is None or subprocess.run(["unshare", "-Ur", "true"], check=False).returncode:
            pytest.skip("no user namespaces here")
        for folder in folders:
            (folder / "deep").mkdir(parents=True)
        done = subprocess.run(
            ["unshare", "-Ur", sys.executable, "-c", self.LIMITED, name, str(n), *map(str, folders)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return done.stdout.splitlines()

    @pytest.mark.parametrize(("n", "which"), [(0, "none"), (1, "one"), (2, "one whole")])
    def test_of_watches(self, tmp_path: Path, n: int, which: str) -> None:
        one, two = tmp_path / "one", tmp_path / "two"
        why = (
            "a limit of the system is reached (fs.inotify.max_user_watches; raise it with sysctl). "
            "It is looked at every triggers.scan_seconds instead"
        )
        first = {0: f"{one} cannot be watched: {why}"}.get(n, f"not all of {one} may be watched: {why}")
        told = self.limited("max_inotify_watches", n, one, two)
        assert told == [first, f"{two} cannot be watched: {why}", "True"], which

    def test_of_instances(self, tmp_path: Path) -> None:
        assert self.limited("max_inotify_instances", 0, tmp_path / "one", tmp_path / "two") == [
            "the system cannot tell of changes in folders: a limit of the system is reached "
            "(fs.inotify.max_user_instances; raise it with sysctl). They are looked at every 1 s instead, "
            "which costs more",
            "True",
        ]

    def test_a_folder_that_may_not_be_read(self, ear: Ear) -> None:
        with tempfile.TemporaryDirectory(prefix="cleared-") as home:
            drop = Path(home, "import")
            drop.mkdir()
            Path(home).chmod(0o755)
            drop.chmod(0)
            root = os.geteuid() == 0
            if root:
                os.seteuid(65534)
            try:
                assert ear.watcher.set_directories("a", [drop]) == [
                    f"{drop} cannot be watched: permission denied. It is looked at every triggers.scan_seconds instead"
                ]
                assert ear.watcher.set_directories("a", [drop]) == []
            finally:
                if root:
                    os.seteuid(0)
            drop.chmod(0o755)
            assert ear.watcher.set_directories("a", [drop]) == []
            (drop / "x.csv").write_text("1")
            assert ear.hears()


class TestTogether:
    @pytest.mark.parametrize("polling", [False, True], ids=["told", "polling"])
    def test_c3_a_slow_writer_is_noticed_once_and_whole(self, drop: Path, polling: bool) -> None:
        """C3: hints and looks, as whoever waits uses them; nothing looks unasked."""
        hinted = threading.Event()
        watcher = FolderWatcher(lambda tag: hinted.set(), polling=polling)
        looked = WatchedFolder(drop.parent, ["import/"], 1.0, SystemClock(), max_bytes=1 << 20)
        done: list[float] = []

        def write() -> None:
            with (drop / "slow.csv.part").open("wb") as file:
                for n in range(8):
                    file.write(b"%d,piece\n" % n)
                    file.flush()
                    time.sleep(0.1)
            (drop / "slow.csv.part").rename(drop / "slow.csv")
            with (drop / "slow.csv").open("ab") as file:
                for n in range(8):
                    time.sleep(0.1)
                    file.write(b"%d,piece\n" % n)
                    file.flush()
            done.append(time.monotonic())

        writer = threading.Thread(target=write)
        watcher.start()
        watcher.set_directories("a", looked.directories)
        seen: dict[str, float] = {}
        writer.start()
        try:
            look = looked.scan_files()
            end = time.monotonic() + PATIENCE
            while time.monotonic() < end and not seen:
                hinted.wait(look.again_in if look.again_in is not None else end - time.monotonic())
                hinted.clear()
                look = looked.scan_files()
                for found in look.ready:
                    seen.setdefault(found.sha256, time.monotonic())
        finally:
            writer.join()
            watcher.close()
        assert list(seen) == [hashlib.sha256((drop / "slow.csv").read_bytes()).hexdigest()]
        assert next(iter(seen.values())) - done[0] == pytest.approx(1.0, abs=0.5)
