"""The last act: what undo takes back, and nothing older instead of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import PolicyError
from cleared.cards.card import Card
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.audit.git_reverts import GitRevert, find_git_revert
from cleared.changes.auto_resolve import RESOLVED_BY
from cleared.changes.committed_cards import read_cards
from cleared.changes.decisions.authorization import AGREES_TRAILER
from cleared.changes.decisions.decision_context import LATER_TRAILER, UNDO_TRAILER
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.ways_back import find_way_back
from cleared.domains.domain import WayBack
from cleared.domains.installed_domains import load_domains
from cleared.gate.proposals.author import IMPROVE
from cleared.git import Snapshot, history
from cleared.review.damage_cards import CHECK
from cleared.runs.question_tickets import TIMEOUT_ACTOR

UNDOES: Final = "Undoes"
"""The trailer of an undo: the id of the decision that it took back."""
_PROGRAMS: Final = frozenset({RESOLVED_BY, TIMEOUT_ACTOR, CHECK, IMPROVE})
"""Who decides where no person does, beside the duties of domains: what they do beside cards is no act to take back,
but a change that approved itself."""
_LOOKS: Final = (2, 20, 2_000)
"""Commits that are looked at first, then, and at most: nearly always the newest one is it."""
_BEFORE_IT: Final = "An older one, where there is one: cleared queue undo --older."


class LastAct(Struct, frozen=True):
    """The newest act of a person that stands."""

    commit: history.CommitInfo
    remedy: str = ""
    """The command that takes it back, where undo does not."""
    rolled_back: str = ""
    """The script of an approval: undo rolls it back."""
    is_beside: bool = False
    """Whether it stays as it is where what was decided before it is taken back: it is about nothing in the records, or
    git took it back."""
    git_revert: GitRevert | None = None
    """How git took it back: then there is nothing of it that undo could restore."""
    before: LastAct | None = None
    """That which was decided before it, then, for whoever shows it."""

    @property
    def id(self) -> str:
        """What an undo is bound to: the id of its commit."""
        return self.commit.id

    @property
    def name(self) -> str:
        """It, in words: what was done, by whom, when."""
        by, at = self.commit.trailers.get("By", ""), self.commit.trailers.get("Clock", "")
        return f"{self.commit.subject} ({by}, {at}, {self.commit.short})"

    def find_shown(self, act: str) -> LastAct:
        """Which of the two that are shown has this id; itself, where neither has."""
        return self.before if self.before is not None and self.before.id == act else self

    def require_undoable(self, host: Host) -> None:
        """Raises ``PolicyError`` where undo does not take it back; nothing older is taken back instead."""
        if self.git_revert is not None:
            raise PolicyError(
                f"the last decision was {self.commit.short} ({self.commit.subject}); that decision was "
                f"{self.git_revert.outcome}",
                remedy=" ".join(filter(None, (self.git_revert.remedy, _BEFORE_IT))),
            )
        if self.remedy:
            older = f"{self.remedy.rstrip('.')}. {_BEFORE_IT}"
            raise PolicyError(
                f"the last decision was {self.commit.short} ({self.commit.subject}), which is not taken back here",
                remedy=older if self.is_beside else self.remedy,
            )
        if history.is_pushed(host.root, self.commit.id):
            raise PolicyError(
                f"the last decision ({self.commit.subject}) was pushed already",
                remedy="Others may build on it: correct it with a new decision.",
            )


def iter_last_acts(host: Host, snapshot: Snapshot, open_cards: Iterable[Card]) -> Iterator[LastAct]:
    """The acts of persons in the history of a commit, newest first: those that stand, and those that git took back."""
    acts = _Acts(host, snapshot, open_cards)
    for commit in _iter_decisions(host, snapshot):
        act = acts.find_act(commit)
        if act is None:
            continue
        reverted = find_git_revert(host, snapshot.repo, snapshot, commit)
        if reverted is not None:
            said = " ".join(filter(None, (f"It was {reverted.outcome}.", reverted.remedy)))
            act = LastAct(commit, said, is_beside=True, git_revert=reverted)
        yield act


class _Acts:
    """Which commits of a history, newest first, are acts that no later act has taken back."""

    def __init__(self, host: Host, snapshot: Snapshot, open_cards: Iterable[Card]) -> None:
        self._host, self._snapshot = host, snapshot
        self._waiting = {card.id for card in open_cards if card.agreed}
        self._undone: set[str] = set()
        self._taken_back: set[tuple[str, str]] = set()
        self._programs = _PROGRAMS.union(actor for domain in load_domains() for actor in domain.actors)
        self._origins = CommitOrigins(host, snapshot.repo, snapshot)

    def find_act(self, commit: history.CommitInfo) -> LastAct | None:
        """The act that a commit is, where it stands; those after it were asked about before."""
        trailers = commit.trailers
        if not self._origins.is_ours(commit):
            return None  # anybody can write such trailers
        if UNDOES in trailers and not self._is_reverted(commit):  # else what it took back stands again
            self._undone |= set(trailers[UNDOES].split("\n"))
        if trailers.get("Decision") in self._undone or UNDOES in trailers:
            return None
        # That the first of two had agreed is past, once the second has.
        if UNDO_TRAILER in trailers or LATER_TRAILER in trailers:
            return LastAct(commit)
        if self._waiting & set(trailers.get(AGREES_TRAILER, "").split()):
            return LastAct(commit)
        way = find_way_back(commit.subject)
        if way is None or AGREES_TRAILER in trailers:
            return None
        by = trailers.get("By")
        if by in self._programs and (by != IMPROVE or way.kind != "version"):
            return None  # but what approved itself is taken back as if a person had approved it
        scripts = _list_scripts(self._host, commit) if way.kind == "version" else []
        key = way.kind, " ".join(scripts) if way.kind == "version" else way.name
        if not way.remedy:
            if not self._is_reverted(commit):
                self._taken_back.add(key)
            return None
        if key in self._taken_back:
            self._taken_back.remove(key)
            return None
        if _is_reversed(self._host, self._snapshot, commit, way):
            return None
        if len(scripts) == 1:
            return LastAct(commit, rolled_back=scripts[0])
        return LastAct(commit, way.remedy, is_beside=not way.is_about_records)

    def _is_reverted(self, commit: history.CommitInfo) -> bool:
        """Whether git took a commit back, so that it does not stand in the way of what was before it."""
        reverted = find_git_revert(self._host, self._snapshot.repo, self._snapshot, commit)
        return reverted is not None and reverted.is_whole


def read_last_act(host: Host) -> LastAct | None:
    """The same of the last commit, for whoever shows it."""
    with host.open_last_commit() as snapshot:
        cards = read_cards(host, snapshot).list_open()
        acts = iter_last_acts(host, snapshot, cards)
        last = next(acts, None)
        if last is None or not last.is_beside:
            return last
        return replace(last, before=next((act for act in acts if not act.is_beside), None))


def _iter_decisions(host: Host, snapshot: Snapshot) -> Iterator[history.CommitInfo]:
    """The commits of decisions, newest first: some, then all."""
    rev = snapshot.commit or "HEAD"
    seen = 0
    for limit in _LOOKS:
        commits = history.read_log(host.root, limit, grep="Decision: ", files=True, rev=rev)
        yield from commits[seen:]
        seen = len(commits)
        if seen < limit:
            return


def _list_scripts(host: Host, commit: history.CommitInfo) -> list[str]:
    folders = (host.layout.agents_dir, host.layout.scripts_dir)
    return sorted(path for path in commit.files or () if path.endswith(".py") and path.rpartition("/")[0] in folders)


def _is_reversed(host: Host, snapshot: Snapshot, commit: history.CommitInfo, way: WayBack) -> bool:
    """Whether an act is taken back by now, though no act after it says so."""
    if way.is_reversed is None:
        return False
    return way.is_reversed(host.layout, CommittedSource(snapshot.at_commit(commit.id)), CommittedSource(snapshot))
