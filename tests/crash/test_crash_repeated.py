"""Whatever becomes of a command once it has begun, the same command again ends where it would have ended at once
(faults 4 and 16).

Each command that commits is killed at its steps, and then said again, not another one. The commands are read off the
program: one that is new fails here until it has a case.

Rows I9, I10.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from committing import list_committing_commands
from crash_commands import CASES, ELSEWHERE, Case, Place, list_differences
from harness import Workspace, copy_books, environment, here, no_traceback
from kill_points import EVERY
from stepped import MACHINE, list_steps, run_stepped

from cleared.git import STEPS

pytestmark = pytest.mark.slow

SAYS_IT_IS_DONE = (1, 2, 3, 4)
"""What a command may end with that finds its commit there already: there is nothing left to do (is closed already)."""
ALWAYS = (MACHINE, "ref")
"""Steps at which every command is killed."""
OTHERS = ["checked", *(step for step in STEPS if step not in ALWAYS)]
"""Every other command gets one of them, in turn; those between are stopped with Ctrl-C, and have a full disk."""


def test_each_command_that_commits_has_a_case() -> None:
    known = {*CASES, *ELSEWHERE}
    committing = list_committing_commands()
    assert committing - known == set(), "make a case for it in crash_commands.py"
    assert known - committing == set(), "it commits no more"
    assert {"journal add", "agent rollback", "config set"} <= committing


@pytest.fixture(scope="session")
def posted_books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with January's books, and the home in which they were made."""
    folder = tmp_path_factory.mktemp("repeated") / "start"
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        use(patch, folder)
        assert here("init", str(folder / "books"), "--name", "Acme").code == 0
        ws = Workspace(folder / "books")
        ws.drop("january.csv")
        ws.run("ingest")
    return folder  # the environment of other tests is theirs again


def use(patch: pytest.MonkeyPatch, folder: Path, home: str = "home/cleared") -> None:
    for key in [k for k in os.environ if k.startswith(("GIT_", "CLEARED_"))]:
        if key != "CLEARED_EVERY_POINT":
            patch.delenv(key)
    (folder / "home").mkdir(exist_ok=True)
    for key, value in environment(folder / "home").items():
        patch.setenv(key, value)
    patch.setenv("CLEARED_HOME", str(folder / home))


@pytest.fixture
def place(posted_books: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.setenv("CLEARED_HOME", str(folder / "home/cleared"))
    use(monkeypatch, folder)
    # The keys are those that the books were made with; the copy is trusted as ``cleared trust`` would have it.
    (folder / "home/cleared").mkdir(parents=True)
    for key in (posted_books / "home/cleared").glob("*-key*"):
        (folder / "home/cleared" / key.name).write_bytes(key.read_bytes())
        (folder / "home/cleared" / key.name).chmod(0o600)
    copy_books(posted_books / "books", folder / "books")
    return Place(folder)


def prepare(place: Place, case: Case, patch: pytest.MonkeyPatch) -> list[str]:
    argv = case.prepare(place.ws)
    use(patch, place.folder, case.home)
    patch.setenv("CLEARED_CLOCK", case.clock)
    place.keep()
    return [*argv, "-C", str(place.ws.root)] if argv[0] != "init" else argv


def choose_points(steps: list[str], turn: int) -> list[tuple[str, int]]:
    """Of all steps those at which to kill: each with its number among those of its name."""
    points = [(name, steps[: at + 1].count(name)) for at, name in enumerate(steps)]
    if EVERY:
        return points
    chosen = {*ALWAYS} if turn % 2 else {*ALWAYS, OTHERS[turn // 2 % len(OTHERS)]}
    last = {name: steps.count(name) for name in chosen}
    return [(name, nth) for name, nth in points if name in chosen and nth in (1, last[name])]


@pytest.mark.parametrize("name", CASES)
def test_whatever_becomes_of_a_command_it_is_done_once(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Rows I9, I10: killed, stopped with Ctrl-C once its commit is made, or with a full disk for what it says."""
    case = CASES[name]
    argv = prepare(place, case, monkeypatch)
    steps = list_steps(argv, tmp_path / "steps", code=case.code)
    once = place.found()
    assert "ref" in steps and once["commits"], steps
    turn = list(CASES).index(name)
    for step, nth in choose_points(steps, turn):
        place.put_back()
        killed = run_stepped(argv, step, nth)
        story = f"{name} killed at {step} {nth}"
        assert killed.returncode == -signal.SIGKILL, (story, killed)
        again = here(*argv)
        no_traceback(again)
        stands = [at for at, each in enumerate(steps) if each == step][nth - 1] >= steps.index("ref")
        assert again.code == case.code or (stands and again.code in SAYS_IT_IS_DONE), (story, again)
        compare(once, place, f"{story}: {again}")
    root = Path(argv[1]) if name == "init" else place.ws.root
    if EVERY or turn % 2:
        place.put_back()
        check_interrupted(argv, root)
        place.put_back()
        check_full_disk(argv, root, case)
        compare(once, place, f"{name} with a full disk")


def check_interrupted(argv: list[str], root: Path) -> None:
    """Ctrl-C once the commit is made: the command names it, or is done."""
    done = run_stepped(argv, "ref", number=signal.SIGINT)
    said = done.stderr.decode()
    if not root.exists():
        assert argv[0] == "init" and done.returncode == 130, done  # taken back whole
        return
    made = Workspace(root).git("log", "-2", "--format=%h", "--abbrev=10").split()
    assert done.returncode in (0, 130), done
    assert done.returncode == 0 or any(commit in said for commit in made), (done, made)
    assert_told_truly(said)


def check_full_disk(argv: list[str], root: Path, case: Case) -> None:
    """What it says cannot be written: it names its commit all the same."""
    with open("/dev/full", "wb") as full:
        done = run_stepped(argv, stdout=full)
    said = done.stderr.decode()
    assert done.returncode in (case.code, 4), done
    assert done.returncode != 4 or Workspace(root).head()[:10] in said, done
    assert_told_truly(said)


def compare(once: dict[str, Any], place: Place, story: str = "") -> None:
    differences = "\n".join(list_differences(once, place.found()))
    if differences:
        pytest.fail(f"{story}\n{differences}", pytrace=False)


def assert_told_truly(said: str) -> None:
    assert "Traceback" not in said
    assert not re.search(r"nothing was changed|run the command again", said, re.IGNORECASE), said
