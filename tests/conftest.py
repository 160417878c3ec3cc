"""A workspace made by ``cleared init``, and the real command to use it with. Only the clock is fake."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tracemalloc  # noqa: F401 - pytest imports it late, perhaps in a thread that may read no files any more
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from fake_provider import FakeProvider
from harness import Workspace, copy_books, environment, here, use_machine_of
from room_tests import list_room_tests
from running import Up
from scripted_model import KEY
from turns import TURNS, choose_turn, find_turn_tests

# Thousands of small workspaces, and copies that the program makes: in memory they wait for no disk.
if Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free > 6 << 30:
    for name in ("PYTEST_DEBUG_TEMPROOT", "TMPDIR"):
        os.environ.setdefault(name, "/dev/shm")
    tempfile.tempdir = None  # pytest has looked before

# A test run starts Python often: each start would compile the program, and each worker the tests, again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--room", metavar="ROOM", help="only tests that guard this package, such as books/ledger")
    parser.addoption("--all", action="store_true", help="also slow tests and cases whose turn it is not")
    parser.addoption("--turn", type=int, metavar="N", help=f"whose turn it is, 0 to {TURNS - 1}; else the commit says")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With ``--room``, of the files with tests only those that guard it."""
    room = config.getoption("--room")
    if not room or not collection_path.name.startswith("test_"):
        return None
    return collection_path not in list_room_tests(room) or None


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts what is in its background with Ctrl-C ignored, and every process of a test would inherit that."""
    gc.disable()  # until all tests are collected: that leaves no garbage, and looking for it was a fifth of the time
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        config.option.turn = config.workerinput["turn"]
    else:
        if config.getoption("numprocesses", None):
            compile_once(config)
        if config.option.all:
            config.option.turn = None
        elif config.option.turn is None and runs_whole(config):
            config.option.turn = choose_turn(config.rootpath)
    # How long an example takes says how busy the machine is. Each run takes others: of turns, each takes fewer.
    examples = int(os.environ.get("CLEARED_EXAMPLES", "50" if config.option.turn is None else "20"))
    hypothesis.settings.register_profile("cleared", deadline=None, max_examples=examples)
    hypothesis.settings.load_profile("cleared")
    room = config.getoption("--room")
    if room:
        try:
            list_room_tests(room)
        except ValueError as error:
            raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Each of several processes reads the options anew: what was chosen here is not among them."""
    node.workerinput["turn"] = node.config.option.turn


def runs_whole(config: pytest.Config) -> bool:
    """Whether nobody said which tests to run."""
    chosen = (config.getoption(name, None) for name in ("room", "keyword", "markexpr"))
    return config.args == config.getini("testpaths") and not any(chosen)


def compile_once(config: pytest.Config) -> None:
    """In a new checkout each of the processes would compile all that it imports, all of them at once: three times the
    work of importing it."""
    compiled = next(Path(__file__).parent.glob("*/__pycache__/test_*.pyc"), None)
    if compiled is None and config.args == config.getini("testpaths"):
        words = [sys.executable, "-m", "pytest", "--collect-only", "-qq"]
        subprocess.run(words, cwd=config.rootpath, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


SLOW = (
    "tests/properties/test_books_machine.py",
    "tests/triggers/test_simulation.py",
    "tests/gate/proposals/test_crash_certificate.py",
    "tests/cli/tui/test_screen.py",
    "tests/soak/",
    "tests/crash/",
    "tests/docs/",
    "tests/properties/",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest comes first, so that no process is left with it when the others are done."""
    if config.option.turn is not None:
        turn_tests = find_turn_tests(items, config.option.turn)
        config.hook.pytest_deselected(items=[item for item in items if item not in turn_tests])
        items[:] = [item for item in items if item in turn_tests]
    items.sort(key=lambda item: next((n for n, start in enumerate(SLOW) if item.nodeid.startswith(start)), len(SLOW)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Nobody takes a part for all."""
    if (turn := config.option.turn) is not None:
        terminalreporter.line(f"Slow tests and further cases had turn {turn} of 0 to {TURNS - 1}; --all runs all.")


def pytest_collection_finish() -> None:
    """What is there by now stays: looking through it for garbage, again and again, frees nothing. Nor does it, much,
    to look after each few hundred objects: that was 2 % of the time, and a quarter where tests parse the program."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 20, 10)


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test approves with the key of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLEARED_HOME", str(tmp_path_factory.mktemp("cleared-home")))
        yield


@pytest.fixture(scope="session")
def starting_point(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One workspace as ``cleared init`` makes it; tests get copies."""
    root = tmp_path_factory.mktemp("start") / "books"
    with use_machine_of(root):
        done = here("init", str(root), "--name", "Acme")
    assert done.code == 0, done
    return root


@pytest.fixture(scope="session")
def posted_start(starting_point: Path) -> Path:
    """The same with a month of entries; tests get copies."""
    root = starting_point.parents[1] / "posted/books"
    with use_machine_of(root):
        ws = Workspace(copy_books(starting_point, root))
        ws.drop("january.csv")
        ws.run("ingest")
    return root


@pytest.fixture
def plain_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No user's git identity or settings, a fixed clock."""
    home = tmp_path / "home"
    home.mkdir()
    for key in [k for k in os.environ if k.startswith(("GIT_", "CLEARED_"))]:
        monkeypatch.delenv(key)
    for key, value in environment(home).items():
        monkeypatch.setenv(key, value)
    yield


@pytest.fixture
def ws(tmp_path: Path, starting_point: Path, plain_environment: None) -> Workspace:
    """A fresh workspace named Acme, with the starters and nothing posted."""
    return Workspace(copy_books(starting_point, tmp_path / "books", stay=True))


@pytest.fixture
def posted(request: pytest.FixtureRequest, tmp_path: Path, posted_start: Path, plain_environment: None) -> Workspace:
    """January's four rows are posted: 2025-01-001 … 004, two of them waiting for review."""
    if "ws" not in request.fixturenames:
        return Workspace(copy_books(posted_start, tmp_path / "books", stay=True))
    ws: Workspace = request.getfixturevalue("ws")  # the test, or another fixture of it, has begun with that one
    ws.drop("january.csv")
    ws.run("ingest")
    return ws


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """A provider of models that answers what the test says."""
    with FakeProvider() as running:
        yield running


@pytest.fixture
def model_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its key is in the variable that ``use_provider`` names."""
    monkeypatch.setenv("TEST_MODEL_KEY", KEY)


@pytest.fixture
def up(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    """The workspace's service, in a process of its own that ends with the test."""
    monkeypatch.delenv("CLEARED_CLOCK")
    found = Up(ws)
    yield found
    if found.process is not None:
        found.process.kill()
        found.process.communicate()
