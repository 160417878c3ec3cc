"""Asking about the texts that tell a coding engine what to do, before it is started."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from cleared.base.terminal import count_noun, escape_lines, print_line
from cleared.changes.host import Host
from cleared.cli.showing import Subject, taking_shown

if TYPE_CHECKING:
    from cleared.work.cycles.guiding_texts import GuidingText


def take_guiding_texts(
    host: Host,
    typed: str,
    command: str,
    *,
    commit: str | None = None,
    own: Mapping[str, bytes] | None = None,
    more: Iterable[str] = (),
) -> None:
    """Show in full what would guide an engine and nobody here knows yet, and ask; from then on it is known.

    ``commit``, ``own``, ``more``: as ``list_unknown_texts`` takes them; ``command``: starts it. Raises as
    ``taking_shown`` does.
    """
    from cleared.work.cycles.guiding_texts import SHOWN, digest_texts, list_unknown_texts, take_text

    texts = list_unknown_texts(host, commit, own=own, more=more)
    if not texts:
        return
    subject = Subject(
        name=SHOWN,
        title=f"{count_noun(len(texts), 'text')} that would guide an engine",
        digest=digest_texts(texts),
        command=f"{command} --digest ",
        question=f"May an engine act on {'this text' if len(texts) == 1 else f'these {len(texts)} texts'}?",
        parts={text.path: _printing(text) for text in texts},
    )
    with taking_shown(host.root, subject, typed):
        for text in texts:
            take_text(host, text.path, text.data)


def _printing(text: GuidingText) -> Callable[[], None]:
    def print_text() -> None:
        print_line(f"{text.path}{f' (included by {text.included_by})' if text.included_by else ''}:")
        for line in escape_lines(text.data.decode("utf-8", "replace").rstrip()).split("\n"):
            print_line(f"| {line}")

    return print_text
