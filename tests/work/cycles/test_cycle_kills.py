"""kill -9 of the loop of cycles at each of its steps, and while an engine works: the next start goes on."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_engine import GOOD, FakeEngine, begin_hanging, good, is_gone, result, start, wait_until
from forked import Forks
from harness import Workspace
from patience import PATIENCE
from running import has_ended

from cleared.work.cycles.cycle_state import read_state

pytestmark = pytest.mark.slow

LOST = ("cycle-clone-made", "cycle-engine-ended")
"""Before anything is noted: the cycle is lost, and nothing of it is there."""
TAKEN = (
    "cycle-noted",
    "cycle-consensus-taken",
    "objects",
    "index",
    "ref",
    "file",
    "cycle-proposed",
    "cycle-branch-noted",
    "cycle-branch-made",
)
"""After it: all of it is there, once."""


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks() as found:
        yield found


@pytest.mark.parametrize("step", [*LOST, *TAKEN])
def test_kills_at_the_steps_of_a_cycle(cyc: Workspace, engine: FakeEngine, forks: Forks, step: str) -> None:
    """F8, F38: one proposal, one branch, one card of each; books untouched, no clone and no pid file left."""
    books = cyc.git("rev-parse", "HEAD:books")
    script = cyc.read("agents/review_reminder.py").replace("Nothing waits for review", "Nothing waits")
    engine.plan(good("New.", write={"agents/review_reminder.py": script, "docs/note.md": "a note\n"}))
    assert forks.killed_at(cyc.root, ["cycle", str(engine.binary)], step)
    engine.plan({"stdout": result()})
    done = start(cyc, engine)
    assert done.code == 0, done
    left = [".cleared/cycles/clone", ".cleared/cycles/handover.json", ".auto-loop-claude.pid"]
    assert not [path for path in left if (cyc.root / path).exists()]
    assert len(engine.calls) == 1 + (step != "cycle-clone-made")
    taken = step in TAKEN
    assert ("was cut off" in done.err) == taken
    assert sorted(card["kind"] for card in cyc.cards()) == (["branch", "proposal"] if taken else [])
    assert len(list(cyc.root.glob("queue/proposals/P*"))) == taken
    branches = cyc.git("for-each-ref", "--format=%(refname:short)", "refs/heads/cleared-cycle").split()
    assert branches == (["cleared-cycle/pending"] if taken else [])
    assert (cyc.read("memories/consensus.md") == GOOD.format(state="New.", action="Go on.")) == taken
    assert read_state(cyc.root)["total_cost"] == ("0.50" if taken else "0.25") and read_state(cyc.root)["cycle"] == 2
    assert cyc.git("rev-parse", "HEAD:books") == books
    cyc.ok("check")


def test_an_engine_ends_with_its_loop(cyc: Workspace, engine: FakeEngine) -> None:
    """F24: the loop is killed while its engine works; the engine ends at once, with all that it has started."""
    engine.plan({"hang": True, "ignore_term": True, "grandchild": "detached"}, good())
    loop = begin_hanging(cyc, engine)
    os.kill(read_state(cyc.root)["pid"], signal.SIGKILL)
    loop.communicate(timeout=PATIENCE)
    left = [engine.folder / name for name in ("grandchild", "hangs")]
    wait_until(lambda: all(has_ended(mark) for mark in left))
    assert start(cyc, engine).code == 0
    assert (read_state(cyc.root)["cycle"], len(engine.calls)) == (2, 2)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"engine": "claude"}', "\udcff", "[" * 100_000])
def test_a_damaged_note_is_nothing(cyc: Workspace, engine: FakeEngine, text: str) -> None:
    folder = cyc.root / ".cleared/cycles"
    (folder / "clone").mkdir(parents=True)
    (folder / "handover.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    engine.plan(good())
    assert start(cyc, engine).code == 0
    assert len(engine.calls) == 1 and not (folder / "handover.json").exists()


ATTACK = """
import os, pathlib, signal, socket, sys
root = pathlib.Path(sys.argv[1])
loop = int(sys.argv[4])
hooks = pathlib.Path(".git/hooks"); hooks.mkdir(exist_ok=True)
for name in ("post-checkout", "pre-commit", "reference-transaction", "fsmonitor"):
    (hooks / name).write_text("#!/bin/sh\\ntouch " + sys.argv[2] + "\\n"); (hooks / name).chmod(0o755)
