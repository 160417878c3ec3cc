"""What can be asked of a workspace, as plain data: the command line, RPC and pages show the same answers.

Everything is read from the last commit; nothing here changes anything but to finish a commit that was killed.
Amounts are strings of digits, times UTC ISO 8601.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from cleared.approvals.verification import Approvals
from cleared.audit.check_record import describe_check, is_known_right, remember_right
from cleared.audit.provenance import find_merge_collisions, find_unknown_origins
from cleared.books_index.balances import list_balances
from cleared.books_index.current_books import (
    AccountRow,
    BankRow,
    BusinessFacts,
    read_surroundings,
    remember_current_books,
)
from cleared.books_index.entry_selection import select_entries
from cleared.books_index.journal_index import JournalIndex, open_index
from cleared.cards import queue_files
from cleared.cards.age import overdue_cards
from cleared.cards.card import Card
from cleared.changes.book_sources import CommittedSource, WorkingSource
from cleared.changes.host import Host
from cleared.changes.lost_rows import find_lost_rows
from cleared.changes.session import compare_with_commit, open_books
from cleared.changes.trace import TraceStore
from cleared.clock import format_iso
from cleared.errors import UsageError, WorkspaceError
from cleared.ledger.chart import Chart
from cleared.ledger.checks import check_against_commit, check_books
from cleared.ledger.staged_bank_lines import BankBook
from cleared.ledger.staged_journal import Books
from cleared.ledger.violations import Violation
from cleared.primitives import accounts as account_primitives
from cleared.reports.report_books import ReportBooks
from cleared.runs.approved_scripts import Scripts
from cleared.runs.outcome import card_to_json
from cleared.runs.question_tickets import Questions
from cleared.schema.days import parse_day, parse_month
from cleared.vcs import Repository, Snapshot


@contextmanager
def open_committed_books(host: Host) -> Iterator[tuple[Repository, Snapshot, Books, BankBook]]:
    """The last commit's books."""
    with host.open_for_reading() as repo:
        snapshot = Snapshot(repo, repo.read_head())
        yield (repo, snapshot, *open_books(host, CommittedSource(snapshot)))


def read_agents(host: Host) -> list[dict[str, Any]]:
    """Every agent: its header, whether it is approved, and whether its working copy is another.

    ``state``: approved, starter, not approved, not trusted, quarantined, not committed.
    """
    with open_committed_books(host) as (_, snapshot, _books, _bank):
        names = {p for p in snapshot.list_entries(host.layout.agents_dir) if p.endswith(".py") and p.count("/") == 1}
        folder = host.root / host.layout.agents_dir
        if folder.is_dir():
            names |= {f"{host.layout.agents_dir}/{p.name}" for p in folder.glob("*.py") if not p.name.startswith(".")}
        approvals = Scripts(host, snapshot).approvals
        return [_agent_data(host, snapshot, approvals, path) for path in sorted(names)]


def read_agent(host: Host, name: str) -> dict[str, Any]:
    """One agent, with its source and what is wrong with it. Raises ``UsageError`` where there is none."""
    path = host.layout.agent_path(name)
    with open_committed_books(host) as (_, snapshot, _books, _bank):
        agent = _agent_data(host, snapshot, Scripts(host, snapshot).approvals, path)
        if agent["state"] == "missing":
            names = [a["name"] for a in read_agents(host)]
            raise UsageError(f"there is no agent {name!r}", remedy=f"Known: {', '.join(names) or 'none yet'}.")
        return agent


_STATE_NAMES: Final = {"unapproved": "not approved", "untrusted": "not trusted", "elsewhere": "other books"}


def _agent_data(host: Host, snapshot: Snapshot, approvals: Approvals, path: str) -> dict[str, Any]:
    from cleared.sandbox.construct_lint import lint_script
    from cleared.sandbox.header import parse_header

    head = snapshot.read_file(path)
    full = host.root / path
    work = full.read_bytes() if full.is_file() and not full.is_symlink() else None
    approval = None
    if head is None:
        state = "missing" if work is None else "not committed"
    else:
        standing = approvals.verify_agent(path, head)
        approval = standing.reason
        state = _STATE_NAMES.get(standing.state, standing.state)
    source = (head if head is not None else work or b"").decode("utf-8", errors="replace")
    header, findings = parse_header(source, path, kind="agent")
    findings = [*findings, *lint_script(source, path)] if source else []
    return {
        "name": path.rsplit("/", 1)[1].removesuffix(".py"),
        "title": header.name if header else None,
        "description": header.description if header else None,
        "trigger": list(header.triggers) if header else [],
        "schedule": header.schedule if header else None,
        "watch": list(header.watch) if header else [],
        "event": list(header.event) if header else [],
        "file": path,
        "state": state,
        "edited": head is not None and work != head,
        "approval": approval,
        "findings": [
            {"rule": f.rule, "message": f.message, "place": str(f.place), "remedy": f.remedy} for f in findings
        ],
        "source": source,
    }


