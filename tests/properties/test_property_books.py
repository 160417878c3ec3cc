"""Random operations on the books against a model that knows only sums: every invariant holds after each (B1, B7–B9)."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from books_world import Row, World, chase, ingest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cleared.base.errors import ClearedError, PrimitiveError
from cleared.books.ledger.bank_lines import BankLine
from cleared.books.staged_books import books_of

FIRST = date(2025, 1, 1)
ACCOUNTS = (1010, 1090, 4010, 5020, 5030, 5060)
days = st.integers(0, 120).map(lambda n: FIRST + timedelta(days=n))
cents = st.integers(1, 10**9).map(lambda n: Decimal(n) / 100)
names = st.text(
    st.one_of(st.sampled_from('",\r\n=+-@;\u2028\u00a0☕é'), st.characters(codec="utf-8", exclude_characters="\0")),
    max_size=12,
)


class Ledger(RuleBasedStateMachine):
    """The model: entries as (date, {account: amount}) and a status, the days that are closed, lines already said."""

    @initialize()
    def make(self) -> None:
        self.world = World()
        self.entries: dict[str, tuple[date, dict[int, Decimal], str]] = {}
        self.closed: date | None = None
        self.said: list[Row] = []
        self.held: dict[str, BankLine] = {}
        self.files = 0

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.__exit__(None, None, None)

    def first_open(self, day: date) -> date:
        return day if self.closed is None or day > self.closed else self.closed + timedelta(days=1)

    def is_open(self, day: date) -> bool:
        return self.first_open(day) == day

    def learn(self, entry_id: str) -> None:
        entry = self.world.books().find_entry(entry_id)
        assert entry is not None
        moved: dict[int, Decimal] = {}
        for leg in entry.legs:
            moved[leg.account_id] = moved.get(leg.account_id, Decimal(0)) + leg.amount
        self.entries[entry_id] = (entry.date, moved, entry.status)

    @rule(day=days, text=names, amount=cents, pair=st.permutations(ACCOUNTS))
    def post(self, day: date, text: str, amount: Decimal, pair: list[int]) -> None:
        refs: list[Any] = []

        def script(call: Any) -> None:
            refs.append(call("journal_add_double", day, text, pair[0], pair[1], amount))

        before = dict(self.world.files)
        if not self.is_open(day):
            with pytest.raises(PrimitiveError, match="closed"):
                self.world.run(script)
            assert self.world.files == before
            return
        self.world.run(script)
        (ref,) = refs
        assert ref["entry_id"] not in self.entries
        self.learn(ref["entry_id"])
        assert self.entries[ref["entry_id"]][:2] == (day, {pair[0]: amount, pair[1]: -amount})
        stored = self.world.books().find_entry(ref["entry_id"])
        assert stored is not None and stored.description == text

    @rule(day=days, text=names, parts=st.lists(cents, min_size=1, max_size=30))
    def post_many_legs(self, day: date, text: str, parts: list[Decimal]) -> None:
        if not self.is_open(day):
            return
        lines = [{"account_id": ACCOUNTS[n % 4 + 2], "debit": part} for n, part in enumerate(parts)]
        lines.append({"account_id": 1010, "credit": sum(parts)})
        context = self.world.run(lambda call: call("journal_add", day, text, lines))
        ((entry,),) = books_of(context).books.staged.values()
        self.learn(entry.entry_id)

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def void(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sampled_from(sorted(self.entries)))
        day, moved, status = self.entries[chosen]
        before = dict(self.world.files)
        if status == "voided":
            with pytest.raises(PrimitiveError, match="voided already"):
                self.world.run(lambda call: call("journal_void", chosen, "why"))
            assert self.world.files == before
            return
        refs: list[Any] = []
        self.world.run(lambda call: refs.append(call("journal_void", chosen, "why")))
        (ref,) = refs
        self.learn(ref["entry_id"])
        reversal = self.entries[ref["entry_id"]]
        assert reversal == (self.first_open(day), {a: -m for a, m in moved.items()}, "voided")
        self.entries[chosen] = (day, moved, "voided")

    @rule(day=days)
    def close(self, day: date) -> None:
        if self.closed is None or day > self.closed:
            self.world.mark(day, "closed")
            self.closed = day

    @precondition(lambda self: self.closed)
    @rule(back=st.integers(0, 200))
    def reopen(self, back: int) -> None:
        assert self.closed is not None
        keep = self.closed - timedelta(days=back + 1)
        self.closed = keep if keep >= FIRST else None
        self.world.mark(self.closed or date.min, "open")

    @rule(
        rows=st.lists(
            st.tuples(days, st.sampled_from(["A", "B"]), cents.map(lambda c: -(c % 7) - 1)), min_size=1, max_size=6
        )
    )
    def import_(self, rows: list[Row]) -> None:
        """Rows said before are left out; those whose day is closed wait with a card each, and the others are booked."""
        rows = sorted(rows, key=lambda r: r[0])
        self.files += 1
        self.world.drop(f"{self.files}.csv", chase(rows))
        fresh = [r for r in set(rows) for _ in range(max(0, rows.count(r) - self.said.count(r)))]
        context = self.world.ingest()
        staged = [e for entries in books_of(context).books.staged.values() for e in entries]
        booked = sorted((e.date, e.description, -e.amount) for e in staged)
        assert booked == sorted(row for row in fresh if self.is_open(row[0]))
        for entry in staged:
            self.learn(entry.entry_id)
        held = {
            i: line
            for i, (_, line) in books_of(context).bank.new_lines.items()
            if i in books_of(context).bank.new_outcomes
        }
        late = sorted((line.posted_date, line.description, line.amount) for line in held.values())
        assert late == sorted(row for row in fresh if not self.is_open(row[0]))
        assert {card.details["line"] for card in self.world.cards() if card.kind == "line"} >= held.keys()
        self.held |= held
        self.said += fresh
        assert not list((self.world.root / "import").glob("*.csv"))

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def post_held(self, data: st.DataObject) -> None:
        """On its day where that is open again, else on the first day that is."""
        line = self.held.pop(data.draw(st.sampled_from(sorted(self.held))))
        day = self.first_open(line.posted_date)
        post = ("journal_add_double", day, line.description, 5030, 1010, -line.amount, None, line.line_id)
        context = self.world.run(lambda call: call(*post))
        ((entry,),) = books_of(context).books.staged.values()
        self.learn(entry.entry_id)
        assert self.entries[entry.entry_id][:2] == (day, {5030: -line.amount, 1010: line.amount})

    @rule(day=days, how=st.sampled_from(["account", "unposted", "balance"]))
    def fail(self, day: date, how: str) -> None:
        """A run that fails at its end leaves every byte as it was, and takes no number."""
        self.files += 1
        name = f"{self.files}.csv"
        self.world.drop(name, chase([(self.first_open(day), f"only here {self.files}", Decimal("-1.00"))]))

        def script(call: Any) -> None:
            if how != "unposted":
                ingest(call)
            else:
                call("importer_parse", name)
                call("importer_mark_processed", name)
            if how == "account":
                call("journal_balance", 9999)
            if how == "balance":
                lines = [{"account_id": 1010, "debit": 1}, {"account_id": 4010, "credit": 2}]
                call("journal_add", self.first_open(day), "x", lines)

        before = dict(self.world.files)
        with pytest.raises(ClearedError):
            self.world.run(script)
        assert self.world.files == before
        assert (self.world.root / "import" / name).exists()
        (self.world.root / "import" / name).unlink()

    @invariant()
    def the_books_are_right(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.check()
        books = self.world.books()
        assert {e.entry_id: e.status for e in books.iter_entries()} == {i: e[2] for i, e in self.entries.items()}
        sums: dict[int, Decimal] = {}
        for _, moved, _ in self.entries.values():
            for account, amount in moved.items():
                sums[account] = sums.get(account, Decimal(0)) + amount
        assert books.trial_balance() == sums
        for account, amount in sums.items():
            assert books.account_balance(account) == amount
        assert books.periods.closed_through == self.closed


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
