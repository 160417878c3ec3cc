"""Every script of ``scripts.py`` through the static stages: what is marked is found, and nothing else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cures
import pytest
from harness import Workspace, no_traceback

from cleared.base.errors import WorkspaceError
from cleared.books.ledger.chart import parse_chart
from cleared.domains.installed_domains import parse_header
from cleared.gate.lint_rules import RULES, rule_of
from cleared.gate.static_checks import lint_semantics
from cleared.primitives import primitive_registry
from cleared.primitives.registry import projections
from cleared.primitives.registry.primitive import Registry
from cleared.sandbox.construct_lint import lint_script
from cleared.sandbox.effective_limits import check_caps
from cleared.sandbox.finding import Finding
from cleared.sandbox.type_check import TypeChecker
from cleared.workspace.settings.model import Sandbox
from scripts import BODIES, HEADER, HOSTILE, WHOLE, Expected, unmarked

FILE = "agents/probe.py"
CHART = "accounts/chart-of-accounts.csv"
Check = Callable[[str], list[Finding]]


def closed(chart: str, *accounts: str) -> str:
    """The chart with these accounts closed, and 5000 as a heading over 5010."""
    head, *rows = chart.splitlines()
    out = [f"{head},code,currency,status,closed_on", "5000,Operating expenses,expense,,,,,,,"]
    for row in rows:
        cells = row.replace(",expense,,", ",expense,5000,", 1) if row.startswith("5010,") else row
        out.append(cells + (",,,closed,2025-01-01" if row.split(",")[0] in accounts else ",,,,"))
    return "\n".join(out) + "\n"


@pytest.fixture(scope="module")
def check(starting_point: Path) -> Iterator[Check]:
    """The three static stages as the gate puts them together; the type checkers stay warm."""
    chart = parse_chart(closed((starting_point / CHART).read_text(), "5900").encode(), CHART)
    primitives = primitive_registry()
    checkers: dict[frozenset[str], TypeChecker] = {}
    with contextlib.ExitStack() as stack:

        def run(source: str) -> list[Finding]:
            header, found = parse_header(source, FILE)
            found = [*found, *lint_script(source, FILE), *check_caps(header, Sandbox(), FILE)]
            grants = header.grants if header else None
            found += lint_semantics(source, FILE, primitives, {"books": chart}, grants)
            allowed = frozenset(n for n, p in primitives.items() if grants is None or {n, p.grant} & {*grants})
            if allowed not in checkers:
                stubs = projections.render_stubs(Registry(primitives[n] for n in primitives if n in allowed))
                checkers[allowed] = stack.enter_context(TypeChecker(stubs))
            found += checkers[allowed].check_script(source, FILE)
            return list(dict.fromkeys(found))  # the header's check and the lint say the same of an unreadable text

        yield run


def compare(found: list[Finding], expected: Expected, source: str) -> None:
    for finding in found:
        assert finding.message and finding.remedy and rule_of(finding.rule).why
        assert finding.place.file == FILE and finding.place.line and finding.place.column
        assert 1 <= finding.place.line <= source.count("\n") + source.count("\r") + 1
    left = list(expected)
    for finding in found:
        exact = (finding.rule, finding.place.line, finding.place.column)
        match = next((e for e in left if e in (exact, (*exact[:2], None))), None)
        assert match, f"found but not expected: {finding}"
        left.remove(match)
    assert not left, f"expected but not found: {left}"


@pytest.mark.parametrize("name", BODIES)
def test_a3_a4_bodies(check: Check, name: str) -> None:
    """A3, A4: each construct, each type error, each trap, with rule, line and column; good scripts pass."""
    body, expected = unmarked(BODIES[name])
    lines = HEADER.count("\n")
    compare(check(HEADER + body), [(rule, line + lines, column) for rule, line, column in expected], HEADER + body)


@pytest.mark.parametrize("name", WHOLE)
def test_a1_headers(check: Check, name: str) -> None:
    """A1: the field and the line of what is wrong with a header; good ones pass."""
    source, expected = unmarked(WHOLE[name])
    found = check(source)
    compare(found, expected, source)
    assert all(f.place.field for f in found if f.rule not in ("header-missing", "header-line") and "header" in f.rule)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_end_in_findings(check: Check, name: str) -> None:
    data, expected = HOSTILE[name]
    source = data.decode("utf-8", "surrogateescape")
    began = time.process_time()
    compare(check(source), [(rule, line, None) for rule, line in expected], source)
    assert time.process_time() - began < 20


def test_each_remedy_is_followed(check: Check) -> None:
    """CARD 3: what a rule says to do instead passes, for every rule of a script's text."""
    pairs = {rule: (HEADER + broken, HEADER + cured) for rule, (broken, cured) in cures.BODIES.items()} | cures.WHOLE
    for rule, (broken, cured) in pairs.items():
        assert rule in {finding.rule for finding in check(broken)}, (rule, check(broken))
        assert check(cured) == [], (rule, check(cured))
    static = {rule.id for rule in RULES.values() if rule.stage in ("lint", "traps", "types")}
    # A size and a length of time are their own remedy; arguments are those of shared scripts; the rest has no text.
    assert static - pairs.keys() == {"size", "header-args", "type:unfinished", "type:*"}


