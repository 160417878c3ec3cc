"""What this clone would push as it is, where nothing is to be done again: nobody is to get what nobody answered for."""

from __future__ import annotations

from cleared.changes.audit.own_commits import can_be_judged_apart, is_carried_on
from cleared.changes.audit.provenance import find_unexplained_commits
from cleared.changes.decisions.signatures import read_parents
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.domains.renamed_records import WorkConflict
from cleared.git import Repository, Snapshot


def can_push_as_it_is(host: Host, repo: Repository, own: Snapshot, theirs: str | None) -> bool:
    """Whether a check names no commit up to ``own`` that others do not have. ``theirs``: what they have; None: nothing.

    False for merges of git where others have something: what they join is done again on top of that. Raises
    ``WorkConflict`` for others, such as a commit by hand that changed records.
    """
    since, worth = theirs, LineWorth(host, own)
    if theirs is not None:
        if is_carried_on(host, repo, own, worth, theirs):
            return True
        since = theirs if can_be_judged_apart(host, repo, own, worth, theirs) else None
    out = repo.git.run("rev-list", str(own.commit), *([f"^{theirs}"] if theirs else []))
    unpushed = {*out.decode("ascii").split()}
    named = [each for each in find_unexplained_commits(host, repo, own, since) if each[0] in unpushed]
    found = [violation for commit, violation in named if theirs is None or len(read_parents(repo, commit)) < 2]
    if found:
        first, more = found[-1], f"; and {len(found) - 1} more" if found[1:] else ""
        raise WorkConflict(
            f"{first.message}{more}; nothing is pushed", place=first.place, remedy=f"{first.remedy} Then cleared sync."
        )
    return not named
