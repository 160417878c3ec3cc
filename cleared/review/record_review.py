"""What the review asks of a domain: how its records are decided about, shown, taken back and explained.

A domain derives from ``RecordReview``; ``Domain.review`` makes it. By itself a domain has nothing to review.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, cast

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import UsageError
from cleared.base.file_source import FileSource
from cleared.cards.card import Card, card_id
from cleared.cards.known_cards import KnownCards
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.domains.domain import Domain
from cleared.domains.installed_domains import load_domains
from cleared.git import Snapshot
from cleared.git.history import CommitInfo
from cleared.primitives.context import Context
from cleared.review.action_request import ActionRequest, ActionResult, CorrectionWish
from cleared.review.card_facts import CardFacts
from cleared.workspace.location import Layout

TAKEN_BACK: Final = "settled: the decision before it was taken back"
"""The resolution of a card that has nothing to ask any more."""
DecisionData: TypeAlias = Mapping[str, Any]
"""A decision as plain data, so that a second person can make the same one: its ``verb`` and arguments."""


class FoundRecord(Struct, frozen=True):
    """A record of a domain."""

    id: str
    value: object
    """It, as the domain has it; its ``repr`` tells when it has changed."""


class RecordPlace(Struct, frozen=True):
    """Where a record lies: the commit that made it is the one since which the file has the mark."""

    path: str
    mark: bytes


class RecordOrigin(Struct, frozen=True):
    """What a domain knows of how a record came about; the runtime adds run, script, approval and decisions."""

    record_id: str
    place: RecordPlace
    facts: Mapping[str, Any]
    """The record, and what it was made from, in values that JSON takes."""
    words: Sequence[tuple[str, str]]
    """The same for people: labels and texts."""
    removal: RecordPlace | None = None
    """Of what took the record away, where the commit of that may be about many and not name it."""
    restores: str = ""
    """The record in whose place it stands again, since a decision about that was taken back."""
    successor: str = ""
    """The record that stands in its place now, where it does not stand any more."""


class CorrectedRecord(Struct, frozen=True):
    """What a record should have been that an agent got wrong: a test holds the agent to it."""

    review: RecordReview
    record: FoundRecord
    """As it was before the correction."""
    month: str
    """``YYYY-MM``: the test of an agent's run is one for each month."""
    expected: Mapping[str, Any]
    """As ``RecordComparison.compare_correction`` takes it, by what the record was made from."""
    correction_key: str
    """``RecordComparison.correction_key`` of the domain."""


class DecisionResult(Struct):
    """What a decision did."""

    commit: str = ""
    act: str = ""
    """Of an undo: the id of the act that it takes back."""
    subject: str = ""
    """Of an undo: that act, in words."""
    cards: list[str] = []
    records: list[str] = []
    """Records that were decided about."""
    added: list[str] = []
    """Records that were added."""
    similar_cards: list[str] = []
    """Open cards that look like the corrected one."""
    agreed: list[str] = []
    """Open cards of which this was the first of two decisions: nothing else has come of it yet."""
    asked_by_run: bool = False
    """Whether a run waited for this answer."""
    ended_questions: list[str] = []
    """Questions whose runs do not go on."""
    test_path: str | None = None
    """The file of the test that records a correction."""
    messages: list[str] = []
    corrected: dict[str, CorrectedRecord] = {}
    """By their ids, what records should have been that an agent got wrong."""
    files: dict[str, bytes | None] = {}
    """Files that are committed with it beside what is staged: path → content, None where a file is removed."""


class Target(Struct, frozen=True):
    """What one id means: a card, a record, or a record with its card."""

    card: Card | None
    record: FoundRecord | None
    domain: Domain
    """Whose it is."""
    review: RecordReview
    """How that is reviewed."""

    @property
    def name(self) -> str:
        return self.record.id if self.record else self.card.id if self.card else ""


class _Case(Struct, frozen=True):
    decision_context: DecisionContext

    @property
    def context(self) -> Context:
        return self.decision_context.context

    @property
    def by(self) -> str:
        return self.decision_context.by


