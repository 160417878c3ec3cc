"""The one place where a person's decision becomes a commit: with a run's draft and commit, without a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError
from cleared.changes import draft
from cleared.changes.commit_messages import CommitSubject, first_of_two_decided
from cleared.changes.decisions.authorization import AGREEMENT_TRAILER, Authorization, SecondNeeded, find_authorization
from cleared.changes.host import Host, current_user
from cleared.changes.lost_rows import refuse_lost_rows
from cleared.changes.session import make_context, new_run_id, refuse_changed_files
from cleared.git import HeadMoved, LocalMove, Repository, Snapshot, list_made_commits
from cleared.primitives.context import Context
from cleared.trust.device_signing import current_device
from cleared.trust.keys import KeyLocked

UNDO_TRAILER: Final = "Cards"
"""The trailer of a decision that ``queue undo`` can undo: the cards that it settled and the entries it was about."""

LATER_TRAILER: Final = "Later"
"""The trailer of a commit that put cards behind the others: their ids."""

NAMING_TRAILERS: Final = (UNDO_TRAILER, AGREEMENT_TRAILER, LATER_TRAILER)
"""Those that name cards and records."""

REVERTS: Final = "Reverts"
"""The trailer of a decision that takes back a run: its id, and as what it was named."""

SHOWN_TRAILER: Final = "Shown"
"""The trailer with a digest of what a person was shown before a passkey signed the decision."""

CONFIG_COMMAND: Final = "config"
"""The command that changes settings. Whether it takes a reviewer depends on which setting it changes."""

RECOVER_COMMAND: Final = "recover"
"""The command that brings back lost rows: the only one that may run while the branch lacks committed rows."""

_MENDING_COMMANDS: Final = (RECOVER_COMMAND, "trust")
"""The commands, beside ``CONFIG_COMMAND``, that are of use where no settings are approved."""

_MAX_TRIES: Final = 3


class DecisionContext(Struct, frozen=True, eq=False):
    """What a decision works on: the locked repository, its last commit, and a context to stage changes in."""

    host: Host
    repo: Repository
    snapshot: Snapshot
    context: Context
    by: str
    authorization: Authorization
    make_context: Callable[[], Context]
    """Makes another context on the same commit, with nothing staged."""

    def with_empty_draft(self) -> DecisionContext:
        """The same with nothing staged, to try something: its changes are not committed."""
        return replace(self, context=self.make_context())


class Decision(Struct, frozen=True, eq=False):
    """What a decision commits beside what it staged.

    ``message``: the commit's subject. ``files``: path → content (None: removed). ``subject``: what two reviewers
    agree to where the decision as a whole takes two (default: the command). ``edited_files``: files of which a working
    copy that somebody has edited stays.
    """

    message: CommitSubject
    files: Mapping[str, bytes | None] = {}
    trailers: tuple[tuple[str, str], ...] = ()
    local_moves: tuple[LocalMove, ...] = ()
    subject: tuple[str, ...] = ()
    edited_files: tuple[str, ...] = ()
    merged_commit: str | None = None
    """Another commit that the decision brings into the history; it is a parent of this one then."""


def commit_decision(
    host: Host,
    command: str,
    stage: Callable[[DecisionContext], Decision | None],
    *,
    by: str | None = None,
    mark: str = "Decision",
    collects: Sequence[list[Any] | Struct] | None = None,
) -> str | None:
    """Make one decision, as one commit; its id, or None where there was nothing to commit.

    ``command`` names it in messages and in its event. ``stage`` stages the changes and gives the ``Decision``.
    ``collects``: lists and dataclasses that ``stage`` fills. Where somebody commits meanwhile they are emptied and
    ``stage`` is called again on the new commit; without them ``HeadMoved`` is raised.
    ``by``: what decides where no person does (a timeout, a check, the author of a proposal). ``mark``: the trailer
    that holds the decision's id.

    Raises what ``stage`` raises, with nothing changed; ``WorkspaceError`` where managed files differ from the last
    commit or committed rows are lost; ``PolicyError`` where this user may not decide it; ``SecondNeeded`` where it
    takes two reviewers and this was the first.

    Where the approval key has a passphrase, it is asked for while nothing is locked, and ``stage`` is called again.
    """
    try:
        return _commit_locked(host, command, stage, by, mark, collects)
    except KeyLocked as locked:
        locked.key.unlock()
        _empty_collected(collects or ())
        return _commit_locked(host, command, stage, by, mark, collects)


def _commit_locked(
    host: Host,
    command: str,
    stage: Callable[[DecisionContext], Decision | None],
    by: str | None,
    mark: str,
    collects: Sequence[list[Any] | Struct] | None,
) -> str | None:
    with host.open_for_writing(command) as repo:
        for attempt in range(1, _MAX_TRIES + 1):
            try:
                return _try_decision(host, repo, command, stage, by, mark)
            except HeadMoved:
                if attempt == _MAX_TRIES or collects is None:
                    raise
                host.show_message("somebody committed meanwhile; once more, on the new commit")
                _empty_collected(collects)
    raise AssertionError("unreachable")


def _empty_collected(collected: Sequence[list[Any] | Struct]) -> None:
    for each in collected:
        if isinstance(each, list):
            each.clear()
            continue
        fresh = type(each)()
        for name in each.__struct_fields__:
            setattr(each, name, getattr(fresh, name))


def _try_decision(
    host: Host,
    repo: Repository,
    command: str,
    stage: Callable[[DecisionContext], Decision | None],
    by: str | None,
    mark: str,
) -> str | None:
    snapshot = Snapshot(repo, repo.read_head())
    if command != RECOVER_COMMAND:
        refuse_lost_rows(host.layout, repo, snapshot)
        refuse_changed_files(host, snapshot)
    device = current_device() if by is None else None
    now = (device.now if device is not None else host.clock.now()).replace(microsecond=0)
    decision = new_run_id(now)
    user = device.name if device is not None else current_user()
    right = find_authorization(host, snapshot, decision, by or user, person=by is None)

    def fresh() -> Context:
        context = make_context(
            host,
            repo,
            snapshot,
            agent="user",
            now=now,
            run_id=decision,
            event={"id": decision, "kind": "decision", "name": command, "payload": None},
            dry_run=False,
            on_log=host.show_message,
            run_script=_refuse_script,
        )
        context.cards.prove = right.sign_settlement
        return context

    if command != CONFIG_COMMAND:
        right.require_reviewer()
        if by is None and not command.startswith(_MENDING_COMMANDS):
            host.refuse_unapproved_settings()
    decision_context = DecisionContext(host, repo, snapshot, fresh(), right.by, right, fresh)
    decided = stage(decision_context)
    if decided is None:
        return None
    right.require_allowed(decision_context.context, decided.files)
    _refuse_uncounted(decision_context)
    marks = [(mark, decision), ("By", decision_context.by), ("Clock", format_iso(now))]
    if device is not None and device.shown:
        marks.append((SHOWN_TRAILER, device.shown))
    first = _stage_first_of_two(decision_context, decided, command)
    if first is not None:
        decision_context, decided = first
    decision_context.context.log_action("decision", f"{decided.message} (by {decision_context.by})")
    signs = (right.rules.is_restricted or device is not None) and _may_be_signed(decision_context, decided)
    plan = draft.CommitPlan(
        decided.message,
        [*marks, *decided.trailers],
        decided.files,
        decided.local_moves,
        right.make_signature_trailers if signs else None,
        decided.edited_files,
        decided.merged_commit,
        host.command_key if by in (None, current_user()) else "",  # not for what a check decides
    )
    commit = draft.commit_draft(host, repo, snapshot, decision_context.context, plan)
    if first is not None:
        raise SecondNeeded(dict(decided.trailers)[AGREEMENT_TRAILER], commit)
    return commit


def _refuse_uncounted(decision_context: DecisionContext) -> None:
    """Raises ``PolicyError`` where the answer to a card would count in this clone alone."""
    right = decision_context.authorization
    if not (right.by_person and decision_context.context.cards.resolved):
        return
    if right.books is not None and right.books.counts_alone:
        raise PolicyError(
            "this clone is not trusted on this machine yet, so no other clone would count what is decided here",
            remedy="Say whom you trust (cleared trust), then decide.",
        )


def _may_be_signed(decision_context: DecisionContext, decided: Decision) -> bool:
    """Whether a person decides here what not everybody may; what a merge brings was signed where it was decided."""
    right = decision_context.authorization
    is_free = right.is_free_for_all(decision_context.context, decided.files)
    return right.by_person and not is_free and decided.merged_commit is None


def _stage_first_of_two(
    decision_context: DecisionContext, decided: Decision, command: str
) -> tuple[DecisionContext, Decision] | None:
    """Where the whole takes two and this is the first: what is committed instead. None: it may be done."""
    right, context = decision_context.authorization, decision_context.context
    effects = right.find_effects(context, decided.files) if right.rules.two_person is not None else []
    if not right.effects_of_one(effects):
        return None
    if "Proposal" in dict(decided.trailers):  # an agreement to one would change what it was examined with
        raise PolicyError(
            "other reviewers, or another amount, take two; a proposal is approved by one",
            remedy="Edit config.yaml; then both: cleared config approve.",
        )
    card = right.agreement_card(
        context, decided.subject or (command,), f"{decision_context.by} has decided, and it takes two: {command}"
    )
    if right.has_agreement(card, effects):
        context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, "agreed")
        return None
    instead = decision_context.with_empty_draft()
    right.stage_agreement(instead.context, card, effects, decided.message, {})
    return instead, Decision(first_of_two_decided(decided.message), trailers=((AGREEMENT_TRAILER, card.id),))


def _refuse_script(name: str, args: object) -> None:
    raise PolicyError("a decision runs no script")


@contextmanager
def undo_unless_decided(undo: Callable[[], object]) -> Iterator[None]:
    """What is written outside the commit, before a decision is committed: call ``undo`` where the block ends with an
    error, or Ctrl-C, and the decision was not made."""
    before = list_made_commits()
    try:
        yield
    except BaseException as error:
        if list_made_commits() == before or isinstance(error, SecondNeeded):
            undo()
        raise


def require_commit(commit: str | None) -> str:
    """The commit of a decision that cannot come to nothing."""
    assert commit is not None
    return commit
