"""Which format a file has, and which bank account it belongs to: stated or refused, never guessed."""

from __future__ import annotations

import importlib.metadata
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from import_samples import CARD, CARD_HEADER, CHECKING, GERMAN, GERMAN_TEXT, config, profile
from msgspec import structs

from cleared.base.errors import WorkspaceError
from cleared.books.bank_files import ImportFileError, Sample
from cleared.books.bank_files.account_matching import resolve_account
from cleared.books.bank_files.chase import ChaseChecking
from cleared.books.bank_files.file_reading import detect_format, read_file
from cleared.books.bank_files.plugins import BUILT_IN, load_format
from cleared.books.ledger.bank_row import ParsedFile
from cleared.workspace.settings.bank_section import BankAccount, Match
from cleared.workspace.settings.model import Config

SIMPLE = b"Date,Text,Amount\n2025-01-02,x,1\n"
MINE = profile(
    columns={"date": "Posting Date", "description": "Description", "amount": "Amount"}, date_format="%m/%d/%Y"
)


def test_two_matching_formats_are_an_error_that_names_both() -> None:
    with pytest.raises(ImportFileError) as caught:
        detect_format("a.csv", CHECKING.encode(), config(MINE))
    assert "the formats chase_checking and p both match it" in caught.value.message
    assert "such as chase_checking, or remove the other from import.profiles" in str(caught.value)


def test_the_format_given_or_declared_decides() -> None:
    account = BankAccount(id="a", format="p")
    assert detect_format("a.csv", CHECKING.encode(), config(MINE, accounts=(account,))) == "p"
    assert read_file("a.csv", CHECKING.encode(), config(MINE), 2, "p").format == "p"
    assert read_file("a.csv", CHECKING.encode(), config(MINE), 2, "chase_checking").format == "chase_checking"
    there = structs.replace(account, match=Match(folder="there"))
    assert detect_format("there/a.csv", CHECKING.encode(), config(MINE, accounts=(there,))) == "p"
    with pytest.raises(ImportFileError, match="both match"):
        detect_format("a.csv", CHECKING.encode(), config(MINE, accounts=(there,)))
    both = (account, BankAccount(id="b", format="chase_checking"))
    with pytest.raises(ImportFileError, match="both match"):
        detect_format("a.csv", CHECKING.encode(), config(MINE, accounts=both))


def test_B10_no_matching_format_shows_the_header_and_how_to_say_what_it_means() -> None:
    with pytest.raises(ImportFileError) as caught:
        detect_format("a.csv", b"\nDatum,Text,\x1b[31mBetrag\n1,2,3\n", config())
    error = caught.value
    assert error.place is not None and error.place.line == 2
    assert "Datum, Text, " in error.message and "\x1b" not in error.message
    assert error.remedy == "Say what they mean: cleared bank add FILE"


def test_B10_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(ImportFileError, match=r"known are .*, camt, .*, chase_card, .*, ofx, p, "):
        read_file("a.csv", SIMPLE, config(profile()), 2, "quicken")


def test_B10_a_format_that_does_not_fit_names_both_headers() -> None:
    with pytest.raises(ImportFileError) as caught:
        read_file("a.csv", SIMPLE, config(profile()), 2, "chase_card")
    assert "the columns are Date, Text, Amount, but the format chase_card has Transaction Date" in caught.value.message
    assert caught.value.place is not None and caught.value.place.line == 1
    with pytest.raises(ImportFileError, match="no line of column headers"):
        read_file("a.csv", SIMPLE, config(profile(skip_lines=9)), 2, "p")


def test_utf8_and_cp1252_header_names_are_told_apart() -> None:
    columns = {"date": "Währungstag", "description": "Text", "amount": "Betrag €"}
    text = "Währungstag,Text,Betrag €\n2025-01-02,x,1\n"
    one = profile(columns=columns)
    other = structs.replace(one, name="other", encoding="cp1252")
    assert detect_format("a.csv", text.encode(), config(one, other)) == "p"
    assert detect_format("a.csv", text.encode("cp1252"), config(one, other)) == "other"


