"""The certificate of a version of an agent: its run was killed at each of its points, and nothing came out otherwise.

It is tried in a copy of the workspace, over sample data, with a key that counts there alone. The record is signed like
an approval and lets nothing run: it says what this person's machine has seen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from cleared.base.clock import format_iso
from cleared.base.errors import CheckFailed, Place, PolicyError, UsageError
from cleared.base.programs import search_path
from cleared.base.temporary_folders import open_temporary_folder
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import parse_header
from cleared.gate.crash_sweep import BOOKS, HOME, Order
from cleared.gate.dry_run_inputs import SAMPLE_DATA, collect_inputs
from cleared.gate.proposals.crash_certificate import describe_tried
from cleared.gate.proposals.proposal import find_proposal, load_proposals, must_be_open, split_name
from cleared.gate.proposals.record_signing import Signer
from cleared.git import Snapshot
from cleared.git.history_copy import copy_files
from cleared.processes.program import Program, end_at, run_program
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import digest_of
from cleared.trust.keys import own_public_key, run_public_key, unlock_own_key
from cleared.trust.person_only import refuse_in_job

_SECONDS: Final = 3_600.0
_MAX_ERROR: Final = 2_000
_COMMAND: Final = (sys.executable, "-I", "-m", "cleared.gate.crash_sweep")


class Certified(Struct, frozen=True):
    """What was tried, and the commit of its record."""

    agent: str
    path: str
    digest: str
    points: int
    calls: int
    """Of the points, those at which a primitive was called: the others are steps of the run and its commit."""
    answers: int
    """With how many answers to its questions it went on."""
    says: str
    """What the certificate says, in words."""
    commit: str


def certify_agent(host: Host, name: str) -> Certified:
    """Kill a run of an agent, or of the one agent that a proposal changes, at each point, and sign that nothing came of
    it. Raises ``CheckFailed`` where something did, or the run does not end well by itself, ``UsageError`` where there
    is no such agent, ``PolicyError`` where it is not approved, and inside a job. Nothing is changed then.
    """
    refuse_in_job()
    unlock_own_key(host.root)
    with open_temporary_folder("certify") as folder:
        order = _prepare(host, name, folder)
        told = _run_sweep(order)
    if told.get("differing"):
        shown = "\n".join(f"  {each}" for each in told["differing"])
        raise CheckFailed(f"{order.agent} came out otherwise where it was killed; nothing is certified:\n{shown}")
    digest, points = digest_of(order.text.encode("utf-8")), list(told["points"])
    calls = sum(point.startswith("call ") for point in points)
    tried = {
        "points": len(points),
        "calls": calls,
        **{name: told[name] for name in ("tree", "status", "answers", "untried")},
    }

    def stage(decision_context: DecisionContext) -> Decision:
        signer = Signer(host, Scripts(host, decision_context.snapshot).approvals, decision_context)
        signer.sign(kind="certificate", path=order.path, digest=digest, policy=tried)
        return Decision(commit_messages.version_certified(order.agent), signer.files)

    commit = require_commit(commit_decision(host, f"agent certify {name}", stage))
    return Certified(
        order.agent, order.path, digest, len(points), calls, told["answers"], describe_tried(tried), commit
    )


def _prepare(host: Host, name: str, folder: Path) -> Order:
    """The copy, with what the run takes in its drop folder, and what is to be done there."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        scripts = Scripts(host, snapshot)
        approvals = scripts.approvals
        approvals.identity.must_be_pinned()
        if not approvals.workspace:
            raise PolicyError("nothing was ever approved in these books", remedy="cleared agent propose, then approve.")
        agent, path, data = _find_version(host, scripts, name)
        text = data.decode("utf-8", "replace")
        header, _ = parse_header(text, path, kind="agent")
        inputs, _ = collect_inputs(host, repo, snapshot, agent, header, None)
        sample = next(each for each in inputs if each.label == SAMPLE_DATA)
        copy_files(repo, repo.read_head(), folder / BOOKS)
        answers = sample.model_answers(host)
        trust = approvals.trust
        grants = sorted(scripts.find_script_grants(text, path))
    for file, content in sample.inputs.items():
        target = folder / BOOKS / host.layout.import_dir / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    (folder / HOME).mkdir(mode=0o700)
    own, own_run = own_public_key(host.root), run_public_key(host.root)
    return Order(
        str(folder),
        approvals.workspace,
        agent,
        path,
        text,
        grants,
        format_iso(sample.now or host.clock.now()),
        sample.event.to_record() if sample.event is not None else None,
        {key: dict(answer) for key, answer in answers.items()},
        {
            "keys": {**trust.keys, **({own: "own"} if own else {})},
            "runs": {**trust.runs, **({own_run: "own"} if own_run else {})},
            "withdrawn": sorted(trust.withdrawn),
            "newest": dict(trust.newest),
        },
    )


def _find_version(host: Host, scripts: Scripts, name: str) -> tuple[str, str, bytes]:
    """The agent, its file, and the version that is meant. Raises as ``certify_agent``."""
    if not split_name(name)[0]:
        path = host.layout.agent_path(name)
        scripts.load_agent(name)  # raises where it may not run
        data = scripts.snapshot.read_file(path)
        assert data is not None
        return name, path, data
    proposal = find_proposal(load_proposals(CommittedSource(scripts.snapshot)), name)
    must_be_open(proposal)
    data = proposal.texts.get(proposal.paths[0])
    if len(proposal.paths) != 1 or len(proposal.agents) != 1 or data is None or proposal.changed_file():
        raise UsageError(f"{proposal.id} is not the change of one agent", remedy="Approve it, then certify each.")
    return proposal.agents[0], proposal.paths[0], data


def _run_sweep(order: Order) -> Mapping[str, Any]:
    """What the process of its own says. Raises ``CheckFailed`` where it could not do it."""
    home = str(Path(order.folder) / HOME)
    environment = {"CLEARED_HOME": home, "HOME": home, "PATH": search_path(), "PYTHONUTF8": "1"}
    said, errors = bytearray(), bytearray()
    program = Program(_COMMAND, Path("/"), environment, input=json.dumps(asdict(order)).encode("utf-8"))
    ending = run_program(program, said.extend, end_at(_SECONDS), errors.extend)
    told: dict[str, Any] = json.loads(said) if ending.code == 0 and not ending.reason else {}
    if "error" in told or not told:
        why = str(told.get("error") or ending.reason or errors.decode("utf-8", "replace").strip() or "it ended")
        raise CheckFailed(f"{order.agent} cannot be certified: {why[-_MAX_ERROR:]}", place=Place(order.path))
    return told