open(".git/config", "a").write("[core]\\n\\tfsmonitor = .git/hooks/fsmonitor\\n[filter \\"x\\"]\\n\\tclean = touch "
                               + sys.argv[2] + "\\n")
pathlib.Path(".gitattributes").write_text("* filter=x\\n")
pathlib.Path(".gitignore").write_text("*\\n")
pathlib.Path("docs").mkdir(exist_ok=True)
pathlib.Path("docs/big.bin").write_bytes(b"x" * (40 << 20))
pathlib.Path("docs/link").symlink_to(root / ".env")
os.mkfifo("docs/pipe")
def attempt(name, action):
    try:
        action()
    except OSError as error:
        print("refused", name, file=sys.stderr)
    else:
        print("POSSIBLE", name, file=sys.stderr)
attempt("write", lambda: (root / "evil").write_text("x"))
attempt("read", lambda: (root / ".env").read_text())
attempt("hook", lambda: (root / ".git/hooks/pre-commit").write_text("x"))
attempt("list", lambda: os.listdir(root))
attempt("environment", lambda: pathlib.Path("/proc", str(loop), "environ").read_bytes())
attempt("memory", lambda: open(f"/proc/{loop}/mem", "rb"))
attempt("unix socket", lambda: socket.socket(socket.AF_UNIX))
attempt("probe", lambda: open("../outside").read())
attempt("note", lambda: pathlib.Path("../handover.json").write_text("{}"))
attempt("home", lambda: os.listdir(os.environ["HOME"]))
attempt("host keys", lambda: os.listdir("/etc/ssh"))
attempt("shadow", lambda: open("/etc/shadow"))
if sys.argv[3] == "scoped":
    attempt("signal", lambda: os.kill(loop, signal.SIGTERM))
    attempt("kill", lambda: os.kill(loop, signal.SIGKILL))
socket.socket(socket.AF_INET).close()
"""


def test_an_engine_that_attacks(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """Its clone's git settings run nothing, what it hides from git is seen, and the workspace is out of its reach."""
    from cleared.processes.confinement import landlock_abi
    from cleared.processes.landlock import SCOPES

    if not landlock_abi():
        pytest.skip("this kernel has no Landlock")
    # A folder of programs that has the workspace and the home folder in it opens neither.
    cyc.config(f"loop.ai.program_folders=[{sys.prefix}, {sys.base_prefix}, {cyc.root.parent}]")
    cyc.put(".env", "KEY=s3cret")
    attack = engine.folder / "attack.py"
    attack.write_text(ATTACK)
    mark = engine.folder / "mark"
    scoped = "scoped" if landlock_abi() >= SCOPES else ""
    engine.plan(good(run=[str(attack), str(cyc.root), str(mark), scoped, str(os.getpid())]))
    before = cyc.git("rev-parse", "HEAD:books")
    done = start(cyc, engine)
    log = cyc.ok("cycle", "last").out
    assert done.code == 0 and "POSSIBLE" not in log and log.count("refused") == (14 if scoped else 12), log
    assert not mark.exists() and cyc.git("rev-parse", "HEAD:books") == before
    found = read_state(cyc.root)["last_cycle"]
    assert found["outcome"] == "ok"
    for path in ("docs/big.bin", "docs/link", "docs/pipe"):
        assert path in found["summary"]
    changed = cyc.git("show", "--name-only", "--format=", found["branch"]).split()
    assert set(changed) <= {".gitignore", ".gitattributes"}


