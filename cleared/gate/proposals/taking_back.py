"""A change of an agent that turns out badly is taken back by the host: the version before runs again, a card says why.

A change is watched from its approval on: the runs of 24 hours, and where these are fewer than 20, the first 20 runs,
for a month at most. Nobody's signature is needed to forbid what was approved. What comes back is what a person approved
before: the host signs nothing, so it can bring back nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.base.terminal import count_noun
from cleared.cards.kinds import TAKEN_BACK
from cleared.changes import commit_messages
from cleared.changes.auto_resolve import RESOLVED_BY
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, undo_unless_decided
from cleared.changes.host import Host
from cleared.gate.change_evidence import RunEvidence, find_reasons, read_evidence
from cleared.gate.change_rehearsal import rehearse_both
from cleared.gate.proposals.rollback import list_standing_records
from cleared.git import Snapshot, blob_id
from cleared.git.object_reader import is_oid
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.used_primitives import find_grants
from cleared.trust import trust_store
from cleared.trust.approval_record import (
    CONFIG,
    FOLDER,
    ApprovalRecord,
    digest_of,
    quarantine_path,
    record_path,
    short_digest,
    text_path,
    try_parse_record,
)
from cleared.trust.verification import Approvals

WATCHED: Final = timedelta(hours=24)
WATCHED_RUNS: Final = 20
_LONGEST: Final = timedelta(days=30)
_MAX_LISTED: Final = 200
"""Records that the card names."""


class LiveChange(Struct, frozen=True):
    """A change of scripts that is live, as its approvals say."""

    agent: str
    path: str
    script: bytes
    """The agent's text of now."""
    records: tuple[ApprovalRecord, ...]
    """The approvals that made it live, the agent's own first, where it is among them."""

    @property
    def at(self) -> str:
        return self.records[0].at

    @property
    def proposal(self) -> str:
        return self.records[0].proposal

    @property
    def is_of_agent(self) -> bool:
        return self.records[0].path == self.path


def take_back_bad_changes(host: Host, agents: list[str] | None = None) -> list[str]:
    """Look at the changes of these agents (None: of all) that are watched, and take back those that turned out badly:
    one commit each. Returns what was done, in words; what keeps the host from looking is said, and raises nothing."""
    done: list[str] = []
    try:
        with host.open_last_commit() as snapshot:
            names = list_agent_names(host, snapshot) if agents is None else agents
            scripts = Scripts(host, snapshot)
            bad = [name for name in names if _find_bad_change(host, scripts, name) is not None]
        for name in bad:
            done += _take_back(host, name)
    except ClearedError as error:
        host.show_message(f"whether a change turned out badly could not be looked at: {error}")
    return done


def list_agent_names(host: Host, snapshot: Snapshot) -> list[str]:
    """The agents of a commit."""
    entries = snapshot.list_folder(host.layout.agents_dir)
    return sorted(name.removesuffix(".py") for name, entry in entries.items() if entry.is_file and name.endswith(".py"))


def find_live_change(host: Host, scripts: Scripts, agent: str) -> LiveChange | None:
    """The newest change of an agent, or of a shared script that it runs; None where it has had none, or another version
    is there than the one that was approved last."""
    path = host.layout.agent_path(agent)
    live = scripts.snapshot.read_file(path)
    if live is None:
        return None
    shared = _list_shared(host, scripts, live, path)
    own = [record for each in (path, *shared) if (record := _find_newest(scripts.approvals, each)) is not None]
    if not own or any(_is_replaced(scripts, record) for record in own):
        return None
    newest = max(own, key=lambda record: (record.at, record.path == path))
    if scripts.approvals.is_brought_back(newest):
        return None  # a person would rather have its cards than what they took back
    if not newest.proposal:
        return LiveChange(agent, path, live, (newest,))
    together = [record for record in own if record.proposal == newest.proposal]
    together.sort(key=lambda record: record.path != path)
    return LiveChange(agent, path, live, tuple(together))


def _list_shared(host: Host, scripts: Scripts, live: bytes, path: str) -> list[str]:
    """The shared scripts that an agent runs."""
    _, names = find_grants(live.decode("utf-8", "replace"), path, host.registry, scripts.read_shared_source)
    found = (scripts.read_shared_source(name) for name in sorted(names))
    return [each[0] for each in found if each is not None]