class DecisionCase(_Case, frozen=True):
    """A decision about one target: what it works on, and what it has come to so far."""

    target: Target
    request: DecisionData
    result: DecisionResult

    def settle(self, resolution: str) -> None:
        """Stage that the target is decided: its card is settled with these words."""
        card, record = self.target.card, self.target.record
        if card is not None:
            self.context.cards.resolve_card(card.id, format_iso(self.context.now), self.by, resolution)
            self.result.cards.append(card.id)
        if record is not None:
            self.result.records.append(record.id)


class UndoCase(_Case, frozen=True):
    """A decision that is taken back: its commit, and the commits around it."""

    commit: CommitInfo
    before: Snapshot
    after: Snapshot
    result: DecisionResult


class RevertedRun(Struct):
    """A run that is taken back. ``voided`` and ``kept``: the ids of its records that go, and that stay because people
    have decided about them, or because something has changed them since."""

    run: str
    agent: str
    at: str
    what: str
    why: str = ""
    """Why it is taken back with another one; empty for that one."""
    has_read: bool = False
    """Whether that is because it read what the other wrote: then it can be done again, over what is left."""
    voided: list[str] = []
    kept: list[str] = []
    again: list[str] = []
    """Commands that do again what it did."""


class RevertCase(_Case, frozen=True):
    """A run that is taken back: its commit, and the commits around it."""

    run: RevertedRun
    name: str
    """What the person named it by: its id, or a file that it imported."""
    commit: CommitInfo
    before: Snapshot
    after: Snapshot
    reason: str


