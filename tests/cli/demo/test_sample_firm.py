"""The demo's bank files are realistic, always the same, and its agent books them to balances that agree."""

import csv
import hashlib
import itertools
from collections import Counter, defaultdict
from decimal import Decimal
from typing import Any

import pydantic_monty
import pytest

from cleared.books.teaching.vendor_table import find_vendor_table
from cleared.changes.workspace_creation import initial_files
from cleared.cli.demo.sample_firm import agent_text, bank_files, demo_config, demo_files
from cleared.workspace.settings.loading import load_config
from cleared.workspace.template import read_starter_chart, starter_config

Row = dict[str, str]


def rows(name: str) -> list[Row]:
    """Oldest first."""
    text = bank_files()[name].decode()
    return list(csv.DictReader(text.splitlines()))[::-1]


CHECKING = sorted(name for name in bank_files() if "4821" in name)
CARD = sorted(name for name in bank_files() if "7733" in name)


def test_the_files_are_the_same_everywhere() -> None:
    digest = hashlib.sha256(b"".join(name.encode() + data for name, data in sorted(bank_files().items())))
    assert digest.hexdigest() == "e4b48946a0534b2f59fb02a20c545eb3d5cc1a7957ce4634415413671f228740"


def test_they_look_like_the_banks() -> None:
    assert len(CHECKING) == 6
    assert len(CARD) == 2
    assert sum(len(rows(name)) for name in (*CHECKING, *CARD)) > 400
    for name in CHECKING:
        header, *lines = bank_files()[name].decode().splitlines()
        assert header == "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #"
        assert {len(fields) for fields in csv.reader(lines)} == {8}  # the trailing comma


def test_the_running_balance_runs_and_never_below_nothing() -> None:
    for name in CHECKING:
        found = rows(name)
        for before, after in itertools.pairwise(found):
            assert Decimal(before["Balance"]) + Decimal(after["Amount"]) == Decimal(after["Balance"])
            assert Decimal(after["Balance"]) > 0
    first = rows(CHECKING[0])[0]
    opening = load_config(demo_config(starter_config())).bank_accounts[0].opening
    assert opening is not None
    assert Decimal(first["Balance"]) - Decimal(first["Amount"]) == opening.balance


def test_april_repeats_the_last_week_of_march() -> None:
    march, april = rows(CHECKING[2]), rows(CHECKING[3])
    repeated = [row for row in april if row["Posting Date"] < "04/01/2025"]
    assert repeated
    assert march[-len(repeated) :] == repeated
    assert march[-len(repeated) - 1]["Posting Date"] < "03/25/2025"


def test_one_coffee_was_bought_twice() -> None:
    same = Counter((r["Transaction Date"], r["Description"], r["Amount"]) for name in CARD for r in rows(name))
    assert same["03/18/2025", "BLUE HERON CAFE", "-5.75"] == 2


def test_the_config_is_the_starter_with_other_accounts() -> None:
    text = demo_config(starter_config())
    config = load_config(text)
    assert [(a.id, a.ledger_account, a.format) for a in config.bank_accounts] == [
        ("checking", 1010, "chase_checking"),
        ("card", 2010, "chase_card"),
    ]
    assert config.thresholds == load_config(starter_config()).thresholds
    assert "# How sure an agent must be" in text
    assert demo_config(text) == text
    assert load_config(demo_config("")).bank_accounts == config.bank_accounts
    template = initial_files("x", "llc_single_member", "USD")
    assert set(demo_files()) <= set(template)


