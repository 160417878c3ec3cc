"""The composition root: what stands on what, in one function."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from cleared.approvals.key_access import restore_access
from cleared.approvals.policy_in_force import SettingsInForce, settings_in_force, settings_stamp
from cleared.approvals.workspace_pin import follow_moved_clone
from cleared.cards.kinds import FAILED_RUN, QUESTION
from cleared.changes.consumed_events import AlreadyRun
from cleared.changes.host import Host
from cleared.clock import Clock, SystemClock
from cleared.errors import UsageError
from cleared.primitives import primitive_registry
from cleared.runs.attempt import Attempt, Event, Executor
from cleared.runs.execution import run_agent
from cleared.runs.outcome import RunResult
from cleared.workspace.location import Layout, find_workspace, open_layout

if TYPE_CHECKING:
    from cleared.gate.check_result import CheckResult
    from cleared.gate.impact import Impact
    from cleared.gate.regression_tests import RegressionTest
    from cleared.proposals.approval import ProposalOutcome
    from cleared.proposals.proposal import Proposal
    from cleared.proposals.setting_changes import SettingsOutcome
    from cleared.review.decision_staging import DecisionResult
    from cleared.review.entry_decisions import Correction


def open_workspace(
    start: Path | None = None,
    *,
    clock: Clock | None = None,
    say: Callable[[str], None] | None = None,
    on_step: Callable[[str], None] | None = None,
) -> Host:
    """The workspace that holds ``start`` (default: the current directory), its configuration read and checked.

    Raises ``WorkspaceError`` where there is none, or its configuration is wrong.
    """
    for path in restore_access():
        if say is not None:
            say(
                f"you could no longer read {path}: something, a job perhaps, had taken the right away; it is given back"
            )
    root = find_workspace(start)
    moved = follow_moved_clone(root)
    if moved and say is not None:
        say(f"these books were moved here from {moved}; what was approved in them goes on counting")

    def read() -> tuple[Layout, SettingsInForce]:
        layout = open_layout(root)
        force = settings_in_force(root, layout.config)
        return replace(layout, config=force.config), force

    seen = settings_stamp(root)
    layout, force = read()
    return Host(
        layout.root,
        layout,
        layout.config,
        clock or SystemClock(),
        primitive_registry(),
        say or (lambda _: None),
        on_step,
        policy=force,
        reread_policy=read,
        policy_stamp=seen,
    )


def run(host: Host, name: str, *, dry_run: bool = False, event: Event | None = None) -> RunResult:
    """Run an agent of the workspace over the transport its configuration names (see ``runs.run_agent``).

    A dry run checks a working copy that is not approved as the gate does, before any of it is run.
    """
    if dry_run:
        from cleared.gate.static_checks import check_working_copy

        check_working_copy(host, name)
    return run_agent(host, lambda: executor(host), name, dry_run=dry_run, event=event)


def run_command(
    host: Host, name: str, *, dry_run: bool = False, data: Any = None, again: str | None = None, believed: bool = False
) -> RunResult:
    """What ``agent run`` does, wherever it is asked for: ``data`` is the event's payload; ``again``: see ``run_again``.

    Raises as ``run`` and ``run_again`` do, and ``UsageError`` for what does not go together.
    """
    if again is None:
        return run(host, name, dry_run=dry_run, event=Event(payload=data) if data is not None else None)
    if dry_run or data is not None:
        raise UsageError("again goes without dry-run and data", remedy="Leave them out, or leave out the card.")
    return run_again(host, name, again, believed=believed)


def run_again(host: Host, name: str, card: str, *, believed: bool = False) -> RunResult:
    """Run an agent once more for what it was run for when it failed, or when it asked what is held now.

    ``believed``: where nothing but the card says what that was, a person has looked and says that it is right.
    Raises ``UsageError`` where the card is not one of these of this agent, ``Held``, ``PolicyError`` where nothing
    vouches for what it says, and what a run raises.
    """
    from cleared.approvals.person_only import refuse_in_job
    from cleared.cards import queue_files
    from cleared.changes.book_sources import CommittedSource
    from cleared.queries import find_card, open_committed_books
    from cleared.runs.failed_runs import read_card_event
    from cleared.runs.suspended_runs import ask_again

    if believed:
        refuse_in_job()
    with open_committed_books(host) as (repo, snapshot, _books, _bank):
        found = find_card(queue_files.load_cards(CommittedSource(snapshot), host.layout.queue_dir), card)
        asked = found.kind == QUESTION.name
        if not asked and (found.kind != FAILED_RUN.name or found.agent != name):
            raise UsageError(f"{card} is not the card of a failed run of {name}", remedy="See: cleared queue list.")
        event = None if asked else read_card_event(host, repo, snapshot, found, believed=believed)
    try:
        if not asked:
            return run(host, name, event=event)
        return run_agent(
            host, lambda: executor(host), name,
            again=lambda questions: ask_again(questions, found.id, name, believed=believed),
        )  # fmt: skip
    except AlreadyRun:
        settle = f"queue reject {found.id} --reason …" if asked else f"queue answer {found.id} seen"
        raise UsageError(
            f"{name} has had its run for that since", remedy=f"Settle the card: cleared {settle}."
        ) from None


def serve(roots: Sequence[Path], clock: Clock | None = None, say: Callable[[str], None] | None = None) -> None:
    """Run the agents of these workspaces by themselves, until SIGTERM or Ctrl-C (see ``service.service_process``)."""
    from cleared.service.service_process import serve_workspaces
    from cleared.service.spans import SpanExporter

    with ExitStack() as stack:
        spans = SpanExporter.from_environment(os.environ)
        if spans is not None:
            stack.callback(spans.close)
        record = spans.record_run if spans is not None else None
        served = {root: stack.enter_context(Served(root, clock, say, record)) for root in roots}
        serve_workspaces(roots, served.__getitem__, clock or SystemClock(), say or (lambda _: None))


class Served:
    """What a service has done for it. The sandbox stays from run to run; each script has a fresh session of it."""

    def __init__(
        self, root: Path, clock: Clock | None, say: Callable[[str], None] | None,
        on_ended: Callable[[Attempt, RunResult], None] | None = None,
    ) -> None:  # fmt: skip
        self.root, self._clock, self._say, self._on_ended = root, clock, say, on_ended
        self._standing: tuple[tuple[str, str], AbstractContextManager[Executor], Executor] | None = None
        self._troubles: set[str] = set()

    def open_host(self) -> Host:
        host = open_workspace(self.root, clock=self._clock, say=self._say)
        host.on_ended = self._on_ended
        return host

    def run_agent(self, host: Host, agent: str, event: Event) -> RunResult:
        return run_agent(host, lambda: nullcontext(self._executor(host)), agent, event=event)

    def settle_questions(self, host: Host, log: Callable[..., None]) -> datetime | None:
        from cleared.review.questions import settle_due_questions

        settled = settle_due_questions(host, lambda: nullcontext(self._executor(host)), host.clock.now(), own=True)
        for result in settled.runs:
            what = "went on" if result.error is None else f"went on and failed: {result.error}"
            log(f"run.{result.status}", f"{result.agent} {what}", agent=result.agent, run=result.run_id)
        for text in settled.messages:
            if text not in self._troubles:  # what is held stays so until somebody does something
                log("question.trouble", text, level="warning")
        self._troubles = set(settled.messages)
        return settled.next_due

    def confinement_level(self, host: Host) -> str:
        return str(getattr(self._executor(host), "level", "as the bridge reaches"))

    def _executor(self, host: Host) -> Executor:
        wanted = (host.config.sandbox.transport, host.config.sandbox.confine)
        if self._standing is None or self._standing[0] != wanted:
            self._close()
            manager = executor(host)
            self._standing = (wanted, manager, manager.__enter__())
        return self._standing[2]

    def _close(self) -> None:
        standing, self._standing = self._standing, None
        if standing is not None:
            standing[1].__exit__(None, None, None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


def check(host: Host, names: list[str]) -> dict[str, list[CheckResult]]:
    """Every stage of the gate over the working copies of these agents; nothing is changed."""
    from cleared.gate.examination import Gate

    with Gate(host, lambda: executor(host)) as gate:
        return {name: gate.check_agent(name) for name in names}


def compare(host: Host, name: str, runs: int) -> Impact:
    """What the working copy of an agent would have done on the workspace's own history, against the approved one."""
    from cleared.gate.examination import Gate

    with Gate(host, lambda: executor(host)) as gate:
        return gate.compare_with_approved(name, runs)


