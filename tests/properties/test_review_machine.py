"""Confirm, correct, reject, answer, undo, import, close, in any order: the books are what a dictionary says.

After every step: the trial balance, one posting per bank line, the open cards, one commit per decision, and no row
changed but for its status. And what an open program keeps of the commits before is what there is.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import Done, Workspace, chase, copy_books, remove_tree
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from machine_runs import run_machine

from cleared.books.review.account_choice import amount_to_split, match_accounts
from cleared.books.review.book_cards import book_facts_of
from cleared.books.review.similar_entries import list_possible_duplicates
from cleared.changes.host import Host
from cleared.changes.host_cache import HostCache
from cleared.changes.workspace_opening import open_workspace
from cleared.review.card_groups import card_group
from cleared.review.card_view import digest_shown_cards, show_card
from cleared.review.queue_snapshot import read_queue

pytestmark = pytest.mark.slow

EXAMPLES = 3
STEPS = 14
BANK = 1010
ACCOUNTS = (5010, 5020, 5040, 5060, 4010)
ASKER = """
choice = queue_ask("Which account?", ["5010", "5060"])
journal_add_double(date="2025-02-09", description="asked", debit_account=int(choice), credit_account=2100, amount=7,
                   confidence=0.9, status="auto-confirmed", evidence="asked")