def read_runs(host: Host, limit: int = 20, agent: str | None = None) -> list[dict[str, Any]]:
    """The newest runs first; where the traces are gone, what the commits still say of them."""
    runs = [_run_summary(r) for r in TraceStore(host.layout.state_dir).list_runs(limit, agent)]
    if len(runs) < limit or any(r["status"] == "killed" for r in runs):
        in_commits = {r["run_id"]: r for r in _committed_runs(host, limit)}
        runs = [_with_commit_outcome(r, in_commits.pop(r["run_id"], None)) for r in runs]
        runs += [r for r in in_commits.values() if agent in (None, r["agent"])]
    # Several may have begun in one second: those stay in the order they came in, newest first.
    return sorted(runs, key=lambda r: str(r["started_at"]), reverse=True)[:limit]


def _with_commit_outcome(run: dict[str, Any], commit: Mapping[str, Any] | None) -> dict[str, Any]:
    """The run; where it was killed after its commit was made, that is how it ended."""
    if commit is None or run["status"] != "killed":
        return run
    return {**run, **{key: commit[key] for key in ("status", "commits", "message", "error")}}


def _run_summary(run: dict[str, Any]) -> dict[str, Any]:
    return {
        "run_id": run["id"], "agent": run["agent"], "status": run["status"], "started_at": run["started_at"],
        "duration_ms": run["duration_ms"], "message": run["message"], "commits": run["commits"] or [],
        "entries": len(run["entries"] or []), "cards": len(run["cards"] or []),
        "error": (run["error"] or {}).get("message"),
    }  # fmt: skip


def _committed_runs(host: Host, limit: int) -> list[dict[str, Any]]:
    from cleared.vcs import history

    with host.open_for_reading():
        pass
    return [
        {
            "run_id": c.trailers["Run"], "agent": c.trailers.get("Agent", ""),
            "status": "failed" if "Attempt" in c.trailers else "succeeded",
            "started_at": c.trailers.get("Clock", format_iso(c.when)), "duration_ms": None, "message": c.subject,
            "commits": [c.id], "entries": None, "cards": None,
            "error": c.subject if "Attempt" in c.trailers else None,
        }
        for c in history.read_log(host.root, limit * 3, grep="Run: ")
        if "Run" in c.trailers
    ]  # fmt: skip


def read_run(host: Host, run_id: str) -> dict[str, Any]:
    """One run with its calls, by its id, or a beginning or the last part of it that no other run has.

    Raises ``UsageError`` where there is none, or several.
    """
    traces = TraceStore(host.layout.state_dir)
    briefs = {str(b["run_id"]): b for b in _committed_runs(host, 1_000)} if len(run_id) >= 4 else {}
    committed_ids = [i for i in briefs if i.startswith(run_id) or i.endswith(f"-{run_id}")]
    run_ids = sorted({*traces.find_run_ids(run_id), *committed_ids})
    if len(run_ids) > 1 and run_id not in run_ids:
        raise UsageError(
            f"{run_id!r} fits {len(run_ids)} runs: {', '.join(run_ids[:3])}{' …' if len(run_ids) > 3 else ''}",
            remedy="Give more of the id.",
        )
    for identity in [run_id] if run_id in run_ids else run_ids:
        run = traces.find_run(identity)
        if run is not None:
            del run["id"], run["pid"]
            return _with_commit_outcome({"run_id": identity, **run}, briefs.get(identity))
        note = "the trace of this run is not on this machine; its commit is"
        return {**briefs[identity], "calls": [], "more_calls": [], "note": note}
    raise UsageError(f"there is no run {run_id!r}", remedy="cleared run list shows the newest.")


def read_cards(host: Host, status: str = "open") -> list[dict[str, Any]]:
    """The queue, oldest first. ``status``: open, resolved or all. ``overdue``: open for ``review.remind_after``;
    ``held``: why an open question cannot be answered as things are, and what to do."""
    with open_committed_books(host) as (repo, snapshot, _books, _bank):
        cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
        late = {c.id for c in overdue_cards(cards.values(), host.clock.now(), host.config.review.remind_after)}
        hold_errors = Questions(host, repo, snapshot, cards).list_held()
        return [
            card_to_json(c) | {"overdue": c.id in late, "held": hold_errors.get(c.id)}
            for c in cards.values() if status in ("all", c.status)
        ]  # fmt: skip


