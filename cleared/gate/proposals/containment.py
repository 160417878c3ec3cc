"""Whether a proposal contains another one: what that one adds is in it, and what that one takes away is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from cleared.base.short_text import list_lines
from cleared.gate.candidate import Candidate, approved_text
from cleared.gate.proposals.proposal import Proposal
from cleared.runs.approved_scripts import Scripts

_MOST_LINES: Final = 12
_LINE_CHARS: Final = 160


def list_lost_lines(old: Proposal, candidate: Candidate, scripts: Scripts) -> list[str]:
    """What ``old`` would change and ``candidate`` does not: ``path: + line`` (added), ``path: - line`` (taken away)."""
    news = {change.path: change.new for change in candidate.changes}
    lost = []
    for file in old.data["files"]:
        path = str(file["path"])
        approved = approved_text(scripts, path, file["kind"])
        theirs, mine = old.texts.get(path), news.get(path, approved)
        if theirs is None and mine is not None:
            lost.append(f"{path}: removed")
            continue
        before, wanted, there = (_count_lines(text) for text in (approved, theirs, mine))
        lost += [f"{path}: + {line}" for line in wanted if wanted[line] > max(before[line], there[line])]
        lost += [f"{path}: - {line}" for line in before if there[line] > wanted[line] < before[line]]
    return lost


def describe_succession(old: Proposal, lost: Iterable[str]) -> list[str]:
    """Lines of a card that takes the place of ``old``. No line of a proposer ends the frame that it is quoted in."""
    lines = [f"It takes the place of {old.id} by {old.data['author']['name']}, which waited: {old.title}"]
    quoted = list(lost)
    if not quoted:
        return [*lines, f"It has all of the change of {old.id}, too."]
    lines.append(f"It does not contain all of {old.id}. What {old.id} would have done besides:")
    framed = [f"  | {line[:_LINE_CHARS]}" for line in quoted]
    return [*lines, *list_lines(framed, _MOST_LINES, "  … and {} more")]


def say_successor(new_id: str, *, contains: bool) -> str:
    """The reason that stands in what the proposal ``new_id`` replaced."""
    return f"{new_id} took its place" + (" and contains it" if contains else "")


def list_replaced(new_id: str, proposals: Iterable[Proposal], candidate: Candidate, scripts: Scripts) -> list[Proposal]:
    """The proposals that were closed for ``new_id``, with exactly the reason that this machine would give."""
    reasons = {contains: say_successor(new_id, contains=contains) for contains in (True, False)}
    closed = [p for p in proposals if p.decision is not None and p.decision.reason in reasons.values()]
    return [
        p for p in closed if p.decision and p.decision.reason == reasons[not list_lost_lines(p, candidate, scripts)]
    ]


def _count_lines(text: bytes | None) -> Counter[str]:
    return Counter(line for line in (text or b"").decode("utf-8", "replace").splitlines() if line.strip())
