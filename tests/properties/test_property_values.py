"""Round trips and exactness: the journal's bytes, money, leg names, CSV, the wire."""

from __future__ import annotations

import itertools
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from cleared.base import money
from cleared.base.csv_text import format_record, read_records
from cleared.base.errors import WorkspaceError
from cleared.base.json_values import from_wire, to_wire
from cleared.books.ledger.bank_lines import (
    LINE_COLUMNS,
    MATCH_COLUMNS,
    BankLine,
    append_rows,
    iter_lines,
    normalise_description,
    parse_lines_once,
    parse_matches_once,
)
from cleared.books.ledger.entry import (
    HEADER,
    HEADER_LINE,
    OPTIONAL,
    STATUSES,
    Entry,
    Leg,
    format_entry_id,
    leg_suffix,
    parse_entry_id,
)
from cleared.books.ledger.journal import append_entries, parse_month, parse_month_once, set_columns

ZERO = Decimal(0)
numbers = itertools.count()
texts = st.text(
    st.one_of(
        st.sampled_from('",\r\n\t=+-@;|\x0b\x0c\x1c\x85\u2028\u2029\ufeff☕é'),
        st.characters(codec="utf-8", exclude_characters="\0"),
    ),
    max_size=20,
)
places_of = st.sampled_from([0, 2, 3])


@st.composite
def entries_of_a_month(draw: st.DrawFn) -> tuple[int, list[Entry]]:
    places = draw(places_of)
    amounts = st.integers(1, 10**12).map(lambda n: Decimal(n).scaleb(-places))
    found = []
    for number in range(1, draw(st.integers(0, 5)) + 1):
        parts = draw(st.lists(amounts, min_size=1, max_size=draw(st.sampled_from([1, 3, 30]))))
        legs = [Leg(5030, part, ZERO) for part in parts] + [Leg(1010, ZERO, money.total(parts))]
        found.append(
            Entry(
                format_entry_id(2025, 2, number),
                date(2025, 2, draw(st.integers(1, 28))),
                draw(texts),
                tuple(legs),
                draw(st.sampled_from(STATUSES)),
                draw(texts),
                draw(texts),
                "0.50",
                draw(texts),
                "",
                draw(texts),
                draw(texts),
            )
        )
    return places, found


@given(entries_of_a_month())
def test_what_is_appended_is_what_is_read(month: tuple[int, list[Entry]]) -> None:
    places, found = month
    data = append_entries(None, found, places)
    read = parse_month(data, 2025, 2, "j", places)
    assert read.damage == []
    assert list(read.entries.values()) == found
    assert append_entries(None, list(read.entries.values()), places) == data  # byte for byte
    again = append_entries(data, [], places)
    assert again == data
    for cut in range(len(found) + 1):
        assert append_entries(append_entries(None, found[:cut], places), found[cut:], places) == data


@given(entries_of_a_month(), st.data())
def test_a_status_changes_and_nothing_else(month: tuple[int, list[Entry]], data: st.DataObject) -> None:
    places, found = month
    if not found:
        return
    chosen = data.draw(st.sets(st.sampled_from([e.entry_id for e in found])))
    status = data.draw(st.sampled_from(STATUSES))
    before = append_entries(None, found, places)
    after = set_columns(before, {name: {"status": status} for name in chosen})
    expected = [structs.replace(e, status=status) if e.entry_id in chosen else e for e in found]
    assert after == append_entries(None, expected, places)
    assert set_columns(after, {name: {"status": status} for name in chosen}) == after


@st.composite
def changes_of_a_text(draw: st.DrawFn, data: bytes) -> bytes:
    """Lines left out, said twice or in another order, and bytes put in, as commits by hand and others bring them."""
    lines = data.splitlines(keepends=True)
    at, to = (draw(st.integers(0, len(lines))) for _ in range(2))
    how = draw(st.sampled_from(["leave out", "twice", "other order", "bytes"]))
    if how == "bytes":
        place = draw(st.integers(0, len(data)))
        return data[:place] + draw(st.one_of(texts, st.just('"'), st.just("\n"), st.just("1"))).encode() + data[place:]
    middle = {"leave out": [], "twice": lines[at:to] * 2, "other order": lines[at:to][::-1]}[how]
    return b"".join([*lines[:at], *middle, *lines[max(at, to) :]])


