"""Deciding about proposals: where scripts, protected settings and tests become live."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import ClearedError, Place, PolicyError, UsageError, quote_path
from cleared.base.safe_files import write_atomic
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.decisions.shown_cards import digest_shown, refuse_changed, require_shown
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.candidate import Change, approved_text, make_candidate
from cleared.gate.dry_run_inputs import NotRepeatable
from cleared.gate.examination import Gate, Report
from cleared.gate.proposals import proposal as store
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.circumstances import digest_circumstances
from cleared.gate.proposals.containment import list_replaced
from cleared.gate.proposals.proposal import Proposal, find_proposal, must_be_open, require_number
from cleared.gate.proposals.record_signing import Signer, sign_live_files
from cleared.gate.proposals.shown_proposal import show_proposal
from cleared.gate.proposals.submission import (
    describe_proposal,
    mark_examined,
    settle_proposal,
    to_utf8_text,
    was_examined_here,
    write_proposal,
)
from cleared.git import blob_id
from cleared.git.text_merge import merge_versions
from cleared.git.working_files import read_content_id
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import (
    canonical_digest,
    digest_of,
)
from cleared.trust.keys import unlock_own_key
from cleared.trust.person_only import refuse_in_job
from cleared.trust.shown_digests import note_shown
from cleared.workspace.fleet_clones import name_next_step
from cleared.workspace.settings.loading import load_config
from cleared.workspace.settings.protected_settings import compare_settings, protected_settings_of


class ProposalOutcome(Struct, frozen=True):
    """``commit`` is None where it was decided before. ``edited``: files whose working copies are somebody's edit of
    since, and stay. ``next_step``: what a person has to do beside, as settings are in force now."""

    proposal: Proposal
    commit: str | None
    edited: tuple[str, ...] = ()
    next_step: str = ""


class StaleProposal(Exception):
    """What would happen now differs from what was reviewed; the text says how."""


def approve_proposal(host: Host, text: str, unreached: str = "") -> ProposalOutcome:
    """Make a proposal live: one commit. Where it is approved already, nothing happens.

    ``unreached``: where it may do what no dry run showed, its number, as the person typed it.

    What is committed is what was reviewed; a working copy that somebody has edited since stays as it is, but that
    settings are put beside an edit of other ones. Raises
    ``PolicyError`` where the proposal is not what a person was shown, was decided otherwise, was edited itself, or is
    stale (then a new proposal takes its place), and inside a job.
    """
    refuse_in_job()
    _must_be_as_committed(host, text)
    unlock_own_key(host.root)
    outcome: list[ProposalOutcome] = []
    stale: list[tuple[Proposal, Proposal | None, str]] = []
    signers: list[Signer] = []
    before: dict[str, bytes | None] = {}

    def stage_approval(decision_context: DecisionContext) -> Decision | None:
        proposals = store.load_proposals(CommittedSource(decision_context.snapshot))
        proposal = find_proposal(proposals, text)
        if proposal.status == "approved":
            outcome.append(ProposalOutcome(proposal, None))
            return None
        must_be_open(proposal)
        shown = show_proposal(host, Scripts(host, decision_context.snapshot), proposal, proposals).digest
        require_shown(proposal.folder, proposal.title, shown, f"cleared agent approve {proposal.id}")
        require_number(proposal, unreached)
        _must_be_intact(proposal)
        with Gate(host, decision_context.repo) as gate:
            changes = _current_changes(gate, proposal)
            try:
                report = _examine_again(host, gate, proposal, changes, proposals)
            except StaleProposal as why:
                decided, new = _replace_stale(host, gate, decision_context, proposal, changes, proposals, str(why))
                stale.append((proposal, new, str(why)))
                return decided
            signers.append(sign_live_files(host, gate, decision_context, proposal, report))
            files = signers[0].files
        before[host.layout.config_file] = decision_context.snapshot.read_file(host.layout.config_file)
        files |= settle_proposal(decision_context, proposal, "approved", "")
        step = ""
        if report.candidate.config is not None:
            now, wanted = map(protected_settings_of, (host.config, report.candidate.config))
            step = name_next_step(host.root, compare_settings(now, wanted))
        outcome.append(ProposalOutcome(proposal, "made", next_step=step))
        marks = (("Approved-by", decision_context.by), ("Proposal", proposal.folder), ("Digest", proposal.digest))
        is_config = {f["kind"] for f in proposal.data["files"]} == {"config"}
        subject = commit_messages.proposal_approved(proposal.id, proposal.title, is_config=is_config)
        return Decision(subject, files, marks, edited_files=tuple(proposal.paths))

    commit = commit_decision(host, f"agent approve {text}", stage_approval, collects=[outcome, stale, signers])
    if stale:
        _raise_stale(host, *stale[0])
    for signer in signers:
        signer.update_trust()
    approved = outcome[0].proposal
    edited = [p for p in approved.paths if is_edited(host, p, approved.texts[p])] if commit is not None else []
    left = [p for p in edited if p not in before or not _join_settings(host, before[p], approved.texts[p])]
    return replace(outcome[0], commit=commit, edited=tuple(left))


def _join_settings(host: Host, before: bytes | None, approved: bytes | None) -> bool:
    """Put what was approved of the settings beside somebody's edit of them, where both fit together: else approving the
    edit would take it back. Whether it was done."""
    path = host.root / host.layout.config_file
    with suppress(ClearedError, OSError, UnicodeDecodeError):
        text, fits = merge_versions(before, path.read_bytes(), approved)
        if text is not None and fits:
            load_config(text.decode("utf-8-sig"))
            write_atomic(path, text)
            return True
    return False


def reject_proposal(host: Host, text: str, reason: str) -> ProposalOutcome:
    """Decide against a proposal; the live scripts stay.

    Raises ``UsageError`` without a reason, ``PolicyError`` where it was decided already.
    """
    refuse_in_job()
    if not reason.strip():
        raise UsageError("rejecting needs a reason", remedy="Pass --reason …: whoever proposes next reads it.")
    rejected: list[Proposal] = []

    def stage_rejection(decision_context: DecisionContext) -> Decision:
        proposals = store.load_proposals(CommittedSource(decision_context.snapshot))
        proposal, scripts = find_proposal(proposals, text), Scripts(host, decision_context.snapshot)
        must_be_open(proposal)
        refuse_changed(
            proposal.folder, proposal.title, lambda: show_proposal(host, scripts, proposal, proposals).digest
        )
        rejected.append(proposal)
        reason_line = " ".join(to_utf8_text(reason).split())
        message = commit_messages.proposal_rejected(proposal.id, reason_line)
        return Decision(
            message,
            settle_proposal(decision_context, proposal, "rejected", reason_line[:2_000]),
            (("Proposal", proposal.folder),),
        )

    commit = commit_decision(host, f"agent reject {text}", stage_rejection, collects=[rejected])
    with suppress(ClearedError):  # then no program is told it
        note_shown(host.root, digest_rejection(rejected[0], " ".join(to_utf8_text(reason).split())[:2_000]), "taken")
    return ProposalOutcome(rejected[0], commit)


def digest_rejection(proposal: Proposal, reason: str) -> str:
    """By which it is known on this machine that somebody here has given this reason: in git everybody can write one."""
    return digest_shown(["rejection", proposal.folder, reason])


def _must_be_as_committed(host: Host, text: str) -> None:
    """Raises ``PolicyError`` where the proposal itself was edited: worse than any other file of the queue."""
    with host.open_last_commit() as snapshot:
        proposal = find_proposal(store.load_proposals(CommittedSource(snapshot)), text)
        for path in snapshot.list_entries(f"{store.FOLDER}/{proposal.folder}"):
            full = host.root / path
            if not full.is_file() or full.is_symlink() or full.read_bytes() != snapshot.read_file(path):
                raise PolicyError(
                    f"{proposal.id} itself was edited after it was proposed",
                    place=Place(path),
                    remedy=f"Restore it: git checkout HEAD -- {quote_path(path)}",
                )


def _must_be_intact(proposal: Proposal) -> None:
    """Raises ``PolicyError`` where a file is not the one that was reviewed."""
    edited = proposal.changed_file()
    if edited:
        raise PolicyError(
            f"this is not the text that {proposal.id} was examined with",
            place=Place(edited),
            remedy="Restore it from git, or propose again.",
        )


def is_edited(host: Host, path: str, text: bytes | None) -> bool:
    """Whether something else lies there than what is approved now."""
    return read_content_id(host.root / path, "sha1") != (blob_id(text, "sha1") if text is not None else None)


def _current_changes(gate: Gate, proposal: Proposal) -> list[Change]:
    """The proposal's changes against what is approved now."""
    files = proposal.data["files"]
    return proposal.changes_against(
        {str(f["path"]): approved_text(gate.scripts, str(f["path"]), f["kind"]) for f in files}
    )


