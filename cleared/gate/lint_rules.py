"""Every rule a script is checked by, in one place: where the findings' ids, reasons and remedies are looked up."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from cleared.gate import semantic_lint
from cleared.sandbox import construct_lint, effective_limits, header, type_check
from cleared.sandbox.finding import Rule, make_rules

CHECKS: Final = {
    "lint": "the header, and the language scripts are written in",
    "traps": "the sandbox's and the books' traps, account ids and statuses",
    "types": "the calls, against the primitives' declarations",
    "rehearsal": "the script run over an empty import folder, a made-up month and the latest real files",
    "invariants": "the checks of the books, over what the rehearsals would have committed",
    "watched": "the same effects whether ctx_dry_run() is true or false",
    "behaviour": "the new version against the approved one, over the made-up month and the agent's past runs",
    "regression": "the approved cases in tests/cases/, replayed",
}
"""What each stage looks at, in order. The first three read the text only."""

_TEST_REASON: Final = "A case is what a person has approved; a file that changed without approval proves nothing."

_DRY_RUN_RULES: Final = {
    **make_rules(
        "rehearsal",
        {
            "rehearsal": (
                "a script that fails when it is run",
                "What fails over made-up or past files would fail over tomorrow's; nothing of a rehearsal is kept.",
                "Correct the line that the finding names.",
            ),
        },
    ),
    **make_rules(
        "invariants",
        {
            "invariants": (
                "a rehearsal whose books would break a check",
                "Books that do not add up are never committed, not even once.",
                "Correct what the script posts.",
            ),
        },
    ),
    **make_rules(
        "watched",
        {
            "watched": (
                "a script that acts differently when `ctx_dry_run()` is true",
                "A script that knows when it is watched cannot be judged by watching it.",
                "Do the same either way; a dry run is discarded.",
            ),
        },
    ),
    **make_rules(
        "behaviour",
        {
            "behaviour": (
                "a change that confirms everything, doubles the queue, or fails where the approved version did not",
                "Such a change is small in the text and large in the books.",
                "Look at cleared agent diff; `gate.behaviour: block` makes it block.",
            ),
        },
    ),
    **make_rules(
        "regression",
        {
            "regression": (
                "a regression case that the new version no longer meets",
                "What was put right once stays right.",
                "Do as before, or propose a changed case together with the script.",
            ),
            "regression-format": ("a regression case that cannot be read", _TEST_REASON, "Restore it from the commit."),
            "regression-unknown": (
                "a list of cases that cannot be verified on this machine",
                _TEST_REASON,
                "Say whether you trust who approved it: cleared trust.",
            ),
            "regression-changed": (
                "a case that was changed or removed without approval",
                _TEST_REASON,
                "Restore it, or propose the change.",
            ),
        },
    ),
    **make_rules(
        "policy",
        {
            "policy-alone": (
                "a change of the gate's own rules in one proposal with other files",
                "Which rules hold is decided by itself, never beside a script that would need them switched off.",
                "Propose config.yaml by itself.",
            ),
            "policy-rule": (
                "a rule in `gate.rules` that is none, or that cannot be switched",
                "A misspelt rule would be switched nowhere, and nobody would notice.",
                "Name a rule of this page that can be switched.",
            ),
        },
    ),
}
_DRY_RUN_RULES["behaviour"] = replace(_DRY_RUN_RULES["behaviour"], blocks=False)

RULES: Final[dict[str, Rule]] = {
    **header.RULES,
    **effective_limits.RULES,
    **construct_lint.RULES,
    **semantic_lint.RULES,
    **type_check.RULES,
    **_DRY_RUN_RULES,
}


def rule_of(rule: str) -> Rule:
    """The rule of a finding. The type checker knows more rules than are listed: they share ``type:*``."""
    return RULES[rule] if rule in RULES or not rule.startswith("type:") else RULES["type:*"]
