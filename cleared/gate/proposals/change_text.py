"""What a proposal changes, in plain English: settings, texts, when agents run, what they may do, what they did in dry
runs. No code."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final, Literal

from cleared.base.short_text import join_words, list_first, quote_text, shorten_text
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.domains.installed_domains import count_records, describe_own_values, parse_header
from cleared.gate.candidate import Change
from cleared.gate.changed_code import MOST_PROSE, PROSE_BELOW, list_changed_text, quote_lines
from cleared.gate.changed_tests import describe_test_change
from cleared.gate.check_result import Subject
from cleared.gate.dry_run import DryRun
from cleared.gate.event_listeners import describe_woken
from cleared.gate.examination import Report
from cleared.gate.framed_text import write_plain
from cleared.gate.impact import describe_not_comparable, group_effects, name_group
from cleared.gate.lint_rules import TITLES
from cleared.gate.proposals.own_words import is_long
from cleared.primitives.registry.grants import load_grants
from cleared.primitives.registry.primitive import Primitive
from cleared.sandbox import trigger_kinds
from cleared.sandbox.header import Header
from cleared.sandbox.used_primitives import JOB_TYPE_GRANT, granted_job_types, granted_model_budgets
from cleared.workspace.settings.model import Sandbox
from cleared.workspace.settings.protected_settings import compare_all_settings
from cleared.workspace.settings.setting_keys import rank_setting, write_value

_SAMPLE_CHARS: Final = 300
_NAME_CHARS: Final = 100
_MOST_GROUPS: Final = 6
"""Groups of differences that are told in a sentence; how many more there are is said, and the effects have all."""


def write_title(report: Report) -> str:
    """One line for lists."""
    parts = [_change_title(change) for change in report.candidate.changes]
    return list_first([f"{parts[0][:1].upper()}{parts[0][1:]}", *parts[1:]], 1)


def _change_title(change: Change) -> str:
    verb = "new" if change.old is None else "remove" if change.new is None else "change"
    noun = {"agent": "agent", "script": "shared script", "case": "test", "config": "settings", "text": "text"}[
        change.kind
    ]
    if change.kind == "config":
        return "change the settings"
    name = change.path if change.kind == "text" else change.name.removesuffix(".json")
    changed = change.kind == "agent" and verb == "change"
    return f"{verb} {name}" if changed else f"{verb} {noun} {name}"


def list_grant_changes(subject: Subject, old: Iterable[str], registry: Mapping[str, Primitive]) -> list[str]:
    """What a changed agent may from now on, and what it may no longer."""
    new, known = set(subject.grants), set(old)
    return [
        f"{subject.name} {verb} {describe_grants(names, registry)} ({', '.join(sorted(names))})."
        for names, verb in ((new - known, "may now also"), (known - new, "may no longer"))
        if names
    ]


def list_rights(subject: Subject, old: Iterable[str] | None, registry: Mapping[str, Primitive]) -> str:
    """All that an agent may. ``old``: what it might before; None where it is new."""
    names = sorted(subject.grants)
    may = describe_grants(names, registry) if names else "do nothing but calculate"
    if old is not None and set(old) == set(names):
        return f"{subject.name} may {may}, as before."
    return f"{subject.name} may {may}."


def describe_grants(names: Iterable[str], registry: Mapping[str, Primitive]) -> str:
    """What these primitives and job types let a script do, as the end of a sentence that begins "It may"."""
    grants = dict.fromkeys(registry[n].grant for n in sorted(names) if n in registry)
    jobs = [kind.removeprefix(JOB_TYPE_GRANT) for kind in sorted(granted_job_types(names))]
    if jobs:
        grants.pop("loop.enqueue", None)
    budgets = {name.replace("_", ".", 1): most for name, most in granted_model_budgets(names).items()}
    texts = [_grant_text(g, budgets.get(g)) for g in [*grants, *(g for g in budgets if g not in grants)]]
    return (
        join_words(texts + ([f"have the loop run {join_words(jobs)}"] if jobs else []))
        or "call primitives that are gone"
    )


def _grant_text(grant: str, dollars: Decimal | None) -> str:
    known = load_grants().get(grant)
    allows = known.allows if known is not None else grant
    return allows if dollars is None else f"{allows}, for at most ${dollars} a run,"


def list_changes(change: Change, report: Report, host: Host, at: datetime) -> list[str]:
    """What one file changes. ``at``: the time from which examples of when it runs are given."""
    if change.kind == "config":
        return _setting_lines(report, host)
    if change.kind == "case":
        return [describe_test_change(change)]
    if change.kind == "text":
        return _describe_text(change)
    if change.new is None:
        return [f"{change.name} is removed and will not run any more."]
    subject = report.subjects.get(change.path)
    if change.kind == "script":
        used = [s.name for s in report.subjects.values() if s.kind == "agent"]
        lines = [
            f"The shared script {change.name} {'is new' if change.old is None else 'changes'}; "
            f"{'used by ' + join_words(used) if used else 'no agent uses it'}."
        ]
        old, new = (_header_of(data, change.path, "script") for data in (change.old, change.new))
        if (old.args if old else ()) != (new.args if new else ()):
            arguments = count_noun(len(new.args), "argument") if new and new.args else ""
            lines.append(
                f"It takes {f'{arguments}: {join_words([*new.args])}' if new and arguments else 'no argument'}."
            )
        return lines
    header = subject.header if subject else None
    if change.old is None:
        return [f"{change.name} is new."]
    return header_lines(change, header, host, at)


def describe_occasion(change: Change, header: Header | None, host: Host, at: datetime) -> str:
    """When an agent runs from then on, and within which limits."""
    before = _header_of(change.old, change.path, "agent")
    same = before is not None and header is not None and _terms(before, host, at) == _terms(header, host, at)
    return f"{change.name} runs {_trigger_text(header, host, at)}{_header_terms(header, host)}{', as before' * same}."


def _terms(header: Header, host: Host, at: datetime) -> tuple[str, str]:
    return _trigger_text(header, host, at), _header_terms(header, host)


def _describe_text(change: Change) -> list[str]:
    """What becomes of a file that people and models read, and its lines that change; all of it stands below
    (``own_words``)."""
    if change.new is None or change.old is None:
        return [f"The text {change.path} {'is removed' if change.new is None else 'is new'}."]
    lines = list_changed_text(change)
    added = sum(line.is_new for line in lines)
    state = f"changes: {count_noun(added, 'line')} added, {len(lines) - added} removed"
    return [f"The text {change.path} {state}.", *quote_lines(lines, MOST_PROSE, PROSE_BELOW)]


def header_lines(change: Change, header: Header | None, host: Host, at: datetime) -> list[str]:
    """What a changed agent's header changes; what it grants stands elsewhere, with all that the script may."""
    old = _header_of(change.old, change.path, "agent")
    lines = []
    then, now = (_trigger_text(each, host, at) for each in (old, header))
    if then != now:
        lines.append(f"{change.name} ran {then}; it would run {now}.")
    if header is not None and _sample_text(old) != _sample_text(header):
        lines.append(f"{change.name} is rehearsed over the sample call {_sample_text(header) or 'without a payload'}.")
    if old is None or header is None:
        return lines
    before, after = _header_terms(old, host), _header_terms(header, host)
    if before != after:
        lines.append(f"Its limits were{before or ' as usual'}; they would be{after or ' as usual'}.")
    if old.name != header.name:
        was, becomes = (quote_text(each.name, _NAME_CHARS) for each in (old, header))
        lines.append(f"{change.name} called itself {was}; it would call itself {becomes}.")
    if old.description != header.description:
        lines.append(f"{change.name} describes itself in other words.")
    return lines


