"""What a person approves is shown first, on this terminal, and asked about; in a script its digest says that it was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec import Struct

from cleared.base.errors import PolicyError, WorkspaceError
from cleared.changes.decisions.shown_cards import expecting
from cleared.trust import shown_digests
from cleared.trust.clone_marks import refuse_other_home
from cleared.trust.keys import refuse_inside
from cleared.trust.person_only import refuse_in_job
from cleared.trust.shown_digests import Way, is_known

DIGITS: Final = 8
"""So many hex digits of a digest stand in the command that takes it."""
_WHOLE: Final = 32
"""With so many, nobody can have made something else that has the same."""
DigestOption = Annotated[
    str,
    typer.Option("--digest", metavar="HEX", help="In a script: how the digest of what was shown begins; only that."),
]


class Subject(Struct, frozen=True):
    """What is to be approved. ``name``: as ``changes.decisions.shown_cards`` names it; ``digest``: of all of it.

    ``command``: takes it, but for the digits of its digest. ``parts``: name → what prints that part; one that this
    terminal has shown already is not printed again. ``hex``: the digest that a person names it by, where it is another.
    """

    name: str
    title: str
    digest: str
    command: str
    question: str
    parts: dict[str, Callable[[], None]]
    hex: str = ""
    asks_always: bool = False
    """Whether a person is asked also where this terminal has shown all of it: the command does not name it."""
    word: str = ""
    """What a person types to say yes, where one key is too little."""
    lets_in: bool = False
    """Whether it says that this home may use the books; anything else is refused where that was not said."""

    def part_digest(self, part: str) -> str:
        """What is kept when only this part was shown."""
        return f"{self.digest}/{part}"


def has_terminal(json: bool = False) -> bool:
    """Whether a person is there, to be shown something and asked."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not json


def note_shown(root: Path, digest: str, way: Way) -> None:
    """Keep that it was shown. Where that cannot be kept it is shown again."""
    with suppress(WorkspaceError):
        shown_digests.note_shown(root, digest, way)


def note_part(root: Path, subject: Subject, part: str, json: bool = False) -> None:
    """Keep that this part was printed just now; once each part was, all of it was."""
    note_shown(root, subject.part_digest(part), "terminal" if has_terminal(json) else "printed")
    if all(_is_known(root, subject.part_digest(each), "printed") for each in subject.parts):
        note_shown(root, subject.digest, "printed")


@contextmanager
def taking_shown(
    root: Path, subject: Subject, typed: str = "", *, json: bool = False, is_own: bool = False
) -> Iterator[None]:
    """What is approved here is this subject, just as it was shown; else nothing.

    On a terminal it is shown and asked about, but for parts that were shown there before. ``typed``: the beginning of
    its digest, which was typed. ``is_own``: only the working copy has it; in a script that is enough. Raises
    ``PolicyError`` inside a job, where nobody can be asked, or where it has another digest; ``Exit`` where the person
    says no.
    """
    refuse_in_job()
    refuse_inside(root)
    if not subject.lets_in:
        refuse_other_home(root)
    _require_shown(root, subject, typed, json, is_own)
    with expecting({subject.name: subject.digest}):
        yield


def _require_shown(root: Path, subject: Subject, typed: str, json: bool, is_own: bool) -> None:
    digits = subject.hex or subject.digest
    take = f"{subject.command}{digits[:DIGITS]}"
    if typed and (len(typed) < DIGITS or not digits.startswith(typed.lower())):
        raise PolicyError(
            f"{subject.title}: the digest is another than {typed[:_WHOLE]}; nothing was approved",
            remedy=f"Look at it. If that is to be approved: {take}.",
        )
    if typed and (len(typed) >= _WHOLE or _is_known(root, subject.digest, "printed")):
        return
    if has_terminal(json):
        if not ask_about(root, subject):
            typer.echo("Nothing was approved.", err=True)
            raise typer.Exit(1)
        return
    if is_own or _is_known(root, subject.digest, "made"):
        return
    with redirect_stdout(sys.stderr):
        for show in subject.parts.values():
            show()
    note_shown(root, subject.digest, "printed")
    raise PolicyError(
        f"{subject.title}: not shown on a terminal of this machine; nothing was approved",
        remedy=f"Look at it, here or in a terminal. In a script: {take}.",
    )


def ask_about(root: Path, subject: Subject) -> bool:
    """Show what this terminal has not, and ask; whether the person says yes."""
    new = [part for part in subject.parts if not _is_known(root, subject.part_digest(part), "terminal")]
    for part in new:
        subject.parts[part]()
    sys.stdout.flush()
    if not new and not subject.asks_always:
        return True
    if not subject.word:
        return typer.confirm(subject.question, default=False, err=True)
    question = f"{subject.question} Type {subject.word} to say yes"
    return bool(typer.prompt(question, default="", show_default=False, err=True).strip() == subject.word)


def _is_known(root: Path, digest: str, way: Way) -> bool:
    return is_known(root, digest, way)