class Host:
    """The primitives the agent calls, as far as it can tell."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.cards: list[dict[str, Any]] = []
        self.messages: list[str] = []
        self.seen: set[tuple[str, ...]] = set()
        self.processed: list[str] = []

    def run(self) -> Any:
        names = [f"importer_{n}" for n in ("scan", "parse", "mark_processed")]
        names += ["journal_add_double", "queue_add_review", "git_commit", "config_get", "accounts_get", "ctx_log"]
        with pydantic_monty.Monty() as pool, pool.checkout() as session:
            lookup = {name: getattr(self, name) for name in names}
            session.feed_run(agent_text(), external_lookup=lookup)
            counted = ", ".join(f'"{each}": total_{each}' for each in ("imported", "confirmed", "review"))
            return session.feed_run(f"{{{counted}}}")

    def importer_scan(self) -> list[dict[str, Any]]:
        return [{"name": name, "ledger_account": self.account_of(name)} for name in sorted(bank_files())]

    def account_of(self, name: str) -> int:
        return 1010 if name in CHECKING else 2010

    def importer_parse(self, name: str) -> list[dict[str, Any]]:
        account = self.account_of(name)
        counts: Counter[tuple[str, ...]] = Counter()
        found = []
        for row in rows(name):
            day = row.get("Transaction Date") or row["Posting Date"]
            key = (str(account), day, row["Description"], row["Amount"])
            counts[key] += 1
            reference = (*key, str(counts[key]))
            if reference not in self.seen:
                self.seen.add(reference)
                found.append(
                    {
                        "date": f"{day[6:]}-{day[:2]}-{day[3:5]}",
                        "description": " ".join(row["Description"].split()),
                        "amount": Decimal(row["Amount"]),
                        "reference": "|".join(reference),
                        "ledger_account": account,
                    }
                )
        return found

    def importer_mark_processed(self, name: str) -> None:
        self.processed.append(name)

    def journal_add_double(self, **entry: Any) -> dict[str, Any]:
        assert entry["amount"] > 0
        assert entry["debit_account"] != entry["credit_account"]
        self.entries.append(entry)
        return {"entry_id": f"{len(self.entries)}"}

    def queue_add_review(self, **card: Any) -> None:
        assert card["entry_id"] == "pending"
        self.cards.append(card)

    def git_commit(self, message: str) -> None:
        self.messages.append(message)

    def config_get(self, key: str, default: object = None) -> object:
        return {"thresholds.auto_confirm": 0.95, "bank_accounts": ["checking", "card"]}[key]

    def accounts_get(self, number: int) -> dict[str, str]:
        rows = csv.DictReader(read_starter_chart("llc_single_member").decode().splitlines())
        return next(row for row in rows if row["account_id"] == str(number))

    def ctx_log(self, message: str) -> None:
        pass


@pytest.fixture(scope="module")
def booked() -> tuple[Host, dict[str, int]]:
    host = Host()
    return host, host.run()


def balances(host: Host) -> dict[int, Decimal]:
    found: dict[int, Decimal] = defaultdict(Decimal)
    for entry in host.entries:
        found[entry["debit_account"]] += entry["amount"]
        found[entry["credit_account"]] -= entry["amount"]
    return found


def test_most_is_confirmed_and_some_waits(booked: tuple[Host, dict[str, int]]) -> None:
    host, result = booked
    assert result["imported"] == len(host.entries) == result["confirmed"] + result["review"]
    assert 0.75 <= result["confirmed"] / result["imported"] <= 0.90
    assert len(host.cards) == result["review"]
    assert host.messages == [f"import: {result['imported']} transactions from 8 files"]
    assert host.processed == sorted(bank_files())
    assert {e["status"] for e in host.entries if not e["counterparty"]} == {"pending-review"}


def test_the_books_agree_with_the_bank(booked: tuple[Host, dict[str, int]]) -> None:
    host, _ = booked
    found = balances(host)
    opening = load_config(demo_config("")).bank_accounts[0].opening
    assert opening is not None
    assert opening.balance + found[1010] == Decimal(rows(CHECKING[-1])[-1]["Balance"])
    assert found[2010] == sum(Decimal(r["Amount"]) for name in CARD for r in rows(name))
    assert found[1090] == 0  # every transfer has arrived
    assert sum(1 for e in host.entries if 1090 in (e["debit_account"], e["credit_account"])) == 12
    known = {int(line.split(",")[0]) for line in read_starter_chart("llc_single_member").decode().splitlines()[1:]}
    assert set(found) <= known


def test_refunds_go_back_where_they_came_from(booked: tuple[Host, dict[str, int]]) -> None:
    host, _ = booked
    refunds = [e for e in host.entries if "refund" in (e["evidence"] or "")]
    assert sorted((e["counterparty"], e["credit_account"]) for e in refunds) == [
        ("Alaska Airlines", 5050),
        ("Amazon", 5060),
        ("Comcast Business", 5160),
        ("Staples", 5060),
    ]


def test_every_vendor_of_the_table_occurs(booked: tuple[Host, dict[str, int]]) -> None:
    host, _ = booked
    table = find_vendor_table(agent_text())
    assert table is not None
    assert {row.vendor for row, _ in table.rows} == {e["counterparty"] for e in host.entries if e["counterparty"]}
