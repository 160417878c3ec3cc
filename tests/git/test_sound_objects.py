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
    for verified in (1, 1):  # the pack of the decision since, once
        assert history(sound).startswith("ok")
        assert (started.count("index-pack"), started.count("fsck")) == (verified, 0)
    sound.git("repack", "-adq")
    sound.git("commit-graph", "write")
    assert history(sound).startswith("ok")
    assert "fsck" not in started and started.count("index-pack") == 2


def test_damage_is_found_wherever_it_is(sound: Workspace) -> None:
    sound.put("notes.txt", "by hand")
    sound.commit("notes.txt")
    loose = sound.git("rev-parse", "HEAD:notes.txt").strip()
    before = {path: path.read_bytes() for path in (sound.root / ".git/objects").rglob("*") if path.is_file()}
    packs = [path for path in before if path.suffix in (".pack", ".idx")]
    assert len(packs) == 6  # a large one, and those of two decisions
    for damaged in (*packs, sound.root / ".git/objects" / loose[:2] / loose[2:]):
        for harm in (flip, Path.unlink):
            harm(damaged)
            assert history(sound).startswith("fail"), (damaged, harm)
            damaged.unlink(missing_ok=True)
            damaged.write_bytes(before[damaged])
    assert history(sound).startswith("ok")
