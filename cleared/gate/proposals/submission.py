"""Proposing: a candidate that passes the gate is stored as a proposal with a card. The live scripts stay.

Programs may propose changes by themselves only so often; what a person asks for in a session has no such limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from cleared.base.clock import find_day, format_iso
from cleared.base.errors import CheckFailed, Place, PolicyError, UsageError, WorkspaceError
from cleared.base.short_text import list_lines
from cleared.cards import queue_files
from cleared.cards.card import Card
from cleared.cards.kinds import PROPOSAL
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host, current_user
from cleared.changes.record_sources import CommittedSource
from cleared.gate.candidate import Candidate
from cleared.gate.examination import Gate, Report
from cleared.gate.improvements import LessonSource, find_title
from cleared.gate.proposals import change_text, proposal_card
from cleared.gate.proposals.author import IMPROVE, Author
from cleared.gate.proposals.circumstances import digest_circumstances
from cleared.gate.proposals.containment import describe_succession, list_lost_lines, say_successor
from cleared.gate.proposals.proposal import (
    FOLDER,
    Proposal,
    ProposalDecision,
    load_proposals,
    next_number,
    render_proposal,
)
from cleared.trust.approval_record import digest_of
from cleared.trust.device_signing import current_device
from cleared.trust.person_only import current_job
from cleared.trust.shown_digests import is_known, note_shown
from cleared.trust.verification import Approvals

_MAX_MESSAGE: Final = 10_000
LEARNING: Final = (IMPROVE, f"job {IMPROVE}")
"""The authors of what was learned."""


class GateFailed(CheckFailed):
    """The candidate does not pass; nothing was proposed. ``report`` has all findings."""

    def __init__(self, report: Report) -> None:
        self.report = report
        found = [f"{f.place}: [{f.rule}] {f.message}. {f.remedy}" for f in report.findings]
        super().__init__("\n  ".join(["it does not pass the gate; nothing was proposed:", *list_lines(found, 20)]))


def propose_changes(
    host: Host,
    targets: Sequence[str],
    *,
    texts: Mapping[str, bytes | None] | None = None,
    message: str = "",
    author: Author | None = None,
    instead_of: Collection[str] = (),
) -> tuple[Proposal, bool]:
    """Propose the working copies of ``targets``, or these files as ``texts`` has them; the proposal, and whether it is
    new (an open one of the same change is the same proposal).

    ``texts``: path → content, None to remove the file. With it no working copy is read. No targets: all of them.
    ``instead_of``: the folders of earlier proposals, by the same program or by sessions, whose place this one takes.

    Raises ``GateFailed`` where a stage finds a blocker, ``UsageError`` where there is nothing to propose,
    ``PolicyError`` over budget. Nothing is changed then.
    """
    inside, device = current_job(), current_device()
    user = device.name if device is not None else current_user()
    author = author or (Author(f"job {inside}", is_human=False) if inside else Author(user))
    # It stands in a trailer and on the card: one line that can be seen.
    name = "".join(c for c in " ".join(author.name.split()) if c.isprintable())[:60]
    if not name:
        raise UsageError("the author has no name", remedy="Pass --author NAME, or leave it out if it is you.")
    author = replace(author, name=to_utf8_text(name), is_asked=author.is_asked and not inside)
    message = host.redactor.redact_text(to_utf8_text(message))[:_MAX_MESSAGE]
    made: list[tuple[Proposal, bool]] = []

    def stage_proposal(decision_context: DecisionContext) -> Decision | None:
        with Gate(host, decision_context.repo) as gate:
            candidate = gate.gather_candidate(targets or list(texts or ()), texts=texts)
            _refuse_secrets(host, candidate)
            proposals = load_proposals(CommittedSource(decision_context.snapshot))
            same = [
                p
                for p in proposals
                if p.fingerprint == candidate.fingerprint
                and p.status == "open"
                and all(p.texts.get(c.path) == c.new for c in candidate.changes)  # not edited by hand since
            ]
            if same:
                made.append((same[-1], False))
                return None
            paths = [c.path for c in candidate.changes]
            if not author.is_human and not author.is_asked:
                check_rate_limit(host, proposals, gate.scripts.approvals, paths, decision_context.context.now)
            report = gate.examine(candidate)
            if not report.passed:
                raise GateFailed(report)
            replaced = list_superseded(proposals, paths, author, instead_of)
            new, files = write_proposal(host, decision_context, gate, report, proposals, author, message, replaced)
            files |= supersede_proposals(decision_context, gate, new, candidate, replaced)
        made.append((new, True))
        return Decision(commit_messages.proposal_made(new.id, new.title), files, (("Proposal", new.folder),))

    commit = commit_decision(host, "agent propose", stage_proposal, by=author.name, mark="Proposed")
    if commit is not None:
        mark_examined(host, made[0][0])
    return made[0]


def list_superseded(
    proposals: Iterable[Proposal], paths: Sequence[str], author: Author, instead_of: Collection[str] = ()
) -> list[Proposal]:
    """The open proposals whose place a new one of these paths takes."""
    return [p for p in proposals if p.status == "open" and _takes_place(paths, author, p, instead_of)]


def supersede_proposals(
    decision_context: DecisionContext, gate: Gate, new: Proposal, candidate: Candidate, replaced: Iterable[Proposal]
) -> dict[str, bytes | None]:
    """The files that say that ``new`` took the place of these."""
    files: dict[str, bytes | None] = {}
    for old in replaced:
        reason = say_successor(new.id, contains=not list_lost_lines(old, candidate, gate.scripts))
        files |= settle_proposal(decision_context, old, "superseded", reason)
    return files


def _takes_place(paths: Sequence[str], author: Author, old: Proposal, instead_of: Collection[str]) -> bool:
    """Whether a change of these paths replaces an open proposal, so that one change at a time is asked about.

    A person's newer change replaces what it covers; a program's only what this program proposed, and a session's what
    any session did: the same person asked for both.
    """
    is_own = not old.by_human and (old.data["author"]["name"] == author.name or (old.is_asked and author.is_asked))
    if old.folder in instead_of and is_own:
        return True
    return set(old.paths) <= set(paths) and (author.is_human or is_own)


def to_utf8_text(text: str) -> str:
    """Without what is no text: bytes of an argument that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _refuse_secrets(host: Host, candidate: Candidate) -> None:
    """Raises ``PolicyError`` where a proposal would bring a secret into the repository, whatever becomes of it."""
    for change in candidate.changes:
        text, old = ((data or b"").decode("utf-8", "replace") for data in (change.new, change.old))
        if any(secret not in old for secret in host.redactor.find_secrets(text)):
            raise PolicyError(
                "it holds a secret that is not committed, and a proposal is kept in the repository",
                place=Place(change.path),
                remedy="Take the secret out, propose and approve, then put it back.",
            )


