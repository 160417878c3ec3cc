"""Improving agents by what persons decided, without a model: each agent's changes as one proposal with its evidence,
and one card for each contradiction. Nothing becomes live by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.base.terminal import count_noun
from cleared.cards import queue_files
from cleared.cards.card import Card, card_id
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.gate.improvements import (
    Improvement,
    LessonSource,
    OpenQuestion,
    Unwritten,
    combine_edits,
    find_lessons,
)
from cleared.gate.proposals.additive_approval import ADDITIVE, PersonNeeded, approve_additive, was_refused
from cleared.gate.proposals.author import IMPROVE, Author
from cleared.gate.proposals.proposal import Proposal, load_proposals
from cleared.gate.proposals.submission import LEARNING, GateFailed, propose_changes
from cleared.gate.unused_code import describe_unused_branches, describe_unused_scripts, list_live_agents
from cleared.git import Snapshot
from cleared.runs.approved_scripts import Scripts
from cleared.trust.person_only import current_job
from cleared.workspace.location import CONFIG_NAME

_MOST_QUESTIONS: Final = 5
"""Contradictions that are asked about at a time: the others wait until these are answered."""
_REHEARSED_A_NIGHT: Final = 5


class Improved(Struct):
    """What came of it."""

    proposals: list[Proposal] = []
    """New ones, or those that say the same and wait already."""
    proposed: list[Improvement] = []
    approved: list[Proposal] = []
    """What became live without a person, as ``self_improvement.approve`` lets it."""
    confirmed: list[Improvement] = []
    """What it does."""
    asked: list[OpenQuestion] = []
    unwritten: list[Unwritten] = []
    """What a person or a model may write: the script has no place for it."""
    findings: list[str] = []
    """What only a person can make better, in one sentence each."""
    held: list[str] = []
    """What was not proposed, and why, in one sentence each."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "proposals": [p.id for p in self.proposals],
            "proposed": [{"file": each.path, "change": each.key, "says": each.says} for each in self.proposed],
            "approved": [p.id for p in self.approved],
            "confirmed": [{"file": each.path, "change": each.key, "says": each.says} for each in self.confirmed],
            "asked": [each.title for each in self.asked],
            "unwritten": [{"file": each.path, "says": each.title} for each in self.unwritten],
            "findings": self.findings,
            "held": self.held,
        }

    def describe(self) -> str:
        """It in one line."""
        if not self.proposed and not self.asked and not self.confirmed:
            return "nothing new was learned"
        parts = [f"{count_noun(len(self.confirmed), 'change')} approved as you decided"] if self.confirmed else []
        parts += [f"{count_noun(len(self.proposed), 'change')} proposed"] if self.proposed else []
        parts += [f"{count_noun(len(self.asked), 'contradiction')} to settle"] if self.asked else []
        return ", ".join(parts)


def improve_agents(host: Host, *, is_asked: bool) -> Improved:
    """Propose what follows from the decisions so far, and ask about what contradicts itself.

    ``is_asked``: whether a person wants it now; else the budgets of ``self_improvement`` hold. A change that was
    rejected is not proposed again, and an agent about which another proposal waits is left alone. Raises
    ``WorkspaceError`` where the records cannot be read.
    """
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
        scripts = Scripts(host, snapshot)
        lessons = find_lessons(LessonSource(host, snapshot, scripts, cards))
        live = list_live_agents(scripts)
        unused = describe_unused_scripts(scripts, live)
        looked = live if is_asked else _choose_tonight(live, host.clock.now())
        unused += [describe_unused_branches(host, repo, scripts, name) for name in looked]
        proposals = load_proposals(CommittedSource(snapshot))
        by_path: dict[str, list[Improvement]] = defaultdict(list)
        for each in lessons.improvements:
            by_path[each.path].append(each)
        sources = {path: _read_approved(scripts, snapshot, path) for path in by_path}
    waiting = {path for proposal in proposals if proposal.status == "open" for path in proposal.paths}
    unwritten = [each for each in lessons.unwritten if each.path not in waiting]
    places = [f"{each.path} has no table or branch for this: {each.title}" for each in unwritten]
    done = Improved(unwritten=unwritten, findings=[*places, *lessons.findings, *filter(None, unused)])
    author = Author(IMPROVE, is_human=False, is_asked=is_asked and not current_job())
    for path, improvements in by_path.items():
        source = sources[path]
        if others := [p for p in proposals if p.status == "open" and path in p.paths and not _is_own(p)]:
            done.held.append(f"{path} is left alone while {others[0].id} waits")
        elif source is not None:
            wanted = [each for each in improvements if not was_refused(each, proposals, scripts.approvals)]
            is_free = host.config.self_improvement.approve == ADDITIVE
            left = _approve(host, path, wanted, author, done) if is_free else wanted
            _propose(host, path, source.decode("utf-8", "replace"), left, author, done)
    _ask(host, lessons.questions, cards.values(), done)
    return done


