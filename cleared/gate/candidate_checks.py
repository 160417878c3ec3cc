"""What is checked of a candidate as a whole, beside the checks of each script."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

from cleared.base.errors import ClearedError, Place, PolicyError
from cleared.base.unseen_characters import is_unseen
from cleared.changes.host import Host
from cleared.gate.candidate import Candidate
from cleared.gate.named_folders import refuse_used_folders
from cleared.gate.regression_tests import parse_test
from cleared.gate.setting_faults import find_setting_faults
from cleared.git import Snapshot
from cleared.sandbox.finding import Finding, is_switchable, make_rules
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import compare_settings, protected_settings_of

RULES: Final = make_rules(
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
        "policy-folder": (
            "a folder in `loop.runtime_dir`, `loop.log_dir` or `paths.books` that is used for something else",
            "What lies there is believed, and what is written there must not mix with what the workspace keeps.",
            "Name a folder of its own; the message says which setting it was.",
        ),
        "policy-records": (
            "a setting that cannot hold beside the records, such as a bank account whose account is an expense",
            "What is kept would be taken for something else from then on.",
            "The message says which setting it is, and what it may be.",
        ),
        "text-unreadable": (
            "a file of `rules/` or `templates/` that is not plain text",
            "People and models read these files; what cannot be seen in them could tell a model what nobody reviewed.",
            "Save it as UTF-8, without control characters, odd spaces and what else cannot be seen.",
        ),
    },
)


def find_unreadable_tests(candidate: Candidate) -> list[Finding]:
    """Proposed tests that cannot be read."""
    findings = []
    for change in candidate.changes_of_kind("case"):
        try:
            if change.new is not None:
                parse_test(change.new, change.path)
        except ValueError as error:
            remedy = "Make tests with cleared test add."
            findings.append(Finding("regression-format", str(error), Place(change.path), remedy))
    return findings


def find_unreadable_texts(candidate: Candidate) -> list[Finding]:
    """Proposed files of ``rules/`` and ``templates/`` that are no plain text."""
    findings = []
    for change in candidate.changes_of_kind("text"):
        try:
            text = (change.new or b"").decode("utf-8")
        except UnicodeDecodeError:
            message = "it is not UTF-8"
        else:
            unseen = next((c for c in text if c not in "\n\t" and is_unseen(c)), None)
            if unseen is None:
                continue
            message = f"it holds the character U+{ord(unseen):04X}, which cannot be seen"
        remedy = "Save it as UTF-8, without control characters, odd spaces and what else cannot be seen."
        findings.append(Finding("text-unreadable", message, Place(change.path), remedy))
    return findings


def find_unknown_rules(candidate: Candidate, known_rules: Collection[str]) -> list[Finding]:
    """Rules that ``gate.rules`` names and that do not exist or cannot be switched. ``known_rules``: all rules."""
    if candidate.config is None:
        return []
    findings = []
    for rule in candidate.config.gate.rules:
        exists = rule in known_rules or rule.startswith("type:")
        if not exists or not is_switchable(rule):
            reason = "cannot be switched: the gate would be none without it" if exists else "is no rule"
            near = get_close_matches(rule, [r for r in known_rules if is_switchable(r)], 1)
            remedy = f"Did you mean {near[0]}?" if near and not exists else "docs/reference/rules.md lists them."
            place = Place(candidate.changes_of_kind("config")[0].path, field=f"gate.rules.{rule}")
            findings.append(Finding("policy-rule", f"{rule!r} {reason}", place, remedy))
    return findings


def find_refused_settings(candidate: Candidate, host: Host, commit: Snapshot) -> list[Finding]:
    """Changed settings that name a folder which is used for something else, or cannot hold beside the records."""
    if candidate.config is None:
        return []
    before, after = protected_settings_of(host.config), protected_settings_of(candidate.config)
    changed = {key for key, _, _ in compare_settings(before, after)}
    faults = find_setting_faults(host.layout, candidate.config, commit)
    refused: list[tuple[str, ClearedError]] = [("policy-records", faults[key]) for key in sorted(changed & {*faults})]
    try:
        refuse_used_folders(host, candidate.config, changed, commit)
    except PolicyError as error:
        refused.append(("policy-folder", error))
    config_file = Place(host.layout.config_file)
    return [
        Finding(rule, error.message, error.place or config_file, (error.remedy or "").rstrip("."))
        for rule, error in refused
    ]


def find_mixed_rule_change(candidate: Candidate, config: Config) -> list[Finding]:
    """A change of the gate's rules in one candidate with other files. ``config``: the one in force."""
    if candidate.config is None or len(candidate.changes) == 1 or candidate.config.gate == config.gate:
        return []
    return [
        Finding(
            "policy-alone",
            "a change of the gate's own rules stands in one proposal with other files",
            Place(candidate.changes_of_kind("config")[0].path),
            "Propose config.yaml by itself.",
        )
    ]
