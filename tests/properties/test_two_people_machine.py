"""Two people at random amounts by every surface: nothing of at least the threshold is decided by one of them.

After every step: each entry that large which a person confirmed, corrected or voided has two valid signatures of
different reviewers on exactly that; the books are in order; nobody else's decision changed anything.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from harness import Done, Workspace, chase, copy_books, remove_tree, take_ok
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from machine_runs import run_machine
from reviewers import People

pytestmark = pytest.mark.slow

EXAMPLES = 2
STEPS = 14
LIMIT = Decimal(50)
WHO = st.sampled_from(("ana", "ben", "cleo", "stranger"))
AMOUNT = st.sampled_from(("0.01", "49.99", "50", "50.01", "700"))
SEED = st.integers(0, 99)
ACCOUNT = st.sampled_from((5010, 5020, 5060))
MAY = {"ana", "ben", "cleo"}
SETTLED = {"user-confirmed", "user-corrected", "voided", "bootstrap-confirmed"}
POST = """
journal_add_double(date="2025-02-09", description="posted {n}", debit_account=5040, credit_account=2100,
                   amount={amount}, confidence=1, status="auto-confirmed", evidence="sure")
git_commit("agent: posted")
"""


class TwoPeopleMachine(RuleBasedStateMachine):
    """Who has agreed is read off the commits, with nothing of the program but ``approvals``."""

    template: Path

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.ws = Workspace(copy_books(self.template, self.folder / "books"))
        self.people = People(self.ws, self.folder, ("ana", "ben", "cleo"), two=str(LIMIT))
        for name in ("ben", "cleo", "stranger"):
            self.people.key(name)
            self.people.ok(name, "trust", "--yes")
        self.number = 0
        self.before: dict[str, str] = {}
        """Entry → its status after the last step."""
        self.next_import("700", "4")

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            remove_tree(self.folder)

    # -- what happens -----------------------------------------------------------------------------------------------

    def pick(self, seed: int) -> str:
        found = sorted(e["entry_id"] for e in self.ws.entries() if e["status"] != "voided")
        return found[seed % len(found)] if found else "2025-01-001"

    def entry(self, name: str) -> dict[str, Any]:
        return next(e for e in self.ws.entries() if e["entry_id"] == name)

    def decide(self, who: str, *argv: str) -> Done:
        """A stranger changes nothing; whatever else becomes of it is judged by the commits."""
        head = self.ws.head()
        done = self.people(who, *argv)
        assert done.code in (0, 1, 2, 3), done
        if who not in MAY:
            assert done.code in (1, 2, 3) and self.ws.head() == head, (argv, done)
        if self.ws.head() != head:
            trailers = self.ws.trailers()
            assert (trailers["By"], trailers["Key"]) == (who, self.people.key(who)), trailers
        return done

    @rule(one=AMOUNT, two=AMOUNT)
    def next_import(self, one: str, two: str) -> None:
        self.number += 1
        n = self.number
        self.ws.drop(f"{n}.csv", chase(("01/03/2025", f"SHOP {n}", f"-{one}"), ("01/04/2025", f"AWS {n}", f"-{two}")))
        with self.people.at_the_keyboard("ana"):
            assert self.ws.run("ingest")["status"] == "succeeded"

    @rule(amount=AMOUNT)
    def a_script_that_is_sure(self, amount: str) -> None:
        self.number += 1
        with self.people.at_the_keyboard("ana"):
            self.ws.script(POST.format(n=self.number, amount=amount), name="sure")

    @rule(seed=SEED, who=WHO)
    def a_script_that_voids(self, seed: int, who: str) -> None:
        body = f'journal_void("{self.pick(seed)}", "no")\ngit_commit("agent: void")'
        with self.people.at_the_keyboard("ana"):
            self.ws.agent("voider", body)
            self.ws("agent", "run", "voider")

    @rule(seed=SEED, who=WHO)
    def confirm(self, seed: int, who: str) -> None:
        self.decide(who, "queue", "approve", self.pick(seed))

    @rule(seed=SEED, who=WHO)
    def confirm_all(self, seed: int, who: str) -> None:
        ids = [e["entry_id"] for e in self.ws.entries() if e["status"] in ("pending-review", "auto-confirmed")]
        if ids:
            self.decide(who, "queue", "approve", *ids)

    @rule(seed=SEED, who=WHO, account=ACCOUNT)
    def correct(self, seed: int, who: str, account: int) -> None:
        self.decide(who, "queue", "correct", self.pick(seed), "--account", str(account))

    @rule(seed=SEED, who=WHO)
    def move(self, seed: int, who: str) -> None:
        self.decide(who, "queue", "correct", self.pick(seed), "--date", "2025-02-08")

    @rule(seed=SEED, who=WHO, outcome=st.sampled_from(("personal", "suspense")))
    def reject(self, seed: int, who: str, outcome: str) -> None:
        self.decide(who, "queue", "reject", self.pick(seed), "--reason", "no", "--outcome", outcome)

    @rule(seed=SEED, who=WHO)
    def void(self, seed: int, who: str) -> None:
        self.decide(who, "journal", "void", self.pick(seed), "--reason", "no")

    @rule(seed=SEED, who=WHO)
    def agree(self, seed: int, who: str) -> None:
        waiting = [c["id"] for c in self.ws.cards() if c["agreed"]]
        if waiting:
            self.decide(who, "queue", "agree", waiting[seed % len(waiting)])

    @rule(seed=SEED, who=WHO, post=st.booleans())
    def settle_a_held_line(self, seed: int, who: str, post: bool) -> None:
        held = [c["id"] for c in self.ws.cards() if c["kind"] == "line"]
        if held:
            words = ["correct", held[seed % len(held)], "--account", "5060"]
            self.decide(who, "queue", *(words if post else ["answer", words[1], "ignore"]))

    @rule(who=WHO)
    def undo(self, who: str) -> None:
        self.decide(who, "queue", "undo")

    @rule(who=WHO)
    def raise_the_limit(self, who: str) -> None:
        """By one person it comes to nothing, as often as they try."""
        for _ in range(2):
            assert self.decide(who, "config", "set", "thresholds.two_person", "100000").code != 0
        for card in [c for c in self.ws.cards() if c["kind"] == "agreement" and "config" in c["title"]]:
            self.people.ok("ana", "queue", "answer", card["id"], "withdraw")

    # -- what is always so ------------------------------------------------------------------------------------------

    @invariant()
    def large_ones_have_two_signatures(self) -> None:
        if not hasattr(self, "ws"):
            return
        take_ok(self.ws, "trust", "--yes")  # who checks trusts the machines of the others
        assert self.ws.json("check") == {"ok": True, "violations": []}
        entries = {e["entry_id"]: e for e in self.ws.entries()}
        for name, entry in entries.items():
            if entry["status"] == "auto-confirmed":
                assert Decimal(entry["amount"]) < LIMIT, entry
            large = Decimal(entry["amount"]) >= LIMIT
            if large and entry["status"] in SETTLED and self.before.get(name) != entry["status"]:
                who = set(signatories(self.ws))
                assert len(who) == 2 and who <= {self.people.key(name) for name in MAY}, entry
        self.before = {name: e["status"] for name, e in entries.items()}


def signatories(ws: Workspace) -> tuple[str, ...]:
    """The keys with a valid signature on the last commit, and on what was agreed to before it on a card it settles."""
    from cleared.cards import queue_files
    from cleared.changes.decisions.signatures import find_signing_key
    from cleared.changes.record_sources import CommittedSource
    from cleared.changes.workspace_opening import open_workspace
    from cleared.git import Snapshot, history
    from cleared.trust.reviewers import parse_agreements

    host = open_workspace(ws.root)
    found: list[Any] = []
    with host.open_for_reading() as repo:
        commit = history.read_commit(ws.root, "HEAD")
        workspace = ws.read("agents/approvals/workspace").strip()
        key = find_signing_key(repo, commit, workspace)
        cards = queue_files.load_cards(CommittedSource(Snapshot(repo, commit.id)), "queue").values()
        before = queue_files.load_cards(CommittedSource(Snapshot(repo, ws.git("rev-parse", "HEAD^").strip())), "queue")
        for card in cards:
            if card.status == "resolved" and card.id in before and before[card.id].status == "open":
                found += [a.key for a in parse_agreements(card.id, card.agreed)[-2:] if a.is_genuine and a.key != key]
    return (key, *found[-1:])


@pytest.fixture
def machine(starting_point: Path, plain_environment: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(TwoPeopleMachine, "template", starting_point, raising=False)
    yield TwoPeopleMachine


def test_no_surface_decides_alone_what_takes_two(machine: type[TwoPeopleMachine]) -> None:
    run_machine(machine, EXAMPLES, STEPS, phases=[Phase.generate], report_multiple_bugs=False)


def two_agree_and_take_it_back(m: TwoPeopleMachine) -> None:
    for who in ("ana", "ana", "stranger", "ben"):
        m.confirm_all(0, who)
        m.large_ones_have_two_signatures()
    for who in ("cleo", "cleo", "ana", "ben", "ana", "ben"):
        m.undo(who)
        m.large_ones_have_two_signatures()


def one_after_the_other_says_otherwise(m: TwoPeopleMachine) -> None:
    large = next(n for n in range(9) if Decimal(m.entry(m.pick(n))["amount"]) >= LIMIT)
    m.correct(large, "ana", 5010)
    m.correct(large, "ben", 5060)
    m.reject(large, "cleo", "suspense")
    m.large_ones_have_two_signatures()
    m.agree(0, "ana")
    m.large_ones_have_two_signatures()
    m.settle_a_held_line(0, "ana", True)
    m.settle_a_held_line(0, "ana", False)
    m.settle_a_held_line(0, "ben", True)
    m.agree(0, "cleo")
    m.large_ones_have_two_signatures()
    m.void(large, "cleo")
    m.void(large, "ben")
    m.raise_the_limit("ana")


@pytest.mark.parametrize("story", [two_agree_and_take_it_back, one_after_the_other_says_otherwise])
def test_what_might_go_wrong(machine: type[TwoPeopleMachine], story: Any) -> None:
    m = machine()
    try:
        m.begin()
        story(m)
        m.large_ones_have_two_signatures()
    finally:
        m.teardown()