def test_a_sample_is_lossless_without_a_mark() -> None:
    data = bytes(range(256))
    assert Sample("a", data).text.encode("latin-1") == data
    assert Sample("a", b"\xff\xfea\x00b").view("utf-8") == "a\ufffd"


# -- accounts -------------------------------------------------------------------------------------------------


def parsed(format: str = "chase_checking", *hints: tuple[str, str]) -> ParsedFile:
    return ParsedFile(format=format, rows=(), hints=hints)


def account(id: str, format: str | None = None, **match: Any) -> BankAccount:
    return BankAccount(id=id, format=format, match=Match(**match))


IBAN = "DE89370400440532013000"


@pytest.mark.parametrize(
    ("name", "file", "accounts", "chosen"),
    [
        ("a.csv", parsed(), [account("x")], "x"),
        ("a.csv", parsed(), [account("x", "chase_checking"), account("y", "chase_card")], "x"),
        ("sub/a.csv", parsed(), [account("x", folder="sub"), account("y")], "x"),
        ("sub/deep/a.csv", parsed(), [account("x", folder="sub/"), account("y", folder="su")], "x"),
        ("a.csv", parsed(), [account("x", folder="sub"), account("y")], "y"),
        ("a.csv", parsed("p", ("last4", "1111")), [account("x", last4="1111"), account("y", last4="2222")], "x"),
        ("a.csv", parsed("p", ("last4", "1111")), [account("x", last4="2222"), account("y")], "y"),
        ("a.csv", parsed(), [account("x", last4="2222"), account("y")], "y"),
        ("a.csv", parsed("p", ("iban", IBAN)), [account("x", iban="de89 3704 0044 0532 0130 00"), account("y")], "x"),
        ("a.csv", parsed("p", ("header", "My GIRO account")), [account("x", header="giro"), account("y")], "x"),
        ("Chase1234_Activity.CSV", parsed(), [account("x", last4="1234"), account("y", last4="5678")], "x"),
        ("sub/chase5678_x.csv", parsed(), [account("x", last4="1234"), account("y", last4="5678")], "y"),
        ("s/a.csv", parsed("p", ("last4", "1")), [account("x", folder="s", last4="1"), account("y", last4="2")], "x"),
    ],
)
def test_an_account_is_chosen_by_what_is_stated(
    name: str, file: ParsedFile, accounts: list[BankAccount], chosen: str
) -> None:
    assert resolve_account(name, file, config(accounts=tuple(accounts))).id == chosen
    assert resolve_account(name, file, config(accounts=tuple(accounts[::-1]))).id == chosen


def test_currency_decides_between_accounts_of_one_format() -> None:
    euro = BankAccount(id="eur", format="sparkasse", currency="EUR")
    base = BankAccount(id="usd", format="sparkasse")
    cfg = config(GERMAN, accounts=(base, euro))
    file = read_file("a.csv", GERMAN_TEXT.encode("cp1252"), cfg, 2)
    assert resolve_account("a.csv", file, cfg) == euro


def suggested(error: ImportFileError) -> dict[str, Any]:
    """What the YAML line of a remedy means, whole, once it is pasted under ``bank_accounts:``."""
    found = yaml.safe_load("bank_accounts:\n" + (error.remedy or "").partition("config.yaml:")[2])["bank_accounts"]
    assert len(found) == 1
    return dict(found[0])


