"""What is dropped into ``import/``: bank files of many kinds, as many kinds of programs write them."""

from __future__ import annotations

import hashlib
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

from harness import chase

SETTLE = 0.5
"""Seconds a file has to be still. A writer that was kept waiting for longer has to be told from a slow one."""
Row = tuple[str, str, Decimal]
"""Date, text, amount as the bank has it."""


@dataclass(frozen=True)
class Dropped:
    """One file: what it holds, and how it is written."""

    name: str
    data: bytes
    kind: str
    """``good``, ``poisoned`` (its run fails), ``bad`` (no bank file at all)."""
    way: str
    """``rename``, ``slow`` (in pieces), ``part`` (under a temporary name), ``plain``."""
    rows: tuple[Row, ...] = ()
    """What is to be booked of it."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def bank_file(rows: tuple[Row, ...]) -> bytes:
    return chase(*((f"{d[5:7]}/{d[8:]}/{d[:4]}", text, str(amount)) for d, text, amount in rows)).encode()


def files(count: int, seed: int) -> list[Dropped]:
    """So many files. Every row has an amount of its own, but where a file repeats the end of the one before it."""
    draw = random.Random(seed)
    made: list[Dropped] = []
    poisoned = -10  # never close together: three in a row would be taken for the agent's fault
    last: Row | None = None
    for number in range(count):
        chance = draw.random()
        way = draw.choice(("rename", "rename", "slow", "part", "plain"))
        rows = tuple(_row(draw, number, place) for place in range(draw.randint(1, 4)))
        if chance < 0.03 and number - poisoned >= 10:
            poisoned = number
            data = bank_file((*rows, (rows[0][0], f"POISON {number}", Decimal("1.00"))))
            made.append(Dropped(f"{number:05}-p.csv", data, "poisoned", way))
        elif chance < 0.05:
            made.append(Dropped(f"{number:05}-b.csv", f"not;of a bank\n{number};2\n".encode(), "bad", way))
        elif chance < 0.12 and made and (good := [file for file in made[-200:] if file.kind == "good"]):
            again = draw.choice(good)
            made.append(Dropped(f"{number:05}-d.csv", again.data, "good", way, again.rows))
        else:
            if chance < 0.2 and last is not None:
                rows = (last, *rows)
            last = rows[-1]
            made.append(Dropped(f"{number:05}-g.csv", bank_file(rows), "good", way, rows))
    return made


def _row(draw: random.Random, number: int, place: int) -> Row:
    day = date(2025, 1, 1) + timedelta(days=draw.randrange(365))
    amount = Decimal(100 + number * 5 + place) / 100
    return day.isoformat(), f"FILE {number} ROW {place}", amount if draw.random() < 0.5 else -amount


def expected(dropped: list[Dropped]) -> Counter[Row]:
    """What has to be in the books in the end: each row of a good file, once."""
    return Counter({row for file in dropped if file.kind == "good" for row in file.rows})


def write(folder: Path, file: Dropped, draw: random.Random) -> bool:
    """Write it as its program does. False where the writer itself was kept waiting for so long that it may have been
    taken for complete too early."""
    target = folder / file.name
    if file.way == "plain":
        at = time.monotonic()
        target.write_bytes(file.data)  # for a moment it is there, and empty
        return time.monotonic() - at < SETTLE * 0.7
    if file.way == "slow":
        return _slowly(target, file.data, draw)
    before = folder / (f"{file.name}.part" if file.way == "part" else f".{file.name}.tmp")
    with before.open("wb") as out:
        for piece in _pieces(file.data, draw):
            out.write(piece)
            out.flush()
            time.sleep(draw.uniform(0, 0.02))
    os.replace(before, target)
    return True


def _slowly(target: Path, data: bytes, draw: random.Random) -> bool:
    longest, at = 0.0, time.monotonic()
    with target.open("wb") as out:
        for piece in _pieces(data, draw):
            out.write(piece)
            out.flush()
            longest, at = max(longest, time.monotonic() - at), time.monotonic()
            time.sleep(draw.uniform(0.02, 0.12))
    return max(longest, time.monotonic() - at) < SETTLE * 0.7


def _pieces(data: bytes, draw: random.Random) -> Iterator[bytes]:
    while data:
        size = draw.randint(20, 120)
        yield data[:size]
        data = data[size:]
