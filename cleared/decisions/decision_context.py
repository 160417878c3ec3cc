"""Where decisions are made: the same draft and the same commit as a run's, and no script. The one way to commit beside
a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Final

from cleared.changes import draft
from cleared.changes.commit_messages import CommitSubject, first_of_two_decided
from cleared.changes.host import Host, current_user
from cleared.changes.lost_rows import refuse_lost_rows
from cleared.changes.session import make_context, new_run_id, refuse_changed_files
from cleared.clock import format_iso
from cleared.decisions.authorization import AGREEMENT_TRAILER, Authorization, SecondNeeded, find_authorization
from cleared.errors import PolicyError
from cleared.primitives.context import Context
from cleared.vcs import HeadMoved, LocalMove, Repository, Snapshot

ORIGIN_TRAILERS: Final = ("Run", "Decision", "Proposed")
"""Trailers of commits that came through the program: a run, a decision, a proposal."""

UNDO_TRAILER: Final = "Cards"
"""The trailer of a decision that ``queue undo`` can take back: the cards it settled, the entries it was about."""

CONFIG_COMMAND: Final = "config"
"""The one decision of which it depends on what is decided whether it takes a reviewer."""

RECOVER_COMMAND: Final = "recover"
"""The one decision that is made while the branch lacks something, and the working tree may have it."""

_MAX_TRIES: Final = 3


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecisionContext:
    """What a decision is made on: the locked repository, its last commit, a context to stage in."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    context: Context
    by: str
    authorization: Authorization
    make_context: Callable[[], Context]
    """Makes another context on the same commit, to try something in."""

    def with_empty_draft(self) -> DecisionContext:
        """The same desk with nothing staged yet; what is staged on it comes to nothing."""
        return replace(self, context=self.make_context())


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decision:
    """The commit's first line, and further files (None: removed), trailers, and moves of files git does not hold.

    ``subject``: what it is about, for two people to agree to as a whole (default: the command). ``edited``: files whose
    working copies may be somebody's edit, which stays then.
    """

    message: CommitSubject
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    trailers: tuple[tuple[str, str], ...] = ()
    local_moves: tuple[LocalMove, ...] = ()
    subject: tuple[str, ...] = ()
    edited_files: tuple[str, ...] = ()
    merged_commit: str | None = None
    """Another commit that the decision brings into the history; it is a parent of this one then."""


def commit_decision(
    host: Host,
    what: str,
    act: Callable[[DecisionContext], Decision | None],
    *,
    by: str | None = None,
    mark: str = "Decision",
    gathers: Sequence[object] | None = None,
) -> str | None:
    """One decision, one commit; its id. ``act`` stages; where it gives None there is nothing to commit.

    ``gathers``: the lists and results that ``act`` fills. Where somebody commits meanwhile they are emptied, and it is
    called again on the new commit; without them ``HeadMoved`` is raised.
    ``by``: what decides, where no person does (a timeout, a check, a proposal's author); default: who sits at the
    keyboard, and has the right to. ``mark``: the trailer that names the decision. Raises what ``act`` raises, with
    nothing changed, ``WorkspaceError`` where managed files differ from the last commit or the branch has lost
    something, ``PolicyError`` where it is not for them to decide, and ``SecondNeeded`` where it takes two, and this was
    the first.
    """
    with host.open_for_writing(what) as repo:
        for attempt in range(1, _MAX_TRIES + 1):
            try:
                return _try_decision(host, repo, what, act, by, mark)
            except HeadMoved:
                if attempt == _MAX_TRIES or gathers is None:
                    raise
                host.show_message("somebody committed meanwhile; once more, on the new commit")
                _empty_collected(gathers)
    raise AssertionError("unreachable")


def _empty_collected(gathered: Sequence[object]) -> None:
    for each in gathered:
        if isinstance(each, list):
            each.clear()
        elif is_dataclass(each) and not isinstance(each, type):
            fresh = type(each)()
            for one in fields(each):
                setattr(each, one.name, getattr(fresh, one.name))


def _try_decision(
    host: Host,
    repo: Repository,
    what: str,
    act: Callable[[DecisionContext], Decision | None],
    by: str | None,
    mark: str,
) -> str | None:
    snapshot = Snapshot(repo, repo.read_head())
    if what != RECOVER_COMMAND:
        refuse_lost_rows(host.layout, repo, snapshot)
        refuse_changed_files(host, snapshot)
    now = host.clock.now().replace(microsecond=0)
    decision = new_run_id(now)
    right = find_authorization(host, snapshot, decision, by or current_user(), person=by is None)

    def fresh() -> Context:
        context = make_context(
            host, repo, snapshot, agent="user", now=now, run_id=decision,
            event={"id": decision, "kind": "decision", "name": what, "payload": None}, dry_run=False,
            on_log=host.show_message, run_script=_refuse_script,
        )  # fmt: skip
        context.cards.prove = right.sign_settlement
        return context

    if what != CONFIG_COMMAND:
        right.require_reviewer()
    desk = DecisionContext(host, repo, snapshot, fresh(), right.by, right, fresh)
    decided = act(desk)
    if decided is None:
        return None
    right.require_allowed(desk.context, decided.files)
    marks = [(mark, decision), ("By", desk.by), ("Clock", format_iso(now))]
    first = _stage_first_of_two(desk, decided, what)
    if first is not None:
        desk, decided = first
    desk.context.log_action("decision", f"{decided.message} (by {desk.by})")
    signs = right.by_person and right.rules.is_restricted and not right.is_free_for_all(desk.context, decided.files)
    signs = signs and decided.merged_commit is None  # what a merge brings was signed where it was decided
    commit = draft.commit_draft(
        host,
        repo,
        snapshot,
        desk.context,
        decided.message,
        [*marks, *decided.trailers],
        decided.files,
        decided.local_moves,
        right.make_signature_trailers if signs else None,
        decided.edited_files,
        decided.merged_commit,
    )
    if first is not None:
        raise SecondNeeded(dict(decided.trailers)[AGREEMENT_TRAILER], commit)
    return commit


def _stage_first_of_two(desk: DecisionContext, decided: Decision, what: str) -> tuple[DecisionContext, Decision] | None:
    """Where the whole takes two and this is the first: what is committed instead. None: it may be done."""
    right, context = desk.authorization, desk.context
    effects = right.find_effects(context, decided.files) if right.rules.two_person is not None else []
    if not right.effects_of_one(effects):
        return None
    if "Proposal" in dict(decided.trailers):  # an agreement to one would change what it was examined with
        raise PolicyError(
            "other reviewers, or another amount, take two; a proposal is approved by one",
            remedy="Edit config.yaml; then both: cleared config approve.",
        )
    card = right.agreement_card(context, decided.subject or (what,), f"{desk.by} has decided, and it takes two: {what}")
    if right.has_agreement(card, effects):
        context.cards.resolve_card(card.id, format_iso(context.now), desk.by, "agreed")
        return None
    instead = desk.with_empty_draft()
    right.stage_agreement(instead.context, card, effects, decided.message, {})
    return instead, Decision(first_of_two_decided(decided.message), trailers=((AGREEMENT_TRAILER, card.id),))


def _refuse_script(name: str, args: object) -> None:
    raise PolicyError("a decision runs no script")