def _choose_tonight(agents: Sequence[str], now: datetime) -> Sequence[str]:
    """Whose branches are looked at by itself: some each night, as their past is rehearsed for it."""
    first = now.toordinal() * _REHEARSED_A_NIGHT % max(len(agents), 1)
    return [*agents[first:], *agents[:first]][:_REHEARSED_A_NIGHT]


def _read_approved(scripts: Scripts, snapshot: Snapshot, path: str) -> bytes | None:
    return snapshot.read_file(path) if path == CONFIG_NAME else scripts.approvals.approved_version(path)[0]


def _is_own(proposal: Proposal) -> bool:
    return not proposal.by_human and proposal.data["author"]["name"] in LEARNING


def _approve(
    host: Host, path: str, wanted: Sequence[Improvement], author: Author, done: Improved
) -> Sequence[Improvement]:
    """Make live what only confirms decisions, and return what is left to propose: nothing after a change, which rests
    first."""
    done.held += [f"{each.key} waits for a person: {each.doubt}" for each in wanted if each.doubt]
    try:
        approved = approve_additive(host, path, wanted, author)
    except PersonNeeded as needed:
        done.held.append(f"{path} waits for a person: {needed.message}")
        return wanted
    except PolicyError as refused:
        done.held.append(f"{path}: {refused.message}")
        return []
    done.approved += approved.proposal
    done.confirmed += approved.improvements
    return [] if approved.improvements else wanted


def _propose(
    host: Host, path: str, source: str, improvements: Sequence[Improvement], author: Author, done: Improved
) -> None:
    """Propose as many as the budget of one agent allows, together; where they do not pass together, without the one
    that is in the way, else each by itself."""
    wanted = [each for each in improvements if each.edit(source) != source]
    wanted = wanted[: host.config.self_improvement.max_changes_per_agent]
    without = [[other for other in wanted if other is not each] for each in wanted if len(wanted) > 2]
    why = ""
    for chosen in [*([wanted] if wanted else []), *without, *([each] for each in wanted if len(wanted) > 1)]:
        text = combine_edits(source, chosen).encode("utf-8")
        message = "\n".join(each.says for each in chosen)
        try:
            proposal, _ = propose_changes(host, [path], texts={path: text}, message=message, author=author)
        except GateFailed as failed:
            why = why or failed.report.findings[0].message
            continue
        except (PolicyError, UsageError) as refused:  # also where another process has done it meanwhile
            done.held.append(f"{path}: {refused.message}")
            return
        done.proposals.append(proposal)
        done.proposed += chosen
        wanted = [each for each in wanted if each not in chosen]
        break
    if wanted and why:
        done.held.append(f"{', '.join(each.key for each in wanted)} does not pass the gate: {why}")


def _ask(host: Host, questions: Sequence[OpenQuestion], cards: Iterable[Card], done: Improved) -> None:
    """A card for each question that was never asked."""
    known = {card.id: card for card in cards}
    waiting = sum(1 for card in known.values() if card.status == "open" and card.kind in {q.kind for q in questions})
    new = [each for each in questions if _question_id(each) not in known][: max(_MOST_QUESTIONS - waiting, 0)]
    if not new:
        return

    def stage_questions(decision_context: DecisionContext) -> Decision | None:
        context = decision_context.context
        fresh = [each for each in new if _question_id(each) not in context.cards.committed_cards]
        for each in fresh:
            context.cards.add_card(_make_card(each, context.now))
        done.asked = fresh
        return Decision(commit_messages.contradictions_asked(len(fresh))) if fresh else None

    commit_decision(host, IMPROVE, stage_questions, by=IMPROVE, collects=[done.asked])


def _question_id(question: OpenQuestion) -> str:
    return card_id(question.kind, question.key)


def _make_card(question: OpenQuestion, now: datetime) -> Card:
    return Card(
        _question_id(question), question.kind, question.title, format_iso(now), None, None, None, dict(question.details)
    )
