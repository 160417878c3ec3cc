"""The rehearsing stages: dry run, invariants, same behaviour watched or not, behavioural diff, regression cases."""

from __future__ import annotations

from cleared.changes.book_sources import CommittedSource
from cleared.changes.session import open_books
from cleared.errors import ClearedError, Place
from cleared.gate import regression_tests
from cleared.gate.check_result import StageResult, Subject, result_of
from cleared.gate.dry_run import Rehearsal, World, differences, rehearse
from cleared.gate.dry_run_inputs import Pin, occasions
from cleared.gate.impact import HistoryDiff
from cleared.gate.past_runs import Occasion, past_runs
from cleared.runs.approved_scripts import Script
from cleared.runs.attempt import MakeExecutor
from cleared.sandbox.finding import Finding
from cleared.vcs import Repository, Snapshot

_EMIT = (
    "Mend the script; or, where it needs a payload, emit such an event first, which rehearsals then have: "
    "cleared event emit NAME --data …"
)


class Dynamic:
    """``pins``: agent → what it is rehearsed over; filled by the rehearsal where it holds nothing yet."""

    def __init__(self, repo: Repository, snapshot: Snapshot, executor: MakeExecutor, runs: int | None) -> None:
        self.repo, self.snapshot, self.executor = repo, snapshot, executor
        self.runs = runs
        self.pins: dict[str, Pin] = {}
        self.case_texts: dict[str, bytes | None] = {}

    def rehearsal(self, subject: Subject) -> StageResult:
        try:
            subject.script = subject.then.scripts.agent(subject.name)
        except ClearedError as e:  # what the static stages let pass by a setting
            return result_of("rehearsal", [_finding(subject, "rehearsal", str(e))], {})
        header, pin = subject.script.header, self.pins.get(subject.name)
        found, pin = occasions(subject.then.host, self.repo, self.snapshot, subject.name, header, pin)
        self.pins[subject.name] = pin
        for occasion in found:
            for dry_run, kept in ((False, subject.rehearsals), (True, subject.watched)):
                kept.append(self._rehearse(subject.then, subject.script, occasion, dry_run=dry_run))
        unheard = pin.event is not None and pin.event["kind"] == "event" and pin.event["payload"] is None
        findings = [_failed(subject, r, unheard=unheard) for r in subject.rehearsals if r.error is not None]
        return result_of("rehearsal", findings, {}, rehearsals=[r.summary() for r in subject.rehearsals])

    def invariants(self, subject: Subject) -> StageResult:
        findings = [
            Finding("invariants", f"over {r.label}: {v.message}", Place(subject.file), v.remedy)
            for r in subject.rehearsals
            for v in r.violations
        ]
        return result_of("invariants", findings, {})

    def watched(self, subject: Subject) -> StageResult:
        findings = []
        for unwatched, watched in zip(subject.rehearsals, subject.watched, strict=True):
            different = differences(unwatched, watched)
            if different:
                findings.append(
                    Finding(
                        "watched", f"over {unwatched.label} the script acts differently when ctx_dry_run() is true: "
                        + "; ".join(different), Place(subject.file), "Do the same either way; a dry run is discarded.",
                    )
                )  # fmt: skip
        return result_of("watched", findings, subject.then.host.config.gate.rules)

    def behaviour(self, subject: Subject) -> StageResult:
        """Both versions over the made-up month and over the agent's past runs."""
        gate = subject.then.host.config.gate
        if subject.old is None or self.runs == 0 or _unchanged(subject):
            return result_of("behaviour", [], {}, history=HistoryDiff().data())
        assert subject.script is not None
        synthetic = HistoryDiff()
        for occasion, new in zip(self._same(subject), subject.rehearsals, strict=True):
            if occasion.after is None and occasion.run is None:
                synthetic.add(occasion, {}, self._rehearse(subject.now, subject.old, occasion), new)
        history = self.compare(subject, self.runs if self.runs is not None else gate.history_runs)
        subject.synthetic, subject.history = synthetic, history
        said = [Finding("behaviour", w, Place(subject.file), "Look at cleared agent diff.")
                for w in dict.fromkeys([*history.warnings(), *synthetic.warnings()])]  # fmt: skip
        said += [Finding("behaviour", f"it fails over {f}, which went well before", Place(subject.file),
                         "Mend it, or change what it is run over.") for f in history.failed]  # fmt: skip
        blocking = gate.behaviour == "block"
        return result_of(
            "behaviour", said if blocking else [], gate.rules, [] if blocking else said,
            history=history.data(), synthetic=synthetic.data(),
        )  # fmt: skip

    def compare(self, subject: Subject, limit: int) -> HistoryDiff:
        """The two versions over the agent's last ``limit`` runs, on the books as they stood before each."""
        diff = HistoryDiff()
        assert subject.old is not None and subject.script is not None
        past = list(past_runs(subject.now.host, self.repo, subject.name, limit))
        for occasion in reversed(past):
            if isinstance(occasion, str):
                diff.not_comparable.append(occasion)
                continue
            old = self._rehearse(subject.now, subject.old, occasion)
            new = self._rehearse(subject.then, subject.script, occasion)
            diff.add(occasion, self._posted(subject.now, occasion), old, new)
        return diff

    def regression(self, subject: Subject) -> StageResult:
        """Every case of this agent. One that the approved version does not meet either is told, and blocks nothing."""
        assert subject.script is not None
        known, findings = regression_tests.load(self.snapshot, self.case_texts)
        mine = [c for c in known if c.agent == subject.name]
        unmet: list[Finding] = []
        for case in mine:
            _, said = regression_tests.replay(case, subject.then, self.repo, subject.script, self.executor)
            if not said:
                continue
            shown = f"{case.why or case.name}: " + "; ".join(said[:5]) + (" …" if len(said) > 5 else "")
            finding = Finding(
                "regression", f"case {case.name} is broken: {shown}", Place(case.path),
                f"Do as before, or have the case changed too: cleared agent propose {subject.name} {case.path}.",
            )  # fmt: skip
            new_case = self.case_texts.get(case.path) is not None
            was_met = subject.old is not None and not new_case and not regression_tests.replay(
                case, subject.now, self.repo, subject.old, self.executor
            )[1]  # fmt: skip
            (findings if was_met or new_case or subject.old is None else unmet).append(finding)
        return result_of("regression", findings, {}, unmet, cases=[c.name for c in mine])

    def _same(self, subject: Subject) -> list[Occasion]:
        pin = self.pins[subject.name]  # which has the event, so that no header is needed
        return occasions(subject.now.host, self.repo, self.snapshot, subject.name, None, pin)[0]

    def _rehearse(self, world: World, script: Script, occasion: Occasion, *, dry_run: bool = False) -> Rehearsal:
        at = occasion.now or world.host.clock.now()
        return rehearse(
            world, self.repo, occasion.snapshot, script, self.executor, label=occasion.label, inputs=occasion.inputs,
            now=at, dry_run=dry_run, event=occasion.event,
        )  # fmt: skip

    def _posted(self, world: World, occasion: Occasion) -> dict[str, str]:
        """Bank line → the entry that the run really posted for it."""
        if occasion.after is None:
            return {}
        _, bank = open_books(world.host, CommittedSource(occasion.after))
        return {line: pairs[0][0].rstrip("abcdefghijklmnopqrstuvwxyz") for line, pairs in bank.matches.items()}


def _unchanged(subject: Subject) -> bool:
    """Whether the two worlds are one: what would be compared is the same."""
    now, then = subject.now, subject.then
    if now.host is not then.host:
        return False
    paths = {*now.scripts.texts, *then.scripts.texts}
    return all(now.scripts.texts.get(p) == then.scripts.texts.get(p) for p in paths)


def _finding(subject: Subject, rule: str, message: str) -> Finding:
    return Finding(rule, message, Place(subject.file), "Mend the script.")


def _failed(subject: Subject, rehearsal: Rehearsal, *, unheard: bool) -> Finding:
    """``unheard``: there has been no event of the kind that starts the agent, so that there was no payload."""
    error = rehearsal.error
    assert error is not None
    what = f"{error.primitive}: {error.message}" if error.primitive else error.message
    return Finding(
        "rehearsal", f"over {rehearsal.label}: {what}".rstrip("."), Place(error.file or subject.file, error.line),
        error.remedy or (_EMIT if unheard else "Mend the script."),
    )  # fmt: skip