@given(entries_of_a_month(), st.data())
def test_a_changed_month_is_read_as_if_it_had_not_been_known(
    month: tuple[int, list[Entry]], data: st.DataObject
) -> None:
    """Most of it is taken from the version before."""
    places, found = month
    kept = data.draw(st.integers(0, len(found)))
    before = append_entries(None, found[:kept], places)
    chosen = data.draw(st.sets(st.sampled_from([e.entry_id for e in found]))) if found else set()
    grown = append_entries(before, found[kept:], places)
    after = set_columns(grown, {name: {"status": data.draw(st.sampled_from(STATUSES))} for name in chosen})
    other = data.draw(changes_of_a_text(after))
    name = f"{next(numbers)}"  # else an earlier example's text would be the version before
    parse_month_once(before, 2025, 2, name, places)
    for text in (after, other, after):
        read, whole = parse_month_once(text, 2025, 2, name, places), parse_month(text, 2025, 2, name, places)
        assert (read.entries, read.lines, read.damage) == (whole.entries, whole.lines, whole.damage)
        assert list(read.entries) == list(whole.entries)


def test_an_entry_is_missed_that_is_left_out_behind_a_changed_one() -> None:
    """The rows read anew are right by themselves then."""
    legs = (Leg(5030, Decimal("1.00"), ZERO), Leg(1010, ZERO, Decimal("1.00")))
    found = [Entry(format_entry_id(2025, 2, number), date(2025, 2, 1), "x", legs) for number in range(1, 6)]
    before = append_entries(None, found, 2)
    after = set_columns(append_entries(None, [*found[:2], *found[3:]], 2), {"2025-02-002": {"status": "voided"}})
    assert not parse_month_once(before, 2025, 2, "left out", 2).damage
    read = parse_month_once(after, 2025, 2, "left out", 2)
    assert read.damage == parse_month(after, 2025, 2, "left out", 2).damage != []


@given(entries_of_a_month())
def test_the_reserved_columns_stay(month: tuple[int, list[Entry]]) -> None:
    """A file with the optional columns on the right is read, appended to, and keeps its width."""
    places, found = month
    wide = (",".join((*HEADER, *OPTIONAL)) + "\n").encode()
    data = append_entries(wide, found, places)
    read = parse_month(data, 2025, 2, "j", places)
    assert read.damage == []
    assert list(read.entries.values()) == found


def test_hand_written_quoting_of_other_rows_stays() -> None:
    """Only the rows whose status changes are written anew."""
    rows = [
        '"2025-02-001a",2025-02-01,5030,"x",1.00,,,,0.50,pending-review,,,,\n',
        '"2025-02-001b",2025-02-01,1010,"x",,1.00,,,0.50,pending-review,,,,\n',
        "2025-02-002a,2025-02-01,5030,y,1.00,,,,0.50,pending-review,,,,\n",
        "2025-02-002b,2025-02-01,1010,y,,1.00,,,0.50,pending-review,,,,\n",
    ]
    data = (HEADER_LINE + "".join(rows)).encode()
    after = set_columns(data, {"2025-02-002": {"status": "user-confirmed"}}).decode()
    assert after == HEADER_LINE + "".join(rows[:2]) + "".join(rows[2:]).replace("pending-review", "user-confirmed")


@given(st.lists(st.lists(texts, min_size=3, max_size=3), max_size=6))
def test_csv_reader_and_writer_are_inverse(rows: list[list[str]]) -> None:
    data = ("a,b,c\n" + "".join(format_record(row) for row in rows)).encode()
    assert [row for _, row in read_records(data, ("a", "b", "c"))] == rows
    assert "a,b,c\n" + "".join(format_record(r) for _, r in read_records(data, ("a", "b", "c"))) == data.decode()


@given(texts, texts, st.integers(-(10**14), 10**14), st.one_of(st.none(), st.integers(-(10**14), 10**14)))
def test_a_bank_line_is_read_as_it_was_written(text: str, kind: str, cents: int, balance: int | None) -> None:
    line = BankLine(
        "f1:" + "0" * 24,
        date(2025, 1, 2),
        None,
        Decimal(cents).scaleb(-2),
        "USD",
        text,
        "id",
        None if balance is None else Decimal(balance).scaleb(-2),
        "posted",
        "ab",
        7,
        1,
        "",
        kind,
    )
    data, name = append_rows(None, LINE_COLUMNS, [line.to_csv()]), f"{next(numbers)}"
    assert list(parse_lines_once(data, name)) == list(iter_lines(data, "f")) == [line]
    assert list(parse_lines_once(append_rows(data, LINE_COLUMNS, [line.to_csv()] * 2), name)) == [line] * 3


