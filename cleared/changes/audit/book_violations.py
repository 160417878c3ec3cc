"""Every violation in the books: of the last commit, or of a working tree that is another."""

from __future__ import annotations

from collections.abc import Callable

from cleared.base.errors import Place, WorkspaceError
from cleared.books.index.journal_index import open_index
from cleared.books.ledger.checks import check_against_commit, check_books
from cleared.books.opened_books import open_books
from cleared.changes.audit.check_record import describe_check, is_known_right, remember_right
from cleared.changes.audit.provenance import find_unknown_origins
from cleared.changes.book_sources import CommittedSource, WorkingSource
from cleared.changes.host import Host
from cleared.changes.session import compare_with_commit
from cleared.changes.unfinished_merge import explain_unfinished, find_collisions
from cleared.domains.violations import Violation
from cleared.git import Repository, Snapshot


def find_violations(host: Host) -> list[Violation]:
    """Invariants, files that differ from HEAD, commits of unknown origin. Raises ``BusyError``."""
    with compare_with_commit(host, "journal check") as (repo, snapshot, different):
        if not different:
            return _check_unchanged_books(host, repo, snapshot)
        head_books, head_bank = open_books(host.layout, CommittedSource(snapshot))
        unfinished = explain_unfinished(repo, host.layout)
        if unfinished is not None:
            colliding = find_collisions(host.root, host.layout)
            violations = [_describe_error(error, "provenance") for error in colliding or [unfinished]]
            violations += _include_unreadable(lambda: check_books(head_books, head_bank))
            return violations + find_unknown_origins(host, repo, snapshot)
        books, bank = open_books(host.layout, WorkingSource(host))
        months = sorted({*books.list_months(), *head_books.list_months()})
        violations = _include_unreadable(lambda: check_books(books, bank))
        violations += _include_unreadable(lambda: check_against_commit(books, CommittedSource(snapshot), months))
        named = {v.place.file for v in violations if v.place}
        for d in different:
            if d.path not in named:
                violations.append(
                    Violation(
                        "unchanged",
                        f"the file is {d.kind} compared with the last commit",
                        f"Look with git diff; restore it with git checkout -- {d.path}.",
                        Place(d.path),
                    )
                )
        return violations + find_unknown_origins(host, repo, snapshot)


def _check_unchanged_books(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """The violations of a commit that the working tree is equal to. Nothing is judged again that was right before."""
    if is_known_right(host, repo, snapshot):
        return []
    description = describe_check(host, repo, snapshot)
    books, bank = open_books(host.layout, CommittedSource(snapshot))
    index = open_index(host.layout, snapshot, host.decimal_places)
    violations = _include_unreadable(lambda: check_books(books, bank, index.add_month))
    violations += find_unknown_origins(host, repo, snapshot)
    if not violations and describe_check(host, repo, snapshot) == description:  # nothing has changed meanwhile
        remember_right(host, description)
    return violations


def find_committed_violations(host: Host) -> list[Violation]:
    """Every violation in the books of the last commit, whatever lies in the working tree: what a card can be about."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        books, bank = open_books(host.layout, CommittedSource(snapshot))
        return _include_unreadable(lambda: check_books(books, bank)) + find_unknown_origins(host, repo, snapshot)


def _include_unreadable(look: Callable[[], list[Violation]]) -> list[Violation]:
    """What a check finds; a file that cannot be read at all is a finding, too."""
    try:
        return look()
    except WorkspaceError as e:
        return [_describe_error(e, "format")]


def _describe_error(error: WorkspaceError, check: str) -> Violation:
    return Violation(check, error.message, error.remedy or "Restore the file.", error.place)
