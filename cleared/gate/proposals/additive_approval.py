"""Approving without a person what only confirms persons' decisions, where a person has said so beforehand.

``self_improvement.approve: additive`` counts where this user's own key signed the settings: the key signs here what its
owner asked of it, and on no other machine. Nothing that is decided by is taken from the repository unchecked: the books
and their history are in order, each decision that counts is attested, and the change is made and examined here, under
the lock, from the version that is approved. What a proposal says of itself is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.cards import queue_files
from cleared.changes import commit_messages
from cleared.changes.audit.record_violations import check_committed_records
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.additive_changes import find_reason_to_ask
from cleared.gate.examination import Gate
from cleared.gate.improvements import Improvement, LessonSource, combine_edits, find_lessons
from cleared.gate.proposals.author import IMPROVE, Author
from cleared.gate.proposals.proposal import Proposal, load_proposals
from cleared.gate.proposals.record_signing import Signer, sign_live_files
from cleared.gate.proposals.submission import (
    LEARNING,
    check_rate_limit,
    list_superseded,
    settle_proposal,
    supersede_proposals,
    write_proposal,
)
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import CONFIG
from cleared.trust.keys import KeyLocked, own_key, unlock_own_key
from cleared.trust.person_only import current_job
from cleared.trust.reviewers import review_rules
from cleared.trust.verification import Approvals

SETTING: Final = "self_improvement.approve"
ADDITIVE: Final = "additive"
_AMOUNTS: Final = re.compile(r"(?:(?<=\()|, )(?:from|up to) [0-9.]+")
"""What a row's words say of its amounts."""
REASON: Final = "it only confirms what persons decided (self_improvement.approve: additive)"


class PersonNeeded(PolicyError):
    """Why a person must approve the change; nothing was approved."""


class SelfApproved(Struct):
    """What became live."""

    proposal: list[Proposal] = []
    improvements: list[Improvement] = []
    signers: list[Signer] = []


def approve_additive(host: Host, path: str, wanted: Sequence[Improvement], author: Author) -> SelfApproved:
    """Make those of ``wanted`` live that confirm decisions, all or none: one commit. Nothing where none of them does.

    Raises ``PersonNeeded`` where they do more than that, or nothing may be approved here without a person, and
    ``PolicyError`` over budget; nothing is changed then.
    """
    done = SelfApproved()
    keys = [each.key for each in wanted if each.confirms]
    if not keys:
        return done
    if current_job():
        raise PersonNeeded("nothing is approved inside a job")
    _unlock_key(host, author)

    def stage_approval(decision_context: DecisionContext) -> Decision:
        snapshot = decision_context.snapshot
        host.refuse_unapproved_settings()
        with Gate(host, decision_context.repo) as gate:
            _require_setting(host, gate.scripts.approvals)
            _require_order(host, decision_context)
            source = _read_live(gate, path)
            proposals = load_proposals(CommittedSource(snapshot))
            if proposals.damaged:  # it may be a refusal, of which nobody can tell any more
                raise proposals.damaged[0]
            cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
            lessons = find_lessons(LessonSource(host, snapshot, gate.scripts, cards)).improvements
            learned = [
                each
                for each in lessons
                if each.path == path
                and each.key in keys
                and each.confirms
                and not was_refused(each, proposals, gate.scripts.approvals)
            ]
            learned = learned[: host.config.self_improvement.max_changes_per_agent]
            confirmed = {record: goes_to for each in learned for record, goes_to in each.confirms.items()}
            if not learned:
                raise PersonNeeded("no decision says so any more")
            text = combine_edits(source, learned).encode("utf-8")
            if not author.is_asked:
                check_rate_limit(host, proposals, gate.scripts.approvals, [path], decision_context.context.now)
            candidate = gate.gather_candidate([path], texts={path: text})
            report = gate.examine(candidate)
            if why := find_reason_to_ask(report, path, confirmed):
                raise PersonNeeded(why)
            replaced = list_superseded(proposals, [path], author)
            message = "\n".join(each.says for each in learned)
            new, files = write_proposal(host, decision_context, gate, report, proposals, author, message, replaced)
            if new.data["old_grants"] != new.data["grants"]:
                raise PersonNeeded("it would be granted something else")
            files |= supersede_proposals(decision_context, gate, new, candidate, replaced)
            signer = sign_live_files(host, gate, decision_context, new, report, REASON)
        files |= signer.files | settle_proposal(decision_context, new, "approved", REASON)
        done.proposal, done.improvements, done.signers = [new], learned, [signer]
        marks = (("Approved-by", IMPROVE), ("Proposal", new.folder), ("Digest", new.digest))
        return Decision(commit_messages.proposal_approved_itself(new.id, new.title), files, marks, edited_files=(path,))

    commit_decision(host, "improve", stage_approval, by=IMPROVE, collects=[done])
    for signer in done.signers:
        signer.update_trust()
    return done


