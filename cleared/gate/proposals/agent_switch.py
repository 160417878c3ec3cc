"""Disabling an agent, and enabling it again: a signed record each, in a commit of its own."""

from __future__ import annotations

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import (
    Decision,
    DecisionContext,
    commit_decision,
    require_commit,
    undo_unless_decided,
)
from cleared.changes.decisions.shown_cards import refuse_changed
from cleared.changes.host import Host
from cleared.gate.proposals.record_signing import Signer
from cleared.runs.approved_scripts import Scripts
from cleared.trust import trust_store
from cleared.trust.approval_record import digest_of
from cleared.trust.person_only import refuse_in_job


def switch_agent(host: Host, name: str, *, is_enabled: bool, reason: str = "") -> str:
    """Disable or enable an agent; the commit.

    Raises ``UsageError`` where there is no such agent, ``PolicyError`` where it is so already, and inside a job.
    """
    refuse_in_job()
    path = host.layout.agent_path(name)
    reason = " ".join(host.redactor.redact_text(reason).split())[:2_000]
    before: list[trust_store.Trust] = []
    workspaces: list[str] = []

    def stage_switch(decision_context: DecisionContext) -> Decision:
        approvals = Scripts(host, decision_context.snapshot).approvals
        live = decision_context.snapshot.read_file(path)
        if live is None:
            raise UsageError(f"there is no agent {name!r}", remedy="cleared agent list shows them.")
        refuse_changed(path, name, lambda: digest_of(live))
        # What this machine has noted is no commit: killed between the two, the agent is disabled here and nowhere else.
        is_done = not approvals.find_disabling(path) if is_enabled else approvals.is_disabled_by_record(path)
        if is_done:
            if is_enabled:
                trust_store.forget_disabled(approvals.workspace, path)
            state = "enabled" if is_enabled else "disabled"
            raise PolicyError(f"{name} is {state} already", remedy="Nothing needs doing.")
        signer = Signer(host, approvals, decision_context)
        signer.sign(kind="enabled" if is_enabled else "disabled", path=path, digest="", reason=reason)
        workspaces.append(signer.workspace)
        if not is_enabled:
            # Said before the commit: killed in between, the agent is disabled here, and not forgotten.
            before.append(trust_store.load_trust(signer.workspace))
            trust_store.remember_disabled(signer.workspace, path, format_iso(decision_context.context.now))
        return Decision(commit_messages.agent_switched(name, is_enabled, reason), signer.files)

    command = f"agent {'enable' if is_enabled else 'disable'} {name}"
    with undo_unless_decided(lambda: trust_store.restore_trust(before)):
        commit = require_commit(commit_decision(host, command, stage_switch))
    if is_enabled:
        trust_store.forget_disabled(workspaces[-1], path)
    return commit