def _examine_again(
    host: Host, gate: Gate, proposal: Proposal, changes: list[Change], proposals: list[Proposal]
) -> Report:
    """The gate's report of now. Raises ``StaleProposal`` where it is not the one that was reviewed."""
    before = {str(f["path"]): str(f["old"]) for f in proposal.data["files"]}
    for change in changes:
        if before[change.path] != ("" if change.old is None else digest_of(change.old)):
            raise StaleProposal(f"{change.path} has another approved version by now")
    is_as_then = proposal.data.get("circumstances") == digest_circumstances(
        host, gate.scripts, changes, proposal.data["grants"]
    )
    holds = is_as_then and was_examined_here(host, proposal)
    try:
        report = gate.examine(make_candidate(changes), pins=proposal.pins, runs=0 if holds else None)
    except NotRepeatable as error:
        raise StaleProposal(str(error)) from None
    if not report.passed:
        raise StaleProposal(f"it does not pass any more: {report.findings[0].message}")
    if report.grants != proposal.data["grants"]:
        raise StaleProposal("it would be granted something else")
    if report.digest != proposal.digest:
        raise StaleProposal("its effects are others by now")
    if not holds:
        _must_describe_the_same(host, gate, proposal, report, proposals)
    return report


def _must_describe_the_same(
    host: Host, gate: Gate, proposal: Proposal, report: Report, proposals: list[Proposal]
) -> None:
    """What came from elsewhere may say anything of itself, and words that rest on other settings may hold no more.
    Raises ``StaleProposal`` where this machine would say otherwise now."""
    data, message = proposal.data, str(proposal.data["message"])
    at, replaced = str(data["created_at"]), list_replaced(proposal.id, proposals, report.candidate, gate.scripts)
    mine = describe_proposal(host, gate, report, proposals, _author_of(proposal), message, at, replaced)
    if canonical_digest(mine["behaviour"]) != canonical_digest(data["behaviour"]):
        raise StaleProposal("examined on this machine now, its effects on past runs are others")
    for key in ("card", "title", "checks", "latent", "old_grants", "rejected_before", "effects", "fingerprint"):
        if canonical_digest(mine[key]) != canonical_digest(data.get(key)):
            raise StaleProposal(f"examined on this machine now, its {key.replace('_', ' ')} would be another")