def test_damage_behind_what_is_known_is_told_by_its_line() -> None:
    lines, matches = (append_rows(None, columns, []) for columns in (LINE_COLUMNS, MATCH_COLUMNS))
    known = append_rows(matches, MATCH_COLUMNS, ["f1:a,2025-02-001a,-4.00\n"])
    first = parse_matches_once(known, "damaged matches")
    more = append_rows(known, MATCH_COLUMNS, ["f1:a,2025-02-002a,1.00\n", "f1:b,2025-02-003a,2.00\n"])
    a, b = ("2025-02-001a", Decimal("-4.00")), ("2025-02-002a", Decimal("1.00"))
    assert parse_matches_once(more, "damaged matches") == {"f1:a": (a, b), "f1:b": (("2025-02-003a", Decimal("2.00")),)}
    assert first == {"f1:a": (a,)}, "it is shared"
    parse_lines_once(lines, "damaged lines")
    for parse, data, line in (
        (parse_matches_once, more + b"f1:c,2025-02-004a,x\n", 5),
        (parse_lines_once, lines + b"f1:a,no day" + b"," * 12 + b"\n", 2),
    ):
        with pytest.raises(WorkspaceError) as refused:
            parse(data, "damaged matches" if parse is parse_matches_once else "damaged lines")
        assert refused.value.place is not None and refused.value.place.line == line


@given(texts)
def test_normalising_twice_is_normalising_once(text: str) -> None:
    assert normalise_description(normalise_description(text)) == normalise_description(text)


@given(st.integers(0, 20_000))
def test_leg_suffixes_count_like_columns(index: int) -> None:
    value = 0
    for letter in leg_suffix(index):
        value = value * 26 + ord(letter) - 96
    assert value == index + 1
    if index < 26**3:
        assert parse_entry_id("2025-01-007" + leg_suffix(index)) == (2025, 1, 7, leg_suffix(index))


@given(st.integers(1, 9999), st.integers(1, 12), st.integers(1, 10**9 - 1))
def test_ids_are_told_apart(year: int, month: int, number: int) -> None:
    assert parse_entry_id(format_entry_id(year, month, number)) == (year, month, number, "")


# -- money ------------------------------------------------------------------------------------------------------

weights = st.one_of(
    st.integers(0, 10**9).map(Decimal),
    st.decimals(0, 10**6, places=4),
    st.sampled_from([Decimal("1e-30"), Decimal("1e30"), Decimal(1) / 3]),
)


@given(st.integers(-(10**15), 10**15), st.lists(weights, min_size=1, max_size=20), places_of)
def test_parts_sum_exactly_and_are_fair_within_a_unit(units: int, shares: list[Decimal], places: int) -> None:
    total = Decimal(units).scaleb(-places)
    if not sum(shares):
        with pytest.raises(ValueError):
            money.allocate(total, shares, places)
        return
    parts = money.allocate(total, shares, places)
    assert money.total(parts) == total
    whole = sum(map(Fraction, shares))
    unit = Fraction(1, 10**places)
    for part, share in zip(parts, shares, strict=True):
        assert abs(Fraction(part) - Fraction(total) * Fraction(share) / whole) < unit
        assert part == 0 or (part > 0) == (total > 0)
        if share == 0:
            assert part == 0


@given(st.integers(-(10**38), 10**38), places_of)
def test_exact_amounts_are_taken_as_they_are(units: int, places: int) -> None:
    amount = Decimal(units).scaleb(-places)
    assert money.decode(amount, places) == amount
    assert money.decode(money.format_amount(amount), places) == amount
    assert -money.decode(amount, places).as_tuple().exponent == places  # type: ignore[operator]


@given(st.integers(-(10**12), 10**12), places_of)
def test_floats_within_binary_rounding_are_meant(units: int, places: int) -> None:
    """cents / 100, and what sums of such floats are off by."""
    value = units / 10**places
    amount = Decimal(units).scaleb(-places)
    assert money.decode(value, places) == amount
    if abs(units) < 10**8:
        assert money.decode(value + 0.1 - 0.1, places) == amount


@given(st.integers(-(10**9), 10**9).filter(lambda n: n % 10))
def test_finer_than_the_currency_is_refused(mills: int) -> None:
    amount = Decimal(mills).scaleb(-3)
    for value in (amount, float(amount), money.format_amount(amount)):
        with pytest.raises(ValueError, match="finer"):
            money.decode(value, 2)


@pytest.mark.parametrize(
    "value",
    [
        True,
        None,
        [],
        "",
        "1e3",
        "1,000.00",
        " 1.00",
        "1.",
        ".5",
        "0x10",
        "NaN",
        "Infinity",
        "１.00",
        "--1",
        b"1",
        float("nan"),
        float("inf"),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        10**40,
        Decimal("1e40"),
        1e17,
    ],
)
def test_what_is_no_amount_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        money.decode(value, 2)


# -- the wire ---------------------------------------------------------------------------------------------------

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        texts,
        st.floats(allow_nan=False, allow_infinity=False),
        st.decimals(allow_nan=False, allow_infinity=False, places=4),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(texts.filter(lambda k: k != "$decimal"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_from_the_wire_comes_what_went_there(value: Any) -> None:
    import json

    back = from_wire(json.loads(json.dumps(to_wire(value))))
    assert back == value
    assert _types(back) == _types(value)


def _types(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _types(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_types(v) for v in value]
    return type(value)
