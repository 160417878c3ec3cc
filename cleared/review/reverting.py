"""Taking back what a run did, and what rests on it: ``cleared revert``. One commit; what people decided stays.

A later run rests on it where its trace shows that it read what the run wrote, or where an event that the run emitted
started it; and so on from there. Of runs whose traces are gone, or whose answers the trace has cut, it is only said
that nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from msgspec import Struct, to_builtins

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, PolicyError, UsageError
from cleared.changes import commit_messages
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.audit.git_reverts import GitRevert, find_git_revert
from cleared.changes.consumed_events import AlreadyRun, is_consumed, iter_emitted_events
from cleared.changes.decisions.decision_context import REVERTS, UNDO_TRAILER, Decision, DecisionContext, commit_decision
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.trace import find_gap
from cleared.domains.installed_domains import load_comparisons
from cleared.gate.manual_runs import run_command
from cleared.gate.past_runs import parent_commit
from cleared.git import Snapshot, history
from cleared.primitives.registry.primitive import Effect
from cleared.review.record_review import RevertCase, RevertedRun, load_reviews
from cleared.trust.person_only import refuse_in_job

TAKEN_BACK: Final = "its run was taken back"
"""The resolution of cards that a run opened."""
AGAIN: Final = "Again"
"""The trailer of such a decision that has agents run again: which."""


class RevertPlan(Struct):
    """What taking back a run comes to. ``runs``: it, and those that rest on it, newest first."""

    runs: list[RevertedRun] = []
    decisions: list[dict[str, str]] = []
    """What people have decided about records of these runs: it stays."""
    may_have_read: list[dict[str, str]] = []
    """Later runs of which it is not known whether they read it, and why: they stay."""
    again: list[str] = []
    """Commands that do again what was taken back, where it is wanted."""
    commit: str = ""
    """The decision; where nothing was left to do but to run agents again, the one that had taken it back."""
    readers: list[str] = []
    """The agents whose runs had read what goes, in the order in which they ran; each once."""
    reran: list[dict[str, Any]] = []
    """The runs that were made again, as ``agent run --json`` prints them."""

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = to_builtins(self)
        return data


def revert_run(
    host: Host, name: str, *, reason: str = "", dry_run: bool = False, alone: bool = False, again: bool = False
) -> RevertPlan:
    """Take back a run, or the import of a file: void what it wrote, and what later runs wrote that had read it.

    ``name``: the run's id or a part of it, a file's name, or its path. ``dry_run``: only say what it would come to.
    ``alone``: what rests on it stays. ``again``: ``run_readers_again`` follows; where it was taken back so before, and
    that was killed, the plan is to go on with that.

    Raises ``UsageError`` where there is no such run or import, ``PolicyError`` where nothing of it is left to take
    back, also where git took it back, where some of it lies in a closed period, or the account was reconciled since,
    and inside a job.
    """
    refuse_in_job()
    reason = " ".join(host.redactor.redact_text(reason).split())
    plan = RevertPlan()

    def stage_revert(decision_context: DecisionContext) -> Decision | None:
        radius = _BlastRadius(host, decision_context, name)
        before = radius.find_decision() if again else None
        if before is not None:  # what ran again since had the same records before it, and stays
            plan.commit, plan.readers[:] = before.id, radius.list_not_run(before)
            return None
        if (reverted := radius.find_revert_of(radius.first.run)) is not None:
            raise PolicyError(
                f"nothing of run {radius.first.run} is left: it was {reverted.outcome}",
                remedy=" ".join(filter(None, ("cleared run show says what it did.", reverted.remedy))),
            )
        plan.runs[:] = [radius.first] if alone else radius.find_all()
        plan.may_have_read[:] = radius.doubtful
        plan.readers[:] = dict.fromkeys(run.agent for run in reversed(plan.runs) if run.has_read)
        why = f"run {radius.first.run} taken back" + (f": {reason}" if reason else "")
        for run in plan.runs:
            case = RevertCase(decision_context, run, name if run is radius.first else run.run, *radius.around(run), why)
            for review in load_reviews().values():
                review.stage_revert(case)
        if not decision_context.context.has_changes:
            kept = sum(len(run.kept) for run in plan.runs)
            raise PolicyError(
                f"nothing of {radius.first.run} is left to take back"
                + (f"; people decided about {kept}" if kept else ""),
                remedy="cleared run show says what it did.",
            )
        _settle_cards(decision_context, plan.runs)
        plan.decisions[:] = radius.list_decisions(plan.runs)
        plan.again[:] = list(dict.fromkeys(command for run in reversed(plan.runs) for command in run.again))
        if dry_run:
            return None
        voided = sum(len(run.voided) for run in plan.runs)
        subject = commit_messages.run_reverted(radius.first.run, voided, len(plan.runs) - 1, reason)
        marks = (
            (REVERTS, f"{radius.first.run} {_fold(name)}"),
            *(((AGAIN, " ".join(plan.readers)),) if again and plan.readers else ()),
        )
        return Decision(subject, trailers=marks, subject=("revert", *(run.run for run in plan.runs)))

    plan.commit = commit_decision(host, "revert", stage_revert, collects=[plan]) or plan.commit
    return plan


def run_readers_again(host: Host, plan: RevertPlan) -> None:
    """Run again, over what is left, just those agents that had read what was taken back: one commit each, or none. What
    an event had started is not: the event was taken back. An error of a run is kept with it.

    Each runs for the decision, once: said again after a kill, those go on that have not committed.
    """
    for agent in plan.readers:
        try:
            result = run_command(host, agent, key=_event_of(plan.commit)).to_json_object()
        except AlreadyRun:
            continue
        except ClearedError as error:
            result = {"agent": agent, "status": "refused", "commits": [], "error": {"message": str(error)}}
        plan.reran.append(result)
        if result["status"] == "succeeded":
            plan.again = [command for command in plan.again if command != f"cleared agent run {agent}"]


def _settle_cards(decision_context: DecisionContext, runs: Iterable[RevertedRun]) -> None:
    """Settle the open cards of these runs, but for those about what stays."""
    cards, by_run = decision_context.context.cards, {run.run: run for run in runs}
    for card in cards.open_cards():
        run = by_run.get(card.run_id or "")
        if run is not None and card.id not in cards.added and card.record_id not in run.kept:
            cards.resolve_card(card.id, format_iso(decision_context.context.now), decision_context.by, TAKEN_BACK)


class _BlastRadius:
    """One run on one commit, and what came of it."""

    def __init__(self, host: Host, decision_context: DecisionContext, name: str) -> None:
        self.host, self.repo, self.snapshot = host, decision_context.repo, decision_context.snapshot
        self.doubtful: list[dict[str, str]] = []
        self._origins = CommitOrigins(host, self.repo, self.snapshot)
        self._commits: dict[str, history.CommitInfo] = {}
        self._order: list[str] = []
        self._read_runs()
        self.first = self._describe(self._find(decision_context, name))

    def around(self, run: RevertedRun) -> tuple[history.CommitInfo, Snapshot, Snapshot]:
        """A run's commit, and the commits around it."""
        commit = self._read_commit(run.run)
        parent = parent_commit(self.repo, commit.id)
        if parent is None:
            raise PolicyError(f"what was there before {run.run} is not in this clone", remedy="git fetch --unshallow")
        return commit, Snapshot(self.repo, parent), Snapshot(self.repo, commit.id)

    def find_all(self) -> list[RevertedRun]:
        """The run and those that rest on it, newest first."""
        found = {self.first.run: self.first}
        known = self._marks_of(self.first)
        for run in reversed(self._order[: self._order.index(self.first.run)]):  # oldest first
            why = self._find_reading(run, known)
            if why is None or self.find_revert_of(run) is not None:
                continue
            later = self._describe(run)
            later.why, later.has_read = why
            found[run] = later
            known |= self._marks_of(later)
        return [found[run] for run in self._order if run in found]

    def find_revert_of(self, run: str) -> GitRevert | None:
        """How git took back a run, where nothing of it stands: what has its numbers now is something else."""
        reverted = find_git_revert(self.host, self.repo, self.snapshot, self._read_commit(run))
        return reverted if reverted is not None and reverted.is_whole else None

    def list_decisions(self, runs: Iterable[RevertedRun]) -> list[dict[str, str]]:
        """The decisions of people about the records of these runs, oldest first."""
        wanted = {record for run in runs for record in (*run.voided, *run.kept)}
        found, oldest = [], self._commits[self.first.run].id
        for commit in history.read_log(
            self.host.root, None, grep=f"{UNDO_TRAILER}: ", since=oldest, rev=str(self.snapshot.commit)
        ):
            about = wanted.intersection(commit.trailers.get(UNDO_TRAILER, "").split())
            if about and "Decision" in commit.trailers:
                made = {"decision": commit.trailers["Decision"], "by": commit.trailers.get("By", "")}
                found.append({**made, "what": commit.subject, "about": ", ".join(sorted(about))})
        return found[::-1]

    def find_decision(self) -> history.CommitInfo | None:
        """The newest decision that took it back and has agents run again; None where none that counts here did."""
        commits = (each for run, _, each in self._list_reverts() if run == self.first.run and AGAIN in each.trailers)
        return next((each for each in commits if self._origins.is_ours(each)), None)

    def list_not_run(self, decision: history.CommitInfo) -> list[str]:
        """The agents that the decision has run again, and that have not committed for it."""
        host, repo, key = self.host, self.repo, _event_of(decision.id)
        agents = decision.trailers[AGAIN].split()
        return [agent for agent in agents if not is_consumed(host, repo, self.snapshot, agent, key)]

    def _list_reverts(self) -> Iterator[tuple[str, str, history.CommitInfo]]:
        """What was taken back so far, newest first: the run, as what it was named, and the decision."""
        for commit in history.read_log(self.host.root, None, grep=f"{REVERTS}: ", rev=str(self.snapshot.commit)):
            run, _, named = commit.trailers.get(REVERTS, "").partition(" ")
            yield run, named, history.read_commit(self.host.root, commit.id)

    # -- runs -------------------------------------------------------------------------------------------------------

    def _read_runs(self) -> None:
        """The runs that made commits of effects, newest first, as far as what vouches for them counts here."""
        for commit in history.read_log(self.host.root, None, grep="Run: ", rev=str(self.snapshot.commit)):
            run = commit.trailers.get("Run")
            if run is not None and "Event" in commit.trailers and run not in self._commits:
                self._commits[run] = commit
                self._order.append(run)

    def _read_commit(self, run: str) -> history.CommitInfo:
        """A run's commit, with its files."""
        if self._commits[run].changes is None:
            self._commits[run] = history.read_commit(self.host.root, self._commits[run].id)
        return self._commits[run]

    def _find(self, decision_context: DecisionContext, name: str) -> str:
        found = [run for run in self._order if name == run or (len(name) >= 4 and run.endswith(f"-{name}"))]
        if not found:
            asked = (review.find_run(decision_context.context, name) for review in load_reviews().values())
            named = (run for run, named, _ in self._list_reverts() if named == _fold(name))
            found = [run for run in dict.fromkeys(filter(None, asked)) if run in self._commits]
            found = found or [run for run in islice(named, 1) if run in self._commits]
        if len(found) != 1:
            raise UsageError(
                f"{name!r} is the id or the file of {'no' if not found else 'more than one'} run that committed",
                remedy="cleared run list shows the newest. A decision is taken back by cleared queue undo.",
            )
        if not self._origins.is_ours(self._read_commit(found[0])):
            raise PolicyError(f"nothing shows that {found[0]} is a run of a machine that counts here")
        return found[0]

    def _describe(self, run: str) -> RevertedRun:
        commit = self._commits[run]
        return RevertedRun(run, commit.trailers.get("Agent", ""), commit.trailers.get("Clock", ""), commit.subject)

    def _marks_of(self, run: RevertedRun) -> set[str]:
        """What names what a run wrote: the ids of its records and cards, and of the events that it emitted."""
        commit, before, after = self.around(run)
        marks: set[str] = set()
        files, sources = commit.files or (), (CommittedSource(before), CommittedSource(after))
        for comparison in load_comparisons().values():
            marks |= comparison.read_added(self.host.layout, *sources, files).keys()
        for review in load_reviews().values():
            marks |= set(review.list_written(*sources, files))
        emitted = iter_emitted_events(CommittedSource(after))
        return marks | {str(event["id"]) for event in emitted if event["run"] == run.run}

    def _find_reading(self, run: str, known: set[str]) -> tuple[str, bool] | None:
        """Why a later run rests on what these marks name, and whether it read that; None where it does not, or nobody
        knows."""
        commit = self._commits[run]
        key = commit.trailers["Event"].partition(" ")[2]
        if key in known:
            return f"the event {key} started it", False
        trace = self.host.traces.find_run(run)
        if trace is None:
            self._doubt(run, "its trace is not on this machine")
            return None
        cut = ""
        for call in trace["calls"]:
            primitive = self.host.registry.get(call["name"])
            named = next((mark for mark in sorted(known) if self._is_reading(trace["agent"], call, mark)), None)
            if named is not None and primitive is not None:
                return f"{call['name']} at {call['file']}:{call['line']} read {named}", True
            if primitive is not None and primitive.effect is Effect.READ and "…" in (call["result"] or ""):
                cut = cut or f"the trace has not all of what {call['name']} at {call['file']}:{call['line']} answered"
        if cut or find_gap(trace):
            self._doubt(run, cut or find_gap(trace))
        return None

    def _is_reading(self, agent: str, call: Mapping[str, Any], mark: str) -> bool:
        """Whether a call read what a mark names: as its domain says, else where the mark is in its texts."""
        source, reviews = CommittedSource(self.snapshot), load_reviews().values()
        said = [found for each in reviews if (found := each.is_reading(source, agent, call, mark)) is not None]
        return any(said) if said else any(_names(text, mark) for text in (call["arguments"], call["result"] or ""))

    def _doubt(self, run: str, why: str) -> None:
        commit = self._commits[run]
        about = {"run": run, "agent": commit.trailers.get("Agent", ""), "why": why}
        if about not in self.doubtful:
            self.doubtful.append(about)


def _event_of(decision: str) -> str:
    """The key of the event for which agents run again."""
    return f"revert:{decision}"


def _fold(name: str) -> str:
    return " ".join(name.split())


def _names(text: str, mark: str) -> bool:
    """Whether JSON holds a text that is the mark, and no longer one."""
    return json.dumps(mark, ensure_ascii=False) in text