@pytest.mark.parametrize("name", ["a.csv", "sub/a.csv", "on/a.csv", "we: {ird, \"x'/a.csv", "12/34/a.csv"])
@pytest.mark.parametrize("file", [parsed(), parsed("chase_card", ("last4", "0123")), parsed("p", ("iban", IBAN))])
@pytest.mark.parametrize("others", [(), (account("chase_card", "else"), account("chase_checking", "else"))])
def test_the_line_to_add_for_an_unknown_account_makes_it_known(
    name: str, file: ParsedFile, others: tuple[BankAccount, ...]
) -> None:
    with pytest.raises(ImportFileError) as caught:
        resolve_account(name, file, config(accounts=others))
    assert caught.value.place is not None and caught.value.place.file == name
    keys = suggested(caught.value)
    keys["match"] = Match(**keys.get("match", {}))
    added = BankAccount(**keys)
    assert added.id not in {a.id for a in others}
    assert added.ledger_account not in {a.ledger_account for a in others}
    assert resolve_account(name, file, config(accounts=(*others, added))) == added


def test_an_unknown_account_says_why_each_one_is_out() -> None:
    accounts = (
        account("w", "chase_card"),
        account("x", folder="there"),
        account("y", last4="1111"),
        account("z", iban=IBAN),
        account("h", header="giro"),
    )
    with pytest.raises(ImportFileError) as caught:
        resolve_account("a.csv", parsed(), config(accounts=accounts))
    for part in (
        "w: its format is chase_card",
        "x: its folder is import/there/",
        "y: its last4 is 1111, the file says nothing",
        f"z: its iban is {IBAN}",
        "h: its header text 'giro' is not above the columns",
    ):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("name", "file", "line"),
    [
        ("sub/a.csv", parsed(), "`match: {folder: sub}`"),
        ("a.csv", parsed("p", ("last4", "0123")), '`match: {last4: "0123"}`'),
        ("a.csv", parsed("p", ("iban", IBAN)), f'`match: {{iban: "{IBAN}"}}`'),
        ("a.csv", parsed(), "`match: {folder: x}` for x, and put its files into import/x/"),
    ],
)
def test_an_ambiguous_account_is_refused_with_the_line_to_add(name: str, file: ParsedFile, line: str) -> None:
    with pytest.raises(ImportFileError) as caught:
        resolve_account(name, file, config(accounts=(account("x"), account("y"))))
    assert "the bank accounts x and y both fit" in caught.value.message
    assert line in (caught.value.remedy or "")


def test_accounts_that_match_the_same_keys_are_ambiguous_too() -> None:
    three = tuple(account(i, last4="0123") for i in "xyz")
    with pytest.raises(ImportFileError, match="x and y and z all fit") as caught:
        resolve_account("a.csv", parsed("p", ("last4", "0123")), config(accounts=three))
    assert "{folder: x}" in (caught.value.remedy or "")


def test_a_card_file_goes_to_the_account_of_its_digits() -> None:
    accounts = (account("x", "chase_card", last4="1234"), account("y", "chase_card", last4="5678"))
    data = f"Card,{CARD_HEADER}\n5678,01/30/2025,01/31/2025,A,B,Sale,-1.00,\n".encode()
    cfg = config(accounts=accounts)
    assert resolve_account("a.csv", read_file("a.csv", data, cfg, 2), cfg).id == "y"


# -- plug-ins -------------------------------------------------------------------------------------------------


class Fixed(ChaseChecking):
    """A plug-in whose parse can be told to misbehave."""

    name = "fixed"
    result: Any = None

    def identify(self, sample: Sample) -> bool:
        if sample.data.startswith(b"boom"):
            raise RuntimeError("boom")
        return sample.data.startswith(b"fixed")

    def parse(self, text: str, places: int) -> ParsedFile:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result  # type: ignore[no-any-return]


class Point:
    value = "somewhere:Fixed"

    def __init__(self, made: Any) -> None:
        self.made = made

    def load(self) -> Any:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Point]]:
    points = [Point(Fixed)]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: points)
    yield points
    Fixed.result = None


def plugged(name: str = "fixed") -> Config:
    return config(plugins=(name,))


