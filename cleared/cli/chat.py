"""``cleared chat``: the same as ``cleared meta``, turn by turn in the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Final

import typer

from cleared.base.errors import ClearedError, UsageError
from cleared.base.terminal import print_line, print_message
from cleared.changes.host import Host
from cleared.cli import proposals
from cleared.cli.meta import CostOption, read_cost_limit
from cleared.cli.options import WorkspaceOption, open_host
from cleared.cli.session_output import SessionPrinter, frame_words, print_outcome
from cleared.meta.model_session import (
    Session,
    SessionOptions,
    describe_session,
    require_model,
    resume_session,
    start_session,
)
from cleared.trust.keys import warning_of_open_key

_HELP: Final = """\
Say what you want, or ask a question, in your own words.
/card     show the card of the newest proposal of this session; /card P7 that of another
/diff     show its code, compared with what is approved
/approve  make it live, after you were shown all of it and said yes
/reject   decide against it; what follows is the reason: /reject not coffee of clients
/new      begin anew: the model forgets what was said
/cost     what this session has cost
/quit     end (Ctrl-D does, too); go on later with: cleared chat --resume SESSION
Ctrl-C ends what the model is doing, and keeps the session."""
_ABOUT_PROPOSALS: Final = ("/card", "/diff", "/approve", "/reject")


def chat(
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="SESSION", help="Go on with this session; `last` is the newest."),
    ] = None,
    max_cost: CostOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Talk with a model about your books and agents. Changes end as proposals; nothing is live before you approve it.

    Ctrl-C ends what the model is doing and keeps the session. Without a terminal, each line of standard input is one
    message.
    """
    host = open_host(workspace)
    options = SessionOptions(read_cost_limit(max_cost), SessionPrinter().show_event)
    require_model(host)
    warning = warning_of_open_key()
    if warning is not None:
        print_message(warning)
    session = None
    if resume is not None:
        session = resume_session(host, None if resume == "last" else resume, options)
        print_message(f"Going on with {session.id}: {' '.join(session.store.info.request.split())[:100]}")
        question = describe_session(session.store)["asks"]
        if question:
            print_line(frame_words(question))
            print_message("The model asks you that. Your next message is your answer.")
    elif sys.stdin.isatty():
        print_message("Say what you want. /help shows what else there is.")
    code = _Conversation(host, options, session, _make_reader()).run()
    raise typer.Exit(code)


class _Conversation:
    """Messages and replies, until the person ends it. ``read`` gives the next message; None: there are no more."""

    def __init__(
        self, host: Host, options: SessionOptions, session: Session | None, read: Callable[[], str | None]
    ) -> None:
        self._host, self._options, self._session, self._read = host, options, session, read
        self._code = 0

    def run(self) -> int:
        """The exit code: that of the last message where there was no terminal, else 0."""
        try:
            while (text := self._read()) is not None:
                if text.strip() == "/quit":
                    break
                if text.strip():
                    self._take_message(text.strip())
        finally:
            self._leave()
        return 0 if sys.stdin.isatty() else self._code

    def _take_message(self, text: str) -> None:
        if text == "/new":
            self._leave()
            print_message("A new session begins with your next message.")
        elif text == "/cost":
            self._show_cost()
        elif text.partition(" ")[0] in _ABOUT_PROPOSALS:
            self._handle_proposal(*text.partition(" ")[::2])
        elif text.startswith("/"):
            print_line(_HELP)
        else:
            self._ask(text)

    def _ask(self, text: str) -> None:
        try:
            if self._session is None:
                self._session = start_session(self._host, text, "chat", self._options)
                outcome = self._session.run(None)
            else:
                outcome = self._session.run(text)
        except UsageError as error:
            print_message(f"cleared: {error}")
            return
        self._code = int(outcome.exit_code)
        print_outcome(self._host, self._session.id, outcome)

    def _handle_proposal(self, command: str, words: str) -> None:
        """A command about a proposal, as ``cleared agent`` has it; whatever is in its way is told."""
        named, _, rest = words.strip().partition(" ")
        if not re.fullmatch(proposals.PROPOSAL_ID, named):
            newest = describe_session(self._session.store)["proposal"] if self._session is not None else None
            named, rest = newest or "", words
        root = self._host.root
        try:
            if not named:
                raise UsageError(
                    "this session has proposed nothing", remedy=f"Name a proposal: {command} P7; cleared queue list."
                )
            if command == "/approve":
                proposals.take_proposal(open_host(root), named, asks_always=True)
            elif command == "/reject":
                proposals.reject_proposal(named, rest.strip(), workspace=root)
            else:
                parts = ("card", "message") if command == "/card" else ("code",)
                proposals.show_proposal(open_host(root), named, *parts)
        except ClearedError as error:
            self._code = int(error.exit_code)
            print_message(f"cleared: {error}")
        except (typer.Exit, typer.Abort, KeyboardInterrupt):  # the person said no, and is told so
            print_message("The proposal waits on.")

    def _show_cost(self) -> None:
        cost = describe_session(self._session.store)["cost"] if self._session is not None else None
        print_line(f"{cost or 0} USD")

    def _leave(self) -> None:
        if self._session is not None:
            self._session.__exit__(None, None, None)
            print_message(f"Kept as {self._session.id}. Go on with: cleared chat --resume {self._session.id}")
            self._session = None


def _make_reader() -> Callable[[], str | None]:
    """Reads one message: with editing and history on a terminal, else a line of standard input."""
    if not sys.stdin.isatty():

        def read_line() -> str | None:
            line = sys.stdin.readline()
            return line if line else None

        return read_line
    with suppress(ImportError):
        import readline  # noqa: F401 - makes input() editable

    def ask() -> str | None:
        while True:
            try:
                return input("> ")
            except EOFError:
                print_message("")
                return None
            except KeyboardInterrupt:
                print_message("\n(Ctrl-D or /quit ends)")

    return ask
