"""Looking at watched folders, on real files. Only the clock is faked; times of change (ctime) are always real."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from harness import Workspace
from patience import PATIENCE

import cleared.triggers.watched_folder as module
from cleared.base.clock import FixedClock, SystemClock
from cleared.triggers.watched_folder import FolderScan, WatchedFolder
from cleared.workspace import watched_names

SETTLE = 2.0


class HandClock:
    """Stands still at the real time until it is moved by hand."""

    def __init__(self) -> None:
        self.wall = time.time() + 0.001  # files get the time of the kernel's last tick or a bit later
        self.mono = 1000.0

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.wall, UTC)

    def monotonic(self) -> float:
        return self.mono

    def advance(self, seconds: float) -> None:
        self.wall += seconds
        self.mono += seconds

    def to_now(self) -> None:
        """As far as the real clock went meanwhile."""
        self.advance(time.time() + 0.001 - self.wall)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "import").mkdir()
    return tmp_path


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


def folder(root: Path, clock: Any, *watch: str, settle: float = SETTLE, max_bytes: int = 1 << 26) -> WatchedFolder:
    return WatchedFolder(root, watch or ("import/",), settle, clock, max_bytes=max_bytes)


def put(root: Path, path: str, content: bytes = b"a,b\n1,2\n") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def paths(look: FolderScan) -> list[str]:
    return [found.path for found in look.ready]


def later(root: Path, *watch: str) -> FolderScan:
    """A first look, an hour after everything was written."""
    clock = HandClock()
    clock.advance(3600)
    return folder(root, clock, *watch).scan_files()


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything; others may not."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


class TestWhenAFileIsComplete:
    def test_c4_what_lay_there_at_start_counts_at_once(self, root: Path) -> None:
        """C4"""
        put(root, "import/b.csv", b"two")
        put(root, "import/a.csv", b"one!")
        look = later(root)
        assert [(f.path, f.sha256, f.size) for f in look.ready] == [
            ("import/a.csv", hashlib.sha256(b"one!").hexdigest(), 4),
            ("import/b.csv", hashlib.sha256(b"two").hexdigest(), 3),
        ]
        assert look.again_in is None
        assert look.problems == ()

    def test_nothing_there(self, root: Path, clock: HandClock) -> None:
        assert folder(root, clock).scan_files() == FolderScan((), None)
        assert folder(root, clock, "nowhere/", "import/a/b/*.csv", "x/y/").scan_files() == FolderScan((), None)

    def test_a_new_file_counts_when_it_was_still_and_the_wait_is_exact(self, root: Path, clock: HandClock) -> None:
        put(root, "import/a.csv")
        clock.to_now()
        looked = folder(root, clock)
        first = looked.scan_files()
        assert first.ready == ()
        assert first.again_in == pytest.approx(SETTLE, abs=0.5)  # the file is some milliseconds old
        clock.advance(first.again_in - 0.005)
        almost = looked.scan_files()
        assert almost.ready == ()
        assert almost.again_in == pytest.approx(0.005, abs=0.002)
        clock.advance(almost.again_in)
        done = looked.scan_files()
        assert paths(done) == ["import/a.csv"]
        assert done.again_in is None
        assert looked.scan_files() == done

    def test_the_wait_is_for_the_next_of_several(self, root: Path, clock: HandClock) -> None:
        looked = folder(root, clock)
        looked.scan_files()
        for name, offset in (("a", 0.0), ("b", 0.5)):
            clock.advance(offset)
            file = put(root, f"import/{name}.csv")
            os.utime(file, (clock.wall, clock.wall))
            looked.scan_files()
        assert looked.scan_files().again_in == pytest.approx(1.5, abs=0.05)
        clock.advance(1.55)
        look = looked.scan_files()
        assert paths(look) == ["import/a.csv"]
        assert look.again_in == pytest.approx(0.45, abs=0.05)

    def test_a_growing_file_waits_from_its_last_piece(self, root: Path, clock: HandClock) -> None:
        looked = folder(root, clock)
        for n in range(5):
            with (root / "import/a.csv").open("ab") as file:
                file.write(b"piece\n")
            clock.advance(1.5)
            stamp = clock.wall - 0.1
            os.utime(root / "import/a.csv", (stamp, stamp))
            look = looked.scan_files()
            assert look.ready == (), n
            assert look.again_in == pytest.approx(1.9, abs=0.05)
        clock.advance(2)
        assert [f.size for f in looked.scan_files().ready] == [30]

    def test_a_touch_makes_it_wait_again_and_changes_nothing(self, root: Path, clock: HandClock) -> None:
        file = put(root, "import/a.csv")
        looked = folder(root, clock)
        clock.advance(60)
        before = looked.scan_files().ready
        assert len(before) == 1
        os.utime(file, (clock.wall, clock.wall))
        assert looked.scan_files().ready == ()
        clock.advance(SETTLE)
        assert looked.scan_files().ready == before

    def test_a_copy_with_the_old_times_is_as_new_as_it_is(self, root: Path, tmp_path: Path) -> None:
        old = put(tmp_path, "old.csv")
        os.utime(old, (1e9, 1e9))
        looked = folder(root, SystemClock(), settle=0.6)
        subprocess.run(["cp", "-p", str(old), str(root / "import/a.csv")], check=True)
        assert (root / "import/a.csv").stat().st_mtime == 1e9
        look = looked.scan_files()
        assert look.ready == ()
        assert look.again_in is not None
        time.sleep(look.again_in)
        assert paths(looked.scan_files()) == ["import/a.csv"]

    def test_a_finished_download_waits_from_its_renaming(self, root: Path) -> None:
        put(root, "import/a.csv.part")
        looked = folder(root, SystemClock(), settle=0.6)
        time.sleep(0.7)
        assert looked.scan_files() == FolderScan((), None)
        (root / "import/a.csv.part").rename(root / "import/a.csv")
        look = looked.scan_files()
        assert look.ready == ()
        assert look.again_in is not None
        time.sleep(look.again_in)
        assert paths(looked.scan_files()) == ["import/a.csv"]

    def test_a_renamed_file_has_the_same_content(self, root: Path) -> None:
        put(root, "import/a.csv")
        first = later(root).ready
        (root / "import/a.csv").rename(root / "import/b.csv")
        second = later(root).ready
        assert [f.path for f in second] == ["import/b.csv"]
        assert [f.sha256 for f in second] == [f.sha256 for f in first]

    def test_an_empty_file_waits_for_half_a_minute(self, root: Path, clock: HandClock) -> None:
        put(root, "import/a.csv", b"")
        looked = folder(root, clock)
        clock.advance(20)
        look = looked.scan_files()
        assert look.ready == ()
        assert look.again_in == pytest.approx(10, abs=1)
        clock.advance(look.again_in)
        assert [(f.path, f.size) for f in looked.scan_files().ready] == [("import/a.csv", 0)]

    def test_an_empty_file_that_is_written_waits_like_any(self, root: Path, clock: HandClock) -> None:
        file = put(root, "import/a.csv", b"")
        looked = folder(root, clock)
        looked.scan_files()
        clock.advance(20)
        file.write_bytes(b"now")
        os.utime(file, (clock.wall, clock.wall))
        assert looked.scan_files().again_in == pytest.approx(SETTLE, abs=0.05)
        clock.advance(SETTLE + 0.05)
        assert [f.size for f in looked.scan_files().ready] == [3]

    def test_c3_a_slow_writer_counts_once_and_whole(self, root: Path) -> None:
        """C3"""
        looked = folder(root, SystemClock(), settle=1.0)
        written = threading.Event()

        def write() -> None:
            with (root / "import/slow.csv").open("wb") as file:
                for n in range(10):
                    file.write(b"%d,piece\n" % n)
                    file.flush()
                    time.sleep(0.15)
            written.set()

        writer = threading.Thread(target=write)
        writer.start()
        seen: list[str] = []
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and not seen:
            look = looked.scan_files()
            seen += [f.sha256 for f in look.ready]
            time.sleep(min(0.05, look.again_in or 0.05))
        writer.join()
        assert written.is_set()
        whole = hashlib.sha256((root / "import/slow.csv").read_bytes()).hexdigest()
        assert seen == [whole]
        assert [f.sha256 for f in looked.scan_files().ready] == [whole]


class TestClocksThatDisagree:
    def test_a_file_from_the_future_counts_when_it_was_seen_to_be_still(self, root: Path, clock: HandClock) -> None:
        file = put(root, "import/a.csv")
        os.utime(file, (clock.wall + 1e6, clock.wall + 1e6))
        looked = folder(root, clock)
        first = looked.scan_files()
        assert first.ready == ()
        assert first.again_in == pytest.approx(SETTLE, abs=0.005)
        clock.advance(1)
        assert looked.scan_files().again_in == pytest.approx(1, abs=0.005)
        clock.advance(1)
        assert paths(looked.scan_files()) == ["import/a.csv"]

    def test_a_clock_that_stands_still_in_the_past(self, root: Path) -> None:
        put(root, "import/a.csv")
        looked = folder(root, FixedClock(datetime(2025, 2, 1, tzinfo=UTC)), settle=0.2)
        look = looked.scan_files()
        assert look.ready == ()
        assert look.again_in is not None and 0 < look.again_in < 0.21  # of a real clock, which has gone on
        time.sleep(look.again_in)
        assert paths(looked.scan_files()) == ["import/a.csv"]

    def test_a_drive_whose_clock_is_late_does_not_make_half_a_file_complete(self, root: Path, clock: HandClock) -> None:
        looked = folder(root, clock)
        looked.scan_files()
        clock.wall += 3600  # the times of files are an hour behind from now on
        for _ in range(3):
            clock.advance(1)
            with (root / "import/a.csv").open("ab") as file:
                file.write(b"piece\n")
            assert looked.scan_files().ready == ()
        clock.advance(SETTLE)
        assert [f.size for f in looked.scan_files().ready] == [18]

    def test_a_clock_set_back_takes_nothing_back(self, root: Path, clock: HandClock) -> None:
        put(root, "import/a.csv")
        looked = folder(root, clock)
        clock.advance(60)
        assert paths(looked.scan_files()) == ["import/a.csv"]
        clock.wall -= 86_400
        put(root, "import/b.csv")
        assert paths(looked.scan_files()) == ["import/a.csv"]
        clock.advance(SETTLE)
        assert paths(looked.scan_files()) == ["import/a.csv", "import/b.csv"]


class TestWhatCounts:
    @pytest.mark.parametrize(
        "name",
        [
            "a.csv.part",
            "a.csv.PART",
            "a.crdownload",
            "a.tmp",
            "a.Download",
            "a.partial",
            "a.csv~",
            ".hidden.csv",
            ".hidden/a.csv",
            "x/.y/a.csv",
            "processed/a.csv",
            "processed/2025/a.csv",
            "failed/a.csv",
            "failed/x/a.csv",
        ],
    )
    def test_what_is_unfinished_hidden_or_done_does_not(self, root: Path, name: str) -> None:
        put(root, f"import/{name}")
        put(root, "import/good.csv")
        assert later(root) == FolderScan(later(root, "import/good.csv").ready, None)
        assert paths(later(root, "**/*", ".")) == ["import/good.csv"]

    @pytest.mark.parametrize("name", ["2025/01/a.csv", "old/failed/a.csv", "x/processed/a.csv", "part", "a b,c.csv"])
    def test_what_lies_deeper_does(self, root: Path, name: str) -> None:
        put(root, f"import/{name}")
        assert paths(later(root)) == [f"import/{name}"]

    def test_the_importer_finds_the_same(self, ws: Workspace) -> None:
        """Else a file would start runs that do not see it."""
        names = (
            "a.csv",
            "b.PART",
            "c.csv~",
            ".d",
            ".e/a.csv",
            "f/g.csv",
            "processed/h.csv",
            "failed/i.csv",
            "f/failed/j.csv",
            "f/processed/k.csv",
            "f/.l/m.csv",
            "with space.csv",
        )
        for name in names:
            ws.drop(name)
        run = ws.script('[f["path"] for f in importer_scan()]\n', "--dry-run")
        assert run["result"] == paths(later(ws.root))
        assert run["result"] == [
            "import/a.csv",
            "import/f/failed/j.csv",
            "import/f/g.csv",
            "import/f/processed/k.csv",
            "import/with space.csv",
        ]

    def test_links_and_pipes_do_not(self, root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        outside = tmp_path_factory.mktemp("outside")
        put(outside, "a.csv")
        put(root, "import/real.csv")
        (root / "import/file.csv").symlink_to(outside / "a.csv")
        (root / "import/inner.csv").symlink_to(root / "import/real.csv")
        (root / "import/folder").symlink_to(outside)
        (root / "import/nowhere").symlink_to(root / "import/none")
        (root / "import/loop").symlink_to(root / "import")
        os.mkfifo(root / "import/pipe.csv")
        assert later(root) == FolderScan(later(root, "import/real.csv").ready, None)

    def test_a_link_on_the_way_is_named_and_not_followed(
        self, root: Path, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside")
        put(outside, "x/a.csv")
        (root / "drop").symlink_to(outside)
        put(root, "import/a.csv")
        look = later(root, "drop/", "drop/x/*.csv", "import/")
        assert paths(look) == ["import/a.csv"]
        assert look.problems == (
            "drop is reached through a symbolic link; it is not looked at",
            "drop/x is reached through a symbolic link; it is not looked at",
        )

    def test_the_workspace_itself_may_be_reached_by_a_link(self, root: Path, tmp_path: Path) -> None:
        put(root, "import/a.csv")
        link = tmp_path / "link"
        link.symlink_to(root)
        assert paths(later(link)) == ["import/a.csv"]
        assert folder(link, HandClock()).directories == (root.resolve() / "import",)

    @pytest.mark.parametrize(
        ("watch", "found"),
        [
            (["import"], ["import/a.csv", "import/b.json", "import/x/c.csv", "import/x/y/d.csv"]),
            (["./import//"], ["import/a.csv", "import/b.json", "import/x/c.csv", "import/x/y/d.csv"]),
            (["import/*.csv"], ["import/a.csv"]),
            (["import/?.json"], ["import/b.json"]),
            (["import/[ab].*"], ["import/a.csv", "import/b.json"]),
            (["import/*/*.csv"], ["import/x/c.csv"]),
            (["import/**/*.csv"], ["import/a.csv", "import/x/c.csv", "import/x/y/d.csv"]),
            (["import/**/y/*"], ["import/x/y/d.csv"]),
            (["import/**"], ["import/a.csv", "import/b.json", "import/x/c.csv", "import/x/y/d.csv"]),
            (["import/x*"], []),
            (["import/x*/"], ["import/x/c.csv", "import/x/y/d.csv"]),
            (["data/2025-*/x.csv"], ["data/2025-01/x.csv", "data/2025-02/x.csv"]),
            (["*/x/c.csv", "data/2024-12/"], ["data/2024-12/x.csv", "import/x/c.csv"]),
            (
                ["import/*.csv", "import/", "import/x/"],
                ["import/a.csv", "import/b.json", "import/x/c.csv", "import/x/y/d.csv"],
            ),
            (["import/a.csv"], ["import/a.csv"]),
            (["import/A.csv", "import/*.CSV"], []),
        ],
    )
    def test_directories_and_globs(self, root: Path, watch: list[str], found: list[str]) -> None:
        for path in ("import/a.csv", "import/b.json", "import/x/c.csv", "import/x/y/d.csv", "config.yaml"):
            put(root, path)
        for month in ("2024-12", "2025-01", "2025-02"):
            put(root, f"data/{month}/x.csv")
        look = later(root, *watch)
        assert paths(look) == found
        assert look.problems == ()

    @pytest.mark.parametrize(
        "value",
        [
            ".git/",
            ".cleared/*.json",
            "../other/",
            "x/../../y",
            "import/processed/",
            "import/failed/*.csv",
            "data/.hidden/",
        ],
    )
    def test_what_is_never_looked_at_is_named_once(self, root: Path, value: str) -> None:
        put(root, ".git/config")
        put(root, ".cleared/a.json")
        put(root, "import/processed/a.csv")
        put(root, "import/failed/a.csv")
        clock = HandClock()
        clock.advance(3600)
        looked = folder(root, clock, value)
        assert looked.scan_files() == FolderScan((), None, (f"watch: {value}: this folder is never looked at",))
        assert looked.scan_files() == FolderScan((), None)
        assert looked.directories == ()

    def test_what_is_to_be_watched(self, root: Path) -> None:
        real = root.resolve()
        (root / "link").symlink_to(root / "import")
        put(root, "single.csv")
        clock = HandClock()
        watch = ("import/*.csv", "import/x/", "data/2025-*/x.csv", "not/yet", "link/", "sub/single.csv", ".git/")
        assert folder(root, clock, *watch).directories == (
            real / "data",
            real / "import",
            real / "not/yet",
            real / "sub/single.csv",
        )
        assert folder(root, clock, "single.csv").directories == (real,)
        assert folder(root, clock, "**/*.csv", "import/").directories == (real,)


class TestWhatGoesWrong:
    def test_odd_names(self, root: Path, clock: HandClock) -> None:
        for name in ("line\nbreak.csv", "déjà vu.csv", "tab\t.csv", " .csv"):
            put(root, f"import/{name}")
        raw = os.fsencode(root / "import")
        Path(os.fsdecode(raw + b"/bad\xff.csv")).write_bytes(b"x")
        bad = Path(os.fsdecode(raw + b"/fol\xffder"))
        bad.mkdir()
        (bad / "a.csv").write_bytes(b"x")
        (bad / "b.csv").write_bytes(b"x")
        clock.advance(3600)
        looked = folder(root, clock)
        look = looked.scan_files()
        assert paths(look) == sorted(f"import/{n}" for n in ("line\nbreak.csv", "déjà vu.csv", "tab\t.csv", " .csv"))
        assert look.problems == (
            "import/bad\\udcff.csv is not looked at: its name is not UTF-8. Rename it",
            "import/fol\\udcffder is not looked at: its name is not UTF-8. Rename it",
        )
        assert looked.scan_files() == FolderScan(look.ready, None)

    def test_what_cannot_be_read_is_named_once_and_the_others_go_on(self) -> None:
        with tempfile.TemporaryDirectory(prefix="cleared-") as home:  # where nobody may go, unlike pytest's own
            root = Path(home)
            root.chmod(0o755)
            put(root, "import/a.csv")
            put(root, "import/good.csv")
            put(root, "import/sub/b.csv")
            put(root, "import/x\ny/c.csv")
            (root / "import/a.csv").chmod(0)
            (root / "import/sub").chmod(0)
            (root / "import/x\ny").chmod(0)
            clock = HandClock()
            clock.advance(3600)
            looked = folder(root, clock)
            with as_nobody():
                look = looked.scan_files()
                again = looked.scan_files()
            assert paths(look) == ["import/good.csv"]
            assert look.again_in is None
            assert sorted(look.problems) == [
                "import/a.csv cannot be read: permission denied",
                "import/sub/ cannot be looked at: permission denied",
                "import/x\\ny/ cannot be looked at: permission denied",
            ]
            assert again == FolderScan(look.ready, None)
            for path, mode in (("import/a.csv", 0o644), ("import/sub", 0o755), ("import/x\ny", 0o755)):
                (root / path).chmod(mode)
            clock.advance(3600)
            with as_nobody():
                mended = looked.scan_files()
            assert len(mended.ready) == 4
            (root / "import/a.csv").chmod(0)
            clock.advance(3600)
            with as_nobody():
                assert looked.scan_files().problems == ("import/a.csv cannot be read: permission denied",)

    def test_many_troubles_are_not_told_without_end(self, root: Path) -> None:
        raw = os.fsencode(root / "import")
        for n in range(50):
            Path(os.fsdecode(raw + b"/%02d\xff.csv" % n)).write_bytes(b"x")
        look = later(root)
        assert len(look.problems) == 21
        assert look.problems[-1] == "and 30 more of this kind"

    def test_a_file_that_changes_while_it_is_read_is_not_complete(
        self, root: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = put(root, "import/a.csv", b"half")
        put(root, "import/b.csv")
        looked = folder(root, clock)
        clock.advance(60)
        read = os.read
        left = [1]

        def meddle(descriptor: int, size: int) -> bytes:
            if left[0]:
                left[0] -= 1
                file.write_bytes(b"the whole")
                os.utime(file, (clock.wall, clock.wall))
            return read(descriptor, size)

        monkeypatch.setattr(module.os, "read", meddle)
        look = looked.scan_files()
        assert paths(look) == ["import/b.csv"]
        assert look.again_in == pytest.approx(SETTLE, abs=0.01)
        clock.advance(look.again_in)
        final = looked.scan_files()
        assert [f.sha256 for f in final.ready][:1] == [hashlib.sha256(b"the whole").hexdigest()]

    def test_a_file_that_goes_away_is_no_trouble(
        self, root: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        put(root, "import/a.csv")
        put(root, "import/b.csv")
        looked = folder(root, clock)
        clock.advance(60)
        real = os.open

        def vanish(path: str, flags: int, *rest: Any) -> int:
            if path.endswith("a.csv"):
                Path(path).unlink(missing_ok=True)
            return real(path, flags, *rest)

        monkeypatch.setattr(module.os, "open", vanish)
        look = looked.scan_files()
        assert paths(look) == ["import/b.csv"]
        assert look.problems == ()
        assert look.again_in is None

    def test_too_many_files(self, root: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(watched_names, "MAX_FILES", 5)
        for n in range(8):
            put(root, f"import/{n}.csv")
        clock.advance(60)
        looked = folder(root, clock)
        look = looked.scan_files()
        assert paths(look) == [f"import/{n}.csv" for n in range(5)]
        assert len(look.problems) == 1
        assert look.problems[0].startswith("there are more than 5 files in import; only the first by name")
        (root / "import/0.csv").unlink()
        looked.scan_files()
        clock.advance(SETTLE)
        assert paths(looked.scan_files()) == [f"import/{n}.csv" for n in range(1, 6)]


class TestCost:
    def test_ten_thousand_files_are_read_once(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for n in range(10_000):
            (root / f"import/{n:05}.csv").write_bytes(b"%d" % n)
        clock = HandClock()
        clock.advance(60)
        looked = folder(root, clock)
        opened = []
        real = os.open
        monkeypatch.setattr(module.os, "open", lambda path, flags: opened.append(path) or real(path, flags))
        first = looked.scan_files()
        assert len(first.ready) == len(opened) == 10_000
        assert looked.scan_files() == first
        assert len(opened) == 10_000, "none is read again"

    def test_what_is_gone_is_forgotten(self, root: Path, clock: HandClock, monkeypatch: pytest.MonkeyPatch) -> None:
        file = put(root, "import/a.csv")
        looked = folder(root, clock)
        opened = []
        real = os.open
        monkeypatch.setattr(module.os, "open", lambda path, flags: opened.append(path) or real(path, flags))
        clock.advance(60)
        assert len(looked.scan_files().ready) == 1
        away = root / "a.csv"
        os.link(file, away)
        file.unlink()
        assert looked.scan_files() == FolderScan((), None)
        away.rename(file)
        clock.advance(60)
        assert len(looked.scan_files().ready) == 1
        assert len(opened) == 2

    def test_a_file_of_any_size_takes_no_more_memory(self, root: Path) -> None:
        with (root / "import/big.csv").open("wb") as file:
            file.truncate(64 << 20)
        clock = HandClock()
        clock.advance(60)
        looked = folder(root, clock, max_bytes=1 << 20)
        tracemalloc.start()
        look = looked.scan_files()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert [f.size for f in look.ready] == [64 << 20]
        assert look.ready[0].sha256 == hashlib.sha256(bytes(64 << 20)).hexdigest()
        assert peak < 4 << 20
