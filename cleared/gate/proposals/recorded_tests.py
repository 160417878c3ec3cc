"""``test add``: what a run did becomes a test. That only makes the gate stricter, so it is one step."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from msgspec.structs import replace

from cleared.base.errors import PolicyError, UsageError
from cleared.base.json_values import to_plain_json
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import load_comparisons
from cleared.domains.record_comparison import Record
from cleared.gate.approved_tests import find_approved_digest, is_approved_test, require_verifiable
from cleared.gate.dry_run import DryRun, Setup, dry_run_script
from cleared.gate.examination import Gate
from cleared.gate.past_runs import DryRunInput, find_past_run
from cleared.gate.proposals.record_signing import Signer, sign_tests
from cleared.gate.regression_tests import RecordingSnapshot, RegressionTest, find_corrected, parse_test
from cleared.git import Snapshot, history
from cleared.runs.approved_scripts import Scripts
from cleared.trust.approval_record import CORRECTED, canonical_digest
from cleared.trust.person_only import refuse_in_job
from cleared.trust.verification import Approvals


def add_test(
    host: Host, run: str, *, why: str = "", corrections: Mapping[str, int] | None = None
) -> tuple[RegressionTest, str]:
    """Make a case of a committed run; the case and the commit.

    ``corrections``: entry id → the account it should have had; then only these entries are held to anything.
    Raises ``UsageError`` where there is no such run, or its input is not in the repository, ``PolicyError`` where
    running it again does not do the same.
    """
    refuse_in_job()
    made: list[RegressionTest] = []

    def stage_test(decision_context: DecisionContext) -> Decision | None:
        matches = history.find_by_trailer(host.root, "Run", run) or [
            c
            for c in history.read_log(host.root, 5_000, grep="Run: ")
            if c.trailers.get("Run", "").endswith(f"-{run}") or c.trailers.get("Run", "").startswith(run)
        ]
        commits = [c for c in matches if "Event" in c.trailers and "Agent" in c.trailers]
        if not run:  # what every run begins with
            commits = []
        if len(commits) != 1:
            what = f"there is no committed run {run!r}" if not commits else f"{run!r} fits {len(commits)} runs"
            raise UsageError(what, remedy="cleared run list shows them.")
        agent, run_id = commits[0].trailers["Agent"], commits[0].trailers["Run"]
        with Gate(host, decision_context.repo) as gate:
            case, occasion = record_test(host, gate, agent, run_id, why, about=frozenset(corrections or ()))
            if corrections:
                case = _correct_test(case, host, occasion, corrections)
            made.append(case)
            if _is_known_or_renamed(decision_context.snapshot, gate.scripts.approvals, made):
                return None
            case = made[-1]
            signer = Signer(host, gate.scripts.approvals, decision_context)
            sign_tests(signer, {case.path: case.render()})
        return Decision(commit_messages.regression_test_added(case.name), signer.files)

    commit = commit_decision(host, f"test add {run}", stage_test, collects=[made])
    if commit is None:
        raise PolicyError(
            f"{made[-1].name} is a test already",
            remedy="Nothing needs doing. To change it, edit its file and have that approved: "
            f"cleared agent propose {made[-1].path}.",
        )
    return made[-1], commit


def record_test(
    host: Host, gate: Gate, agent: str, run_id: str, why: str, *, about: Collection[str] = ()
) -> tuple[RegressionTest, DryRunInput]:
    """The case of what a run did, by running it again. Raises as ``add_test`` does.

    ``about``: the ids or bank lines of the entries that it is about, where it is not about all of them.
    """
    occasion = find_past_run(host, gate.repo, agent, run_id)
    if occasion is None or occasion.now is None or occasion.after is None:
        raise UsageError(f"the input of run {run_id} is not in the repository, so it cannot be replayed")
    path = host.layout.agent_path(agent)
    scripts = Scripts(host, gate.snapshot, texts={path: occasion.after.read_file(path) or b""})
    books = RecordingSnapshot(occasion.snapshot)
    rehearsal = dry_run_script(
        Setup(host, scripts),
        gate.repo,
        books,
        scripts.load_agent(agent),
        label=f"run {run_id}",
        inputs=occasion.inputs,
        now=occasion.now,
        event=occasion.event,
        answers=occasion.model_answers(host),
    )
    _must_repeat_run(host, occasion, rehearsal, run_id, about)
    expected = to_plain_json(rehearsal.effects)
    del expected["error"], expected["violations"]
    return RegressionTest(
        _test_name(agent, run_id),
        agent,
        why,
        occasion.now,
        occasion.inputs,
        books.files,
        expected,
        run_id,
        occasion.event,
        rehearsal.answers,
    ), occasion


def corrected_test(case: RegressionTest, month: str, expected: Mapping[str, Any]) -> RegressionTest:
    """The case of what the run should have done: only these records are held to anything (see ``find_corrected``)."""
    return replace(case, name=corrected_test_name(case.agent, case.run, month), expected=dict(expected))


def corrected_test_name(agent: str, run: str, month: str) -> str:
    """What the case of the corrections of a run's bank lines of a month (``YYYY-MM``) is called first. Each month has
    its own: two clones that work on two months write into no file both."""
    return f"{_test_name(agent, run)}-{month}{CORRECTED}"


def _test_name(agent: str, run: str) -> str:
    return f"{agent}-{run.rsplit('-', 1)[-1]}"


def _is_known_or_renamed(snapshot: Snapshot, approvals: Approvals, made: list[RegressionTest]) -> bool:
    """Whether the same is a case already; else a name that is free is given to it (appended): adding changes none.

    A run has one case of what it did; of what it should have done there may be several. Raises ``PolicyError`` where
    the approval of one of these cannot be verified.
    """
    first = made[-1]
    for number in range(2, 1_000):
        path, data = made[-1].path, snapshot.read_file(made[-1].path)
        require_verifiable(approvals, path)
        if data is None and not find_approved_digest(approvals, path):
            return False
        if is_approved_test(approvals, path, data):
            with contextlib.suppress(ValueError):
                known = parse_test(data or b"", path).expected
                if not find_corrected(first.expected) or known == to_plain_json(first.expected):
                    return True
        made.append(replace(first, name=f"{first.name}-{number}"))
    return True


def _must_repeat_run(host: Host, occasion: DryRunInput, rehearsal: DryRun, run: str, about: Collection[str]) -> None:
    """Raises ``PolicyError`` where a replay does not post what the run posted: all of it, or these entries."""
    if rehearsal.error is not None or rehearsal.violations:
        why = rehearsal.error or rehearsal.violations[0]
        raise PolicyError(f"run {run} does not go well when it is replayed: {why}", remedy="Use another run.")
    added = _read_added(host, occasion)
    for name, comparison in load_comparisons().items():
        made = added[name]
        if about:
            made = {i: r for i, r in made.items() if i in about or comparison.summarise(r).key in about}
        posted = Counter(canonical_digest(comparison.strip_ids(record)) for record in made.values())
        replayed = Counter(canonical_digest(record) for record in to_plain_json(list(rehearsal.records[name])))
        if posted - replayed or (not about and replayed - posted):
            raise PolicyError(
                f"run {run} does not do the same when it is replayed",
                remedy="Settings have changed since (bank accounts, say), or it depends on something that is not kept. "
                "Use another run.",
            )


def _read_added(host: Host, occasion: DryRunInput) -> dict[str, Mapping[str, Record]]:
    """What the records are called → id → each that the commit of a past run added."""
    assert occasion.after is not None
    before, after = CommittedSource(occasion.snapshot), CommittedSource(occasion.after)
    files = history.read_commit(host.root, occasion.after.commit or "").files or ()
    return {
        name: comparison.read_added(host.layout, before, after, files)
        for name, comparison in load_comparisons().items()
    }


def _correct_test(
    case: RegressionTest, host: Host, occasion: DryRunInput, corrections: Mapping[str, int]
) -> RegressionTest:
    """The case of what these records should have been."""
    assert occasion.after is not None
    before, after = CommittedSource(occasion.snapshot), CommittedSource(occasion.after)
    missing = ""
    for comparison in load_comparisons().values():
        try:
            expected, month = comparison.correct_records(host.layout, before, after, corrections)
        except KeyError as error:
            missing = missing or str(error.args[0])
        else:
            return corrected_test(case, month, {comparison.correction_key: expected})
    raise UsageError(f"run {occasion.run} did not post {missing!r}", remedy="cleared run show lists what it did.")
