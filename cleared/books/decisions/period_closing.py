"""Closing periods, and opening them again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from cleared.base import money
from cleared.base.clock import format_iso
from cleared.base.errors import PolicyError, UsageError
from cleared.base.short_text import list_lines
from cleared.base.terminal import count_noun
from cleared.books.audit.books_check import check_books
from cleared.books.audit.judged_months import JudgedMonths
from cleared.books.card_kinds import BALANCE_GAP, ENTRY, NEAR_MATCH, REVISION, TRANSFER
from cleared.books.decisions import book_subjects
from cleared.books.decisions.bank_standing import iter_incomplete
from cleared.books.index.journal_index import EntryFilter, JournalIndex, open_index
from cleared.books.ledger.account_facts import list_missing
from cleared.books.ledger.bank_lines import parse_outcomes
from cleared.books.ledger.closed_periods import digest_trial_balance
from cleared.books.ledger.periods import PeriodMark, append_mark
from cleared.books.staged_books import books_of
from cleared.cards.card import Card
from cleared.changes.audit.attested_state import find_doubt
from cleared.changes.decisions.decision_context import Decision, DecisionContext, commit_decision, require_commit
from cleared.changes.decisions.grown_files import return_grown_files
from cleared.changes.host import Host
from cleared.domains.record_audit import RecordsViolated
from cleared.primitives.context import Context
from cleared.workspace.watched_names import FAILED_FOLDER, is_ready_name

_MAX_SHOWN: Final = 10
_UNSETTLED: Final = ("held", "voided")
_ABOUT_ROWS: Final = frozenset({NEAR_MATCH.name, REVISION.name, TRANSFER.name})


def close_period(
    host: Host, through: date, *, filed: bool = False, reason: str = "", despite: str = "", with_pending: bool = False
) -> str:
    """Close all days up to and including ``through``; the commit.

    Raises ``RecordsViolated`` if the books are not in order, ``PolicyError`` if that much is closed already, if
    decisions about the period wait and not ``with_pending``, or if bank lines of it are held or missing, or the books
    are not what is attested, unless ``despite`` says why that may be; it stays on record.
    """
    reason, despite = host.redactor.redact_text(reason), host.redactor.redact_text(despite)
    return_grown_files(host)

    def stage_close(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = books_of(context).books
        closed = books.periods.closed_through
        if closed is not None and through <= closed:
            raise PolicyError(
                f"the books are closed through {closed} already",
                remedy="To change something in it, reopen it: cleared period reopen DATE.",
            )
        if through >= context.today:
            raise PolicyError(f"{through} is not over yet", remedy="Close a period after its last day.")
        index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
        known = JudgedMonths(index, decision_context.snapshot, host.layout.state_dir)
        violations = check_books(books, books_of(context).bank, known)
        if violations:
            raise RecordsViolated(violations)
        pending = _list_pending(context, index, through)
        if pending and not with_pending:
            raise PolicyError(
                f"{count_noun(len(pending), 'decision')} about the time up to {through} "
                f"{'waits' if len(pending) == 1 else 'wait'}:\n  {_shorten(pending)}",
                remedy="Decide about these (cleared review), or close all the same: --with-pending.",
            )
        unsettled = [*_list_unsettled(context, through), *_list_missing(host, index, context, through)]
        why = " ".join(despite.split())
        if unsettled and not why:
            raise PolicyError(
                f"not all that the bank said up to {through} is in the books:\n  {_shorten(unsettled)}",
                remedy="Decide about these (cleared queue list), import or find what is missing (cleared reconcile), "
                "or close all the same: --despite REASON.",
            )
        doubt = find_doubt(host, decision_context.repo, decision_context.snapshot)
        if doubt and not why:
            raise PolicyError(
                doubt,
                remedy="Look first: cleared check names the commit, and what helps. Or close all the same: "
                "--despite REASON.",
            )
        unsettled += [doubt] if doubt else []
        _report_files(host, through)
        kept = f"despite {'; '.join(unsettled)}: {why}"[:2_000] if unsettled else ""
        mark = PeriodMark(
            through,
            "filed" if filed else "closed",
            decision_context.by,
            format_iso(context.now),
            "; ".join(filter(None, (reason, _describe_pending(pending), kept))),
            digest_trial_balance(index.day_balances(through=through), through, index.places),
        )
        path = books.paths.periods
        subject = book_subjects.period_closed(through, len(unsettled), why, len(pending))
        return Decision(subject, {path: append_mark(books.source.read(path), mark)})

    return require_commit(commit_decision(host, "period close", stage_close, collects=[]))


def _list_unsettled(context: Context, through: date) -> Iterator[str]:
    """What of the period's bank lines is not in the books, a line each: held and voided ones, and gaps."""
    bank = books_of(context).bank
    waiting = {
        month
        for month, path in bank.paths.list_month_files(bank.source, bank.paths.outcomes)
        if any(each.outcome in _UNSETTLED for each in parse_outcomes(bank.source.read(path), path).values())
    }
    for account in bank.list_accounts():
        months = [month for month, _ in bank.list_month_files(account) if not waiting.isdisjoint(("", month))]
        for line in (line for month in months for line in bank.read_month(account, month).values()):
            day = min(line.posted_date, line.transaction_date or line.posted_date)
            outcome = bank.find_outcome(line.line_id)
            if day > through or outcome is None or outcome.outcome not in _UNSETTLED:
                continue
            if bank.posted_amount(line.line_id) != line.amount:
                what = f"{day} {line.amount} {line.description[:60]}"
                yield f"{outcome.outcome}: {account} {what} ({outcome.text[:80]})"
    for card in context.cards.open_cards():
        if context.cards.find_doubt(card) is not None:  # it may be about a gap, and say something else
            yield f"held: {card.title[:200]} (card {card.id})"
            continue
        gaps = card.details.get("gaps")
        begins = [_gap_start(gap) for gap in gaps] if isinstance(gaps, list) else []
        if card.kind == BALANCE_GAP.name and min(begins, default=date.min) <= through:
            yield f"gap: {card.title[:200]} (card {card.id})"