def propose(host: Host, targets: list[str], *, message: str = "", author: str | None = None) -> tuple[Proposal, bool]:
    """Propose working copies (see ``gate.propose``). ``author``: the program that wrote them, None for a person."""
    from cleared.proposals.submission import Author
    from cleared.proposals.submission import propose_changes as do

    who = Author(author, is_human=False) if author else None
    return do(host, lambda: executor(host), targets, message=message, author=who)


def approve(host: Host, proposal: str) -> ProposalOutcome:
    """Make a proposal live (see ``gate.approve``)."""
    from cleared.proposals.approval import approve_proposal as do

    return do(host, lambda: executor(host), proposal)


def add_case(host: Host, run: str, *, why: str, corrections: Mapping[str, int]) -> tuple[RegressionTest, str]:
    """Make a regression case of a run (see ``gate.ratchet``)."""
    from cleared.proposals.test_recording import add_test as do

    return do(host, lambda: executor(host), run, why=why, corrections=corrections)


def correct(host: Host, ids: list[str], correction: Correction) -> DecisionResult:
    """Correct entries, and remember it as regression cases (see ``review.decisions``)."""
    from cleared.review.card_decisions import correct_entries
    from cleared.review.correction_tests import correction_recorder

    return correct_entries(host, ids, correction, correction_recorder(host, lambda: executor(host)))


