"""What a person sees of a session on a terminal: its steps in words, its reply in a frame, and the host's own lines."""

from __future__ import annotations

import sys
from typing import Any, Final

from cleared.base.terminal import escape_lines, print_line, print_message
from cleared.changes.host import Host
from cleared.cli.proposal_output import print_card
from cleared.gate.proposals.shown_proposal import read_shown_proposal
from cleared.meta.session_loop import Outcome
from cleared.meta.transcript import Step, describe_ending, describe_step

_MARKS: Final = {"asked": "you: ", "step": "→ ", "failed": "  ", "host": ""}


class SessionPrinter:
    """Takes the events of a session as they happen.

    On a terminal a reply is shown as it comes, and again where the model corrected it. Elsewhere stdout has nothing but
    the reply that counts.
    """

    def __init__(self) -> None:
        self._is_live = sys.stdout.isatty()
        self._is_open = False
        self._shown = ""

    def show_event(self, event: dict[str, Any]) -> None:
        """Print what this event says to a person."""
        kind = event["type"]
        if kind == "message.delta":
            if event["purpose"] == "reply" and self._is_live:
                self._write_live(event["text"])
        elif kind == "message.text":
            self._close_frame()
            if event["purpose"] == "reply":
                self._shown = event["text"]
        elif kind == "session.ended":
            self._close_frame()
            self._show_reply(event["text"])
        elif kind != "session.started" and (step := describe_step(event)):
            self._close_frame()
            self._show_beside()
            print_message(format_step(step))

    def _write_live(self, text: str) -> None:
        marked = escape_lines(text).replace("\n", "\n| ")
        sys.stdout.write(marked if self._is_open else f"| {marked}")
        sys.stdout.flush()
        self._is_open = True

    def _close_frame(self) -> None:
        if self._is_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._is_open = False

    def _show_beside(self) -> None:
        """What was said beside calls is no answer: where nobody saw it come, it is a step like the others."""
        if self._shown and not self._is_live:
            print_message(frame_words(self._shown))
        self._shown = ""

    def _show_reply(self, text: str) -> None:
        """The reply that counts, unless it stands there already."""
        if not text.strip() or (self._is_live and _same_words(text, self._shown)):
            return
        if self._is_live and self._shown:
            print_message("The model corrected its reply; this one counts:")
        sys.stdout.write(frame_words(text) + "\n")
        sys.stdout.flush()


def frame_words(text: str) -> str:
    """The words of a model with ``| `` before each line: none of them can pass for a line of the host's."""
    return "\n".join(f"| {line}" for line in escape_lines(text.strip()).split("\n"))


def format_step(step: Step) -> str:
    """A step of a transcript, as it is printed."""
    if step.kind in ("reply", "said"):
        return frame_words(step.text)
    return _MARKS[step.kind] + step.text


def print_outcome(host: Host, session_id: str, outcome: Outcome) -> None:
    """The proposal's card and what to do next, or why there is none."""
    if outcome.proposal is not None:
        print_line("")
        print_card(read_shown_proposal(host, outcome.proposal))
        print_message(
            f"Next: cleared agent approve {outcome.proposal}, or reject {outcome.proposal} --reason …; "
            f"cleared agent diff {outcome.proposal} --impact shows it on your own books."
        )
    if outcome.status not in ("done", "answered"):
        print_message(describe_ending({"status": outcome.status, "message": outcome.message}))
    if outcome.note:
        print_message(outcome.note)
    if outcome.status == "asks":
        print_message(f'Answer: cleared meta reply {session_id} "…"')
    elif outcome.status in ("stopped", "failed", "interrupted"):
        print_message(f"Go on with: cleared meta resume {session_id}")
    print_message(f"Cost: {outcome.cost:.4f} USD.")


def _same_words(one: str, other: str) -> bool:
    return one.split() == other.split()
