"""Cards for violations in the committed books: one for each, settled when the violation is gone; and for what waits for
a person without a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import DAMAGE
from cleared.changes import commit_messages
from cleared.changes.audit.record_violations import find_committed_violations
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.domains.installed_domains import list_checks
from cleared.domains.record_audit import ASKED, Violation

CHECK = "check"
"""Who settles these cards, where no person does."""
GONE = "gone"


class DamageUpdate(Struct):
    """Cards that were made, and those that were settled, by a commit; empty where none was needed."""

    commit: str = ""
    opened: list[str] = []
    settled: list[str] = []


def update_damage_cards(host: Host) -> DamageUpdate:
    """Check the committed books; open a card for each new violation and settle those that are gone, in one commit. What
    waits for a person is asked again where no card does so any more.

    No commit is made where nothing changes. A violation that somebody has seen gets no second card while it lasts.
    Raises ``WorkspaceError`` where managed files differ from the last commit.
    """
    result = DamageUpdate()

    def stage_cards(decision_context: DecisionContext) -> Decision | None:
        violations = {_violation_key(v): v for v in find_committed_violations(host) if v.check != ASKED}
        cards, context = decision_context.context.cards, decision_context.context
        for part in context.parts.values():
            part.renew_questions(context, decision_context.snapshot, settles=False)
        renewed = [card.title for card in cards.added.values()]
        wanted = set()
        for key, violation in violations.items():
            card = _card_for(cards.committed_cards, key, violation, format_iso(context.now), context.run_id)
            wanted.add(card.id)
            cards.add_card(card)
        for card in cards.committed_cards.list_open(DAMAGE.name):
            if card.id not in wanted:
                cards.resolve_card(card.id, format_iso(context.now), CHECK, GONE)
                result.settled.append(card.id)
        result.opened = list(cards.added)
        if not result.settled and not result.opened:
            return None
        subject = commit_messages.cards_opened(renewed) if renewed and not violations else None
        return Decision(subject or commit_messages.damage_found(len(violations)))

    result.commit = commit_decision(host, "check --card", stage_cards, by=CHECK, collects=[result]) or ""
    return result


def _violation_key(violation: Violation) -> tuple[str, ...]:
    place = violation.place
    where = (place.file or "", place.field or "") if place is not None else ("", "")  # lines move, the damage stays
    return violation.check, *where, violation.record_id or "", violation.message


def _card_for(cards: Mapping[str, Card], key: Iterable[str], violation: Violation, now: str, check: str) -> Card:
    """The newest card of a violation; a new one where the newest was settled because the violation was gone."""
    number = 0
    while True:
        identity = card_id(DAMAGE.name, *key, str(number))
        card = cards.get(identity)
        if card is None:
            break
        if card.status == "open" or (card.resolved_by, card.resolution) != (CHECK, GONE):
            return card
        number += 1
    return Card(
        identity,
        DAMAGE.name,
        f"{violation.record_id + ': ' if violation.record_id else ''}{violation.message}"[:300],
        now,
        check,
        details={
            "entry": violation.record_id,
            "check": list_checks().get(violation.check, violation.check),
            "message": violation.message,
            "place": str(violation.place) if violation.place else "",
            "remedy": violation.remedy,
        },
    )
