"""A consultant's year, kept through the page alone: by taps, typed characters and chosen files, on a phone or a desk.

Somebody else has set it up once: made the workspace, started the server, registered the passkey of the phone. What is
kept is compared with what is true of the year.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.consultant import (
    CARD,
    CHECKING,
    CORRECTED_LATE,
    SAVINGS,
    YEAR,
    BankLine,
    Consultant,
    Month,
)
from bench.measure import Result
from bench.page_person import PHONE, Person, make_receipt, open_browser
from bench.workspaces import place, use_own_home
from bench.year_cards import DecidedCards
from bench.year_oracle import find_faults, true_balances
from cleared.changes.decisions.shown_cards import expecting
from cleared.changes.host import Host
from cleared.changes.workspace_creation import create_workspace
from cleared.changes.workspace_opening import open_workspace
from cleared.cli.machine_errors import as_refusal
from cleared.gate.proposals.improving import improve_agents
from cleared.gate.proposals.passkey_registration import SHOWN, register_passkey
from cleared.web.page_server import PageServer, serve_in_background
from cleared.web.passkey_invitations import invited

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES: Final = {CHECKING: "Business checking", SAVINGS: "Savings", CARD: "Credit card 7733"}
RECEIPTS_A_MONTH: Final = 2
NIGHTS: Final = (6, 13, 20, 27)
"""Days on which the service, which the owner does not see, asks what decisions teach."""


class YearClock:
    """Stands still at a day of the year that the bench says."""

    def __init__(self) -> None:
        self.at = datetime(YEAR, 1, 2, 9, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return time.monotonic()


class Effort(NamedTuple):
    """What keeping the books took of a person."""

    taps: int
    typed: int
    """Characters."""
    signed: int
    """How often the phone asked for a finger."""
    seconds: float


class KeptYear(DecidedCards):
    """Books of the consultant, and the person at their page."""

    def __init__(self, consultant: Consultant, person: Person, root: Path, clock: YearClock) -> None:
        super().__init__(person, root)
        self.consultant, self.root, self.clock = consultant, root, clock
        self.files = Path(tempfile.mkdtemp(dir=root.parent))
        self.effort: list[Effort] = []
        """Of each month."""

    def open_host(self) -> Host:
        return open_workspace(self.root, clock=self.clock)

    def keep_month(self, month: Month) -> None:
        """From the bank's files to the closed month."""
        person, began = self.person, time.perf_counter()
        before = Effort(person.taps, person.typed, person.signed, 0.0)
        following = date(YEAR + month.number // 12, month.number % 12 + 1, 2)
        self.clock.at = datetime(following.year, following.month, 2, 9, tzinfo=UTC)
        for line in month.lines:
            self.open_lines[line.text, line.day, line.amount].append(line)
        if month.number > 1:  # what the nights have proposed: the files then need less of it
            self.decide_all()
        self.hand_in(month)
        if month.number == 1:
            self.book_openings(month)
            self.enable_learning()
        self.decide_all()
        self.attach_receipts(month)
        self.mend(month)
        if month.number % 3 == 0:
            self.reconcile(month)
        self.close(month)
        spent = (person.taps - before.taps, person.typed - before.typed, person.signed - before.signed)
        self.effort.append(Effort(*spent, time.perf_counter() - began))
        self.improve(following)

    def improve(self, following: date) -> None:
        """What the service does in the nights of the month that has begun."""
        for day in NIGHTS:
            self.clock.at = datetime(following.year, following.month, day, 3, tzinfo=UTC)
            improve_agents(self.open_host(), is_asked=False)

    def enable_learning(self) -> None:
        """The service may propose what decisions teach: a protected setting, so a card."""
        person = self.person
        person.go("Books", "Settings")
        person.open_part("details:has(summary:text-is('Self improvement'))")
        person.tap("enabled", "link", exact=False)
        person.choose("What it is to be", "true")
        person.tap("Propose it")
        person.tap("Approve")
        assert self.open_host().config.self_improvement.enabled, person.read("body")

    def end_year(self) -> None:
        """Read what the year came to: each report names what is true of it."""
        person, balances = self.person, true_balances(self.consultant)
        last = f"{YEAR}-{len(self.consultant.months):02}"
        for title, kinds in (("Profit and loss", "45"), ("Balance sheet", "12")):
            person.go("Reports")
            person.tap(title, "link")
            person.type("Period", str(YEAR))
            person.tap("Show", exact=True)
            shown = {amount.lstrip("-") for amount in read_totals(person.read(".report"))}
            wanted = {
                f"{abs(amount):,.2f}"
                for (account, month), amount in balances.items()
                if month == last and str(account)[0] in kinds
            }
            assert wanted <= shown, f"{title} does not name {wanted - shown}: {person.read('.report')}"
        person.go("Books", "Check")
        assert "All is in order" in person.read(), person.read()
        person.go("Today")
        assert "Nothing waits for you" in person.read(), person.read()

    # -- files --------------------------------------------------------------------------------------------------

    def hand_in(self, month: Month) -> None:
        person, paths = self.person, []
        for _, name, data in month.files:
            paths.append(self.files / name)
            paths[-1].write_bytes(data)
        person.go("Today")
        person.hand_in("Choose bank files", *paths)
        person.tap("Hand in and import")
        if month.number == 1:
            for bank, name, _ in month.files:
                self.describe_file(bank, name)

    def describe_file(self, bank: int, name: str) -> None:
        """The bank account of a file of the first month."""
        person = self.person
        person.go("Today")
        person.touch(person.page.locator("ul.trouble li", has_text=name).get_by_role("link"))
        if bank == SAVINGS:
            person.choose("Money out is written", "as_is")
            person.choose("What it is at the bank", "savings")
            person.type("Its name", "Savings")
            person.tap("Show it again")
        person.tap("It is right: add it and import")
        assert f"{name}; " in person.message(), person.read("body")

    def book_openings(self, month: Month) -> None:
        person = self.person
        person.go("Books", "Opening balances")
        person.tap("Book ")
        if SAVINGS in self.consultant.banks:
            person.go("Books", "Opening balances")
            person.choose("Bank account", str(SAVINGS))
            person.type("At the end of which day", f"{YEAR - 1}-12-31")
            person.type("What it held", "12000")
            person.tap("Book it against")
            assert "booked" in person.message(), person.read("body")

    # -- what a month has besides ---------------------------------------------------------------------------------

    def attach_receipts(self, month: Month) -> None:
        """Pictures of the largest payments by card, named as a phone or a shop names them."""
        person = self.person
        paid = sorted((line for line in month.lines if line.bank == CARD), key=lambda line: line.amount)
        for line in paid[:RECEIPTS_A_MONTH]:
            path = self.files / f"{line.day} {-line.amount:.2f} {line.number}.png"
            path.write_bytes(make_receipt(int(line.number)))
            person.go("Books", "Receipts")
            person.hand_in("Or choose a file", path)
            person.tap(f"{-line.amount:.2f} ")
            assert "has its receipt" in person.message(), person.read("body")

    def mend(self, month: Month) -> None:
        """What was decided wrongly, and is seen later: another account, a split, and an entry that is voided."""
        person = self.person
        if month.number == CORRECTED_LATE:
            for line in self.consultant.lines:
                if line.later is not None:
                    self.correct_entry(line, line.later)
        for line in month.lines:
            if line.first is not None and len(line.parts) == 1:
                self.correct_entry(line, line.parts[0][0])
            elif line.first is not None:
                self.find_entry(line)
                person.open_part("#split")
                self.fill_split(line)
                person.tap("Split", exact=True)
                assert "Corrected" in person.message(), person.read("body")
            if line.is_voided:
                self.find_entry(line)
                person.open_part("details:has(summary[data-key=r])")
                person.type("Why", "not mine")
                person.tap("Void", exact=True)
                assert "Voided" in person.message(), person.read("body")
                self.open_lines[line.text, line.day, line.amount].append(line)
                self.decide_all()  # the bank's line waits again

    def correct_entry(self, line: BankLine, account: int) -> None:
        person = self.person
        self.find_entry(line)
        person.open_part("details:has(summary[data-key=c])")
        person.choose("Account, in place of", str(account))
        person.tap("Correct", exact=True)
        assert "Corrected" in person.message(), person.read("body")

    def find_entry(self, line: BankLine) -> None:
        """The page of its entry, by a search."""
        person = self.person
        person.go("Books")
        person.type("Find entries with a text", line.text)
        person.type("From", line.day.isoformat())
        person.type("To", line.day.isoformat())
        person.tap("Find")
        row = person.page.locator("table.lines tbody tr", has_text=f"{abs(line.amount):,.2f}")
        person.touch(row.get_by_role("link").first)

    def reconcile(self, month: Month) -> None:
        person = self.person
        for bank in self.consultant.banks:
            person.go("Books", "Reconcile")
            person.choose("Bank account", str(bank))
            assert person.page.get_by_label("The statement’s last day").input_value() == month.last_day.isoformat()
            person.type("What the statement says", f"{month.closing[bank]:.2f}")
            person.tap("Compare; record it")
            assert "agrees with the bank" in person.message(), person.read("body")

    def close(self, month: Month) -> None:
        person = self.person
        person.go("Books", "Close months")
        wanted = f"{YEAR}-{month.number:02}"
        while (offered := person.page.get_by_label("Through the end of").input_value()) <= wanted:
            person.tap("Close", exact=True)
            assert f"The books are closed through {offered}" in person.message(), person.read("body")
            if offered == wanted:
                return
        raise AssertionError(f"it offers {offered}: {person.read()}")


def read_totals(text: str) -> set[str]:
    """The amounts that stand on a page."""
    return set(re.findall(r"-?\d[\d,]*\.\d\d", text))


@contextmanager
def open_year(consultant: Consultant, browser: Browser) -> Iterator[KeptYear]:
    """The set-up, by whoever has a terminal: the workspace, the server, and the passkey of the phone."""
    use_own_home()
    clock = YearClock()
    root, _ = create_workspace(
        place(), name="Moss Consulting", entity_type="llc_single_member", currency="USD", clock=clock
    )
    server = PageServer([root], lambda path: open_workspace(path, clock=clock), as_refusal, 0)
    with serve_in_background(server) as found:
        base = found["url"].replace("127.0.0.1", "localhost")
        person = Person(browser, base, PHONE)
        with invited(root, "Ana") as invitation:
            person.page.goto(f"/passkeys/new#{invitation.code}")
            person.page.get_by_role("button", name="Make the passkey").click()
            person.page.get_by_role("heading", name="The passkey is made").wait_for()
            new = invitation.read_result()
        assert new is not None
        with expecting({SHOWN: new.digest_for("Ana")}):
            register_passkey(open_workspace(root, clock=clock), "Ana", new)
        person.page.get_by_role("link", name="sign in with it").click()
        person.page.get_by_role("button", name="Sign in with a passkey").click()
        person.page.get_by_role("heading", name="Today").wait_for()
        yield KeptYear(consultant, person, root, clock)


def page_year(quick: bool) -> Result:
    """A year on a phone, true to the cent; the first quarter is the whole of it where it is quick."""
    consultant = Consultant(3 if quick else 12)
    with open_browser() as browser, open_year(consultant, browser) as year:
        for month in consultant.months:
            year.keep_month(month)
            print(f"month {month.number}: {describe_effort(year.effort[-1:])}", file=sys.stderr, flush=True)
        year.end_year()
        faults = [*find_faults(year.root, consultant), *dict.fromkeys(year.person.problems)]
    assert not faults, "\n".join(faults)
    taps = [each.taps for each in year.effort]
    first, last = taps[0], sum(taps[-3:]) / 3
    lines = sum(1 for _ in consultant.lines)
    return Result(
        f"taps a month of a consultant's year ({lines} bank lines) kept on the page alone: the last three / the first",
        f"{last:.0f}",
        f"{first}",
        last / first,
        "≤ 0.6×",
        last <= 0.6 * first,
        describe_effort(year.effort),
    )


def describe_effort(effort: Sequence[Effort]) -> str:
    """What each month took."""
    named = (("taps", "taps"), ("characters typed", "typed"), ("signatures", "signed"))
    return "; ".join(f"{label} {', '.join(str(getattr(each, name)) for each in effort)}" for label, name in named)
