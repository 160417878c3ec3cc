"""FLAT: doctor reads again of git's store only what came since it found all in order, and misses no damage by it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import Workspace

from cleared.git.git_process import Git


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The commands of git."""
    commands: list[str] = []
    original: Callable[..., object] = Git.start

    def start(git: Git, args: list[str], **options: object) -> object:
        commands.append(args[0])
        return original(git, args, **options)

    monkeypatch.setattr(Git, "start", start)
    return commands


def history(ws: Workspace) -> str:
    """What doctor says of it."""
    (row,) = (row for row in ws("doctor", "--json").json["checks"] if row["name"] == "history")
    return f"{row['status']}: {row['detail']}"


def newest(ws: Workspace, pattern: str) -> Path:
    return max((ws.root / ".git/objects").glob(pattern), key=lambda path: path.stat().st_size)


def flip(path: Path) -> None:
    """One bit in the middle rots."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


@pytest.fixture
def sound(posted: Workspace) -> Workspace:
    """Books of which a part is packed, found in order; and one decision since."""
    posted.git("repack", "-adq")
    posted.ok("journal", "add", "2025-02-04", "draw", "3200=70.00", "1010=-70.00")
    assert history(posted).startswith("ok")
    posted.ok("journal", "add", "2025-02-05", "draw", "3200=77.00", "1010=-77.00")
    return posted


def test_what_was_read_is_not_unpacked_again(sound: Workspace, started: list[str]) -> None:
    assert history(sound).startswith("ok")
    assert not {"fsck", "index-pack"} & {*started}
    sound.git("repack", "-dq")  # what was loose is a second pack now
    assert history(sound).startswith("ok")
    sound.git("repack", "-adq")
    sound.git("commit-graph", "write")
    assert history(sound).startswith("ok")
    assert "fsck" not in started and started.count("index-pack") == 2


def test_damage_is_found_wherever_it_is(sound: Workspace) -> None:
    before = {path: path.read_bytes() for path in (sound.root / ".git/objects").rglob("*") if path.is_file()}
    oid = sound.git("rev-parse", "HEAD:books/2025/02/journal.csv").strip()
    older = sound.git("rev-parse", "HEAD~1:books/2025/02/journal.csv").strip()
    for damaged in (
        newest(sound, "pack/*.pack"),
        newest(sound, "pack/*.idx"),
        *(sound.root / ".git/objects" / each[:2] / each[2:] for each in (oid, older)),
    ):
        for harm in (flip, Path.unlink):
            harm(damaged)
            assert history(sound).startswith("fail"), (damaged, harm)
            damaged.unlink(missing_ok=True)
            damaged.write_bytes(before[damaged])
    assert history(sound).startswith("ok")
