"""A campaign of kills at random times, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crash_books import AFTER, check_all_or_nothing, check_sound, copy, git, ingest, read
from crash_kill import Killer
from harness import remove_tree

CHUNK = 20
"""Kills of one test."""


@dataclass
class Told:
    """How the killed commands were found: as if they had never begun, or as if they had ended."""

    kills: int = 0
    nothing: int = 0
    whole: int = 0
    repaired: int = 0


def campaign(template: Path, work: Path, killer: Killer, kills: int) -> Told:
    """So many kills: an ingest mostly, every fourth time the repair of it too, every tenth another command."""
    told = Told()
    killer.measure(copy(template, work / "measured"), ["run", "ingest"])
    round_ = 0
    while told.kills < kills:
        root = work / f"w{round_}"
        kind: Callable[[Path, Path, Killer, Told], None]
        kind = _void if round_ % 10 == 4 else _init if round_ % 10 == 9 else _ingest
        try:
            kind(template, root, killer, told)
        except BaseException as error:
            error.add_note(f"seed {killer.seed}, round {round_}: look at {root}")
            raise
        remove_tree(root)
        round_ += 1
    return told


def part(job: tuple[Path, Path, int, int]) -> Told:
    """One process's share of a campaign: template, working folder, seed, kills."""
    template, folder, seed, kills = job
    folder.mkdir()
    with Killer(seed) as killer:
        return campaign(template, folder, killer, kills)


def _ingest(template: Path, root: Path, killer: Killer, told: Told) -> None:
    copy(template, root)
    while not killer.kill(root, ["run", "ingest"]):
        remove_tree(root)
        copy(template, root)
    told.kills += 1
    if killer.random.random() < 0.5 and (root / ".cleared/seal.json").exists():
        # Whoever repairs is killed as well, often while it does so.
        told.kills += killer.kill(root, ["repair"], 0.03)
    told.repaired += (root / ".cleared/seal.json").exists()
    if check_all_or_nothing(root, repaired_by_reading=killer.random.random() < 0.5, steps=False):
        told.whole += 1
    else:
        told.nothing += 1


def _void(template: Path, root: Path, killer: Killer, told: Told) -> None:
    copy(template, root)
    ingest(root)
    killed = killer.kill(root, ["void", "2025-02-001"], 0.1)
    told.kills += killed
    told.repaired += (root / ".cleared/seal.json").exists()
    entries, said = read(root)
    assert len(said) <= 1
    whole = len(entries) == len(AFTER) + 1
    assert whole or (len(entries) == len(AFTER) and killed)
    told.whole, told.nothing = told.whole + (whole and killed), told.nothing + (not whole)
    check_sound(root, written=False)
    assert ingest(root) == []
    check_sound(root)
    assert len(read(root)[0]) == len(entries)


def _init(template: Path, root: Path, killer: Killer, told: Told) -> None:
    killed = killer.kill(root, ["init"], 0.1)
    told.kills += killed
    whole = (root / ".git/refs/heads/main").exists()
    told.whole, told.nothing = told.whole + (whole and killed), told.nothing + (not whole)
    told.repaired += (root / ".cleared/seal.json").exists()
    if not whole or (root / ".cleared/seal.json").exists():
        killer.finish(root, ["init"])
    assert git(root, "log", "--format=%s").splitlines() == ["init: Acme"]
    assert ingest(root) == []
    assert read(root) == ([], [])
    check_sound(root)
