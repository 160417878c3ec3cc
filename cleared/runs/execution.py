"""Runs one agent for one event, and commits or discards what it did.

A dry run takes the same path without the commit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, Interrupted, PolicyError
from cleared.base.terminal import count_noun
from cleared.changes import agent_log, commit_messages, consumed_events, draft
from cleared.changes.auto_resolve import resolve_cards
from cleared.changes.commit_messages import CommitSubject
from cleared.changes.consumed_events import ASKS, FAILED, WENT_ON, AlreadyRun, is_consumed, iter_emitted_events
from cleared.changes.decisions.grown_files import return_grown_files
from cleared.changes.host import Host
from cleared.changes.lost_rows import refuse_lost_rows
from cleared.changes.noticed_history import notice_withdrawals
from cleared.changes.record_sources import CommittedSource
from cleared.changes.session import refuse_changed_files
from cleared.changes.trace import TraceStore
from cleared.domains.installed_domains import count_records, describe_drafts, no_records
from cleared.git import GitBusy, HeadMoved, Repository, Snapshot, Unfinished, list_made_commits
from cleared.primitives.context import Context
from cleared.primitives.ctx import LOOP_ENQUEUE_EVENT
from cleared.primitives.model_requests import MODEL_ANSWER_EVENT, recorded_answers
from cleared.primitives.queue import Question, Unanswered
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import Attempt, Event, Resumption
from cleared.runs.model_asking import AnswersNeeded, ModelAsker
from cleared.runs.outcome import MADE, RunError, RunResult, make_run_error, tolerate_lost_trace, wake_loop_of

if TYPE_CHECKING:
    from cleared.runs.question_tickets import Questions

    FindResumption = Callable[[Questions], Resumption]
    """Says under the lock how a run goes on, or is asked anew, from the commit it is based on."""


_MAX_WARNINGS: Final = 20
"""Findings of rules that came later, as a run tells them."""


def run_agent(
    host: Host,
    name: str,
    *,
    dry_run: bool = False,
    event: Event | None = None,
    again: FindResumption | None = None,
    texts: Mapping[str, bytes | None] | None = None,
    asker: ModelAsker | None = None,
) -> RunResult:
    """Run an agent once. Everything it did is one commit, or nothing. ``again``: a run that asked goes on, or is asked
    anew (``runs.suspended_runs``). ``texts``: of a dry run, path → text over what is approved (None: the working
    copies).

    Where the script asks a language model what nobody has answered yet, the draft is discarded and the lock released;
    ``asker`` (None: one of its own) gets the answers, and the script runs again from its first line.

    Raises ``ClearedError`` for what is refused before the run starts (``AlreadyRun``: the event's key is consumed); a
    run that started is a ``RunResult``, failed ones too. Raises ``Interrupted`` on Ctrl-C, with nothing changed, and
    ``WaitsForModel`` where ``asker`` asks elsewhere.
    """
    wanted = _WantedRun(name, event or Event(), dry_run, again, texts, asker or ModelAsker(host))
    host.layout.agent_path(name)
    if not dry_run:
        host.refuse_invalid_policy()
    if not dry_run and not host.stays_open:  # a service looks by itself
        return_grown_files(host)
    while True:
        with host.open_for_reading() if dry_run else host.open_for_writing(f"agent run {name}") as repo:
            if not dry_run:
                host.refuse_invalid_policy()
            result = _run_on_head(host, repo, wanted)
        if result is not None:
            return result
        wanted.asker.ask_model()


class _WantedRun(Struct, frozen=True):
    """What ``run_agent`` was asked for."""

    name: str
    event: Event
    dry_run: bool
    again: FindResumption | None
    texts: Mapping[str, bytes | None] | None
    asker: ModelAsker


def _run_on_head(host: Host, repo: Repository, wanted: _WantedRun) -> RunResult | None:
    """One run under the lock; None where its asker has to ask a model first, and nothing was kept of the run."""
    for attempt in (1, 2):
        try:
            return _AgentRun(host, repo, wanted, last=attempt == 2).execute_run()
        except AnswersNeeded:
            return None
        except HeadMoved:
            # Somebody committed by hand while the script ran: what it read is old. Once more, on the new HEAD.
            if attempt == 2:
                raise
            host.show_message("the branch moved while the script ran; running it again on the new commit")
    raise AssertionError("unreachable")


class _AgentRun:
    """One attempt and its end."""

    def __init__(self, host: Host, repo: Repository, wanted: _WantedRun, *, last: bool) -> None:
        name, event, dry_run, asker = wanted.name, wanted.event, wanted.dry_run, wanted.asker
        self.host, self.repo, self.dry_run, self.asker, self.last = host, repo, dry_run, asker, last
        self.snapshot = Snapshot(repo, repo.read_head())
        if not dry_run:  # which reads the commit only, and may do so while another command commits
            refuse_lost_rows(host.layout, repo, self.snapshot)
            refuse_changed_files(host, self.snapshot, name)
            notice_withdrawals(host, self.snapshot)
        texts = wanted.texts if dry_run else None
        scripts = Scripts(host, self.snapshot, working_copy=dry_run and texts is None, texts=texts)
        self.again = self._find_resumption(wanted.again) if wanted.again is not None else Resumption(event)
        new = wanted.again is None and not dry_run and event.key is not None
        if new and is_consumed(host, repo, self.snapshot, name, str(event.key)):
            raise AlreadyRun(f"{name} has had its run for {event.kind} {event.key}")
        self.script = scripts.load_agent(name)
        self.scripts = scripts
        self.attempt = Attempt(
            host,
            repo,
            self.snapshot,
            self.script,
            replace(self.again, now=self.again.now or asker.now, run_id=self.again.run_id or asker.run_id),
            dry_run=dry_run,
            scripts=scripts,
            stops_to_ask=not dry_run,
            model_answers=self._known_answers(),
        )
        self.context = self.attempt.context
        self.run_id = self.attempt.run_id

    def _find_resumption(self, again: FindResumption) -> Resumption:
        from cleared.runs.question_tickets import Questions  # late: few runs go on with an earlier one

        return again(Questions(self.host, self.repo, self.snapshot))

    def _known_answers(self) -> Mapping[str, Mapping[str, Any]]:
        """What models have answered: to this run so far; of a dry run, to any run of this workspace."""
        if not self.dry_run:
            return self.asker.answers
        return recorded_answers(iter_emitted_events(CommittedSource(self.snapshot)))

    def execute_run(self) -> RunResult:
        attempt = self.attempt
        traces = self.host.traces
        with tolerate_lost_trace(self.host):
            traces.begin_run(
                {
                    "id": self.run_id,
                    "agent": self.script.name,
                    "dry_run": self.dry_run,
                    "started_at": format_iso(attempt.now),
                    "event": attempt.event,
                    "script": f"{self.script.file}@{self.script.blob}",
                    "head": self.snapshot.commit,
                }
            )
        result = RunResult(self.run_id, self.script.name, "failed")
        ended, made_before = True, list_made_commits()
        try:
            self.host.report_step("begun")
            self._run_script(result)
            if result.commits and any(event["name"] == LOOP_ENQUEUE_EVENT for event in result.events):
                wake_loop_of(self.host)
        except AnswersNeeded:
            ended = False
            raise
        except KeyboardInterrupt:
            result.status = "interrupted"
            result.commits = [commit for commit in list_made_commits() if commit not in made_before]
            message = "interrupted; nothing was changed"
            if result.commits:
                message = f"interrupted, after the commit {result.commits[-1][:10]} was made"
            result.error = RunError("Interrupted", message)
            raise Interrupted(message) from None
        finally:
            if ended:
                self._record_end(result, traces)
            elif not self.host.stays_open:
                traces.close()
        return result

    def _record_end(self, result: RunResult, traces: TraceStore) -> None:
        """``traces``: the store that has recorded the beginning; its connection is still open."""
        attempt = self.attempt
        result.duration_ms = round((self.host.clock.monotonic() - attempt.started) * 1000)
        result.edited = self.scripts.list_edited()
        later = [f for findings in self.scripts.warnings.values() for f in findings]
        result.warnings += [f"{f} (This stops no run, but it stops a proposal.)" for f in later[:_MAX_WARNINGS]]
        result.warnings += self.asker.warnings
        with tolerate_lost_trace(self.host):
            traces.end_run(self.run_id, self._trace_record(result), attempt.calls, attempt.started, attempt.calls.sums)
            if self.host.on_ended is not None:
                self.host.on_ended(attempt, result)

    def _require_answers(self) -> None:
        """Raises ``AnswersNeeded`` where a model has to be asked before anything comes of this run."""
        missing = self.context.model_answers.missing
        if missing and not self.dry_run and self.asker.take_requests(missing, self.attempt, self.context):
            raise AnswersNeeded

    def _run_script(self, result: RunResult) -> None:
        try:
            result.result = self.attempt.execute_script()
            self.host.report_step("ran")
            self._require_answers()
            self._finish_run(result)
        except GitBusy as e:
            result.error = make_run_error(e)
            raise
        except Unfinished as e:
            # The commit is made: nothing of this run is undone, and the next command does the rest.
            result.status, result.commits = "succeeded", [e.commit]
            result.warnings.append(str(e))
        except ClearedError as e:
            self._require_answers()
            failure = self.attempt.dispatcher.failure
            if isinstance(failure, Unanswered):
                self._suspend_run(result, failure.question)
                return
            result.error = self.attempt.explain_error(e)
            self._record_failure(result)

    def _suspend_run(self, result: RunResult, question: Question) -> None:
        """Discard the draft; ask, in one ``log:`` commit."""
        from cleared.runs import suspended_runs  # late: few runs ask

        result.status = "waiting"
        self.attempt.log_printed_lines()
        result.commits, result.cards = suspended_runs.record_question(
            self.host,
            self.repo,
            self.snapshot,
            self.attempt,
            question,
            self._commit_trailers("Attempt", ASKS),
            self._finished_questions(ASKS),
        )

    def _commit_draft(self, context: Context, message: CommitSubject) -> str:
        self._stage_resumed_cards(context)
        plan = draft.CommitPlan(message, self._commit_trailers("Event"), command_key=self.host.command_key)
        return draft.commit_draft(self.host, self.repo, self.snapshot, context, plan)

    def _stage_resumed_cards(self, context: Context) -> None:
        """Stage that the questions which this run has taken up are done with."""
        for card in self._finished_questions():
            context.cards.record_continuation(card, format_iso(self.host.clock.now()), self.script.name, self.run_id)

    def _finished_questions(self, outcome: str = "") -> tuple[str, ...]:
        """The questions that are done with when this run ends so: not yet where it goes on and asks something else."""
        return () if outcome == ASKS and self.again.expected_question else self.again.card_ids

    def _finish_run(self, result: RunResult) -> None:
        context = self.context
        self.attempt.log_printed_lines()
        if self.again.expected_question and self.again.expected_question not in context.questions.asked_keys:
            raise PolicyError(
                "the books have moved: it does not ask again what was answered, so nothing of it is kept",
                remedy="Look at them, and run it anew.",
            )
        if not self.dry_run:
            resolve_cards(self.host, self.repo, self.snapshot, context)
            for part in context.parts.values():
                part.stage_findings(context)
            self._stage_model_answers()
        result.records = {name: draft.records for name, draft in describe_drafts(context.parts).items()}
        result.cards = list(context.cards.added.values())
        result.events = list(context.events)
        if self.dry_run:
            context.host.check_draft()
            result.status = "dry_run"
            result.message = self._commit_message()
            return
        added = count_records(result.records)
        context.log_action("run", f"succeeded: {added}, {count_noun(len(result.cards), 'card')}")
        kept = bool(context.commit_messages or self.host.config.git.auto_commit)
        if context.has_changes and not kept:
            result.warnings.append(
                f"{added} {'was' if sum(map(len, result.records.values())) == 1 else 'were'} discarded: the script did "
                "not call git_commit, and git.auto_commit is off"
            )
            result.records, result.cards, result.events = no_records(), [], []
        if context.has_changes and kept:
            result.message = subject = self._commit_message()
            context.attested[MADE] = str(sum(map(len, result.records.values())))
            with self.attempt.limit_time():  # the commit looks again, and is then not stopped in the middle
                context.host.check_draft()
            result.commits = [self._commit_draft(context, subject)]
        elif self.again.card_ids:  # changes nothing, but is over
            fresh = self.attempt.fresh_context()
            fresh.log = context.log.copy_rows()
            subject = commit_messages.run_changed_nothing(self.script.name)
            result.message, result.commits = subject, [self._commit_draft(fresh, subject)]
        elif not context.has_changes:
            agent_log.add_waiting_rows(self.host, agent_log.format_rows(context, context.now))
        result.status = "succeeded"

    def _stage_model_answers(self) -> None:
        """What models have answered becomes part of the commit, if there is one, so that dry runs have it."""
        if self.context.has_changes:
            for key, answer in self.context.model_answers.used.items():
                payload = {"request": key, "answer": dict(answer)}
                self.context.events.append({"name": MODEL_ANSWER_EVENT, "payload": payload})

    def _commit_message(self) -> CommitSubject:
        return commit_messages.run_succeeded(self.script.name, self.context.commit_messages)

    def _commit_trailers(self, event: str, outcome: str = "") -> list[tuple[str, str]]:
        return [
            ("Run", self.run_id),
            ("Agent", self.script.name),
            (event, f"{self.attempt.event['kind']} {self.attempt.event['id']}"),
            *((("Outcome", outcome),) if outcome else ()),
            *((WENT_ON, " ".join(cards)) for cards in [self._finished_questions(outcome)] if cards),
            *consumed_events.payload_trailer(self.attempt.event),
            ("Script", f"{self.script.file}@{self.script.blob}"),
            ("Clock", format_iso(self.attempt.now)),
            ("Seed", self.run_id),
        ]

    def _record_failure(self, result: RunResult) -> None:
        """Discard the draft; keep the log rows and a card in one ``log:`` commit."""
        result.status, result.result = "failed", None
        result.records, result.cards, result.events, result.message = no_records(), [], [], None
        if self.dry_run or result.error is None:
            return
        from cleared.runs import failed_runs  # late: few runs fail

        self.attempt.log_printed_lines()
        fresh = self.attempt.fresh_context()
        self._stage_resumed_cards(fresh)
        try:
            result.commits, result.cards = failed_runs.record_failure(
                self.host,
                self.repo,
                self.snapshot,
                self.context,
                fresh,
                result.error,
                self.script,
                self._commit_trailers("Attempt", FAILED),
            )
        except Unfinished as e:
            result.commits = [e.commit]
            result.warnings.append(str(e))
        except HeadMoved:
            if not self.last:  # it may have failed of what is old by now
                raise
            result.warnings.append("the branch moved: the failure could not be recorded in the workspace")
        except ClearedError as e:
            result.warnings.append(f"the failure could not be recorded in the workspace: {e}")

    def _trace_record(self, result: RunResult) -> dict[str, Any]:
        return {
            "status": result.status,
            "duration_ms": result.duration_ms,
            "result": result.result,
            "error": {**result.error.to_json_object(), "traceback": result.error.traceback} if result.error else None,
            "message": result.message,
            "commits": result.commits,
            "entries": [record for records in result.records.values() for record in records],
            "cards": [c.id for c in result.cards],
            "log": [[r.action, r.details, r.record_id] for r in itertools.islice(self.context.log, 5_000)],
        }
