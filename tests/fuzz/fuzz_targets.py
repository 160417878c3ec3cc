"""What is fuzzed, and what must hold: no exception but our own refusals, no hang, findings one can read, no file
written outside of ``.cleared/``."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from types import FrameType

from fuzz_texts import headers, mutants, texts
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy
from msgspec import structs

from cleared.base.errors import ClearedError
from cleared.books.ledger.chart import parse_chart
from cleared.changes.host import Host
from cleared.domains.installed_domains import parse_header
from cleared.gate.examination import check_agents
from cleared.gate.static_checks import lint_semantics
from cleared.primitives import primitive_registry
from cleared.sandbox.construct_lint import lint_script
from cleared.sandbox.finding import Finding
from cleared.sandbox.script_source import normalise_text
from cleared.sandbox.used_primitives import find_used

FILE = "agents/fuzzed.py"
PATIENCE = 60.0
GATE_PATIENCE = 180.0  # up to a dozen rehearsals of 2 s each


class Hang(AssertionError):
    """An example took too long."""


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise ``Hang`` after so long; what not even a signal reaches ends the process, with a traceback."""

    def fire(_signal: int, _frame: FrameType | None) -> None:
        raise Hang(f"no answer within {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, fire)
    faulthandler.dump_traceback_later(seconds + 20, exit=True, file=sys.__stderr__)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, previous)


def well_formed(findings: Iterable[Finding], source: str | None, *files: str) -> None:
    lines = None if source is None else normalise_text(source).count("\n") + 1
    for finding in findings:
        assert finding.rule and finding.message and finding.remedy, finding
        assert finding.rule.isascii() and " " not in finding.rule, finding
        place = finding.place
        assert place.file in files, finding
        assert place.line is None or place.line >= 1, finding
        assert lines is None or (place.line or 1) <= lines, finding
        assert place.column is None or place.column >= 1, finding
        str(finding).encode("utf-8", "surrogateescape")


def tree(*roots: Path) -> dict[str, tuple[int, int, int]]:
    """Every file below, but for what the runtime may write in a workspace."""
    found = {}
    for root in roots:
        for folder, folders, names in os.walk(root):
            if ".cleared" in folders:
                folders.remove(".cleared")
            for name in (*names, *folders):
                stat = Path(folder, name).lstat()
                is_dir = name in folders
                found[f"{folder}/{name}"] = (0, 0, 0) if is_dir else (stat.st_size, stat.st_mtime_ns, stat.st_ino)
    return found


@dataclass
class Target:
    name: str
    strategy: SearchStrategy[str]
    check: Callable[[str], None]
    patience: float
    batch: int
    """Examples between two looks at the clock, and at the files."""
    examples: int = 0
    seconds: float = 0.0


@dataclass
class Fuzzer:
    """All targets over one workspace. ``watched`` are the directories that must not change."""

    host: Host
    watched: tuple[Path, ...]
    last: Path
    """Keeps the input at work, for whoever finds the process gone."""
    say: Callable[[str], None] = print
    targets: list[Target] = field(init=False)

    def __post_init__(self) -> None:
        sandbox = structs.replace(self.host.config.sandbox, timeout=2.0, memory_mb=64)
        self.host = structs.replace(
            self.host, config=structs.replace(self.host.config, sandbox=sandbox), show_message=lambda _: None
        )
        self.primitives = primitive_registry()
        chart = self.host.root / "accounts/chart-of-accounts.csv"
        self.chart = parse_chart(chart.read_bytes(), chart.name)
        self.targets = [
            Target("lint and header", texts, self.static, PATIENCE, 100),
            Target("headers", headers(), self.header, PATIENCE, 200),
            Target("traps and names", texts, self.trapped, PATIENCE, 100),
            Target("gate", mutants(3), self.gate, GATE_PATIENCE, 3),
        ]

    def static(self, source: str) -> None:
        well_formed(lint_script(source, FILE), source, FILE)
        self.header(source)

    def header(self, source: str) -> None:
        for kind in ("agent", "script"):
            header, findings = parse_header(source, FILE, kind=kind)  # type: ignore[arg-type]
            well_formed(findings, source, FILE)
            assert (header is None) == bool(findings) or kind == "script", "a header, or what is wrong with it"

    def trapped(self, source: str) -> None:
        for grants in (None, ("journal.read", "ctx_log")):
            well_formed(lint_semantics(source, FILE, self.primitives, {"books": self.chart}, grants), source, FILE)
        assert all(isinstance(name, str) for name in chain(*find_used(source, FILE)))

    def gate(self, source: str) -> None:
        path = self.host.root / FILE
        path.write_bytes(source.encode("utf-8", "surrogateescape" if _escaped(source) else "surrogatepass"))
        before = tree(*self.watched)
        try:
            stages = check_agents(self.host, ["fuzzed"])["fuzzed"]
            assert stages and all(s.status in ("passed", "failed", "skipped") for s in stages)
            for stage in stages:
                files = {f.place.file for f in stage.findings if f.place.file is not None}
                well_formed(stage.findings, None, *[f or "" for f in files])
                assert all(not f.startswith("/") for f in files), files
        except ClearedError as e:
            assert e.message and str(e), "a refusal says why"
        finally:
            after = tree(*self.watched)
            path.unlink(missing_ok=True)
        changed = {p for p in {*before, *after} if before.get(p) != after.get(p)}
        assert not changed, f"written outside of .cleared/: {sorted(changed)[:5]}"

    def run(self, seconds: float, first: int | None = None) -> int:
        """Fuzz all targets, each at least once, for about so long together; how many examples. Raises what it finds."""
        began = time.monotonic()
        number = secrets.randbelow(1 << 32) if first is None else first
        while time.monotonic() - began < seconds or not all(target.examples for target in self.targets):
            # The target that has had the least time, so that slow ones get their share.
            target = min(self.targets, key=lambda t: t.seconds)
            self._batch(target, number)
            number += 1
        for target in self.targets:
            self.say(f"{target.name}: {target.examples} examples in {target.seconds:.0f} s")
        return sum(t.examples for t in self.targets)

    def _batch(self, target: Target, number: int) -> None:
        failed: list[str] = []

        @seed(number)
        @settings(
            max_examples=target.batch,
            deadline=None,
            database=None,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(target.strategy)
        def examine(source: str) -> None:
            target.examples += 1
            self.last.write_text(f"{target.name}, seed {number}\n{source!a}\n")
            try:
                with bounded(target.patience):
                    target.check(source)
            except Exception:
                failed[:] = [source]
                raise

        began = time.monotonic()
        before = tree(*self.watched)
        try:
            examine()
        except Exception as e:
            self.say(f"{target.name}, seed {number}: {type(e).__name__}: {e}\ninput: {failed[-1] if failed else ''!a}")
            raise
        finally:
            target.seconds += time.monotonic() - began
        assert tree(*self.watched) == before, f"{target.name}, seed {number}: files were changed"


def _escaped(source: str) -> bool:
    """Whether all lone surrogates stand for bytes that are no UTF-8."""
    return not any("\ud800" <= c <= "\udc7f" or "\udd00" <= c <= "\udfff" for c in source)
