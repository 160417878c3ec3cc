"""What an engine leaves to be read after its end: figures, times and words without measure, folders without rights."""

from __future__ import annotations

import json
import os

import pytest
from fake_engine import FakeEngine, good, result, start
from harness import Workspace, no_traceback
from held_jobs import as_others_are

from cleared.work.cycles.cycle_state import read_state
from cleared.work.cycles.engines import load_engine

pytestmark = pytest.mark.slow


def of_cost(text: str) -> str:
    """The output of Claude Code with a cost that stands there as this text."""
    return result(cost=0.5).replace("0.5", text)


@pytest.mark.parametrize("cost", ['"1E+99999999"', "1E300", '"1E-99999999"', '"1E+999999999999999999"', '"-1"'])
def test_a_cost_without_measure_is_none(cyc: Workspace, engine: FakeEngine, cost: str) -> None:
    """Written out it would fill the memory and the disk, and no later sum could be made."""
    engine.plan({**good(), "stdout": of_cost(cost)}, good("More."))
    done = start(cyc, engine, "--max-cycles", "2")
    no_traceback(done)
    state = read_state(cyc.root)
    assert done.code == 0 and state["cycle"] == 2, done
    assert state["total_cost"] == "0.25"


@pytest.mark.parametrize(
    "words",
    [
        "usage limit reached; resets at 0001-01-01T00:00+14:00",
        "usage limit reached; resets at 9999-12-31T23:59-14:00",
        "usage limit reached; resets 9pm (America/)",
        "usage limit \ud800 reached",
        "\ud800\u202e it failed",
    ],
)
def test_words_about_its_end_end_no_loop(cyc: Workspace, engine: FakeEngine, words: str) -> None:
    """A time that no calendar has, and half a character."""
    engine.plan({"stdout": json.dumps({"type": "result", "is_error": True, "result": words}) + "\n"})
    done = start(cyc, engine, "--max-cycles", "1")
    no_traceback(done)
    assert read_state(cyc.root)["last_cycle"]["outcome"] in ("limit", "failed"), done


LEFT = """
import os, pathlib
for top in (".", os.environ["TMPDIR"]):
    here = os.getcwd()
    os.chdir(top)
    pathlib.Path("shut/in").mkdir(parents=True)
    pathlib.Path("shut/in/file").write_text("x")
    os.symlink("/etc", "shut/link")
    os.chmod("shut/in", 0)
    os.chmod("shut", 0)
    for _ in range(3000):
        os.mkdir("a")
        os.chdir("a")
    os.chdir(here)
"""


def test_whatever_folders_it_leaves_are_removed(cyc: Workspace, engine: FakeEngine) -> None:
    """Those without any right, and such as lie deeper than a path can say; the next cycle has a clone of its own."""
    (engine.folder / "leave.py").write_text(LEFT)
    engine.plan(good(run=[str(engine.folder / "leave.py")]), good("More."))
    with as_others_are():
        done = cyc(*engine.argv("--max-cycles", "2"))
    no_traceback(done)
    assert done.code == 0 and len(engine.calls) == 2, done
    assert not list((cyc.root / ".cleared/cycles").glob("*/*"))
    assert sorted(os.listdir("/etc"))


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "qwen"])
def test_only_the_last_lines_of_an_output_are_read(name: str) -> None:
    """To refuse millions of lines takes long, and nobody could stop that."""
    said = {
        "codex": {"type": "item.completed", "item": {"type": "agent_message", "text": "said"}},
        "opencode": {"type": "text", "part": {"text": "said"}},
    }.get(name, {"type": "result", "result": "said"})
    line, read = json.dumps(said) + "\n", load_engine(name).read_output
    assert read("{\n" * 200_000 + line).text == read(line + "{\n" * 90_000).text == "said"
    assert read(line + "{\n" * 110_000).text == ""


