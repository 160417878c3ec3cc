"""What an engine changed in its clone, taken over: to the gate, onto a branch, or not at all. Nothing becomes live."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError
from cleared.base.short_text import list_first
from cleared.base.terminal import escape_text
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import CYCLE_NOTE
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.gate.proposals.author import Author
from cleared.gate.proposals.submission import propose_changes
from cleared.review.branch_merge import CYCLE_BRANCHES
from cleared.work.cycles.consensus import BACKUP, CONSENSUS
from cleared.work.loop.kept_branch import keep_on_branch, make_branch_card
from cleared.work.loop.private_clone import FileChange, PrivateClone, sort_change

_OWN_FILES = frozenset({CONSENSUS, BACKUP})
_MOST_NAMES = 20


class TakenChanges(Struct):
    """What became of one cycle's changes: ids, a branch, and notes for the log and the card. ``problem``: why nothing
    of them could be taken over."""

    problem: str = ""
    proposal: str | None = None
    branch: str | None = None
    refused: list[str] = []
    notes: list[str] = []


def take_changes(host: Host, clone: PrivateClone, name: str, author: str) -> TakenChanges:
    """Take over what was changed in the clone. ``name``: of the cycle (``claude-0007``); ``author``: who made it.

    What the gate or a budget refuses goes onto the branch, with the reason on a card. Raises ``BusyError`` where the
    workspace stays locked.
    """
    taken = TakenChanges()
    proposable: dict[str, bytes | None] = {}
    plain: dict[str, bytes | None] = {}
    for change in clone.list_changes(ignore=_OWN_FILES):
        fate = "refused" if change.problem else sort_change(host, change.path)
        if fate == "refused":
            taken.refused.append(_describe_refusal(change))
        else:
            (proposable if fate == "proposable" else plain)[change.path] = change.new
    if proposable:
        try:
            proposal, _ = propose_changes(
                host,
                [],
                texts=proposable,
                message=f"Made by the AI cycle {name}.",
                author=Author(author, is_human=False),
            )
            taken.proposal = proposal.id
            host.report_step("cycle-proposed")
        except ClearedError as error:
            taken.notes.append(f"not proposed: {error}")
            plain |= proposable
    if plain:
        _keep_on_branch(host, clone, name, author, plain, taken)
    if taken.refused:
        taken.notes.append(f"not taken over: {list_first(taken.refused, _MOST_NAMES)}")
    if plain or taken.notes:
        _stage_cards(host, name, author, taken, plain)
    return taken


def leave_note(host: Host, name: str, author: str, text: str) -> list[str]:
    """Make a card with something that a person should know of a cycle; why that could not be done, else nothing."""
    try:
        _stage_cards(host, name, author, TakenChanges(notes=[text]), {})
    except ClearedError as error:
        return [f"the card could not be made: {error.message}"]
    return []


def _describe_refusal(change: FileChange) -> str:
    shown = escape_text(change.path)  # whoever chose the name may have chosen what no file of the books can hold
    return f"{shown} ({change.problem})" if change.problem else shown


def _keep_on_branch(
    host: Host, clone: PrivateClone, name: str, author: str, files: Mapping[str, bytes | None], taken: TakenChanges
) -> None:
    clean = {}
    for path, content in files.items():
        if content is not None and host.redactor.find_secrets(content.decode("utf-8", "replace")):
            taken.refused.append(f"{path} (it holds a secret)")
        else:
            clean[path] = content
    if not clean:
        return
    taken.branch = f"{CYCLE_BRANCHES}{name}"
    keep_on_branch(host, taken.branch, clone.base, clean, author=author, message=f"cycle: what {name} changed")
    host.report_step("cycle-branch-made")


def _stage_cards(host: Host, name: str, author: str, taken: TakenChanges, files: Mapping[str, bytes | None]) -> None:
    def stage(decision_context: DecisionContext) -> Decision | None:
        if taken.branch is not None:
            card = make_branch_card(host, decision_context.repo, taken.branch, name, files, taken.notes)
        else:
            card = Card(
                card_id(CYCLE_NOTE.name, name, *taken.notes),
                CYCLE_NOTE.name,
                f"{name}: {taken.notes[0]}"[:200],
                format_iso(decision_context.context.now),
                None,
                None,
                None,
                {"notes": taken.notes},
            )
        is_new = decision_context.context.cards.add_card(card)
        return Decision(commit_messages.cycle_recorded(name)) if is_new else None

    commit_decision(host, f"cycle {name}", stage, by=author)
