"""The static stages: lint, traps, types. They read the text only."""

from __future__ import annotations

import contextlib
from collections.abc import Collection

from cleared.gate.stage import StageResult, Subject, result_of
from cleared.gate.traps import traps
from cleared.jobs.kinds import kinds
from cleared.registry import describe
from cleared.registry.primitive import Registry
from cleared.runs.session import open_books
from cleared.runs.source import CommittedSource
from cleared.sandbox.allowance import beyond
from cleared.sandbox.header import parse_header
from cleared.sandbox.lint import lint
from cleared.sandbox.named import granted, kinds_in
from cleared.sandbox.typecheck import TypeChecker


class Static:
    """The type checkers are kept warm, one for each set of grants."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._checkers: dict[frozenset[str], TypeChecker] = {}

    def lint(self, subject: Subject) -> StageResult:
        header, findings = parse_header(subject.source, subject.file, kind=subject.kind)
        subject.header = header
        rules = subject.then.host.config.gate.rules
        # Where the text cannot be read, the header and the script say the same.
        findings += [
            *lint(subject.source, subject.file),
            *beyond(header, subject.then.host.config.sandbox, subject.file),
        ]
        return result_of("lint", dict.fromkeys(findings), rules, approved=subject.approved)

    def traps(self, subject: Subject) -> StageResult:
        host = subject.then.host
        books, _ = open_books(host, CommittedSource(subject.now.scripts.snapshot))
        grants = subject.header.grants if subject.header else None
        jobs: Collection[str] | None = None
        if subject.kind == "agent" and subject.header is not None:
            jobs = kinds(host.config) if kinds_in(grants or ()) else ()
        found = traps(subject.source, subject.file, host.registry, books.chart, grants, jobs)
        return result_of(
            "traps", found, host.config.gate.rules, approved=subject.approved, primitives=sorted(subject.grants),
            grants=sorted({host.registry[n].grant for n in subject.grants if n in host.registry}),
        )  # fmt: skip

    def types(self, subject: Subject) -> StageResult:
        host = subject.then.host
        grants = subject.header.grants if subject.header else None
        allowed = frozenset(n for n, p in host.registry.items() if grants is None or granted(n, p.grant, grants))
        checker = self._checkers.get(allowed)
        if checker is None:
            stubs = describe.stubs(Registry(host.registry[n] for n in host.registry if n in allowed))
            checker = self._stack.enter_context(TypeChecker(stubs))
            self._checkers[allowed] = checker
        inputs = subject.header.args if subject.header and subject.kind == "script" else ()
        found = checker.check(subject.source, subject.file, inputs)
        return result_of("types", found, host.config.gate.rules, approved=subject.approved)
