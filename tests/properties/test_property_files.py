"""Bank files in any order, split or repeated: the same trial balance, or a card (B2, B5)."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal

from books_world import Row, World, chase, with_ids
from hypothesis import given
from hypothesis import strategies as st

from cleared.books.staged_books import books_of

FIRST = date(2025, 1, 20)

amounts = st.integers(-500, 500).filter(bool).map(lambda cents: Decimal(cents) / 100)
texts = st.sampled_from(["COFFEE", "AWS", 'A "B", C', "=1+1", "two\nlines", "☕", "aws"])
rows = st.tuples(st.integers(0, 24), texts, st.one_of(st.just(Decimal("-3.50")), amounts))


@st.composite
def statements(draw: st.DrawFn) -> list[Row]:
    """The account's rows by day; equal ones are likely."""
    found = draw(st.lists(rows, min_size=1, max_size=25))
    return [(FIRST + timedelta(days=d), text, amount) for d, text, amount in sorted(found, key=lambda r: r[0])]


def balance_before(statement: list[Row], day: date) -> Decimal:
    return sum((amount for d, _, amount in statement if d < day), Decimal(100))


def file_of(statement: list[Row], first: date, last: date) -> bytes:
    """The bank's download from one day to another, with its running balance."""
    return chase([r for r in statement if first <= r[0] <= last], balance_before(statement, first))


def truth(statement: list[Row]) -> dict[int, Decimal]:
    with World() as world:
        world.drop("all.csv", chase(statement, Decimal(100)))
        world.ingest()
        world.check()
        return world.balances()


@given(statements(), st.data())
def test_whole_days_in_any_order_overlapping_and_repeated(statement: list[Row], data: st.DataObject) -> None:
    """Downloads of whole days that cover all of them: always exactly the same books."""
    days = sorted({row[0] for row in statement})
    cuts = sorted(data.draw(st.sets(st.sampled_from(days), max_size=4)) | {days[0]})
    spans = [(a, b - timedelta(days=1)) for a, b in zip(cuts, [*cuts[1:], days[-1] + timedelta(days=1)], strict=True)]
    overlap = st.integers(0, 9)
    spans = [(a - timedelta(days=data.draw(overlap)), b + timedelta(days=data.draw(overlap))) for a, b in spans]
    spans += data.draw(st.lists(st.sampled_from(spans), max_size=2))
    spans = data.draw(st.permutations(spans))
    with World() as world:
        for n, (first, last) in enumerate(spans):
            world.drop(f"{n}.csv", file_of(statement, first, last))
            if data.draw(st.booleans()):  # one run each, or several files in one
                world.ingest()
        world.ingest()
        world.check()
        assert world.balances() == truth(statement)
        said = Counter((e.date, e.description, e.legs) for e in world.books().iter_entries())
        assert said.total() == len(statement)
        # The bank's balances say which rows came before; there is a card of a file that comes again as it is, and there
        # may be one where money came and went on one day.
        named = {c.details["file"] for c in world.cards() if c.kind == "duplicate_file"}
        digests = [r.file_sha256 for r in world.bank().imports if r.rows]
        again = len(digests) - len(set(digests))
        is_plain = len({(day, amount > 0) for day, _, amount in statement}) == len(days)
        assert len(named) == again or (len(named) > again and not is_plain)


@given(statements(), st.data())
def test_split_anywhere(statement: list[Row], data: st.DataObject) -> None:
    """Cut within a day, equal rows may be taken for repeated ones: then there is a card that lists them."""
    cut = data.draw(st.integers(0, len(statement)))
    parts = [part for part in (statement[:cut], statement[cut:]) if part]
    with World() as world:
        for n, part in enumerate(data.draw(st.permutations(parts))):
            world.drop(f"{n}.csv", chase(part))
            if data.draw(st.booleans()):
                world.ingest()
        world.ingest()
        world.check()
        cards = [c for c in world.cards() if c.kind == "duplicate_file"]
        missing = len(statement) - len(list(world.books().iter_entries()))
        assert missing == sum(c.details["omitted"] for c in cards)
        assert (world.balances() == truth(statement)) or cards