def test_there_are_enough_of_them() -> None:
    assert len(BODIES) + len(WHOLE) + len(HOSTILE) >= 150
    assert len([b for b in BODIES.values() if "#!" not in b]) >= 25


# -- through the command line -----------------------------------------------------------------------------------------

SHOWN = [
    BODIES["everything at once"],
    BODIES["closed account in one of the branches"],
    BODIES["hidden from the types by a result that is never None"],
    BODIES["a line with a misspelt key"],
]


def static(ws: Workspace, name: str = "probe") -> list[dict[str, object]]:
    done = ws("agent", "check", name, "--json")
    assert done.code == 1, done
    stages = {s["stage"]: s for s in done.json[name]["stages"]}
    return [f for stage in ("lint", "traps", "types") for f in stages[stage]["findings"]]


@pytest.mark.parametrize("text", SHOWN, ids=range(len(SHOWN)))
def test_a3_a4_agent_check_prints_all_of_a_finding(ws: Workspace, text: str) -> None:
    """A3, A4: exit code 1, and each finding with file, line, column, rule, cause and remedy."""
    ws.put(CHART, closed(ws.read(CHART), "5900"))
    ws.commit(CHART)
    body, expected = unmarked(text)
    ws.put(FILE, HEADER + body)
    found = static(ws)
    lines = HEADER.count("\n")
    assert sorted((str(f["rule"]), f["line"]) for f in found) == sorted((r, n + lines) for r, n, _ in expected)
    for finding in found:
        assert finding["file"] == FILE and finding["column"] and finding["message"] and finding["remedy"]
    shown = ws("agent", "check", "probe")
    assert shown.code == 1
    for finding in found:
        assert f"{FILE}:{finding['line']}:{finding['column']}: [{finding['rule']}]" in shown.out


def test_a1_agent_check_names_the_field(ws: Workspace) -> None:
    """A1: the field and the line, and the nearest key for a misspelt one."""
    ws.put(FILE, '"""\nname: A\ntriger: schedule\nmax_calls: many\n"""\n')
    key, number = static(ws)
    assert (key["rule"], key["field"], key["line"]) == ("header-key", "triger", 3)
    assert "Did you mean `trigger`?" in str(key["remedy"])
    assert (number["rule"], number["field"], number["line"]) == ("header-number", "max_calls", 4)


@pytest.mark.parametrize("name", ["NUL", "not UTF-8", "deep brackets", "300 kB", "a line of 1 MB", "empty"])
def test_hostile_texts_through_agent_check(ws: Workspace, name: str) -> None:
    data, expected = HOSTILE[name]
    ws.put(FILE, data)
    found = static(ws)
    assert {(f["rule"], f["line"]) for f in found} == set(expected)
    no_traceback(ws("agent", "check", "probe"))


def test_n5_closing_an_account_names_every_line_of_every_agent(ws: Workspace) -> None:
    """N5: a literal in a call, one that comes there through a name, and those of the starter."""
    body, _ = unmarked(BODIES["closed account in a table of pairs"])
    ws.put(FILE, HEADER + body + 'journal_add_double("2025-01-03", "x", 5020, 1010, 1)\n')
    assert not [f for f in _all(ws) if "5020" in str(f["message"])]
    ws.put(CHART, closed(ws.read(CHART), "5020"))
    ws.commit(CHART)
    named = {
        (f["file"], f["line"]) for f in _all(ws) if "5020 Software and subscriptions is closed" in str(f["message"])
    }
    expected = {
        (path, number)
        for path in (FILE, "agents/ingest.py")
        for number, line in enumerate(ws.read(path).splitlines(), 1)
        if "5020" in line
    }
    assert len(expected) == 4 and named == expected


def _all(ws: Workspace) -> list[dict[str, object]]:
    """What the static stages find in all agents."""
    reports = ws("agent", "check", "--all", "--json").json
    stages = [s for report in reports.values() for s in report["stages"] if s["stage"] in ("lint", "traps", "types")]
    return [f for s in stages for f in s["findings"]]


def test_the_checker_works_with_whatever_is_granted() -> None:
    """Its self-test must not need a primitive that the header does not grant."""
    primitives = primitive_registry()
    for names in ((), ("accounts_get",), ("git_commit", "ctx_dry_run")):
        with TypeChecker(projections.render_stubs(Registry(primitives[n] for n in names))) as checker:
            assert [f.rule for f in checker.check_script("ctx_log('x')\n", FILE)] == ["type:unresolved-reference"]


def test_broken_stubs_are_not_ignored() -> None:
    broken = projections.render_stubs(primitive_registry()).replace("def ctx_log(", "def 9ctx_log(")
    with pytest.raises(WorkspaceError, match="stubs"), TypeChecker(broken):
        pass


def test_the_stubs_name_nothing_that_is_not_there() -> None:
    """What a stub fails to import or to resolve would be any type at all, without a word."""
    stubs = projections.render_stubs(primitive_registry())
    with TypeChecker(stubs) as checker:
        found = {f.rule for f in checker.check_script(stubs, FILE)}
    assert not {r for r in found if "unresolved" in r or "syntax" in r}