git_commit("agent: asked")
"""
_numbers = itertools.count()
Legs = dict[int, Decimal]
FORWARDS = {
    "pending-review": {"auto-confirmed", "user-confirmed", "user-corrected", "voided"},
    "auto-confirmed": {"pending-review", "user-confirmed", "user-corrected", "voided"},
    "user-confirmed": {"user-corrected", "voided"},
    "user-corrected": {"voided"},
    "voided": set(),
}


class ReviewMachine(RuleBasedStateMachine):
    """``lines``: text of a bank line → its legs in the books, None where it is not posted."""

    template: Path

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.ws = Workspace(copy_books(self.template, self.folder / "books"))
        self.open_host = HostCache(lambda: open_workspace(self.ws.root))
        self.lines: dict[str, Legs | None] = {}
        self.cards: dict[str, str] = {}
        """Text of a bank line → the kind of its open card."""
        self.done: list[tuple[dict[str, Legs | None], dict[str, str | None]] | None] = []
        """What can be taken back: how legs and cards were before; None: an answer, which a run went on with, or the
        closing of a month."""
        self.closed = False
        self.confirmed: set[str] = set()
        self.asked: Legs = {}
        self.number = 0
        self.files: dict[str, bytes] = self.managed()
        self.next_import(2)

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            remove_tree(self.folder)

    # -- what is there ------------------------------------------------------------------------------------------

    def entry_of(self, text: str) -> dict[str, Any]:
        (found,) = [e for e in self.ws.entries() if e["description"] == text and e["status"] != "voided"]
        return dict(found)

    def card_of(self, text: str) -> str:
        for card in self.ws.cards():
            if text in (card["details"].get("text"), card["details"].get("description")):
                return str(card["id"])
        raise AssertionError(text)

    def pick(self, seed: int, *, posted: bool) -> str | None:
        known = sorted(t for t, legs in self.lines.items() if (legs is not None) == posted)
        return known[seed % len(known)] if known else None

    def decide(self, *argv: str, about: list[str], code: int = 0) -> Done:
        """A decision: one commit, or none where it is refused; how things were is kept for its undoing."""
        count = int(self.ws.git("rev-list", "--count", "HEAD"))
        found = self.ws("queue", *argv)
        assert found.code == code, (argv, found)
        assert int(self.ws.git("rev-list", "--count", "HEAD")) == count + (code == 0), argv
        if code == 0 and argv[0] != "undo":
            assert self.ws.trailers()["By"]
            self.done.append(({t: self.lines[t] for t in about}, {t: self.cards.get(t) for t in about}))
            for text in about:
                self.cards.pop(text, None)
        return found

    # -- what happens -------------------------------------------------------------------------------------------

    @rule(rows=st.integers(1, 3))
    def next_import(self, rows: int) -> None:
        made = []
        for _ in range(rows):
            self.number += 1
            n = self.number
            text, amount = f"{('GITHUB', 'SHOP', 'AWS')[n % 3]} N{n:02d}", Decimal(-100 - n) / 100
            month = max(1 + n // 6, 2 if self.closed else 1)
            made.append((f"{month:02d}/{1 + n % 27:02d}/2025", text, str(amount)))
            self.lines[text] = {BANK: amount, 5030 if "SHOP" in text else 5020: -amount}
            if "SHOP" in text:
                self.cards[text] = "entry"
        self.ws.drop(f"{self.number}.csv", chase(*made))
        assert self.ws.run("ingest")["status"] == "succeeded"

    @rule(seed=st.integers(0, 99), by_card=st.booleans())
    def confirm(self, seed: int, by_card: bool) -> None:
        text = self.pick(seed, posted=True)
        if text is None:
            return
        entry = self.entry_of(text)
        name = self.card_of(text) if by_card and text in self.cards else entry["entry_id"]
        settled = entry["status"] in ("user-confirmed", "user-corrected")
        self.decide("approve", name, about=[text], code=3 if settled else 0)

    @rule(seed=st.integers(0, 99), account=st.sampled_from(ACCOUNTS))
    def correct(self, seed: int, account: int) -> None:
        text = self.pick(seed, posted=True)
        if text is None:
            return
        legs = self.lines[text]
        assert legs is not None
        others = [a for a in legs if a != BANK]
        fits = len(others) == 1 and others != [account]
        self.decide(
            "correct", self.entry_of(text)["entry_id"], "--account", str(account), about=[text], code=0 if fits else 2
        )
        if fits:
            self.lines[text] = {BANK: legs[BANK], account: -legs[BANK]}

    @rule(seed=st.integers(0, 99), cents=st.integers(1, 90), balanced=st.booleans())
    def split(self, seed: int, cents: int, balanced: bool) -> None:
        text = self.pick(seed, posted=True)
        if text is None:
            return
        legs = self.lines[text]
        assert legs is not None
        one, part = -legs[BANK], Decimal(cents) / 100
        lines = {5010: one - part, 5040: part + (not balanced)}
        if {a: v for a, v in legs.items() if a != BANK} == lines:
            return
        words = [w for a, v in lines.items() for w in ("--line", f"{a}={v}")]
        code = 0 if balanced else 2 if lines[5040] > one else 1
        done = self.decide("correct", self.entry_of(text)["entry_id"], *words, about=[text], code=code)
        if balanced:
            self.lines[text] = {BANK: legs[BANK], **lines}
        else:
            assert ("their sum is" if code == 1 else "is more than") in done.err

    @rule(seed=st.integers(0, 99), what=st.sampled_from(("date", "counterparty", "tag")))
    def repost(self, seed: int, what: str) -> None:
        text = self.pick(seed, posted=True)
        if text is None:
            return
        value = {"date": "2025-02-09", "counterparty": f"Vendor {self.number} {len(self.done)}", "tag": "project"}[what]
        entry = self.entry_of(text)
        if what == "date" and entry["date"] == value:
            return
        self.decide("correct", entry["entry_id"], f"--{what}", value, about=[text])

    @rule(seed=st.integers(0, 99), outcome=st.sampled_from(("", "duplicate", "personal", "suspense")))
    def reject(self, seed: int, outcome: str) -> None:
        text = self.pick(seed, posted=True)
        twin = self.pick(seed + 1, posted=True)
        if text is None or twin is None or (outcome == "duplicate" and twin == text):
            return
        legs = self.lines[text]
        assert legs is not None
        others = [a for a in legs if a != BANK]
        words = ["--outcome", outcome] if outcome else []
        if outcome == "duplicate":
            words += ["--of", self.entry_of(twin)["entry_id"]]
        code = 2 if not outcome or (outcome == "personal" and len(others) > 1) else 0
        if outcome == "duplicate" and self.lines[twin][BANK] != legs[BANK]:  # type: ignore[index]
            code = 2
        self.decide("reject", self.entry_of(text)["entry_id"], "--reason", "no", *words, about=[text], code=code)
        if code == 0:
            self.lines[text] = {BANK: legs[BANK], 3200: -legs[BANK]} if outcome == "personal" else None
            if outcome == "suspense":
                self.cards[text] = "line"

    @rule(seed=st.integers(0, 99), post=st.booleans())
    def settle_a_held_line(self, seed: int, post: bool) -> None:
        held = sorted(t for t, kind in self.cards.items() if kind == "line")
        if not held:
            return
        text = held[seed % len(held)]
        if post:
            self.decide("correct", self.card_of(text), "--account", "5060", about=[text])
            amount = -Decimal(100 + int(text[-2:])) / 100
            self.lines[text] = {BANK: amount, 5060: -amount}
        else:
            self.decide("answer", self.card_of(text), "ignore", about=[text])

    @rule(choice=st.sampled_from(("5010", "5060")))
    def ask_and_answer(self, choice: str) -> None:
        if self.asked:  # once is enough: what was decided before it cannot be taken back any more
            return
        found = self.ws.script(ASKER, name="asker")
        assert found["status"] == "waiting" and found["entries"] == []
        done = self.ws.json("queue", "answer", found["cards"][0]["id"], choice)
        assert done["run"]["status"] == "succeeded"
        self.asked = {int(choice): Decimal(7), 2100: Decimal(-7)}
        self.done.append(None)

    @rule(times=st.integers(1, 3))
    def undo(self, times: int) -> None:
        for _ in range(times):
            refused = not self.done or self.done[-1] is None
            if not refused and self.closed and "closed" in self.ws("queue", "undo", "--dry-run").err:
                refused = True  # an entry of the closed month would have to change
            self.decide("undo", about=[], code=3 if refused else 0)
            if refused:
                return
            before = self.done.pop()
            assert before is not None
            legs, cards = before
            self.lines |= legs
            for text, kind in cards.items():
                self.cards.pop(text, None)
                if kind is not None:
                    self.cards[text] = kind
            self.as_the_model_says()

    @rule()
    def close(self) -> None:
        if self.ws("period", "close", "2025-01", "--with-pending").code == 0:
            self.closed = True
            self.done.append(None)  # what was decided before it is not taken back across it

    # -- what is always so --------------------------------------------------------------------------------------

    @invariant()
    def as_the_model_says(self) -> None:
        if not hasattr(self, "ws"):
            return
        assert self.ws.json("check") == {"ok": True, "violations": []}
        assert self.ws.git("status", "--porcelain") == ""
        wanted: dict[int, Decimal] = dict(self.asked)
        for legs in self.lines.values():
            for account, amount in (legs or {}).items():
                wanted[account] = wanted.get(account, Decimal(0)) + amount
        entries, found = self.ws.entries(), {}
        for entry in entries:
            for leg in entry["lines"]:
                moved = Decimal(leg["debit"]) - Decimal(leg["credit"])
                found[leg["account_id"]] = found.get(leg["account_id"], Decimal(0)) + moved
        assert {a: v for a, v in found.items() if v} == {a: v for a, v in wanted.items() if v}
        posted = sorted(e["description"] for e in entries if e["reference"] and e["status"] != "voided")
        assert posted == sorted(text for text, legs in self.lines.items() if legs is not None)
        cards = {c["details"].get("text") or c["details"]["description"]: c["kind"] for c in self.ws.cards()}
        assert cards == self.cards
        standing = {e["entry_id"] for e in entries if e["status"] != "voided"}
        assert {c["entry_id"] for c in self.ws.cards() if c["kind"] == "entry"} <= standing
        now = self.managed()
        for path, old in self.files.items():
            only_grown(path, old, now[path])
        self.files = now

    @invariant()
    def what_is_kept_is_what_stands(self) -> None:
        """A program that is open keeps what did not change; one that has just begun sees the same."""
        if hasattr(self, "ws"):
            begun = copy_books(self.ws.root, self.folder / f"begun-{next(_numbers)}")
            assert show_all(self.open_host()) == show_all(HostCache(lambda: open_workspace(begun))())
            remove_tree(begun)

    def managed(self) -> dict[str, bytes]:
        found = [*(self.ws.root / "books").rglob("*.csv"), *(self.ws.root / "queue").glob("*.jsonl")]
        return {p.relative_to(self.ws.root).as_posix(): p.read_bytes() for p in found}


def show_all(host: Host) -> dict[str, object]:
    """Each card of the queue in full, with the accounts that are offered, and each entry as it counts."""
    queue = read_queue(host)
    facts = book_facts_of(queue)
    cards = {
        each: (
            show_card(queue, each),
            match_accounts(queue, each),
            amount_to_split(queue, each),
            list_possible_duplicates(facts, queue.cards[each]),
            card_group(queue, each),
            digest_shown_cards(queue, [each]),
        )
        for each in queue.cards
    }
    counted = {name: facts.effective_legs(entry) for name, entry in facts.entries.items()}
    return {
        "order": list(cards),
        **cards,
        "counted": counted,
        "held": {i: queue.find_held(c) for i, c in queue.cards.items()},
        "overdue": {i: queue.count_days_overdue(c) for i, c in queue.cards.items()},
    }


def only_grown(path: str, old: bytes, new: bytes) -> None:
    """Rows are added at the end; in a journal a status may have gone forwards, and what moves no money be amended."""
    if not path.endswith("/journal.csv"):
        assert new.startswith(old), path
        return
    before, after = old.decode().splitlines(), new.decode().splitlines()
    names = before[0].split(",") if before else []
    status = names.index("status") if before else 0
    amendable = [names.index(name) for name in ("counterparty", "tags", "notes")] if before else []
    for a, b in zip(before, after[: len(before)], strict=True):
        if a != b:
            left, right = a.split(","), b.split(",")
            assert right[status] in {left[status], *FORWARDS[left[status]]}, (a, b)
            for column in (status, *amendable):
                left[column] = right[column]
            assert left == right


@pytest.fixture
def machine(starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(ReviewMachine, "template", starting_point, raising=False)
    yield ReviewMachine


def test_the_books_are_what_was_decided(machine: type[ReviewMachine]) -> None:
    run_machine(machine, EXAMPLES, STEPS, phases=[Phase.generate], report_multiple_bugs=False)


def corrected_twice_and_moved(m: ReviewMachine) -> None:
    """The entry, its correction, and both in one voided and posted anew: each taken back on top of the other."""
    m.correct(0, 5010)
    m.repost(0, "date")
    m.undo(2)


def rejected_and_posted_again(m: ReviewMachine) -> None:
    m.reject(0, "suspense")
    m.settle_a_held_line(0, True)
    m.undo(1)
    m.settle_a_held_line(0, False)
    m.undo(2)


def taken_back_after_the_month_was_closed(m: ReviewMachine) -> None:
    m.correct(0, 5010)
    m.split(0, 30, True)
    m.close()
    m.undo(1)
    m.reject(0, "personal")
    m.undo(1)


def confirmed_corrected_rejected(m: ReviewMachine) -> None:
    m.confirm(0, False)
    m.correct(0, 5010)
    m.correct(0, 5040)
    m.reject(0, "suspense")
    m.undo(4)
    m.undo(1)


STORIES = (
    corrected_twice_and_moved,
    rejected_and_posted_again,
    taken_back_after_the_month_was_closed,
    confirmed_corrected_rejected,
)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_what_went_wrong_or_might(machine: type[ReviewMachine], story: Callable[[ReviewMachine], None]) -> None:
    m = machine()
    try:
        m.begin()
        story(m)
        m.as_the_model_says()
    finally:
        m.teardown()
