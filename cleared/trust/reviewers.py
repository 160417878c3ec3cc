"""Who may decide, which decisions need two of them, and the signatures that show afterwards who decided what.

A decision's commit carries ``Key`` and ``Signature``, over the workspace, the commit before, its first line, its other
trailers and the content of every file it changed. What the first of two has agreed to is signed by itself and lies in
the queue, as an event of the card that it is about.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base import money
from cleared.base.effects import Effect
from cleared.trust.approval_record import canonical_digest, digest_of
from cleared.trust.keys import Key, verify_signature

KEY: Final = "Key"
SIGNATURE: Final = "Signature"
_VERSION: Final = 1
_MAX_TEXT: Final = 8_000


class ReviewRules(Struct, frozen=True):
    """``reviewers``: public key → name; nobody: everybody may decide. ``two_person``: the amount from which on it
    takes two of them. ``bookkeepers``: the names of those who approve nothing."""

    reviewers: Mapping[str, str] = {}
    two_person: Decimal | None = None
    bookkeepers: frozenset[str] = frozenset()

    @property
    def is_restricted(self) -> bool:
        return bool(self.reviewers)

    def person_of(self, key: str) -> str:
        """Whose key it is: one person may have several, such as a passkey beside another key."""
        return self.reviewers.get(key) or key

    @property
    def people(self) -> frozenset[str]:
        """All who may decide."""
        return frozenset(map(self.person_of, self.reviewers))

    @property
    def approvers(self) -> Mapping[str, str]:
        """The reviewers who may approve what runs, and the settings; public key → name."""
        return {key: name for key, name in self.reviewers.items() if name not in self.bookkeepers}

    def needs_two(self, weight: Decimal | None) -> bool:
        """Whether two must have agreed to something of this weight; None is more than any amount."""
        return self.two_person is not None and (weight is None or weight >= self.two_person)


UNRESTRICTED: Final = ReviewRules()


def review_rules(policy: Mapping[str, Any]) -> ReviewRules:
    """The rules that an approved policy sets, as its record has them; what cannot be read is as shipped."""
    listed = policy.get("reviewers", ())
    people = {
        str(each["key"]): str(each.get("name", ""))
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and "key" in each
    }
    try:
        amount = Decimal(str(policy["thresholds.two_person"]))
    except (KeyError, InvalidOperation):
        amount = Decimal(0)
    named = policy.get("bookkeepers", ())
    bookkeepers = frozenset(map(str, named if isinstance(named, list) else ()))
    return ReviewRules(people, amount if amount.is_finite() and amount > 0 else None, bookkeepers)


# -- a decision's commit ----------------------------------------------------------------------------------------------


def commit_payload(
    workspace: str, parent: str, subject: str, trailers: Mapping[str, str], files: Mapping[str, bytes | None]
) -> bytes:
    """What is signed of a commit. ``files``: those that differ from the parent's (None: removed)."""
    return _canonical_json(
        {
            "version": _VERSION,
            "workspace": workspace,
            "parent": parent,
            "subject": subject,
            "trailers": {k: v for k, v in trailers.items() if k != SIGNATURE},
            "files": {path: "" if data is None else digest_of(data) for path, data in files.items()},
        }
    )


# -- what the first of two agrees to ----------------------------------------------------------------------------------


class Agreement(Struct, frozen=True):
    """``covers``: marks of everything it would do (see ``effects``); ``wish``: how to decide the same again."""

    card: str
    decision: str
    by: str
    at: str
    workspace: str
    says: str
    covers: tuple[str, ...]
    wish: Mapping[str, Any] = {}
    key: str = ""
    signature: str = ""

    def signed_bytes(self) -> bytes:
        data = asdict(self)
        del data["signature"]
        return _canonical_json({"version": _VERSION, **data})

    @property
    def is_genuine(self) -> bool:
        """Whether the signature is that of the key it names."""
        return bool(self.key) and verify_signature(self.key, self.signature, self.signed_bytes())

    def to_dict(self) -> dict[str, Any]:
        """As the queue keeps it, beside the card."""
        fields = asdict(self)
        del fields["card"]
        return fields


def sign_agreement(key: Key, **values: Any) -> Agreement:
    """A signed agreement."""
    unsigned = Agreement(**values, key=key.public)
    return Agreement(**values, key=key.public, signature=key.sign(unsigned.signed_bytes()))


def parse_agreements(card: str, records: Iterable[Mapping[str, Any]]) -> list[Agreement]:
    """What was agreed to about a card, oldest first; only what can be read."""
    made = []
    for data in records:
        try:
            values: dict[str, Any] = {k: tuple(v) if k == "covers" else v for k, v in data.items()}
            each = Agreement(card=card, **values)
            texts = (each.decision, each.by, each.at, each.workspace, each.says, each.key, each.signature)
            if all(isinstance(t, str) and len(t) < _MAX_TEXT for t in (*texts, *each.covers)):
                made.append(each)
        except TypeError:
            continue
    return sorted(made, key=lambda a: a.at)


def find_first_agreement(
    agreements: Iterable[Agreement], covers: Iterable[str], rules: ReviewRules, workspace: str, other_than: str
) -> Agreement | None:
    """The agreement of another reviewer to exactly this, if it is what was agreed to last."""
    wanted = tuple(sorted(covers))
    for each in reversed(list(agreements)):
        if each.covers != wanted:
            return None
        is_other = each.key in rules.reviewers and rules.person_of(each.key) != rules.person_of(other_than)
        if is_other and each.workspace == workspace and each.is_genuine:
            return each
    return None


def effect_mark(*content: Any) -> str:
    """A short name for one thing that a decision does; the same wherever the same is done."""
    return hashlib.sha256(canonical_digest(list(content)).encode()).hexdigest()[:32]


def rule_change_effect(rules: ReviewRules, previous: str) -> Effect:
    """Other rules of who may decide. ``previous``: the id of the record that they replace."""
    amount = "" if rules.two_person is None else money.format_amount(rules.two_person.normalize())
    roles = [sorted(rules.bookkeepers)] if rules.bookkeepers else []
    return Effect(effect_mark("rules", sorted(rules.reviewers.items()), amount, previous, *roles), None)


def _canonical_json(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str).encode("ascii")
