"""Import, correct, void, split, undo, close, reopen, import undo, teach, reconcile, in any order: on every day the
books hold what is true.

After each step every account moves on each day by just what ``true_books`` says, so the balance of the bank and the
result of every month are right on every closing day, and so they stay. After some steps, and at the end of each
history: ``check`` finds only a reconciliation that a decision broke, and ``reconcile`` and ``status``
say the same. ``CLEARED_BOOKS_STEPS=50000`` goes on for longer, another way each time.
"""

from __future__ import annotations

import calendar
import csv
import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest
from harness import Done, Workspace, chase, copy_books, remove_tree
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from true_books import BANK, OPENING, OPENING_DAY, Act, Legs, TrueBooks, TrueLine

from cleared.trust.keys import cleared_home

LONGER = "CLEARED_BOOKS_STEPS" in os.environ
STEPS = int(os.environ.get("CLEARED_BOOKS_STEPS", "500"))
STEPS_EACH = 50
PARTS = 2
"""Tests among which the steps are divided, so that several processes can share them."""
CHECK_EACH = 8
NOW = "2025-07-01T06:00:00Z"
LAST_DAY = date(2025, 6, 30)
MONTH_ENDS = [date(2025, month, calendar.monthrange(2025, month)[1]) for month in range(1, 7)]
ACCOUNTS = (5010, 5020, 5040, 5060, 4010)
SEED = st.integers(0, 2**32)
WEIGHTS = {
    "bring_again": 3,
    "undo_import": 2,
    "correct": 10,
    "split": 6,
    "move": 4,
    "amend": 3,
    "confirm": 3,
    "void": 7,
    "reject": 4,
    "settle_held_line": 8,
    "add_by_hand": 2,
    "correct_by_hand": 3,
    "skip": 1,
    "undo": 14,
    "close": 7,
    "reopen": 6,
    "reconcile": 3,
    "withdraw": 2,
    "teach": 1,
    "bank_file": 6,
}
"""What is done, and how often one against another."""
WORDS = ("SHOP", "GITHUB", "CAFE", "AWS", "RENT")


