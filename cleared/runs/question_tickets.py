"""Which questions of a commit are proved, by a signed ticket, to come from a trusted machine; and their answers.

A card alone proves nothing. The agent, event and time of the run that goes on are taken from the ticket.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from cleared.base.errors import ClearedError, PolicyError, UsageError, WorkspaceError
from cleared.base.json_values import to_plain_json
from cleared.cards.card import Card
from cleared.cards.kinds import QUESTION
from cleared.changes.committed_cards import read_cards
from cleared.changes.consumed_events import has_committed, has_continued
from cleared.changes.host import Host
from cleared.changes.trace import TraceStore
from cleared.git import Repository, Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.trust import trust_store
from cleared.trust.approval_record import CONFIG, canonical_digest, digest_of, try_parse_record
from cleared.trust.reviewers import UNRESTRICTED, ReviewRules, review_rules
from cleared.trust.tickets import Ticket, is_signed_answer, parse_ticket
from cleared.workspace.location import name_script

TIMEOUT_ACTOR: Final = "timeout"
"""Who answers where nobody did in time."""


class Held(PolicyError):
    """A run that is not gone on with as things are."""


class Questions:
    """The questions of one commit, judged by what this user trusts."""

    def __init__(
        self, host: Host, repo: Repository, snapshot: Snapshot, cards: Mapping[str, Card] | None = None
    ) -> None:
        self.host, self.repo, self.snapshot = host, repo, snapshot
        self.scripts = Scripts(host, snapshot)
        self.approvals = self.scripts.approvals
        self.cards = read_cards(host, snapshot) if cards is None else cards
        self._rules: ReviewRules | None = None

    # -- what was asked -------------------------------------------------------------------------------------------

    def find_question(self, identity: str) -> Card:
        """The question with this id. Raises ``UsageError`` where there is none."""
        card = self.cards.get(identity)
        if card is None or card.kind != QUESTION.name:
            raise UsageError(f"{identity} is not a question of a run", remedy="cleared queue list shows them.")
        return card

    def read_ticket(self, card: Card) -> Ticket:
        """What the run of this question is. Raises ``Held`` where nothing proves it."""
        data = card.details.get("ticket")
        if data is None:
            raise self._held_error(card, "nothing proves that a run asked it on a machine that is trusted here")
        try:
            ticket = parse_ticket(data)
        except ValueError:
            raise self._held_error(card, "its ticket is damaged") from None
        for doubt in TICKET_CHECKS.values():
            if why := doubt(self, card, ticket):
                raise self._held_error(card, *why)
        return ticket

    def require_live_version(self, ticket: Ticket) -> None:
        """Raises ``PolicyError`` where the version that asked is not what runs now."""
        name = name_script(ticket.path)
        data = self.snapshot.read_file(ticket.path) if ticket.path == self.host.layout.agent_path(name) else None
        if data is not None:
            self.scripts.require_approved(ticket.path, name, data)
        if data is None or digest_of(data) != ticket.digest:
            card = self.cards[ticket.card]
            raise self._held_error(card, f"the version of {ticket.path} that asked it is not the live one any more")

    def require_not_settled(self, card: Card) -> None:
        """Raises ``Held`` where it was settled on this machine, or its run went on, and what says so is gone."""
        trace = TraceStore(self.host.layout.state_dir).find_run(str(card.details.get("run")))
        if trace is not None and trace["status"] == "succeeded":
            raise self._held_error(card, "its run went on here, in a commit that is not in this history any more")
        if card.id in self.approvals.trust.withdrawn:
            raise self._held_error(card, "what was decided about it on this machine is not in this history any more")

    def withdraw_answers(self, cards: Iterable[str]) -> None:
        """What these questions were answered is taken back: they are not gone on with on this machine any more,
        whatever becomes of the commit that says so."""
        questions = [c for c in cards if (card := self.cards.get(c)) is not None and card.kind == QUESTION.name]
        try:
            if questions and self.approvals.workspace:
                trust_store.withdraw_questions(self.approvals.workspace, questions)
        except WorkspaceError as error:  # it is decided, and stands in the commit
            self.host.show_message(f"this machine cannot remember that {', '.join(questions)} is settled: {error}")

    def find_hold_error(self, card: Card) -> ClearedError | None:
        """Why an open question cannot be answered as things are."""
        try:
            self.require_live_version(self.read_ticket(card))
            self.require_not_settled(card)
        except ClearedError as error:
            return error
        return None

    def list_held(self, cards: Iterable[Card] | None = None) -> dict[str, str]:
        """Of the open questions that cannot be answered as things are, why, and what to do."""
        reasons = {}
        for card in self.cards.values() if cards is None else cards:
            if card.kind == QUESTION.name and card.status == "open" and (why := self.find_hold_error(card)) is not None:
                reasons[card.id] = str(why)
        return reasons

    def retry_command(self, card: Card) -> str:
        """The command that has the run of a held question asked again, or rejects it where there is no such agent."""
        ticket_data, name = card.details.get("ticket"), card.agent or ""
        if isinstance(ticket_data, Mapping) and isinstance(ticket_data.get("path"), str):
            name = name_script(ticket_data["path"])
        try:
            agent_exists = self.snapshot.read_file(self.host.layout.agent_path(name)) is not None
        except ClearedError:
            agent_exists = False
        if not agent_exists:
            return f"cleared queue reject {shlex.quote(card.id)} --reason …"
        return f"cleared agent run {name} --again {shlex.quote(card.id)}"

    def _held_error(self, card: Card, why: str, remedy: str = "") -> Held:
        return Held(
            f"the question {card.id} is held: {why}",
            remedy=remedy or f"Have it asked again: {self.retry_command(card)}",
        )

    def list_signers(self) -> Iterator[tuple[str, str, str]]:
        """Key, whose it is said to be, and when, of the questions and answers that count where the key is trusted."""
        workspace = self.approvals.workspace
        for card in self.cards.values():
            if card.kind != QUESTION.name or card.gone_on is not None or (data := card.details.get("ticket")) is None:
                continue
            with suppress(ValueError):
                ticket = parse_ticket(data)
                if ticket.is_genuine and ticket.workspace == workspace and workspace:
                    yield ticket.key, ticket.by, card.created_at
            for line in card.settlings:
                if is_signed_answer(line, workspace, card.id, data) and line["key"] not in self.rules.reviewers:
                    yield line["key"], line["by"], line["at"]

    # -- what was answered ----------------------------------------------------------------------------------------

    def find_answer(self, card: Card, ticket: Ticket) -> str | None:
        """What somebody who may has said to it; else None. A choice, or that it is settled otherwise."""
        data = card.details.get("ticket")
        for line in card.settlings:
            if is_signed_answer(line, self.approvals.workspace, card.id, data) and self._may_settle(line, ticket):
                return str(line["resolution"])
        return None

    def _may_settle(self, line: Mapping[str, Any], ticket: Ticket) -> bool:
        key, resolution = str(line["key"]), str(line["resolution"])
        if line["by"] == TIMEOUT_ACTOR:
            try:
                late = datetime.fromisoformat(line["at"]) >= datetime.fromisoformat(ticket.due)
            except (ValueError, TypeError):
                return False
            default = ticket.on_timeout == "default" and resolution == ticket.default
            return late and (default or ticket.on_timeout == "reject") and self.approvals.trusts_run(key)
        rules = self.rules
        return key in rules.reviewers if rules.is_restricted else self.approvals.trusts_run(key)

    @property
    def rules(self) -> ReviewRules:
        """Who may answer. Rules that nobody trusted has approved let nobody."""
        if self._rules is None:
            record = try_parse_record(self.snapshot.read_file(CONFIG))
            self._rules = review_rules(record.policy) if record is not None else UNRESTRICTED
            if self._rules.is_restricted and self.approvals.read_record(CONFIG) is None:
                self._rules = ReviewRules({"": ""})
        return self._rules

    def is_run_finished(self, card: Card, ticket: Ticket) -> bool:
        """Whether its run went on, by what the queue or the history has: each of them is enough."""
        return (
            card.gone_on is not None
            or has_continued(self.host, self.repo, self.snapshot, card.id)
            or has_committed(self.host, self.repo, self.snapshot, ticket.run)
        )

    def list_run_questions(self, run: str) -> list[tuple[Card, Ticket]]:
        """The proved questions of a run, in the order in which it asked them."""
        questions = []
        for card in self.cards.values():
            if card.kind == QUESTION.name and card.details.get("run") == run:
                try:
                    questions.append((card, self.read_ticket(card)))
                except Held:
                    continue
        return sorted((each for each in questions if each[1].run == run), key=lambda each: len(each[1].answers))

    def find_resumable_ticket(self, card: Card) -> Ticket | None:
        """The ticket of a question that has its answer, and whose run still has to go on with it; else None.

        Raises ``Held`` where it is settled, and nothing proves it.
        """
        if (
            card.kind != QUESTION.name
            or card.status != "resolved"
            or card.gone_on is not None
            or card.details.get("ticket") is None
        ):
            return None
        ticket = self.read_ticket(card)
        if self.is_run_finished(card, ticket) or self.list_run_questions(ticket.run)[-1][0].id != card.id:
            return None
        answer = self.find_answer(card, ticket)
        if answer is None:
            raise self._held_error(card, "what settles it is not signed by anybody who may settle it")
        if answer not in ticket.choices:
            return None
        self.require_not_settled(card)
        return ticket


TicketCheck = Callable[[Questions, Card, Ticket], tuple[str, ...]]


def _check_signature(questions: Questions, card: Card, ticket: Ticket) -> tuple[str, ...]:
    return () if ticket.is_genuine else ("its ticket was altered: the signature is wrong",)


def _check_workspace(questions: Questions, card: Card, ticket: Ticket) -> tuple[str, ...]:
    same = ticket.workspace and ticket.workspace == questions.approvals.workspace
    return () if same else ("its ticket is for another workspace",)


def _check_key(questions: Questions, card: Card, ticket: Ticket) -> tuple[str, ...]:
    if questions.approvals.trusts_run(ticket.key):
        return ()
    return (
        f"it was asked by {ticket.by}, with a key that is not trusted on this machine",
        f"Look whose it is, and say whether you trust it: cleared trust. Or: {questions.retry_command(card)}",
    )


def _check_card(questions: Questions, card: Card, ticket: Ticket) -> tuple[str, ...]:
    return () if ticket.card == card.id else ("its ticket is another question's",)


def _check_displayed(questions: Questions, card: Card, ticket: Ticket) -> tuple[str, ...]:
    return () if ticket.shown == displayed_digest(card) else ("the card was altered after it was made",)


TICKET_CHECKS: Final[dict[str, TicketCheck]] = {
    "signature": _check_signature,
    "workspace": _check_workspace,
    "key": _check_key,
    "card": _check_card,
    "shown": _check_displayed,
}
"""Why a ticket may not count: each gives the cause, and its own remedy if it has one; nothing where all is well."""


def displayed_digest(card: Card) -> str:
    """Digest of all that a question shows a person, its ticket aside."""
    details = {name: value for name, value in to_plain_json(card.details).items() if name != "ticket"}
    return canonical_digest([card.title, card.agent, card.run_id, details])
