"""The first line of every commit that the program makes: one function for each.

A subject is ``kind: what happened``. ``kind`` is one of ``KINDS``. Change a wording here and it changes everywhere; the
type checker and a test refuse a subject that is put together anywhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NewType

from cleared.base.terminal import count_noun

CommitSubject = NewType("CommitSubject", str)
"""A commit's first line. Only this module makes one."""

KINDS: Final = (
    "agent",
    "agree",
    "bootstrap",
    "close",
    "config",
    "confirm",
    "correct",
    "event",
    "init",
    "log",
    "post",
    "recover",
    "task",
    "test",
    "void",
)
"""What a subject can begin with, before the colon."""
MAX_SUBJECT: Final = 200
"""Characters of a subject that is built from somebody's text."""
MAX_SCRIPT_SUBJECT: Final = 500
"""Characters of a subject that a script gave with ``git_commit``."""


def _subject(kind: str, text: str) -> CommitSubject:
    return CommitSubject(f"{kind}: {text}"[:MAX_SUBJECT])


def _one_line(text: str) -> str:
    return " ".join(text.split())


# -- the workspace ----------------------------------------------------------------------------------------------------


def workspace_created(title: str) -> CommitSubject:
    return CommitSubject(f"init: {_one_line(title)[:120]}")


# -- runs -------------------------------------------------------------------------------------------------------------


def run_succeeded(agent: str, messages: Sequence[str]) -> CommitSubject:
    """What the script said with ``git_commit``; the agent's name where it said nothing."""
    return CommitSubject("; ".join(messages)[:MAX_SCRIPT_SUBJECT] or f"agent: {agent}")


def run_changed_nothing(agent: str) -> CommitSubject:
    """A run went on after a question and staged nothing."""
    return CommitSubject(f"log: {agent} went on, and changed nothing")


def run_failed(agent: str, cause: str) -> CommitSubject:
    return _subject("log", f"{agent} failed: {cause}")


def run_waits(agent: str, question: str) -> CommitSubject:
    return _subject("log", f"{agent} asks: {_one_line(question)}")


def cycle_recorded(name: str) -> CommitSubject:
    """What an AI cycle left for a person."""
    return _subject("log", f"the AI cycle {name} left a card")


# -- decisions about the books ----------------------------------------------------------------------------------------


def entry_voided(entry_id: str, reason: str) -> CommitSubject:
    return _subject("void", f"{entry_id}: {_one_line(reason)}")


def entry_written(entry_id: str, description: str) -> CommitSubject:
    """A person wrote an entry."""
    return _subject("post", f"{entry_id} {_one_line(description)}")


def opening_balances_posted(count: int) -> CommitSubject:
    return CommitSubject(f"bootstrap: opening balances of {count_noun(count, 'account')}")


def books_moved_in(entries: int, openings: int, file: str) -> CommitSubject:
    """Books of another program."""
    counts = [
        count_noun(n, what, many)
        for n, what, many in ((openings, "opening balance", ""), (entries, "entry", "entries"))
        if n
    ]
    return _subject("bootstrap", f"{' and '.join(counts)} from {_one_line(file)}")


def period_closed(through: date, unsettled: int, despite: str, pending: int = 0) -> CommitSubject:
    """``unsettled``: how many bank lines are not in the books; ``despite``: why it is closed all the same.
    ``pending``: how many decisions about it still wait."""
    waiting = f", with {pending} pending" if pending else ""
    exception = f", despite {count_noun(unsettled, 'open matter')}: {despite}" if unsettled else ""
    return _subject("close", f"through {through}{waiting}{exception}")


def period_reopened(start: date, reason: str) -> CommitSubject:
    return _subject("close", f"reopened from {start}: {_one_line(reason)}")


def transfer_paired(ids: Sequence[str]) -> CommitSubject:
    """A person said that two entries are both sides of one transfer."""
    return _subject("correct", f"{' and '.join(ids)} are one transfer")


def receipts_kept(names: Sequence[str], entry_id: str | None) -> CommitSubject:
    """Receipts came, perhaps for an entry."""
    what = _one_line(names[0]) if len(names) == 1 else count_noun(len(names), "receipt")
    return _subject("confirm", f"kept {what}{f' for {entry_id}' if entry_id else ''}")


def receipt_linked(name: str, entry_id: str) -> CommitSubject:
    """A person said which entry a receipt proves."""
    return _subject("confirm", f"{entry_id} has the receipt {_one_line(name)}")


def receipt_unlinked(name: str, entry_id: str) -> CommitSubject:
    """A person took that back."""
    return _subject("correct", f"{entry_id} has not the receipt {_one_line(name)}")


def receipt_removed(name: str) -> CommitSubject:
    """A person keeps a receipt no more."""
    return _subject("correct", f"removed the receipt {_one_line(name)}")


def account_reconciled(account: int, day: date, balance: Decimal) -> CommitSubject:
    """A person found that books and bank agree."""
    return _subject("confirm", f"{account} reconciled on {day}: {balance}")


def reconciliation_withdrawn(account: int, day: date, reason: str) -> CommitSubject:
    return _subject("confirm", f"{account} of {day} is not reconciled any more: {_one_line(reason)}")


def import_undone(names: Sequence[str], entries: int, reason: str) -> CommitSubject:
    """A person took back the import of these files; ``entries``: how many were voided."""
    files = f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]
    why = f": {_one_line(reason)}" if reason else ""
    return _subject("void", f"import of {_one_line(files)[:80]}, {count_noun(entries, 'entry', 'entries')}{why}")


def account_added(account_id: int, name: str) -> CommitSubject:
    return _subject("accounts", f"add {account_id} {name}")