def _find_newest(approvals: Approvals, path: str) -> ApprovalRecord | None:
    """The last approval of a script, also one that this machine has withdrawn and that stands there still: a command
    that was killed while it took it back has not taken it back."""
    live = approvals.source.read(path)
    if live is None:
        return None
    own = try_parse_record(approvals.source.read(record_path(path, digest_of(live))))
    versions = [record for record in approvals.list_versions(path) if own is None or record.digest != own.digest]
    if own is not None and (own.kind, own.path, own.digest) == ("script", path, digest_of(live)):
        versions += [own] if approvals.may_have_approved(own) else []
    return max(versions, key=lambda record: record.serial, default=None)


def _is_replaced(scripts: Scripts, record: ApprovalRecord) -> bool:
    """Whether something else is there than what this record approved, or it was taken back already."""
    source = scripts.approvals.source
    data = source.read(record.path)
    is_other = data is None or digest_of(data) != record.digest
    return is_other or source.read(quarantine_path(record.path, record.digest)) is not None


def _find_bad_change(host: Host, scripts: Scripts, agent: str) -> tuple[LiveChange, list[str]] | None:
    """The watched change of an agent, and why it is to be taken back."""
    snapshot = scripts.snapshot
    path, now, books = host.layout.agent_path(agent), host.clock.now(), scripts.approvals.identity
    if not books.pinned or books.problem is not None:  # nothing runs here, and nothing is decided by itself
        return None
    change = find_live_change(host, scripts, agent)
    if change is None or now - datetime.fromisoformat(change.at) > _LONGEST:
        return None
    script = f"{path}@{blob_id(change.script, 'sha1')}"
    evidence = read_evidence(host, snapshot, agent, change.at, script, is_new=change.is_of_agent)
    if now - datetime.fromisoformat(change.at) > WATCHED:
        until = format_iso(datetime.fromisoformat(change.at) + WATCHED)
        in_time = sum(run.at <= until for run in evidence.since)
        evidence = replace(evidence, since=evidence.since[: max(WATCHED_RUNS, in_time)])
    limits = host.config.self_improvement.auto_revert_on

    def rehearse() -> tuple[int, int] | None:
        texts = _read_before(scripts, change, evidence.before)
        versions = Scripts(host, snapshot, texts=texts), scripts
        return rehearse_both(host, snapshot.repo, agent, evidence.since, versions) if texts else None

    reasons = find_reasons(evidence, limits, rehearse)
    return (change, reasons) if reasons else None


def _read_before(scripts: Scripts, change: LiveChange, before: Sequence[RunEvidence]) -> Mapping[str, bytes]:
    """The texts of the version before: as they were approved, else what ran last before the change; none where the
    repository does not say."""
    targets = _find_targets(scripts, change)
    if targets or not before or not all(record.path == change.path for record in change.records):
        return targets
    path, _, blob = before[-1].script.rpartition("@")
    if path != change.path or not is_oid(blob):
        return {}
    return {path: scripts.snapshot.repo.objects.read_object(blob)[1]}


def _take_back(host: Host, agent: str) -> list[str]:
    done: list[str] = []
    before: list[trust_store.Trust] = []

    def stage_taking_back(decision_context: DecisionContext) -> Decision | None:
        scripts = Scripts(host, decision_context.snapshot)
        found = _find_bad_change(host, scripts, agent)
        if found is None:
            return None
        change, reasons = found
        targets = _find_targets(scripts, change)
        files = dict(_stage_files(scripts, change, targets, "; ".join(reasons), decision_context))
        restored = targets.get(change.path) if targets else None
        title = _describe(change, restored, bool(targets))
        made = list_standing_records(host, decision_context.repo, decision_context.snapshot, change.path, change.script)
        since = [record for record in made if record.pop("at") >= change.at] if not change.is_of_agent else made
        decision_context.context.agent = agent
        decision_context.context.stage_card(
            TAKEN_BACK.name,
            (change.path, *(f"{r.path} {r.digest} {r.serial}" for r in change.records)),
            f"{title}: {reasons[0]}"[:300],
            why=reasons,
            proposal=change.proposal,
            approved_by=f"{change.records[0].by} at {change.at}",
            taken_back=[f"{record.path} {short_digest(record.digest)}" for record in change.records],
            runs_now=short_digest(digest_of(restored)) if restored is not None else "nothing, until you decide",
            remedy=_remedy(change, restored),
            made=[{k: v for k, v in record.items() if k != "at"} for record in since[:_MAX_LISTED]],
            made_in_all=len(since),
        )
        done[:] = [f"{title}: {'; '.join(reasons)}. Listed for review: {count_noun(len(since), 'record')} that it made"]
        marks = tuple(("Quarantined", record.digest) for record in change.records[:1])
        _withdraw(scripts.approvals, change, decision_context, before)
        return Decision(
            commit_messages.change_taken_back(agent, reasons[0]),
            files,
            marks,
            edited_files=tuple(p for p in files if not p.startswith(f"{FOLDER}/")),
        )

    with undo_unless_decided(lambda: trust_store.restore_trust(before)):
        commit = commit_decision(host, f"take back {agent}", stage_taking_back, by=RESOLVED_BY, collects=[done])
    return done if commit is not None else []


