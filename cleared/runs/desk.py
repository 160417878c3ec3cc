"""Where decisions are made: the same draft and the same seal as a run's, and no script. The one way to commit beside
a run."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from cleared.clock import iso
from cleared.errors import PolicyError
from cleared.primitives.context import Context
from cleared.runs import draft
from cleared.runs.host import Host
from cleared.runs.session import make_context, new_run_id, refuse_dirty
from cleared.vcs import LocalMove, Repository, Snapshot

ORIGINS: Final = ("Run", "Decision", "Proposed")
"""Trailers of commits that came through the program: a run, a decision, a proposal."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Desk:
    """What a decision is made on: the locked repository, its last commit, a context to stage in."""

    repo: Repository
    snapshot: Snapshot
    context: Context
    by: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decided:
    """The commit's first line, and further files (None: removed), trailers, and moves of files git does not hold."""

    message: str
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    trailers: tuple[tuple[str, str], ...] = ()
    moves: tuple[LocalMove, ...] = ()


def actor() -> str:
    """Who sits at the keyboard, as the system names them."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError, ImportError):
        name = ""
    return "".join(c for c in name if c.isprintable())[:60] or "unknown"


def decide(
    host: Host, what: str, act: Callable[[Desk], Decided | None], *, by: str | None = None, mark: str = "Decision"
) -> str | None:
    """One decision, one commit; its id. ``act`` stages; where it gives None there is nothing to commit.

    ``by``: who decides (default: who sits at the keyboard). ``mark``: the trailer that names the decision. Raises what
    ``act`` raises, with nothing changed, and ``WorkspaceError`` where managed files differ from the last commit.
    """
    with host.writing(what) as repo:
        snapshot = Snapshot(repo, repo.head())
        refuse_dirty(host, snapshot)
        now = host.clock.now().replace(microsecond=0)
        decision = new_run_id(now)
        context = make_context(
            host, repo, snapshot, agent="user", now=now, run_id=decision,
            event={"id": decision, "kind": "decision", "name": what, "payload": None}, dry_run=False,
            on_log=host.say, run_script=_no_scripts,
        )  # fmt: skip
        who = by or actor()
        decided = act(Desk(repo, snapshot, context, who))
        if decided is None:
            return None
        context.note("decision", f"{decided.message} (by {who})")
        marks = [(mark, decision), ("By", who), ("Clock", iso(now)), *decided.trailers]
        return draft.commit(host, repo, snapshot, context, decided.message, marks, decided.files, decided.moves)


def _no_scripts(name: str, args: object) -> None:
    raise PolicyError("a decision runs no script")