def _header_of(data: bytes | None, path: str, kind: Literal["agent", "script"]) -> Header | None:
    return parse_header(data.decode("utf-8", "replace"), path, kind=kind)[0] if data is not None else None


def _trigger_text(header: Header | None, host: Host, at: datetime) -> str:
    if header is None:
        return "when you start it"
    timezone = host.config.business.timezone
    return join_words([kind.describe(header, timezone, at) for kind in trigger_kinds.kinds_of(header)])


def _sample_text(header: Header | None) -> str:
    """The payload of the sample call that the header gives its dry run; its beginning where it is long."""
    for kind in trigger_kinds.kinds_of(header) if header is not None else ():
        payload = header.value_of(kind.sample) if kind.sample and header is not None else None
        if payload is not None:
            text = json.dumps(payload, ensure_ascii=True)
            return shorten_text(text, _SAMPLE_CHARS)
    return ""


def _header_terms(header: Header | None, host: Host) -> str:
    """All that the header says of how it runs and what it may use, where that is not as usual."""
    if header is None:
        return ""
    terms = _limit_terms(header, host.config.sandbox)
    terms += describe_own_values(header)
    if header.args:
        terms.append(f"it takes the {'arguments' if len(header.args) > 1 else 'argument'} {join_words(header.args)}")
    usual = host.config.triggers
    if header.catch_up is not None and header.catch_up != usual.catch_up:
        terms.append(_CATCH_UP[header.catch_up])
    if header.overlap is not None:
        terms.append(_OVERLAP[header.overlap])
    if header.retries is not None and header.retries != usual.retries:
        terms.append(f"tried again up to {header.retries} times after a failure instead of {usual.retries}")
    if header.jitter:
        terms.append(f"started up to {_duration_text(header.jitter)} late")
    return f" ({'; '.join(terms)})" if terms else ""