def test_a_link_for_the_consensus_is_none(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """F7: neither the file nor its folder may lead elsewhere."""
    attack = engine.folder / "attack.py"
    attack.write_text("import os, shutil, sys\nshutil.rmtree('memories')\nos.symlink(sys.argv[1], 'memories')\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "consensus.md").write_text(GOOD.format(state="x", action="y"))
    before = cyc.read("memories/consensus.md")
    engine.plan({"run": [str(attack), str(elsewhere)], "stdout": result()})
    assert start(cyc, engine).code == 1
    assert read_state(cyc.root)["last_cycle"]["outcome"] == "failed" and cyc.read("memories/consensus.md") == before


def test_a_link_for_the_logs_leads_nowhere(cyc: Workspace, engine: FakeEngine, tmp_path: Path) -> None:
    """Whoever can push puts it there, and what an engine prints would be written wherever it leads."""
    elsewhere, own = tmp_path / "elsewhere", "cycle-0001-20250101-000000.log"
    (cyc.root / "logs").rename(elsewhere)
    (elsewhere / own).write_text("kept")
    (cyc.root / "logs").symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.iterdir())
    engine.plan(good())
    commands = [["cycle", word] for word in ("last", "cycles", "clean-logs", "monitor")]
    for argv in (engine.argv(), *commands, ["work", "log"]):
        done = cyc(*argv)
        assert done.code == 3 and "'logs' leads out of the workspace" in done.err, done
    assert engine.calls == [] and sorted(path.name for path in elsewhere.iterdir()) == before


def test_what_is_no_plain_file_is_no_log(cyc: Workspace, tmp_path: Path) -> None:
    """A link to a device has no end, one to a file shows what is in it, and a folder cannot be read or removed."""
    (tmp_path / "secret").write_text("[2025-01-01T00:00:00Z] secret\n")
    for name, target in (("", "/dev/zero"), ("-qwen", tmp_path / "secret")):
        (cyc.root / f"logs/auto-loop{name}.log").symlink_to(target)
    os.mkfifo(cyc.root / "logs/auto-loop-claude.log")
    cyc.put("logs/auto-loop-opencode.log", "[2025-01-01T00:00:00Z] plain\n")
    cyc.put("logs/cycle-0001-20250101-000000.log/in", "x")
    assert cyc.ok("work", "log").out == "[2025-01-01T00:00:00Z] plain\n"
    assert cyc.ok("cycle", "last").err == "No cycle yet.\n" and cyc.json("cycle", "cycles") == []
    assert "Removed 0 logs" in cyc.ok("cycle", "clean-logs").err


def test_an_output_without_end_is_bounded(cyc: Workspace, engine: FakeEngine) -> None:
    """The log keeps its beginning, and the memory of the loop stays small; the engine's last words still count."""
    cyc.config("loop.ai.max_output_mb=1")
    engine.plan(good(flood=3))
    assert cyc(*engine.argv()).code == 0
    (log,) = cyc.root.glob("logs/cycle-claude-0001-*.log")
    assert log.stat().st_size < (2 << 20)
    assert log.read_bytes()[-200:].rstrip().endswith(b"more characters are not kept]")
    assert read_state(cyc.root)["last_cycle"]["outcome"] == "ok" and read_state(cyc.root)["total_cost"] == "0.25"


def test_keeping_awake_lasts_longer_than_one_cycle(
    cyc: Workspace, engine: FakeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F31: what an engine leaves is ended, but not what the loop itself has started."""
    folder = tmp_path / "path"
    folder.mkdir()
    tool = folder / "systemd-inhibit"
    tool.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/awake\nexec sleep 600\n")
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
    engine.plan(good(), {"hang": True})
    loop = begin_hanging(cyc, engine, "--awake", "--interval", "0", env=environment)
    assert not is_gone(int((tmp_path / "awake").read_text())) and len(engine.calls) == 2
    cyc.ok("cycle", "stop", "--now")
    loop.communicate(timeout=PATIENCE)
    assert is_gone(int((tmp_path / "awake").read_text()))