def test_a_folder_that_cannot_be_entered_stops_nothing(cyc: Workspace, engine: FakeEngine) -> None:
    """It is named, and the rest is taken over."""
    (engine.folder / "leave.py").write_text(
        "import os\nos.makedirs('docs/shut')\nopen('docs/shut/file', 'w')\n"
        "open('docs/new.txt', 'w').write('x')\nos.chmod('docs/shut', 0o400)\n"
    )
    engine.plan(good(run=[str(engine.folder / "leave.py")]))
    with as_others_are():
        done = cyc(*engine.argv())
    no_traceback(done)
    assert done.code == 0 and "docs/shut/file (it cannot be read)" in done.err, done
    assert cyc.git("show", "--name-only", "--format=", "cleared-cycle/pending").split() == ["docs/new.txt"]


def test_files_without_measure_are_not_taken_into_memory(cyc: Workspace, engine: FakeEngine) -> None:
    """Each is as large as one may be, all together are not; nothing of them is on the disk."""
    (engine.folder / "leave.py").write_text(
        "import os\nfor n in range(8):\n    with open(f'big{n:02d}', 'wb') as file:\n        file.truncate(32 << 20)\n"
    )
    engine.plan(good(run=[str(engine.folder / "leave.py")]))
    done = start(cyc, engine)
    no_traceback(done)
    assert done.code == 0 and "big02 (it makes it more than" in done.err, done
    assert cyc.git("show", "--name-only", "--format=", "cleared-cycle/pending").split() == ["big00", "big01"]


def test_names_that_cannot_be_shown_are_refused_and_the_rest_waits_with_a_card(
    cyc: Workspace, engine: FakeEngine
) -> None:
    """Bytes that are no text, a newline, an escape, another direction of writing."""
    (engine.folder / "leave.py").write_text(
        "import os\nos.makedirs('docs', exist_ok=True)\n"
        r"for name in (b'\xff\xfe', b'a\nb', b'\x1b[2J', '\u202etxt'.encode(), b'z.txt'):"
        "\n    open(b'docs/' + name, 'w').write('x')\n"
    )
    engine.plan(good(run=[str(engine.folder / "leave.py")]))
    done = start(cyc, engine)
    no_traceback(done)
    assert done.code == 0 and r"docs/\udcff\udcfe (its name" in done.err, done
    (card,) = cyc.cards()
    assert card["details"]["files"] == ["docs/z.txt"]
    (note,) = card["details"]["notes"]
    assert all(name in note for name in (r"docs/a\nb", r"docs/\x1b[2J", r"docs/\u202etxt")), note
    assert cyc.git("show", "--name-only", "--format=", "cleared-cycle/pending").split() == ["docs/z.txt"]


def _install_packages(engine: FakeEngine, folder: str) -> None:
    (engine.folder / "leave.py").write_text(
        "import os\nos.makedirs('docs', exist_ok=True)\nopen('docs/new.txt', 'w').write('x')\n"
        "os.makedirs('docs/__pycache__')\nopen('docs/__pycache__/a.pyc', 'w')\n"
        f"os.makedirs('{folder}')\nfor number in range(2_001):\n    open(f'{folder}/{{number}}', 'w')\n"
    )
    engine.plan(good(run=[str(engine.folder / "leave.py")]))


def test_new_files_that_git_ignores_do_not_count(cyc: Workspace, engine: FakeEngine) -> None:
    """``npm install`` and one file: the file is there in the morning."""
    _install_packages(engine, "node_modules")
    done = start(cyc, engine)
    assert done.code == 0 and "not taken over" not in done.err, done
    assert cyc.git("show", "--name-only", "--format=", "cleared-cycle/pending").split() == ["docs/new.txt"]


def test_too_many_files_are_a_failure_and_a_card(cyc: Workspace, engine: FakeEngine) -> None:
    """What goes on is the consensus; the card names the folder, and what to do."""
    _install_packages(engine, "packages")
    done = start(cyc, engine)
    assert done.code == 1 and "cycle 1: failed" in done.err, done
    [card] = [each for each in cyc.cards() if each["kind"] == "cycle_note"]
    [note] = card["details"]["notes"]
    assert "2,001 of them new in packages/" in note and ".gitignore" in note
    assert not cyc.git("branch", "--list", "cleared-cycle/*")
