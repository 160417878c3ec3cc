"""The checks that only read a script's text: the language, the lint rules, the types.

The lint looks at the syntax tree. Its rules are in ``code_rules``, ``grant_rules`` and a module of each domain, each
declared beside the function that looks for it. Most are places where a script would work in a test and fail, or post
wrongly, later.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Final, Literal

from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import DomainTable, cache_by_domains, load_domains, parse_header
from cleared.gate import code_rules, grant_rules
from cleared.gate.check_result import Check, CheckResult, Subject, make_result
from cleared.gate.dry_run import Setup
from cleared.gate.linted_script import LintedScript, RuleSet
from cleared.jobs.job_types import load_job_types
from cleared.primitives.registry import projections
from cleared.primitives.registry.primitive import Primitive, Registry
from cleared.runs.approved_scripts import Script, Scripts, findings_error
from cleared.sandbox import construct_lint, effective_limits, header, type_check
from cleared.sandbox.construct_lint import lint_script
from cleared.sandbox.effective_limits import check_caps
from cleared.sandbox.finding import Finding, Rule
from cleared.sandbox.script_source import normalise_text, parse_script
from cleared.sandbox.type_check import TypeChecker
from cleared.sandbox.used_primitives import find_grants, granted_job_types, is_granted


@cache_by_domains
def _load_rule_sets() -> tuple[RuleSet, ...]:
    modules = [import_module(name) for domain in load_domains() for name in domain.lint_modules]
    return (code_rules.RULES, *(module.RULES for module in modules), grant_rules.RULES)


RULES: Final[Mapping[str, Rule]] = DomainTable(
    lambda: {id_: rule for rule_set in _load_rule_sets() for id_, rule in rule_set.rules.items()}
)


def lint_semantics(
    source: str,
    file: str,
    primitives: Mapping[str, Primitive],
    facts: Mapping[str, object],
    grants: tuple[str, ...] | None,
    job_types: Collection[str] | None = None,
) -> list[Finding]:
    """All findings of these rules, in the order of the text; one of each rule at a place. Raises for no text.

    ``facts``: what each domain's ``read_lint_facts`` gives, by its name. ``job_types``: those that an agent may enqueue
    where its header names them; None for a shared script, which may what its caller may.
    """
    source = normalise_text(source)
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return []  # the construct lint reports it
    script = LintedScript(source, file, tree, primitives, facts, grants, job_types)
    findings: dict[tuple[int, int, str], Finding] = {}
    for rule_set in _load_rule_sets():
        for check in rule_set.checks:
            for finding in check(script):
                findings.setdefault((finding.place.line or 0, finding.place.column or 0, finding.rule), finding)
    return [findings[key] for key in sorted(findings)]


class StaticChecks:
    """The type checkers are kept warm, one for each set of grants."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._checkers: dict[frozenset[str], TypeChecker] = {}

    def check_constructs(self, subject: Subject) -> CheckResult:
        subject.header, findings = parse_header(subject.source, subject.file, kind=subject.kind)
        rules = subject.proposed_setup.host.config.gate.rules
        findings += [
            *lint_script(subject.source, subject.file),
            *check_caps(subject.header, subject.proposed_setup.host.config.sandbox, subject.file),
        ]
        # Where the text cannot be read, both lints report the same finding.
        return make_result("lint", dict.fromkeys(findings), rules, approved_under=_approved_under(subject))

    def check_semantics(self, subject: Subject) -> CheckResult:
        host = subject.proposed_setup.host
        source = CommittedSource(subject.approved_setup.scripts.snapshot)
        facts = {domain.name: domain.read_lint_facts(host.layout, source) for domain in load_domains()}
        grants = subject.header.grants if subject.header else None
        jobs: Collection[str] | None = None
        if subject.kind == "agent" and subject.header is not None:
            jobs = load_job_types(host.config) if granted_job_types(grants or ()) else ()
        findings = lint_semantics(subject.source, subject.file, host.registry, facts, grants, jobs)
        return make_result(
            "traps",
            findings,
            host.config.gate.rules,
            approved_under=_approved_under(subject),
            primitives=sorted(subject.grants),
            grants=sorted({host.registry[n].grant for n in subject.grants if n in host.registry}),
        )

    def check_types(self, subject: Subject) -> CheckResult:
        host = subject.proposed_setup.host
        grants = subject.header.grants if subject.header else None
        allowed = frozenset(n for n, p in host.registry.items() if grants is None or is_granted(n, p.grant, grants))
        checker = self._checkers.get(allowed)
        if checker is None:
            stubs = projections.render_stubs(Registry(host.registry[n] for n in host.registry if n in allowed))
            checker = self._stack.enter_context(TypeChecker(stubs))
            self._checkers[allowed] = checker
        inputs = subject.header.args if subject.header and subject.kind == "script" else ()
        findings = checker.check_script(subject.source, subject.file, inputs)
        return make_result("types", findings, host.config.gate.rules, approved_under=_approved_under(subject))


CHECKS: Final[tuple[Check[StaticChecks], ...]] = (
    Check(
        "lint",
        "language",
        "the header, and the language scripts are written in",
        StaticChecks.check_constructs,
        {**header.RULES, **effective_limits.RULES, **construct_lint.RULES},
    ),
    Check(
        "traps",
        "lint rules",
        "what the sandbox or the books would trip over: accounts, statuses, grants",
        StaticChecks.check_semantics,
        RULES,
    ),
    Check(
        "types", "types", "the calls, against the primitives' declarations", StaticChecks.check_types, type_check.RULES
    ),
)
_RULES: Final[Mapping[str, Rule]] = DomainTable(
    lambda: {id_: rule for check in CHECKS for id_, rule in check.rules.items()}
)


def _approved_under(subject: Subject) -> Mapping[str, Rule] | None:
    """The rules, where the script is an approved version: those that came later than it only warn."""
    return _RULES if subject.approved else None


def check_unapproved(host: Host, name: str, texts: Mapping[str, bytes | None] | None = None) -> Script:
    """The agent, once its lint rules and types and those of its shared scripts have been checked, unless approved: as
    in ``texts``, or their working copies (None).

    Raises ``PolicyError`` with every finding, and as ``Scripts.load_agent`` does.
    """
    with host.open_last_commit() as snapshot, contextlib.ExitStack() as stack:
        scripts = Scripts(host, snapshot, working_copy=texts is None, texts=texts)
        world, static = Setup(host, scripts), StaticChecks(stack)
        agent = scripts.load_agent(name)
        names = find_grants(agent.source, agent.file, host.registry, scripts.read_shared_source)[1]
        findings: list[Finding] = []
        for script in (
            agent,
            *(scripts.load_shared(each) for each in sorted(names) if scripts.read_shared_source(each)),
        ):
            if not scripts.approvals.verify_version(script.file, script.source.encode()).may_run:
                kind: Literal["agent", "script"] = "agent" if script is agent else "script"
                subject = Subject(kind, script.name, script.file, script.source, world, world, script.grants)
                subject.header = script.header
                findings += [*static.check_semantics(subject).findings, *static.check_types(subject).findings]
        if findings:
            raise findings_error(agent.file, findings)
        return agent