def _author_of(proposal: Proposal) -> Author:
    return Author(str(proposal.data["author"]["name"]), proposal.by_human, proposal.is_asked)


def _replace_stale(
    host: Host,
    gate: Gate,
    decision_context: DecisionContext,
    proposal: Proposal,
    changes: list[Change],
    proposals: list[Proposal],
    why: str,
) -> tuple[Decision, Proposal | None]:
    """The stale proposal is settled; another with a card of now takes its place, if it passes."""
    report = gate.examine(make_candidate(changes))
    new: Proposal | None = None
    files: dict[str, bytes | None] = {}
    if report.passed and any(c.old != c.new for c in changes):
        new, files = write_proposal(
            host, decision_context, gate, report, proposals, _author_of(proposal), str(proposal.data["message"])
        )
    instead = f"{why}; {new.id} takes its place" if new else why
    files |= settle_proposal(decision_context, proposal, "stale", instead)
    subject = commit_messages.proposal_outdated(proposal.id, new.id if new else None)
    return Decision(subject, files, (("Proposal", (new or proposal).folder),)), new


def _raise_stale(host: Host, old: Proposal, new: Proposal | None, why: str) -> None:
    if new is None:
        raise PolicyError(
            f"{old.id} is stale: {why}; nothing was approved",
            remedy="Correct it and propose again: cleared agent check.",
        )
    mark_examined(host, new)
    raise PolicyError(
        f"{old.id} is stale: {why}; nothing was approved, and {new.id} has taken its place",
        remedy=f"See what it would do now (cleared agent diff {new.id} --impact), "
        f"then: cleared agent approve {new.folder}.",
    )
