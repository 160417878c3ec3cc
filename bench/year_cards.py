"""The cards of a consultant's year, decided by taps and typing as they truly are."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path

from bench.consultant import (
    DRAWS,
    NEW_ACCOUNTS,
    BankLine,
)
from bench.page_person import Person


class DecidedCards:
    """The queue of the books, and the person at its page. ``root``: of the books."""

    def __init__(self, person: Person, root: Path) -> None:
        self.person = person
        self.open_lines: dict[tuple[str, date, Decimal], list[BankLine]] = defaultdict(list)
        """What the banks have said, and nobody has decided yet."""
        self.decided: Counter[str] = Counter()
        """Cards by kind."""
        chart = csv.DictReader((root / "accounts/chart-of-accounts.csv").open())
        self.names = {int(row["account_id"]): row["account_name"] for row in chart}
        self.names |= {number: name for number, (name, _) in NEW_ACCOUNTS.items()}

    def decide_all(self) -> None:
        """All that waits, a card at a time or a group."""
        person = self.person
        person.go("Queue")
        stuck = 0
        for _ in range(400):
            if person.page.locator("#card").count() == 0:
                assert "Nothing waits for you." in person.read(), person.read()
                return
            kind = person.read("#card .kind")
            self.decided[kind] += 1
            before = person.page.locator("#card").get_attribute("data-card")
            self.decide(kind)
            card = person.page.locator("#card")
            if "Not done" in person.message() or (card.count() and before == card.get_attribute("data-card")):
                stuck += 1
            if stuck > 1:
                raise AssertionError(f"a card that was not decided: {person.message()}\n{person.read('body')}")
            if person.page.locator("#card").count() == 0 and "/queue" not in person.page.url:
                person.go("Queue")
        raise AssertionError(f"the queue does not end: {person.read('body')}")

    def decide(self, kind: str) -> None:
        person = self.person
        if kind == "Entry to confirm":
            self.decide_entry()
        elif kind == "Bank line on hold":
            line = self.find_line()
            assert line.account is not None
            person.open_part("#correct")
            if self.choose_account(line.account):
                self.take_line(line)
        elif kind == "Perhaps a transfer":
            person.tap("It is: both go through the clearing account", exact=True)  # undo names it, too
        elif kind in ("Odd monthly charge", "Look-alike rows", "Rows that came before"):
            person.tap("Seen")
        elif kind == "Receipt of an entry":
            person.tap("It is the receipt")
        elif kind == "Proposal":
            self.approve_change()
        else:
            raise AssertionError(f"what is this card? {kind}: {person.read('body')}")

    def approve_change(self) -> None:
        """A change of what runs; its number is typed where the card asks for that."""
        person = self.person
        if person.page.locator("#number").count():
            person.type("No dry run showed", person.read("#card .about").partition(":")[0])
        person.tap("Approve: it becomes live")

    def decide_entry(self) -> None:
        person, line = self.person, self.find_line()
        right = line.account
        if line.twin_of is not None:
            person.open_part("#reject")
            person.tap("Duplicate", exact=True)
            self.take_line(line)
            return
        if right is None:
            self.split_card(line)
            return
        if self.decide_group(right):
            return
        proposed = self.read_proposed()
        suggested = person.page.locator(f'button[value="suggested:{right}"]')
        always = person.page.get_by_role("button", name=f"Always {right} ")
        if always.count():  # the rule comes as a card
            person.touch(always.first)
            assert "Proposal" in person.read("#card .kind"), person.read("body")
            self.approve_change()
            self.take_line(line)
            return
        if proposed == right:
            person.tap("Approve", exact=True)
        elif suggested.count():
            person.touch(suggested.first)
        elif right == DRAWS:
            person.open_part("#reject")
            person.tap("Personal: a draw")
        else:
            person.open_part("#correct")
            if not self.choose_account(right):
                return
        self.take_line(line)

    def decide_group(self, right: int) -> bool:
        """All like it, where all are the same; whether it was done."""
        person = self.person
        link = person.page.locator("#card .links").get_by_role("link", name=re.compile("All .* like it"))
        if link.count() == 0:
            return False
        proposed = self.read_proposed()
        person.touch(link.first)
        rows = person.page.locator("table.lines tbody tr")
        lines: list[BankLine] = []
        for cells in [row.locator("td").all_inner_texts() for row in rows.all()]:
            found = self.open_lines[cells[1], date.fromisoformat(cells[0]), read_amount(cells[2])]
            lines += [each for each in found if each not in lines][:1]
        if len(lines) != rows.count() or {line.account for line in lines} != {right} or any(x.twin_of for x in lines):
            person.tap("Back to the card", "link")
            return False
        suggested = person.page.locator(f'button[value="suggested:{right}"]')
        if proposed == right:
            person.tap("Approve all")
        elif suggested.count():
            person.touch(suggested.first)
        elif not self.choose_account(right):
            return True
        for line in lines:
            self.take_line(line)
        return True

    def choose_account(self, number: int) -> bool:
        """By what is listed already, or by a few letters of its name. False where there was none: it is made
        then, and the card asks again."""
        person = self.person
        button = person.page.locator(f'#accounts button[value="{number}"]')
        if button.count() == 0:
            person.type("Account, by name or number", self.names[number][:6].lower())
            person.page.locator("#accounts").get_by_text(re.compile(rf"{number}|No account fits")).first.wait_for()
        if button.count() == 0:
            self.add_account(number)
            return False
        person.touch(button.first)
        return True

    def add_account(self, number: int) -> None:
        """One that the chart has not; then back to the card."""
        person, (name, kind) = self.person, NEW_ACCOUNTS[number]
        person.tap("Add an account", "link")
        person.type("What it is called", name)
        person.choose("What it is", kind)
        person.tap("Add it")
        assert name in person.read("body"), person.read("body")
        assert "/queue?card=" in person.page.url

    def split_card(self, line: BankLine) -> None:
        person = self.person
        person.open_part("#correct")
        person.open_part("#split")
        self.fill_split(line)
        person.tap("Take the split")
        self.take_line(line)

    def fill_split(self, line: BankLine) -> None:
        """An account and an amount of each part; the last takes what is left."""
        for at, (account, amount) in enumerate(line.parts, 1):
            self.person.choose(f"Account {at}", str(account), at="#split")
            if at < len(line.parts):
                self.person.type(f"Amount {at}", f"{amount}", at="#split")

    def read_proposed(self) -> int:
        """The account that the entry of the card has now."""
        found = re.search(r"(?:decided|booked as)\s+(\d{4}) ", self.person.read("#card"))
        assert found, self.person.read("#card")
        return int(found[1])

    def find_line(self) -> BankLine:
        """The line of the bank that the card is about."""
        text = self.person.read("#card .about span")
        day, amount = re.findall(r"(\d{4}-\d\d-\d\d)\s+(-?[\d.,]+) USD", self.person.read("#card"))[0]
        lines = self.open_lines[text, date.fromisoformat(day), read_amount(amount)]
        assert lines, f"nobody knows this line: {text} {day} {amount}"
        return lines[0]

    def take_line(self, line: BankLine) -> None:
        self.open_lines[line.text, line.day, line.amount].remove(line)


def read_amount(text: str) -> Decimal:
    return Decimal(text.replace(",", ""))
