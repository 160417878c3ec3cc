"""The published contract of importers, held by all of ours; and no bytes get anything but a refusal (B10)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from import_samples import CARD, CARD_HEADER, CHECKING, CHECKING_HEADER, GERMAN, GERMAN_TEXT, config, profile
from msgspec import structs
from statement_files import MONTH, write_camt, write_mt940, write_ofx, write_qif

from cleared.books.bank_files import Importer, ImportFileError, Sample
from cleared.books.bank_files.chase import ChaseCard, ChaseChecking
from cleared.books.bank_files.csv_profile import ProfileImporter
from cleared.books.bank_files.file_reading import detect_format, read_file
from cleared.books.bank_files.plugin_tests import check_importer
from cleared.books.ledger.bank_row import ParsedFile

GERMAN_DATA = GERMAN_TEXT.encode("cp1252")
OURS: list[tuple[Importer, list[bytes], list[bytes]]] = [
    (
        ChaseChecking(),
        [CHECKING.encode(), CHECKING.replace(CHECKING_HEADER, CHECKING_HEADER + ",").encode("utf-16")],
        [CARD.encode(), GERMAN_DATA],
    ),
    (
        ChaseCard(),
        [CARD.encode(), f"Card,{CARD_HEADER}\n1234,01/30/2025,01/31/2025,A,B,Sale,-1.00,\n".encode()],
        [CHECKING.encode(), GERMAN_DATA],
    ),
    (ProfileImporter(GERMAN), [GERMAN_DATA], [CHECKING.encode(), CARD.encode()]),
]


@pytest.mark.parametrize(("importer", "samples", "strangers"), OURS, ids=[i.name for i, _, _ in OURS])
def test_our_importers_keep_the_contract(importer: Importer, samples: list[bytes], strangers: list[bytes]) -> None:
    check_importer(importer, samples, strangers=strangers)


def _row(**change: Any) -> Callable[[ParsedFile], ParsedFile]:
    return lambda p: structs.replace(p, rows=(structs.replace(p.rows[0], **change), *p.rows[1:]))


class Broken(ChaseChecking):
    """Keeps the contract but for one thing."""

    def __init__(self, change: Callable[[ParsedFile], Any], *, always: object = None) -> None:
        super().__init__()
        self.change = change
        self.always = always

    def identify(self, sample: Sample) -> bool:
        if isinstance(self.always, Exception):
            raise self.always
        return super().identify(sample) if self.always is None else bool(self.always)

    def parse(self, text: str, places: int) -> ParsedFile:
        return self.change(super().parse(text, places))  # type: ignore[no-any-return]


def _crash(parsed: ParsedFile) -> ParsedFile:
    if len(parsed.rows) != 3:
        raise IndexError("list index out of range")
    return parsed


def _same(parsed: ParsedFile) -> ParsedFile:
    return parsed


@pytest.mark.parametrize(
    ("importer", "message"),
    [
        (Broken(_same, always=True), "identify must be False"),
        (Broken(_same, always=False), "identify must be True"),
        (Broken(_same, always=ValueError("no")), "identify raised ValueError"),
        (Broken(lambda p: list(p.rows)), "parse must return a ParsedFile"),
        (Broken(lambda p: structs.replace(p, format="other")), "format is 'other'"),
        (Broken(lambda p: structs.replace(p, rows=())), "not empty"),
        (Broken(lambda p: structs.replace(p, hints=("last4",))), "not a pair"),
        (Broken(lambda p: structs.replace(p, rows=p.rows[::-1])), "is not a line number after"),
        (Broken(_row(row=99)), "is not a line number after 0 of a file with"),
        (Broken(_row(amount=1.5)), "is not a Decimal with 2 decimals"),
        (Broken(_row(amount=Decimal("1.5"))), "is not a Decimal with 2 decimals"),
        (Broken(_row(balance=Decimal("Infinity"))), "is not a Decimal with 2 decimals"),
        (Broken(_row(posted_date=datetime(2025, 1, 1))), "is not a date"),
        (Broken(_row(description=None)), "is not a text"),
        (Broken(_row(currency="usd")), "is not an ISO 4217 code"),
        (Broken(_row(state="maybe")), "is not posted or pending"),
        (Broken(_crash), "parse raised IndexError"),
    ],
)
def test_the_contract_says_what_is_broken(importer: Importer, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_importer(importer, [CHECKING.encode()])


def test_the_contract_needs_a_sample_and_an_importer() -> None:
    with pytest.raises(AssertionError, match="at least one sample"):
        check_importer(ChaseCard(), [])
    with pytest.raises(AssertionError, match="lacks name, identify or parse"):
        check_importer(object(), [b"x"])  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="refused"):
        check_importer(ChaseChecking(), [CHECKING.replace("-21.00", "x").encode()])


# -- hostile bytes --------------------------------------------------------------------------------------------

CONFIG = config(GERMAN, profile(), profile(), structs.replace(profile(encoding="utf-16"), name="wide"))
FORMATS = [None, "chase_checking", "chase_card", "sparkasse", "p", "wide", "ofx", "camt", "mt940", "qif"]
STATEMENTS = [write(MONTH).encode() for write in (write_ofx, write_camt, write_mt940, write_qif)]
GOOD = [CHECKING.encode(), CARD.encode(), GERMAN_DATA, b"Date,Text,Amount\n2025-01-02,x,1\n", CHECKING.encode("utf-16")]
GOOD += STATEMENTS


def _refused_or_read(data: bytes, format: str | None) -> None:
    for read in (lambda: detect_format("a", data, CONFIG), lambda: read_file("a", data, CONFIG, 2, format)):
        try:
            read()
        except ImportFileError as error:
            assert error.place is not None and error.place.file == "a"
            assert "\n" not in str(error)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(FORMATS))
@example(b"\xff\xfe\x00", None)
@example(b'"', "chase_checking")
@example(b"\xff", "wide")
def test_B10_random_bytes_are_refused_and_nothing_else(data: bytes, format: str | None) -> None:
    _refused_or_read(data, format)


_edits = st.tuples(st.integers(0, 500), st.integers(0, 3), st.binary(min_size=1, max_size=4))


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(GOOD),
    st.lists(_edits, min_size=1, max_size=4),
    st.sampled_from(FORMATS),
)
def test_B10_mutated_files_are_refused_or_read_and_nothing_else(
    data: bytes, edits: list[tuple[int, int, bytes]], format: str | None
) -> None:
    for at, drop, put in edits:
        at %= len(data)
        data = data[:at] + put + data[at + drop :]
    _refused_or_read(data, format)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(GOOD), st.integers(0, 400))
def test_B10_a_file_cut_anywhere_is_refused_or_gives_a_beginning_of_its_rows(data: bytes, keep: int) -> None:
    whole = read_file("a", data, CONFIG, 2)
    try:
        part = read_file("a", data[:keep], CONFIG, 2)
    except ImportFileError:
        return
    assert len(part.rows) <= len(whole.rows)
    assert part.rows[:-1] == whole.rows[: max(len(part.rows) - 1, 0)]
