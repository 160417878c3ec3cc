"""What a person chose about cards, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from cleared.review.card_facts import CardChoice


class CorrectionWish(Protocol):
    """What records should have been, as their domain has it: made where a person is asked, read where it is staged."""

    def to_data(self) -> Mapping[str, Any]:
        """It as plain data, so that a second person can decide the same."""


class ActionRequest(Struct, frozen=True):
    """A choice that a person made about open cards, with everything that it needs."""

    choice: CardChoice
    cards: tuple[str, ...]
    about: str
    """What the cards are about, for the line that says what came of it."""
    correction: CorrectionWish | None = None
    reason: str = ""
    outcome: str | None = None
    """With the verb reject: what then becomes of what the record was made of, in the domain's word."""
    duplicate_of: str | None = None
    """With an outcome that says so: the record that stands."""
    words: str = ""
    """With a verb of a domain: what the person typed, such as the words that name a vendor."""
    without: tuple[str, ...] = ()
    """With the answer merge: the files of the branch that are left out."""
    act: str | None = None
    """With the verb undo: the id of the act that the person was shown; None: whichever is the last."""
    shown: Mapping[str, str] | None = None
    """Digests of what the person was shown, for ``changes.decisions.shown_cards``; None where the caller says them."""


UNDO = ActionRequest(CardChoice("undo", "Undo"), (), "")
NAME_LAST_ACT = ActionRequest(CardChoice("name", "Undo"), (), "")
"""Says what undo would take back; ``act`` of its result is what ``UNDO`` is bound to then."""


class ActionResult(Struct, frozen=True):
    """What came of a request."""

    text: str
    """It, in one line."""
    ok: bool
    """False for a refusal: then nothing was changed."""
    cards: tuple[str, ...] = ()
    """Cards that are settled; after an undo, cards that wait again."""
    act: str = ""
    """What an undo of it is bound to; empty where it is none that undo could take back."""
    similar_cards: tuple[str, ...] = ()
    """Open cards that look like a corrected one."""
    offer: object | None = None
    """What the domain offers the person next, such as a vendor that was taught and that a key may approve."""
