"""From what a person chose to the function that decides it. Both the screen and the prompts decide through here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from cleared import app
from cleared.changes.host import Host
from cleared.errors import ClearedError, PolicyError, UsageError
from cleared.review import card_decisions, view
from cleared.review.card_decisions import Done
from cleared.review.entry_decisions import Correction
from cleared.review.undo import undo
from cleared.review.view import Choice
from cleared.runs.outcome import RunResult

Open = Callable[[], Host]


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision that somebody made: about which open cards, and all that was asked for it."""

    choice: Choice
    cards: tuple[str, ...]
    about: str
    """What the cards say, for the line that tells how it went."""
    correction: Correction | None = None
    reason: str = ""
    outcome: str | None = None
    of: str | None = None


UNDO = Wish(Choice("undo", "Undo"), (), "")


@dataclass(frozen=True, slots=True)
class Said:
    """How it went, in one line. ``cards``: those that are settled, after an undo those that are asked again."""

    text: str
    ok: bool
    cards: tuple[str, ...] = ()
    siblings: tuple[str, ...] = ()


@dataclass(slots=True)
class Acts:
    """Decides wishes, each as one commit.

    ``open`` gives the workspace as its settings are then: who may decide, and how, is what they say. ``proposals``
    counts approvals since the last decision that ``undo`` knows: it must not silently take back an older one instead.
    """

    open: Open
    _later: list[str] = field(default_factory=list)

    def do(self, wish: Wish) -> Said:
        """Never raises a ``ClearedError``: a refusal is told like any other outcome."""
        try:
            return self._do(self.open(), wish)
        except ClearedError as error:
            return Said(" ".join(str(error).split()), False)
        except OSError as error:
            return Said(f"{error.filename or ''}: {error.strerror or error}; nothing was changed", False)

    def _do(self, host: Host, wish: Wish) -> Said:
        verb, ids = wish.choice.verb, list(wish.cards)
        if verb == "undo":
            return self._undo(host)
        if verb == "confirm":
            return self._told("Confirmed", wish, card_decisions.confirm(host, ids))
        if verb == "correct":
            done = app.correct(host, ids, wish.correction or Correction())
            return self._told("Posted" if done.posted and not done.entries else "Corrected", wish, done)
        if verb == "reject":
            done = card_decisions.reject(host, ids, wish.reason, wish.outcome, wish.of)
            return self._told("Rejected", wish, done)
        if verb == "agree":
            return self._told("Agreed", wish, app.agree(host, ids))
        if verb == "answer":
            done, run = app.answer(host, ids[0], wish.choice.value)
            if run is not None:
                done.said.append(_how(run, "went on"))
            return self._told(f"Answered {wish.choice.value}", wish, done)
        if verb == "retry":
            return self._retry(host, wish)
        return self._proposal(host, wish)

    def _told(self, what: str, wish: Wish, done: Done) -> Said:
        self._later.clear()
        more = f", posted {', '.join(done.posted[:3])}{' …' if len(done.posted) > 3 else ''}" if done.posted else ""
        settled = tuple(c for c in wish.cards if c not in done.agreed)
        said = [f"{what}: {wish.about}{more}"] if settled or not done.agreed else []
        return Said(". ".join([*said, *done.said]), True, settled, tuple(done.siblings))

    def _undo(self, host: Host) -> Said:
        if self._later:
            said = self._later.pop()
            raise PolicyError(f"{said} is not taken back here", remedy="u again takes back the decision before it.")
        done = undo(host)
        if done.agreed:
            return Said(". ".join(done.said), True)
        names = ", ".join(done.entries or done.cards)
        return Said(f"Taken back: {names or 'the last decision'}", True, tuple(done.cards))

    def _retry(self, host: Host, wish: Wish) -> Said:
        """Run the agent of a failed run, or of a held question, again; where it works now, the card is settled."""
        card = view.look(host).cards.get(wish.cards[0])
        if card is None or not card.agent:
            raise UsageError("it is not known which agent failed", remedy="cleared agent list shows them.")
        found = app.run_again(host, card.agent, card.id)
        if found.status not in _WENT_WELL:
            return Said(_how(found, "ran"), False)
        if card.kind != "question":  # the run that asks again has settled it
            self._told("", wish, card_decisions.answer(host, card.id, "seen"))
        self._later.append(f"the run of {card.agent}")
        return Said(_how(found, "ran"), True, wish.cards)

    def _proposal(self, host: Host, wish: Wish) -> Said:
        from cleared.proposals.approval import reject_proposal

        card = view.look(host).cards.get(wish.cards[0])
        if card is None:
            raise PolicyError("somebody has decided this proposal", remedy="cleared agent history shows who.")
        name = view.proposal_of(card)
        if wish.choice.verb == "approve":
            outcome = app.approve(host, name)
            said = f"{outcome.proposal.id} is live now"
            if outcome.edited:
                said += f"; your edits of {', '.join(outcome.edited)} are left as they are"
        else:
            outcome = reject_proposal(host, name, wish.reason)
            said = f"{outcome.proposal.id} is rejected; the live scripts stay"
        self._later.append(f"the decision about {outcome.proposal.id}")
        return Said(said, True, wish.cards)


_WENT_WELL: Final = ("succeeded", "waiting")


def _how(run: RunResult, what: str) -> str:
    """How a run ended, in a few words."""
    if run.status == "waiting":
        return f"{run.agent} {what}, and asks something"
    if run.status == "succeeded":
        return f"{run.agent} {what}: {run.message or 'nothing to do'}"
    return f"{run.agent} failed: {run.error or run.status}"


def code(host: Host, picture: view.Picture, identity: str) -> Sequence[view.Text]:
    """The code behind a card: a proposal's changes, else the script at the line that made the entry.

    Raises ``ClearedError``.
    """
    from cleared.proposals.proposal_history import diff_code

    card = picture.cards.get(identity)
    if card is not None and card.kind == "proposal":
        found = diff_code(host, view.proposal_of(card))
        return [view.Text(path, tuple(text.splitlines())) for path, text in found.items()]
    if card is None or card.entry_id is None:
        raise UsageError("this card has no code", remedy="Entries and proposals have.")
    return [view.script(host, app.why(host, card.entry_id))]
