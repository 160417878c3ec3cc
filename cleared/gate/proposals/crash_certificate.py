"""What a crash certificate says: that a version's run was killed at each of its points, and each time the same came of
it. ``certification`` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.runs.approved_scripts import Scripts
from cleared.runs.run_queries import read_agent
from cleared.trust.approval_record import ApprovalRecord, certificate_path, digest_of
from cleared.trust.verification import Approvals


def read_certificate(approvals: Approvals, path: str, data: bytes) -> ApprovalRecord | None:
    """The certificate of these bytes, if it counts here."""
    record = approvals.read_record(certificate_path(path, digest_of(data)))
    is_its = record is not None and (record.kind, record.path, record.digest) == ("certificate", path, digest_of(data))
    return record if is_its else None


def read_certificate_of(host: Host, name: str) -> str:
    """What the certificate of an agent's live version says; empty where it has none."""
    path = host.layout.agent_path(name)
    with host.open_last_commit() as snapshot:
        data = snapshot.read_file(path)
        record = read_certificate(Scripts(host, snapshot).approvals, path, data) if data is not None else None
    return describe_certificate(record) if record is not None else ""


def read_certified_agent(host: Host, name: str) -> dict[str, Any]:
    """An agent (``read_agent``), with what its certificate says."""
    return {**read_agent(host, name), "certificate": read_certificate_of(host, name)}


def describe_certificate(record: ApprovalRecord) -> str:
    """``Killed at 43 points, 30 of them calls: each time the same came of it (ana, 2025-02-10).``"""
    said = describe_tried(record.policy)
    return f"{said[0].upper()}{said[1:]} ({record.by}, {record.at[:10]})."


def describe_tried(tried: Mapping[str, Any]) -> str:
    """``killed at 43 points, 30 of them calls, with 2 answers to what it asks: each time the same came of it``"""
    names = ("points", "calls", "answers", "untried")
    points, calls, answers, untried = (each if type(each := tried.get(name)) is int else 0 for name in names)
    said = f"killed at {count_noun(points, 'point')}, {calls} of them calls"
    said += f", with {count_noun(answers, 'answer')} to what it asks" if answers else ""
    said += f", but not with {count_noun(untried, 'answer')} more" if untried else ""
    return f"{said}: each time the same came of it"
