"""The last act: what undo takes back, and nothing older instead of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import PolicyError
from cleared.cards.card import Card
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.auto_resolve import RESOLVED_BY
from cleared.changes.committed_cards import read_cards
from cleared.changes.decisions.authorization import AGREES_TRAILER
from cleared.changes.decisions.decision_context import UNDO_TRAILER
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
LATER_TRAILER: Final = "Later"
"""The trailer of a commit that put cards behind the others: their ids."""
_PROGRAMS: Final = frozenset({RESOLVED_BY, TIMEOUT_ACTOR, CHECK, IMPROVE})
"""Who decides where no person does, beside the duties of domains: what they do beside cards is no act to take back,
but a change that approved itself."""
_LOOKS: Final = (2, 20, 2_000)
"""Commits that are looked at first, then, and at most: nearly always the newest one is it."""


class LastAct(Struct, frozen=True):
    """The newest act of a person that stands."""

    commit: history.CommitInfo
    remedy: str = ""
    """The command that takes it back, where undo does not."""
    rolled_back: str = ""
    """The script of an approval: undo rolls it back."""
    is_beside: bool = False
    """Whether it stays where what was decided before it is taken back: it is about nothing in the records."""
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
        if self.remedy:
            older = f"{self.remedy.rstrip('.')}. The decision before it: cleared queue undo --older."
            raise PolicyError(
                f"the last decision was {self.commit.short} ({self.commit.subject}), which is not taken back here",
                remedy=older if self.is_beside else self.remedy,
            )
        if history.is_pushed(host.root, self.commit.id):
            raise PolicyError(
                f"the last decision ({self.commit.subject}) was pushed already",
                remedy="Others may build on it: correct it with a new decision.",
            )


def find_last_act(host: Host, snapshot: Snapshot, open_cards: Iterable[Card], *, older: bool = False) -> LastAct | None:
    """The newest act of a person in the history of a commit that was not taken back; None where there is none.

    ``older``: the newest that undo can take back; what was done since beside the books, such as a setting, stays.
    """
    waiting = {card.id for card in open_cards if card.agreed}
    undone: set[str] = set()
    taken_back: set[tuple[str, str]] = set()
    programs = _PROGRAMS.union(actor for domain in load_domains() for actor in domain.actors)
    origins = CommitOrigins(host, snapshot.repo, snapshot)
    for commit in _iter_decisions(host, snapshot):
        trailers = commit.trailers
        if not origins.is_ours(commit):
            continue  # anybody can write such trailers
        undone |= set(trailers.get(UNDOES, "").split("\n"))
        if trailers.get("Decision") in undone or UNDOES in trailers:
            continue
        # That the first of two had agreed is past, once the second has.
        if UNDO_TRAILER in trailers or LATER_TRAILER in trailers:
            return LastAct(commit)
        if waiting & set(trailers.get(AGREES_TRAILER, "").split()):
            return LastAct(commit)
        way = find_way_back(commit.subject)
        if way is None or AGREES_TRAILER in trailers:
            continue
        if trailers.get("By") in programs and (trailers.get("By") != IMPROVE or way.kind != "version"):
            continue  # but what approved itself is taken back as if a person had approved it
        key = way.kind, way.name
        if way.kind == "version":
            key = way.kind, " ".join(_list_scripts(host, commit))
        if not way.remedy:
            taken_back.add(key)
        elif key in taken_back:
            taken_back.remove(key)
        elif not _is_reversed(host, snapshot, commit, way):
            scripts = _list_scripts(host, commit) if way.kind == "version" else []
            if len(scripts) == 1:
                return LastAct(commit, rolled_back=scripts[0])
            if way.is_about_records:
                return LastAct(commit, way.remedy)
            if not older:
                return LastAct(commit, way.remedy, is_beside=True)
    return None


def read_last_act(host: Host) -> LastAct | None:
    """The same of the last commit, for whoever shows it."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        cards = read_cards(host, snapshot).list_open()
        last = find_last_act(host, snapshot, cards)
        if last is None or not last.is_beside:
            return last
        return replace(last, before=find_last_act(host, snapshot, cards, older=True))


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
