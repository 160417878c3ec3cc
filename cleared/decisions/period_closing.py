"""Closing periods, and opening them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any, Final

from cleared.cards.kinds import BALANCE_GAP
from cleared.changes import commit_messages
from cleared.changes.host import Host
from cleared.clock import format_iso
from cleared.decisions.decision_context import Decision, DecisionContext, commit_decision
from cleared.decisions.grown_files import return_grown_files
from cleared.decisions.journal_decisions import require_commit
from cleared.errors import PolicyError, UsageError
from cleared.ledger.checks import check_books, trial_balance_digest
from cleared.ledger.periods import PeriodMark, append_mark
from cleared.ledger.violations import BooksViolated
from cleared.primitives.context import Context
from cleared.terminal import count_noun
from cleared.workspace.drop_names import FAILED_FOLDER, is_ready_name

_MAX_SHOWN: Final = 10


def close_period(host: Host, through: date, *, filed: bool = False, reason: str = "", despite: str = "") -> str:
    """Close all days up to and including ``through``; the commit.

    Raises ``BooksViolated`` if the books are not in order, ``PolicyError`` if that much is closed already, or if bank
    lines of the period are held or missing, unless ``despite`` says why that may be; it stays on record.
    """
    reason, despite = host.redactor.redact_text(reason), host.redactor.redact_text(despite)
    return_grown_files(host)

    def stage_close(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = context.books
        closed = books.periods.closed_through
        if closed is not None and through <= closed:
            raise PolicyError(
                f"the books are closed through {closed} already", remedy="Reopen first: cleared period reopen DATE."
            )
        if through >= context.today:
            raise PolicyError(f"{through} is not over yet", remedy="Close a period after its last day.")
        violations = check_books(books, context.bank)
        if violations:
            raise BooksViolated(violations)
        unsettled = list(_list_unsettled(context, through))
        why = " ".join(despite.split())
        if unsettled and not why:
            more = f"\n  … and {len(unsettled) - _MAX_SHOWN} more" if len(unsettled) > _MAX_SHOWN else ""
            raise PolicyError(
                f"not all that the bank said up to {through} is in the books:\n  "
                + "\n  ".join(unsettled[:_MAX_SHOWN]) + more,
                remedy="Decide about these (cleared queue list), or close all the same: --despite REASON.",
            )  # fmt: skip
        _report_pending(host, context, through)
        kept = f"despite {'; '.join(unsettled)}: {why}"[:2_000] if unsettled else ""
        mark = PeriodMark(
            through, "filed" if filed else "closed", decision_context.by, format_iso(context.now),
            "; ".join(filter(None, (reason, kept))), trial_balance_digest(books, through),
        )  # fmt: skip
        path = books.paths.periods
        subject = commit_messages.period_closed(through, len(unsettled), why)
        return Decision(subject, {path: append_mark(books.source.read(path), mark)})

    return require_commit(commit_decision(host, "period close", stage_close, collects=[]))


def _list_unsettled(context: Context, through: date) -> Iterator[str]:
    """What of the period's bank lines is not in the books, a line each: held and voided ones, and gaps."""
    for account in context.bank.list_accounts():
        for line in context.bank.iter_account_lines(account):
            day = min(line.posted_date, line.transaction_date or line.posted_date)
            outcome = context.bank.find_outcome(line.line_id)
            if day > through or outcome is None or outcome.outcome not in ("held", "voided"):
                continue
            if context.bank.posted_amount(line.line_id) != line.amount:
                what = f"{day} {line.amount} {line.description[:60]}"
                yield f"{outcome.outcome}: {account} {what} ({outcome.reason[:80]})"
    for card in context.cards.open_cards():
        gaps = card.details.get("gaps")
        begins = [_gap_start(gap) for gap in gaps] if isinstance(gaps, list) else []
        if card.kind == BALANCE_GAP.name and min(begins, default=date.min) <= through:
            yield f"gap: {card.title[:200]} (card {card.id})"


def _gap_start(gap: Mapping[str, Any]) -> date:
    """The last day before a gap; the first of all days where a card does not say it."""
    try:
        return date.fromisoformat(str(gap["after"]))
    except (KeyError, TypeError, ValueError):
        return date.min


def _report_pending(host: Host, context: Context, through: date) -> None:
    """What is no reason to refuse: decided of later, it is dated in the first open period."""
    waiting = [e for e in context.books.iter_entries() if e.status == "pending-review" and e.date <= through]
    if waiting:
        host.show_message(
            f"{count_noun(len(waiting), 'entry', 'entries')} up to {through} still "
            f"{'waits' if len(waiting) == 1 else 'wait'} for review; corrections will be dated after it"
        )
    drop = host.root / host.layout.import_dir
    files = [p for folder in (drop, drop / FAILED_FOLDER) if folder.is_dir() for p in folder.iterdir()
             if p.is_file() and is_ready_name(p.name)]  # fmt: skip
    if files:
        host.show_message(
            f"{count_noun(len(files), 'file')} in {host.layout.import_dir}/ "
            f"{'are' if len(files) > 1 else 'is'} not imported; rows up to {through} will be refused then"
        )


def reopen_period(host: Host, start: date, reason: str) -> str:
    """Reopen everything from ``start`` on, with a reason; the commit."""
    if not reason.strip():
        raise UsageError("reopening needs a reason", remedy="Pass --reason.")
    reason = host.redactor.redact_text(reason)

    def stage_reopening(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = context.books
        closed = books.periods.closed_through
        if closed is None or start > closed:
            raise PolicyError(f"{start} is not in a closed period", remedy="cleared period list shows them.")
        keep = date.fromordinal(start.toordinal() - 1) if start > date.min else date.min
        first = min(m.through for m in books.periods.marks if m.state != "open")
        still = keep if keep >= first else date.min
        digest = trial_balance_digest(books, still) if still > date.min else ""
        mark = PeriodMark(still, "open", decision_context.by, format_iso(context.now), reason, digest)
        path = books.paths.periods
        subject = commit_messages.period_reopened(start, reason)
        return Decision(subject, {path: append_mark(books.source.read(path), mark)})

    return require_commit(commit_decision(host, "period reopen", stage_reopening, collects=[]))
