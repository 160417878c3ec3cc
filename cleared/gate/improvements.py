"""What a domain learned about its agents: changes of their scripts that follow from what persons decided, and questions
where decisions contradict each other. It proposes; a person approves.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any, Final, cast

from msgspec import Struct

from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun
from cleared.cards.card import Card
from cleared.changes.host import Host
from cleared.domains.installed_domains import load_domains
from cleared.gate.agent_stats import list_run_outcomes
from cleared.gate.dead_branches import find_dead_branches
from cleared.gate.threshold_lessons import find_overconfidence
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.sandbox.branch_removal import Branch, remove_branch
from cleared.sandbox.script_source import parse_script
from cleared.trust.approval_record import text_path
from cleared.workspace.location import CONFIG_NAME
from cleared.workspace.settings.editing import set_value


class Improvement(Struct, frozen=True):
    """One small change of an agent's script, with what speaks for it."""

    path: str
    key: str
    """What it changes, in a few words that no other improvement has. ``says`` begins with them: so one that was
    rejected is not proposed again."""
    title: str
    """The same as a list has it, with why: ``BLUEBIRD → 5040 from now on, as you decided 3 of 3 times``."""
    says: str
    """That, and then the evidence, in one line."""
    edit: Callable[[str], str]
    """The script with the change; every byte that it is not about stays. Gives the same text where it is not needed."""
    confirms: Mapping[str, frozenset[str]] = {}
    """Where all that it is about was decided by persons, equally, and is attested: each such record, and what it went
    to, as ``RecordComparison.list_references`` says. Empty where a person must look at it."""
    doubt: str = ""
    """Why a person must look at something that decisions speak for."""


class OpenQuestion(Struct, frozen=True):
    """Something that only a person can settle. Asked once: its key makes the card's id."""

    kind: str
    key: str
    title: str
    details: Mapping[str, Any]


class Unwritten(Struct, frozen=True):
    """A change that an agent's script has no place for: a person or a model may write it."""

    path: str
    title: str
    """As that of an ``Improvement``."""


class Lessons(Struct):
    """What a domain learned of one commit."""

    improvements: list[Improvement] = []
    questions: list[OpenQuestion] = []
    unwritten: list[Unwritten] = []
    findings: list[str] = []
    """What nothing is proposed about, a sentence each."""


class LessonSource(Struct, frozen=True):
    """What a domain learns from."""

    host: Host
    snapshot: Snapshot
    scripts: Scripts
    cards: Mapping[str, Card]
    """All cards of the commit, settled ones, too."""


def find_lessons(source: LessonSource) -> Lessons:
    """What every domain learned. Raises ``WorkspaceError`` where its records cannot be read."""
    total = Lessons()
    for domain in load_domains():
        if domain.find_lessons is not None:
            found = cast(Lessons, domain.find_lessons(source))
            total.improvements += found.improvements
            total.questions += found.questions
            total.unwritten += found.unwritten
            total.findings += found.findings
    total.improvements += _list_removals(source.scripts)
    _judge_threshold(source, total)
    return total


def list_approved(scripts: Scripts, folder: str) -> Iterator[tuple[str, str]]:
    """The path and text of each script of a folder that is live as approved."""
    for file in sorted(scripts.snapshot.list_folder(folder)):
        path = f"{folder}/{file}"
        data = scripts.approvals.approved_version(path)[0] if file.endswith(".py") else None
        if data is not None:
            yield path, data.decode("utf-8", "replace")


def iter_older_texts(scripts: Scripts, path: str, until: datetime) -> Iterator[str]:
    """The texts of the versions of a script that were approved by then, oldest first."""
    approvals = scripts.approvals
    for version in approvals.list_versions(path):
        if datetime.fromisoformat(version.at) <= until:
            data = approvals.source.read(text_path(path, version.digest))
            if data is not None:
                yield data.decode("utf-8", "replace")


def _list_removals(scripts: Scripts) -> Iterator[Improvement]:
    """Taking out each branch of an approved script to which nothing can come, where that can be done alone."""
    layout = scripts.host.layout
    live = chain.from_iterable(list_approved(scripts, folder) for folder in (layout.agents_dir, layout.scripts_dir))
    for path, source in live:
        for name, why in {branch.describe(): why for branch, why in _find_removable(source)}.items():
            title, edit = f"No branch any more: {name}", partial(_remove_branch, described=name)
            yield Improvement(path, f"{title}.", title, f"{title}. {why}", edit)


def _find_removable(source: str) -> Iterator[tuple[Branch, str]]:
    tree = parse_script(source, "")
    for branch, why in find_dead_branches(tree) if isinstance(tree, ast.Module) else ():
        if remove_branch(source, branch) != source:
            yield branch, why


def _remove_branch(source: str, *, described: str) -> str:
    branch = next((each for each, _ in _find_removable(source) if each.describe() == described), None)
    return remove_branch(source, branch) if branch is not None else source


def _judge_threshold(source: LessonSource, total: Lessons) -> None:
    """Whether scripts book more without asking than they are right about."""
    host = source.host
    now = Decimal(str(host.config.thresholds.auto_confirm))
    found = find_overconfidence(list_run_outcomes(host, source.snapshot), now)
    if found is None:
        return
    said = f"of {count_noun(found.records, 'record')} booked as sure from {now} on, you corrected {found.wrong}"
    if found.better is None:
        total.findings.append(f"{said[0].upper()}{said[1:]}, however sure the scripts were: look at their rows.")
        return
    key = f"Ask about what is less sure than {found.better}"
    title, value = f"{key}: {said}", str(found.better)
    says = f"{title}. From {found.better} on it was {found.wrong_above} of {found.records_above}."
    change = Improvement(CONFIG_NAME, key, title, says, lambda text: set_value(text, _THRESHOLD, value))
    if host.policy is None or not host.policy.unapproved:  # what waits there is not proposed along
        total.improvements.append(change)


_THRESHOLD: Final = "thresholds.auto_confirm"


def find_title(source: LessonSource, path: str, before: bytes | None, after: bytes | None, message: str) -> str:
    """What stands above a change of ``path`` that is just what was learned; empty for any other. ``message``: the
    proposer's, which names what was learned but is not trusted."""
    if before is None or after is None:
        return ""
    said = set(message.splitlines())
    learned = [each for each in find_lessons(source).improvements if each.path == path and each.says in said]
    text = combine_edits(before.decode("utf-8", "replace"), learned) if learned else ""
    if text.encode("utf-8") != after:
        return ""
    return list_first([each.title for each in learned], 1)


def combine_edits(source: str, improvements: Sequence[Improvement]) -> str:
    """The script with all of these changes, one after the other."""
    for each in improvements:
        source = each.edit(source)
    return source
