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
from cleared.review import view
from cleared.review.entry_decisions import Correction
from cleared.review.view import Choice, Picture, Row
from cleared.terminal import escape_text
from cleared.tui import key_bindings, rendering
from cleared.tui.dialogs import AskAccount, AskText, Choose, Dialog, Look, TakesKeys
from cleared.tui.key_actions import UNDO, Acts, Said, Wish, code

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

    def __init__(self, acts: Acts, heard: list[str] | None = None) -> None:
        super().__init__()
        self.acts, self.heard = acts, heard if heard is not None else []
        self.picture: Picture = view.look(acts.open())
        self.order: list[str] = list(self.picture.cards)
        self.listed: list[Row] = self.picture.rows
        self.current = 0
        self.done = 0
        self.said = ""
        self.parting = ""
        self.wishes: asyncio.Queue[Wish] = asyncio.Queue()
        self.pending: dict[str, int] = {}
        """Cards that a decision is under way for, which are not listed."""
        self.waiting = 0
        self.leaving = False
        self.same: Wish | None = None
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
        self._decide_in_turn()
        self.set_interval(WATCH_SECONDS, self._watch)
        self.set_interval(0.25, self._hear)
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        self.call_after_refresh(self._draw)

    @property
    def identity(self) -> str | None:
        return self.listed[self.current].id if self.listed else None

    def _list(self) -> None:
        """The rows that are listed, after the picture or the order has changed; the current card stays where it is."""
        known = self.picture.cards
        kept = {i: None for i in self.order if i in known}
        self.order = [*kept, *(i for i in known if i not in kept)]
        self.listed = [view.row(self.picture, known[i]) for i in self.order if i not in self.pending]
        self.current = max(0, min(self.current, len(self.listed) - 1))

    def _draw(self) -> None:
        screen = self.screen_stack[0]
        width = screen.size.width
        left = len(self.listed)
        name = rendering.cut(f"cleared review · {self.picture.name}", max(10, width - 42))
        how = rendering.progress(self.done, left, self.waiting)
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
            shown.update(rendering.empty(self.done))
            offers = [("u", "undo"), ("?", "help"), ("q", "quit")]
        else:
            found = view.show(self.picture, self.identity)
            card.border_title = Text(f"{found.heading} · {self.current + 1} of {left}")
            shown.update(rendering.card(found, max(40, card.content_size.width)))
            size = listing.content_size
            listing.update(rendering.rows(self.listed, self.current, size.height or 5, size.width or width - 4))
            offers = [(key, _short(key, label)) for key, label in key_bindings.offers(found)]
            offers += [("s", "skip"), ("u", "undo")]
            offers += [("o", "code")] if found.has_code else []
            offers += [("f", "file")] if found.has_file else []
            offers += [("?", "help"), ("q", "quit")]
            self.call_after_refresh(self._mark_more)
        screen.query_one("#keys", Static).update(rendering.keys(offers, width - 2))

    def _mark_more(self) -> None:
        """Nobody should approve what lies below the edge without knowing that there is more."""
        card = self.screen_stack[0].query_one("#card", VerticalScroll)
        card.border_subtitle = "PgDn shows more" if self.listed and card.scroll_y < card.max_scroll_y else ""

    def _tell(self, text: str) -> None:
        self.said = text
        self._draw()

    def _hear(self) -> None:
        """What the program says meanwhile, such as that it waits for another command; how it went comes last."""
        if self.heard and self.waiting:
            self._tell(self.heard[-1])
        self.heard.clear()

    # -- decisions, one after the other -----------------------------------------------------------------------------

    def _wish(self, wish: Wish) -> None:
        for identity in wish.cards:
            self.pending[identity] = self.pending.get(identity, 0) + 1
        self.waiting += 1
        self.wishes.put_nowait(wish)
        self._list()
        self._top()
        self._draw()

    @work
    async def _decide_in_turn(self) -> None:
        while True:
            wish = await self.wishes.get()
            said = await asyncio.to_thread(self.acts.do, wish)
            self.waiting -= 1
            self._went(wish, said)
            if len(said.cards) < len(wish.cards) or wish.choice.verb == "undo" or self.wishes.empty():
                await self._look_again()
            self._release(wish, said)
            if wish.choice.verb == "undo" and said.ok:
                self._go_to(said.cards)
            self._draw()
            if self.leaving and not self.waiting:
                self._leave()

    def _went(self, wish: Wish, said: Said) -> None:
        self.said = f"{'✓' if said.ok else '! Not done:'} {said.text}"
        self.same = None
        if not said.ok:
            return
        undone = wish.choice.verb == "undo"
        self.done = max(0, self.done - max(1, len(said.cards))) if undone else self.done + len(said.cards)
        if said.siblings and wish.correction is not None and wish.correction.account is not None:
            self.same = Wish(wish.choice, said.siblings, f"{len(said.siblings)} cards", wish.correction)
            self.said += f". {len(said.siblings)} more like it: = corrects them the same way"

    def _release(self, wish: Wish, said: Said) -> None:
        """Its cards may be listed again; those that are settled, but were not read again yet, are not."""
        for identity in wish.cards:
            self.pending[identity] -= 1
            if not self.pending[identity]:
                del self.pending[identity]
            if identity in said.cards and wish.choice.verb != "undo":
                self.picture.cards.pop(identity, None)
            elif said.ok and identity in self.order:  # the first of two has decided: it waits for somebody else
                self.order.remove(identity)
                self.order.append(identity)
        self._list()

    async def _look_again(self) -> None:
        try:
            self.picture = await asyncio.to_thread(lambda: view.look(self.acts.open()))
        except (ClearedError, OSError) as error:
            self.said = f"! {error}"
        self._list()

    def _go_to(self, cards: tuple[str, ...]) -> None:
        at = next((n for n, r in enumerate(self.listed) if r.id in cards), None)
        if at is not None:
            self.current = at
            self._top()

    @work(exclusive=True, group="watch")
    async def _watch(self) -> None:
        """Take up what somebody else has committed."""
        if self.waiting:
            return
        before = self.picture.head

        def head() -> str:
            with self.acts.open().reading() as repo:
                return repo.head()

        try:
            now = await asyncio.to_thread(head)
        except (ClearedError, OSError):
            return
        if now != before and not self.waiting:
            at = self.identity
            await self._look_again()
            self._go_to((at,) if at else ())
            self._draw()

    # -- keys typed faster than the screen ---------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        """Keys wait for a dialog that is being opened or closed: none is lost, none goes to the wrong place."""
        if isinstance(event, events.Key) and not self._may_take():
            self.ahead.append(event)
            return
        await super().on_event(event)
        if isinstance(event, events.Key) and isinstance(self.screen, Dialog) and self._ends(event):
            self.closing = True
            self.set_timer(CLOSING_SECONDS, self._has_closed)

    def _may_take(self) -> bool:
        return not self.closing and (not isinstance(self.screen, Dialog) or self.screen.ready)

    def _ends(self, event: events.Key) -> bool:
        return event.key in ("enter", "escape") or isinstance(self.screen, Choose)

    def _has_closed(self) -> None:
        self.closing = False
        self.post_message(TakesKeys())

    async def on_takes_keys(self) -> None:
        while self.ahead and self._may_take():
            await self.on_event(self.ahead.popleft())

    # -- keys -------------------------------------------------------------------------------------------------------

    def action_choose(self, key: str) -> None:
        if self.identity is None:
            return
        choice = key_bindings.by_key(view.show(self.picture, self.identity), key)
        if choice is None:
            self._tell(f"{key} does nothing here; ? shows the keys.")
        else:
            self._decide(choice, [self.listed[self.current]])

    def _decide(self, choice: Choice, rows: list[Row]) -> None:
        """Ask for what the choice needs, then put it in the line. The first question is there before the next key."""
        picture = self.picture
        rows = [r for r in rows if r.id in picture.cards]
        if not rows:
            self._tell("! Somebody else has decided that meanwhile.")
            return
        ids, about = tuple(r.id for r in rows), view.names(rows)
        plain = Wish(choice, ids, about)

        def corrected(correction: Correction | None) -> None:
            if correction is not None:
                self._wish(replace(plain, correction=correction))

        def why(outcome: str | None = None, of: str | None = None) -> None:
            def said(reason: str | None) -> None:
                if reason is not None:
                    self._wish(replace(plain, reason=reason, outcome=outcome, of=of))

            self.push_screen(AskText("Why?", "kept with the decision"), said)

        def outcome(key: str | None) -> None:
            if key == "d":
                self.push_screen(self._twin(picture, ids[0]), lambda of: why("duplicate", of) if of else None)
            elif key is not None:
                why(_OUTCOME[key])

        if choice.verb == "correct":
            title = f"Which account? {rendering.cut(about, 40)}"
            self.push_screen(AskAccount(title, picture, ids[0], one=len(ids) == 1), corrected)
        elif choice.verb == "reject" and any(view.posts_line(picture, picture.cards[i]) for i in ids):
            self.push_screen(Choose("It posts a bank line. What is that?", _OUTCOMES), outcome)
        elif choice.verb in ("reject", "decline"):
            why()
        else:
            self._wish(plain)

    def _twin(self, picture: Picture, identity: str) -> AskText:
        likely = view.twins(picture, picture.cards[identity])
        lines = "\n".join(f"{e.entry_id}  {e.date}  {e.amount}  {rendering.cut(e.description, 36)}" for e in likely)
        first = likely[0].entry_id if likely else ""
        return AskText("A duplicate of which entry?", "its id", first, Text(lines))

    def action_skip(self) -> None:
        if self.identity is not None:
            self.order.remove(self.identity)
            self.order.append(self.listed[self.current].id)
            self._list()
            self._top()
            self._draw()

    def action_group(self) -> None:
        if self.identity is None:
            return
        found = view.group(self.picture, self.identity)
        if found is None:
            self._tell("This kind of card has no group.")
            return
        card = view.show(self.picture, self.identity)
        listed = [r for r in found.rows if r.id not in self.pending]
        usable = {k: c for k in "acr" if (c := key_bindings.by_key(card, k)) is not None and c.verb != "answer"}
        body = Text(
            "\n".join(
                f"{r.date}  {rendering.fill(r.amount, 10, right=True)}  {rendering.cut(r.text, 44)}" for r in listed
            )
        )
        title = (
            f"{len(listed)} × {rendering.cut(found.vendor, 24)} · {rendering.cut(found.accounts, 24)} · {found.total}"
        )
        options = [(k, f"{c.label}, all {len(listed)}") for k, c in usable.items()]
        self.push_screen(
            Choose(title, options, body), lambda key: self._decide(usable[key], listed) if key is not None else None
        )

    def action_same(self) -> None:
        wish, self.same = self.same, None
        ids = tuple(r.id for r in self.listed if wish is not None and r.id in wish.cards)
        if wish is None or not ids:
            self._tell("There is nothing to correct the same way.")
            return
        self._wish(Wish(wish.choice, ids, f"{len(ids)} cards" if len(ids) > 1 else "one more", wish.correction))

    def action_undo(self) -> None:
        self._wish(UNDO)

    def action_move(self, by: int) -> None:
        self.current = max(0, min(self.current + by, len(self.listed) - 1))
        self._top()
        self._draw()

    def action_page(self, by: int) -> None:
        card = self.screen.query_one("#card", VerticalScroll)
        card.scroll_relative(y=by * max(1, card.size.height - 2), animate=False)
        self.call_after_refresh(self._mark_more)

    def _top(self) -> None:
        self.screen_stack[0].query_one("#card", VerticalScroll).scroll_home(animate=False)

    def action_code(self) -> None:
        self._open_code()

    @work(exclusive=True, group="look")
    async def _open_code(self) -> None:
        identity, picture = self.identity, self.picture
        if identity is None:
            return
        self._tell("Looking for the code …")
        try:
            texts = await asyncio.to_thread(lambda: code(self.acts.open(), picture, identity))
        except ClearedError as error:
            self._tell(f"! {error}")
            return
        self._tell("")
        self._look_at(texts)

    @work(exclusive=True, group="look")
    async def action_file(self) -> None:
        identity, picture = self.identity, self.picture
        if identity is None:
            return
        try:
            text = await asyncio.to_thread(lambda: view.bank_file(self.acts.open(), picture, identity))
        except ClearedError as error:
            self._tell(f"! {error}")
            return
        self._look_at([text])

    def _look_at(self, texts: object) -> None:
        assert isinstance(texts, list)
        if not texts or isinstance(self.screen, Dialog):
            return
        body = Text(no_wrap=True)
        for text in texts:
            if len(texts) > 1:
                body.append(f"{escape_text(text.name)}\n", rendering.STRONG)
            if text.note:
                body.append(f"{text.note}\n", rendering.QUIET)
            body.append_text(rendering.file(text) if text.line else rendering.changes(text))
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
            self._tell("Leaving as soon as the last decision is saved …")
        else:
            self._leave()

    def _leave(self) -> None:
        left = len(self.listed)
        self.parting = f"{self.done} decided, {left} left." if self.done or left else "Nothing waits for you."
        self.exit()


_SHORT: Final = {
    "Confirm as it is": "approve", "Correct the account": "correct", "Post it to an account": "post",
    "Approve: it becomes live": "approve", "Reject": "reject", "Run it again now": "try again",
}  # fmt: skip


def _short(key: str, label: str) -> str:
    """A word for the line of keys."""
    if key == "g":
        return label.removesuffix(" of this kind")
    return _SHORT.get(label) or label.split(":", maxsplit=1)[0]
