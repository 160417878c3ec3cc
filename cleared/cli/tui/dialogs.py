"""Dialogs on top of the screen: for an account, a line of text, one of several options, and files to look at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, ClassVar, Final, Generic, TypeVar

from rich.console import RenderableType
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from cleared.base.errors import UsageError
from cleared.base.terminal import escape_text
from cleared.books.decisions.entry_correction import Correction, add_typed_details
from cleared.books.review.account_choice import AccountMatch, match_accounts, parse_split
from cleared.books.review.book_cards import book_facts_of
from cleared.cli.tui import rendering
from cleared.review.queue_snapshot import QueueSnapshot

T = TypeVar("T")


class DialogReady(Message):
    """Sent by a dialog when it takes keys."""


class Dialog(ModalScreen[T], Generic[T]):
    """A question in a frame. ``ready`` says that it takes keys; the app keeps those that were typed before."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape", "cancel", "Back")]

    def __init__(self, title: str) -> None:
        super().__init__()
        self.heading = escape_text(title)
        self.ready = False

    def action_cancel(self) -> None:
        self.dismiss(None)

    def compose_frame(self, *parts: Static | Input | VerticalScroll) -> ComposeResult:
        frame = Vertical(*parts, classes="frame")
        frame.border_title = Text(self.heading)
        yield frame

    def on_mount(self) -> None:
        fields = self.query(Input)
        if fields:
            fields.first().focus()
        self.call_after_refresh(self._take_keys)

    def _take_keys(self) -> None:
        self.ready = True
        self.app.post_message(DialogReady())


class AskText(Dialog[str | None]):
    """One line of text; empty or Escape is None."""

    def __init__(self, title: str, hint: str = "", value: str = "", body: RenderableType = "") -> None:
        super().__init__(title)
        self.hint, self.value, self.body = hint, value, body

    def compose(self) -> ComposeResult:
        parts: list[Static | Input | VerticalScroll] = [Static(self.body)] if self.body else []
        return self.compose_frame(
            *parts, Input(self.value, placeholder=self.hint), Static("Enter takes it · Esc goes back", classes="hint")
        )

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value.strip() or None)


class AskEnter(Dialog[bool | None]):
    """Something to read; Enter takes it (True), Escape does not (None)."""

    BINDINGS: ClassVar[list[BindingType]] = [("enter", "take", "Take it"), ("escape", "cancel", "Back")]

    def __init__(self, title: str, body: RenderableType, hint: str) -> None:
        super().__init__(title)
        self.body, self.hint = body, hint

    def compose(self) -> ComposeResult:
        pane = VerticalScroll(Static(self.body), classes="covered")
        return self.compose_frame(pane, Static(self.hint, classes="hint"))

    def action_take(self) -> None:
        self.dismiss(True)


class AskPassphrase(Dialog[str | None]):
    """A passphrase, which is not shown; Escape is None."""

    def compose(self) -> ComposeResult:
        return self.compose_frame(Input(password=True), Static("Enter takes it · Esc goes back", classes="hint"))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


def passphrase_dialog(app: App[Any]) -> Callable[[str], str | None]:
    """Asks for a passphrase in a dialog of ``app``; called in the thread that carries out a decision."""

    def ask(prompt: str) -> str | None:
        typed: Future[str | None] = Future()
        app.call_from_thread(app.push_screen, AskPassphrase(prompt.rstrip(": ")), typed.set_result)
        while True:
            try:
                return typed.result(timeout=0.2)
            except TimeoutError:
                if not app.is_running:
                    return None

    return ask


class ChooseOption(Dialog[str | None]):
    """One of a few, each with its key."""

    def __init__(self, title: str, options: Sequence[tuple[str, str]], body: RenderableType = "") -> None:
        super().__init__(title)
        self.options, self.body = list(options), body

    def compose(self) -> ComposeResult:
        lines = Text()
        for key, label in self.options:
            lines.append(f" {key} ", rendering.STRONG).append(f" {escape_text(label)}\n")
        parts: list[Static | Input | VerticalScroll] = []
        if self.body:
            parts.append(VerticalScroll(Static(self.body), classes="covered"))
        return self.compose_frame(*parts, Static(lines), Static("Esc goes back", classes="hint"))

    def on_key(self, event: events.Key) -> None:
        if event.character in [key for key, _ in self.options]:
            event.stop()
            self.dismiss(event.character)


