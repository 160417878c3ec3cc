"""What an engine changed in its clone, taken over: to the gate, onto the branch, or not at all. None of it is live."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, WorkspaceError
from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun, escape_text
from cleared.cards.card import Card, card_id, list_texts
from cleared.cards.kinds import BRANCH, CYCLE_NOTE
from cleared.changes import commit_messages
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.gate.program_changes import sort_change
from cleared.gate.proposals.author import Author as Proposer
from cleared.gate.proposals.submission import propose_changes
from cleared.git import Author, Snapshot
from cleared.git.side_branch import find_branch, move_branch, write_commit
from cleared.git.text_merge import merge_versions
from cleared.work.cycles.consensus import BACKUP, CONSENSUS
from cleared.work.cycles.cycle_handover import Handover, MadeBranch, note_handover
from cleared.work.cycles.guiding_texts import list_unknown_texts, take_text
from cleared.work.cycles.pending_work import PendingWork, commit_start, read_pending
from cleared.work.loop.kept_branch import make_branch_card
from cleared.work.loop.private_clone import FileChange, PrivateClone

_OWN_FILES = frozenset({CONSENSUS, BACKUP})
_MOST_NAMES = 20
_MOST_NOTES = 50
"""Of all cycles together, on a card."""


class TakenChanges(Struct):
    """What became of one cycle's changes: ids, a branch, and notes for the log and the card. ``problem``: why nothing
    of them could be taken over."""

    problem: str = ""
    proposal: str | None = None
    branch: str | None = None
    refused: list[str] = []
    notes: list[str] = []


def take_changes(host: Host, clone: PrivateClone, handover: Handover) -> TakenChanges:
    """Take over what was changed in the clone. What the gate or a budget refuses goes onto the branch, with the reason
    on its card.

    Each step finds out whether it was done already. Raises ``BusyError`` where the workspace stays locked.
    """
    taken, changes, gated = TakenChanges(), dict[str, FileChange](), set[str]()
    for change in clone.list_changes(ignore=_OWN_FILES):
        fate = "refused" if change.problem else sort_change(host, change.path)
        if fate == "refused":
            taken.refused.append(_describe_refusal(change))
        else:
            changes[change.path] = change
            gated |= {change.path} if fate == "proposable" else set()
    pending, made = read_pending(host), handover.made
    if made is not None and pending.tip != made.commit:  # it was cut off, and a person may have decided meanwhile
        _move_branch(host, handover, made.branch, made.commit, made.old)
        pending, made = read_pending(host), None
    if made is None:
        proposed = _propose(host, handover, pending, {path: changes[path].new for path in gated}, taken)
        waiting = {path: change for path, change in changes.items() if path not in proposed}
        for path, change in list(waiting.items()):
            if change.new is not None and host.redactor.find_secrets(change.new.decode("utf-8", "replace")):
                taken.refused.append(f"{path} (it holds a secret)")
                del waiting[path]
        if taken.refused:
            taken.notes.append(f"not taken over: {list_first(taken.refused, _MOST_NAMES)}")
        made = _make_commit(host, clone, handover, pending, waiting, proposed, taken)
        if made is not None:
            note_handover(host, replace(handover, made=made))
            if not _move_branch(host, handover, made.branch, made.old, made.commit):
                raise WorkspaceError(
                    f"somebody moved the branch {made.branch} just now", remedy=f"It is in the commit {made.commit}."
                )
    if made is not None:
        taken = TakenChanges("", made.proposal, made.branch, made.refused, made.notes)
        host.report_step("cycle-branch-made")
        _ask_about_branch(host, handover, made)
    elif taken.notes:
        _stage_note(host, handover.name, handover.author, taken.notes)
    _take_guiding_texts(host, changes)
    return taken


def leave_note(host: Host, name: str, author: str, text: str) -> list[str]:
    """Make a card with something that a person should know of a cycle; why that could not be done, else nothing."""
    try:
        _stage_note(host, name, author, [text])
    except ClearedError as error:
        return [f"the card could not be made: {error.message}"]
    return []


def _describe_refusal(change: FileChange) -> str:
    shown = escape_text(change.path)  # whoever chose the name may have chosen what no file of the books can hold
    return f"{shown} ({change.problem})" if change.problem else shown


def _propose(
    host: Host, handover: Handover, pending: PendingWork, changes: Mapping[str, bytes | None], taken: TakenChanges
) -> set[str]:
    """Propose what is for the gate, as one with what cycles have left for it before; the paths of the proposal. Where
    the gate or a budget refuses that, without; where it refuses that, too, it is noted."""
    if not changes:
        return set()
    before = {path: text for path, text in pending.all_files.items() if sort_change(host, path) == "proposable"}
    all_of_it = {**before, **changes}
    refusal: ClearedError | None = None
    for texts in [all_of_it, changes] if all_of_it != changes else [changes]:
        try:
            proposal, _ = propose_changes(
                host,
                [],
                texts=texts,
                message=f"Made by the AI cycle {handover.name}.",
                author=Proposer(handover.author, is_human=False),
                instead_of=pending.proposals if texts is all_of_it else (),
            )
        except ClearedError as error:
            refusal = error
        else:
            taken.proposal = proposal.id
            host.report_step("cycle-proposed")
            return set(texts)
    taken.notes.append(f"not proposed: {refusal}")
    return set()


def _make_commit(
    host: Host,
    clone: PrivateClone,
    handover: Handover,
    pending: PendingWork,
    waiting: Mapping[str, FileChange],
    proposed: Collection[str],
    taken: TakenChanges,
) -> MadeBranch | None:
    """Write the commit that the branch is moved to; None where nothing on it is new. ``waiting``: what was changed
    and is not ``proposed``."""
    files = {path: content for path, content in pending.files.items() if path not in proposed}
    notes, conflicts = list(taken.notes), []
    who, now = Author(handover.author, host.config.git.author_email), host.clock.now()
    with host.open_for_writing(f"branch {pending.branch}") as repo:
        head = Snapshot(repo, pending.head)
        for path, change in waiting.items():
            current = pending.all_files[path] if path in pending.all_files else head.read_file(path)
            merged, fits = merge_versions(change.old, current, change.new)
            if fits:
                files[path] = merged
            else:
                conflicts.append(path)
        files = {path: content for path, content in files.items() if head.read_file(path) != content}
        if files == pending.files and not conflicts:
            return None
        if not files and not notes and not conflicts:
            return MadeBranch(pending.branch, pending.tip or "", pending.tip, [], [], [], taken.proposal, [])
        parents = [pending.head, *([pending.tip] if pending.tip is not None else [])]
        if conflicts:
            theirs = {path: waiting[path].new for path in conflicts}
            parents.append(write_commit(repo, [clone.base], theirs, who, now, f"cycle: {handover.name} by itself"))
        for paths, commit in ((pending.conflicts, pending.tip or ""), (conflicts, parents[-1])):
            notes += [f"you changed {path} meanwhile, and yours stays: git show {commit[:12]}:{path}" for path in paths]
        commit = write_commit(repo, parents, files, who, now, f"cycle: what {handover.name} changed")
    details = pending.card.details if pending.card is not None else {}
    before = [each for each in list_texts(details, "cycles") if each != handover.name]
    return MadeBranch(
        branch=pending.branch,
        commit=commit,
        old=pending.tip,
        paths=sorted(files),
        notes=[*dict.fromkeys([*list_texts(details, "notes"), *notes])][-_MOST_NOTES:],
        cycles=[*before, handover.name],
        proposal=taken.proposal,
        refused=taken.refused,
    )


def _move_branch(host: Host, handover: Handover, branch: str, old: str | None, new: str | None) -> bool:
    """Move the branch from one commit to another, None where there is none; False where it names a third by now."""
    with host.open_for_writing(f"branch {branch}") as repo:
        now = find_branch(repo, branch)
        if now == old != new:
            who = Author(handover.author, host.config.git.author_email)
            move_branch(repo, branch, new, old, who, host.clock.now())
    return now in (old, new)


def _ask_about_branch(host: Host, handover: Handover, made: MadeBranch) -> None:
    """Make the card of the branch, in the place of the one that it had; none where nothing is on it any more."""
    new, label, said = None, handover.name, f"{handover.name} took it back"
    if len(made.cycles) > 1:
        label = f"{count_noun(len(made.cycles), 'AI cycle')} ({made.cycles[0]} to {handover.name})"
    if made.commit != made.old:
        new = make_branch_card(host, made.branch, made.commit, handover.name, made.paths, made.notes, label=label)
        new = replace(new, details={**new.details, "cycles": made.cycles})
        said = f"grew: {new.id}"

    def stage(decision_context: DecisionContext) -> Decision | None:
        context, changed = decision_context.context, False
        for card in context.cards.open_cards(BRANCH.name, CYCLE_NOTE.name):
            if card.details.get("branch") == made.branch and (new is None or card.id != new.id):
                context.cards.resolve_card(card.id, format_iso(context.now), decision_context.by, said)
                changed = True
        changed |= new is not None and context.cards.add_card(new)
        return Decision(commit_messages.cycle_recorded(handover.name)) if changed else None

    commit_decision(host, f"cycle {handover.name}", stage, by=handover.author)


def _stage_note(host: Host, name: str, author: str, notes: list[str]) -> None:
    def stage(decision_context: DecisionContext) -> Decision | None:
        card = Card(
            card_id(CYCLE_NOTE.name, name, *notes),
            CYCLE_NOTE.name,
            f"{name}: {notes[0]}"[:200],
            format_iso(decision_context.context.now),
            None,
            None,
            None,
            {"notes": notes},
        )
        is_new = decision_context.context.cards.add_card(card)
        return Decision(commit_messages.cycle_recorded(name)) if is_new else None

    commit_decision(host, f"cycle {name}", stage, by=author)


def _take_guiding_texts(host: Host, changes: Mapping[str, FileChange]) -> None:
    """What the cycle wrote for the next one to be told is known here, as its consensus is."""
    if not changes:
        return
    for text in list_unknown_texts(host, commit_start(host)):
        if text.path in changes and changes[text.path].new == text.data:
            take_text(host, text.path, text.data)
