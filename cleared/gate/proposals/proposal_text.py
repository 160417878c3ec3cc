"""A proposal in plain English: what changes, what was checked, what it would have done. No code."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from textwrap import wrap
from typing import Any, Final, Literal

from cleared.base.short_text import join_words, shorten_text
from cleared.base.terminal import count_noun
from cleared.changes.host import Host
from cleared.domains.draft_records import count_records
from cleared.domains.installed_domains import describe_own_values, parse_header
from cleared.gate.candidate import Change
from cleared.gate.check_result import Subject
from cleared.gate.examination import Report
from cleared.gate.impact import describe_not_comparable, describe_values
from cleared.gate.lint_rules import TITLES
from cleared.primitives.registry.grants import load_grants
from cleared.primitives.registry.primitive import Primitive
from cleared.sandbox import trigger_kinds
from cleared.sandbox.header import Header
from cleared.sandbox.used_primitives import JOB_TYPE_GRANT, granted_job_types, granted_model_budgets
from cleared.workspace.settings.model import Sandbox
from cleared.workspace.settings.protected_settings import compare_all_settings

_MOST_EXAMPLES: Final = 3
_SAMPLE_CHARS: Final = 300
_MESSAGE_CHARS: Final = 1_000
_FRAME_WIDTH: Final = 100


def write_title(report: Report, host: Host) -> str:
    """One line for lists."""
    parts = [_change_title(change) for change in report.candidate.changes]
    return f"{parts[0][:1].upper()}{parts[0][1:]}" + (f", and {len(parts) - 1} more" if len(parts) > 1 else "")


def write_card(
    report: Report,
    host: Host,
    old_grants: Mapping[str, Iterable[str]],
    message: str,
    author: str,
    before: Iterable[str],
) -> list[str]:
    """The lines of the card: changes first (grants before all), then checks, then impact, then the author's words.

    ``before``: that the same was rejected or rolled back once, in words.
    """
    lines = [line for latent in report.latent.values() for line in latent.describe()]
    for file, subject in report.subjects.items():
        if subject.kind == "agent" and (subject.old is not None or file in old_grants):
            lines += _grant_lines(subject, set(old_grants.get(file, ())), host.registry)
        elif subject.kind == "agent":
            lines.append(_new_agent_line(subject, host.registry))
    lines += before
    for change in report.candidate.changes:
        lines += _change_lines(change, report, host)
    lines += _check_lines(report)
    lines += _impact_lines(report)
    if message:
        lines += _frame_message(message, author)
    return lines


def _frame_message(message: str, author: str) -> list[str]:
    """The proposer's name and words. Each line of them stands behind a bar: nothing in it ends the frame."""
    text = " ".join(f"{author}: {message}".split())[:_MESSAGE_CHARS]
    return [
        "The words of who proposed it, which nobody checked:",
        *(f"  | {line}" for line in wrap(text, _FRAME_WIDTH)),
    ]


def _frame_text(data: bytes | None) -> list[str]:
    return [f"  | {line}" for line in (data or b"").decode("utf-8", "replace").splitlines()]


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


def _grant_lines(subject: Subject, old: set[str], registry: Mapping[str, Primitive]) -> list[str]:
    new = set(subject.grants)
    lines = []
    for names, verb in ((new - old, "may now also"), (old - new, "may no longer")):
        if names:
            lines.append(f"{subject.name} {verb} {describe_grants(names, registry)} ({', '.join(sorted(names))}).")
    return lines


def _new_agent_line(subject: Subject, registry: Mapping[str, Primitive]) -> str:
    names = sorted(subject.grants)
    may = f"{describe_grants(names, registry)} ({', '.join(names)})" if names else "do nothing but calculate"
    return f"{subject.name} is new. It may {may}."


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


def _change_lines(change: Change, report: Report, host: Host) -> list[str]:
    if change.kind == "config":
        return _setting_lines(report, host)
    if change.kind == "case":
        what = {True: "is removed: what it guards is guarded no more", False: "is changed"}[change.new is None]
        name = change.name.removesuffix(".json")
        return [f"The test {name} {'is new' if change.old is None else what}."]
    if change.kind == "text":
        return _text_lines(change)
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
            lines.append(f"It takes {join_words([*new.args]) if new and new.args else 'no arguments'}.")
        return lines
    header = subject.header if subject else None
    if change.old is None:
        lines = [f"{change.name} would run {_trigger_text(header)}{_header_terms(header, host)}."]
        if header and header.description:
            lines.append(f"{change.name} describes itself as: {header.description.rstrip('.')}.")
        return lines
    changed = header_lines(change, header, host)
    return changed or [f"{change.name} changes; when it runs and its limits stay as they are."]


