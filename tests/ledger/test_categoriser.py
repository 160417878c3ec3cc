"""Suggestions from what persons decided: the same payee first, the nearest else; cautious, and corrected once."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.ledger.categoriser import Categoriser, Suggestion
from cleared.ledger.corrections import make_leg
from cleared.ledger.entry import Entry

BANK = 1010
OUT, IN = Decimal("-42.99"), Decimal("42.99")


def entry(number: int, text: str, *legs: tuple[int, str], status: str = "user-confirmed", tags: str = "") -> Entry:
    made = tuple(make_leg(account, Decimal(amount)) for account, amount in legs)
    day = date(2025, 1, 1) + timedelta(days=number)
    return Entry(f"2025-01-{number:03d}", day, text, made, status, tags=tags, reference=f"f1:{number}")


def bought(number: int, text: str, account: int, status: str = "user-confirmed") -> Entry:
    return entry(number, text, (account, "10.00"), (BANK, "-10.00"), status=status)


def suggest(entries: list[Entry], text: str, amount: Decimal = OUT, reference: str = "") -> Suggestion | None:
    return Categoriser.learn(entries, [BANK]).suggest(text, amount, reference)


def test_the_same_payee_with_its_evidence() -> None:
    found = suggest([bought(n, f"BLUEBIRD HOLDINGS {n:04d}", 5030) for n in range(1, 8)], "Bluebird  Holdings 9")
    assert found is not None and (found.account, found.confidence) == (5030, Decimal("0.93"))
    assert found.evidence == "7 of 7 BLUEBIRD HOLDINGS went to 5030, last 2025-01-08"
    assert found.entries[0] == "2025-01-007"


def test_only_persons_decisions_count() -> None:
    assert suggest([bought(n, "SHOP", 5030, "auto-confirmed") for n in range(9)], "SHOP") is None
    assert suggest([bought(1, "SHOP", 5030, "voided"), bought(2, "SHOP", 5030, "pending-review")], "SHOP") is None


def test_what_was_corrected_once_is_not_suggested_again() -> None:
    entries = [bought(n, "SHOP", 5030) for n in range(1, 10)]
    entries.append(bought(10, "SHOP", 5030, "user-corrected"))
    entries.append(entry(11, "Correct: SHOP", (5070, "10.00"), (5030, "-10.00"), status="user-corrected",
                         tags="@corrects=2025-01-010"))  # fmt: skip
    found = suggest(entries, "SHOP")
    assert found is not None and found.account == 5070 and found.confidence < Decimal("0.2")


def test_a_refund_goes_back_to_where_the_purchase_went() -> None:
    found = suggest([bought(n, "SHOP", 5060) for n in range(20)], "SHOP 7", IN)
    assert found is not None and found.account == 5060 and found.evidence.startswith("a refund: ")
    assert found.confidence <= Decimal("0.90")


def test_the_nearest_are_never_as_sure() -> None:
    entries = [bought(n, f"MAIN STREET BAKERY {'ABCDEFGHIJ'[n]}X", 5070) for n in range(10)]
    found = suggest(entries, "MAIN STREET BAKERY 7")
    assert found is not None and found.account == 5070 and found.confidence <= Decimal("0.90")
    assert found.evidence.startswith("5 of 5 like it went to 5070")
    assert suggest(entries, "HARBOR TOOLS") is None and suggest(entries, "X", Decimal(0)) is None


def test_a_line_is_no_example_of_itself_and_a_split_is_none() -> None:
    assert suggest([bought(1, "SHOP", 5030)], "SHOP", reference="f1:1") is None
    assert suggest([entry(1, "SHOP", (5030, "4.00"), (5060, "6.00"), (BANK, "-10.00"))], "SHOP") is None


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=12), st.sampled_from([5030, 5060])), max_size=12), st.text(max_size=12))
def test_it_never_fails_and_is_never_certain(decisions: list[tuple[str, int]], text: str) -> None:
    found = suggest([bought(n, each, account) for n, (each, account) in enumerate(decisions)], text)
    assert found is None or (Decimal(0) <= found.confidence < 1 and found.account in (5030, 5060))
