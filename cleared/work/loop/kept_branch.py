"""Files that a program changed and that wait for a person: on a branch of their own, with a card. Nothing runs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.terminal import count_noun
from cleared.cards.card import Card, card_id
from cleared.cards.kinds import BRANCH, CYCLE_NOTE
from cleared.changes.host import Host
from cleared.gate.program_changes import sort_change
from cleared.git import Author, Repository, Snapshot, parse_parents
from cleared.git.side_branch import commit_to_branch, find_branch

MAX_LISTED: Final = 200
"""Paths that a card names; ``cleared queue show`` reads all of them from the branch."""


def keep_on_branch(
    host: Host, branch: str, base: str, files: Mapping[str, bytes | None], *, author: str, message: str
) -> None:
    """Make the branch with one commit on ``base``. ``files``: path → content, None where it is removed.

    Nothing is done where it is there, just so: somebody made it who was killed. Raises ``WorkspaceError`` where it is
    there with something else on it, ``BusyError`` where the workspace stays locked.
    """
    with host.open_for_writing(f"branch {branch}") as repo:
        if not _has_branch(repo, branch, base, files):
            who = Author(author, host.config.git.author_email)
            commit_to_branch(repo, branch, base, files, who, host.clock.now(), message)


def make_branch_card(
    host: Host, branch: str, commit: str, name: str, paths: Iterable[str], notes: list[str], *, label: str = ""
) -> Card:
    """The card of a branch: one that merges it, or a note where all on it is for the gate. ``name``: of what made it;
    ``label``: the same in words."""
    changed, label = sorted(paths), label or name
    kind = BRANCH if any(sort_change(host, path) != "proposable" for path in changed) else CYCLE_NOTE
    id_ = card_id(kind.name, name, commit)
    title = f"{label} changed {count_noun(len(changed), 'file')}; look first: cleared queue show {id_}"
    if kind is CYCLE_NOTE:
        title = f"{label} made a change that was not proposed; it is on the branch {branch}"
    if not changed:
        title = f"{label}: {notes[0]}"[:200]
    details: dict[str, Any] = {"branch": branch, "commit": commit, "files": changed[:MAX_LISTED]}
    if len(changed) > MAX_LISTED:
        details["more_files"] = len(changed) - MAX_LISTED
    return Card(id_, kind.name, title, format_iso(host.clock.now()), None, None, None, details | {"notes": notes})


def _has_branch(repo: Repository, branch: str, base: str, files: Mapping[str, bytes | None]) -> bool:
    """Whether the branch is there with just this one commit."""
    tip = find_branch(repo, branch)
    if tip is None or parse_parents(repo.objects.read_object(tip)[1]) != [base]:
        return False
    old, new = Snapshot(repo, base), Snapshot(repo, tip)
    before, after = old.list_entries(), new.list_entries()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    return changed == set(files) and all(
        (new.read_file(path) if path in after else None) == content for path, content in files.items()
    )