def test_a_plug_in_is_loaded_only_where_it_is_named(installed: list[Point]) -> None:
    Fixed.result = ChaseChecking().parse(CHECKING, 2)
    assert detect_format("a", b"fixed", plugged()) == "fixed"
    assert read_file("a", b"fixed", plugged(), 2).rows == Fixed.result.rows
    with pytest.raises(ImportFileError, match="no known format"):
        detect_format("a", b"fixed", config())


def test_the_built_in_importers_are_published_as_plug_ins_are() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    published = project["entry-points"]["cleared.importers"]
    assert set(published) == set(BUILT_IN)
    for name, value in published.items():
        assert importlib.metadata.EntryPoint(name, value, "cleared.importers").load() is load_format(name)
    assert detect_format("a", CARD.encode(), plugged("chase_card")) == "chase_card"


@pytest.mark.parametrize(
    ("name", "points", "message"),
    [
        ("fixed", [], "the importer 'fixed' cannot be loaded: it is not installed"),
        ("fixed", [Point(Fixed), Point(Fixed)], "two packages have it"),
        ("fixed", [Point(RuntimeError("no"))], "cannot be loaded: RuntimeError: no"),
        ("fixed", [Point(object)], "is no importer of that name"),
        ("other", [Point(Fixed)], "is no importer of that name"),
    ],
)
def test_a_plug_in_that_cannot_be_used_is_a_mistake_of_the_configuration(
    installed: list[Point], name: str, points: list[Point], message: str
) -> None:
    installed[:] = points
    with pytest.raises(WorkspaceError) as caught:
        detect_format("a", b"fixed", plugged(name))
    assert message in caught.value.message
    assert caught.value.remedy


def test_a_name_with_two_owners_is_refused(installed: list[Point]) -> None:
    with pytest.raises(WorkspaceError, match="'chase_card' has two owners: cleared itself and a profile"):
        detect_format("a", b"x", config(structs.replace(profile(), name="chase_card")))
    with pytest.raises(WorkspaceError, match="'fixed' has two owners: a profile and a plug-in"):
        detect_format("a", b"x", config(structs.replace(profile(), name="fixed"), plugins=("fixed",)))


@pytest.mark.parametrize("result", [RuntimeError("boom"), None, ParsedFile("fixed", (None,))])  # type: ignore[arg-type]
def test_a_plug_in_that_breaks_costs_its_file_only(installed: list[Point], result: Any) -> None:
    Fixed.result = result
    with pytest.raises(ImportFileError, match="the importer fixed failed on it"):
        read_file("a", b"fixed", plugged(), 2)
    with pytest.raises(ImportFileError, match="the importer fixed failed on it: RuntimeError: boom"):
        detect_format("a", b"boom", plugged())


def test_what_a_plug_in_returns_is_held_to_the_limits(installed: list[Point]) -> None:
    from decimal import Decimal

    good = ChaseChecking().parse(CHECKING, 2)
    cases = {
        "is not a finite number": {"amount": Decimal("NaN")},
        "finer than": {"amount": Decimal("0.001")},
        "NUL": {"description": "a\0"},
        "lone surrogate": {"bank_id": "\ud800"},
        "bytes; 10240 are allowed": {"type": "x" * 10_241},
    }
    for reason, change in cases.items():
        Fixed.result = structs.replace(good, rows=(structs.replace(good.rows[0], **change),))
        with pytest.raises(ImportFileError, match=reason) as caught:
            read_file("a", b"fixed", plugged(), 2)
        assert caught.value.place is not None and caught.value.place.line == 2
    Fixed.result = good
    with pytest.raises(ImportFileError, match="more than 2 rows"):
        read_file("a", b"fixed", config(plugins=("fixed",), max_rows=2), 2)
    Fixed.result = structs.replace(good, rows=())
    with pytest.raises(ImportFileError, match="no rows"):
        read_file("a", b"fixed", plugged(), 2)