def _text_lines(change: Change) -> list[str]:
    """A file that people and models read: all of it, as a model obeys each line."""
    if change.new is None:
        return [
            f"The text {change.path} is removed. Later sessions of a model are told this no more:",
            *_frame_text(change.old),
        ]
    state = "is new"
    if change.old is not None:
        old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (change.old, change.new))
        steps = [step for step in difflib.ndiff(old, new) if step[:1] in "+-"]
        added = sum(step[0] == "+" for step in steps)
        state = f"changes: {count_noun(added, 'line')} added, {len(steps) - added} removed"
    return [f"The text {change.path} {state}. Every later session of a model is told this:", *_frame_text(change.new)]


def header_lines(change: Change, header: Header | None, host: Host) -> list[str]:
    """What a changed agent's header changes; what it grants stands elsewhere, with all that the script may."""
    old = _header_of(change.old, change.path, "agent")
    lines = []
    if _trigger_text(old) != _trigger_text(header):
        lines.append(f"{change.name} ran {_trigger_text(old)}; it would run {_trigger_text(header)}.")
    if header is not None and _sample_text(old) != _sample_text(header):
        lines.append(f"{change.name} is rehearsed over the sample call {_sample_text(header) or 'without a payload'}.")
    if old is None or header is None:
        return lines
    before, after = _header_terms(old, host), _header_terms(header, host)
    if before != after:
        lines.append(f"Its limits were{before or ' as usual'}; they would be{after or ' as usual'}.")
    if old.name != header.name:
        lines.append(f"{change.name} called itself {old.name!r}; it would call itself {header.name!r}.")
    if old.description != header.description:
        lines.append(f"{change.name} describes itself as: {header.description.rstrip('.')}.")
    return lines


def _header_of(data: bytes | None, path: str, kind: Literal["agent", "script"]) -> Header | None:
    return parse_header(data.decode("utf-8", "replace"), path, kind=kind)[0] if data is not None else None


def _trigger_text(header: Header | None) -> str:
    if header is None:
        return "when you start it"
    return join_words(
        [kind.describe(header, join_words([*kind.values(header)])) for kind in trigger_kinds.kinds_of(header)]
    )


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
        f"The setting {key} becomes {_value_or_shipped(new)} (it is {_value_or_shipped(old)})."
        for key, old, new in compare_all_settings(host.config, config)
    ]


def _check_lines(report: Report) -> list[str]:
    passed = [TITLES[r.check] for results in report.results.values() for r in results if r.status == "passed"]
    titles = list(dict.fromkeys(passed))
    lines = [f"Checked and passed: {', '.join(titles)}."] if titles else []
    return lines + [f"Attention: {w.message}." for w in report.warnings]


def _impact_lines(report: Report) -> list[str]:
    diff = report.total_impact()
    lines = []
    new = [s for s in report.subjects.values() if s.kind == "agent" and s.old is None]
    if diff.runs:
        counts = [f"{diff.count_changes(c)} {c}" for c in ("changed", "added", "removed") if diff.count_changes(c)]
        over = f"Over the last {count_noun(diff.runs, 'run')}"
        if counts:
            lines.append(f"{over}, {count_records(diff.records)} would differ: {', '.join(counts)}.")
            lines += [example_line(e) for e in diff.entries[:_MOST_EXAMPLES]]
        else:
            lines.append(f"{over}, it would have done the same.")
        lines += _count_lines(diff.before, diff.after)
    elif not new and report.subjects:
        lines.append("There are no past runs to compare it with.")
    if diff.not_comparable:
        lines.append(describe_not_comparable(diff.not_comparable))
    for subject in new:
        for rehearsal in subject.dry_runs[1:]:
            entries = count_records(rehearsal.records)
            questions = count_noun(len(rehearsal.cards), "time")
            lines.append(f"Over {rehearsal.label} {subject.name} would post {entries} and ask {questions}.")
    return lines


def _count_lines(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    old, new = before.get("auto-confirmed", 0), after.get("auto-confirmed", 0)
    cards_before, cards_after = before.get("cards", 0), after.get("cards", 0)
    lines = []
    if old != new:
        lines.append(f"Booked without asking: {count_noun(new, 'entry', 'entries')} instead of {old}.")
    if cards_before != cards_after:
        lines.append(f"Questions to you: {cards_after} instead of {cards_before}.")
    return lines


def example_line(entry: Mapping[str, Any]) -> str:
    """One difference, as a line."""
    what = entry["entry_id"] or entry["change"]
    return (
        f"  {what}  {entry['date']}  {entry['amount']}  {str(entry['description'])[:50]}: "
        f"{describe_values(entry['before'])} → {describe_values(entry['after'])}"
    )


def _value_or_shipped(value: object) -> object:
    return "as shipped" if value is None else value
