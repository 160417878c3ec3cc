"""``cleared review`` as plain prompts: one card after the other in sentences, for screen readers, pipes and simple
terminals."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from cleared.base.errors import ClearedError, UsageError
from cleared.base.terminal import count_noun, escape_text
from cleared.books.decisions.entry_correction import Correction, add_typed_details
from cleared.books.review.account_choice import match_accounts, parse_split
from cleared.books.review.book_cards import book_facts_of
from cleared.books.review.similar_entries import list_possible_duplicates
from cleared.books.review.vendor_lessons import approve_lesson, vendor_words
from cleared.books.teaching.matched_lines import list_matches
from cleared.books.teaching.vendor_teaching import Lesson
from cleared.cards.card_section import list_lines
from cleared.cards.kinds import INTRODUCTION
from cleared.cli.tui import key_bindings
from cleared.review.action_request import NAME_LAST_ACT, UNDO, ActionRequest
from cleared.review.card_actions import ActionExecutor, card_code, request_decision
from cleared.review.card_facts import CardChoice, QueueRow
from cleared.review.card_groups import card_group
from cleared.review.card_view import CardView, show_card
from cleared.review.queue_snapshot import QueueSnapshot, number_to_type, read_queue
from cleared.review.source_files import bank_file

Ask = Callable[[str], str | None]
"""Shows a prompt and gives the line that was typed; None at the end of the input."""
Tell = Callable[[str], None]

_OUTCOMES = {"1": "duplicate", "2": "personal", "3": "suspense"}


class InputEnded(Exception):
    """The input has ended."""


class PlainReview:
    """One pass through the open cards, with a person who types."""

    def __init__(self, executor: ActionExecutor, ask: Ask, tell: Tell) -> None:
        self.executor, self._ask, self._tell = executor, ask, tell
        self.decided = 0
        self.skipped: list[str] = []
        self.queue: QueueSnapshot = read_queue(executor.open())
        self.first: str | None = None
        """The card to show next, where that is not simply the oldest."""

    def run_prompts(self) -> None:
        """Ask until ``q`` or the end of the input; nothing is asked where no card waits."""
        try:
            goes_on = bool(self.queue.cards)
            if goes_on:
                self._tell(INTRODUCTION)
            while goes_on:
                card_id = self._next_card()
                goes_on = self._ask_about_card(card_id) if card_id is not None else self._ask_at_end()
        except InputEnded:
            self._tell("")
        left = len(self.queue.cards)
        if not left and not self.decided:
            self._tell("Nothing waits for you.")
            return
        self._tell(f"{count_noun(self.decided, 'decision')} made. {count_noun(left, 'card')} left.")

    def _next_card(self) -> str | None:
        first, self.first = self.first, None
        if first in self.queue.cards:
            return first
        return next((i for i in self.queue.cards if i not in self.skipped), None)

    def _ask_at_end(self) -> bool:
        """Ask what to do when all cards are decided or skipped. False for ``q``."""
        self._tell("")
        if self.queue.cards:
            again = f"Enter shows the {count_noun(len(self.queue.cards), 'skipped card')} again"
        else:
            again = "Nothing waits for you"
        typed = self._read_line(f"{again}; u undo, q quit: ")
        if typed == "u":
            self._undo_last_act()
        elif typed != "q":
            self.skipped.clear()
            self.queue = read_queue(self.executor.open())
        return typed != "q"

    def _ask_about_card(self, card_id: str) -> bool:
        """Show a card and ask until it is decided or skipped. False for ``q``."""
        card = show_card(self.queue, card_id)
        self._print_card(card)
        while True:
            keys = ", ".join(f"{key} {escape_text(label)}" for key, label in key_bindings.available_keys(card))
            views = f"{'o code, ' if card.has_code else ''}{'f file, ' if card.has_file else ''}"
            typed = self._read_line(f"{keys}, s skip, u undo, {views}? help, q quit: ")
            key, _, rest = typed.partition(" ")
            if key == "q":
                return False
            if key in ("?", "help", ""):
                for name, _, text in key_bindings.KEYS:
                    if name != "=":
                        self._tell(f"{name}: {text}")
            elif key == "s":
                self.skipped.append(card_id)
                return True
            elif key == "u":
                self._undo_last_act()
                return True
            elif key in ("o", "f"):
                self._print_file(card_id, key)
            elif key == "g":
                if self._decide_group(card_id):
                    return True
            else:
                choice = key_bindings.choice_for_key(card, key)
                if choice is None:
                    self._tell(f"{escape_text(typed)} does nothing here.")
                elif self._decide_cards(choice, [self.queue.row_of(self.queue.cards[card_id])], rest):
                    return True

    def _undo_last_act(self) -> None:
        """Name the last act, and take it back if Enter is pressed."""
        named = self.executor.execute_request(NAME_LAST_ACT)
        if not named.ok:
            self._tell(f"Not done: {escape_text(named.text)}")
        elif not self._read_line(f"{escape_text(named.text)}. Enter takes it back, anything else leaves it: "):
            self._execute_request(replace(UNDO, act=named.act))

    def _print_card(self, card: CardView) -> None:
        left = len(self.queue.cards)
        self._tell("")
        self._tell(f"{card.heading}. {count_noun(left, 'card')} left, {self.decided} done.")
        self._tell(escape_text(" ".join(x for x in (card.amount, card.title) if x)))
        for section in card.sections:
            for line in list_lines([section]):
                self._tell(escape_text(line))
            for cells in [section.columns, *section.rows] if section.columns else section.rows:
                self._tell("  " + escape_text(", ".join(c for c in cells if c)))

    def _decide_cards(self, choice: CardChoice, rows: list[QueueRow], typed: str) -> bool:
        """Ask for what the choice needs, and carry it out. False where the person gave up."""
        ids = tuple(row.id for row in rows)
        request = request_decision(self.queue, choice, rows)
        if choice.verb == "correct":
            correction = self._ask_correction(ids[0], typed, len(ids) == 1)
            if correction is None:
                return False
            request = replace(request, correction=correction)
        elif choice.verb == "always" and not choice.value:
            words = self._ask_words(ids[0])
            correction = self._ask_correction(ids[0], typed, False) if words else None
            if correction is None:
                return False
            request = replace(request, correction=correction, words=words)
        elif choice.verb in ("reject", "decline"):
            outcome = of = None
            if choice.verb == "reject" and any(book_facts_of(self.queue).posts_line(self.queue.cards[i]) for i in ids):
                outcome, of = self._ask_outcome(ids[0])
                if outcome is None:
                    return False
            reason = typed or self._read_line("Why? (empty: do not reject) ")
            if not reason:
                return False
            request = replace(request, reason=reason, outcome=outcome, duplicate_of=of)
        elif choice.verb == "approve" and (number := number_to_type(self.queue, self.queue.cards[ids[0]])):
            question = f"No dry run showed all that it may do. Type {number} to approve it all the same: "
            request = replace(request, words=self._read_line(question))
        self._execute_request(request)
        return True

    def _execute_request(self, request: ActionRequest) -> None:
        result = self.executor.execute_request(request)
        self._tell(escape_text(result.text) if result.ok else f"Not done: {escape_text(result.text)}")
        self.queue = read_queue(self.executor.open())
        if result.ok:
            undone = request.choice.verb == "undo"
            self.decided = (
                max(0, self.decided - max(1, len(result.cards))) if undone else self.decided + len(result.cards)
            )
            self.skipped += [i for i in request.cards if i not in result.cards]  # it waits for another reviewer
            self.first = next((i for i in result.cards if undone and i in self.queue.cards), None)
        if isinstance(result.offer, Lesson):
            self._offer_lesson(result.offer)
        more = [i for i in result.similar_cards if i in self.queue.cards]
        if more and isinstance(request.correction, Correction) and request.correction.account is not None:
            rows = [self.queue.row_of(self.queue.cards[i]) for i in more]
            self._print_rows(rows)
            question = f"{count_noun(len(more), 'more card')} like it. Correct them the same way? (y or n) "
            if self._read_line(question) == "y":
                choice = CardChoice("correct", request.choice.label)
                self._execute_request(
                    replace(request_decision(self.queue, choice, rows), correction=request.correction)
                )

    def _offer_lesson(self, lesson: Lesson) -> None:
        """Show what a taught vendor would have changed, and make it live if Enter is pressed."""
        for line in list_matches(lesson.lines):
            self._tell(f"  {escape_text(line)}")
        if self._read_line("Enter approves it, anything else leaves it as a card: "):
            self._tell(f"{lesson.proposal.id} waits as a card.")
        else:
            self._execute_request(approve_lesson(lesson))

    def _ask_words(self, card_id: str) -> str:
        """The words of the bank's text that name the vendor."""
        likely = vendor_words(self.queue, card_id)
        return self._read_line(f"Which words of it name the vendor? (Enter: {escape_text(likely)}) ") or likely

    def _ask_correction(self, card_id: str, typed: str, one: bool) -> Correction | None:
        while True:
            typed = typed or self._read_line(
                "Account: its number, part of its name, or several as 5020=30 5060= (empty: no) "
            )
            if not typed:
                return None
            if "=" in typed:
                split = parse_split(self.queue, card_id, typed)
                if one and not split.problem:
                    return self._ask_note(Correction(lines=split.lines, mixed=split.mixed))
                self._tell(escape_text(split.problem) if one else "Several accounts are for one card at a time.")
            else:
                matches = match_accounts(self.queue, card_id, typed, 9)
                if len(matches) == 1 or (matches and str(matches[0].id) == typed):
                    self._tell(f"{matches[0].id} {escape_text(matches[0].name)}")
                    return self._ask_note(Correction(matches[0].id))
                self._tell("Several fit:" if matches else "No account fits.")
                for each in matches:
                    self._tell(f"  {each.id} {escape_text(each.name)}{', ' + each.why if each.why else ''}")
            typed = ""

    def _ask_note(self, correction: Correction) -> Correction:
        prompt = 'Note (empty: none; before it also date=2025-01-31 vendor="A B" tags=x,y) '
        while True:
            try:
                return add_typed_details(correction, self._read_line(prompt))
            except UsageError as error:
                self._tell(escape_text(str(error)))

    def _ask_outcome(self, card_id: str) -> tuple[str | None, str | None]:
        typed = self._read_line(
            "It posts a bank line. What is that? 1 a duplicate, 2 personal, 3 to wait in suspense (empty: no) "
        )
        outcome = _OUTCOMES.get(typed, typed if typed in _OUTCOMES.values() else None)
        if outcome != "duplicate":
            return outcome, None
        for each in list_possible_duplicates(book_facts_of(self.queue), self.queue.cards[card_id]):
            self._tell(f"  {each.entry_id} {each.date} {each.amount} {escape_text(each.description)}")
        return outcome, self._read_line("A duplicate of which entry? ")

    def _decide_group(self, card_id: str) -> bool:
        group = card_group(self.queue, card_id)
        if group is None:
            self._tell("This kind of card has no group.")
            return False
        total = f"{group.total} in all" if group.total else ""
        parts = (count_noun(len(group.rows), "card"), escape_text(group.name), escape_text(group.detail), total)
        self._tell(f"{', '.join(filter(None, parts))}:")
        self._print_rows(list(group.rows))
        usable = key_bindings.group_choices(self.queue, show_card(self.queue, card_id), group.ids)
        labels = ", ".join(f"{key} {choice.label}" for key, choice in usable.items())
        while typed := self._read_line(f"For all of them: {labels} (empty: none of it) "):
            key, _, rest = typed.partition(" ")
            if key in usable:
                return self._decide_cards(usable[key], list(group.rows), rest)
            self._tell(f"{escape_text(typed)} does nothing here.")
        return False

    def _print_rows(self, rows: list[QueueRow]) -> None:
        for each in rows:
            self._tell(f"  {each.date} {each.amount} {escape_text(each.text)}")

    def _print_file(self, card_id: str, key: str) -> None:
        try:
            host = self.executor.open()
            files = card_code(host, self.queue, card_id) if key == "o" else [bank_file(host, self.queue, card_id)]
        except ClearedError as error:
            self._tell(escape_text(error))
            return
        for file in files:
            self._tell(f"{escape_text(file.name)}{f', line {file.line}' if file.line else ''}:")
            first = max(0, (file.line or 1) - 6)
            lines = file.lines[first : first + 11] if file.line else file.lines
            for number, line in enumerate(lines, first + 1):
                self._tell(f"{'this line, ' if number == file.line else ''}{number}: {escape_text(line)}")
            if file.note:
                self._tell(file.note)

    def _read_line(self, prompt: str) -> str:
        typed = self._ask(prompt)
        if typed is None:
            raise InputEnded
        return typed.strip()
