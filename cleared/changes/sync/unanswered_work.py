"""What this clone would push as it is, where nothing is to be done again: nobody is to get what nobody answered for."""

from __future__ import annotations

from collections.abc import Sequence

from cleared.changes.audit.own_commits import can_be_judged_apart, is_carried_on
from cleared.changes.audit.provenance import find_unexplained_commits
from cleared.changes.host import Host
from cleared.changes.line_worth import LineWorth
from cleared.domains.record_audit import Violation
from cleared.domains.renamed_records import WorkConflict
from cleared.git import Repository, Snapshot


def find_unanswered_commits(
    host: Host, repo: Repository, own: Snapshot, theirs: str | None
) -> list[tuple[str, Violation]]:
    """The commits up to ``own`` that others do not have and a check names, each with what it says: one by hand
    that changed records, or a merge of git. ``theirs``: what others have; None: nothing."""
    since, worth = theirs, LineWorth(host, own)
    if theirs is not None:
        if is_carried_on(host, repo, own, worth, theirs):
            return []
        since = theirs if can_be_judged_apart(host, repo, own, worth, theirs) else None
    out = repo.git.run("rev-list", str(own.commit), *([f"^{theirs}"] if theirs else []))
    unpushed = {*out.decode("ascii").split()}
    return [each for each in find_unexplained_commits(host, repo, own, since) if each[0] in unpushed]


def refuse_unanswered_commits(found: Sequence[tuple[str, Violation]]) -> None:
    """Raises ``WorkConflict`` for the first that was made, where there are any."""
    if found:
        (_, first), more = found[-1], f"; and {len(found) - 1} more" if found[1:] else ""
        raise WorkConflict(
            f"{first.message}{more}; nothing is pushed", place=first.place, remedy=f"{first.remedy} Then cleared sync."
        )