class BooksMachine(RuleBasedStateMachine):
    """What is true is kept in ``truth``, and compared with what the files of the workspace say."""

    template: Path
    home: Path
    steps = 0
    done: ClassVar[dict[str, int]] = {}
    """How often each thing was done, and not refused."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(dir=self.template.parent))
        # What was approved in one copy is remembered there of all copies of the same books.
        os.environ["CLEARED_HOME"] = str(shutil.copytree(self.home, self.folder / "home"))
        self.ws = Workspace(copy_books(self.template, self.folder / "books"))
        self.truth = TrueBooks()
        self.number = 0
        self.files: dict[str, tuple[str, list[TrueLine]]] = {}
        """Standing imports: the name of the file → its content and lines."""
        self.undone: dict[str, tuple[str, list[TrueLine]]] = {}
        """The same of files whose import was taken back."""
        self.said: list[str] = []
        """All commands, for whoever looks at a failure."""
        self.since_check = 0
        self.bank_file(Random(1))

    def teardown(self) -> None:
        if hasattr(self, "ws"):
            try:
                self.check()
            finally:
                remove_tree(self.folder)

    # -- what is there ----------------------------------------------------------------------------------------------

    def rows(self) -> list[dict[str, str]]:
        found: list[dict[str, str]] = []
        for path in sorted((self.ws.root / "books").glob("20*/*/journal.csv")):
            with path.open(newline="") as file:
                found += csv.DictReader(file)
        return found

    def entry_of(self, text: str) -> dict[str, str]:
        """The first leg of the entry that stands, without its letter."""
        found = [row for row in self.rows() if row["description"] == text and row["status"] != "voided"]
        ids = {row["entry_id"].rstrip("abcdefghij") for row in found}
        assert len(ids) == 1, (text, ids)
        return {**found[0], "entry_id": ids.pop()}

    def card_of(self, text: str, kind: str) -> str | None:
        cards = [c for c in self.ws.cards() if c["kind"] == kind]
        texts = [c for c in cards if text in (c["details"].get("text"), c["details"].get("description"))]
        return str(texts[0]["id"]) if texts else None

    def pick(self, r: Random, *, posted: bool = True, by_hand: bool | None = False) -> TrueLine | None:
        """One that is posted, or not; one of the bank, by hand, or either (None)."""
        known = [
            each
            for each in self.truth.lines.values()
            if (each.posted is not None) == posted
            and by_hand in (None, not each.amount)
            and (each.recorded or not each.amount)
        ]
        return r.choice(known) if known else None

    def tell(self, fault: object) -> str:
        """A failure, and all that led to it."""
        return "\n".join([*self.said, str(fault)])

    def say(self, *argv: str, codes: tuple[int, ...] = (0,)) -> Done:
        done = self.ws(*argv)
        self.said.append(f"{done.code} {' '.join(argv)}")
        assert done.code in codes, self.tell((argv, done))
        assert "Traceback" not in done.err, done.err
        if done.code == 0:
            name = " ".join(argv[:2])
            self.done[name] = self.done.get(name, 0) + 1
        return done

    def decide(self, *argv: str, about: TrueLine | None, codes: tuple[int, ...] = (0,)) -> Done:
        """A decision that can be taken back."""
        done = self.say(*argv, codes=codes)
        if done.code == 0:
            self.truth.remember(*([about.text] if about is not None else []))
        return done

    # -- what happens -----------------------------------------------------------------------------------------------

    @rule(what=st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)]), seed=SEED)
    def step(self, what: str, seed: int) -> None:
        """One thing, with what it needs drawn from the seed. It does nothing where it does not fit."""
        getattr(self, what)(Random(seed))

    def bank_file(self, r: Random) -> None:
        """The bank posts some lines, and gives a file of the last days, also of days that were imported before."""
        truth = self.truth
        lines = [each for each in truth.lines.values() if each.amount]
        last = lines[-1].day if lines else date(2025, 1, 2)
        for _ in range(r.randint(1, 4)):
            self.number += 1
            day = min(last + timedelta(days=r.choice((0, 0, 1, 3, 9, 15))), LAST_DAY)
            if truth.is_closed(day):
                day = truth.first_open(day)
            amount = Decimal(r.choice((-1, -1, -1, 1)) * r.randint(100, 9999)) / 100
            line = TrueLine(f"{r.choice(WORDS)} N{self.number:03d}", day, amount)
            truth.lines[line.text] = line
            last = day
        start = truth.first_open(last - timedelta(days=r.choice((0, 10, 40, 90))))
        window = [each for each in truth.lines.values() if each.amount and start <= each.day]
        if window:
            balances = r.random() < 0.5
            rows = [
                (
                    f"{each.day:%m/%d/%Y}",
                    each.text,
                    str(each.amount),
                    f"{self.running_balance(each)}" if balances else "",
                )
                for each in window
            ]
            self.bring(f"{self.number:03d}.csv", chase(*rows), window)

    def running_balance(self, line: TrueLine) -> Decimal:
        lines = [each for each in self.truth.lines.values() if each.amount]
        return OPENING + sum((each.amount for each in lines[: lines.index(line) + 1]), Decimal(0))

    def bring(self, name: str, data: str, window: list[TrueLine]) -> None:
        self.ws.drop(name, data)
        found = self.ws.run("ingest")
        self.said.append(f"import {name}: {[(str(each.day), each.text, str(each.amount)) for each in window]}")
        assert found["status"] == "succeeded", self.tell(found)
        self.done["import"] = self.done.get("import", 0) + 1
        for line in window:
            self.truth.import_line(line)
        self.files[name] = data, window

    def bring_again(self, r: Random) -> None:
        """A file whose import was taken back."""
        if not self.undone:
            return
        name = r.choice(sorted(self.undone))
        data, window = self.undone[name]
        if not any(self.truth.is_closed(each.day) for each in window):
            del self.undone[name]
            self.bring(name, data, window)

    def undo_import(self, r: Random) -> None:
        name = r.choice(sorted(self.files) or [""])
        if not name:
            return
        others = {each.text for other, (_, lines) in self.files.items() if other != name for each in lines}
        mine = [each for each in self.files[name][1] if each.text not in others]
        closed = [each for each in mine if self.truth.is_closed(each.first_day)]
        done = self.say("import", "undo", name, "--despite", "a test", codes=(0, 3) if closed else (0,))
        if done.code == 3:
            assert "in a period that is closed" in done.err, done
        else:
            self.truth.undo_import(mine)
            self.undone[name] = self.files.pop(name)

    def correct(self, r: Random) -> None:
        line, account = self.pick(r), r.choice(ACCOUNTS)
        if line is None or line.legs is None or len(line.legs) != 1 or account in line.legs:
            return
        self.decide("queue", "correct", self.name_of(line, r), "--account", str(account), about=line)
        self.truth.correct(line, {account: -line.amount})

    def split(self, r: Random) -> None:
        line = self.pick(r)
        if line is None:
            return
        legs = self.draw_parts(line, r)
        if legs != line.legs:
            words = [word for account, amount in legs.items() for word in ("--line", f"{account}={amount}")]
            self.decide("queue", "correct", self.name_of(line, r), *words, about=line)
            self.truth.correct(line, legs)

    def move(self, r: Random) -> None:
        line, day = self.pick(r, by_hand=None), date(2025, r.randint(1, 6), r.randint(1, 28))
        if line is None or line.legs is None or self.entry_of(line.text)["date"] == day.isoformat():
            return
        self.decide("queue", "correct", self.name_of(line, r), "--date", day.isoformat(), about=line)
        self.truth.repost(line, line.legs, day)

    def amend(self, r: Random) -> None:
        line = self.pick(r, by_hand=None)
        if line is not None:
            self.number += 1
            what = r.choice(("counterparty", "tag", "note"))
            self.decide("queue", "correct", self.name_of(line, r), f"--{what}", f"{what}{self.number}", about=line)

    def confirm(self, r: Random) -> None:
        line = self.pick(r, by_hand=None)
        if line is not None:
            self.decide("queue", "approve", self.name_of(line, r), about=line, codes=(0, 3))

    def void(self, r: Random) -> None:
        line = self.pick(r, by_hand=None)
        if line is not None:
            entry = self.entry_of(line.text)["entry_id"]
            self.decide("journal", "void", entry, "--reason", "a test", about=line)
            self.truth.void(line)

    def reject(self, r: Random) -> None:
        line, outcome = self.pick(r), r.choice(("suspense", "personal"))
        if line is None or line.legs is None or (outcome == "personal" and (len(line.legs) > 1 or 3200 in line.legs)):
            return
        name = self.name_of(line, r)
        self.decide("queue", "reject", name, "--outcome", outcome, "--reason", "a test", about=line)
        if outcome == "personal":
            self.truth.correct(line, {3200: -line.amount})
        else:
            self.truth.void(line)

    def settle_held_line(self, r: Random) -> None:
        line = self.pick(r, posted=False)
        card = self.card_of(line.text, "line") if line is not None else None
        if line is None or card is None:
            return
        if r.random() < 0.2:
            self.decide("queue", "answer", card, "ignore", about=line)
            return
        legs = self.draw_parts(line, r) if r.random() < 0.5 else {r.choice(ACCOUNTS): -line.amount}
        words = [word for number, amount in legs.items() for word in ("--line", f"{number}={amount}")]
        self.decide("queue", "correct", card, *words, about=line)
        self.truth.post(line, legs, line.day)

    def draw_parts(self, line: TrueLine, r: Random) -> Legs:
        one, other = r.sample(ACCOUNTS, 2)
        part = Decimal(r.randint(1, 99) * (1 if line.amount < 0 else -1)) / 100
        return {one: -line.amount - part, other: part}

    def add_by_hand(self, r: Random) -> None:
        day = self.truth.first_open(date(2025, r.randint(1, 6), r.randint(1, 28)))
        if day > LAST_DAY:
            return
        self.number += 1
        line, account = TrueLine(f"HAND {self.number:03d}", day, Decimal(0)), r.choice(ACCOUNTS)
        amount = Decimal(r.randint(1, 9999)) / 100
        self.truth.lines[line.text] = line
        self.decide("journal", "add", day.isoformat(), line.text, f"{account}={amount}", f"2100=-{amount}", about=line)
        self.truth.post(line, {account: amount, 2100: -amount}, day)

    def correct_by_hand(self, r: Random) -> None:
        line, account = self.pick(r, by_hand=True), r.choice(ACCOUNTS)
        if line is None or line.legs is None or account in line.legs:
            return
        amount = line.legs[2100]
        words = ("--line", f"{account}={-amount}", "--line", f"2100={amount}")
        self.decide("queue", "correct", self.name_of(line, r), *words, about=line)
        self.truth.repost(line, {account: -amount, 2100: amount}, None)

    def skip(self, r: Random) -> None:
        cards = [c for c in self.ws.cards() if c["kind"] in ("entry", "line")]
        if cards:
            self.decide("queue", "skip", r.choice(cards)["id"], about=None)

    def undo(self, r: Random) -> None:
        truth, older = self.truth, r.random() < 0.5
        for _ in range(r.choice((1, 1, 2, 4))):
            act, refusal = truth.next_undo(older=older)
            touched = [] if act is None else [truth.lines[text] for text in act.before]
            closed = any(truth.is_closed(each.first_day) for each in touched)
            words = ["--older"] if older else []
            done = self.say("queue", "undo", *words, codes=(3,) if act is None else (0, 3) if closed else (0,))
            if done.code == 3:
                assert (refusal or "in a period that is closed") in done.err, (refusal, done)
                return
            assert act is not None
            truth.acts.remove(act)
            truth.restore(act)
            self.holds_what_is_true()

    def close(self, r: Random) -> None:
        truth = self.truth
        days = [day for day in MONTH_ENDS if truth.closed is None or day > truth.closed]
        busy = max(each.day for each in truth.lines.values())
        if not days or days[0] > busy:
            return
        day = days[1] if len(days) > 1 and r.random() < 0.2 else days[0]
        done = self.say(
            "period",
            "close",
            f"{day:%Y-%m}",
            "--with-pending",
            "--despite",
            "a test",
            codes=(0,) if truth.is_agreed() else (1,),
        )
        if done.code == 0:
            truth.closed = day
            truth.acts.append(Act("close", day=day))
        else:
            self.withdraw(r)

    def reopen(self, r: Random) -> None:
        truth = self.truth
        if truth.closed is None:
            return
        closed = [day for day in (OPENING_DAY, *MONTH_ENDS) if day <= truth.closed]
        day = closed[-1] if r.random() < 0.5 else r.choice(closed)
        self.say("period", "reopen", f"{day:%Y-%m}", "--reason", "a test")
        before = day.replace(day=1) - timedelta(days=1)
        truth.closed = before if before >= OPENING_DAY else None

    def reconcile(self, r: Random) -> None:
        last = max(each.day for each in self.truth.lines.values() if each.amount)
        day = r.choice([day for day in MONTH_ENDS if day < last] or MONTH_ENDS[:1])
        stated = self.truth.bank_balance(day)
        differs = self.truth.difference(day, stated)
        words = ("reconcile", str(BANK), "--date", day.isoformat(), "--balance", str(stated))
        found = self.say(*words, "--json", codes=(1,) if differs else (0,)).json
        assert (Decimal(found["booked"]), Decimal(found["difference"])) == (self.truth.bank_account(day), differs), (
            found
        )
        if not differs and found["commit"]:
            self.truth.agreed[day] = stated
            self.truth.acts.append(Act("reconcile", day=day))

    def withdraw(self, r: Random) -> None:
        if not self.truth.agreed:
            return
        day = r.choice(sorted(self.truth.agreed))
        self.say("reconcile", str(BANK), "--date", day.isoformat(), "--withdraw", "a test")
        del self.truth.agreed[day]
        self.truth.acts = [act for act in self.truth.acts if (act.kind, act.day) != ("reconcile", day)]

    def teach(self, r: Random) -> None:
        word, account = r.choice(WORDS), r.choice((5060, 5070, 5080))
        if self.truth.vendors.get(word) == account:
            return
        if self.say("teach", word, str(account), "--yes", "--json").json["commit"]:
            self.truth.acts.append(Act("approve", vendors=dict(self.truth.vendors)))
            self.truth.vendors = {word: account, **{w: a for w, a in self.truth.vendors.items() if w != word}}

    def name_of(self, line: TrueLine, r: Random) -> str:
        """Its entry, or the card that asks about it."""
        card = self.card_of(line.text, "entry") if r.random() < 0.3 else None
        return card or self.entry_of(line.text)["entry_id"]

    # -- what is always so ------------------------------------------------------------------------------------------

    @invariant()
    def holds_what_is_true(self) -> None:
        if not hasattr(self, "ws"):
            return
        type(self).steps += 1
        moved: dict[tuple[date, int], Decimal] = {}
        for row in self.rows():
            key = date.fromisoformat(row["date"]), int(row["account_id"])
            amount = Decimal(row["debit"] or 0) - Decimal(row["credit"] or 0)
            moved[key] = moved.get(key, Decimal(0)) + amount
        found, wanted = {key: amount for key, amount in moved.items() if amount}, self.truth.list_movements()
        assert found == wanted, self.tell(sorted({*found.items()} ^ {*wanted.items()}))
        self.since_check += 1
        if self.since_check >= CHECK_EACH:
            self.check()

    def check(self) -> None:
        """What the program itself says of the books."""
        self.since_check = 0
        done = self.say("check", "--json", codes=(0,) if self.truth.is_agreed() else (1,))
        assert {each["check"] for each in done.json["violations"]} <= {"reconciled"}, done
        standing = {row["entry_id"].rstrip("abcdefghij") for row in self.rows() if row["status"] != "voided"}
        asked = [card["entry_id"] for card in self.ws.cards() if card["kind"] == "entry"]
        assert {*asked} <= standing and len({*asked}) == len(asked), self.tell((asked, standing))
        day = MONTH_ENDS[self.steps % len(MONTH_ENDS)]
        stated = self.truth.bank_balance(day)
        words = (str(BANK), "--date", day.isoformat(), "--balance", str(stated))
        found = self.say("reconcile", *words, "--dry-run", "--json", codes=(0, 1)).json
        assert Decimal(found["booked"]) == self.truth.bank_account(day), found
        assert Decimal(found["difference"]) == self.truth.difference(day, stated), found
        self.check_status()

    def check_status(self) -> None:
        """Through which day the books meet the bank, and where they do not, as the first page of a day says it."""
        [found] = [each for each in self.ws.json("status")["accounts"] if each["account_id"] == BANK]
        through = date.fromisoformat(found["through"] or "0001-01-01")
        later = {day: self.truth.difference(day, stated) for day, stated in self.truth.agreed.items() if day > through}
        assert all(later.values()), self.tell((found, later))
        if later:
            assert date.fromisoformat(found["differs_on"]) <= min(later), self.tell((found, later))


@pytest.fixture
def machine(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[BooksMachine]]:
    monkeypatch.setenv("CLEARED_CLOCK", NOW)
    opening = "    # opening: { date: 2024-12-31, balance: 1250.00 }"
    assert opening in ws.read("config.yaml")
    ws.put_config(ws.read("config.yaml").replace(opening, opening.replace("# ", "").replace("1250.00", str(OPENING))))
    ws.ok("journal", "open")
    monkeypatch.setattr(BooksMachine, "template", ws.root, raising=False)
    monkeypatch.setattr(BooksMachine, "home", cleared_home(), raising=False)
    monkeypatch.setenv("CLEARED_HOME", str(cleared_home()))
    monkeypatch.setattr(BooksMachine, "steps", 0)
    monkeypatch.setattr(BooksMachine, "done", {})
    yield BooksMachine


@pytest.mark.parametrize("part", range(PARTS))
def test_on_every_day_the_books_hold_what_is_true(machine: type[BooksMachine], part: int) -> None:
    """B31: 500 steps in all parts together, each with histories of its own."""
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine if LONGER else seed(part)(machine),
        settings=settings(
            max_examples=STEPS // PARTS // STEPS_EACH + 1,  # some histories end early
            stateful_step_count=STEPS_EACH,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink] if LONGER else [Phase.generate],
            report_multiple_bugs=False,
        ),
    )
    print(machine.steps, machine.done)
    assert {"import", "queue correct", "journal void", "queue undo", "period close"} <= machine.done.keys()
    assert machine.steps >= min(STEPS, 500) // PARTS, machine.steps
