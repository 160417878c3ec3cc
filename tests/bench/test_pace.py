"""Times are judged at the pace of the machine on which their targets were set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import pace


@pytest.fixture
def slowness(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """How slow the machine is each time that it is asked; the last value stays."""
    values = [1.0]
    monkeypatch.setattr(pace, "read_pace", lambda: values.pop(0) if len(values) > 1 else values[0])
    yield values


def test_a_machine_that_is_half_as_fast_changes_no_verdict(slowness: list[float]) -> None:
    for slow in (1.0, 2.0, 5.0):
        slowness[:] = [slow]
        kept = pace.judge_time("kept", pace.take_paced(lambda: 0.9 * slow, 3), 1)  # noqa: B023
        missed = pace.judge_time("missed", pace.take_paced(lambda: 1.1 * slow, 3), 1)  # noqa: B023
        assert (kept.ok, missed.ok) == (True, False)
        assert (kept.target, missed.target) == ("≤ 1.00 s", "≤ 1.00 s")


def test_both_times_are_shown(slowness: list[float]) -> None:
    slowness[:] = [2.0]
    assert (
        pace.judge_time("a page", pace.take_paced(lambda: 2.5, 1), 1).measured == "2.50 s, at the reference pace 1.25 s"
    )


def test_the_pace_is_that_of_the_moments_around_each_repetition(slowness: list[float]) -> None:
    slowness[:] = [1.0, 3.0, 1.0, 1.0]
    times = iter([4.0, 4.0, 2.0])
    assert pace.take_paced(lambda: next(times), 3) == (4.0, 2.0)


def test_memory_has_a_bound_whatever_the_pace(slowness: list[float]) -> None:
    slowness[:] = [2.0]
    took = pace.take_paced(lambda: 1.0, 1)
    assert pace.judge_time("much memory", took, 1, memory=(120.0, 100)).ok is False
    kept = pace.judge_time("little memory", took, 1, memory=(90.0, 100))
    assert kept.ok and kept.measured.endswith(", 90 MB") and kept.target == "≤ 1.00 s, 100 MB"


def test_the_pace_of_this_machine_is_measured() -> None:
    assert pace.read_pace() > 0
