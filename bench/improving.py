"""A simulated year: an owner decides by a hidden rule, errs now and then, and approves what is proposed.

Real workspace, agent, gate and approvals; only the bank's files and the owner are made up. Nothing else teaches.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from bench.workspaces import HEADER, workspace
from cleared.base.clock import FixedClock
from cleared.books.decisions.entry_correction import Correction
from cleared.books.ledger.entry import Entry
from cleared.books.staged_books import open_books
from cleared.cards.kinds import CONTRADICTION
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.workspace_opening import open_workspace
from cleared.gate.manual_runs import run_now
from cleared.gate.proposals.approval import approve_proposal
from cleared.gate.proposals.improving import improve_agents
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.git import Snapshot
from cleared.review.card_decisions import answer_card, confirm_records, correct_records
from cleared.review.queue_cards import read_cards

LINES = 98
"""Bank lines of a month: in the first, each is a card."""
PAYEES = 24
ERRS = 0.02
ROUNDS = 4
"""How often a month ``cleared improve`` is asked, as once a week."""
MONTHS = 12
_ACCOUNTS = (5020, 5030, 5040, 5060, 5070, 5100, 5110, 5150)
_SYLLABLES = ("BA", "CO", "DU", "FEL", "GRI", "HAN", "KLE", "LOM", "MIR", "NOR", "PAX", "QUI", "ROS", "SOL", "TAN")


@dataclass(slots=True)
class SimulatedYear:
    """What became of it, month by month."""

    cards: list[int] = field(default_factory=list)
    """What the owner had to decide: entries, contradictions and proposals."""
    wrong: int = 0
    """Entries that were booked without asking, and not as the hidden rule says."""
    wrong_unmade: int = 0
    """Those of them that the owner had not decided so before."""
    proposed: int = 0

    def describe(self) -> str:
        wrong = f"{self.wrong} booked wrong without asking, {self.wrong_unmade} of them as the owner never decided"
        return f"decisions a month {', '.join(map(str, self.cards))}; {wrong}"


class _Firm:
    """The payees, and the rule by which the owner decides."""

    def __init__(self, payees: int) -> None:
        self.numbers = random.Random(27)
        names: set[str] = set()
        while len(names) < payees:
            names.add(" ".join("".join(self.numbers.choices(_SYLLABLES, k=3)) for _ in range(2)))
        self.names = sorted(names)
        self.homes = {name: self.numbers.choice(_ACCOUNTS) for name in self.names}
        self.by_amount = set(self.names[::8])

    def right_account(self, name: str, amount: Decimal) -> int:
        if amount > 0:
            return 4010
        return 1500 if name in self.by_amount and amount < -500 else self.homes[name]

    def make_lines(self, month: int, lines: int) -> list[tuple[str, str, Decimal]]:
        """Day, payee and amount of each line of a month; some payees pay, too."""
        made = []
        for n in range(lines):
            name = self.names[n % len(self.names)]
            large = name in self.by_amount and self.numbers.random() < 0.5
            size = (
                Decimal(self.numbers.randrange(60_000, 90_000) if large else self.numbers.randrange(2_000, 9_000)) / 100
            )
            sign = 1 if name == self.names[1] and self.numbers.random() < 0.5 else -1
            made.append((f"{month:02}/{1 + n * 27 // lines:02}/2026", name, sign * size))
        return made


def simulate_year(months: int, payees: int, lines: int, rounds: int) -> SimulatedYear:
    """One year of one firm, or its first months."""
    firm, year = _Firm(payees), SimulatedYear()
    root = workspace()
    made: set[tuple[str, int]] = set()
    for month in range(1, months + 1):
        host = _open(root, month)
        rows = firm.make_lines(month, lines)
        _drop(root, month, rows)
        run_now(host, "ingest")
        booked = _read_month(host, month)
        names = {entry.entry_id: _name_of(entry) for entry in booked}
        year.cards.append(0)
        for entry in booked:
            amount, account = _bank_amount(entry), _other_account(entry)
            if entry.status == "auto-confirmed" and account != firm.right_account(names[entry.entry_id], amount):
                year.wrong += 1
                year.wrong_unmade += (names[entry.entry_id], account) not in made
        year.cards[-1] += _decide(host, firm, booked, made)
        for _ in range(rounds):
            year.cards[-1] += _improve(host, year)
    return year


def _open(root: Path, month: int) -> Host:
    return open_workspace(root, clock=FixedClock(datetime(2026, month, 28, 12, tzinfo=UTC)))


def _drop(root: Path, month: int, rows: list[tuple[str, str, Decimal]]) -> None:
    lines = [
        f"{'DEBIT' if amount < 0 else 'CREDIT'},{day},{name} {n:03d}{month:02d},{amount},"
        f"{'ACH_DEBIT' if amount < 0 else 'ACH_CREDIT'},,"
        for n, (day, name, amount) in enumerate(rows)
    ]
    (root / "import" / f"{month:02}.csv").write_text("\n".join([HEADER, *lines, ""]))


def _read_month(host: Host, month: int) -> list[Entry]:
    with host.open_for_reading() as repo:
        books, _ = open_books(host.layout, CommittedSource(Snapshot(repo, repo.read_head())))
        return [entry for entry in books.iter_entries(2026, month) if not entry.tags]


def _name_of(entry: Entry) -> str:
    return entry.description.rsplit(" ", 1)[0]


def _bank_amount(entry: Entry) -> Decimal:
    return next(leg.amount for leg in entry.legs if leg.account_id == 1010)


def _other_account(entry: Entry) -> int:
    return next(leg.account_id for leg in entry.legs if leg.account_id != 1010)


def _decide(host: Host, firm: _Firm, booked: list[Entry], made: set[tuple[str, int]]) -> int:
    """The owner decides what waits, and errs now and then; how many cards that were."""
    chosen: dict[tuple[int, bool], list[str]] = defaultdict(list)
    waiting = [entry for entry in booked if entry.status == "pending-review"]
    for entry in waiting:
        name = _name_of(entry)
        account = firm.right_account(name, _bank_amount(entry))
        if firm.numbers.random() < ERRS:
            account = firm.numbers.choice([each for each in _ACCOUNTS if each != account])
        made.add((name, account))
        chosen[account, account == _other_account(entry)].append(entry.entry_id)
    for (account, is_so), ids in chosen.items():
        if is_so:
            confirm_records(host, ids)
        else:
            correct_records(host, ids, lambda _, to=Correction(account): to)
    return len(waiting)


def _improve(host: Host, year: SimulatedYear) -> int:
    """The owner asks what was learned, approves it, and says of decisions that differ that most were right."""
    done = improve_agents(host, is_asked=True)
    year.proposed += len(done.proposed)
    for proposal in done.proposals:
        with expecting({proposal.folder: read_shown_proposal(host, proposal.folder).digest}):
            approve_proposal(host, proposal.folder, proposal.id)
    asked = [card for card in read_cards(host) if card["kind"] == CONTRADICTION.name]
    for card in asked:
        answer_card(host, card["id"], "most")
    return len(done.proposals) + len(asked)


def measure_year(quick: bool) -> str:
    """The year, as a line for a terminal."""
    year = simulate_year(6 if quick else MONTHS, PAYEES, LINES, ROUNDS)
    return f"a simulated year, {year.proposed} changes approved: {year.describe()}\n"
