"""The gate: a candidate goes through a visible list of stages; what comes of it is a report. Nothing is proposed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from cleared.approvals.approval_record import canonical_digest
from cleared.changes.host import Host
from cleared.errors import ClearedError, Place, UsageError
from cleared.gate.candidate import Candidate, Change, gather_candidate
from cleared.gate.check_result import Check, CheckResult, Subject
from cleared.gate.dry_run import Setup
from cleared.gate.dry_run_checks import DryRunChecks
from cleared.gate.dry_run_inputs import DryRunPin
from cleared.gate.impact import Impact
from cleared.gate.lint_rules import RULES
from cleared.gate.regression_tests import find_changed_tests, parse_test, to_plain_json
from cleared.gate.static_checks import StaticChecks
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import MakeExecutor
from cleared.sandbox.finding import Finding, is_switchable
from cleared.sandbox.used_primitives import find_grants
from cleared.vcs import Repository, Snapshot


@dataclass(slots=True)
class Report:
    """What the stages said of a candidate: file → its results; and of the candidate as a whole."""

    candidate: Candidate
    base: str
    results: dict[str, list[CheckResult]] = field(default_factory=dict)
    subjects: dict[str, Subject] = field(default_factory=dict)
    general_findings: list[Finding] = field(default_factory=list)
    pins: dict[str, DryRunPin] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.general_findings and all(
            r.status == "passed" for stages in self.results.values() for r in stages
        )

    @property
    def findings(self) -> list[Finding]:
        return [*self.general_findings, *(f for stages in self.results.values() for r in stages for f in r.findings)]

    @property
    def warnings(self) -> list[Finding]:
        return [f for stages in self.results.values() for r in stages for f in r.warnings]

    @property
    def grants(self) -> dict[str, list[str]]:
        """Path → the primitives it may call, and the kinds of jobs it may enqueue."""
        return {file: sorted(subject.grants) for file, subject in self.subjects.items()}

    @property
    def effects(self) -> str:
        """Digest of all rehearsed effects; ids and times are not in them."""
        return canonical_digest(
            {file: [[r.label, to_plain_json(r.effects)] for r in s.dry_runs] for file, s in self.subjects.items()}
        )

    @property
    def digest(self) -> str:
        """What an approval binds to: the files, what they may call, what they would do."""
        return canonical_digest([self.candidate.fingerprint, self.grants, self.effects])

    def total_impact(self, which: str = "history") -> Impact:
        """Both versions compared, over all agents: ``history`` or ``synthetic``."""
        total = Impact()
        for subject in self.subjects.values():
            found = getattr(subject, which)
            if found is not None:
                total.add_agent(found, subject.name)
        return total

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "stages": {file: [r.to_dict() for r in stages] for file, stages in self.results.items()},
        }


class Gate:
    """The stages over one workspace; a context manager, since the type checker and the sandbox are kept warm."""

    def __init__(self, host: Host, executor: MakeExecutor, repo: Repository | None = None) -> None:
        self.host = host
        self.executor = executor
        self._repo = repo
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Gate:
        sandbox = self._stack.enter_context(self.executor())
        self.executor = lambda: contextlib.nullcontext(sandbox)
        self.repo = self._repo if self._repo is not None else self._stack.enter_context(self.host.open_for_reading())
        self.snapshot = Snapshot(self.repo, self.repo.read_head())
        self.scripts = Scripts(self.host, self.snapshot)
        self.static = StaticChecks(self._stack)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def list_checks(self, dynamic: DryRunChecks) -> tuple[Check, ...]:
        """Everything a script must pass, in order."""
        return (
            Check("lint", "the header, and the language scripts are written in", True, self.static.check_constructs),
            Check(
                "traps",
                "the sandbox's and the books' traps, account ids and statuses",
                True,
                self.static.check_semantics,
            ),
            Check("types", "the calls, against the primitives' declarations", True, self.static.check_types),
            Check(
                "rehearsal", "a made-up month and the latest real files, never committed", False, dynamic.check_dry_runs
            ),
            Check("invariants", "the books that would come of it", False, dynamic.check_invariants),
            Check(
                "watched",
                "the same effects whether ctx_dry_run() is true or false",
                False,
                dynamic.check_flag_independence,
            ),
            Check("behaviour", "against the approved version, on your own past runs", False, dynamic.check_impact),
            Check("regression", "the cases in tests/cases", False, dynamic.check_tests),
        )

    def gather_candidate(self, targets: Iterable[str], *, unchanged: bool = False) -> Candidate:
        """The working copies of these agents and files (see ``candidate.gather``)."""
        return gather_candidate(self.host, self.scripts, targets, unchanged=unchanged)

    def check_agent(self, name: str, *, runs: int | None = None) -> list[CheckResult]:
        """All stages over the working copy of an agent. ``runs``: over how many of its past runs it is compared with
        the approved version (None: as configured). Raises ``UsageError`` where there is no such agent."""
        report = self.examine(self._gather_agent(name), runs=runs)
        return report.results[self.host.layout.agent_path(name)]

    def _gather_agent(self, name: str) -> Candidate:
        """The working copy of an agent. Raises ``UsageError`` where there is none, or no such agent."""
        path = self.host.layout.agent_path(name)
        candidate = self.gather_candidate([name], unchanged=True)
        if candidate.texts.get(path, b"") is None:
            raise UsageError(
                "the working copy is missing", place=Place(path),
                remedy=f"Bring it back (git checkout -- {path}), or propose its removal: cleared agent propose {name}.",
            )  # fmt: skip
        return candidate

    def compare_with_approved(self, name: str, runs: int) -> Impact:
        """The working copy against the approved version, over the agent's last ``runs`` runs.

        Raises ``UsageError`` where there is no such agent, or no approved version of it, ``PolicyError`` where the
        working copy does not pass the checks.
        """
        candidate = self._gather_agent(name)
        path = self.host.layout.agent_path(name)
        subject = next(s for s in self._make_subjects(candidate, self.host) if s.file == path)
        if subject.old is None:
            raise UsageError(
                f"{path} has no approved version to compare with", remedy=f"See cleared agent check {name}."
            )
        subject.script = subject.proposed_setup.scripts.load_agent(name)
        return DryRunChecks(self.repo, self.snapshot, self.executor, runs).compare_versions(subject, runs)

    def examine(
        self, candidate: Candidate, *, pins: Mapping[str, DryRunPin] | None = None, runs: int | None = None
    ) -> Report:
        """Every stage over every script that the candidate changes, and over the agents that this reaches.

        ``pins``: rehearse over just these again; raises ``Unpinned`` where that cannot be.
        """
        then = self.host
        if candidate.config is not None:
            layout = replace(self.host.layout, config=candidate.config)
            then = replace(self.host, config=candidate.config, layout=layout, reread_policy=None)
        report = Report(candidate, self.snapshot.commit or "")
        proposed = [c.path for c in candidate.changes_of_kind("case")]
        report.general_findings = [
            *find_changed_tests(self.snapshot, self.scripts.approvals, proposed),
            *_find_mixed_rule_change(candidate, self.host),
            *_find_unreadable_tests(candidate),
            *_find_unknown_rules(candidate),
        ]
        dynamic = DryRunChecks(self.repo, self.snapshot, self.executor, runs)
        dynamic.pins = dict(pins or {})
        dynamic.case_texts = {c.path: c.new for c in candidate.changes_of_kind("case")}
        for subject in self._make_subjects(candidate, then):
            report.subjects[subject.file] = subject
            report.results[subject.file] = self._run_checks(subject, dynamic)
        report.pins = dynamic.pins
        return report

    def _run_checks(self, subject: Subject, dynamic: DryRunChecks) -> list[CheckResult]:
        results: list[CheckResult] = []
        blocked = ""
        for step in self.list_checks(dynamic):
            if subject.kind == "script" and not step.reads_text_only:
                continue  # shared scripts are rehearsed by the agents that run them
            if blocked and not step.reads_text_only:
                results.append(CheckResult(step.name, "skipped", reason=f"{blocked} found a blocker"))
                continue
            result = step.run(subject)
            results.append(result)
            # A failed rehearsal leaves nothing to judge; what comes after it is all told.
            if result.status == "failed" and not blocked and (step.reads_text_only or step.name == "rehearsal"):
                blocked = step.name
        return results

    def _make_subjects(self, candidate: Candidate, then: Host) -> list[Subject]:
        """The changed scripts; the agents that run a changed one, or are bound by a changed policy or case."""
        before = {c.path: c.old for c in candidate.changes if c.kind in ("agent", "script")}
        agents = {c.path: c.new for c in candidate.changes_of_kind("agent")}
        for name in self._affected_agents(candidate):
            path = self.host.layout.agent_path(name)
            held = self.scripts.approvals.approved_version(path)[0]
            working = self.host.root / path
            looked_at = name in candidate.agents_to_examine and working.is_file() and not working.is_symlink()
            agents.setdefault(path, working.read_bytes() if looked_at else held)
            before.setdefault(path, held)
        after = {**before, **agents, **candidate.texts}
        now_world = Setup(self.host, Scripts(self.host, self.snapshot, texts=before))
        then_world = Setup(then, Scripts(then, self.snapshot, texts=after))
        found = []
        for change in candidate.changes_of_kind("script"):
            if change.new is not None:
                found.append(self._make_subject("script", change.path, change.new, now_world, then_world))
        for path, data in sorted(agents.items()):
            if data is not None:
                subject = self._make_subject("agent", path, data, now_world, then_world)
                subject.approved = data == before.get(path)
                if before.get(path) is not None:
                    with contextlib.suppress(ClearedError):
                        subject.old = now_world.scripts.load_agent(subject.name)
                found.append(subject)
        return found

    def _make_subject(self, kind: Any, path: str, data: bytes, now: Setup, then: Setup) -> Subject:
        source = data.decode("utf-8", errors="surrogateescape")
        name = path.rsplit("/", 1)[-1].removesuffix(".py")
        return Subject(kind, name, path, source, now, then, then.scripts.find_script_grants(source, path))

    def _affected_agents(self, candidate: Candidate) -> list[str]:
        names = set(candidate.agents_to_examine)
        changed = {c.name for c in candidate.changes_of_kind("script")}
        every = candidate.config is not None
        folder = self.host.layout.agents_dir
        for path in self.snapshot.list_entries(folder):
            if path.endswith(".py") and path.count("/") == 1 and (changed or every):
                held, _ = self.scripts.approvals.approved_version(path)
                if held is None:
                    continue
                source = held.decode("utf-8", "replace")
                runs = find_grants(source, path, self.host.registry, self.scripts.read_shared_source)[1]
                if every or runs & changed:
                    names.add(path.removeprefix(f"{folder}/").removesuffix(".py"))
        for change in candidate.changes_of_kind("case"):
            names |= {
                n for n in (_agent_of_test(change.old), _agent_of_test(change.new)) if n and self._is_committed_agent(n)
            }
        return sorted(names)

    def _is_committed_agent(self, name: str) -> bool:
        try:
            return self.snapshot.read_file(self.host.layout.agent_path(name)) is not None
        except UsageError:
            return False


def _agent_of_test(case: bytes | None) -> str | None:
    try:
        return parse_test(case or b"", "").agent
    except ValueError:
        return None


def _find_unreadable_tests(candidate: Candidate) -> list[Finding]:
    """Proposed cases that are none."""
    found = []
    for change in candidate.changes_of_kind("case"):
        try:
            if change.new is not None:
                parse_test(change.new, change.path)
        except ValueError as error:
            found.append(Finding("regression-format", str(error), Place(change.path), "cleared test add makes cases."))
    return found


def _find_unknown_rules(candidate: Candidate) -> list[Finding]:
    """Rules that a setting names, and that are none or cannot be switched."""
    if candidate.config is None:
        return []
    found = []
    for rule in candidate.config.gate.rules:
        known = rule in RULES or rule.startswith("type:")
        if not known or not is_switchable(rule):
            why = "cannot be switched: the gate would be none without it" if known else "is no rule"
            near = get_close_matches(rule, [r for r in RULES if is_switchable(r)], 1)
            remedy = f"Did you mean {near[0]}?" if near and not known else "docs/reference/rules.md lists them."
            place = Place(candidate.changes_of_kind("config")[0].path, field=f"gate.rules.{rule}")
            found.append(Finding("policy-rule", f"{rule!r} {why}", place, remedy))
    return found


def _find_mixed_rule_change(candidate: Candidate, host: Host) -> list[Finding]:
    """Which rules hold is decided by itself, never beside a script that would need them switched off."""
    if candidate.config is None or len(candidate.changes) == 1:
        return []
    if candidate.config.gate == host.config.gate:
        return []
    change: Change = candidate.changes_of_kind("config")[0]
    return [
        Finding(
            "policy-alone", "a change of the gate's own rules stands in one proposal with other files",
            Place(change.path), "Propose config.yaml by itself.",
        )
    ]  # fmt: skip
