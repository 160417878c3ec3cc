"""Who may make a decision, and whether one reviewer is enough. Checked where every decision becomes a commit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.effects import Effect
from cleared.base.errors import PolicyError
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import AGREEMENT
from cleared.changes.attestation import load_approvals
from cleared.changes.host import Host
from cleared.git import Snapshot
from cleared.git.commit_text import format_message, parse_trailers
from cleared.primitives.context import Context
from cleared.trust.approval_record import CONFIG, FOLDER, ApprovalRecord, try_parse_record
from cleared.trust.device_signing import current_device
from cleared.trust.keys import Key, own_key, run_key
from cleared.trust.reviewers import (
    KEY,
    SIGNATURE,
    UNRESTRICTED,
    ReviewRules,
    commit_payload,
    find_first_agreement,
    parse_agreements,
    review_rules,
    rule_change_effect,
    sign_agreement,
)
from cleared.trust.tickets import sign_answer
from cleared.trust.verification import TRUST_DOUBTS
from cleared.trust.workspace_pin import WorkspaceIdentity

AGREES_TRAILER: Final = "Agrees"
"""The trailer that names the cards of which a commit holds what the first of two has decided."""
AGREEMENT_TRAILER: Final = "Asks"
"""The same where it is the whole decision that takes two: the card of it."""


class SecondNeeded(PolicyError):
    """The decision takes two reviewers. ``commit`` records that the first has agreed; nothing else has changed."""

    def __init__(self, card: str, commit: str) -> None:
        super().__init__(
            f"it takes two reviewers; you are the first, which is recorded ({card}); nothing else was changed",
            remedy="Now another reviewer runs the same command.",
        )
        self.card, self.commit = card, commit


class Authorization(Struct, eq=False):
    """Who makes one decision, and by which rules. ``by_person``: a person, not a timeout, a check or a proposal."""

    host: Host
    snapshot: Snapshot
    decision_id: str
    by: str
    by_person: bool
    rules: ReviewRules = UNRESTRICTED
    books: WorkspaceIdentity | None = None
    problem: PolicyError | None = None
    """Why the rules about who may decide cannot be read."""
    agreed_marks: set[str] = set()
    """Marks of the effects that another reviewer has agreed to."""
    _key: Key | None = None

    @property
    def workspace_id(self) -> str:
        """The id of the workspace that a signature is made for."""
        return self.books.id if self.books is not None else ""

    @property
    def reviewer_key(self) -> Key:
        """The key of whoever decides. Raises ``PolicyError`` where it is not a reviewer's."""
        if self._key is None:
            if self.books is not None:
                self.books.must_be_pinned()
            device = current_device()
            own = device.key if device is not None else own_key(self.host.root)
            if own is None or (own.public not in self.rules.reviewers and (self.rules.is_restricted or device is None)):
                names = ", ".join(sorted(self.rules.reviewers.values()))
                raise PolicyError(
                    f"only reviewers may decide here: {names}; "
                    + ("your key is none of theirs" if own else "you have no key on this machine"),
                    remedy="Ask one of them. They can name you too: reviewers: in config.yaml, with the key that "
                    "cleared queue reviewers shows.",
                )
            self._key = own
        return self._key

    def require_reviewer(self) -> None:
        """Raises ``PolicyError`` where a person decides who is no reviewer, ``KeyLocked`` where a passphrase is to be
        typed first."""
        if self.by_person and self.rules.is_restricted:
            self.reviewer_key.require_unlocked()

    @property
    def may_approve(self) -> bool:
        """Whether whoever decides may make records of approval. Raises ``PolicyError`` where they are no reviewer."""
        return not (self.by_person and self.rules.is_restricted) or self.reviewer_key.public in self.rules.approvers

    def require_approver(self) -> None:
        """Raises ``PolicyError`` where a person approves something who is a bookkeeper, or no reviewer at all."""
        if not self.may_approve:
            names = ", ".join(sorted(set(self.rules.approvers.values())))
            raise PolicyError(
                "a bookkeeper decides about the books, and approves neither what runs nor settings",
                remedy=f"Ask one of those who may: {names}.",
            )

    def find_effects(self, context: Context, files: Mapping[str, bytes | None] | None = None) -> list[Effect]:
        """The effects of the draft that need a right: on the records, and the rules themselves."""
        effects = _list_effects(context)
        record = try_parse_record((files or {}).get(CONFIG))
        if record is not None and review_rules(record.policy) != self.rules:
            effects.append(_rule_change_effect(record, self.snapshot.read_file(CONFIG)))
        return effects

    def effects_of_one(self, effects: Iterable[Effect]) -> list[Effect]:
        """The effects that take two reviewers, and that only one has decided."""
        return [e for e in effects if self.rules.needs_two(e.weight) and e.mark not in self.agreed_marks]

    def require_allowed(self, context: Context, files: Mapping[str, bytes | None]) -> None:
        """Raises ``PolicyError`` where whoever decides this may not."""
        if not self.is_free_for_all(context, files):
            self.require_reviewer()
            # Of what cannot be known it is not assumed that everybody may.
            unknown = self.problem is not None or not self.by_person
            if (self.rules.is_restricted or self.problem) and unknown and _list_effects(context):
                raise self.problem or PolicyError("only a person decides about entries")
        if any(path.startswith(f"{FOLDER}/") for path in files):
            self.require_approver()
        if self.by_person:
            self._require_self_included(files)
            self._require_records_of_reviewers(files)

    def is_free_for_all(self, context: Context, files: Mapping[str, bytes | None]) -> bool:
        """Whether it needs no right: it changes nothing but settings that are not protected."""
        return not context.has_changes and set(files) == {self.host.layout.config_file}

    def _require_self_included(self, files: Mapping[str, bytes | None]) -> None:
        """Raises ``PolicyError`` where new rules would leave out whoever sets them."""
        record = try_parse_record(files.get(CONFIG))
        rules = review_rules(record.policy) if record is not None else UNRESTRICTED
        if record is not None and rules != self.rules and rules.is_restricted and record.key not in rules.approvers:
            raise PolicyError(
                "you would not be among the reviewers yourself who approve, and could not take it back",
                remedy=f"Name yourself as well, with your key: {record.key}.",
            )

    def _require_records_of_reviewers(self, files: Mapping[str, bytes | None]) -> None:
        """Raises ``PolicyError`` where a passkey decides what runs and this machine's key, which signs the records of
        it, is no reviewer's."""
        if current_device() is None or not self.rules.is_restricted:
            return
        records = [try_parse_record(data) for path, data in files.items() if path.startswith(f"{FOLDER}/")]
        if any(record is not None and record.key not in self.rules.approvers for record in records):
            raise PolicyError(
                "the key of the machine that this page runs on is none of those that approve, so it makes no records",
                remedy="Approve it in a terminal of your own: cleared review.",
            )

    # -- two people -----------------------------------------------------------------------------------------------

    def has_agreement(self, card: Card, effects: Iterable[Effect]) -> bool:
        """Whether another reviewer has agreed to exactly these effects about the card."""
        marks = [e.mark for e in effects]
        agreements = parse_agreements(card.id, card.agreed)
        if find_first_agreement(agreements, marks, self.rules, self.workspace_id, self.reviewer_key.public) is None:
            return False
        self.agreed_marks |= set(marks)
        return True

    def stage_agreement(
        self, context: Context, card: Card, effects: Iterable[Effect], says: str, wish: Mapping[str, Any]
    ) -> None:
        """Stage that this is what the first of two has decided about the card."""
        made = sign_agreement(
            self.reviewer_key,
            card=card.id,
            decision=self.decision_id,
            by=self.by,
            at=format_iso(context.now),
            says=says[:500],
            workspace=self.workspace_id,
            covers=tuple(sorted(e.mark for e in effects)),
            wish=wish,
        )
        context.cards.add_card(card)
        context.cards.record_agreement(card.id, made.to_dict())
        context.log_action("agree", f"{card.id} {says}"[:500], card.record_id or "")

    def agreement_card(self, context: Context, subject: Sequence[str], title: str) -> Card:
        """The open card of a decision that takes two as a whole; a new one where there is none."""
        for number in itertools.count():
            identity = card_id(AGREEMENT.name, *subject, str(number))
            card = context.cards.committed_cards.get(identity)
            if card is None:
                return Card(
                    identity,
                    AGREEMENT.name,
                    title[:300],
                    format_iso(context.now),
                    self.decision_id,
                    details={"decision": " ".join(subject)},
                )
            if card.status == "open":
                return card
        raise AssertionError(subject)

    def sign_settlement(self, card: Card, at: str, by: str, says: str) -> Mapping[str, str]:
        """The signature that shows who settled a question; empty where no run waits for it.

        Raises ``WorkspaceError`` where this machine has no key to sign with, and can make none, ``PolicyError`` where
        it is not known which books these are.
        """
        ticket = card.details.get("ticket")
        if ticket is None:
            return {}
        approvals = load_approvals(self.host, self.snapshot)
        approvals.identity.must_be_pinned()
        key = self.reviewer_key if self.by_person and self.rules.is_restricted else run_key(self.host.root, create=True)
        assert key is not None
        return sign_answer(key, approvals.workspace, card.id, ticket, at, by, says)

    # -- the commit -----------------------------------------------------------------------------------------------

    def make_signature_trailers(
        self, changes: Mapping[str, bytes | None], message: str, trailers: Sequence[tuple[str, str]]
    ) -> list[tuple[str, str]]:
        """The trailers that show who decided this commit."""
        marks = [*trailers, (KEY, self.reviewer_key.public)]
        full_message = format_message(message, marks).encode("utf-8", "replace").decode("utf-8").strip("\n")
        files = {p: data for p, data in changes.items() if data != self.snapshot.read_file(p)}
        payload = commit_payload(
            self.workspace_id,
            self.snapshot.commit or "",
            full_message.partition("\n")[0],
            parse_trailers(full_message),
            files,
        )
        return [(KEY, self.reviewer_key.public), (SIGNATURE, self.reviewer_key.sign(payload))]