class ViewText(Dialog[None]):
    """Files, or anything else, to look at."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape,q,o,f,question_mark", "cancel", "Back"),
        ("j", "scroll(1)", "Down"),
        ("k", "scroll(-1)", "Up"),
    ]

    def __init__(self, title: str, body: RenderableType, line: int | None = None, *, wrap: bool = False) -> None:
        super().__init__(title)
        self.body, self.line, self.wrap = body, line, wrap

    def compose(self) -> ComposeResult:
        pane = VerticalScroll(Static(self.body, classes="" if self.wrap else "wide"), classes="pane")
        return self.compose_frame(pane, Static("↑ ↓ move · Esc goes back", classes="hint"))

    def on_mount(self) -> None:
        super().on_mount()
        pane = self.query_one(".pane", VerticalScroll)
        pane.focus()
        if self.line:
            self.call_after_refresh(pane.scroll_to, y=max(0, self.line - 1 - pane.size.height // 2), animate=False)

    def action_scroll(self, by: int) -> None:
        self.query_one(".pane", VerticalScroll).scroll_relative(y=by, animate=False)


NOTE: Final = 'note, if any; before it also date=2025-01-31 vendor="A B" tags=x,y'


class AskAccount(Dialog[Correction | None]):
    """An account by number or name, or several with amounts; and a note."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "cancel", "Back"),
        ("down", "move(1)", "Next"),
        ("up", "move(-1)", "Previous"),
    ]

    def __init__(self, title: str, queue: QueueSnapshot, identity: str, *, one: bool) -> None:
        super().__init__(title)
        self.queue, self.identity, self.one = queue, identity, one
        self.listed: list[AccountMatch] = []
        self.current = 0

    def compose(self) -> ComposeResult:
        hint = "Enter takes the marked account · ↑ ↓ choose · Tab note · Esc goes back"
        return self.compose_frame(
            Input(placeholder="number or name" + ("; several: 5020=30 5060=" if self.one else ""), id="typed"),
            Static(id="found"),
            Input(placeholder=NOTE, id="note"),
            Static(hint, classes="hint"),
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._refill_list()

    def on_resize(self) -> None:
        self._redraw_list()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "typed":
            self._refill_list()

    def action_move(self, by: int) -> None:
        self.current = max(0, min(self.current + by, len(self.listed) - 1))
        self._redraw_list()

    @property
    def typed(self) -> str:
        return self.query_one("#typed", Input).value.strip()

    def _refill_list(self) -> None:
        self.current = 0
        self.listed = [] if "=" in self.typed else match_accounts(self.queue, self.identity, self.typed)
        self._redraw_list()

    def _redraw_list(self) -> None:
        pane = self.query_one("#found", Static)
        if "=" not in self.typed:
            size = pane.content_size
            pane.update(rendering.render_accounts(self.listed, self.current, size.height or 8, size.width or 60))
            return
        split = parse_split(self.queue, self.identity, self.typed)
        lines = [f"  {book_facts_of(self.queue).account_label(a)}   {v}" for a, v in split.lines]
        problem = split.problem if self.one else "Several accounts are for one card at a time."
        lines.append(f"! {problem}" if problem else "✓ All of it is placed: Enter takes it.")
        pane.update(Text("\n".join(map(escape_text, lines))))

    def on_input_submitted(self) -> None:
        typed, more = self.typed, self.query_one("#note", Input).value
        if "=" in typed:
            split = parse_split(self.queue, self.identity, typed)
            if self.one and not split.problem:
                self._dismiss_with(Correction(lines=split.lines, mixed=split.mixed), more)
        elif self.listed:
            self._dismiss_with(Correction(self.listed[self.current].id), more)

    def _dismiss_with(self, correction: Correction, more: str) -> None:
        try:
            self.dismiss(add_typed_details(correction, more))
        except UsageError as error:
            self.query_one("#found", Static).update(Text(escape_text(f"! {error}")))