def _list_missing(host: Host, index: JournalIndex, context: Context, through: date) -> Iterator[str]:
    """What ``cleared status`` says is missing of the period, a line each; but for gaps that are named by a card which
    waits, or which a person has seen."""
    for account, facts, is_shared in iter_incomplete(host, index, books_of(context).bank):
        named: set[tuple[date, Decimal]] | None = None
        for each in list_missing(facts, through, is_shared=is_shared):
            if named is None:
                named = set(_list_named_gaps(context, account.id))
            of_days = [missing for day, missing in named if each.after < day <= each.through]
            if each.missing not in (*of_days, money.total(of_days)):
                yield f"missing: {account.id}: on {each.through} {each.missing} is missing"


def _list_named_gaps(context: Context, account: str) -> Iterator[tuple[date, Decimal]]:
    """The day after each gap that a card names, and what is missing there."""
    for card in context.cards.committed_cards.list_kind(BALANCE_GAP.name):
        gaps = card.details.get("gaps")
        is_known = card.status == "open" or (
            card.resolution in BALANCE_GAP.answers and context.cards.find_doubt(card) is None
        )
        for gap in gaps if is_known and isinstance(gaps, list) and card.details.get("account") == account else ():
            with suppress(KeyError, TypeError, ValueError, InvalidOperation):  # a damaged one names nothing
                yield date.fromisoformat(str(gap["before"])), Decimal(str(gap["missing"]))


def _gap_start(gap: Mapping[str, Any]) -> date:
    """The last day before a gap; the first of all days where a card does not say it."""
    try:
        return date.fromisoformat(str(gap["after"]))
    except (KeyError, TypeError, ValueError):
        return date.min


def _shorten(lines: Sequence[str]) -> str:
    return "\n  ".join(list_lines(lines, _MAX_SHOWN))


def _describe_pending(pending: Sequence[str]) -> str:
    return f"with {count_noun(len(pending), 'decision')} pending" if pending else ""


def _list_pending(context: Context, index: JournalIndex, through: date) -> list[str]:
    """What of the period waits for a person, a line each: entries to confirm, and cards about rows of its files. Held
    lines and gaps are another matter: ``_list_unsettled``."""
    pending = [
        f"{e.entry_id} {e.date} {e.amount} {e.description[:60]}"
        for e in index.iter_entries(EntryFilter(end=through, status="pending-review"))
    ]
    known = {line.split(" ", 1)[0] for line in pending}
    for card in context.cards.open_cards():
        entry = (
            books_of(context).books.find_entry(card.record_id) if card.kind == ENTRY.name and card.record_id else None
        )
        if entry is not None:
            is_about = entry.entry_id not in known and entry.status != "voided" and entry.date <= through
        else:
            is_about = card.kind in _ABOUT_ROWS and min(_row_days(card), default="9999") <= through.isoformat()
        if is_about:
            pending.append(f"{card.title[:120]} (card {card.id})")
    return pending


def _row_days(card: Card) -> Iterator[str]:
    rows = card.details.get("rows")
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict) and row.get("date"):
            yield str(row["date"])


def _report_files(host: Host, through: date) -> None:
    """Files that wait are no reason to refuse: nobody knows yet what is in them."""
    drop = host.root / host.layout.import_dir
    files = [
        p
        for folder in (drop, drop / FAILED_FOLDER)
        if folder.is_dir()
        for p in folder.iterdir()
        if p.is_file() and is_ready_name(p.name)
    ]
    if files:
        host.show_message(
            f"{count_noun(len(files), 'file')} in {host.layout.import_dir}/ "
            f"{'are' if len(files) > 1 else 'is'} not imported; rows up to {through} will wait for you then"
        )


def reopen_period(host: Host, start: date, reason: str, *, filed: bool = False) -> str:
    """Reopen everything from ``start`` on, with a reason; the commit. ``filed``: also what was filed.

    Raises ``PolicyError`` where that is not closed, or was marked as filed and ``filed`` does not say so.
    """
    if not reason.strip():
        raise UsageError("reopening needs a reason", remedy="Pass --reason.")
    reason = host.redactor.redact_text(reason)

    def stage_reopening(decision_context: DecisionContext) -> Decision:
        context = decision_context.context
        books = books_of(context).books
        closed = books.periods.closed_through
        if closed is None or start > closed:
            raise PolicyError(f"{start} is not in a closed period", remedy="cleared period list shows them.")
        filed_through = books.periods.filed_through
        if filed_through is not None and start <= filed_through and not filed:
            raise PolicyError(
                f"the books through {filed_through} were marked as filed with the authorities",
                remedy="An entry of a later day leaves what was filed as it is. To reopen it all the same: --filed",
            )
        keep = date.fromordinal(start.toordinal() - 1) if start > date.min else date.min
        still = keep if any(entry.date <= keep for entry in books.iter_entries()) else date.min
        index = open_index(host.layout, decision_context.snapshot, host.decimal_places)
        digest = ""
        if still > date.min:
            digest = digest_trial_balance(index.day_balances(through=still), still, index.places)
        mark = PeriodMark(still, "open", decision_context.by, format_iso(context.now), reason, digest)
        path = books.paths.periods
        subject = book_subjects.period_reopened(start, reason)
        return Decision(subject, {path: append_mark(books.source.read(path), mark)})

    return require_commit(commit_decision(host, "period reopen", stage_reopening, collects=[]))