@given(statements())
def test_the_bank_legs_are_closing_minus_opening(statement: list[Row]) -> None:
    with World() as world:
        world.drop("all.csv", chase(statement, Decimal(100)))
        world.ingest()
        (record,) = world.bank().imports
        assert Decimal(record.closing_balance) - Decimal(record.opening_balance) == Decimal(record.sum)
        assert world.books().account_balance(1010) == Decimal(record.sum)
        assert not [c for c in world.cards() if c.kind == "balance_gap"]


@given(statements(), st.integers(0, 24))
def test_a_gap_is_told(statement: list[Row], drop: int) -> None:
    """A row missing within a file, or between two, shows in the running balance."""
    full = statement[:]
    at = drop % len(full)
    balance, lines = Decimal(100), []
    for n, (day, text, amount) in enumerate(full):
        balance += amount
        if n != at:
            lines.append((day, text, amount, balance))
    if not 0 < at < len(full) - 1 or lines[0][0] == lines[-1][0]:
        return
    from books_world import HEADER

    text_of = "".join(
        f'DEBIT,{d:%m/%d/%Y},"{t.replace(chr(34), chr(34) * 2)}",{a},ACH,{b},,\n' for d, t, a, b in reversed(lines)
    )
    with World() as world:
        world.drop("gap.csv", (HEADER + text_of).encode())
        world.ingest()
        world.check()
        assert [c for c in world.cards() if c.kind == "balance_gap"]


def test_two_equal_purchases_of_one_day_stay_two() -> None:
    twice = [(FIRST, "COFFEE", Decimal("-3.50"))] * 2
    with World() as world:
        for _ in range(3):
            world.drop("a.csv", chase(twice))
            world.ingest()
        world.check()
        assert world.balances() == {1010: Decimal("-7.00"), 5030: Decimal("7.00")}
        assert len([c for c in world.cards() if c.kind == "duplicate_file"]) == 1


def test_an_overlap_of_a_week_adds_only_the_new_week() -> None:
    days = [(FIRST + timedelta(days=d), "COFFEE", Decimal("-3.50")) for d in range(21)]
    with World() as world:
        world.drop("a.csv", chase(days[:14]))
        world.ingest()
        world.drop("b.csv", chase(days[7:]))
        context = world.ingest()
        assert sum(map(len, books_of(context).books.staged.values())) == 7
        world.check()
        assert world.balances()[5030] == Decimal("73.50")


def test_one_bank_id_with_two_amounts_is_a_revision_in_one_run_or_two() -> None:
    a = with_ids([(FIRST, "RENT", Decimal("-10.00"), "X1"), (FIRST, "TAX", Decimal("-1.00"), "X2")])
    b = with_ids([(FIRST, "RENT", Decimal("-12.00"), "X1"), (FIRST, "TAX", Decimal("-1.00"), "X2")])
    for together in (True, False):
        with World() as world:
            world.drop("a.csv", a)
            if not together:
                world.ingest()
            world.drop("b.csv", b)
            world.ingest()
            world.check()
            (card,) = [c for c in world.cards() if c.kind == "revision"]
            assert (card.details["before"], card.details["after"]) == ("-10.00", "-12.00")


def test_half_of_a_split_line_can_be_voided() -> None:
    """A line that two entries posted: either may be voided, then what is open waits with a card, then the other."""

    def split(call: object) -> None:
        assert callable(call)
        (file,) = call("importer_scan")
        (txn,) = call("importer_parse", file["name"])
        for account, amount in ((5030, "4.00"), (5060, "6.00")):
            call(
                "journal_add_double",
                date=txn["date"],
                description="half",
                debit_account=account,
                credit_account=1010,
                amount=amount,
                reference=txn["reference"],
            )
        call("importer_mark_processed", file["name"])

    with World() as world:
        world.drop("a.csv", chase([(FIRST, "SHOP", Decimal("-10.00"))]))
        world.run(split)
        world.check()
        world.run(lambda call: call("journal_void", "2025-01-001", "private"))
        world.check()
        assert world.balances() == {1010: Decimal("-6.00"), 5060: Decimal("6.00")}
        assert [c.kind for c in world.cards()] == ["line"]
        world.run(lambda call: call("journal_void", "2025-01-002", "private"))
        world.check()
        assert world.balances() == {}
        world.drop("again.csv", chase([(FIRST, "SHOP", Decimal("-10.00"))]))
        world.ingest()  # it does not come back by itself
        world.check()
        assert world.balances() == {}
