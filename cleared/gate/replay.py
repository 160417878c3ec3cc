"""A past run once more, from its commit: the same script over the same books, files, clock and answers.

Nothing of today's workspace is read: what a run reads lies in the commit before it, and what it read elsewhere (watched
files, the loop) is answered from its trace. Nothing is kept of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, PolicyError, PrimitiveError
from cleared.base.file_source import MONTH_MARK, choose_dated
from cleared.base.short_text import shorten_text
from cleared.base.temporary_folders import open_temporary_folder
from cleared.base.terminal import count_noun
from cleared.cards.kinds import QUESTION
from cleared.changes import consumed_events
from cleared.changes.audit.commit_origins import CommitOrigins
from cleared.changes.auto_resolve import resolve_cards
from cleared.changes.committed_cards import read_cards
from cleared.changes.consumed_events import ASKS
from cleared.changes.host import Host
from cleared.changes.line_worth import COUNTING
from cleared.changes.record_sources import CommittedSource
from cleared.changes.session import recent_commits
from cleared.changes.trace import find_gap, render_calls
from cleared.domains.installed_domains import ManagedFiles
from cleared.gate.dry_run import make_drop_folder
from cleared.gate.past_runs import parent_commit, read_event_of_run, read_imported_inputs
from cleared.gate.past_version import PastScripts, open_past_host
from cleared.gate.unseen_cards import count_unseen, strip_unseen
from cleared.git import Repository, Snapshot, history
from cleared.primitives.model_requests import MODEL_ANSWER_EVENT, recorded_answers
from cleared.primitives.queue import Unanswered
from cleared.primitives.registry.primitive import Primitive
from cleared.runs.attempt import Attempt, Event, Resumption, parse_event
from cleared.runs.outcome import RunError
from cleared.runs.run_queries import read_run

_OUTSIDE: Final = ("cleared.primitives.files", "cleared.primitives.loop")
"""Modules of primitives that read what no commit holds."""
_MAX_SHOWN: Final = 300


class PastRun(Struct):
    """A run as its commit and its trace record it. ``commit``: None where it made none."""

    run: str
    agent: str
    base: Snapshot
    now: datetime
    event: Event
    script: str
    """``PATH@BLOB`` of what ran."""
    commit: history.CommitInfo | None
    after: Snapshot | None
    calls: list[dict[str, Any]] | None
    """As the trace has them; None where it is not here."""
    error: str | None
    inputs: Mapping[str, bytes] = {}
    missing: list[str] = []
    """What neither git nor the trace holds of it, in words."""


class Replay(Struct):
    """How a past run went once more. ``diverges``: where it first differs, and why; None where it does not."""

    past: PastRun
    calls: int = 0
    compared_calls: int = 0
    effects: list[str] = []
    """The files that it would change."""
    differing: list[str] = []
    """Those that the commit has otherwise."""
    diverges: dict[str, Any] | None = None

    @property
    def is_same(self) -> bool:
        return self.diverges is None and not self.differing

    def to_dict(self) -> dict[str, Any]:
        past = self.past
        return {
            "run_id": past.run,
            "agent": past.agent,
            "script": past.script,
            "commit": past.commit.id if past.commit is not None else None,
            "base": past.base.commit,
            "same": self.is_same,
            "calls": self.calls,
            "compared_calls": self.compared_calls,
            "effects": self.effects,
            "differing": self.differing,
            "diverges": self.diverges,
            "missing": past.missing,
        }


def replay_run(host: Host, run_id: str) -> Replay:
    """Do a run again, from what was recorded of it, and compare.

    Raises ``UsageError`` where there is no such run, ``PolicyError`` where nothing shows that it was one, where what
    ran was approved by nobody who counts here, or where what it began from is not in this clone.
    """
    with host.open_for_reading() as repo:
        past = _find_past_run(host, repo, run_id)
        with open_temporary_folder("replay") as folder:
            return _replay(open_past_host(host, past.base, folder), repo, past)


def _find_past_run(host: Host, repo: Repository, run_id: str) -> PastRun:
    told = read_run(host, run_id)
    run = str(told["run_id"])
    trace = told if "head" in told else None
    commit = _find_commit(host, repo, run)
    if commit is None and trace is None:
        raise PolicyError(f"nothing shows that {run} is a run of a machine that counts here")
    if commit is not None and commit.trailers.get("Script"):
        script, base = commit.trailers["Script"], parent_commit(repo, commit.id)
        now = datetime.fromisoformat(commit.trailers["Clock"])
    else:
        assert trace is not None
        script, base, now = str(trace["script"]), trace["head"], datetime.fromisoformat(str(trace["started_at"]))
    if base is None or not repo.has_in_history(base):
        raise PolicyError(
            f"the commit that {run} began from is not in this clone", remedy="Fetch all of it: git fetch --unshallow"
        )
    after = Snapshot(repo, commit.id) if commit is not None else None
    error = told.get("error")
    past = PastRun(
        run,
        str(told["agent"]),
        Snapshot(repo, base),
        now,
        Event(),
        script,
        commit,
        after,
        trace["calls"] if trace is not None and not find_gap(trace) else None,
        str(error["message"] if isinstance(error, dict) else error) if error else None,
    )
    _read_inputs(host, past, trace)
    if trace is None:
        past.missing.append("its calls: the trace is not on this machine")
    elif gap := find_gap(trace):
        past.missing.append(f"its calls: {gap}")
    return past


def _find_commit(host: Host, repo: Repository, run: str) -> history.CommitInfo | None:
    """The commit that the run made, where what vouches for it counts here: the one of its effects, else of its end."""
    origins = CommitOrigins(host, repo, Snapshot(repo, repo.read_head()))
    found = [history.read_commit(host.root, each.id) for each in history.find_by_trailer(host.root, "Run", run)]
    found = [commit for commit in found if origins.judge_alone(commit) in COUNTING]
    return next((commit for commit in found if "Event" in commit.trailers), found[0] if found else None)


def _read_inputs(host: Host, past: PastRun, trace: Mapping[str, Any] | None) -> None:
    """The files and the event that it was run for."""
    if past.commit is not None and past.after is not None:
        past.inputs, complete = read_imported_inputs(host, past.after, past.run, past.commit.files or ())
        if not complete:
            past.missing.append("its bank files: import.keep leaves them out of the repository")
        marks = past.commit.trailers
        kind, _, key = (marks.get("Event") or marks.get("Attempt") or "").partition(" ")
        event = read_event_of_run(host, past.after, marks, past.inputs) or Event(kind)
        past.event = replace(event, key=key or None)
    if trace is not None and isinstance(trace.get("event"), dict):
        past.event = parse_event(trace["event"])
    if past.error is not None and past.event.files:
        past.missing.append("the files that it failed over: only a run that takes them commits them")


def _replay(past_host: Host, repo: Repository, past: PastRun) -> Replay:
    scripts = PastScripts(past_host, past.base)
    script = scripts.load_agent(past.agent)
    if past.script != f"{script.file}@{script.blob}":
        raise PolicyError(
            f"{past.script} is not what stands in the commit before {past.run}: {script.file}@{script.blob[:12]}",
            remedy="The commits were moved since (a rebase, a merge), so it cannot be told what it read.",
        )
    answers = _find_answers(past_host, past)
    events = list(consumed_events.iter_emitted_events(CommittedSource(past.after or past.base)))
    with make_drop_folder(past.inputs) as folder:
        attempt = Attempt(
            past_host,
            repo,
            past.base,
            script,
            Resumption(past.event, run_id=past.run, now=past.now, answers=answers),
            dry_run=False,
            scripts=scripts,
            drop_folder=folder,
            say=lambda _: None,
            stops_to_ask=True,
            model_answers=recorded_answers(iter(events), past.run),
        )
        rev = past.base.commit or "HEAD"
        attempt.context.host.list_commits = lambda limit: recent_commits(past_host, limit, rev)
        attempt.dispatcher.registry = _RecordedRegistry(attempt, past.calls)  # type: ignore[assignment]
        return _compare(past_host, repo, past, attempt, *_execute(attempt))


def _execute(attempt: Attempt) -> tuple[RunError | None, bool]:
    """Run the script: its error, and whether it stops at a question."""
    try:
        attempt.execute_script()
        attempt.context.host.check_draft()
    except ClearedError as error:
        if isinstance(attempt.dispatcher.failure, Unanswered):
            return None, True
        return attempt.explain_error(error), False
    return None, False


class _RecordedRegistry:
    """The primitives; those that read what no commit holds answer what the trace has."""

    def __init__(self, attempt: Attempt, calls: list[dict[str, Any]] | None) -> None:
        self._registry, self._attempt = attempt.host.registry, attempt
        self._calls = {call["number"]: call for call in calls or ()}

    def __iter__(self) -> Iterator[str]:
        return iter(self._registry)

    def get(self, name: str) -> Primitive | None:
        primitive = self._registry.get(name)
        if primitive is None or primitive.function.__module__ not in _OUTSIDE:
            return primitive
        return replace(primitive, function=lambda _, **values: self._answer(name))

    def _answer(self, name: str) -> Any:
        call = self._calls.get(self._attempt.dispatcher.calls)
        if call is not None and call["name"] == name and call["error"] is None:
            try:
                return _whole(json.loads(call["result"]))
            except ValueError:
                pass
        raise PrimitiveError(f"what {name} read is not recorded whole, and no commit holds it")


def _whole(value: Any) -> Any:
    """A recorded value. Raises ``ValueError`` where the trace has cut it."""
    if isinstance(value, str) and value.endswith("…"):
        raise ValueError(value)
    if isinstance(value, list) and value and isinstance(value[-1], str) and value[-1].startswith("… and "):
        raise ValueError(value)
    for inner in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        _whole(inner)
    return value


def _find_answers(host: Host, past: PastRun) -> dict[str, str]:
    """What people had answered to its questions when it went on."""
    answers: dict[str, str] = {}
    for card in read_cards(host, past.base).list_kind(QUESTION.name):
        ticket = card.details.get("ticket")
        is_its = card.details.get("run") == past.run and card.status == "resolved"
        if is_its and isinstance(ticket, dict) and isinstance(ticket.get("place"), str):
            answers[ticket["place"]] = str(card.resolution)
    return answers


def _compare(
    host: Host, repo: Repository, past: PastRun, attempt: Attempt, error: RunError | None, asks: bool
) -> Replay:
    replay = Replay(past, calls=attempt.calls.total)
    calls = render_calls(attempt.calls, host.redactor)
    if past.calls is not None:
        replay.compared_calls = len(past.calls)
        replay.diverges = _find_divergence(past.calls, calls)
    message = error.message if error is not None else None
    if replay.diverges is None and past.calls is not None and (message or past.error) and message != past.error:
        replay.diverges = _differ("its end", past.error or "it ended well", message or "it ended well")
    has_effects = past.commit is not None and "Event" in past.commit.trailers
    if error is not None or asks:
        asked = past.commit is not None and past.commit.trailers.get("Outcome") == ASKS
        if has_effects or (asks and not asked):
            ending = "it stops at a question" if asks else str(error)
            replay.diverges = replay.diverges or _differ("its end", "it ended well", ending)
        return replay
    changes = _render_effects(host, repo, past, attempt)
    replay.effects = sorted(changes)
    if has_effects and past.after is not None:
        after, run = past.after, past.run
        unseen = sum(count_unseen(after.read_file(path), run) for path in past.commit.files or ()) if past.commit else 0
        if unseen:
            past.missing.append(f"{count_noun(unseen, 'file')} that it could not take: no commit holds that")
        replay.differing = sorted(
            path for path, data in changes.items() if strip_unseen(after.read_file(path), run) != (data or None)
        )
        replay.differing += _find_missing(host, past, changes)
    elif changes and not past.error:
        replay.differing = replay.effects
    if replay.differing and replay.diverges is None:
        replay.diverges = _differ(replay.differing[0], "as the commit has it", "otherwise")
    return replay


def _render_effects(host: Host, repo: Repository, past: PastRun, attempt: Attempt) -> dict[str, bytes | None]:
    """What the run would commit of records, cards and events: path → content, of those that it changes."""
    context = attempt.context
    resolve_cards(host, repo, past.base, context)
    for part in context.parts.values():
        part.stage_findings(context)
    for key, answer in context.model_answers.used.items():
        context.events.append({"name": MODEL_ANSWER_EVENT, "payload": {"request": key, "answer": dict(answer)}})
    went_on = past.commit.trailers.get("Went-On", "").split() if past.commit is not None else []
    for card in went_on:
        context.cards.record_continuation(card, _continued_at(host, past, card), attempt.script.name, past.run)
    for part in context.parts.values():
        part.complete_draft(context, past.base, stays_open=False)
    changes: dict[str, bytes | None] = {}
    for part in context.parts.values():
        changes.update(part.render_files(past.run))
    changes.update(context.cards.changed_files())
    lines = [
        consumed_events.format_event(past.run, i, context.agent, context.now, e["name"], e["payload"])
        for i, e in enumerate(context.events)
    ]
    if lines:
        source, events = CommittedSource(past.base), host.layout.events
        changed = (past.commit.files if past.commit is not None else None) or ()
        known = next((path for path in changed if MONTH_MARK.sub("", path) == events), None)  # it may be of all months
        path = known or choose_dated(source, events, format_iso(context.now)[:7])
        changes[path] = (source.read(path) or b"") + "".join(lines).encode("utf-8")
    return {path: data for path, data in changes.items() if data != past.base.read_file(path)}


def _continued_at(host: Host, past: PastRun, card: str) -> str:
    """When the run took the question up: the one time that no clock of the script says."""
    assert past.after is not None
    for path in past.after.list_entries(host.layout.queue_dir):
        lines = (past.after.read_file(path) or b"").splitlines() if path.endswith(".jsonl") else []
        for line in lines:
            if past.run.encode() in line and card.encode() in line and b'"run"' in line:
                said = json.loads(line)
                if said.get("run") == past.run and "title" not in said:
                    return str(said.get("at", ""))
    return format_iso(past.now)


def _find_missing(host: Host, past: PastRun, changes: Mapping[str, bytes | None]) -> list[str]:
    """Files of records and cards that the commit changes and the replay does not."""
    managed, logs = ManagedFiles(host.layout), f"{host.layout.logs_dir}/"
    files = past.commit.files if past.commit is not None else ()
    return sorted(
        path
        for path in files or ()
        if path not in changes
        and managed.has_path(path)
        and not path.startswith((logs, f"{host.layout.approvals_dir}/"))
        and not path.startswith(host.layout.import_dir)
        and past.after is not None
        and strip_unseen(past.after.read_file(path), past.run) != (past.base.read_file(path) or None)
    )


def _find_divergence(recorded: list[dict[str, Any]], replayed: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The first call that differs."""
    for before, now in zip(recorded, replayed, strict=False):
        for key in ("name", "arguments", "error", "result"):
            if before[key] != now[key]:
                place = f"call {before['number']}, {before['file']}:{before['line']}"
                was, is_now = f"{before['name']}: {before[key]}", f"{now['name']}: {now[key]}"
                return _differ(f"{place}, {key}", was, is_now, before["number"])
    if len(recorded) != len(replayed):
        number = min(len(recorded), len(replayed)) + 1
        return _differ(f"call {number}", f"{len(recorded)} calls", f"{len(replayed)} calls", number)
    return None


def _differ(where: str, before: str, now: str, call: int | None = None) -> dict[str, Any]:
    return {
        "where": where,
        "call": call,
        "recorded": shorten_text(before, _MAX_SHOWN),
        "replayed": shorten_text(now, _MAX_SHOWN),
    }