def find_authorization(host: Host, snapshot: Snapshot, decision: str, by: str, *, person: bool) -> Authorization:
    """Who makes a decision on this commit, by the approved rules in it.

    What restricts needs no trust: rules approved with a key that is not trusted here hold as well.
    """
    authorization = Authorization(host, snapshot, decision, by, person)
    data = snapshot.read_file(CONFIG)
    record = try_parse_record(data)
    approvals = load_approvals(host, snapshot)
    authorization.books = approvals.identity
    if record is not None:
        authorization.rules = review_rules(record.policy)
    problem = host.policy.problem if host.policy is not None else None
    if problem is not None and (record is None or approvals.find_doubt(record) not in TRUST_DOUBTS):
        authorization.problem = problem
    if person and authorization.rules.is_restricted:
        device = current_device()
        own = device.key if device is not None else own_key(host.root)
        authorization.by = authorization.rules.reviewers.get(own.public, by) if own is not None else by
    return authorization


def _list_effects(context: Context) -> list[Effect]:
    return [effect for part in context.parts.values() for effect in part.list_effects()]


def _rule_change_effect(record: ApprovalRecord, before: bytes | None) -> Effect:
    rules, old = review_rules(record.policy), try_parse_record(before)
    return rule_change_effect(rules, old.id if old is not None else "")