def write_proposal(
    host: Host,
    decision_context: DecisionContext,
    gate: Gate,
    report: Report,
    proposals: list[Proposal],
    author: Author,
    message: str,
    replaced: Sequence[Proposal] = (),
) -> tuple[Proposal, dict[str, bytes | None]]:
    """A proposal from a passed report, its files, and its card (staged). ``replaced``: what it takes the place of."""
    context = decision_context.context
    data = describe_proposal(host, gate, report, proposals, author, message, format_iso(context.now), replaced)
    name = f"P{next_number(proposals)}-{report.digest.removeprefix('sha256:')[:8]}"
    texts = {c.path: c.new for c in report.candidate.changes}
    proposal = Proposal(name, data, None, texts)
    files: dict[str, bytes | None] = {f"{FOLDER}/{name}/proposal.json": render_proposal(data)}
    files |= {f"{FOLDER}/{name}/files/{path}": text for path, text in texts.items() if text is not None}
    context.cards.add_card(
        Card(
            proposal.card,
            PROPOSAL.name,
            f"{proposal.id}: {proposal.title}",
            format_iso(context.now),
            None,
            None,
            proposal.agents[0] if proposal.agents else None,
            {"proposal": name},
        )
    )
    return proposal, files


def describe_proposal(
    host: Host,
    gate: Gate,
    report: Report,
    proposals: list[Proposal],
    author: Author,
    message: str,
    at: str,
    replaced: Sequence[Proposal] = (),
) -> dict[str, Any]:
    """The content of ``proposal.json``: author, files, card, checks, effects."""
    approvals = gate.scripts.approvals
    old_grants: dict[str, list[str]] = {}
    for path in report.subjects:
        approved, record = approvals.approved_version(path)
        if approved is not None:
            source = approved.decode("utf-8", "replace")
            old_grants[path] = sorted(record.grants if record else gate.scripts.find_script_grants(source, path))
    refused = [p for p in proposals if p.fingerprint == report.candidate.fingerprint and p.status == "rejected"]
    before = None
    if refused and refused[-1].decision:
        decision = refused[-1].decision
        before = {"id": refused[-1].id, "by": decision.by, "at": decision.at, "reason": decision.reason}
    again = [f"The same change was rejected before, by {before['by']}: {before['reason']}"] if before else []
    for old in replaced:
        again += describe_succession(old, list_lost_lines(old, report.candidate, gate.scripts))
    taken_back = []
    for change in report.candidate.changes:
        if change.kind in ("agent", "script") and change.new is not None:
            standing = approvals.verify_version(change.path, change.new)
            if standing.state == "quarantined":
                taken_back.append(f"{change.name}: {standing.reason}")
    history, synthetic = report.total_impact(), report.total_impact(sample=True)
    return {
        "title": _find_learned_title(host, gate, report, author, message) or change_text.write_title(report),
        "author": {"name": author.name, "human": author.is_human} | ({"asked": True} if author.is_asked else {}),
        "message": message,
        "created_at": at,
        "base": report.base,
        "files": [
            {"path": c.path, "kind": c.kind, "old": "" if c.old is None else digest_of(c.old), "digest": c.digest}
            for c in report.candidate.changes
        ],
        "fingerprint": report.candidate.fingerprint,
        "circumstances": digest_circumstances(host, gate.scripts, report.candidate.changes, report.subjects),
        "digest": report.digest,
        "effects": report.effects,
        "grants": report.grants,
        "old_grants": old_grants,
        "pins": {agent: pin.to_dict() for agent, pin in report.pins.items()},
        "card": proposal_card.write_parts(
            report,
            host,
            gate.snapshot,
            old_grants,
            {"different": taken_back, "others": again},
            datetime.fromisoformat(at),
        ),
        "latent": {file: latent.to_dict() for file, latent in report.latent.items()},
        "rejected_before": before,
        "checks": report.to_dict(),
        "behaviour": {
            "history": history.to_dict(),
            "synthetic": synthetic.to_dict(),
            "warnings": [w.message for w in report.warnings],
        },
    }


