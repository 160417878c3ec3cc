"""Registering a person's passkey, and removing it: a signed record, made by whoever may approve here."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from cleared.base.errors import PolicyError, UsageError
from cleared.changes import commit_messages
from cleared.changes.attestation import load_approvals
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, undo_unless_decided
from cleared.changes.decisions.shown_cards import digest_shown, require_shown
from cleared.changes.host import Host
from cleared.changes.noticed_history import notice_withdrawals
from cleared.gate.proposals.record_signing import Signer
from cleared.runs.approved_scripts import Scripts
from cleared.trust import trust_store
from cleared.trust.approval_record import digest_of
from cleared.trust.passkey_assertions import host_of
from cleared.trust.passkey_records import (
    Passkey,
    is_person_name,
    list_passkeys,
    list_recorded,
    passkey_id,
    passkey_path,
)
from cleared.trust.person_only import refuse_in_job

SHOWN: Final = "passkey"
"""As ``changes.decisions.shown_cards`` names a passkey that is to count."""


class NewPasskey(Struct, frozen=True):
    """What a browser has made. ``key``: ``passkey:HOST:…``."""

    key: str
    credential: str
    counter: int

    @property
    def id(self) -> str:
        """By which the page and the terminal name it, so that a person can compare them."""
        return passkey_id(self.key)

    def digest_for(self, name: str) -> str:
        """The digest of what is shown before it counts as that of this person."""
        return digest_shown([name, self.key, self.credential])


def read_passkeys(host: Host) -> list[Passkey]:
    """The passkeys that count in the last commit, on this machine. Raises ``WorkspaceError``."""
    with host.open_last_commit() as snapshot:
        notice_withdrawals(host, snapshot)
        return list_passkeys(load_approvals(host, snapshot))


def require_person_name(name: str) -> None:
    """Raises ``UsageError`` where a passkey's owner cannot be called that."""
    if not is_person_name(name):
        raise UsageError(
            f"{name[:60]!r} cannot be the name of a person here",
            remedy="At most 60 letters, digits, spaces and . @ ' -.",
        )


def register_passkey(host: Host, name: str, new: NewPasskey) -> Passkey:
    """Have a passkey count from now on, as that of this person.

    Raises ``UsageError`` for a wrong name, ``PolicyError`` where it is not the one that a person was shown, is
    registered already, for who may not decide here, and inside a job.
    """
    refuse_in_job()
    require_person_name(name)
    require_shown(SHOWN, f"the passkey of {name}", new.digest_for(name), "cleared passkey add")

    def stage_registration(decision_context: DecisionContext) -> Decision:
        approvals = Scripts(host, decision_context.snapshot).approvals
        if not host_of(new.key) or any(each.key == new.key for each in list_passkeys(approvals)):
            raise PolicyError("this passkey cannot be registered, or is already", remedy="cleared passkey list")
        signer = Signer(host, approvals, decision_context)
        signer.sign(
            kind="passkey",
            path=passkey_path(new.key),
            digest=digest_of(new.key.encode()),
            policy={"name": name, "key": new.key, "credential": new.credential, "counter": new.counter},
        )
        return Decision(commit_messages.passkey_added(name), signer.files)

    commit_decision(host, "passkey add", stage_registration)
    return next(each for each in read_passkeys(host) if each.id == passkey_id(new.key))


def remove_passkey(host: Host, text: str) -> Passkey:
    """Have a passkey count no more; bringing its record back with git does not bring it back on this machine.

    ``text``: its id, or the beginning of it; also of one that does not count, such as after a kill in the middle of
    this. Raises ``UsageError`` where there is none or several of it,
    ``PolicyError`` for who may not decide here, and inside a job.
    """
    refuse_in_job()
    removed: list[Passkey] = []
    before: list[trust_store.Trust] = []

    def stage_removal(decision_context: DecisionContext) -> Decision:
        approvals = Scripts(host, decision_context.snapshot).approvals
        matching = [each for each in list_recorded(approvals) if text and each.id.startswith(text)]
        if len(matching) != 1:
            raise UsageError(f"no passkey has the id {text[:60]!r}", remedy="cleared passkey list shows them.")
        removed.append(matching[0])
        # Said before the commit: killed in between, it counts no more here.
        before.append(trust_store.load_trust(approvals.workspace))
        trust = trust_store.load_trust(approvals.workspace)
        trust.withdrawn.add(matching[0].record)
        trust.save()
        return Decision(commit_messages.passkey_removed(matching[0].name), {passkey_path(matching[0].key): None})

    with undo_unless_decided(lambda: trust_store.restore_trust(before)):
        commit_decision(host, "passkey remove", stage_removal)
    return removed[-1]
