"""Lint over the syntax tree: what the language allows, and the sandbox or the books would trip over.

The rules are in ``code_rules``, ``grant_rules`` and a module of each domain, each declared beside the function that
looks for it. Most are places where a script would work in a test and fail, or post wrongly, later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Final

from cleared.domains.installed_domains import DomainTable, cache_by_domains, load_domains
from cleared.gate import code_rules, grant_rules
from cleared.gate.linted_script import LintedScript, RuleSet
from cleared.primitives.registry.primitive import Primitive
from cleared.sandbox.finding import Finding, Rule
from cleared.sandbox.script_source import normalise_text, parse_script


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
