"""The gate: all checks of a candidate, put together in a report. Nothing is proposed or changed here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from cleared.base.errors import CheckFailed, ClearedError, Place, UsageError
from cleared.base.json_values import to_plain_json
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.gate.approved_tests import find_changed_tests
from cleared.gate.candidate import Candidate, gather_candidate
from cleared.gate.candidate_checks import (
    find_mixed_rule_change,
    find_refused_settings,
    find_unknown_rules,
    find_unreadable_tests,
    find_unreadable_texts,
)
from cleared.gate.changed_code import decode_script, split_changed_lines
from cleared.gate.check_result import CheckResult, Subject, make_result
from cleared.gate.dry_run import DryRun, Setup
from cleared.gate.dry_run_checks import CHECKS as DRY_RUN_CHECKS
from cleared.gate.dry_run_checks import DryRunChecks
from cleared.gate.dry_run_inputs import SAMPLE_DATA, DryRunPin
from cleared.gate.file_kinds import file_kind
from cleared.gate.impact import Impact
from cleared.gate.latent_findings import Latent
from cleared.gate.lint_rules import RULES, TITLES, result_to_dict
from cleared.gate.regression_tests import parse_test
from cleared.gate.static_checks import CHECKS as STATIC_CHECKS
from cleared.gate.static_checks import StaticChecks
from cleared.git import Repository, Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.finding import Finding
from cleared.sandbox.used_primitives import find_grants
from cleared.trust.approval_record import canonical_digest
from cleared.workspace.location import Layout, name_script
from cleared.workspace.settings.protected_settings import compare_all_settings
from cleared.workspace.settings.setting_keys import starts_something

_IMPACT_RULE: Final = "behaviour"
"""The rule of warnings about effects."""
_LABELS_IN_DIGESTS: Final = {SAMPLE_DATA: "a made-up month"}
"""Labels as they stand in the digests of proposals that wait: another label would make all of them stale."""


class Report(Struct):
    """The results of all checks: of each script by its file, and findings in the candidate as a whole."""

    candidate: Candidate
    base: str
    results: dict[str, list[CheckResult]] = {}
    subjects: dict[str, Subject] = {}
    general_findings: list[Finding] = []
    pins: dict[str, DryRunPin] = {}
    programs: list[str] = []
    """Changed settings that name a program that this machine will run."""

    @property
    def passed(self) -> bool:
        return not self.general_findings and all(
            r.status == "passed" for stages in self.results.values() for r in stages
        )

    @property
    def findings(self) -> list[Finding]:
        """Each once, though several checks or scripts have it."""
        every = [*self.general_findings, *(f for results in self.results.values() for r in results for f in r.findings)]
        return list({(f.rule, f.message, f.place): f for f in reversed(every)}.values())[::-1]

    @property
    def warnings(self) -> list[Finding]:
        return [f for stages in self.results.values() for r in stages for f in r.warnings]

    def list_warnings(self, *, of_effects: bool) -> list[str]:
        """A sentence for each warning about effects, or for each other one; one for all tests that fail as without the
        change."""
        results = [result for stages in self.results.values() for result in stages]
        as_before = {file for result in results for file in result.details.get("as_before", ())}
        chosen = [w for w in self.warnings if (w.rule == _IMPACT_RULE) == of_effects]
        said = [w for w in chosen if w.rule != "regression" or w.place.file not in as_before]
        rest = len(chosen) - len(said)
        verb = "fails" if rest == 1 else "fail"
        more = [f"As without the change, {count_noun(rest, 'test')} of corrections {verb}."] if rest else []
        return [f"Attention: {w.message}." for w in said] + more

    @property
    def grants(self) -> dict[str, list[str]]:
        """Path → the primitives the script may call, and the job types it may enqueue."""
        return {file: sorted(subject.grants) for file, subject in self.subjects.items()}

    @property
    def effects(self) -> str:
        """Digest of the effects of all dry runs; ids and times are not in them."""
        return canonical_digest(
            {
                file: [
                    [_LABELS_IN_DIGESTS.get(r.label, r.label), to_plain_json(_keep_present(r.effects))]
                    for r in s.dry_runs
                ]
                for file, s in self.subjects.items()
            }
        )

    @property
    def digest(self) -> str:
        """What an approval binds to: the files, what they may call, what they would do."""
        return canonical_digest([self.candidate.fingerprint, self.grants, self.effects])

    def total_impact(self, *, sample: bool = False) -> Impact:
        """The change compared with what is approved, over all agents: on their past runs, or on the sample data."""
        total = Impact()
        for subject in self.subjects.values():
            impact = subject.sample_impact if sample else subject.impact
            if impact is not None:
                total.add_agent(impact, subject.name)
        return total

    @property
    def latent(self) -> dict[str, Latent]:
        """File → what it could do that no dry run showed, where there is such."""
        found: dict[str, Latent] = {}
        if self.candidate.config is not None:
            decides = "decides what this machine runs or sends out, or what nobody looks at before"
            said = [f"The setting {key} {decides}." for key in self.programs]
            said += self.list_warnings(of_effects=True)
            found |= {Layout.config_file: Latent(outcomes=said)} if said else {}
        return found | {file: subject.latent for file, subject in self.subjects.items() if subject.latent}

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "stages": {file: [result_to_dict(r) for r in results] for file, results in self.results.items()},
        }


def _keep_present(effects: Mapping[str, Any]) -> dict[str, Any]:
    """Effects without what there is none of: a further domain, of which a script does nothing, makes no difference."""
    return {name: value for name, value in effects.items() if value}


class Gate:
    """The checks over one workspace. A context manager: type checkers and the sandbox stay up between scripts."""

    def __init__(self, host: Host, repo: Repository | None = None) -> None:
        self.host = host
        self._repo = repo
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Gate:
        self._stack.enter_context(self.host.keep_executor())
        self.repo = self._repo if self._repo is not None else self._stack.enter_context(self.host.open_for_reading())
        self.snapshot = Snapshot(self.repo, self.repo.read_head())
        self.scripts = Scripts(self.host, self.snapshot)
        self.static = StaticChecks(self._stack)
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def gather_candidate(
        self,
        targets: Iterable[str],
        *,
        unchanged: bool = False,
        texts: Mapping[str, bytes | None] | None = None,
    ) -> Candidate:
        """These agents and files: from ``texts``, or their working copies (see ``candidate.gather_candidate``)."""
        return gather_candidate(self.host, self.scripts, targets, unchanged=unchanged, texts=texts)

    def check_agent(
        self, name: str, *, runs: int | None = None, texts: Mapping[str, bytes | None] | None = None
    ) -> list[CheckResult]:
        """All checks over an agent as ``texts`` has it, or over its working copy (None).

        A last result, ``proposal``, has what else would keep it from being proposed, if there is something.

        ``runs``: over how many of its past runs it is compared with the approved version (None: as configured).
        Raises ``UsageError`` where there is no such agent.
        """
        report = self.examine(self._gather_agent(name, texts), runs=runs)
        results = report.results[self.host.layout.agent_path(name)]
        if report.general_findings:
            results = [*results, make_result("proposal", report.general_findings, {})]
        return results

    def _gather_agent(self, name: str, texts: Mapping[str, bytes | None] | None) -> Candidate:
        """An agent from ``texts``, or its working copy. Raises ``UsageError`` where there is none, or no such agent."""
        path = self.host.layout.agent_path(name)
        target = name if file_kind(name) is None else path  # an agent may be named like a file
        candidate = self.gather_candidate([target], unchanged=True, texts=texts)
        if candidate.texts.get(path, b"") is None:
            raise UsageError(
                "the working copy is missing",
                place=Place(path),
                remedy=f"Bring it back (git checkout HEAD -- {path}), or propose its removal: cleared agent propose "
                f"{name}.",
            )
        return candidate

    def _gather_subject(self, name: str, texts: Mapping[str, bytes | None] | None) -> Subject:
        """The same as its checks take it."""
        subjects = self._make_subjects(self._gather_agent(name, texts), self.host)
        return next(each for each in subjects if each.file == self.host.layout.agent_path(name))

    def rehearse(self, name: str, *, texts: Mapping[str, bytes | None] | None = None) -> list[DryRun]:
        """The dry runs of an agent of ``texts``, or of its working copy: over an empty folder, sample data, the latest
        files. Raises ``UsageError`` where there is no such agent, ``CheckFailed`` where its text may not be run."""
        subject = self._gather_subject(name, texts)
        result = DryRunChecks(self.repo, self.snapshot, 0).check_dry_runs(subject)
        if not subject.dry_runs:
            (found,) = result.findings
            raise CheckFailed(found.message, place=found.place, remedy=found.remedy)
        return subject.dry_runs

    def compare_with_approved(self, name: str, runs: int, *, texts: Mapping[str, bytes | None] | None = None) -> Impact:
        """The agent of ``texts``, or its working copy, against the approved version, over its last ``runs`` runs.

        Raises ``UsageError`` where there is no such agent, or no approved version of it, ``PolicyError`` where the
        working copy does not pass the checks.
        """
        subject = self._gather_subject(name, texts)
        if subject.old is None:
            raise UsageError(
                f"{subject.file} has no approved version to compare with", remedy=f"See cleared agent check {name}."
            )
        subject.script = subject.proposed_setup.scripts.load_agent(name)
        return DryRunChecks(self.repo, self.snapshot, runs).compare_versions(subject, runs)

    def examine(
        self, candidate: Candidate, *, pins: Mapping[str, DryRunPin] | None = None, runs: int | None = None
    ) -> Report:
        """All checks of every script that the candidate changes, and of the agents that this affects.

        ``pins``: dry runs over the same inputs as these; raises ``NotRepeatable`` where one is gone. ``runs``: over how
        many past runs versions are compared (None: as configured).
        """
        then = self.host if candidate.config is None else self.host.with_config(candidate.config)
        report = Report(candidate, self.snapshot.commit or "")
        proposed = [c.path for c in candidate.changes_of_kind("case")]
        if candidate.config is not None:
            changed = compare_all_settings(self.host.config, candidate.config)
            report.programs = [key for key, _, new in changed if starts_something(key, new)]
        report.general_findings = [
            *find_changed_tests(self.snapshot, self.scripts.approvals, proposed),
            *find_mixed_rule_change(candidate, self.host.config),
            *find_unreadable_tests(candidate),
            *find_unreadable_texts(candidate),
            *find_unknown_rules(candidate, RULES),
            *find_refused_settings(candidate, self.host, self.snapshot),
        ]
        dynamic = DryRunChecks(self.repo, self.snapshot, runs)
        dynamic.pins = dict(pins or {})
        dynamic.test_texts = {c.path: c.new for c in candidate.changes_of_kind("case")}
        for subject in self._make_subjects(candidate, then):
            report.subjects[subject.file] = subject
            report.results[subject.file] = self._run_checks(subject, dynamic)
        _add_unused_scripts(report, candidate)
        report.pins = dynamic.pins
        return report

    def _run_checks(self, subject: Subject, dry_run_checks: DryRunChecks) -> list[CheckResult]:
        """The results of all checks. Those that run the script are skipped where its text has a blocker, or its dry
        run failed; a shared script is run only by the agents that use it."""
        results = [check.run(self.static, subject) for check in STATIC_CHECKS]
        if subject.kind == "script":
            return results
        blocked = next((result.check for result in results if result.status == "failed"), "")
        for check in DRY_RUN_CHECKS:
            if blocked:
                results.append(CheckResult(check.id, "skipped", reason=f"{TITLES[blocked]} found a blocker"))
                continue
            results.append(check.run(dry_run_checks, subject))
            if results[-1].status == "failed" and check is DRY_RUN_CHECKS[0]:
                blocked = check.id
        return results

    def _make_subjects(self, candidate: Candidate, then: Host) -> list[Subject]:
        """The changed scripts, and the agents that run a changed one or are bound by changed settings or tests."""
        before = {c.path: c.old for c in candidate.changes if c.kind in ("agent", "script")}
        agents = {c.path: c.new for c in candidate.changes_of_kind("agent")}
        for name in self._affected_agents(candidate):
            path = self.host.layout.agent_path(name)
            approved = self.scripts.approvals.approved_version(path)[0]
            working = self.host.root / path
            looked_at = name in candidate.agents_to_examine and working.is_file() and not working.is_symlink()
            if path in candidate.texts:
                agents.setdefault(path, candidate.texts[path])
            else:
                agents.setdefault(path, working.read_bytes() if looked_at else approved)
            before.setdefault(path, approved)
        after = {**before, **agents, **candidate.texts}
        now_world = Setup(self.host, Scripts(self.host, self.snapshot, texts=before))
        then_world = Setup(then, Scripts(then, self.snapshot, texts=after))
        subjects = []
        for change in candidate.changes_of_kind("script"):
            if change.new is not None:
                subjects.append(self._make_subject("script", change.path, change.new, now_world, then_world))
        for path, data in sorted(agents.items()):
            if data is not None:
                subject = self._make_subject("agent", path, data, now_world, then_world)
                subject.approved = data == before.get(path)
                if before.get(path) is not None:
                    with contextlib.suppress(ClearedError):
                        subject.old = now_world.scripts.load_agent(subject.name)
                subjects.append(subject)
        return subjects

    def _make_subject(self, kind: Any, path: str, data: bytes, now: Setup, then: Setup) -> Subject:
        source = data.decode("utf-8", errors="surrogateescape")
        name = name_script(path)
        return Subject(kind, name, path, source, now, then, then.scripts.find_script_grants(source, path))

    def _affected_agents(self, candidate: Candidate) -> list[str]:
        names = set(candidate.agents_to_examine)
        changed = {c.name for c in candidate.changes_of_kind("script")}
        every = candidate.config is not None
        folder = self.host.layout.agents_dir
        for path in self.snapshot.list_entries(folder):
            if path.endswith(".py") and path.count("/") == 1 and (changed or every):
                approved, _ = self.scripts.approvals.approved_version(path)
                if approved is None:
                    continue
                source = approved.decode("utf-8", "replace")
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


def _add_unused_scripts(report: Report, candidate: Candidate) -> None:
    """The code of shared scripts that no agent runs, which is said of no agent."""
    said = {file for each in report.subjects.values() if each.latent is not None for file in each.latent.files}
    for change in candidate.changes_of_kind("script"):
        subject = report.subjects.get(change.path)
        if subject is not None and change.path not in said:
            old = None if change.old is None else decode_script(change.old)
            code, prose = split_changed_lines(change.path, old, decode_script(change.new or b""))
            subject.latent = Latent(code=code, prose=prose, is_new=change.old is None)


def _agent_of_test(case: bytes | None) -> str | None:
    try:
        return parse_test(case or b"", "").agent
    except ValueError:
        return None


def check_agents(host: Host, names: list[str]) -> dict[str, list[CheckResult]]:
    """Every check of the gate over the working copies of these agents; nothing is changed."""
    with Gate(host) as gate:
        return {name: gate.check_agent(name) for name in names}


def compare_agent(host: Host, name: str, runs: int) -> Impact:
    """What the working copy of an agent would have done differently from the approved one in the last ``runs`` runs."""
    with Gate(host) as gate:
        return gate.compare_with_approved(name, runs)