def was_refused(improvement: Improvement, proposals: Iterable[Proposal], approvals: Approvals) -> bool:
    """Whether a person has rejected it, or it was live and was taken back; for whichever amounts: one more decision
    makes another range of them, and nothing of what that person said no to is other by it."""
    key = _AMOUNTS.sub("", improvement.key)
    return any(
        _AMOUNTS.sub("", line).startswith(key)
        for proposal in proposals
        if proposal.status == "rejected" or (proposal.status == "approved" and _was_taken_back(proposal, approvals))
        for line in str(proposal.data["message"]).splitlines()
    )


def _was_taken_back(proposal: Proposal, approvals: Approvals) -> bool:
    is_learned = proposal.data["author"]["name"] in LEARNING and not proposal.by_human
    return is_learned and any(approvals.is_taken_back(str(f["path"]), str(f["digest"])) for f in proposal.data["files"])


def _unlock_key(host: Host, author: Author) -> None:
    """Whoever asked for it can type a passphrase; a service never asks."""
    if author.is_asked:
        unlock_own_key(host.root)
        return
    key = own_key(host.root)
    try:
        if key is not None:
            key.require_unlocked()
    except KeyLocked:
        raise PersonNeeded("the approval key has a passphrase, so it signs only while you are there") from None


def _require_setting(host: Host, approvals: Approvals) -> None:
    """Raises ``PersonNeeded`` unless this user's own key has approved, for these books, that changes approve
    themselves."""
    record = approvals.read_record(CONFIG)
    if record is None or not approvals.identity.pinned or record.policy.get(SETTING) != ADDITIVE:
        raise PersonNeeded(f"{SETTING}: {ADDITIVE} is not approved in these books")
    own = own_key(host.root)
    if own is None or own.public != record.key:
        raise PersonNeeded(f"{record.by} approved {SETTING}: {ADDITIVE}, with another key than yours")
    if review_rules(record.policy).is_restricted:
        raise PersonNeeded("reviewers are named, so one of them approves")


def _require_order(host: Host, decision_context: DecisionContext) -> None:
    """Raises ``PersonNeeded`` where a check names anything: somebody else may have written the decisions."""
    violations = check_committed_records(host, decision_context.repo, decision_context.snapshot)
    if violations:
        raise PersonNeeded(f"the books are not in order (cleared check): {violations[0].message}")


def _read_live(gate: Gate, path: str) -> str:
    """The text of the agent. Raises ``PersonNeeded`` where something else is committed than what is approved, or it is
    disabled."""
    live = gate.snapshot.read_file(path)
    standing = gate.scripts.approvals.verify_agent(path, live) if live is not None else None
    if live is None or standing is None or not standing.may_run:
        raise PersonNeeded(f"{path} is not live: {standing.reason if standing is not None else 'it is not committed'}")
    return live.decode("utf-8", "replace")


def list_self_approved(host: Host, since: datetime) -> list[str]:
    """What has approved itself since and was not taken back, one line each. Raises ``WorkspaceError`` where a proposal
    cannot be read."""
    with host.open_last_commit() as snapshot:
        approvals = Scripts(host, snapshot).approvals
        folder = host.layout.agents_dir
        paths = [f"{folder}/{name}" for name in sorted(snapshot.list_folder(folder)) if name.endswith(".py")]
        versions = {path: approvals.list_versions(path) for path in paths}
        titles = {each.folder: f"{each.id}: {each.title}" for each in load_proposals(CommittedSource(snapshot))}
    return [
        f"{titles.get(record.proposal, record.path)} (take it back: cleared agent rollback "
        f"{path.rsplit('/', 1)[-1].removesuffix('.py')})"
        for path in paths
        for record in versions[path]
        if record.by == IMPROVE and record.reason == REASON and record.at > format_iso(since)
    ]
