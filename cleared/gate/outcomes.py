"""What came of made-up rows that a change was tried on, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from cleared.base.short_text import join_words, list_first

_MOST_SHOWN: Final = 3
_ASKS: Final = {"pending-review": "and asks you", "auto-confirmed": "without asking"}
_ASKED: Final = {"pending-review": "asks you", "auto-confirmed": "does not ask"}


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of one row: a record of the proposed version that is not as the approved one makes it; or ``failure``,
    a sentence. ``text``: the row; ``to``, ``away``: where it goes, and where it went, ``5070 Meals``; ``now``,
    ``then``: the status of both, none where the approved version makes no record of it."""

    text: str = ""
    to: tuple[str, ...] = ()
    away: tuple[str, ...] = ()
    now: str = ""
    then: str = ""
    failure: str = ""
    is_of_probe: bool
    is_new: bool
    """Whether it goes where nothing went in any dry run."""

    @property
    def end(self) -> object:
        """Equal for outcomes that are said together."""
        return self.failure, self.to, self.now

    @property
    def what(self) -> object:
        """Equal for outcomes that say nothing new beside each other, at another time."""
        return self.end, self.away, self.then

    @property
    def is_asked(self) -> bool:
        return self.now != "auto-confirmed"


def write_outcomes(when: str, outcomes: Sequence[Outcome]) -> str:
    """Outcomes with the same end in one sentence. The plainest rows come first: one that has a text of the table beside
    the new one says less. ``when``: what it begins with."""
    outcomes = sorted(outcomes, key=lambda each: len(each.text))
    first = outcomes[0]
    if first.failure:
        return f"{when}{first.failure}"
    texts = [*dict.fromkeys(each.text for each in outcomes)]
    away = [*dict.fromkeys(", ".join(each.away) for each in outcomes if each.away)]
    before = [*dict.fromkeys(_ASKED.get(each.then, each.then) for each in outcomes if each.then not in ("", each.now))]
    lines, verb = ("made-up lines", "go") if len(texts) > 1 else ("a made-up line", "goes")
    instead = f" instead of {list_first(away, _MOST_SHOWN)}" if away else ""
    of_some = "" if all(each.then == first.then for each in outcomes) else "of some "
    differs = f"; {of_some}the approved version {join_words(before, 'or')}" if before else ""
    how = _ASKS.get(first.now, first.now)
    if not away and all(each.then == first.now for each in outcomes):
        how = "as before, but with another payee or other words"
    rows, to = list_first(texts, _MOST_SHOWN), ", ".join(first.to)
    said = f"{when}{lines}, {rows}, {verb} to {to}{instead}, {how}{differs}."
    return said[:1].upper() + said[1:]
