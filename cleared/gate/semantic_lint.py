"""Lint over the syntax tree: what the language allows, and the sandbox or the books would trip over.

The rules are in ``code_rules``, ``book_rules`` and ``grant_rules``, each declared beside the function that looks for
it. Most are places where a script would work in a test and fail, or post wrongly, later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from cleared.books.ledger.chart import Chart
from cleared.gate import book_rules, code_rules, grant_rules
from cleared.gate.linted_script import LintedScript
from cleared.primitives.registry.primitive import Primitive
from cleared.sandbox.finding import Finding, Rule
from cleared.sandbox.script_source import normalise_text, parse_script

_RULE_SETS: Final = (code_rules.RULES, book_rules.RULES, grant_rules.RULES)
RULES: Final[dict[str, Rule]] = {id_: rule for rule_set in _RULE_SETS for id_, rule in rule_set.rules.items()}


def lint_semantics(
    source: str,
    file: str,
    primitives: Mapping[str, Primitive],
    chart: Chart,
    grants: tuple[str, ...] | None,
    job_types: Collection[str] | None = None,
) -> list[Finding]:
    """All findings of these rules, in the order of the text; one of each rule at a place. Raises for no text.

    ``job_types``: those that an agent may enqueue where its header names them; None for a shared script, which may
    what its caller may.
    """
    source = normalise_text(source)
    tree = parse_script(source, file)
    if isinstance(tree, Finding):
        return []  # the construct lint reports it
    script = LintedScript(source, file, tree, primitives, chart, grants, job_types)
    findings: dict[tuple[int, int, str], Finding] = {}
    for rule_set in _RULE_SETS:
        for check in rule_set.checks:
            for finding in check(script):
                findings.setdefault((finding.place.line or 0, finding.place.column or 0, finding.rule), finding)
    return [findings[key] for key in sorted(findings)]
