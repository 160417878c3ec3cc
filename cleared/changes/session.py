"""What a run or decision works with: one commit, the books as of it, and a context in which changes are staged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from cleared.approvals.approval_record import CASES, CONFIG, WORKSPACE, record_folder
from cleared.approvals.device_signing import make_token
from cleared.cards.queue_files import CardDraft
from cleared.changes.book_sources import CommittedSource
from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.errors import Place, WorkspaceError
from cleared.importing.drop_folder import ImportSession
from cleared.ledger.checks import check_draft
from cleared.ledger.staged_bank_lines import BankBook
from cleared.ledger.staged_journal import Books
from cleared.ledger.violations import BooksViolated
from cleared.primitives.context import Context, HostCalls
from cleared.primitives.loop_jobs import WorkspaceLoop
from cleared.vcs import Difference, Repository, Snapshot, find_differences, history


def new_run_id(now: datetime) -> str:
    """``20250201T060000Z-1f3a9c``: sortable, unique."""
    return f"{now:%Y%m%dT%H%M%SZ}-{make_token(3)}"


def open_books(host: Host, source: Any) -> tuple[Books, BankBook]:
    """The books and the bank lines in any source."""
    return Books(source, host.layout, host.bounds), BankBook(source, host.layout)


def refuse_changed_files(host: Host, snapshot: Snapshot, agent: str | None = None) -> None:
    """Raises ``WorkspaceError`` where a managed file differs from the commit.

    ``agent``: the agent that is about to run. Of all approvals only its own are compared then, and those that all runs
    share.
    """
    refuse_differences(managed_differences(host, snapshot, agent))


@contextmanager
def compare_with_commit(host: Host, what: str) -> Iterator[tuple[Repository, Snapshot, list[Difference]]]:
    """The last commit, and how the managed files differ from it. ``what`` names the caller, in messages to others.

    Beside a run, commit and files are not of one moment: a difference is looked at again under the writer lock. Raises
    ``BusyError`` where the lock is not free in time.
    """
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        if not managed_differences(host, snapshot):
            yield repo, snapshot, []
            return
    with host.open_unchanging(what) as repo:
        snapshot = Snapshot(repo, repo.read_head())
        yield repo, snapshot, managed_differences(host, snapshot)


def refuse_differences(differences: Sequence[Difference]) -> None:
    """Raises ``WorkspaceError`` where there are any such differences."""
    if differences:
        shown = ", ".join(f"{d.path} ({d.kind})" for d in differences[:5]) + (" …" if len(differences) > 5 else "")
        raise WorkspaceError(
            f"files that only runs and decisions may change differ from the last commit: {shown}",
            place=Place(differences[0].path),
            remedy="Look with git diff and cleared journal check; then restore them (git checkout -- FILE), "
            "or, if the change is meant, commit it yourself.",
        )


def managed_differences(host: Host, snapshot: Snapshot, agent: str | None = None) -> list[Difference]:
    """How the managed files in the working tree differ from the commit: all of them, or those that one agent's run
    uses."""
    prefixes = [p.rstrip("/") for p in host.layout.managed_prefixes()]
    if agent is not None:
        prefixes.remove(host.layout.approvals_dir)
        prefixes += [CONFIG, CASES, WORKSPACE, record_folder(host.layout.scripts_dir),
                     record_folder(host.layout.agent_path(agent))]  # fmt: skip
    differences = find_differences(snapshot, host.root, prefixes)
    return [d for d in differences if d.kind != "untracked" or host.layout.is_managed_file(d.path)]


def make_context(
    host: Host,
    repo: Repository,
    snapshot: Snapshot,
    *,
    agent: str,
    now: datetime,
    run_id: str,
    event: Mapping[str, Any],
    dry_run: bool,
    on_log: Callable[[str], None],
    run_script: Callable[[str, Mapping[str, Any]], Any],
    drop_folder: Path | None = None,
    only: frozenset[str] | None = None,
) -> Context:
    """A new context with nothing staged, which reads the books from ``snapshot`` and bank files from ``drop_folder``
    (default: ``import/``); ``only``: the files of it that can be seen."""
    source = CommittedSource(snapshot)
    books, bank = open_books(host, source)
    today = now.astimezone(ZoneInfo(host.config.business.timezone)).date()
    imports = ImportSession(
        host.layout,
        host.config,
        bank,
        host.decimal_places,
        snapshot.has_file,
        drop_folder,
        only,
        today,
    )
    context = Context(
        run_id=run_id, agent=agent, config=host.config, env=host.env, books=books, bank=bank, imports=imports,
        cards=CardDraft(source, host.layout.queue_dir, host.redactor.redact_text), now=now,
        today=today, dry_run=dry_run, event=event,
        ledger_accounts=host.ledger_accounts, loop=WorkspaceLoop(host.root, host.config),
        host=HostCalls(
            on_log, lambda limit: recent_commits(host, limit), run_script, _check_once(books, bank)
        ),
    )  # fmt: skip
    imports.card = context.stage_card
    return context


def _check_once(books: Books, bank: BankBook) -> Callable[[], None]:
    """``check_books`` as a function that does nothing where nothing was staged since it passed."""
    passed: list[object] = []

    def checked() -> None:
        key = (books.draft_key(), len(bank.new_matches), tuple(bank.new_outcomes.items()), len(bank.new_lines),
               len(bank.new_imports), len(bank.processed_line_ids))  # fmt: skip
        if passed != [key]:
            check_books(books, bank)
            passed[:] = [key]

    return checked


def check_books(books: Books, bank: BankBook) -> None:
    """Raises ``BooksViolated`` with every violation of the books with the draft."""
    violations = check_draft(books, bank)
    if violations:
        raise BooksViolated(violations)


def recent_commits(host: Host, limit: int, rev: str = "HEAD", *, proposed: bool = True) -> list[dict[str, Any]]:
    """The newest commits up to ``rev``; ``proposed``: also those that only propose a change."""
    return [
        {"commit_hash": c.id, "date": format_iso(c.when), "author": c.author, "message": c.subject}
        for c in history.read_log(host.root, limit if proposed else limit * 3 + 50, rev=rev)
        if proposed or "Proposed" not in c.trailers
    ][:limit]
