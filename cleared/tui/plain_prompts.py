"""The queue as plain prompts: one card after the other in sentences, for screen readers, pipes and simple terminals."""

from __future__ import annotations

from collections.abc import Callable

from cleared.cards.kinds import ENTRY
from cleared.errors import ClearedError, UsageError
from cleared.review.account_choice import match_accounts, parse_split
from cleared.review.card_groups import CardGroup, card_group, possible_duplicates
from cleared.review.card_view import CardChoice, CardView, cards_summary, show_card
from cleared.review.entry_decisions import Correction, add_typed_details
from cleared.review.queue_snapshot import QueueRow, QueueSnapshot, read_queue
from cleared.review.source_files import bank_file
from cleared.terminal import escape_text
from cleared.tui import key_bindings
from cleared.tui.key_actions import UNDO, ActionExecutor, ActionRequest, ActionResult, card_code

Ask = Callable[[str], str | None]
"""Shows a prompt and gives the line that was typed; None at the end of the input."""
Tell = Callable[[str], None]

_OUTCOMES = {"1": "duplicate", "2": "personal", "3": "suspense"}


class InputEnded(Exception):
    """Nothing more will be typed."""


class PlainReview:
    """One sitting at the queue."""

    def __init__(self, acts: ActionExecutor, ask: Ask, tell: Tell) -> None:
        self.acts, self._ask, self._tell = acts, ask, tell
        self.done = 0
        self.skipped: list[str] = []
        self.queue: QueueSnapshot = read_queue(acts.open())
        self.first: str | None = None
        """The card to show next, where that is not simply the oldest."""

    def run_prompts(self) -> None:
        """Until ``q`` or the end of the input; not at all where nothing waits."""
        try:
            going = bool(self.queue.cards)
            while going:
                identity = self._next_card()
                going = self._ask_about_card(identity) if identity is not None else self._ask_at_end()
        except InputEnded:
            self._tell("")
        left = len(self.queue.cards)
        if not left and not self.done:
            self._tell("Nothing waits for you.")
            return
        self._tell(f"{_count_text(self.done, 'decision')} made. {_count_text(left, 'card')} left.")

    def _next_card(self) -> str | None:
        first, self.first = self.first, None
        if first in self.queue.cards:
            return first
        return next((i for i in self.queue.cards if i not in self.skipped), None)

    def _ask_at_end(self) -> bool:
        """All cards are decided or skipped. False for ``q``."""
        self._tell("")
        if self.queue.cards:
            again = f"Enter shows the {_count_text(len(self.queue.cards), 'skipped card')} again"
        else:
            again = "Nothing waits for you"
        typed = self._read_line(f"{again}; u undo, q quit: ")
        if typed == "u":
            self._execute_request(UNDO)
        elif typed != "q":
            self.skipped.clear()
            self.queue = read_queue(self.acts.open())
        return typed != "q"

    def _ask_about_card(self, identity: str) -> bool:
        """Show a card and take what is said of it. False for ``q``."""
        card = show_card(self.queue, identity)
        self._print_card(card)
        while True:
            offered = ", ".join(f"{key} {escape_text(label)}" for key, label in key_bindings.available_keys(card))
            looks = f"{'o code, ' if card.has_code else ''}{'f file, ' if card.has_file else ''}"
            typed = self._read_line(f"{offered}, s skip, u undo, {looks}? help, q quit: ")
            key, _, rest = typed.partition(" ")
            if key == "q":
                return False
            if key in ("?", "help", ""):
                for name, _, about in key_bindings.KEYS:
                    if name != "=":
                        self._tell(f"{name}: {about}")
            elif key == "s":
                self.skipped.append(identity)
                return True
            elif key == "u":
                self._execute_request(UNDO)
                return True
            elif key in ("o", "f"):
                self._print_file(identity, key)
            elif key == "g":
                if self._decide_group(identity):
                    return True
            else:
                choice = key_bindings.choice_for_key(card, key)
                if choice is None:
                    self._tell(f"{escape_text(typed)} does nothing here.")
                elif self._decide_cards(choice, [self.queue.row_of(self.queue.cards[identity])], rest):
                    return True

    def _print_card(self, card: CardView) -> None:
        left = len(self.queue.cards)
        self._tell("")
        self._tell(f"{card.heading}. {_count_text(left, 'card')} left, {self.done} done.")
        self._tell(escape_text(" ".join(x for x in (card.amount, card.title) if x)))
        for section in card.sections:
            self._tell(f"{escape_text(section.title)}:")
            for line in section.lines:
                self._tell(f"  {escape_text(line)}")
            for cells in [section.columns, *section.rows] if section.columns else section.rows:
                self._tell("  " + escape_text(", ".join(c for c in cells if c)))

    def _decide_cards(self, choice: CardChoice, rows: list[QueueRow], typed: str) -> bool:
        """Ask for what the choice needs, and do it. False where it was called off."""
        ids, about = tuple(r.id for r in rows), cards_summary(rows)
        wish = ActionRequest(choice, ids, about)
        if choice.verb == "correct":
            correction = self._ask_correction(ids[0], typed, len(ids) == 1)
            if correction is None:
                return False
            wish = ActionRequest(choice, ids, about, correction)
        elif choice.verb in ("reject", "decline"):
            outcome = of = None
            if choice.verb == "reject" and any(self.queue.posts_line(self.queue.cards[i]) for i in ids):
                outcome, of = self._ask_outcome(ids[0])
                if outcome is None:
                    return False
            reason = typed or self._read_line("Why? (empty: do not reject) ")
            if not reason:
                return False
            wish = ActionRequest(choice, ids, about, None, reason, outcome, of)
        self._execute_request(wish)
        return True

    def _execute_request(self, wish: ActionRequest) -> None:
        said: ActionResult = self.acts.execute_request(wish)
        self._tell(escape_text(said.text) if said.ok else f"Not done: {escape_text(said.text)}")
        self.queue = read_queue(self.acts.open())
        if said.ok:
            undone = wish.choice.verb == "undo"
            self.done = max(0, self.done - max(1, len(said.cards))) if undone else self.done + len(said.cards)
            self.skipped += [i for i in wish.cards if i not in said.cards]  # it waits for another reviewer
            self.first = next((i for i in said.cards if undone and i in self.queue.cards), None)
        more = [i for i in said.siblings if i in self.queue.cards]
        if more and wish.correction is not None and wish.correction.account is not None:
            rows = [self.queue.row_of(self.queue.cards[i]) for i in more]
            self._print_rows(rows)
            if (
                self._read_line(f"{_count_text(len(more), 'more card')} like it. Correct them the same way? (y or n) ")
                == "y"
            ):
                self._execute_request(ActionRequest(wish.choice, tuple(more), cards_summary(rows), wish.correction))

    def _ask_correction(self, identity: str, typed: str, one: bool) -> Correction | None:
        while True:
            typed = typed or self._read_line(
                "Account: its number, part of its name, or several as 5020=30 5060= (empty: no) "
            )
            if not typed:
                return None
            if "=" in typed:
                split = parse_split(self.queue, identity, typed)
                if one and not split.problem:
                    return self._ask_note(Correction(lines=split.lines))
                self._tell(escape_text(split.problem) if one else "Several accounts are for one card at a time.")
            else:
                found = match_accounts(self.queue, identity, typed, 9)
                if len(found) == 1 or (found and str(found[0].id) == typed):
                    self._tell(f"{found[0].id} {escape_text(found[0].name)}")
                    return self._ask_note(Correction(found[0].id))
                self._tell("Several fit:" if found else "No account fits.")
                for each in found:
                    self._tell(f"  {each.id} {escape_text(each.name)}{', ' + each.why if each.why else ''}")
            typed = ""

    def _ask_note(self, correction: Correction) -> Correction:
        asked = 'Note (empty: none; before it also date=2025-01-31 vendor="A B" tags=x,y) '
        while True:
            try:
                return add_typed_details(correction, self._read_line(asked))
            except UsageError as error:
                self._tell(escape_text(str(error)))

    def _ask_outcome(self, identity: str) -> tuple[str | None, str | None]:
        said = self._read_line(
            "It posts a bank line. What is that? 1 a duplicate, 2 personal, 3 to wait in suspense (empty: no) "
        )
        outcome = _OUTCOMES.get(said, said if said in _OUTCOMES.values() else None)
        if outcome != "duplicate":
            return outcome, None
        for each in possible_duplicates(self.queue, self.queue.cards[identity]):
            self._tell(f"  {each.entry_id} {each.date} {each.amount} {escape_text(each.description)}")
        return outcome, self._read_line("A duplicate of which entry? ")

    def _decide_group(self, identity: str) -> bool:
        found: CardGroup | None = card_group(self.queue, identity)
        if found is None:
            self._tell("This kind of card has no group.")
            return False
        self._tell(
            f"{_count_text(len(found.rows), 'card')}, {escape_text(found.vendor)}, "
            f"{escape_text(found.accounts)}, {found.total} in all:"
        )
        self._print_rows(list(found.rows))
        card = show_card(self.queue, identity)
        verbs = ("confirm", "correct", "reject") if found.kind == ENTRY.name else ("correct",)
        offered = {k: key_bindings.choice_for_key(card, k) for k in "acr"}
        usable = {k: c for k, c in offered.items() if c is not None and c.verb in verbs}
        words = ", ".join(f"{k} {c.label}" for k, c in usable.items())
        key, _, rest = self._read_line(f"For all of them: {words} (empty: none of it) ").partition(" ")
        return key in usable and self._decide_cards(usable[key], list(found.rows), rest)

    def _print_rows(self, rows: list[QueueRow]) -> None:
        for each in rows:
            self._tell(f"  {each.date} {each.amount} {escape_text(each.text)}")

    def _print_file(self, identity: str, key: str) -> None:
        try:
            host = self.acts.open()
            texts = card_code(host, self.queue, identity) if key == "o" else [
                bank_file(host, self.queue, identity)
            ]  # fmt: skip
        except ClearedError as error:
            self._tell(escape_text(error))
            return
        for text in texts:
            self._tell(f"{escape_text(text.name)}{f', line {text.line}' if text.line else ''}:")
            first = max(0, (text.line or 1) - 6)
            shown = text.lines[first : first + 11] if text.line else text.lines
            for number, line in enumerate(shown, first + 1):
                self._tell(f"{'this line, ' if number == text.line else ''}{number}: {escape_text(line)}")
            if text.note:
                self._tell(text.note)

    def _read_line(self, prompt: str) -> str:
        typed = self._ask(prompt)
        if typed is None:
            raise InputEnded
        return typed.strip()


def _count_text(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