def account_renamed(account_id: int, old: str, new: str) -> CommitSubject:
    return _subject("accounts", f"rename {account_id} {old} to {new}")


def account_closed(account_id: int, name: str, day: date) -> CommitSubject:
    return _subject("accounts", f"close {account_id} {name} from {day}")


def account_reopened(account_id: int, name: str) -> CommitSubject:
    return _subject("accounts", f"reopen {account_id} {name}")


def commit_accepted(commit: str, reason: str) -> CommitSubject:
    """A person answers for a commit of no run and no decision."""
    return _subject("confirm", f"commit {commit}: {_one_line(reason)}")


def lost_rows_recovered(counts: Sequence[str]) -> CommitSubject:
    """``counts``: how many rows of each kind, with its noun."""
    return CommitSubject(f"recover: {', '.join(counts)}"[:MAX_SUBJECT])


def first_of_two_decided(subject: str) -> CommitSubject:
    """The first of two reviewers decided; ``subject``: that of the commit which the second one will make."""
    return _subject("agree", subject)


# -- decisions about cards --------------------------------------------------------------------------------------------


def entries_decided(kind: str, summary: str) -> CommitSubject:
    """``kind``: ``confirm``, ``correct`` or ``void``; ``summary``: the entry, or how many."""
    return CommitSubject(_one_line(f"{kind}: {summary}")[:MAX_SUBJECT])


def second_needed(names: Sequence[str]) -> CommitSubject:
    """Nothing but first decisions of two, about these entries and cards."""
    return CommitSubject(_one_line(f"agree: {', '.join(names)}")[:MAX_SUBJECT])


def cards_skipped(cards: Sequence[str]) -> CommitSubject:
    return _subject("log", f"skipped {', '.join(cards)}")


def decision_undone(subject: str) -> CommitSubject:
    """``subject``: that of the commit which is undone."""
    return _subject("correct", f"undo: {subject}")


def questions_timed_out(titles: Sequence[str], *, only_escalated: bool) -> CommitSubject:
    """``only_escalated``: none of them was answered by its default or rejected."""
    which = titles[0] if len(titles) == 1 else f"{len(titles)} questions"
    return _subject("log" if only_escalated else "confirm", f"no answer in time: {which}")


def damage_found(count: int) -> CommitSubject:
    return CommitSubject(f"log: a check found {count_noun(count, 'thing')} wrong with the books")


def cards_opened(titles: Sequence[str]) -> CommitSubject:
    """Cards that no run made: the first one's title stands for them."""
    more = f" and {len(titles) - 1} more" if len(titles) > 1 else ""
    return _subject("log", f"{titles[0]}{more}")


def event_emitted(name: str) -> CommitSubject:
    return CommitSubject(f"event: {name}")


# -- tasks ------------------------------------------------------------------------------------------------------------


def task_ledger_created() -> CommitSubject:
    return CommitSubject("task: the ledger of tasks begins")


def tasks_planned(ids: Sequence[str]) -> CommitSubject:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return _subject("task", f"planned {', '.join(ids[:3])}{more}")


def task_recorded(task_id: str, status: str, summary: str) -> CommitSubject:
    """``status``: as in the ledger; ``summary``: that of the ledger's line."""
    return _subject("task", f"{task_id} {status}: {_one_line(summary)}")


def tasks_archived(count: int) -> CommitSubject:
    return CommitSubject(f"task: {count} completed tasks archived")


# -- proposals and settings -------------------------------------------------------------------------------------------


def passkey_added(name: str) -> CommitSubject:
    return _subject("config", f"passkey of {_one_line(name)} added")


def passkey_removed(name: str) -> CommitSubject:
    return _subject("config", f"passkey of {_one_line(name)} removed")


def proposal_made(proposal: str, title: str) -> CommitSubject:
    return CommitSubject(f"agent: {proposal} proposed: {title}")


def proposal_approved(proposal: str, title: str, *, is_config: bool) -> CommitSubject:
    return CommitSubject(f"{'config' if is_config else 'agent'}: {proposal} approved: {title}")


def proposal_rejected(proposal: str, reason: str) -> CommitSubject:
    return _subject("agent", f"{proposal} rejected: {reason}")


def proposal_outdated(proposal: str, successor: str | None) -> CommitSubject:
    """``successor``: the proposal that takes its place."""
    return CommitSubject(f"agent: {proposal} is stale" + (f", {successor} takes its place" if successor else ""))


def agent_rolled_back(agent: str, version: str | None) -> CommitSubject:
    """``version``: the short digest of what runs from now on; None where there was no version before."""
    target = f"to {version}" if version is not None else "to nothing: there was no version before"
    return CommitSubject(f"agent: {agent} rolled back {target}")


def agent_switched(agent: str, is_enabled: bool, reason: str) -> CommitSubject:
    """A person disabled an agent, or enabled it again."""
    return _subject("agent", f"{agent} {'enabled' if is_enabled else 'disabled'}{f': {reason}' if reason else ''}")


def regression_test_added(test: str) -> CommitSubject:
    return CommitSubject(f"test: {test} is a regression case")


def new_workspace_id_given() -> CommitSubject:
    return CommitSubject("agent: these books have an id of their own")


def setting_changed(key: str, value: str) -> CommitSubject:
    return _subject("config", f"{key} = {_one_line(value)}")


def bank_added(accounts: Sequence[str], format: str) -> CommitSubject:
    return _subject("config", f"bank account {', '.join(accounts)} ({_one_line(format)})")


def settings_approved() -> CommitSubject:
    return CommitSubject("config: approved as edited")
