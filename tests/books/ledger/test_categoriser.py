"""Suggestions from what persons decided: the same payee first, the nearest else; cautious, and corrected once."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from cleared.books.ledger.all_booked_lines import AllBookedLines
from cleared.books.ledger.categoriser import Categoriser, Suggestion
from cleared.books.ledger.corrections import make_leg
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.standing_entries import list_standing_entries

BANK = 1010
OUT, IN = Decimal("-42.99"), Decimal("42.99")


def entry(number: int, text: str, *legs: tuple[int, str], status: str = "user-confirmed", tags: str = "") -> Entry:
    made = tuple(make_leg(account, Decimal(amount)) for account, amount in legs)
    day = date(2025, 1, 1) + timedelta(days=number)
    return Entry(f"2025-01-{number:03d}", day, text, made, status, tags=tags, reference=f"f1:{number}")


def bought(number: int, text: str, account: int, status: str = "user-confirmed") -> Entry:
    return entry(number, text, (account, "10.00"), (BANK, "-10.00"), status=status)


def suggest(entries: list[Entry], text: str, amount: Decimal = OUT, reference: str = "") -> Suggestion | None:
    return Categoriser(AllBookedLines.join(list_standing_entries(entries), [BANK])).suggest(text, amount, reference)


def test_the_same_payee_with_its_evidence() -> None:
    found = suggest([bought(n, f"BLUEBIRD HOLDINGS {n:04d}", 5030) for n in range(1, 8)], "Bluebird  Holdings 9")
    assert found is not None and (found.account, found.confidence) == (5030, Decimal("0.93"))
    assert found.evidence == "7 of 7 BLUEBIRD HOLDINGS went to 5030, last 2025-01-08"
    assert found.entries[0] == "2025-01-007"


def test_only_persons_decisions_count() -> None:
    assert suggest([bought(n, "SHOP", 5030, "auto-confirmed") for n in range(9)], "SHOP") is None
    assert suggest([bought(1, "SHOP", 5030, "voided"), bought(2, "SHOP", 5030, "pending-review")], "SHOP") is None


def corrected(number: int) -> list[Entry]:
    """An entry of a shop that went to 5030, and its correction to 5070."""
    legs, tags = ((5070, "10.00"), (5030, "-10.00")), f"@corrects=2025-01-{number:03d}"
    return [
        bought(number, "SHOP", 5030, "user-corrected"),
        entry(number + 10, "Correct: SHOP", *legs, status="user-corrected", tags=tags),
    ]


def test_b32_the_majority_counts_and_two_equal_decisions_in_a_row_are_one() -> None:
    """One exception is no rule: 9 of 10 went elsewhere. What is corrected twice is not suggested again."""
    entries = [bought(n, "SHOP", 5030) for n in range(1, 9)]
    once = suggest([*entries, *corrected(9)], "SHOP")
    assert once is not None and once.account == 5030 and once.confidence < Decimal("0.9")
    assert once.evidence == "8 of 9 SHOP went to 5030, last 2025-01-09; others to 5070"
    twice = suggest([*entries, *corrected(9), *corrected(10)], "SHOP")
    assert twice is not None and twice.account == 5070 and twice.confidence < Decimal("0.3")


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


def at(
    number: int, day: date, text: str, amount: str, account: int, bank: int = BANK, status: str = "auto-confirmed"
) -> Entry:
    legs = (make_leg(bank, Decimal(amount)), make_leg(account, -Decimal(amount)))
    return Entry(f"2025-01-{number:03d}", day, text, legs, status, reference=f"f1:{number}")


def explain(entries: list[Entry], text: str, amount: str, day: date, **more: str) -> tuple[int, str] | None:
    learned = Categoriser(AllBookedLines.join(list_standing_entries(entries), [BANK, 1020]), [("TO BOB", "FROM BOB")])
    found = learned.suggest(text, Decimal(amount), day=day, bank=BANK, **more)
    assert found is None or found.confidence <= Decimal("0.90")
    return (found.account, found.evidence) if found is not None else None


def test_a_refund_of_what_no_person_decided() -> None:
    """By amount and a like payee; each purchase is refunded once, and only afterwards."""
    day = date(2025, 1, 10)
    bought = at(1, day, "SHOP.COM 17", "-42.99", 5060)
    found = explain([bought], "SHOP.COM REFUND 8", "42.99", day + timedelta(days=5))
    assert found == (5060, "a refund of 42.99 on 2025-01-10 (SHOP.COM 17), which went to 5060")
    refund = at(2, day + timedelta(days=5), "SHOP.COM REFUND 8", "42.99", 5060)
    for entries, text, amount, later in (
        ([bought, refund], "SHOP.COM REFUND 9", "42.99", 6),
        ([bought], "SHOP.COM REFUND 8", "42.98", 5),
        ([bought], "HARBOR TOOLS", "42.99", 5),
        ([bought], "SHOP.COM REFUND 8", "42.99", -5),
        ([bought], "SHOP.COM REFUND 8", "42.99", 200),
    ):
        assert explain(entries, text, amount, day + timedelta(days=later)) is None
    decided = at(3, day, "SHOP.COM REFUND 1", "42.99", 4090, status="user-corrected")
    assert explain([bought, decided], "SHOP.COM REFUND 8", "42.99", day) == (
        4090,
        "1 of 1 SHOP.COM REFUND went to 4090, last 2025-01-10",
    )


def test_the_other_side_of_a_transfer() -> None:
    """By amount and days, where it can be no other; not where somebody said that it is none."""
    day = date(2025, 1, 10)
    other = at(1, day, "FROM CHECKING", "500.00", 4010, 1020, "pending-review")
    found = explain(
        [other, at(9, day, "MINE", "-500.00", 5030, status="pending-review")],
        "MINE",
        "-500",
        day,
        entry_id="2025-01-009",
    )
    assert found == (1090, "a transfer: 500.00 reached 1020 on 2025-01-10 (FROM CHECKING)")
    cleared = at(1, day, "FROM CHECKING", "500.00", 1090, 1020, "user-corrected")
    assert (explain([cleared], "MINE", "-500", day) or (0,))[0] == 1090
    assert explain([other, at(2, day, "INTEREST", "500.00", 4010, 1020)], "MINE", "-500", day) is None
    assert explain([other], "MINE", "-500", day + timedelta(days=8)) is None
    refused = at(1, day, "FROM BOB", "500.00", 4010, 1020, "pending-review")
    assert explain([refused], "TO BOB 7", "-500", day) is None


def test_the_same_charge_every_month() -> None:
    entries = [at(n, date(2025, n, 3), f"CITY GYM {n}", "-30.00", 5060) for n in (1, 2, 3)]
    found = explain(entries, "CITY GYM EAST", "-30.00", date(2025, 4, 3))
    assert found == (5060, "every month: 30.00 on 2025-03-03 (CITY GYM 3), which went to 5060")
    assert explain(entries, "CITY GYM EAST", "-30.00", date(2025, 4, 20)) is None
    assert explain(entries, "CITY GYM EAST", "-31.00", date(2025, 4, 3)) is None


def test_a_loans_payment_is_split_as_the_last_one() -> None:
    """Of the same amount; corrected twice, it is not suggested again."""
    paid = [entry(n, f"LENDER {n}", (2500, str(9 + n)), (5150, str(3 - n)), (BANK, "-12")) for n in (1, 2)]
    found = suggest(paid, "LENDER 3", Decimal(-12))
    assert found is not None and found.parts == ((2500, Decimal(11)), (5150, Decimal(1))) and found.account == 2500
    assert found.evidence == "2 of 2 LENDER of this amount were split so, last 2025-01-03"
    assert suggest(paid, "LENDER 3", Decimal(-13)) is None
    other = [entry(n, f"LENDER {n}", (5060, "12"), (BANK, "-12")) for n in (5, 6)]
    later = suggest([*paid, *other], "LENDER 7", Decimal(-12))
    assert later is not None and (later.account, later.parts) == (5060, ())


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=12), st.sampled_from([5030, 5060])), max_size=12), st.text(max_size=12))
def test_it_never_fails_and_is_never_certain(decisions: list[tuple[str, int]], text: str) -> None:
    found = suggest([bought(n, each, account) for n, (each, account) in enumerate(decisions)], text)
    assert found is None or (Decimal(0) <= found.confidence < 1 and found.account in (5030, 5060))