def _find_learned_title(host: Host, gate: Gate, report: Report, author: Author, message: str) -> str:
    """What stands above a change that was learned; empty for any other."""
    if author.is_human or author.name not in LEARNING or len(report.candidate.changes) != 1:
        return ""
    change = report.candidate.changes[0]
    cards = queue_files.load_cards(CommittedSource(gate.snapshot), host.layout.queue_dir)
    source = LessonSource(host, gate.snapshot, gate.scripts, cards)
    return find_title(source, change.path, change.old, change.new, message)


def settle_proposal(
    decision_context: DecisionContext, proposal: Proposal, status: Any, reason: str
) -> dict[str, bytes | None]:
    """The file with the decision about a proposal; its card is resolved in the draft."""
    context, by = decision_context.context, decision_context.by
    at, reason = format_iso(context.now), context.env.redactor.redact_text(reason)
    context.cards.resolve_card(proposal.card, at, by, f"{status}: {reason}" if reason else status)
    return {f"{FOLDER}/{proposal.folder}/decision.json": ProposalDecision(status, by, at, reason).render()}


def mark_examined(host: Host, proposal: Proposal) -> None:
    """Note that this machine itself examined the proposal, where no program of the workspace can write: what came from
    elsewhere is examined again, whole."""
    with suppress(WorkspaceError):  # then it is examined again, too
        note_shown(host.root, _examined_digest(proposal), "made")


def was_examined_here(host: Host, proposal: Proposal) -> bool:
    return is_known(host.root, _examined_digest(proposal), "made")


def _examined_digest(proposal: Proposal) -> str:
    return f"{digest_of(render_proposal(proposal.data))}/examined"


def check_rate_limit(
    host: Host, proposals: Iterable[Proposal], approvals: Approvals, paths: Iterable[str], now: datetime
) -> None:
    """Raises ``PolicyError`` where a proposal not made by a human would be one too many, or comes too soon.

    Days are those of ``business.timezone``.
    """
    limits, zone = host.config.self_improvement, host.config.business.timezone
    today = [
        p
        for p in proposals
        if not (p.by_human or p.is_asked)
        and find_day(datetime.fromisoformat(str(p.data["created_at"])), zone) == find_day(now, zone)
    ]
    if len(today) >= limits.max_changes_per_night:
        raise PolicyError(
            f"{len(today)} changes were proposed today by programs; that is the most",
            place=Place(field="self_improvement.max_changes_per_night"),
            remedy="Wait for tomorrow.",
        )
    for path in paths:
        mine = [p for p in today if path in p.paths]
        if len(mine) >= limits.max_changes_per_agent:
            raise PolicyError(
                f"{len(mine)} changes of it were proposed today by programs; that is the most",
                place=Place(path),
                remedy="Wait for tomorrow (self_improvement.max_changes_per_agent).",
            )
        versions = approvals.list_versions(path)
        if versions:
            rested = datetime.fromisoformat(versions[-1].at) + timedelta(hours=limits.cooldown_hours)
            if now < rested:
                raise PolicyError(
                    f"it was changed at {versions[-1].at}; programs leave it alone until {rested:%Y-%m-%dT%H:%M:%SZ}",
                    place=Place(path),
                    remedy="Wait until then (self_improvement.cooldown_hours).",
                )
