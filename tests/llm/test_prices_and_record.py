"""Prices, and the record of calls that several threads and processes share (H12)."""

from __future__ import annotations

import threading
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleared.base.errors import WorkspaceError
from cleared.llm.api_keys import ModelChoice
from cleared.llm.prices import Price, TokenCount, count_tokens, find_price, read_reported_cost
from cleared.llm.usage_store import BegunCall, EndedCall, Spent, UsageStore
from cleared.workspace.settings.model import ModelPrice

COUNTS = st.integers(0, 10**7)


def begun(cost: str = "0.1", session: str = "S1") -> BegunCall:
    return BegunCall("2025-02-10T06:00:00Z", "2025-02-10", "openai", "m", "test", session, 10, Decimal(cost))


def ended(cost: str) -> EndedCall:
    return EndedCall("2025-02-10T06:00:01Z", 10, 5, 0, Decimal(cost), "ok")


def test_h12_a_budget_is_not_exceeded_by_calls_at_once(tmp_path: Path) -> None:
    """H12: between looking at what was spent and recording a call, nobody else can begin one."""
    refusals = []

    def check(spent: Spent) -> None:
        if spent.day + Decimal("0.1") > 1:
            raise ValueError("used up")

    def work(number: int) -> None:
        store = UsageStore(tmp_path / ".cleared")  # each has a connection of its own, as a process has
        for _ in range(5):
            try:
                store.end_call(store.begin_call(begun(session=f"S{number}"), check), ended("0.1"))
            except ValueError:
                refusals.append(number)
        store.close()

    UsageStore(tmp_path / ".cleared").begin_call(begun("0"), check)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spent = UsageStore(tmp_path / ".cleared").sum_spent("S1", "2025-02-10")
    assert spent.day == 1 and len(refusals) == 10


def test_a_call_that_is_refused_is_not_recorded(tmp_path: Path) -> None:
    store = UsageStore(tmp_path / ".cleared")

    def refuse(spent: Spent) -> None:
        raise ValueError

    with pytest.raises(ValueError):
        store.begin_call(begun(), refuse)
    assert store.list_usage("2000-01-01") == []
    store.begin_call(begun(), lambda spent: None)


def test_a_damaged_record_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / ".cleared/llm.db"
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1000)
    store = UsageStore(path.parent)
    store.begin_call(begun("0.25"), lambda spent: None)
    assert store.sum_spent("S1", "").session == Decimal("0.25") and Path(f"{path}.damaged").exists()


def test_fractions_of_a_cent_add_up(tmp_path: Path) -> None:
    store = UsageStore(tmp_path / ".cleared")
    for _ in range(100):
        store.end_call(store.begin_call(begun("0"), lambda spent: None), ended("0.0000001"))
    assert store.sum_spent("S1", "").session == Decimal("0.00001")


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_what_is_in_a_cache_is_never_dearer_and_nothing_is_negative(sent: int, out: int, read: int, more: int) -> None:
    price = Price(Decimal(3), Decimal(15), Decimal("0.3"), "here")
    cost = price.calculate_cost(TokenCount(sent, out, read))
    assert 0 <= cost <= price.calculate_cost(TokenCount(sent, out))
    assert cost <= price.calculate_cost(TokenCount(sent + more, out, read))


@given(st.integers(), st.integers(), st.integers(), st.integers())
def test_whatever_a_provider_counts_is_a_count(sent: int, out: int, read: int, written: int) -> None:
    class Usage:
        input_tokens, output_tokens, cache_read_tokens, cache_write_tokens = sent, out, read, written

    tokens = count_tokens(Usage())
    assert 0 <= tokens.cache_read_tokens <= tokens.input_tokens <= 10**10 and 0 <= tokens.output_tokens <= 10**9


@pytest.mark.parametrize(
    ("details", "cost"),
    [
        ({"cost": 0.25}, "0.25"),
        ({"cost": 0.01, "upstream_inference_cost": 0.2}, "0.21"),
        ({"cost": 0}, "0"),
        ({}, None),
        (None, None),
        ({"cost": "0.25"}, None),
        ({"cost": True}, None),
        ({"cost": -1}, None),
        ({"cost": float("nan")}, None),
        ({"cost": float("inf")}, None),
        ({"cost": 1e9}, None),
    ],
)
def test_what_a_provider_says_it_cost(details: dict[str, object] | None, cost: str | None) -> None:
    assert read_reported_cost(details) == (None if cost is None else Decimal(cost))


def test_prices_that_nobody_approved_make_no_listed_model_cheaper() -> None:
    free = {name: ModelPrice(input=Decimal(0), output=Decimal(0)) for name in ("gpt-4.1", "new")}
    assert find_price(ModelChoice("openai", "gpt-4.1"), free).output == 8
    assert find_price(ModelChoice("openai", "new"), free).is_free
    assert find_price(ModelChoice("openai", "gpt-4.1", "http://127.0.0.1:1/v1"), free).is_free
    assert find_price(ModelChoice("openai", "gpt-4.1", "http://127.0.0.1:1/v1"), {}).output == 8
    with pytest.raises(WorkspaceError, match=r"llm\.prices"):
        find_price(ModelChoice("openai", "newer"), free)
