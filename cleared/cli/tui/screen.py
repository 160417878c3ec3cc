"""``cleared review`` on the full screen: one card large, the rest as a list, one key a decision.

The next card is shown at once, while a thread commits the decisions one after the other. Where one is refused, a line
says why, and its card comes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

from msgspec.structs import replace
from rich.text import Text
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.screen import Screen
from textual.widgets import Static

from cleared.base.errors import ClearedError
from cleared.base.terminal import escape_text
from cleared.books.decisions.entry_correction import Correction
from cleared.books.teaching.vendor_teaching import Lesson
from cleared.cards.kinds import INTRODUCTION
from cleared.cli.tui import rendering
from cleared.cli.tui.decision_form import DecisionForm, ask_about_lesson, ask_about_undo, group_dialog
from cleared.cli.tui.dialogs import ChooseOption, Dialog, DialogReady, ViewText
from cleared.cli.tui.key_bindings import BINDINGS, KEYS, available_keys, choice_for_key, group_choices, short_label
from cleared.cli.tui.screen_style import CALM, CSS
from cleared.review.action_request import NAME_LAST_ACT, ActionRequest, ActionResult
from cleared.review.card_actions import ActionExecutor, card_code, request_decision
from cleared.review.card_facts import CardChoice, QueueRow
from cleared.review.card_groups import card_group
from cleared.review.card_view import show_card
from cleared.review.queue_snapshot import QueueSnapshot, read_queue
from cleared.review.source_files import FileView, bank_file

CLOSING_SECONDS: Final = 0.03
"""How long a dialog may take to close after the key that ends it."""
WATCH_SECONDS: Final = 3.0
"""How often it looks whether somebody else has committed."""


class ReviewApp(App[None]):
    """The screen. What is typed goes into a queue of requests; ``_execute_requests`` works them off."""

    TITLE = "cleared review"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012
    CSS = CSS
    BINDINGS: ClassVar[list[BindingType]] = list(BINDINGS)

    def __init__(self, executor: ActionExecutor, progress_messages: list[str] | None = None) -> None:
        super().__init__()
        self.executor = executor
        self.progress_messages = progress_messages if progress_messages is not None else []
        """What the program says while it works; others append to it."""
        self.queue: QueueSnapshot = read_queue(executor.open())
        self.order: list[str] = list(self.queue.cards)
        self.rows: list[QueueRow] = self.queue.rows
        self.current = 0
        self.decided = 0
        self.message = ""
        self.closing_message = ""
        self.requests: asyncio.Queue[ActionRequest] = asyncio.Queue()
        self.pending: dict[str, int] = {}
        """Cards that a request is under way for → how many; they are not listed."""
        self.unsaved = 0
        self.executing = self.leaving = self.closing = False
        self.repeatable: ActionRequest | None = None
        self.waiting_keys: deque[events.Key] = deque()

    # -- showing ------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Container(id="body"):
            yield VerticalScroll(Static(id="shown"), id="card", can_focus=False)
            yield Static(id="list")
        yield Static(id="message")
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.register_theme(CALM)
        self.theme = "calm"
        self.query_one("#list").border_title = INTRODUCTION.rstrip(".")
        self._execute_requests()
        self.set_interval(WATCH_SECONDS, self._poll_head)
        self.set_interval(0.25, self._show_progress)
        self.call_after_refresh(self._redraw_screen)

    def on_resize(self) -> None:
        self.call_after_refresh(self._redraw_screen)

    @property
    def card_id(self) -> str | None:
        return self.rows[self.current].id if self.rows else None

    def _refresh_rows(self) -> None:
        """Bring the listed rows up to the queue, in the person's order; new cards come last."""
        cards = self.queue.cards
        order = dict.fromkeys(i for i in self.order if i in cards)
        self.order = [*order, *(i for i in cards if i not in order)]
        self.rows = [self.queue.row_of(cards[i]) for i in self.order if i not in self.pending]
        self.current = max(0, min(self.current, len(self.rows) - 1))

    def _redraw_screen(self) -> None:
        screen = self.screen_stack[0]
        width = screen.size.width
        name = rendering.cut_text(f"cleared review · {self.queue.name}", max(10, width - 42))
        progress = rendering.progress_text(self.decided, len(self.rows), self.unsaved)
        head = Text(name, rendering.STRONG, no_wrap=True)
        head.append(" " * max(1, width - 2 - head.cell_len - len(progress))).append(progress, "")
        screen.query_one("#head", Static).update(head)
        screen.query_one("#message", Static).update(Text(escape_text(self.message), no_wrap=True, overflow="ellipsis"))
        keys = self._redraw_card(screen, self.card_id) if self.card_id is not None else self._redraw_empty(screen)
        screen.query_one("#keys", Static).update(rendering.render_keys(keys, width - 2))

    def _redraw_empty(self, screen: Screen[Any]) -> list[tuple[str, str]]:
        """Say that nothing waits; the keys that do something then."""
        frame = screen.query_one("#card", VerticalScroll)
        frame.border_title = frame.border_subtitle = ""
        screen.query_one("#list", Static).display = False
        screen.query_one("#shown", Static).update(rendering.render_empty(self.decided))
        return [("u", "undo"), ("?", "help"), ("q", "quit")]

    def _redraw_card(self, screen: Screen[Any], card_id: str) -> list[tuple[str, str]]:
        """Show the current card and the list; the keys that do something for it."""
        frame, listing = screen.query_one("#card", VerticalScroll), screen.query_one("#list", Static)
        listing.display = True
        card = show_card(self.queue, card_id)
        frame.border_title = Text(f"{card.heading} · {self.current + 1} of {len(self.rows)}")
        screen.query_one("#shown", Static).update(rendering.render_card(card, max(40, frame.content_size.width)))
        size = listing.content_size
        width = size.width or screen.size.width - 4
        listing.update(rendering.render_rows(self.rows, self.current, size.height or 5, width))
        self.call_after_refresh(self._mark_more)
        keys = [(key, short_label(key, label)) for key, label in available_keys(card)]
        keys += [("s", "skip"), ("u", "undo")]
        keys += [("o", "code")] if card.has_code else []
        keys += [("f", "file")] if card.has_file else []
        return [*keys, ("?", "help"), ("q", "quit")]

    def _mark_more(self) -> None:
        """Say so where the card goes on below the edge: nobody should approve it unread without knowing."""
        card = self.screen_stack[0].query_one("#card", VerticalScroll)
        card.border_subtitle = "PgDn shows more" if self.rows and card.scroll_y < card.max_scroll_y else ""

    def _show_message(self, text: str) -> None:
        self.message = text
        self._redraw_screen()

    def _show_progress(self) -> None:
        """Show what the program says while it works, such as that it waits for another command."""
        if self.progress_messages and self.executing:
            self._show_message(self.progress_messages[-1])
        self.progress_messages.clear()

    # -- decisions, one after the other -----------------------------------------------------------------------------

    def _submit_request(self, request: ActionRequest) -> None:
        for card_id in request.cards:
            self.pending[card_id] = self.pending.get(card_id, 0) + 1
        self.unsaved += 1
        self.requests.put_nowait(request)
        self._refresh_rows()
        self._scroll_to_top()
        self._redraw_screen()

    @work
    async def _execute_requests(self) -> None:
        while True:
            request = await self.requests.get()
            self.executing = True
            result = await asyncio.to_thread(self.executor.execute_request, request)
            self.executing = False  # what it said on the way must not cover its result
            self.progress_messages.clear()
            self._note_result(request, result)
            if len(result.cards) < len(request.cards) or request.choice.verb == "undo" or self.requests.empty():
                await self._reload_queue()
            self._release_cards(request, result)
            if request.choice.verb == "undo" and result.ok:
                self._select_card(result.cards)
            self.unsaved -= 1  # only now: what is shown with it is all there
            self._redraw_screen()
            if self.leaving and not self.unsaved:
                self._close_app()

    def _note_result(self, request: ActionRequest, result: ActionResult) -> None:
        if request.choice.verb == "name" and result.ok:
            return ask_about_undo(self, result, self._submit_request)
        self.message, self.repeatable = f"{'✓' if result.ok else '! Not done:'} {result.text}", None
        if not result.ok:
            return
        undone = request.choice.verb == "undo"
        self.decided = max(0, self.decided - max(1, len(result.cards))) if undone else self.decided + len(result.cards)
        if isinstance(result.offer, Lesson):
            ask_about_lesson(self, result.offer, self._submit_request, self._show_message)
        is_one_account = isinstance(request.correction, Correction) and request.correction.account is not None
        if result.similar_cards and is_one_account:
            about, like_it = f"{len(result.similar_cards)} cards", CardChoice("correct", request.choice.label)
            self.repeatable = ActionRequest(like_it, result.similar_cards, about, request.correction)
            self.message += f". {len(result.similar_cards)} more like it: = corrects them the same way"

    def _release_cards(self, request: ActionRequest, result: ActionResult) -> None:
        """List the request's cards again, but for those that it settled."""
        for card_id in request.cards:
            self.pending[card_id] -= 1
            if not self.pending[card_id]:
                del self.pending[card_id]
            if card_id in result.cards and request.choice.verb != "undo":
                self.queue.cards.pop(card_id, None)
            elif result.ok and card_id in self.order:  # decided as the first of two: it waits for the other
                self.order.remove(card_id)
                self.order.append(card_id)
        self._refresh_rows()

    async def _reload_queue(self) -> None:
        try:
            self.queue = await asyncio.to_thread(lambda: read_queue(self.executor.open()))
        except (ClearedError, OSError) as error:
            self.message = f"! {error}"
        self._refresh_rows()

    def _select_card(self, cards: tuple[str, ...]) -> None:
        at = next((n for n, r in enumerate(self.rows) if r.id in cards), None)
        if at is not None:
            self.current = at
            self._scroll_to_top()

    @work(exclusive=True, group="watch")
    async def _poll_head(self) -> None:
        """Read the queue again when somebody else has committed."""
        if self.unsaved:
            return
        before = self.queue.head

        def read_head() -> str:
            with self.executor.open().open_for_reading() as repo:
                return repo.read_head()

        try:
            now = await asyncio.to_thread(read_head)
        except (ClearedError, OSError):
            return
        if now != before and not self.unsaved:
            at = self.card_id
            await self._reload_queue()
            self._select_card((at,) if at else ())
            self._redraw_screen()

    # -- keys typed faster than the screen ---------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Keep keys that are typed while a dialog opens or closes: none is lost, none goes to the wrong place."""
        if isinstance(event, events.Key) and not self._accepts_keys():
            self.waiting_keys.append(event)
            return
        await super().on_event(event)
        if isinstance(event, events.Key) and isinstance(self.screen, Dialog) and self._closes_dialog(event):
            self.closing = True
            self.set_timer(CLOSING_SECONDS, self._dialog_closed)

    def _accepts_keys(self) -> bool:
        return not self.closing and (not isinstance(self.screen, Dialog) or self.screen.ready)

    def _closes_dialog(self, event: events.Key) -> bool:
        return event.key in ("enter", "escape") or isinstance(self.screen, ChooseOption)

    def _dialog_closed(self) -> None:
        self.closing = False
        self.post_message(DialogReady())

    async def on_dialog_ready(self) -> None:
        while self.waiting_keys and self._accepts_keys():
            await self.on_event(self.waiting_keys.popleft())

    # -- keys -------------------------------------------------------------------------------------------------------

    def action_choose(self, key: str) -> None:
        if self.card_id is None:
            return
        choice = choice_for_key(show_card(self.queue, self.card_id), key)
        if choice is None:
            self._show_message(f"{key} does nothing here; ? shows the keys.")
        else:
            self._ask_and_submit(choice, [self.rows[self.current]])

    def _ask_and_submit(self, choice: CardChoice, rows: list[QueueRow]) -> None:
        """Ask for what the choice needs, then submit it."""
        rows = [row for row in rows if row.id in self.queue.cards]
        if not rows:
            self._show_message("! Somebody else has decided that meanwhile.")
            return
        request = request_decision(self.queue, choice, rows)
        DecisionForm(self, self.queue, request, self._submit_request).ask()

    def action_skip(self) -> None:
        if self.card_id is not None:
            self.order.remove(self.card_id)
            self.order.append(self.rows[self.current].id)
            self._refresh_rows()
            self._scroll_to_top()
            self._redraw_screen()

    def action_group(self) -> None:
        if self.card_id is None:
            return
        group = card_group(self.queue, self.card_id)
        if group is None:
            self._show_message("This kind of card has no group.")
            return
        card = show_card(self.queue, self.card_id)
        rows = [row for row in group.rows if row.id not in self.pending]
        choices = group_choices(self.queue, card, [row.id for row in rows])

        def decide_group(key: str | None) -> None:
            if key is not None:
                self._ask_and_submit(choices[key], rows)

        self.push_screen(group_dialog(group, rows, choices), decide_group)

    def action_same(self) -> None:
        request, self.repeatable = self.repeatable, None
        rows = [row for row in self.rows if request is not None and row.id in request.cards]
        if request is None or not rows:
            self._show_message("There is nothing to correct the same way.")
            return
        again = request_decision(self.queue, request.choice, rows)
        self._submit_request(replace(again, correction=request.correction))

    def action_undo(self) -> None:
        self._submit_request(NAME_LAST_ACT)

    def action_move(self, by: int) -> None:
        self.current = max(0, min(self.current + by, len(self.rows) - 1))
        self._scroll_to_top()
        self._redraw_screen()

    def action_page(self, by: int) -> None:
        card = self.screen.query_one("#card", VerticalScroll)
        card.scroll_relative(y=by * max(1, card.size.height - 2), animate=False)
        self.call_after_refresh(self._mark_more)

    def _scroll_to_top(self) -> None:
        self.screen_stack[0].query_one("#card", VerticalScroll).scroll_home(animate=False)

    @work(exclusive=True, group="look")
    async def action_code(self) -> None:
        card_id, queue = self.card_id, self.queue
        if card_id is not None:
            self._show_message("Looking for the code …")
            await self._view_behind(lambda: card_code(self.executor.open(), queue, card_id))

    @work(exclusive=True, group="look")
    async def action_file(self) -> None:
        card_id, queue = self.card_id, self.queue
        if card_id is not None:
            await self._view_behind(lambda: [bank_file(self.executor.open(), queue, card_id)])

    async def _view_behind(self, read_files: Callable[[], Sequence[FileView]]) -> None:
        """Show what is behind a card, or say why it cannot be."""
        try:
            files = await asyncio.to_thread(read_files)
        except ClearedError as error:
            self._show_message(f"! {error}")
            return
        self._show_message("")
        self._view_files(files)

    def _view_files(self, files: Sequence[FileView]) -> None:
        if not files or isinstance(self.screen, Dialog):
            return
        only = files[0] if len(files) == 1 else None
        title = only.name if only else f"{len(files)} files"
        self.push_screen(ViewText(title, rendering.render_files(files), only.line if only else None))

    def action_help(self) -> None:
        self.push_screen(ViewText("Keys", rendering.render_help(KEYS), wrap=True))

    def action_leave(self) -> None:
        self.leaving = True
        if self.unsaved:
            self._show_message("Leaving as soon as the last decision is saved …")
        else:
            self._close_app()

    def _close_app(self) -> None:
        left = len(self.rows)
        self.closing_message = (
            f"{self.decided} decided, {left} left." if self.decided or left else "Nothing waits for you."
        )
        self.exit()
