"""Checking an agent: lint → traps → types → rehearsal → same behaviour watched or not. Nothing is proposed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from zoneinfo import ZoneInfo

from cleared.errors import Place, UsageError
from cleared.gate.behaviour import HistoryDiff
from cleared.gate.history import Occasion, latest_inputs, past_runs
from cleared.gate.rehearse import Rehearsal, differences, rehearse
from cleared.gate.stage import Stage, StageResult, Subject, result_of
from cleared.gate.synthetic import synthetic_files
from cleared.gate.traps import calls, traps
from cleared.registry import describe
from cleared.registry.primitive import Registry
from cleared.runs.attempt import MakeExecutor
from cleared.runs.host import Host
from cleared.runs.scripts import MAX_SCRIPT, Script
from cleared.runs.session import CommittedSource, open_books
from cleared.sandbox.finding import Finding
from cleared.sandbox.header import parse_header
from cleared.sandbox.lint import lint
from cleared.sandbox.typecheck import TypeChecker
from cleared.vcs import Repository, Snapshot, blob_id
from cleared.workspace.files import read_stable


class Gate:
    """The stages over one workspace; a context manager, since the type checker and the sandbox are kept warm."""

    def __init__(self, host: Host, executor: MakeExecutor) -> None:
        self.host = host
        self.executor = executor
        self.checkers: dict[frozenset[str], TypeChecker] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Gate:
        sandbox = self._stack.enter_context(self.executor())
        self.executor = lambda: contextlib.nullcontext(sandbox)
        self.repo: Repository = self._stack.enter_context(self.host.reading())
        self.snapshot = Snapshot(self.repo, self.repo.head())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Everything a script must pass, in order."""
        return (
            Stage("lint", "the header, and the language scripts are written in", True, self._lint),
            Stage("traps", "the sandbox's and the books' traps, account ids and statuses", True, self._traps),
            Stage("types", "the calls, against the primitives' declarations", True, self._types),
            Stage("rehearsal", "a made-up month and the latest real files, never committed", False, self._rehearsal),
            Stage("watched", "the same effects whether ctx_dry_run() is true or false", False, self._watched),
        )

    def check(self, name: str) -> list[StageResult]:
        """All stages over the working copy of an agent. Raises ``UsageError`` where there is none."""
        subject = self._subject(name)
        results: list[StageResult] = []
        blocked = ""
        for step in self.stages:
            if blocked and not step.static:
                results.append(StageResult(step.name, "skipped", reason=f"{blocked} found a blocker"))
                continue
            result = step.run(subject)
            results.append(result)
            if result.status == "failed" and not blocked:
                blocked = step.name
        return results

    def _subject(self, name: str) -> Subject:
        file = self.host.layout.agent_path(name)
        path = self.host.root / file
        if not path.is_symlink() and not path.exists():
            raise UsageError(f"there is no agent {name!r}", remedy="cleared agent list shows them.")
        source = read_stable(path, MAX_SCRIPT * 8, shown=file)[0].decode("utf-8", errors="surrogateescape")
        named, scripts = calls(source, file, self.host.registry)
        for script in scripts:
            named |= self._named_by(script, set())
        return Subject(self.host, self.repo, self.snapshot, name, file, source, grants=named)

    def _named_by(self, script: str, seen: set[str]) -> frozenset[str]:
        """The primitives a shared script names, and those of the scripts it runs."""
        try:
            file = self.host.layout.script_path(script)
        except UsageError:
            return frozenset()
        path = self.host.root / file
        if script in seen or not path.is_file():
            return frozenset()
        seen.add(script)
        named, inner = calls(path.read_text(encoding="utf-8", errors="replace"), file, self.host.registry)
        return frozenset(named.union(*(self._named_by(s, seen) for s in inner)))

    # -- static -------------------------------------------------------------------------------------------------

    def _lint(self, subject: Subject) -> StageResult:
        header, findings = parse_header(subject.source, subject.file, kind="agent")
        subject.header = header
        return result_of("lint", [*findings, *lint(subject.source, subject.file)])

    def _traps(self, subject: Subject) -> StageResult:
        books, _ = open_books(self.host, CommittedSource(self.snapshot))
        grants = subject.header.grants if subject.header else None
        return result_of(
            "traps", traps(subject.source, subject.file, self.host.registry, books.chart, grants),
            grants=sorted({self.host.registry[n].grant for n in subject.grants}),
        )  # fmt: skip

    def _types(self, subject: Subject) -> StageResult:
        grants = subject.header.grants if subject.header else None
        allowed = frozenset(
            n for n, p in self.host.registry.items() if grants is None or p.grant in grants or n in grants
        )
        checker = self.checkers.get(allowed)
        if checker is None:
            stubs = describe.stubs(Registry(self.host.registry[n] for n in self.host.registry if n in allowed))
            checker = self._stack.enter_context(TypeChecker(stubs))
            self.checkers[allowed] = checker
        return result_of("types", checker.check(subject.source, subject.file))

    # -- rehearsed ----------------------------------------------------------------------------------------------

    def _rehearsal(self, subject: Subject) -> StageResult:
        rehearsals = [r for r, _ in self._rehearse(subject, (False,))]
        findings = [self._failed(subject, r) for r in rehearsals if r.error is not None]
        return result_of("rehearsal", findings, rehearsals=[r.summary() for r in rehearsals])

    def _watched(self, subject: Subject) -> StageResult:
        findings = []
        pairs: dict[str, list[Rehearsal]] = {}
        for rehearsal, _ in self._rehearse(subject, (False, True)):
            pairs.setdefault(rehearsal.label, []).append(rehearsal)
        for label, (unwatched, watched) in pairs.items():
            different = differences(unwatched, watched)
            if different:
                findings.append(
                    Finding(
                        "watched", f"over {label} the script acts differently when ctx_dry_run() is true: "
                        + "; ".join(different), Place(subject.file), "Do the same either way; a dry run is discarded.",
                    )
                )  # fmt: skip
        return result_of("watched", findings)

    def _rehearse(self, subject: Subject, modes: tuple[bool, ...]) -> Iterator[tuple[Rehearsal, bool]]:
        script = self._script(subject)
        now = self.host.clock.now().replace(microsecond=0)
        today = now.astimezone(ZoneInfo(self.host.config.business.timezone)).date()
        occasions = [
            ("an empty import folder", self.snapshot, {}),
            ("a made-up month", self.snapshot, synthetic_files(self.host.config, today - timedelta(days=1))),
        ]
        real = latest_inputs(self.host, self.repo, self.snapshot, subject.name)
        if real is not None:
            occasions.append((real.label, real.snapshot, real.inputs))
        for label, snapshot, inputs in occasions:
            for dry_run in modes:
                yield (
                    rehearse(
                        self.host, self.repo, snapshot, script, self.executor, label=label, inputs=inputs, now=now,
                        dry_run=dry_run,
                    ),
                    dry_run,
                )  # fmt: skip

    def compare(self, name: str, runs: int) -> HistoryDiff:
        """The working copy against the committed version, over the agent's last ``runs`` runs.

        Raises ``UsageError`` where there is no such agent, or no committed version of it.
        """
        subject = self._subject(name)
        committed = self.snapshot.read(subject.file)
        if committed is None:
            raise UsageError(
                f"{subject.file} has no committed version to compare with", remedy="See cleared agent check."
            )
        new = self._script(subject)
        source = committed.decode("utf-8", "surrogateescape")
        header, _ = parse_header(source, subject.file, kind="agent")
        old = Script(name, subject.file, source, blob_id(committed, "sha1"), header)
        diff = HistoryDiff()
        occasions = list(past_runs(self.host, self.repo, name, runs))
        for occasion in reversed(occasions):
            if isinstance(occasion, str):
                diff.not_comparable.append(occasion)
                continue
            at = occasion.now or self.host.clock.now()
            both = [
                rehearse(self.host, self.repo, occasion.snapshot, script, self.executor, label=occasion.label,
                         inputs=occasion.inputs, now=at, dry_run=False)
                for script in (old, new)
            ]  # fmt: skip
            diff.add(occasion, self._posted(occasion), *both)
        return diff

    def _posted(self, occasion: Occasion) -> dict[str, str]:
        """Bank line → the entry that the run really posted for it."""
        if occasion.after is None:
            return {}
        _, bank = open_books(self.host, CommittedSource(occasion.after))
        return {line: pairs[0][0].rstrip("abcdefghijklmnopqrstuvwxyz") for line, pairs in bank.matches.items()}

    def _script(self, subject: Subject) -> Script:
        data = subject.source.encode("utf-8", "surrogateescape")
        header, _ = parse_header(subject.source, subject.file, kind="agent")
        return Script(subject.name, subject.file, subject.source, blob_id(data, "sha1"), header)

    def _failed(self, subject: Subject, rehearsal: Rehearsal) -> Finding:
        error = rehearsal.error
        assert error is not None
        place = Place(error.file or subject.file, error.line)
        return Finding("rehearsal", f"over {rehearsal.label}: {error.message}", place, error.remedy or "Correct it.")