_CATCH_UP: Final = {
    "none": "missed times are not made up for",
    "latest": "of missed times the latest is made up for",
    "all": "all missed times are made up for",
}
_OVERLAP: Final = {
    "skip": "what comes while it runs or waits is let go",
    "queue": "what comes while it runs or waits has its turn",
}


def _limit_terms(header: Header, usual: Sandbox) -> list[str]:
    """What the header raises or lowers."""
    terms = []
    if header.timeout is not None and header.timeout != usual.timeout:
        terms.append(f"up to {_duration_text(header.timeout)} a run instead of {_duration_text(usual.timeout)}")
    if header.memory_mb is not None and header.memory_mb != usual.memory_mb:
        terms.append(f"up to {header.memory_mb} MB of memory instead of {usual.memory_mb} MB")
    if header.max_calls is not None and header.max_calls != usual.max_calls:
        terms.append(f"at most {header.max_calls} calls instead of {usual.max_calls}")
    return terms


def _duration_text(seconds: float) -> str:
    for unit, name in ((3600, "hour"), (60, "minute")):
        if seconds >= unit and seconds % unit == 0:
            count = int(seconds // unit)
            return count_noun(count, name)
    return f"{seconds:.15g} seconds"


def _setting_lines(report: Report, host: Host) -> list[str]:
    config = report.candidate.config
    assert config is not None
    return [
        f"The setting {key} becomes {_name_value(new)} (it is {_name_value(old)})"
        f"{': this machine acts by it' if key in report.programs else ''}."
        for key, old, new in sorted(compare_all_settings(host.config, config), key=lambda each: rank_setting(each[0]))
    ]


def list_checks(report: Report) -> list[str]:
    """The checks that it passed, and what they warn of beside its effects."""
    passed = [TITLES[r.check] for results in report.results.values() for r in results if r.status == "passed"]
    titles = list(dict.fromkeys(passed))
    lines = [f"Checked and passed: {', '.join(titles)}."] if titles else []
    return lines + report.list_warnings(of_effects=False)


def list_impact(report: Report) -> list[str]:
    """What every agent would have done otherwise, one sentence for each sort of effect."""
    lines: list[str] = []
    agents = [s for s in report.subjects.values() if s.kind == "agent"]
    alike = [s for s in agents if _is_alike_over_sample(s)] if len(agents) > 1 else []
    for subject in agents:
        if subject.old is None:
            lines += _describe_dry_runs(subject)
        elif subject not in alike:
            lines += _compare_lines(subject, f" of {subject.name}" if len(agents) > 1 else "")
        lines += describe_woken(subject)
    if alike:
        names = join_words([subject.name for subject in alike])
        lines.append(f"Over sample data, {names} would have done the same; there are no past runs to compare with.")
    return lines


def _is_alike_over_sample(subject: Subject) -> bool:
    """Whether nothing else is to be said of an agent than that it would have done the same over sample data."""
    past, sample = subject.impact, subject.sample_impact
    return (
        past is not None
        and sample is not None
        and not (past.runs or past.not_comparable or sample.entries or sample.outputs or sample.failed)
    )


def _describe_dry_runs(subject: Subject) -> list[str]:
    """What a new agent did in each dry run but that over nothing; the same is said once."""
    labels: dict[str, list[str]] = {}
    for result in subject.dry_runs[1:]:
        labels.setdefault(_describe_dry_run(result), []).append(result.label)
    return [f"Over {join_words(over)} {subject.name} would {what}." for what, over in labels.items()]


def _describe_dry_run(result: DryRun) -> str:
    found = {noun: len(records) for noun, records in result.records.items() if records}
    parts = [f"make {count_records(found)}"] if found else []
    parts += [f"ask you {count_noun(len(result.cards), 'time')}"] if result.cards else []
    parts += [
        f"{verb} {count_noun(len(result.outputs[kind]), noun)}"
        for kind, (verb, noun) in _OUTPUT_VERBS.items()
        if result.outputs.get(kind)
    ]
    return join_words(parts) or "do nothing that you would see"


def describe_last_runs(number: int) -> str:
    """``last run``, ``last 2 runs``."""
    return "last run" if number == 1 else f"last {number} runs"


def _compare_lines(subject: Subject, whose: str) -> list[str]:
    impact, over = subject.impact, ""
    if impact is None:
        return []
    if impact.runs:
        over = f"Over the {describe_last_runs(impact.runs)}{whose}"
    elif subject.sample_impact is not None:
        impact, over = subject.sample_impact, f"There are no past runs{whose} to compare it with. Over sample data"
    counts = {c: impact.count_changes(c) for c in ("changed", "added", "removed") if impact.count_changes(c)}
    kinds = dict.fromkeys(str(each["kind"]) for each in impact.outputs)
    lines = []
    if counts:
        listed = f": {', '.join(f'{n} {c}' for c, n in counts.items())}" if [*counts] != ["changed"] else ""
        lines.append(f"{over}, {count_records(impact.records)} would differ{listed}.")
        groups = group_effects(impact.entries)
        lines += [f"{name_group(members)}." for members in groups[:_MOST_GROUPS]]
        if left := groups[_MOST_GROUPS:]:
            lines.append(f"{count_noun(len(left), 'more kind')} of difference: see below.")
        kinds = {kind: None for kind in kinds if kind not in _FOLLOWING}
    elif not impact.outputs:
        lines.append(f"{over}, it would have done the same.")
    else:
        lines.append(f"{over}, its records would be the same.")
    lines += _count_lines(impact.before, impact.after)
    lines += [_OUTPUT_CHANGES[kind] for kind in kinds]
    if subject.impact is not None and subject.impact.not_comparable:
        lines.append(describe_not_comparable(subject.impact.not_comparable))
    return lines


_FOLLOWING: Final = ("result", "log")
"""Kinds of outputs that differ wherever records do, and are not said then."""
_OUTPUT_VERBS: Final = {
    "change": ("change", "record that was there"),
    "message": ("send you", "message"),
    "job": ("have the loop run", "job"),
    "event": ("emit", "event"),
    "log": ("log", "line"),
}
_OUTPUT_CHANGES: Final = {
    "change": "It would change other records that were there before the run.",
    "message": "Its messages to you would be others.",
    "question": "Its questions to you would be others.",
    "job": "It would have the loop run other jobs.",
    "event": "It would emit other events.",
    "result": "Its result would be another.",
    "log": "Its log would read otherwise.",
}


def _count_lines(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    old, new = before.get("auto-confirmed", 0), after.get("auto-confirmed", 0)
    cards_before, cards_after = before.get("cards", 0), after.get("cards", 0)
    lines = []
    if old != new:
        lines.append(f"Booked without asking: {count_noun(new, 'entry', 'entries')} instead of {old}.")
    if cards_before != cards_after:
        lines.append(f"Questions to you: {cards_after} instead of {cards_before}.")
    return lines


def _name_value(value: object) -> str:
    """None: it has no value as shipped either."""
    if is_long(value):
        return f"a text of {len(str(value))} characters"
    return write_value(write_plain(value)) if isinstance(value, str) else write_plain(write_value(value))