def _find_targets(scripts: Scripts, change: LiveChange) -> Mapping[str, bytes]:
    """What each file of the change was before, where all of it can be brought back together; else nothing."""
    approvals = scripts.approvals
    settings = try_parse_record(approvals.source.read(CONFIG))
    with_settings = settings is not None and bool(change.proposal) and settings.proposal == change.proposal
    if with_settings or len(change.records) != len(_list_records_of(approvals, change.proposal) or change.records):
        return {}
    targets = {}
    for record in change.records:
        before = approvals.read_record(record_path(record.path, record.previous)) if record.previous else None
        if before is None or before.digest != record.previous or approvals.is_taken_back(record.path, before.digest):
            return {}
        text = approvals.version_text(before)
        if text is None:
            return {}
        targets[record.path] = text
    return targets


def _list_records_of(approvals: Approvals, proposal: str) -> list[str]:
    """The scripts that were approved with a proposal."""
    if not proposal:
        return []
    records = (try_parse_record(approvals.source.read(p)) for p in approvals.source.list_paths(FOLDER))
    return sorted({r.path for r in records if r is not None and r.kind == "script" and r.proposal == proposal})


def _stage_files(
    scripts: Scripts,
    change: LiveChange,
    targets: Mapping[str, bytes],
    reason: str,
    decision_context: DecisionContext,
) -> Iterator[tuple[str, bytes | None]]:
    """The versions before, and the records that forbid those of the change: unsigned, as only approvals need a
    signature."""
    for record in change.records:
        barred = ApprovalRecord(
            "quarantine",
            record.path,
            record.digest,
            RESOLVED_BY,
            format_iso(decision_context.context.now),
            scripts.approvals.workspace,
            previous=record.previous,
            proposal=record.proposal,
            reason=reason[:2_000],
        )
        text = scripts.snapshot.read_file(record.path)
        yield barred.file, barred.render()
        yield record_path(record.path, record.digest), None
        yield text_path(record.path, record.digest), text
        if record.path in targets:
            yield record.path, targets[record.path]


def _withdraw(
    approvals: Approvals, change: LiveChange, decision_context: DecisionContext, before: list[trust_store.Trust]
) -> None:
    """Bringing the commit of the change back with plain git must not bring its approval back on this machine. Said
    before the commit: killed in between, the version is refused, and what is left is done at the next look."""
    now = format_iso(decision_context.context.now)
    for record in change.records:
        version = trust_store.version_key(record.path, record.digest)
        before.append(trust_store.withdraw_approvals(approvals.workspace, [record.id], version, now))


def _describe(change: LiveChange, restored: bytes | None, is_whole: bool) -> str:
    what = f"{change.proposal.partition('-')[0]} ({change.agent})" if change.proposal else change.agent
    if restored is not None or is_whole:
        return f"{what} was taken back"
    return f"{change.agent} was stopped"


def _remedy(change: LiveChange, restored: bytes | None) -> str:
    again = f"If it was right all the same, have it approved again: cleared agent propose {change.agent}."
    if restored is not None or not change.is_of_agent:
        return again
    return f"Bring back the version before: cleared agent rollback {change.agent}. {again}"