class RecordReview:
    """One domain in the review. The methods that stage raise ``UsageError`` for what does not fit the target,
    ``PolicyError`` and ``PrimitiveError`` for what may not be done to it; then nothing comes of the decision."""

    record_kind: ClassVar[str]
    """The kind of a card that asks about a record."""
    card_kinds: ClassVar[Collection[str]] = ()
    """The kinds of cards that are the domain's where they name no record, such as that of a held bank line."""

    # -- deciding -------------------------------------------------------------------------------------------------

    def find_record(self, context: Context, name: str) -> FoundRecord | None:
        """The record of this id, with what the draft has changed of it."""

    def is_void(self, context: Context, card: Card) -> bool:
        """Whether what a card asks about is gone, also where another record has its id by now. A decision about such a
        card settles it, and does no more."""
        return False

    def weigh_decision(self, context: Context, target: Target, request: DecisionData) -> Decimal | None:
        """An amount that the decision hardly exceeds, as its effects will say; None: more than any. Below the
        two-person threshold nothing is tried out."""

    def stage_confirmation(self, case: DecisionCase) -> str:
        """Stage that the target is right, and say what it was about, for the first line of the commit."""
        raise self._make_refusal(case, "confirmed")

    def stage_correction(self, case: DecisionCase) -> str:
        """Stage what the target should have been, as ``CorrectionWish.to_data`` says in the request; else the same."""
        raise self._make_refusal(case, "corrected")

    def stage_rejection(self, case: DecisionCase) -> str:
        """Stage that the target should not stand; else the same. Of the request: ``reason``, which is one line;
        ``outcome`` and ``of``, which may be None (``ActionRequest.outcome``, ``duplicate_of``)."""
        raise self._make_refusal(case, "rejected")

    def stage_answer(self, case: DecisionCase) -> None:
        """Stage what the answer to a card of ``card_kinds`` does, before the card is settled with it: the request's
        ``choice``, which is one of the kind's."""

    def settle_followers(self, decision_context: DecisionContext, result: DecisionResult) -> None:
        """Settle other cards that are answered by the decisions so far."""

    def make_card(self, context: Context, record: FoundRecord) -> Card:
        """A card for a record that has no open one: there it is recorded what the first of two has decided."""
        identity = card_id(self.record_kind, record.id, "again", context.run_id)
        return Card(identity, self.record_kind, record.id, format_iso(context.now), context.run_id, record.id)

    def list_similar_cards(self, context: Context, corrected: Sequence[Target]) -> list[str]:
        """Open cards that look like those which were corrected."""
        return []

    def _make_refusal(self, case: DecisionCase, verb_done: str) -> UsageError:
        return UsageError(f"{case.target.name} cannot be {verb_done}", remedy="cleared queue show tells what it takes.")

    # -- showing --------------------------------------------------------------------------------------------------

    def open_facts(self, host: Host, snapshot: Snapshot, cards: KnownCards) -> CardFacts:
        """What the records of a commit say of its open cards. ``cards``: all of them by their ids, settled ones, too.
        Raises ``WorkspaceError`` where the records cannot be read."""
        return CardFacts()

    def read_suggestion(self, value: str) -> CorrectionWish:
        """The correction that ``CardChoice.value`` of a suggestion stands for. Raises ``UsageError`` for anything
        else."""
        raise UsageError("nothing is suggested", remedy="Correct it: cleared queue correct.")

    def find_action(self, verb: str) -> Callable[[Host, ActionRequest], ActionResult] | None:
        """What carries out a verb that is the domain's own; it raises as decisions do."""

    # -- taking back ----------------------------------------------------------------------------------------------

    def take_back(self, case: UndoCase) -> Mapping[str, bytes | None]:
        """Stage again what was there before a decision, and give files that are committed beside it: path → content,
        None where one is removed. The ids of records that it was about and that are added go into the result.

        Raises ``PolicyError`` where something has been done since that rests on the decision.
        """
        return {}

    def list_restored(self, context: Context) -> Mapping[str, str]:
        """Where ``take_back`` has put another record in the place of one: id of that → id of the new one."""
        return {}

    def reopen_card(self, decision_context: DecisionContext, card: Card) -> str | None:
        """Open the card of a decision that was taken back in the domain's own way: the id of the new one. None: it is
        opened as it was."""

    def find_run(self, context: Context, name: str) -> str | None:
        """The run that took in what is called so, such as a file; None where the domain knows none, or several."""

    def stage_revert(self, case: RevertCase) -> None:
        """Stage that what a run wrote is not there any more, but for what people have decided; say of each what becomes
        of it in ``case.run``. Raises ``PolicyError`` where it cannot be, such as in a closed period."""

    def list_written(self, before: FileSource, after: FileSource, files: Collection[str]) -> Collection[str]:
        """What names what a run's commit wrote and ``RecordComparison.read_added`` does not give."""
        return ()

    def is_reading(self, source: FileSource, agent: str, call: Mapping[str, Any], record_id: str) -> bool | None:
        """Whether a call of an agent's run, as its trace has it, read this record, present or gone; ``source``: a
        commit that knows what records are like. None where its arguments and its answer tell, by the id in them."""

    # -- explaining -----------------------------------------------------------------------------------------------

    maker_primitives: ClassVar[Mapping[str, bool]] = MappingProxyType({})
    """The primitives that make records → whether one call makes several."""

    def locate_record(self, layout: Layout, record: FoundRecord) -> RecordPlace | None:
        """Where a record lies, also after it was changed; None: the commit that made it is not to be found."""

    def trace_record(self, host: Host, snapshot: Snapshot, name: str) -> RecordOrigin | None:
        """What is known of the record of this id in a commit. Raises ``WorkspaceError`` where it cannot be read."""

    def find_in_answer(self, answer: object, record_id: str) -> int | None:
        """Where the answer of a primitive says that the call made this record: of a list the index, else 0; None where
        it does not say so."""
        answers = answer if isinstance(answer, list) else [answer]
        return next((index for index, each in enumerate(answers) if each == record_id), None)

    def list_changes(
        self, layout: Layout, before: Snapshot, after: Snapshot, record_id: str, *, by_hand: bool = False
    ) -> Sequence[tuple[str, str, str]]:
        """``(field, old text, new text)`` of what one commit changed of a record where it stands. ``by_hand``: no run
        and no decision made the commit, so also what these never change, or say in words."""
        return ()


def load_reviews() -> dict[str, RecordReview]:
    """How each domain is reviewed, by its name."""
    return {domain.name: load_review(domain) for domain in load_domains()}


def load_review(domain: Domain) -> RecordReview:
    """How a domain is reviewed."""
    return RecordReview() if domain.review is None else cast(RecordReview, domain.review())
