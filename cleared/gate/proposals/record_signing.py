"""Signing: the files of what becomes live, and the records that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleared.base.clock import format_iso
from cleared.changes.decisions.decision_context import DecisionContext
from cleared.changes.host import Host
from cleared.gate.examination import Gate, Report
from cleared.gate.proposals.proposal import Proposal
from cleared.sandbox.used_primitives import find_grants
from cleared.trust import trust_store, workspace_pin
from cleared.trust.approval_record import (
    CONFIG,
    EXAMINED,
    WORKSPACE,
    ApprovalRecord,
    canonical_digest,
    digest_of,
    quarantine_path,
    record_path,
    sign_record,
    text_path,
)
from cleared.trust.keys import Key, own_key
from cleared.trust.reviewers import review_rules
from cleared.trust.verification import Approvals
from cleared.workspace.settings.protected_settings import protected_settings_of


class Signer:
    """Makes records for one decision; makes the key and the workspace's id when they are needed first.

    ``workspace``: the id they are for, where it is to be another from now on. Raises ``PolicyError`` where it is not
    known which books these are.
    """

    def __init__(
        self, host: Host, approvals: Approvals, decision_context: DecisionContext, workspace: str = ""
    ) -> None:
        decision_context.authorization.require_approver()
        key = own_key(host.root, create=True)
        assert key is not None
        key.require_unlocked()
        approvals.identity.must_be_pinned()
        self.key: Key = key
        self._by = decision_context.by
        self._at = format_iso(decision_context.context.now)
        self.files: dict[str, bytes | None] = {}
        self._settings: ApprovalRecord | None = None
        self._scripts: set[str] = set()
        if not approvals.workspace:
            workspace_pin.pin_clone(host.root, workspace_pin.new_workspace_id())
            approvals.use_identity(workspace_pin.identify_workspace(host.root, None))
        self.workspace = workspace or approvals.workspace
        if workspace or approvals.source.read(WORKSPACE) is None:
            self.files[WORKSPACE] = f"{self.workspace}\n".encode()

    def sign(self, **fields: Any) -> ApprovalRecord:
        """A signed record; its file is among ``files`` then."""
        record = sign_record(
            ApprovalRecord(by=self._by, at=self._at, workspace=self.workspace, **fields),
            self.key,
        )
        self.files[record.file] = record.render()
        if record.kind in ("script", "quarantine"):
            self._scripts.add(record.path)
        if record.kind == "config":
            self._settings = record
        return record

    def update_trust(self) -> None:
        """After the commit: see ``count_settings``; and no starter counts in place of a script that was signed."""
        trust_store.leave_starters(self.workspace, self._scripts, self._at)
        if self._settings is not None:
            count_settings(self._settings)


def count_settings(record: ApprovalRecord) -> None:
    """Records of settings from before this one count no more on this machine, and the approvals of those who are named
    as reviewers do; not of bookkeepers, also not what they have approved before."""
    rules = review_rules(record.policy)
    if rules.is_restricted:
        bookkeepers = rules.reviewers.keys() - rules.approvers.keys()
        trust_store.trust_reviewers(record.workspace, rules.approvers, bookkeepers)
    trust_store.remember_newest(record)


def sign_live_files(
    host: Host, gate: Gate, decision_context: DecisionContext, proposal: Proposal, report: Report, reason: str = ""
) -> Signer:
    """The proposal's files as they become live, and the records that say so. ``reason``: what stands for a person."""
    approvals = gate.scripts.approvals
    signer = Signer(host, approvals, decision_context)
    about = {
        "proposal": proposal.folder,
        "report": canonical_digest(proposal.data["checks"]),
        "effects": str(proposal.data["effects"]),
        "base": str(proposal.data["base"]),
        "reason": reason,
    }
    examined = _list_examined_together(report)
    for change in report.candidate.changes:
        signer.files[change.path] = change.new
        if change.kind not in ("agent", "script", "text"):
            continue
        if change.new is None:
            _quarantine_removed(signer, approvals, change.path)
        else:
            grants = report.grants.get(change.path, [])
            sign_script(signer, approvals, change.path, change.new, grants, about, examined.get(change.path))
    for path, names in report.grants.items():
        approved, record = approvals.approved_version(path)
        reached = path not in proposal.paths  # a shared script of it changes
        if reached and record is not None and approved is not None and sorted(record.grants) != names:
            sign_script(signer, approvals, path, approved, names, about, examined.get(path))
    if report.candidate.config is not None:
        text = report.candidate.changes_of_kind("config")[0].new or b""
        policy = protected_settings_of(report.candidate.config)
        signer.sign(kind="config", path=CONFIG, digest=digest_of(text), policy=policy, **about)
    if report.candidate.changes_of_kind("case"):
        sign_tests(signer, {c.path: c.new for c in report.candidate.changes_of_kind("case")}, about)
    return signer


def _list_examined_together(report: Report) -> dict[str, dict[str, str]]:
    """Each examined agent and each shared script that one runs → what ran with it: path → digest."""
    together: dict[str, dict[str, str]] = {}
    for subject in report.subjects.values():
        if subject.kind != "agent":
            continue
        scripts, registry = subject.proposed_setup.scripts, subject.proposed_setup.host.registry
        used = find_grants(subject.source, subject.file, registry, scripts.read_shared_source)[1]
        shared = filter(None, map(scripts.read_shared_source, used))
        texts = {subject.file: subject.source, **dict(shared)}
        digests = {path: digest_of(text.encode("utf-8", "surrogateescape")) for path, text in texts.items()}
        for path in digests:
            together.setdefault(path, {}).update({other: d for other, d in digests.items() if other != path})
    return together


def _quarantine_removed(signer: Signer, approvals: Approvals, path: str) -> None:
    """A removed script is approved in none of its versions any more, nor is what came with the program."""
    live, _ = approvals.approved_version(path)
    digests = {record.digest for record in approvals.list_versions(path)}
    for digest in sorted(digests | ({digest_of(live)} if live is not None else set())):
        signer.sign(kind="quarantine", path=path, digest=digest, reason="the script was removed")
        if digest in digests:
            signer.files[record_path(path, digest)] = None


def sign_script(
    signer: Signer,
    approvals: Approvals,
    path: str,
    data: bytes,
    grants: list[str],
    about: Mapping[str, str] | None = None,
    examined: Mapping[str, str] | None = None,
) -> None:
    """Approve this version, and keep its text. ``examined``: what it was examined with, path → digest."""
    versions = approvals.list_versions(path)
    approved, _ = approvals.approved_version(path)
    digest = digest_of(data)
    record = signer.sign(
        kind="script",
        path=path,
        digest=digest,
        grants=tuple(grants),
        previous=digest_of(approved) if approved is not None else "",
        serial=(versions[-1].serial if versions else 0) + 1,
        policy={EXAMINED: dict(examined)} if examined else {},
        **(about or {}),
    )
    trust_store.allow_version(signer.workspace, trust_store.version_key(path, digest), record.at)
    signer.files[text_path(path, digest)] = data
    if approvals.source.read(quarantine_path(path, digest)) is not None:
        signer.files[quarantine_path(path, digest)] = None


def sign_tests(signer: Signer, changes: Mapping[str, bytes | None], about: Mapping[str, str] | None = None) -> None:
    """Add the files of these tests (None: removed), and a record for each. One that says that a test was removed
    stays: else nobody could tell that from a record that somebody took away."""
    signer.files |= changes
    for path, data in changes.items():
        signer.sign(kind="case", path=path, digest="" if data is None else digest_of(data), **(about or {}))
