"""What was proposed and decided, as plain data."""

from __future__ import annotations

import re
from typing import Any, Final

from cleared.base.errors import UsageError
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate import regression_tests as case_store
from cleared.gate.approved_tests import list_approved_tests
from cleared.gate.proposals import proposal as store
from cleared.gate.proposals.shown_proposal import diff_texts
from cleared.git import Repository, Snapshot, history
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import (
    QUARANTINED,
    ApprovalRecord,
    digest_of,
    record_folder,
    short_digest,
    try_parse_record,
)
from cleared.workspace.template import was_shipped

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)


def read_history(host: Host, name: str) -> list[dict[str, Any]]:
    """Everything about one agent, or ``scripts/NAME.py``, oldest first. Raises ``UsageError`` where none ever was."""
    path = script_path(host, name)
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        source = CommittedSource(snapshot)
        events = []
        proposals = store.load_proposals(source)
        for proposal in proposals:
            if path not in proposal.paths:
                continue
            digest = next(str(f["digest"]) for f in proposal.data["files"] if f["path"] == path)
            author = str(proposal.data["author"]["name"])
            message = str(proposal.data["message"])
            events.append(
                _history_line(str(proposal.data["created_at"]), "proposed", proposal.id, author, digest, message)
            )
            decision = proposal.decision
            if decision is not None:
                events.append(
                    _history_line(decision.at, decision.status, proposal.id, decision.by, digest, decision.reason)
                )
        for record in _find_rollbacks(host, repo, source, path):
            events.append(_history_line(record.at, "rolled back", "", record.by, record.digest, record.reason))
        live = snapshot.read_file(path)
        if not events and live is None:
            if proposals.damaged:  # it may be one of these
                raise proposals.damaged[0]
            raise UsageError(f"there is no agent {name!r}", remedy="cleared agent list shows them.")
        if live is not None:
            standing = Scripts(host, snapshot).approvals.verify_version(path, live)
            digest = digest_of(live)
            is_listed = any(e["version"] == short_digest(digest) for e in events)
            if standing.may_run and was_shipped(path, live) and not is_listed:
                events.insert(0, _history_line("", "came with the program", "", "", digest, ""))
            elif standing.state != "approved" and standing.state != "starter":
                events.append(
                    _history_line("", "committed by hand", "", "", digest, f"{standing.reason}: it does not run")
                )
        order = {"proposed": 0}
        return sorted(
            events,
            key=lambda e: (
                e["at"] if e["event"] != "committed by hand" else "~",
                _proposal_number(e["proposal"]),
                order.get(e["event"], 1),
            ),
        )


def script_path(host: Host, name: str) -> str:
    """The file of an agent, by its name; of a shared script, by its path. Raises ``UsageError`` for neither."""
    folder, _, stem = name.removeprefix("./").rpartition("/")
    if folder == host.layout.scripts_dir and stem.endswith(".py"):
        return host.layout.script_path(stem.removesuffix(".py"))
    return host.layout.agent_path(name)


def _find_rollbacks(host: Host, repo: Repository, source: CommittedSource, path: str) -> list[ApprovalRecord]:
    """The quarantines of a script, with those that were lifted by approving the same version again."""
    records: dict[str, ApprovalRecord] = {}
    sources = [source]
    for commit in history.read_log(host.root, 1_000, [record_folder(path)], grep="Quarantined: "):
        sources.append(CommittedSource(Snapshot(repo, commit.id)))
    for one in sources:
        for where in one.list_paths(record_folder(path)):
            record = try_parse_record(one.read(where)) if where.endswith(QUARANTINED) else None
            if record is not None and record.path == path:
                records[record.id] = record
    return list(records.values())


def _history_line(at: str, event: str, proposal: str, by: str, digest: str, about: str) -> dict[str, Any]:
    return {"at": at, "event": event, "proposal": proposal, "by": by, "version": short_digest(digest), "about": about}


def _proposal_number(proposal: str) -> int:
    return int(proposal[1:]) if proposal else 1 << 30


def read_proposals(host: Host) -> list[dict[str, Any]]:
    """All proposals as ``--json`` prints them, oldest first."""
    with host.open_last_commit() as snapshot:
        return [p.to_dict() for p in store.load_proposals(CommittedSource(snapshot))]


def diff_version(host: Host, text: str) -> dict[str, str]:
    """Path → unified diff of a proposal's text against the version that counted when it was made.

    Raises ``UsageError`` where that version is not in this clone.
    """
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        proposal = store.find_proposal(store.load_proposals(CommittedSource(snapshot)), text)
        base = str(proposal.data["base"])
        before = snapshot.at_commit(base) if _COMMIT.fullmatch(base) and repo.has_in_history(base) else None
        diffs = {}
        for file in proposal.data["files"]:
            path, wanted = str(file["path"]), str(file["old"] or "")
            old = before.read_file(path) if before is not None and wanted else None
            if wanted and (old is None or digest_of(old) != wanted):
                raise UsageError(
                    f"the version of {path} before {proposal.id} is not in this clone", remedy="git fetch --unshallow"
                )
            diffs[path] = diff_texts(old, proposal.texts[path], f"before/{path}", f"{proposal.id}/{path}")
        return diffs


def list_tests(host: Host) -> list[dict[str, Any]]:
    """The tests: name, agent, reason, and whether each is as it was approved."""
    with host.open_last_commit() as snapshot:
        listed = list_approved_tests(Scripts(host, snapshot).approvals)
        cases, _ = case_store.load_tests(snapshot, {})
        tests = []
        for case in cases:
            data = snapshot.read_file(case.path) or b""
            state = "approved" if listed.pop(case.path, None) == digest_of(data) else "changed by hand"
            tests.append(
                {
                    "name": case.name,
                    "path": case.path,
                    "agent": case.agent,
                    "run": case.run,
                    "why": case.why,
                    "state": state,
                }
            )
        tests += [
            {
                "name": p.rsplit("/", 1)[-1].removesuffix(".json"),
                "path": p,
                "agent": "",
                "run": "",
                "why": "",
                "state": "gone",
            }
            for p in listed
        ]
        return tests
