"""``notify_send``: messages to the person whose books these are."""

from __future__ import annotations

from typing import Final

from cleared.base.errors import Place, PrimitiveError
from cleared.primitives.context import Context
from cleared.primitives.ctx import NOTIFY_SEND_EVENT
from cleared.primitives.registry.dict_shapes import MessageStaged
from cleared.primitives.registry.primitive import Effect, primitive
from cleared.primitives.registry.vocabulary import Line, Text

MAX_MESSAGES: Final = 10
"""Messages that a run may send."""
MAX_SUBJECT: Final = 150
"""Characters of a message's subject."""
MAX_CARDS: Final = 100
"""Cards that one message may name."""


@primitive(effect=Effect.OUTBOX, grant="notify.send")
def notify_send(ctx: Context, subject: Line, text: Text, card_ids: list[Line] | None = None) -> MessageStaged:
    """Send you a message: by the channel and to the address of ``notifications``, which a script cannot choose.

    It becomes part of the run's commit and is sent afterwards, once; so a run that fails, or a dry run, sends nothing.
    ``card_ids``: open cards, whose titles and ids are put below the text. At most 10 messages a run, each with a
    subject of 150 characters and 100 cards.
    """
    if sum(event["name"] == NOTIFY_SEND_EVENT for event in ctx.events) >= MAX_MESSAGES:
        raise PrimitiveError(
            f"the run sends more than {MAX_MESSAGES} messages", remedy="Put what belongs together into one message."
        )
    if not subject.strip() or len(subject) > MAX_SUBJECT:
        raise PrimitiveError(
            f"the subject has {len(subject.strip())} characters",
            place=Place(field="subject"),
            remedy=f"Write 1 to {MAX_SUBJECT}; the text may be longer.",
        )
    cards = _find_open_cards(ctx, card_ids or [])
    ctx.stage_event(NOTIFY_SEND_EVENT, {"subject": subject, "text": text, "cards": cards})
    ctx.log_action("notify_send", subject)
    return {"subject": subject, "cards": len(cards)}


def _find_open_cards(ctx: Context, card_ids: list[str]) -> list[dict[str, str]]:
    """Id and title of each card. Raises ``PrimitiveError`` for one that is not open, or too many."""
    if len(card_ids) > MAX_CARDS:
        raise PrimitiveError(
            f"the message names {len(card_ids)} cards",
            place=Place(field="card_ids"),
            remedy=f"Name at most {MAX_CARDS}, and say in the text how many there are.",
        )
    titles = {card.id: card.title for card in ctx.cards.open_cards()} if card_ids else {}
    for card_id in card_ids:
        if card_id not in titles:
            raise PrimitiveError(
                f"there is no open card {card_id[:60]!r}",
                place=Place(field="card_ids"),
                remedy="Pass ids as queue_pending and queue_add_review give them.",
            )
    return [{"id": card_id, "title": titles[card_id]} for card_id in dict.fromkeys(card_ids)]
