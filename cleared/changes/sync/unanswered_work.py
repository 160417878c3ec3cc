"""What this clone would push as it is, where nothing is to be done again: nobody is to get what nobody answered for."""

from __future__ import annotations

from cleared.changes.audit.own_commits import can_be_judged_apart, is_carried_on
from cleared.changes.audit.provenance import find_unexplained_commits
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.domains.renamed_records import WorkConflict
from cleared.git import Repository, Snapshot


def refuse_unanswered(host: Host, repo: Repository, own: Snapshot, theirs: str | None) -> None:
    """Raises ``WorkConflict`` where a check names a commit up to ``own`` that others do not have, such as one by hand
    that changed records. ``theirs``: what they have; None: nothing."""
    since, worth = theirs, LineWorth(host, own)
    if theirs is not None:
        if is_carried_on(host, repo, own, worth, theirs):
            return
        since = theirs if can_be_judged_apart(host, repo, own, worth, theirs) else None
    out = repo.git.run("rev-list", str(own.commit), *([f"^{theirs}"] if theirs else []))
    unpushed = {*out.decode("ascii").split()}
    found = [violation for commit, violation in find_unexplained_commits(host, repo, own, since) if commit in unpushed]
    if found:
        first, more = found[-1], f"; and {len(found) - 1} more" if found[1:] else ""
        raise WorkConflict(
            f"{first.message}{more}; nothing is pushed", place=first.place, remedy=f"{first.remedy} Then cleared sync."
        )
