"""What the screen asks before a decision can be made: an account, a reason, what a bank line is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from rich.text import Text
from textual.app import App

from cleared.base.terminal import escape_text
from cleared.books.decisions.entry_correction import Correction
from cleared.books.review.book_cards import book_facts_of
from cleared.books.review.similar_entries import list_possible_duplicates
from cleared.books.review.vendor_lessons import approve_lesson, vendor_words
from cleared.books.teaching.matched_lines import list_matches
from cleared.books.teaching.vendor_teaching import Lesson
from cleared.cli.tui import rendering
from cleared.cli.tui.dialogs import AskAccount, AskEnter, AskText, ChooseOption
from cleared.review.action_request import UNDO, ActionRequest, ActionResult
from cleared.review.card_facts import CardChoice, QueueRow
from cleared.review.card_groups import CardGroup
from cleared.review.queue_snapshot import QueueSnapshot, number_to_type

_OUTCOMES: Final = {
    "d": ("duplicate", "duplicate: the same money was booked by another entry"),
    "p": ("personal", "personal: a draw"),
    "s": ("suspense", "suspense: the bank line waits on hold"),
}
"""Key → outcome of a bank line, label."""


class DecisionForm(Struct, frozen=True):
    """Opens the dialogs that a request still needs, then submits it. A dialog that is left with Escape ends it."""

    app: App[Any]
    queue: QueueSnapshot
    request: ActionRequest
    submit: Callable[[ActionRequest], None]

    def ask(self) -> None:
        """The first dialog is open before the next key is read."""
        verb, ids = self.request.choice.verb, self.request.cards
        if verb == "correct":
            title = f"Which account? {rendering.cut_text(self.request.about, 40)}"
            self.app.push_screen(AskAccount(title, self.queue, ids[0], one=len(ids) == 1), self._submit_correction)
        elif verb == "always" and not self.request.choice.value:
            likely = vendor_words(self.queue, ids[0])
            dialog = AskText("Which words of it name the vendor?", "as in the bank's text", likely)
            self.app.push_screen(dialog, self._ask_always)
        elif verb == "reject" and any(book_facts_of(self.queue).posts_line(self.queue.cards[i]) for i in ids):
            options = [(key, label) for key, (_, label) in _OUTCOMES.items()]
            self.app.push_screen(ChooseOption("It posts a bank line. What is that?", options), self._take_outcome)
        elif verb in ("reject", "decline"):
            self._ask_reason()
        elif verb == "approve" and (number := number_to_type(self.queue, self.queue.cards[ids[0]])):
            title = f"No dry run showed all that it may do. Type {number} to approve it all the same"
            self.app.push_screen(AskText(title, number), self._submit_words)
        else:
            self.submit(self.request)

    def _submit_words(self, words: str | None) -> None:
        if words is not None:
            self.submit(replace(self.request, words=words))

    def _ask_always(self, words: str | None) -> None:
        if words is None:
            return

        def submit_always(correction: Correction | None) -> None:
            if correction is not None:
                self.submit(replace(self.request, correction=correction, words=words))

        title = f"Always which account? {rendering.cut_text(words, 40)}"
        self.app.push_screen(AskAccount(title, self.queue, self.request.cards[0], one=False), submit_always)

    def _submit_correction(self, correction: Correction | None) -> None:
        if correction is not None:
            self.submit(replace(self.request, correction=correction))

    def _take_outcome(self, key: str | None) -> None:
        if key is None:
            return
        outcome = _OUTCOMES[key][0]
        if outcome == "duplicate":
            self._ask_duplicate()
        else:
            self._ask_reason(outcome)

    def _ask_duplicate(self) -> None:
        likely = list_possible_duplicates(book_facts_of(self.queue), self.queue.cards[self.request.cards[0]])
        lines = [f"{e.entry_id}  {e.date}  {e.amount}  {rendering.cut_text(e.description, 36)}" for e in likely]
        first = likely[0].entry_id if likely else ""
        dialog = AskText("A duplicate of which entry?", "its id", first, Text("\n".join(lines)))
        self.app.push_screen(dialog, lambda of: self._ask_reason("duplicate", of) if of else None)

    def _ask_reason(self, outcome: str | None = None, of: str | None = None) -> None:
        def submit_reason(reason: str | None) -> None:
            if reason is not None:
                self.submit(replace(self.request, reason=reason, outcome=outcome, duplicate_of=of))

        self.app.push_screen(AskText("Why?", "kept with the decision"), submit_reason)


def group_dialog(group: CardGroup, rows: Sequence[QueueRow], choices: dict[str, CardChoice]) -> ChooseOption:
    """The rows of a group, to decide about all of them with one key; ``choices``: key → choice."""
    lines = [
        f"{row.date}  {rendering.fill_text(row.amount, 10, right=True)}  {rendering.cut_text(row.text, 44)}"
        for row in rows
    ]
    parts = (f"{len(rows)} × {rendering.cut_text(group.name, 24)}", rendering.cut_text(group.detail, 24), group.total)
    options = [(key, f"{choice.label}, all {len(rows)}") for key, choice in choices.items()]
    return ChooseOption(" · ".join(filter(None, parts)), options, Text("\n".join(lines)))


def ask_about_lesson(
    app: App[Any], lesson: Lesson, submit: Callable[[ActionRequest], None], tell: Callable[[str], None]
) -> None:
    """Show the past lines of a taught vendor and what the change would have done; Enter makes it live."""
    lines = [rendering.cut_text(line, 72) for line in list_matches(lesson.lines, 200)]
    title = f"Always {rendering.cut_text(lesson.row.words, 30)} → {lesson.row.account}"
    body = Text("\n".join([lesson.difference, "", *lines]))

    def approve(taken: bool | None) -> None:
        if taken:
            submit(approve_lesson(lesson))
        else:
            tell(f"{lesson.proposal.id} waits as a card.")

    app.push_screen(AskEnter(title, body, "Enter approves it · Esc leaves it as a card"), approve)


def ask_about_undo(app: App[Any], named: ActionResult, submit: Callable[[ActionRequest], None]) -> None:
    """Show the act that undo would take back; Enter takes back that one."""

    def undo(taken: bool | None) -> None:
        if taken:
            submit(replace(UNDO, act=named.act))

    app.push_screen(AskEnter("Undo", Text(escape_text(named.text)), "Enter takes it back · Esc goes back"), undo)
