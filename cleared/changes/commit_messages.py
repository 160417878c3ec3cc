"""The first line of every commit that the program makes: one function for each. A domain has its own for its decisions.

A subject is ``kind: what happened``. ``kind`` is one of ``KINDS``. Change a wording here and it changes everywhere; the
type checker and a test refuse a subject that is put together anywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NewType

from cleared.base.short_text import list_first
from cleared.base.terminal import count_noun

CommitSubject = NewType("CommitSubject", str)
"""A commit's first line. Only this module makes one, and that of a domain by ``compose_subject``."""

KINDS: Final = (
    "accounts",
    "agent",
    "agree",
    "bootstrap",
    "close",
    "config",
    "confirm",
    "correct",
    "define",
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


def compose_subject(kind: str, text: str) -> CommitSubject:
    """``kind: text``, cut to its bound; for this module and for what a domain says of its own decisions."""
    return CommitSubject(f"{kind}: {text}"[:MAX_SUBJECT])


def join_lines(text: str) -> str:
    """Somebody's text as one line."""
    return " ".join(text.split())


# -- the workspace ----------------------------------------------------------------------------------------------------


def workspace_created(title: str) -> CommitSubject:
    return CommitSubject(f"init: {join_lines(title)[:120]}")


# -- runs -------------------------------------------------------------------------------------------------------------


def run_succeeded(agent: str, messages: Sequence[str]) -> CommitSubject:
    """What the script said with ``git_commit``; the agent's name where it said nothing."""
    return CommitSubject("; ".join(messages)[:MAX_SCRIPT_SUBJECT] or f"agent: {agent}")


def run_changed_nothing(agent: str) -> CommitSubject:
    """A run went on after a question and staged nothing."""
    return CommitSubject(f"log: {agent} went on, and changed nothing")


def run_failed(agent: str, cause: str) -> CommitSubject:
    return compose_subject("log", f"{agent} failed: {cause}")


def run_waits(agent: str, question: str) -> CommitSubject:
    return compose_subject("log", f"{agent} asks: {join_lines(question)}")


def cycle_recorded(name: str) -> CommitSubject:
    """What an AI cycle left for a person."""
    return compose_subject("log", f"the AI cycle {name} left a card")


def done_again(subject: str) -> CommitSubject:
    """What was committed before, on top of what others did; ``subject``: its own, with the ids that there are now."""
    return CommitSubject(subject)


# -- decisions about commits ------------------------------------------------------------------------------------------


def commit_accepted(commit: str, reason: str) -> CommitSubject:
    """A person answers for a commit of no run and no decision."""
    return compose_subject("confirm", f"commit {commit}: {join_lines(reason)}")


def lost_rows_recovered(counts: Sequence[str]) -> CommitSubject:
    """``counts``: how many rows of each kind, with its noun."""
    return CommitSubject(f"recover: {', '.join(counts)}"[:MAX_SUBJECT])


def first_of_two_decided(subject: str) -> CommitSubject:
    """The first of two reviewers decided; ``subject``: that of the commit which the second one will make."""
    return compose_subject("agree", subject)


# -- decisions about cards --------------------------------------------------------------------------------------------


def entries_decided(kind: str, summary: str) -> CommitSubject:
    """``kind``: ``confirm``, ``correct`` or ``void``; ``summary``: the entry, or how many."""
    return CommitSubject(join_lines(f"{kind}: {summary}")[:MAX_SUBJECT])


def second_needed(names: Sequence[str]) -> CommitSubject:
    """Nothing but first decisions of two, about these entries and cards."""
    return CommitSubject(join_lines(f"agree: {', '.join(names)}")[:MAX_SUBJECT])


def cards_skipped(cards: Sequence[str]) -> CommitSubject:
    return compose_subject("log", f"skipped {', '.join(cards)}")


def decision_undone(subject: str) -> CommitSubject:
    """``subject``: that of the commit which is undone."""
    return compose_subject("correct", f"undo: {subject}")


def questions_timed_out(titles: Sequence[str], *, only_escalated: bool) -> CommitSubject:
    """``only_escalated``: none of them was answered by its default or rejected."""
    which = titles[0] if len(titles) == 1 else f"{len(titles)} questions"
    return compose_subject("log" if only_escalated else "confirm", f"no answer in time: {which}")


def damage_found(count: int) -> CommitSubject:
    return CommitSubject(f"log: a check found {count_noun(count, 'thing')} wrong with the books")


def cards_opened(titles: Sequence[str]) -> CommitSubject:
    """Cards that no run made: the first one's title stands for them."""
    return compose_subject("log", list_first(titles, 1))


def event_emitted(name: str) -> CommitSubject:
    return CommitSubject(f"event: {name}")


# -- tasks ------------------------------------------------------------------------------------------------------------


def task_ledger_created() -> CommitSubject:
    return CommitSubject("task: the ledger of tasks begins")


def tasks_planned(ids: Sequence[str]) -> CommitSubject:
    return compose_subject("task", f"planned {list_first(ids, 3)}")


def task_recorded(task_id: str, status: str, summary: str) -> CommitSubject:
    """``status``: as in the ledger; ``summary``: that of the ledger's line."""
    return compose_subject("task", f"{task_id} {status}: {join_lines(summary)}")


def tasks_settled(states: Iterable[tuple[str, str]]) -> CommitSubject:
    """Ids, and what became of the tasks: the states of those that awaited approval, new ids."""
    return compose_subject("task", f"{', '.join(f'{name} {status}' for name, status in states)}")


def task_lines_committed() -> CommitSubject:
    return CommitSubject("task: claims that were in no commit yet")


def tasks_archived(count: int) -> CommitSubject:
    return CommitSubject(f"task: {count} completed tasks archived")


# -- proposals and settings -------------------------------------------------------------------------------------------


def passkey_added(name: str) -> CommitSubject:
    return compose_subject("config", f"passkey of {join_lines(name)} added")


def passkey_removed(name: str) -> CommitSubject:
    return compose_subject("config", f"passkey of {join_lines(name)} removed")


def proposal_made(proposal: str, title: str) -> CommitSubject:
    return CommitSubject(f"agent: {proposal} proposed: {title}")


def contradictions_asked(number: int) -> CommitSubject:
    return CommitSubject(f"agent: {count_noun(number, 'contradiction')} to settle")


def proposal_approved(proposal: str, title: str, *, is_config: bool) -> CommitSubject:
    return CommitSubject(f"{'config' if is_config else 'agent'}: {proposal} approved: {title}")


def proposal_approved_itself(proposal: str, title: str) -> CommitSubject:
    """A change that became live without a person, as the settings let it."""
    return CommitSubject(f"agent: {proposal} approved itself: {title}")


def version_certified(agent: str) -> CommitSubject:
    """A version of an agent was killed at each point of a run, and nothing was lost."""
    return CommitSubject(f"agent: {agent} certified")


def proposal_rejected(proposal: str, reason: str) -> CommitSubject:
    return compose_subject("agent", f"{proposal} rejected: {reason}")


def proposal_outdated(proposal: str, successor: str | None) -> CommitSubject:
    """``successor``: the proposal that takes its place."""
    return CommitSubject(f"agent: {proposal} is stale" + (f", {successor} takes its place" if successor else ""))


def agent_rolled_back(agent: str, version: str | None) -> CommitSubject:
    """``version``: the short digest of what runs from now on; None where there was no version before."""
    target = f"to {version}" if version is not None else "to nothing: there was no version before"
    return CommitSubject(f"agent: {agent} rolled back {target}")


def change_taken_back(agent: str, reason: str) -> CommitSubject:
    """The host took a change back that turned out badly."""
    return compose_subject("agent", f"{agent} taken back: {join_lines(reason)}")


def run_reverted(run: str, records: int, others: int, reason: str) -> CommitSubject:
    """A person took back a run, and ``others`` that had read what it wrote; ``records``: how many went."""
    more = f" and {count_noun(others, 'run')} that read it" if others else ""
    why = f": {join_lines(reason)}" if reason else ""
    return compose_subject("void", f"run {run}{more}, {count_noun(records, 'record')}{why}")


def agent_switched(agent: str, is_enabled: bool, reason: str) -> CommitSubject:
    """A person disabled an agent, or enabled it again."""
    return compose_subject(
        "agent", f"{agent} {'enabled' if is_enabled else 'disabled'}{f': {reason}' if reason else ''}"
    )


def regression_test_added(test: str) -> CommitSubject:
    return CommitSubject(f"test: {test} is a regression case")


def new_workspace_id_given() -> CommitSubject:
    return CommitSubject("agent: these books have an id of their own")


def setting_changed(key: str, value: str) -> CommitSubject:
    return compose_subject("config", f"{key} = {join_lines(value)}")


def setting_removed(key: str) -> CommitSubject:
    return compose_subject("config", f"take out {join_lines(key)}")


def settings_restored(commit: str) -> CommitSubject:
    return compose_subject("config", f"as it was in {commit[:10]}")


def definition_approved(path: str) -> CommitSubject:
    return compose_subject("define", path)


def settings_approved() -> CommitSubject:
    return CommitSubject("config: approved as edited")
