"""The checks that run a script, never for good: dry runs, the books after them, impact on past runs, tests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from msgspec.structs import replace

from cleared.base.errors import ClearedError, Place
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import name_references
from cleared.gate import regression_tests
from cleared.gate.check_result import Check, CheckResult, Subject, make_result
from cleared.gate.dry_run import DryRun, compare_dry_runs
from cleared.gate.dry_run_inputs import DryRunPin, collect_inputs
from cleared.gate.event_listeners import find_woken
from cleared.gate.impact import Impact, Names
from cleared.gate.latent_changes import find_latent
from cleared.gate.past_rehearsal import rehearse_past_runs, rehearse_run
from cleared.gate.past_runs import DryRunInput, read_past_runs
from cleared.git import Repository, Snapshot
from cleared.sandbox.finding import Finding, Rule, make_rules
from cleared.sandbox.trigger_kinds import EVENT, WEBHOOK

_EMIT_REMEDY = (
    "Correct the script; or, where it needs a payload, emit such an event first, which dry runs then have: "
    "cleared event emit NAME --data …"
)
_SAMPLE_REMEDY = "Correct the script; or, where it needs a body, give one for dry runs in its header: sample: {…}"
_NO_PAYLOAD_REMEDIES = {EVENT.name: _EMIT_REMEDY, WEBHOOK.name: _SAMPLE_REMEDY}
"""What helps where a dry run had no payload, by the kind of the event."""


class DryRunChecks:
    """Holds what these checks work with: the books, the sandbox, and what each agent is run over.

    ``runs``: over how many past runs versions are compared (None: as configured; 0: none). ``pins``: agent → what its
    dry runs are over; ``check_dry_runs`` adds what is missing. ``test_texts``: tests that the candidate changes.
    """

    def __init__(self, repo: Repository, snapshot: Snapshot, runs: int | None) -> None:
        self.repo, self.snapshot = repo, snapshot
        self._rehearse = partial(rehearse_run, repo)
        self.runs = runs
        self.pins: dict[str, DryRunPin] = {}
        self.test_texts: dict[str, bytes | None] = {}
        self._names: Names | None = None

    def check_dry_runs(self, subject: Subject) -> CheckResult:
        """The script over an empty folder, the sample data and the latest real files, with ``ctx_dry_run()`` false and
        true; keeps what came of each for the later checks."""
        try:
            subject.script = subject.proposed_setup.scripts.load_agent(subject.name)
        except ClearedError as e:  # what the checks before let pass by a setting
            return make_result(
                "rehearsal", [Finding("rehearsal", str(e), Place(subject.file), "Correct the script.")], {}
            )
        header, pin = subject.script.header, self.pins.get(subject.name)
        host = subject.proposed_setup.host
        inputs, pin = collect_inputs(host, self.repo, self.snapshot, subject.name, header, pin)
        for each in inputs:
            answers = pin.answers if pin.answers is not None else each.model_answers(host)
            for flag, results in ((False, subject.dry_runs), (True, subject.flagged_dry_runs)):
                results.append(self._rehearse(subject.proposed_setup, subject.script, each, answers, dry_run=flag))
        used = {key: answer for result in subject.dry_runs for key, answer in result.answers.items()}
        self.pins[subject.name] = replace(pin, answers=used)
        lacks_payload = pin.event is not None and pin.event["payload"] is None
        remedy = _NO_PAYLOAD_REMEDIES.get(pin.event["kind"]) if pin.event is not None and lacks_payload else None
        findings = [_failure_finding(subject, r, remedy) for r in subject.dry_runs if r.error is not None]
        return make_result("rehearsal", findings, {}, rehearsals=[r.to_dict() for r in subject.dry_runs])

    def check_invariants(self, subject: Subject) -> CheckResult:
        """The checks of the books, over what each dry run would have committed."""
        findings = [
            Finding("invariants", f"over {r.label}: {v.message}", Place(subject.file), v.remedy)
            for r in subject.dry_runs
            for v in r.violations
        ]
        return make_result("invariants", findings, {})

    def check_flag_independence(self, subject: Subject) -> CheckResult:
        """Whether the script does the same when ``ctx_dry_run()`` is true."""
        findings = []
        for usual, flagged in zip(subject.dry_runs, subject.flagged_dry_runs, strict=True):
            different = compare_dry_runs(usual, flagged)
            if different:
                findings.append(
                    Finding(
                        "watched",
                        f"over {usual.label} the script acts differently when ctx_dry_run() is true: "
                        + "; ".join(different),
                        Place(subject.file),
                        "Do the same either way; a dry run is discarded.",
                    )
                )
        return make_result("watched", findings, subject.proposed_setup.host.config.gate.rules)

    def check_impact(self, subject: Subject) -> CheckResult:
        """Both versions over the sample data and over the agent's past runs."""
        gate = subject.proposed_setup.host.config.gate
        if subject.old is None or self.runs == 0 or _is_unchanged(subject):
            if subject.old is None and self.runs != 0:
                subject.sample_impact = self._compare_with_nothing(subject)
            self._find_latent(subject)
            return make_result("behaviour", [], {}, history=Impact().to_dict())
        assert subject.script is not None
        sample = Impact()
        for inputs, new in zip(self._sample_inputs_again(subject), subject.dry_runs, strict=True):
            if inputs.after is None and inputs.run is None:
                old = self._rehearse(subject.approved_setup, subject.old, inputs)
                self._compare_runs(sample, subject, inputs, {}, old, new)
        impact = self.compare_versions(subject, self.runs if self.runs is not None else gate.history_runs)
        subject.sample_impact, subject.impact = sample, impact
        self._find_latent(subject)
        findings = [
            Finding("behaviour", f"over {label}, {warning}", Place(subject.file), "Look at cleared agent diff.")
            for label, compared in (("past runs", impact), ("sample data", sample))
            for warning in compared.find_warnings()
        ]
        findings += [
            Finding(
                "behaviour",
                f"it fails over {f}, which went well before",
                Place(subject.file),
                "Correct it, or change what it is run over.",
            )
            for f in impact.failed
        ]
        blocking = gate.behaviour == "block"
        return make_result(
            "behaviour",
            findings if blocking else [],
            gate.rules,
            [] if blocking else findings,
            history=impact.to_dict(),
            synthetic=sample.to_dict(),
        )

    def _find_latent(self, subject: Subject) -> None:
        """What the new version could do beyond what dry runs over sample data and the agent's past runs show."""
        if self.runs == 0 or _is_unchanged(subject) or subject.script is None:
            return
        dry_runs = [*zip(self._sample_inputs_again(subject), subject.dry_runs, strict=True)]
        subject.latent = find_latent(subject, [*dry_runs, *reversed(subject.past_runs)], self._rehearse)

    def compare_versions(self, subject: Subject, limit: int) -> Impact:
        """The two versions over the agent's last ``limit`` runs, on the books as they stood before each."""
        impact = Impact()
        past = [*read_past_runs(subject.approved_setup.host, self.repo, subject.name, limit)][::-1]
        impact.not_comparable += [each for each in past if isinstance(each, str)]
        inputs = [each for each in past if not isinstance(each, str)]
        for each, rehearsed in zip(inputs, rehearse_past_runs(self.repo, subject, inputs), strict=True):
            subject.past_runs.append((each, rehearsed.new))
            self._compare_runs(impact, subject, each, rehearsed.ids, rehearsed.old, rehearsed.new)
        return impact

    def _compare_with_nothing(self, subject: Subject) -> Impact:
        """All that a new agent would do over sample data and the latest real files."""
        impact = Impact()
        for inputs, new in zip(self._sample_inputs_again(subject)[1:], subject.dry_runs[1:], strict=True):
            self._compare_runs(impact, subject, inputs, {}, DryRun(new.label, None, None, {}, (), ()), new)
        return impact

    def _compare_runs(
        self, impact: Impact, subject: Subject, inputs: DryRunInput, ids: Mapping[str, str], old: DryRun, new: DryRun
    ) -> None:
        names = self._names_for(subject)
        impact.add_run(inputs, ids, old, new, names)
        find_woken(self.repo, self.snapshot, subject, inputs, old, new, names)

    def _names_for(self, subject: Subject) -> Names:
        """Of what records may be about, as of the last commit."""
        if self._names is None:
            self._names = name_references(subject.proposed_setup.host.layout, CommittedSource(self.snapshot))
        return self._names

    def check_tests(self, subject: Subject) -> CheckResult:
        """Every test of this agent. One that the approved version does not pass either is a warning; ``as_before``: the
        files of those of which it breaks nothing that is not broken in that version, too."""
        assert subject.script is not None
        tests, findings = regression_tests.load_tests(self.snapshot, self.test_texts)
        mine = [test for test in tests if test.agent == subject.name]
        warnings: list[Finding] = []
        as_before = []
        for test in mine:
            _, differences = regression_tests.replay_test(test, subject.proposed_setup, self.repo, subject.script)
            if not differences:
                continue
            shown = f"{test.why or test.name}: {'; '.join(differences[:5])}{' …' if len(differences) > 5 else ''}"
            finding = Finding(
                "regression",
                f"test {test.name} is broken: {shown}",
                Place(test.path),
                f"Do as before, or have the test changed too: cleared agent propose {subject.name} {test.path}.",
            )
            is_new = self.test_texts.get(test.path) is not None
            if is_new or subject.old is None:
                findings.append(finding)
                continue
            _, known = regression_tests.replay_test(test, subject.approved_setup, self.repo, subject.old)
            (warnings if known else findings).append(finding)
            as_before += [test.path] if set(differences) <= set(known) else []
        cases = [test.name for test in mine]
        return make_result("regression", findings, {}, warnings, cases=cases, as_before=as_before)

    def _sample_inputs_again(self, subject: Subject) -> list[DryRunInput]:
        pin = self.pins[subject.name]  # which has the event, so that no header is needed
        return collect_inputs(subject.approved_setup.host, self.repo, self.snapshot, subject.name, None, pin)[0]


