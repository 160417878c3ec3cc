"""The output of a job or an engine: what is kept of it, and that nothing of the rest costs or tells anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from cleared.work.loop.job_output import JobOutput
from cleared.workspace.settings.secrets import Redactor

LONG = "-".join(f"{number:03}" for number in range(500))
"""A secret, and longer than what stands in its place."""

WORDS = "a few words\n" * 400


class CountingRedactor(Redactor):
    """Counts what it is asked."""

    asked = 0

    def redact_output(self, text: str) -> str:
        type(self).asked += 1
        return super().redact_output(text)


def read_tail(path: Path, chunks: list[bytes], most: int = 10) -> str:
    output = JobOutput(path, most, CountingRedactor((LONG,)))
    for chunk in chunks:
        output.feed_bytes(chunk)
    output.close()
    return output.tail


def test_what_is_not_kept_is_not_worked_on(tmp_path: Path) -> None:
    """Only the end of it is, once, however much there is: a program may print empty lines without end."""
    tail = read_tail(tmp_path / "out", [b"\n" * 65536] * 50 + ["the énd".encode()])
    assert CountingRedactor.asked < 100_000
    assert tail.endswith("\nthe énd")
    assert (tmp_path / "out").read_text() == f"{chr(10) * 11}[{50 * 65536 + 7 - 10} more characters are not kept]\n"


def test_nothing_is_lost_or_doubled_where_the_kept_part_ends(tmp_path: Path) -> None:
    """In the middle of a line and of a character, and at the end of a line."""
    for most in range(1, 30):
        data = "one\ntwo é three\nfour\nfive".encode()
        tail = read_tail(tmp_path / f"out{most}", [data[at : at + 3] for at in range(0, len(data), 3)], most)
        assert tail == data.decode()
        kept = (tmp_path / f"out{most}").read_text().split("\n[")[0]
        assert data.decode().startswith(kept) and len(kept.encode()) >= min(most, len(data)) - 1


def test_the_tail_tells_no_secret_that_began_in_the_gap(tmp_path: Path) -> None:
    """Only its end is left then; and what follows grows so short without secrets that the tail reaches up to there."""
    for more in range(0, 2000, 130):
        end = f"{LONG}\n" * 40 + WORDS + "x" * more + "the end"
        tail = read_tail(tmp_path / f"out{more}", [b"x" * 10, end.encode()])
        assert tail.endswith("x" * more + "the end")
        assert not any(LONG[at : at + 8] in tail for at in range(0, len(LONG) - 8, 8)), more


@pytest.mark.parametrize("lines", [100, 150])
def test_the_tail_tells_no_key_that_began_in_the_gap(tmp_path: Path, lines: int) -> None:
    """Where it begins is perhaps not even looked at."""
    key = "-----BEGIN PRIVATE KEY-----\n" + "".join(f"{number:03}{'Ab9+' * 15}\n" for number in range(199))
    after = f"{LONG}\n" * ((65536 - len(WORDS) - 64 * lines) // 2000 + 1) + WORDS
    tail = read_tail(tmp_path / "out", [b"x" * 10 + b"\n", key.encode(), after.encode(), b"the end"])
    assert tail.endswith("words\nthe end") and "Ab9+" not in tail