def agree(host: Host, ids: list[str]) -> DecisionResult:
    """Decide the same as the first of two has (see ``review.decisions``)."""
    from cleared.review.card_decisions import agree_with_first as do
    from cleared.review.correction_tests import correction_recorder

    return do(host, ids, correction_recorder(host, lambda: executor(host)))


def answer(host: Host, card: str, choice: str) -> tuple[DecisionResult, RunResult | None]:
    """Answer a card; where it is a script's question, its run goes on with that."""
    from cleared.review.card_decisions import answer_card as do
    from cleared.review.questions import resume_run

    done = do(host, card, choice)
    return done, resume_run(host, lambda: executor(host), done.cards[0]) if done.asked_by_run else None


def why(host: Host, entry: str) -> dict[str, Any]:
    """Why an entry is as it is (see ``review.why``)."""
    from cleared.review.explanation import explain_entry as do

    return do(host, lambda: executor(host), entry)


def set_setting(host: Host, key: str, value: str) -> SettingsOutcome:
    """Change a setting and, where it is policy, approve it (see ``gate.settings``)."""
    from cleared.proposals.setting_changes import set_setting as do

    return do(host, lambda: executor(host), key, value)


def approve_settings(host: Host) -> SettingsOutcome:
    """Approve ``config.yaml`` as edited by hand (see ``gate.settings``)."""
    from cleared.proposals.setting_changes import approve_settings as do

    return do(host, lambda: executor(host))


@contextmanager
def executor(host: Host) -> Iterator[Executor]:
    """The sandbox as ``sandbox.transport`` says: in this process's own worker, or behind a bridge process."""
    if host.config.sandbox.transport == "bridge":
        from cleared.bridge.client import BridgeExecutor

        with BridgeExecutor(confine=host.config.sandbox.confine) as bridge:
            yield bridge
    else:
        from cleared.sandbox.monty import Sandbox

        with Sandbox(confine=host.config.sandbox.confine) as sandbox:
            yield sandbox