def _is_unchanged(subject: Subject) -> bool:
    """Whether the two worlds are one: what would be compared is the same."""
    now, then = subject.approved_setup, subject.proposed_setup
    if now.host is not then.host:
        return False
    paths = {*now.scripts.texts, *then.scripts.texts}
    return all(now.scripts.texts.get(p) == then.scripts.texts.get(p) for p in paths)


def _failure_finding(subject: Subject, result: DryRun, remedy: str | None) -> Finding:
    """``remedy``: where the error names none, and the event that the agent was run for had no payload."""
    error = result.error
    assert error is not None
    return Finding(
        "rehearsal",
        f"over {result.label}: {error.full_message}".rstrip("."),
        Place(error.file or subject.file, error.line),
        error.remedy or remedy or "Correct the script.",
    )


CHECKS: Final[tuple[Check[DryRunChecks], ...]] = (
    Check(
        "rehearsal",
        "dry run",
        "the script run over an empty import folder, sample data and the latest real files",
        DryRunChecks.check_dry_runs,
        make_rules(
            "rehearsal",
            {
                "rehearsal": (
                    "a script that fails when it is run",
                    "What fails over sample data or past files would fail over tomorrow's; a dry run keeps nothing.",
                    "Correct the line that the finding names.",
                ),
            },
        ),
    ),
    Check(
        "invariants",
        "invariants",
        "the checks of the books, over what the dry runs would have committed",
        DryRunChecks.check_invariants,
        make_rules(
            "invariants",
            {
                "invariants": (
                    "a dry run whose books would break a check",
                    "Books that do not add up are never committed, not even once.",
                    "Correct what the script posts.",
                ),
            },
        ),
    ),
    Check(
        "watched",
        "dry-run flag",
        "the same effects whether ctx_dry_run() is true or false",
        DryRunChecks.check_flag_independence,
        make_rules(
            "watched",
            {
                "watched": (
                    "a script that acts differently when `ctx_dry_run()` is true",
                    "A script that knows when it is watched cannot be judged by watching it.",
                    "Do the same either way; a dry run is discarded.",
                ),
            },
        ),
    ),
    Check(
        "behaviour",
        "impact",
        "the new version against the approved one, over sample data and the agent's past runs",
        DryRunChecks.check_impact,
        {
            "behaviour": Rule(
                "behaviour",
                "behaviour",
                "a change that confirms everything, doubles the queue, or fails where the approved version did not",
                "Such a change is small in the text and large in the books.",
                "Look at cleared agent diff; `gate.behaviour: block` makes it block.",
                blocks=False,
            ),
        },
    ),
    Check(
        "regression",
        "tests",
        "the approved tests in tests/cases/, replayed",
        DryRunChecks.check_tests,
        {
            **make_rules(
                "regression",
                {
                    "regression": (
                        "a test that the new version no longer passes",
                        "What was put right once stays right.",
                        "Do as before, or propose a changed test together with the script.",
                    ),
                },
            ),
            **regression_tests.RULES,
        },
    ),
)
"""In this order; the first that fails ends them only if it is the dry run, which leaves nothing to judge."""
