"""The card of a proposal, the same on every surface: its parts in their order, made here and nowhere else.

Whether the books can be relied on; what no run reached; what will be different; what stands in its way; when it runs
and what it may do; its effects in groups; checks; code; the words of who proposed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from cleared.base.short_text import join_words
from cleared.base.terminal import count_noun
from cleared.cards.card_section import CardSection, list_lines
from cleared.changes.host import Host
from cleared.gate.examination import Report
from cleared.gate.framed_text import frame_text
from cleared.gate.proposals.change_text import (
    describe_occasion,
    list_changes,
    list_checks,
    list_grant_changes,
    list_impact,
    list_rights,
)
from cleared.gate.proposals.effect_sections import list_effects
from cleared.gate.proposals.own_words import list_own_words, quote_all_prose
from cleared.gate.proposals.proposal import Proposal
from cleared.git import Snapshot

_TITLES: Final = {
    "doubt": "",
    "unreached": "",
    "different": "What will be different",
    "obstacles": "What will not work yet",
    "others": "Other proposals of it",
    "when": "When it runs",
    "may": "What it may do",
    "checks": "Checks",
}
"""The parts that are lines → what stands above them. The first two stand above all, so nothing stands above
them."""
_MESSAGE_TITLE: Final = "The words of who proposed it, which nobody checked"
_MESSAGE_CHARS: Final = 1_000


def write_parts(
    report: Report,
    host: Host,
    snapshot: Snapshot,
    old_grants: Mapping[str, Iterable[str]],
    earlier: Mapping[str, Sequence[str]],
    at: datetime,
) -> dict[str, list[str]]:
    """What a proposal keeps of its card: the lines that the examination gave, by part.

    ``earlier``: lines of parts about earlier proposals and versions of the same; ``at``: when it was proposed.
    """
    parts: dict[str, list[str]] = {
        "unreached": list_unreached(report),
        "different": [*earlier.get("different", ())],
        "others": [*earlier.get("others", ())],
        "when": [],
        "may": [],
        "checks": list_checks(report),
    }
    if report.candidate.config is None:  # of settings they stand above all
        parts["different"] += report.list_warnings(of_effects=True)
    own_words: list[str] = []
    for subject in report.subjects.values():
        if subject.latent is not None:
            said = subject.latent.describe_harmless()
            if not set(said).issubset(parts["different"]):
                parts["different"] += said
                own_words += quote_all_prose(subject.latent.prose)
    agents = {file: subject for file, subject in report.subjects.items() if subject.kind == "agent"}
    for file, subject in agents.items():
        known = old_grants.get(file) if subject.old is not None or file in old_grants else None
        if known is not None:
            parts["different"] += list_grant_changes(subject, known, host.registry)
        if file in (change.path for change in report.candidate.changes):
            parts["may"].append(list_rights(subject, known, host.registry))
    for change in report.candidate.changes:
        parts["different"] += list_changes(change, report, host, at)
        own_words += list_own_words(change, report, host, snapshot)
        if change.path in agents:
            parts["when"].append(describe_occasion(change, agents[change.path].header, host, at))
    # What others wrote comes last: what the program says stands above it, whatever they wrote.
    parts["different"] += [*list_impact(report), *own_words]
    return {name: lines for name, lines in parts.items() if lines}


def list_unreached(report: Report) -> list[str]:
    """What no dry run showed, each of several agents by its name. What is the same of some is said once; whole, as
    lines of a quote may be alike."""
    by_text: dict[tuple[str, ...], list[str]] = {}
    for file, latent in report.latent.items():
        subject = report.subjects.get(file)
        by_text.setdefault(tuple(latent.describe()), []).append(subject.name if subject is not None else file)
    if len(by_text) < 2:
        return [line for said in by_text for line in said]
    return [
        line if line.startswith(" ") else f"{join_words(names)}: {line}"  # those of a quote stand behind a bar
        for said, names in by_text.items()
        for line in said
    ]


def make_card(
    proposal: Proposal, code: Mapping[str, str] | None = None, now: Mapping[str, Sequence[str]] | None = None
) -> tuple[CardSection, ...]:
    """The card, part by part. ``code``: path → its diff, where that is to be shown; ``now``: further lines of parts,
    which hold at this moment and on this machine."""
    kept = proposal.data["card"]
    # One that an older version has kept is lines without parts, the proposer's among them.
    parts = {"different": kept} if isinstance(kept, list) else kept
    sections: list[CardSection] = []
    for name, title in _TITLES.items():
        lines = (*parts.get(name, ()), *(now or {}).get(name, ()))
        if name == "checks":
            sections += list_effects(proposal.data["behaviour"], proposal.new_agents)
        if lines:
            sections.append(CardSection(title, tuple(map(str, lines)), name=name))
    for path, diff in (code or {}).items():
        lines = tuple(diff.removesuffix("\n").split("\n"))
        sections.append(CardSection(f"Code: {describe_diff(path, diff)}", lines, is_code=True, name="code"))
    message = str(proposal.data["message"])
    if message and not isinstance(kept, list):
        sections.append(CardSection(_MESSAGE_TITLE, tuple(_frame_message(message, proposal)), name="message"))
    return tuple(sections)


def list_card_lines(sections: Iterable[CardSection]) -> list[str]:
    """The card as lines of text, without its code."""
    return [*list_lines((section for section in sections if not section.is_code), indent="")]


def describe_diff(path: str, diff: str) -> str:
    """``agents/ingest.py, 1 line added, 2 removed``."""
    lines = [line for line in diff.split("\n") if not line.startswith(("+++", "---"))]
    added, removed = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    return f"{path}, {count_noun(added, 'line')} added, {removed} removed"


def _frame_message(message: str, proposal: Proposal) -> list[str]:
    """The proposer's name and words. Each line of them stands behind a bar: nothing in it ends the frame."""
    who = f"{proposal.data['author']['name']}{'' if proposal.by_human or proposal.is_asked else ' (a program)'}"
    text = " ".join(f"{who}: {message}".split())[:_MESSAGE_CHARS]
    return frame_text(text)
