"""SIGKILL at each step of a backup and of a restore: the old file stays, nothing is half, the same command mends it."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import preloaded
import pytest
from backups import all_files, back_up, other_machine, passphrase_file, restore
from harness import Workspace, here, remove_tree
from kill_points import EVERY

pytestmark = pytest.mark.slow

CHILD = """
import os, signal, sys
at, count, watched = int(sys.argv[1]), 0, sys.argv[2]
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT

def hook(event, args):
    global count
    if event == "open":
        path = os.fsdecode(args[0]) if isinstance(args[0], (str, bytes, os.PathLike)) else ""
        counts = isinstance(args[2], int) and args[2] & WRITES and watched in path
    else:
        counts = event in ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "subprocess.Popen", "os.chmod")
    if counts:
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

from cleared.changes.backup import sealed_stream
sealed_stream.SCRYPT_N = 1 << 14
from cleared.cli.command_runner import run
sys.addaudithook(hook)
code = run(sys.argv[3:])
print("steps", count)
sys.exit(code)
"""
"""A command that kills itself at one of the things it asks the system to change."""


def run_to_step(at: int, watched: Path, *argv: str) -> tuple[int, int]:
    """Exit code, or minus the signal, and how many steps it had."""
    done = preloaded.run([CHILD, str(at), str(watched), *argv], function="preloaded:execute")
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode, int(done.stdout.split()[-1]) if done.returncode == 0 else 0


def points(steps: int) -> list[int]:
    return list(range(1, steps + 1)) if EVERY else sorted({*range(1, steps + 1, max(1, steps // 12)), steps})


def test_a_killed_backup_leaves_the_old_one(posted: Workspace, tmp_path: Path) -> None:
    stick = tmp_path / "stick"
    stick.mkdir()
    file, words = stick / "b", passphrase_file(tmp_path)
    argv = ("backup", str(file), "--force", "--passphrase-file", str(words), "-C", str(posted.root))
    code, steps = run_to_step(-1, tmp_path, *argv)
    assert code == 0 and steps > 10
    old = file.read_bytes()
    for at in points(steps):
        file.write_bytes(old)
        code, _ = run_to_step(at, tmp_path, *argv)
        if code == -signal.SIGKILL:
            whole = here("restore", str(file), "--check", "--passphrase-file", str(words))
            assert whole.code == 0, (at, whole)
        posted.ok("backup", str(file), "--force", "--passphrase-file", str(words))
        assert [p.name for p in stick.iterdir()] == ["b"], f"nothing is left, step {at}"
        assert not (posted.root / ".cleared/backup-work").exists()
    posted.in_order()


def test_a_killed_restore_is_whole_or_nothing(posted: Workspace, tmp_path: Path) -> None:
    file = back_up(posted)
    (tmp_path / "machine").mkdir()
    words = ("--passphrase-file", str(passphrase_file(tmp_path)))
    with other_machine(tmp_path / "machine") as home:
        target = tmp_path / "machine/new"
        code, steps = run_to_step(-1, tmp_path, "restore", str(file), str(target), *words)
        assert code == 0 and steps > 20
        for at in points(steps):
            remove_tree(target)
            shutil.rmtree(home)
            code, _ = run_to_step(at, tmp_path, "restore", str(file), str(target), *words)
            assert code == -signal.SIGKILL, at
            if not target.exists():
                done = restore(file, target)
                assert done.code == 0, (at, done)
            ws = Workspace(target)
            assert ws.json("check") == {"ok": True, "violations": []}, at
            ws.ok("queue", "approve", "2025-01-002")
            assert ws.json("doctor")["ok"]
            assert not list(target.parent.glob(".new.restore-*")), "nothing unsealed is left"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_restore_leaves_nothing(posted: Workspace, tmp_path: Path, number: int) -> None:
    posted.put("receipts/large.bin", os.urandom(8 << 20))
    file = back_up(posted)
    program = CHILD.replace("SIGKILL", signal.Signals(number).name)
    with other_machine(tmp_path / "machine"):
        place = tmp_path / "place"
        place.mkdir()
        words = ["restore", str(file), str(place / "new"), "--passphrase-file", str(passphrase_file(tmp_path))]
        done = preloaded.run([program, "25", str(place), *words], function="preloaded:execute")
        assert done.returncode != 0
        left = all_files(place)
        if number == signal.SIGINT:
            assert left == {} and list(place.iterdir()) == []
        else:
            assert not (place / "new").exists()
