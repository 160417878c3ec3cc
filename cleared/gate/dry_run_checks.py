"""The rehearsing stages: dry run, invariants, same behaviour watched or not, behavioural diff, regression cases."""

from __future__ import annotations

from cleared.changes.book_sources import CommittedSource
from cleared.changes.session import open_books
from cleared.errors import ClearedError, Place
from cleared.gate import regression_tests
from cleared.gate.check_result import CheckResult, Subject, make_result
from cleared.gate.dry_run import DryRun, Setup, compare_dry_runs, dry_run_script
from cleared.gate.dry_run_inputs import DryRunPin, collect_inputs
from cleared.gate.impact import Impact
from cleared.gate.past_runs import DryRunInput, read_past_runs
from cleared.runs.approved_scripts import Script
from cleared.runs.attempt import MakeExecutor
from cleared.sandbox.finding import Finding
from cleared.vcs import Repository, Snapshot

_EMIT_REMEDY = (
    "Mend the script; or, where it needs a payload, emit such an event first, which rehearsals then have: "
    "cleared event emit NAME --data …"
)


class DryRunChecks:
    """``pins``: agent → what it is rehearsed over; filled by the rehearsal where it holds nothing yet."""

    def __init__(self, repo: Repository, snapshot: Snapshot, executor: MakeExecutor, runs: int | None) -> None:
        self.repo, self.snapshot, self.executor = repo, snapshot, executor
        self.runs = runs
        self.pins: dict[str, DryRunPin] = {}
        self.case_texts: dict[str, bytes | None] = {}

    def check_dry_runs(self, subject: Subject) -> CheckResult:
        try:
            subject.script = subject.proposed_setup.scripts.load_agent(subject.name)
        except ClearedError as e:  # what the static stages let pass by a setting
            return make_result("rehearsal", [_script_finding(subject, "rehearsal", str(e))], {})
        header, pin = subject.script.header, self.pins.get(subject.name)
        found, pin = collect_inputs(subject.proposed_setup.host, self.repo, self.snapshot, subject.name, header, pin)
        self.pins[subject.name] = pin
        for occasion in found:
            for dry_run, kept in ((False, subject.dry_runs), (True, subject.flagged_dry_runs)):
                kept.append(self._dry_run(subject.proposed_setup, subject.script, occasion, dry_run=dry_run))
        unheard = pin.event is not None and pin.event["kind"] == "event" and pin.event["payload"] is None
        findings = [_failure_finding(subject, r, unheard=unheard) for r in subject.dry_runs if r.error is not None]
        return make_result("rehearsal", findings, {}, rehearsals=[r.to_dict() for r in subject.dry_runs])

    def check_invariants(self, subject: Subject) -> CheckResult:
        findings = [
            Finding("invariants", f"over {r.label}: {v.message}", Place(subject.file), v.remedy)
            for r in subject.dry_runs
            for v in r.violations
        ]
        return make_result("invariants", findings, {})

    def check_flag_independence(self, subject: Subject) -> CheckResult:
        findings = []
        for unwatched, watched in zip(subject.dry_runs, subject.flagged_dry_runs, strict=True):
            different = compare_dry_runs(unwatched, watched)
            if different:
                findings.append(
                    Finding(
                        "watched", f"over {unwatched.label} the script acts differently when ctx_dry_run() is true: "
                        + "; ".join(different), Place(subject.file), "Do the same either way; a dry run is discarded.",
                    )
                )  # fmt: skip
        return make_result("watched", findings, subject.proposed_setup.host.config.gate.rules)

    def check_impact(self, subject: Subject) -> CheckResult:
        """Both versions over the made-up month and over the agent's past runs."""
        gate = subject.proposed_setup.host.config.gate
        if subject.old is None or self.runs == 0 or _is_unchanged(subject):
            return make_result("behaviour", [], {}, history=Impact().to_dict())
        assert subject.script is not None
        synthetic = Impact()
        for occasion, new in zip(self._sample_inputs_again(subject), subject.dry_runs, strict=True):
            if occasion.after is None and occasion.run is None:
                synthetic.add_run(occasion, {}, self._dry_run(subject.approved_setup, subject.old, occasion), new)
        history = self.compare_versions(subject, self.runs if self.runs is not None else gate.history_runs)
        subject.synthetic, subject.history = synthetic, history
        said = [Finding("behaviour", w, Place(subject.file), "Look at cleared agent diff.")
                for w in dict.fromkeys([*history.find_warnings(), *synthetic.find_warnings()])]  # fmt: skip
        said += [Finding("behaviour", f"it fails over {f}, which went well before", Place(subject.file),
                         "Mend it, or change what it is run over.") for f in history.failed]  # fmt: skip
        blocking = gate.behaviour == "block"
        return make_result(
            "behaviour", said if blocking else [], gate.rules, [] if blocking else said,
            history=history.to_dict(), synthetic=synthetic.to_dict(),
        )  # fmt: skip

    def compare_versions(self, subject: Subject, limit: int) -> Impact:
        """The two versions over the agent's last ``limit`` runs, on the books as they stood before each."""
        diff = Impact()
        assert subject.old is not None and subject.script is not None
        past = list(read_past_runs(subject.approved_setup.host, self.repo, subject.name, limit))
        for occasion in reversed(past):
            if isinstance(occasion, str):
                diff.not_comparable.append(occasion)
                continue
            old = self._dry_run(subject.approved_setup, subject.old, occasion)
            new = self._dry_run(subject.proposed_setup, subject.script, occasion)
            diff.add_run(occasion, self._posted_entries(subject.approved_setup, occasion), old, new)
        return diff

    def check_tests(self, subject: Subject) -> CheckResult:
        """Every case of this agent. One that the approved version does not meet either is told, and blocks nothing."""
        assert subject.script is not None
        known, findings = regression_tests.load_tests(self.snapshot, self.case_texts)
        mine = [c for c in known if c.agent == subject.name]
        unmet: list[Finding] = []
        for case in mine:
            _, said = regression_tests.replay_test(
                case, subject.proposed_setup, self.repo, subject.script, self.executor
            )
            if not said:
                continue
            shown = f"{case.why or case.name}: " + "; ".join(said[:5]) + (" …" if len(said) > 5 else "")
            finding = Finding(
                "regression", f"case {case.name} is broken: {shown}", Place(case.path),
                f"Do as before, or have the case changed too: cleared agent propose {subject.name} {case.path}.",
            )  # fmt: skip
            new_case = self.case_texts.get(case.path) is not None
            was_met = subject.old is not None and not new_case and not regression_tests.replay_test(
                case, subject.approved_setup, self.repo, subject.old, self.executor
            )[1]  # fmt: skip
            (findings if was_met or new_case or subject.old is None else unmet).append(finding)
        return make_result("regression", findings, {}, unmet, cases=[c.name for c in mine])

    def _sample_inputs_again(self, subject: Subject) -> list[DryRunInput]:
        pin = self.pins[subject.name]  # which has the event, so that no header is needed
        return collect_inputs(subject.approved_setup.host, self.repo, self.snapshot, subject.name, None, pin)[0]

    def _dry_run(self, world: Setup, script: Script, occasion: DryRunInput, *, dry_run: bool = False) -> DryRun:
        at = occasion.now or world.host.clock.now()
        return dry_run_script(
            world, self.repo, occasion.snapshot, script, self.executor, label=occasion.label, inputs=occasion.inputs,
            now=at, dry_run=dry_run, event=occasion.event,
        )  # fmt: skip

    def _posted_entries(self, world: Setup, occasion: DryRunInput) -> dict[str, str]:
        """Bank line → the entry that the run really posted for it."""
        if occasion.after is None:
            return {}
        _, bank = open_books(world.host, CommittedSource(occasion.after))
        return {line: pairs[0][0].rstrip("abcdefghijklmnopqrstuvwxyz") for line, pairs in bank.matches.items()}


def _is_unchanged(subject: Subject) -> bool:
    """Whether the two worlds are one: what would be compared is the same."""
    now, then = subject.approved_setup, subject.proposed_setup
    if now.host is not then.host:
        return False
    paths = {*now.scripts.texts, *then.scripts.texts}
    return all(now.scripts.texts.get(p) == then.scripts.texts.get(p) for p in paths)


def _script_finding(subject: Subject, rule: str, message: str) -> Finding:
    return Finding(rule, message, Place(subject.file), "Mend the script.")


def _failure_finding(subject: Subject, rehearsal: DryRun, *, unheard: bool) -> Finding:
    """``unheard``: there has been no event of the kind that starts the agent, so that there was no payload."""
    error = rehearsal.error
    assert error is not None
    what = f"{error.primitive}: {error.message}" if error.primitive else error.message
    return Finding(
        "rehearsal", f"over {rehearsal.label}: {what}".rstrip("."), Place(error.file or subject.file, error.line),
        error.remedy or (_EMIT_REMEDY if unheard else "Mend the script."),
    )  # fmt: skip
