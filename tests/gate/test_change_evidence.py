"""When a change counts as bad, by what runs before and since attest. D11."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from cleared.gate.change_evidence import MAX_BEFORE, ChangeEvidence, RunEvidence, find_reasons
from cleared.workspace.settings.model import AutoRevert

WINDOW = 20


def runs(
    seed: str, count: int, *, share: float = 0.1, fails: float = 0.02, violates: int | None = None
) -> Iterator[RunEvidence]:
    """Runs of 5 to 40 records, of which ``share`` are asked about; the ``violates``-th breaks an invariant."""
    chance = random.Random(seed)
    for number in range(count):
        made = chance.randint(5, 40)
        broken = int(number + 1 == violates)
        failed = bool(broken) or chance.random() < fails
        cards = 0 if failed else sum(chance.random() < share for _ in range(made))
        event = f"file-watch {seed}{number}"
        yield RunEvidence(f"r{number}", f"2025-01-01T{number:02}", event, "a@1", failed, broken, cards, made)


def first_reason(before: list[RunEvidence], since: list[RunEvidence]) -> tuple[int, list[str]]:
    """After how many runs the change is taken back, as it is asked after each; 0 where it never is."""
    for number in range(1, len(since) + 1):
        if reasons := find_reasons(ChangeEvidence(before, since[:number]), AutoRevert()):
            return number, reasons
    return 0, []


BAD = {
    **{f"queue {n}": {"share": 0.24 + n / 50} for n in range(4)},
    **{f"invariant {n}": {"violates": 3} for n in range(3)},
    **{f"errors {n}": {"fails": 0.4 + n / 5} for n in range(3)},
}


@pytest.mark.parametrize("name", BAD)
def test_d11_each_of_ten_bad_versions_is_taken_back_within_the_window(name: str) -> None:
    before = list(runs(f"before {name}", MAX_BEFORE))
    number, reasons = first_reason(before, list(runs(f"since {name}", WINDOW, **BAD[name])))  # type: ignore[arg-type]
    assert 1 <= number <= WINDOW and reasons
    assert name.partition(" ")[0] != "invariant" or number == 3


def test_d11_none_of_fifty_good_versions_is_taken_back() -> None:
    """Half of them are better than the version before; a tenth are new agents, with nothing to compare."""
    for number in range(50):
        before = list(runs(f"was {number}", MAX_BEFORE if number % 10 else 0))
        since = list(runs(f"good {number}", WINDOW, share=0.1 if number % 2 else 0.05))
        assert first_reason(before, since) == (0, []), number


def test_d11_one_delivery_that_is_tried_again_is_one_event() -> None:
    """A file that no version can take fails as often as it is tried: that says nothing about the change."""
    before = list(runs("calm", MAX_BEFORE, fails=0))
    once = next(runs("bad file", 1, fails=1))
    assert find_reasons(ChangeEvidence(before, [once] * 9), AutoRevert()) == []
    others = [RunEvidence(f"x{n}", once.at, f"file-watch x{n}", "a@1", True, 0, 0, 0) for n in range(9)]
    assert find_reasons(ChangeEvidence(before, others), AutoRevert())


def test_d11_settings_say_what_is_bad_and_zero_looks_at_nothing() -> None:
    before = list(runs("was", MAX_BEFORE))
    since = list(runs("is", WINDOW, share=0.9, fails=0.75, violates=2))
    assert len(find_reasons(ChangeEvidence(before, since), AutoRevert())) == 3
    off = AutoRevert(review_queue_spike=0, invariant_violations=0, error_rate_increase=0)
    assert find_reasons(ChangeEvidence(before, since), off) == []
    patient = AutoRevert(review_queue_spike=100, invariant_violations=2, error_rate_increase=1000)
    assert find_reasons(ChangeEvidence(before, since), patient) == []


def test_d11_runs_that_do_not_say_what_they_made_are_counted_by_run() -> None:
    old = [RunEvidence(f"o{n}", "", f"e {n}", "a@1", False, 0, 1, None) for n in range(MAX_BEFORE)]
    more = [RunEvidence(f"n{n}", "", f"f {n}", "a@2", False, 0, 4, 100) for n in range(WINDOW)]
    reasons = find_reasons(ChangeEvidence(old, more), AutoRevert())
    assert len(reasons) == 1 and "80 cards for 20 runs since; before, 50 cards for 50 runs" in reasons[0]
