"""``cleared review`` on the full screen: one card large, the rest as a list, one key a decision.

A decision is put in a line and the next card shown at once; a thread makes the commits one after the other. Where one
is refused, that is told in a line and its card comes back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import ClassVar, Final

from rich.text import Text
from textual import events, work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, VerticalScroll
from textual.theme import Theme
from textual.widgets import Static

from cleared.errors import ClearedError
from cleared.review.card_groups import card_group, possible_duplicates
from cleared.review.card_view import CardChoice, cards_summary, show_card
from cleared.review.entry_decisions import Correction
from cleared.review.queue_snapshot import QueueRow, QueueSnapshot, read_queue
from cleared.review.source_files import bank_file
from cleared.terminal import escape_text
from cleared.tui import key_bindings, rendering
from cleared.tui.dialogs import AskAccount, AskText, Choose, Dialog, Look, TakesKeys
from cleared.tui.key_actions import UNDO, ActionExecutor, ActionRequest, ActionResult, card_code

CLOSING_SECONDS: Final = 0.03
"""How long a dialog may take to close after the key that ends it."""
WATCH_SECONDS: Final = 3.0
"""How often it is looked whether somebody else has committed."""
_OUTCOMES: Final = (
    ("d", "duplicate: the same money was booked by another entry"), ("p", "personal: a draw"),
    ("s", "suspense: the bank line waits on hold"),
)  # fmt: skip
_OUTCOME: Final = {"d": "duplicate", "p": "personal", "s": "suspense"}

CALM: Final = Theme(
    name="calm", primary="#8fb3d9", secondary="#9aa7b5", accent="#e0b870", background="#14181d", surface="#14181d",
    panel="#1c2229", foreground="#dde3ea", dark=True,
)  # fmt: skip


class ReviewApp(App[None]):
    """The screen."""

    TITLE = "cleared review"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012
    CSS = """
    Screen { layout: vertical; background: $background; }
    #head { height: 1; padding: 0 1; background: $panel; color: $foreground; }
    #body { height: 1fr; layout: vertical; }
    #card { height: 1fr; border: round $secondary; border-title-color: $primary; border-title-style: bold;
            border-subtitle-color: $accent; padding: 0 1; scrollbar-size-vertical: 1; }
    #card:focus { border: round $secondary; }
    #list { height: 7; border: round $panel; border-title-color: $secondary; padding: 0 1; }
    .-wide #body { layout: horizontal; }
    .-wide #card { width: 1fr; }
    .-wide #list { width: 52; height: 1fr; }
    #said { height: 1; padding: 0 2; color: $accent; }
    #keys { height: 1; padding: 0 1; background: $panel; }
    Dialog { align: center middle; background: $background 60%; }
    Dialog .frame { width: 76; max-width: 96%; height: auto; max-height: 92%; border: round $primary;
                    border-title-color: $primary; border-title-style: bold; background: $background; padding: 0 1; }
    Dialog .hint { color: $secondary; height: 1; margin-top: 1; }
    Dialog Input { border: none; height: 1; background: $panel; padding: 0 1; margin-top: 1; }
    Dialog Input:focus { border: none; }
    Dialog .covered { height: auto; max-height: 10; margin-bottom: 1; }
    AskAccount #found { height: 9; margin-top: 1; }
    Look .frame { width: 96%; height: 92%; }
    Look .wide { width: auto; }
    Look .pane { overflow-x: auto; scrollbar-size-horizontal: 1; height: 1fr; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(k, f"choose('{k}')") for k in "acrtw123456789"),
        Binding("s", "skip"), Binding("g", "group"), Binding("o", "code"), Binding("f", "file"), Binding("u", "undo"),
        Binding("equals_sign", "same"), Binding("question_mark", "help"), Binding("q", "leave"),
        Binding("down,j", "move(1)"), Binding("up,k", "move(-1)"), Binding("home", "move(-1000000)"),
        Binding("end", "move(1000000)"), Binding("pagedown,space", "page(1)"), Binding("pageup", "page(-1)"),
    ]  # fmt: skip

    def __init__(self, acts: ActionExecutor, heard: list[str] | None = None) -> None:
        super().__init__()
        self.acts, self.heard = acts, heard if heard is not None else []
        self.queue: QueueSnapshot = read_queue(acts.open())
        self.order: list[str] = list(self.queue.cards)
        self.listed: list[QueueRow] = self.queue.rows
        self.current = 0
        self.done = 0
        self.said = ""
        self.parting = ""
        self.wishes: asyncio.Queue[ActionRequest] = asyncio.Queue()
        self.pending: dict[str, int] = {}
        """Cards that a decision is under way for, which are not listed."""
        self.waiting = 0
        self.leaving = False
        self.same: ActionRequest | None = None
        self.ahead: deque[events.Key] = deque()
        self.closing = False

    # -- looks ------------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static(id="head")
        with Container(id="body"):
            yield VerticalScroll(Static(id="shown"), id="card", can_focus=False)
            yield Static(id="list")
        yield Static(id="said")
        yield Static(id="keys")

    def on_mount(self) -> None:
        self.register_theme(CALM)
        self.theme = "calm"
        self._execute_requests()
        self.set_interval(WATCH_SECONDS, self._poll_head)
        self.set_interval(0.25, self._show_progress)
        self.call_after_refresh(self._redraw_screen)

    def on_resize(self) -> None:
        self.call_after_refresh(self._redraw_screen)

    @property
    def identity(self) -> str | None:
        return self.listed[self.current].id if self.listed else None

    def _refresh_rows(self) -> None:
        """The rows that are listed, after the queue or the order has changed; the current card stays where it is."""
        known = self.queue.cards
        kept = {i: None for i in self.order if i in known}
        self.order = [*kept, *(i for i in known if i not in kept)]
        self.listed = [self.queue.row_of(known[i]) for i in self.order if i not in self.pending]
        self.current = max(0, min(self.current, len(self.listed) - 1))

    def _redraw_screen(self) -> None:
        screen = self.screen_stack[0]
        width = screen.size.width
        left = len(self.listed)
        name = rendering.cut_text(f"cleared review · {self.queue.name}", max(10, width - 42))
        how = rendering.progress_text(self.done, left, self.waiting)
        head = Text(name, rendering.STRONG, no_wrap=True)
        head.append(" " * max(1, width - 2 - head.cell_len - len(how))).append(how, "")
        screen.query_one("#head", Static).update(head)
        screen.query_one("#said", Static).update(Text(escape_text(self.said), no_wrap=True, overflow="ellipsis"))
        card, listing = screen.query_one("#card", VerticalScroll), screen.query_one("#list", Static)
        shown = screen.query_one("#shown", Static)
        listing.display = bool(self.listed)
        if self.identity is None:
            card.border_title = ""
            card.border_subtitle = ""
            shown.update(rendering.render_empty(self.done))
            offers = [("u", "undo"), ("?", "help"), ("q", "quit")]
        else:
            found = show_card(self.queue, self.identity)
            card.border_title = Text(f"{found.heading} · {self.current + 1} of {left}")
            shown.update(rendering.render_card(found, max(40, card.content_size.width)))
            size = listing.content_size
            listing.update(rendering.render_rows(self.listed, self.current, size.height or 5, size.width or width - 4))
            offers = [(key, _short_label(key, label)) for key, label in key_bindings.available_keys(found)]
            offers += [("s", "skip"), ("u", "undo")]
            offers += [("o", "code")] if found.has_code else []
            offers += [("f", "file")] if found.has_file else []
            offers += [("?", "help"), ("q", "quit")]
            self.call_after_refresh(self._mark_more)
        screen.query_one("#keys", Static).update(rendering.render_keys(offers, width - 2))

    def _mark_more(self) -> None:
        """Nobody should approve what lies below the edge without knowing that there is more."""
        card = self.screen_stack[0].query_one("#card", VerticalScroll)
        card.border_subtitle = "PgDn shows more" if self.listed and card.scroll_y < card.max_scroll_y else ""

    def _show_message(self, text: str) -> None:
        self.said = text
        self._redraw_screen()

    def _show_progress(self) -> None:
        """What the program says meanwhile, such as that it waits for another command; how it went comes last."""
        if self.heard and self.waiting:
            self._show_message(self.heard[-1])
        self.heard.clear()

    # -- decisions, one after the other -----------------------------------------------------------------------------

    def _submit_request(self, wish: ActionRequest) -> None:
        for identity in wish.cards:
            self.pending[identity] = self.pending.get(identity, 0) + 1
        self.waiting += 1
        self.wishes.put_nowait(wish)
        self._refresh_rows()
        self._scroll_to_top()
        self._redraw_screen()

    @work
    async def _execute_requests(self) -> None:
        while True:
            wish = await self.wishes.get()
            said = await asyncio.to_thread(self.acts.execute_request, wish)
            self._note_result(wish, said)
            if len(said.cards) < len(wish.cards) or wish.choice.verb == "undo" or self.wishes.empty():
                await self._reload_queue()
            self._release_cards(wish, said)
            if wish.choice.verb == "undo" and said.ok:
                self._select_card(said.cards)
            self.waiting -= 1  # only now: what is shown with it is all there
            self._redraw_screen()
            if self.leaving and not self.waiting:
                self._close_app()

    def _note_result(self, wish: ActionRequest, said: ActionResult) -> None:
        self.said = f"{'✓' if said.ok else '! Not done:'} {said.text}"
        self.same = None
        if not said.ok:
            return
        undone = wish.choice.verb == "undo"
        self.done = max(0, self.done - max(1, len(said.cards))) if undone else self.done + len(said.cards)
        if said.siblings and wish.correction is not None and wish.correction.account is not None:
            self.same = ActionRequest(wish.choice, said.siblings, f"{len(said.siblings)} cards", wish.correction)
            self.said += f". {len(said.siblings)} more like it: = corrects them the same way"

    def _release_cards(self, wish: ActionRequest, said: ActionResult) -> None:
        """Its cards may be listed again; those that are settled, but were not read again yet, are not."""
        for identity in wish.cards:
            self.pending[identity] -= 1
            if not self.pending[identity]:
                del self.pending[identity]
            if identity in said.cards and wish.choice.verb != "undo":
                self.queue.cards.pop(identity, None)
            elif said.ok and identity in self.order:  # the first of two has decided: it waits for somebody else
                self.order.remove(identity)
                self.order.append(identity)
        self._refresh_rows()

    async def _reload_queue(self) -> None:
        try:
            self.queue = await asyncio.to_thread(lambda: read_queue(self.acts.open()))
        except (ClearedError, OSError) as error:
            self.said = f"! {error}"
        self._refresh_rows()

    def _select_card(self, cards: tuple[str, ...]) -> None:
        at = next((n for n, r in enumerate(self.listed) if r.id in cards), None)
        if at is not None:
            self.current = at
            self._scroll_to_top()

    @work(exclusive=True, group="watch")
    async def _poll_head(self) -> None:
        """Take up what somebody else has committed."""
        if self.waiting:
            return
        before = self.queue.head

        def read_head() -> str:
            with self.acts.open().open_for_reading() as repo:
                return repo.read_head()

        try:
            now = await asyncio.to_thread(read_head)
        except (ClearedError, OSError):
            return
        if now != before and not self.waiting:
            at = self.identity
            await self._reload_queue()
            self._select_card((at,) if at else ())
            self._redraw_screen()

    # -- keys typed faster than the screen ---------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Keys wait for a dialog that is being opened or closed: none is lost, none goes to the wrong place."""
        if isinstance(event, events.Key) and not self._accepts_keys():
            self.ahead.append(event)
            return
        await super().on_event(event)
        if isinstance(event, events.Key) and isinstance(self.screen, Dialog) and self._closes_dialog(event):
            self.closing = True
            self.set_timer(CLOSING_SECONDS, self._dialog_closed)

    def _accepts_keys(self) -> bool:
        return not self.closing and (not isinstance(self.screen, Dialog) or self.screen.ready)

    def _closes_dialog(self, event: events.Key) -> bool:
        return event.key in ("enter", "escape") or isinstance(self.screen, Choose)

    def _dialog_closed(self) -> None:
        self.closing = False
        self.post_message(TakesKeys())

    async def on_takes_keys(self) -> None:
        while self.ahead and self._accepts_keys():
            await self.on_event(self.ahead.popleft())

    # -- keys -------------------------------------------------------------------------------------------------------

    def action_choose(self, key: str) -> None:
        if self.identity is None:
            return
        choice = key_bindings.choice_for_key(show_card(self.queue, self.identity), key)
        if choice is None:
            self._show_message(f"{key} does nothing here; ? shows the keys.")
        else:
            self._ask_and_submit(choice, [self.listed[self.current]])

    def _ask_and_submit(self, choice: CardChoice, rows: list[QueueRow]) -> None:
        """Ask for what the choice needs, then put it in the line. The first question is there before the next key."""
        queue = self.queue
        rows = [r for r in rows if r.id in queue.cards]
        if not rows:
            self._show_message("! Somebody else has decided that meanwhile.")
            return
        ids, about = tuple(r.id for r in rows), cards_summary(rows)
        plain = ActionRequest(choice, ids, about)

        def submit_correction(correction: Correction | None) -> None:
            if correction is not None:
                self._submit_request(replace(plain, correction=correction))

        def ask_reason(outcome: str | None = None, of: str | None = None) -> None:
            def submit_reason(reason: str | None) -> None:
                if reason is not None:
                    self._submit_request(replace(plain, reason=reason, outcome=outcome, of=of))

            self.push_screen(AskText("Why?", "kept with the decision"), submit_reason)

        def take_outcome(key: str | None) -> None:
            if key == "d":
                self.push_screen(
                    self._ask_duplicate(queue, ids[0]), lambda of: ask_reason("duplicate", of) if of else None
                )
            elif key is not None:
                ask_reason(_OUTCOME[key])

        if choice.verb == "correct":
            title = f"Which account? {rendering.cut_text(about, 40)}"
            self.push_screen(AskAccount(title, queue, ids[0], one=len(ids) == 1), submit_correction)
        elif choice.verb == "reject" and any(queue.posts_line(queue.cards[i]) for i in ids):
            self.push_screen(Choose("It posts a bank line. What is that?", _OUTCOMES), take_outcome)
        elif choice.verb in ("reject", "decline"):
            ask_reason()
        else:
            self._submit_request(plain)

    def _ask_duplicate(self, queue: QueueSnapshot, identity: str) -> AskText:
        likely = possible_duplicates(queue, queue.cards[identity])
        lines = "\n".join(
            f"{e.entry_id}  {e.date}  {e.amount}  {rendering.cut_text(e.description, 36)}" for e in likely
        )
        first = likely[0].entry_id if likely else ""
        return AskText("A duplicate of which entry?", "its id", first, Text(lines))

    def action_skip(self) -> None:
        if self.identity is not None:
            self.order.remove(self.identity)
            self.order.append(self.listed[self.current].id)
            self._refresh_rows()
            self._scroll_to_top()
            self._redraw_screen()

    def action_group(self) -> None:
        if self.identity is None:
            return
        found = card_group(self.queue, self.identity)
        if found is None:
            self._show_message("This kind of card has no group.")
            return
        card = show_card(self.queue, self.identity)
        listed = [r for r in found.rows if r.id not in self.pending]
        usable = {k: c for k in "acr" if (c := key_bindings.choice_for_key(card, k)) is not None and c.verb != "answer"}
        body = Text(
            "\n".join(
                f"{r.date}  {rendering.fill_text(r.amount, 10, right=True)}  {rendering.cut_text(r.text, 44)}"
                for r in listed
            )
        )
        vendor, accounts = rendering.cut_text(found.vendor, 24), rendering.cut_text(found.accounts, 24)
        title = f"{len(listed)} × {vendor} · {accounts} · {found.total}"
        options = [(k, f"{c.label}, all {len(listed)}") for k, c in usable.items()]
        self.push_screen(
            Choose(title, options, body),
            lambda key: self._ask_and_submit(usable[key], listed) if key is not None else None,
        )

    def action_same(self) -> None:
        wish, self.same = self.same, None
        ids = tuple(r.id for r in self.listed if wish is not None and r.id in wish.cards)
        if wish is None or not ids:
            self._show_message("There is nothing to correct the same way.")
            return
        self._submit_request(
            ActionRequest(wish.choice, ids, f"{len(ids)} cards" if len(ids) > 1 else "one more", wish.correction)
        )

    def action_undo(self) -> None:
        self._submit_request(UNDO)

    def action_move(self, by: int) -> None:
        self.current = max(0, min(self.current + by, len(self.listed) - 1))
        self._scroll_to_top()
        self._redraw_screen()

    def action_page(self, by: int) -> None:
        card = self.screen.query_one("#card", VerticalScroll)
        card.scroll_relative(y=by * max(1, card.size.height - 2), animate=False)
        self.call_after_refresh(self._mark_more)

    def _scroll_to_top(self) -> None:
        self.screen_stack[0].query_one("#card", VerticalScroll).scroll_home(animate=False)

    def action_code(self) -> None:
        self._open_code()

    @work(exclusive=True, group="look")
    async def _open_code(self) -> None:
        identity, queue = self.identity, self.queue
        if identity is None:
            return
        self._show_message("Looking for the code …")
        try:
            texts = await asyncio.to_thread(lambda: card_code(self.acts.open(), queue, identity))
        except ClearedError as error:
            self._show_message(f"! {error}")
            return
        self._show_message("")
        self._view_texts(texts)

    @work(exclusive=True, group="look")
    async def action_file(self) -> None:
        identity, queue = self.identity, self.queue
        if identity is None:
            return
        try:
            text = await asyncio.to_thread(lambda: bank_file(self.acts.open(), queue, identity))
        except ClearedError as error:
            self._show_message(f"! {error}")
            return
        self._view_texts([text])

    def _view_texts(self, texts: object) -> None:
        assert isinstance(texts, list)
        if not texts or isinstance(self.screen, Dialog):
            return
        body = Text(no_wrap=True)
        for text in texts:
            if len(texts) > 1:
                body.append(f"{escape_text(text.name)}\n", rendering.STRONG)
            if text.note:
                body.append(f"{text.note}\n", rendering.QUIET)
            body.append_text(rendering.render_file(text) if text.line else rendering.render_changes(text))
        title = texts[0].name if len(texts) == 1 else f"{len(texts)} files"
        self.push_screen(Look(title, body, texts[0].line if len(texts) == 1 else None))

    def action_help(self) -> None:
        lines = Text()
        for key, _, about in key_bindings.KEYS:
            lines.append(f" {key:>3}  ", rendering.STRONG).append(f"{about}\n")
        lines.append(" ↑ ↓  ", rendering.STRONG).append("Move in the list; PgUp and PgDn in the card\n")
        self.push_screen(Look("Keys", lines, wrap=True))

    def action_leave(self) -> None:
        self.leaving = True
        if self.waiting:
            self._show_message("Leaving as soon as the last decision is saved …")
        else:
            self._close_app()

    def _close_app(self) -> None:
        left = len(self.listed)
        self.parting = f"{self.done} decided, {left} left." if self.done or left else "Nothing waits for you."
        self.exit()


_SHORT: Final = {
    "Confirm as it is": "approve", "Correct the account": "correct", "Post it to an account": "post",
    "Approve: it becomes live": "approve", "Reject": "reject", "Run it again now": "try again",
}  # fmt: skip


def _short_label(key: str, label: str) -> str:
    """A word for the line of keys."""
    if key == "g":
        return label.removesuffix(" of this kind")
    return _SHORT.get(label) or label.split(":", maxsplit=1)[0]
