"""A loop with jobs to do, killed at random times, and its state as a power cut may leave it."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from harness import copy_books, here, remove_tree
from looped import Life, Loops, plugged_in, prepare

ROUND = 6
"""Kills between two times at which all is done and looked at."""
_KINDS = ("note",) * 6 + ("slow", "broken")


@dataclass
class Told:
    """What was killed, and how much was run all the same."""

    kills: int = 0
    loops: int = 0
    supervisors: int = 0
    ended: int = 0
    """Loops that were told to end."""
    jobs: int = 0


def scene(start: Path, root: Path, loops: Loops, fast: int = 3, slow: int = 1) -> Life:
    """A workspace in whose loop so many jobs wait, the fast ones as messages."""
    life = Life(copy_books(start, root))
    if slow:
        life.enqueue("slow", slow)
    life.leave("note", fast)
    return life


def calm(start: Path, root: Path, loops: Loops) -> list[str]:
    """The steps of a loop that nobody disturbs; a message waits for it."""
    life = scene(start, root, loops)
    found = loops.run(life, max_cycles=8, auto_rotate=True, sleep_seconds=0.0)
    life.check()
    return found


def campaign(start: Path, work: Path, loops: Loops, kills: int, seed: int) -> Told:
    """So many kills at random times; all is looked at every few."""
    told, draw, number = Told(), random.Random(seed), 0
    while told.kills < kills:
        root = work / f"w{number}"
        try:
            life = scene(start, root, loops, draw.randrange(4), draw.randrange(2))
            for _ in range(min(ROUND, kills - told.kills)):
                _once(life, loops, draw, told)
            life.drain(loops)
            life.check(stops=None)
        except BaseException as error:
            error.add_note(f"seed {seed}, round {number}: look at {root}")
            raise
        told.jobs += len(life.results())
        number += 1
        remove_tree(root)
    return told


def part(job: tuple[Path, int, int]) -> Told:
    """One process's share of a campaign: working folder, seed, kills."""
    folder, seed, kills = job
    folder.mkdir()
    with plugged_in(folder / "plugin"), Loops() as loops:
        done = here("init", str(folder / "books"), "--name", "Acme")
        assert done.code == 0, done
        return campaign(prepare(folder / "books"), folder, loops, kills, seed)


def _once(life: Life, loops: Loops, draw: random.Random, told: Told) -> None:
    """One loop, from its start to its end."""
    loops.begin(life, max_cycles=10_000, auto_rotate=True, sleep_seconds=0.0)
    loops.up(life)
    end = time.monotonic() + draw.uniform(0.0, 0.5)
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, draw.uniform(0.0, 0.2)))
        if draw.random() < 0.06:
            life.refused()
        elif draw.random() < 0.5:
            life.enqueue(draw.choice(_KINDS))
    how = draw.random()
    if how < 0.45:
        told.supervisors += life.kill_supervisor()
    if how < 0.25:
        time.sleep(draw.uniform(0.0, 0.02))
    if how < 0.85:
        loops.signal(life, signal.SIGKILL)
        killed = loops.ended()
        assert killed in (0, -signal.SIGKILL), killed
        told.loops += killed != 0
    else:
        for _ in range(draw.choice((1, 1, 2))):
            loops.signal(life, signal.SIGTERM)
        assert loops.ended() in (0, -signal.SIGTERM)
        told.ended += 1
    told.kills += 1