def read_card(host: Host, text: str) -> dict[str, Any]:
    """One card by its id, the beginning of it, or its entry's id; open ones first. Raises ``UsageError``."""
    with open_committed_books(host) as (repo, snapshot, _books, _bank):
        cards = queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir)
        card = find_card(cards, text)
        late = overdue_cards([card], host.clock.now(), host.config.review.remind_after)
        hold_errors = Questions(host, repo, snapshot, cards).list_held([card])
        return card_to_json(card) | {"overdue": bool(late), "held": hold_errors.get(card.id)}


def find_card(cards: Mapping[str, Card], text: str) -> Card:
    """The card that is meant by that, as ``card`` says. Raises ``UsageError``."""
    fitting = list(queue_files.find_cards(cards.values(), text)) if text else []
    fitting = [c for c in fitting if c.id == text] or [c for c in fitting if c.status == "open"] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{text!r} is the beginning of {len(fitting)} cards", remedy="Write more of the id.")
    raise UsageError(f"there is no card {text!r}", remedy="cleared queue list shows them.")


def iter_journal(
    host: Host, *, month: str | None = None, status: str | None = None, account: int | None = None,
    text: str | None = None, limit: int | None = None,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Entries in the order of their ids, read as they are taken. ``month`` is ``YYYY-MM``. Raises ``UsageError``."""
    with open_journal_index(host) as (index, _):
        yield from select_entries(index, month, status, account, text, limit)


def read_journal(
    host: Host, *, month: str | None = None, status: str | None = None, account: int | None = None,
    text: str | None = None, limit: int | None = None,
) -> list[dict[str, Any]]:  # fmt: skip
    """Entries in the order of their ids. ``month`` is ``YYYY-MM``. Raises ``UsageError``."""
    return list(iter_journal(host, month=month, status=status, account=account, text=text, limit=limit))


def read_balances(
    host: Host, account: int | None = None, *, month: str | None = None, as_of: str | None = None
) -> list[dict[str, Any]]:
    """The trial balance, or one account's balance: ``[{account_id, account_name, account_type, balance}]``."""
    from datetime import date

    day = parse_day(as_of) if as_of else None
    year, number = parse_month(month) if month else (None, None)
    with open_journal_index(host) as (index, books):
        if account is not None and books.chart.find_account(account) is None:
            message, remedy = books.chart.why_not_postable(account, date.min) or ("", "")
            raise UsageError(message, remedy=remedy)
        return list_balances(index, _account_rows(books.chart), account, year=year, month=number, as_of=day)


def count_entries(host: Host) -> int:
    """How many entries the journal has."""
    with open_journal_index(host) as (index, _):
        return index.count_entries()


@contextmanager
def open_journal_index(host: Host) -> Iterator[tuple[JournalIndex, Books]]:
    """The index of the last commit's journal, and the books themselves.

    What it knows at the end is kept for the next command, which then need not open the workspace.
    """
    surroundings = None if host.stays_open else read_surroundings(host.root)
    with open_committed_books(host) as (repo, snapshot, books, _bank):
        index = open_index(host.layout, snapshot, host.decimal_places, stays_open=host.stays_open)
        yield index, books
        if surroundings is not None and surroundings.checkout.commit == snapshot.commit and not host.is_outdated:
            with suppress(WorkspaceError):  # a chart that is damaged, say
                if find_lost_rows(host.layout, repo, snapshot) is None:
                    accounts = _account_rows(books.chart)
                    remember_current_books(host.root, surroundings, index, accounts, _business_facts(host))


def _account_rows(chart: Chart) -> list[AccountRow]:
    return [
        AccountRow(a.account_id, a.account_name, a.account_type, a.parent_id, a.tax_line)
        for a in chart.accounts.values()
    ]


def _business_facts(host: Host) -> BusinessFacts:
    business = host.config.business
    banks = [BankRow(a.id, a.name or a.id, a.ledger_account, a.type) for a in host.config.bank_accounts]
    return BusinessFacts(business.name, business.currency, business.entity_type, host.config.fiscal.start_month, banks)


@contextmanager
def open_report_books(host: Host) -> Iterator[ReportBooks]:
    """What reports are made of, from the last commit."""
    with open_journal_index(host) as (index, books):
        yield make_report_books(host, index, books)


def make_report_books(host: Host, index: JournalIndex, books: Books) -> ReportBooks:
    """What reports are made of, from books that are open."""
    assert isinstance(books.source, CommittedSource)
    return ReportBooks(index, _account_rows(books.chart), _business_facts(host), books.source.snapshot.commit or "")


def read_accounts(host: Host) -> list[dict[str, Any]]:
    """The chart of accounts."""
    with open_committed_books(host) as (_, _snapshot, books, _bank):
        return [dict(account_primitives.describe_account(a)) for a in books.chart.accounts.values()]


def read_periods(host: Host) -> list[dict[str, Any]]:
    """Every closing and reopening, oldest first."""
    from datetime import date

    with open_committed_books(host) as (_, _snapshot, books, _bank):
        return [
            {"through": None if m.through == date.min else m.through.isoformat(), "state": m.state, "by": m.by,
             "at": m.at, "reason": m.reason, "digest": m.digest}
            for m in books.periods.marks
        ]  # fmt: skip


def read_primitives(host: Host | None = None) -> list[dict[str, Any]]:
    """Every primitive: signature, effect, grant, documentation, JSON Schema of its parameters."""
    from cleared.primitives import primitive_registry
    from cleared.registry.projections import describe_primitive

    return [describe_primitive(p) for p in (host.registry if host else primitive_registry()).values()]


def read_violations(host: Host) -> list[dict[str, Any]]:
    """Every violation in the books: invariants, files that differ from HEAD, commits of unknown origin."""
    return [_violation_data(v) for v in find_violations(host)]


def find_violations(host: Host) -> list[Violation]:
    from cleared.errors import Place

    with compare_with_commit(host, "journal check") as (repo, snapshot, different):
        if not different:
            return _check_unchanged_books(host, repo, snapshot)
        head_books, head_bank = open_books(host, CommittedSource(snapshot))
        colliding = find_merge_collisions(host)
        if colliding:
            violations = colliding + _include_unreadable(lambda: check_books(head_books, head_bank))
            return violations + find_unknown_origins(host, repo, snapshot)
        books, bank = open_books(host, WorkingSource(host))
        months = sorted({*books.list_months(), *head_books.list_months()})
        violations = _include_unreadable(lambda: check_books(books, bank))
        violations += _include_unreadable(lambda: check_against_commit(books, CommittedSource(snapshot), months))
        named = {v.place.file for v in violations if v.place}
        for d in different:
            if d.path not in named:
                violations.append(
                    Violation(
                        "unchanged", f"the file is {d.kind} compared with the last commit",
                        f"Look with git diff; restore it with git checkout -- {d.path}.", Place(d.path),
                    )
                )  # fmt: skip
        return violations + find_unknown_origins(host, repo, snapshot)


def _check_unchanged_books(host: Host, repo: Repository, snapshot: Snapshot) -> list[Violation]:
    """The violations of a commit that the working tree is equal to. Nothing is judged again that was right before."""
    if is_known_right(host, repo, snapshot):
        return []
    description = describe_check(host, repo, snapshot)
    books, bank = open_books(host, CommittedSource(snapshot))
    index = open_index(host.layout, snapshot, host.decimal_places)
    violations = _include_unreadable(lambda: check_books(books, bank, index.add_month))
    violations += find_unknown_origins(host, repo, snapshot)
    if not violations and describe_check(host, repo, snapshot) == description:  # nothing has changed meanwhile
        remember_right(host, description)
    return violations


def find_committed_violations(host: Host) -> list[Violation]:
    """Every violation in the books of the last commit, whatever lies in the working tree: what a card can be about."""
    with open_committed_books(host) as (repo, snapshot, books, bank):
        return _include_unreadable(lambda: check_books(books, bank)) + find_unknown_origins(host, repo, snapshot)


def _include_unreadable(look: Callable[[], list[Violation]]) -> list[Violation]:
    """What a check finds; a file that cannot be read at all is a finding, too."""
    try:
        return look()
    except WorkspaceError as e:
        return [Violation("format", e.message, e.remedy or "Restore the file.", e.place)]


def _violation_data(v: Violation) -> dict[str, Any]:
    return {
        "check": v.check, "message": v.message, "remedy": v.remedy, "place": str(v.place) if v.place else None,
        "entry_id": v.entry_id, "account_id": v.account_id,
    }  # fmt: skip
