"""Why a record is as it is: what it was made from → event → run → line of the script → values → approval → decisions.

Everything comes from git, so it works in a fresh clone; the line of the script by running it again over the same files,
or, where these were not kept, from this machine's trace.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, Place, UsageError
from cleared.base.json_values import to_json
from cleared.base.short_text import join_words
from cleared.changes.attestation import load_approvals
from cleared.changes.attestation_lines import ORIGIN_TRAILERS
from cleared.changes.audit.git_reverts import find_git_revert
from cleared.changes.decisions.decision_context import UNDO_TRAILER
from cleared.changes.decisions.passkey_signatures import find_passkey_signer
from cleared.changes.decisions.signatures import ACCEPTS_TRAILER, find_signing_reviewer, read_parents
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.trace import TraceStore
from cleared.domains.installed_domains import load_domains
from cleared.gate.dry_run import make_drop_folder
from cleared.gate.past_runs import DryRunInput, find_past_run, parent_commit
from cleared.git import Repository, Snapshot, history
from cleared.review.record_review import RecordOrigin, RecordPlace, RecordReview, load_review, load_reviews
from cleared.review.undo import ABOUT
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import Attempt, Event, Resumption
from cleared.trust.reviewers import KEY
from cleared.trust.trust_store import Trust, load_trust
from cleared.trust.verification import Approvals


class _Maker(Struct, frozen=True):
    """Recognises the call that made a record."""

    review: RecordReview
    record_id: str

    def find_in(self, answer: Any) -> int | None:
        return self.review.find_in_answer(answer, self.record_id)


class Explanation(Struct, frozen=True):
    """Why a record is as it is."""

    data: dict[str, Any]
    """All of it as plain data: the facts of its domain, ``commit``, run or decision, the record that it ``restores``,
    the one that it was ``replaced_by``, and later ``decisions``."""
    words: Sequence[tuple[str, str]]
    """The domain's facts for people: labels and texts."""


def explain_record(host: Host, name: str) -> Explanation:
    """All that explains a record. Raises ``UsageError`` where there is no such record, or where its commit is not in
    this clone."""
    with host.open_for_reading() as repo:
        head = Snapshot(repo, repo.read_head())
        found = ((review, review.trace_record(host, head, name)) for review in load_reviews().values())
        review, origin = next(((each, traced) for each, traced in found if traced is not None), (None, None))
        if review is None or origin is None:
            nouns = [domain.record_noun[0] for domain in load_domains() if load_review(domain).maker_primitives]
            raise UsageError(
                f"there is no {join_words(nouns, 'or')} {name!r}",
                remedy="cleared run list shows what made some.",
            )
        commit = find_making_commit(host, repo, origin.place)
        if commit is None:
            raise UsageError(
                f"the commit that made {origin.record_id} is not in this clone", remedy="git fetch --unshallow"
            )
        removal = find_making_commit(host, repo, origin.removal)
        data = {
            **origin.facts,
            "commit": {
                "id": commit.id,
                "at": commit.trailers.get("Clock", format_iso(commit.when)),
                "subject": commit.subject,
            },
            **_run_origin(host, repo, commit, _Maker(review, origin.record_id)),
            "restores": origin.restores or None,
            "replaced_by": origin.successor or None,
            "decisions": _later_decisions(host, head, review, origin, commit, removal),
        }
        return Explanation(data, origin.words)


def read_successor(host: Host, name: str | None) -> str | None:
    """The record that stands in the place of one that does not stand any more, where there is such."""
    if not name:
        return None
    with host.open_last_commit() as head:
        traced = (review.trace_record(host, head, name) for review in load_reviews().values())
        return next((origin.successor or None for origin in traced if origin is not None), None)


def find_making_commit(host: Host, repo: Repository, place: RecordPlace | None) -> history.CommitInfo | None:
    """The commit that made what lies there; None where that is not in this clone."""
    if place is None:
        return None
    path = place.path

    def has_record(commit: str) -> bool:
        return place.mark in (Snapshot(repo, commit).read_file(path) or b"")

    def adds_record(commit: history.CommitInfo) -> bool:
        parent = parent_commit(repo, commit.id)
        return has_record(commit.id) and (parent is None or not has_record(parent))

    commits = history.read_log(host.root, None, [path])

    def is_on_a_line(commit: history.CommitInfo) -> bool:
        return len(read_parents(repo, commit.id)) < 2

    # Where git took a row back, its number is given again: the newest that adds it made what is there.
    by_git = (commit for commit in commits if not set(ORIGIN_TRAILERS) & set(commit.trailers))
    if any(map(is_on_a_line, by_git)):
        maker = next((commit for commit in commits if is_on_a_line(commit) and adds_record(commit)), None)
        if maker is not None:
            return maker
    # Else no row is ever removed, so on a line of commits the oldest that has it made it; merges are gone through.
    oldest, newest = 0, len(commits) - 1
    while oldest < newest:
        middle = (oldest + newest + 1) // 2
        oldest, newest = (middle, newest) if has_record(commits[middle].id) else (oldest, middle - 1)
    if commits and adds_record(commits[oldest]):
        return commits[oldest]
    return next((c for c in history.commits_touching(host.root, [path]) if adds_record(c)), None)


def _run_origin(host: Host, repo: Repository, commit: history.CommitInfo, maker: _Maker) -> dict[str, Any]:
    trailers = commit.trailers
    if "Run" not in trailers:
        return {"run": None, "decision": trailers.get("Decision"), "by": trailers.get("By", commit.author)}
    path, _, blob = trailers.get("Script", "").partition("@")
    snapshot = Snapshot(repo, commit.id)
    data = snapshot.read_file(path)
    approval: dict[str, Any] | None = None
    if data is not None:
        source = CommittedSource(snapshot)
        standing = Approvals(source, host.root, read_trust=_read_trust_of_then).verify_version(path, data)
        record = standing.record
        approval = {
            "state": standing.state,
            "by": record.by if record else None,
            "at": record.at if record else None,
            "proposal": record.proposal if record else None,
            "why": standing.reason,
        }
    return {
        "run": trailers["Run"],
        "agent": trailers.get("Agent"),
        "event": trailers.get("Event"),
        "script": {"file": path, "blob": blob},
        "call": _find_call(host, repo, trailers, maker),
        "approval": approval,
    }


def _read_trust_of_then(workspace: str) -> Trust:
    """What this user trusts, with nothing that was taken back since a commit: what was by then, lies in it."""
    return structs.replace(load_trust(workspace), barred={}, withdrawn=set())


def _find_call(host: Host, repo: Repository, trailers: dict[str, str], maker: _Maker) -> dict[str, Any] | None:
    """The call that made the record. A run of thousands of calls is not done again where the trace knows the line."""
    trace = TraceStore(host.layout.state_dir).find_run(trailers["Run"])
    traced = _find_traced_call(trace, maker) if trace is not None else None
    if traced is not None and trace is not None and trace["more_calls"]:
        return traced
    occasion = find_past_run(host, repo, trailers.get("Agent", ""), trailers["Run"])
    return (_call_by_replay(host, repo, occasion, trailers, maker) if occasion is not None else None) or traced


def _call_by_replay(
    host: Host, repo: Repository, occasion: DryRunInput, trailers: dict[str, str], maker: _Maker
) -> dict[str, Any] | None:
    """The call that made the record, by running the script of that commit again over that commit's files."""
    after = occasion.after
    if after is None:
        return None
    texts = {
        p: after.read_file(p)
        for folder in (host.layout.agents_dir, host.layout.scripts_dir)
        for p in after.list_entries(folder)
        if p.endswith(".py") and p.count("/") == 1
    }
    scripts = Scripts(host, after, texts=texts)
    with contextlib.suppress(ClearedError), make_drop_folder(occasion.inputs) as folder:
        attempt = Attempt(
            host,
            repo,
            occasion.snapshot,
            scripts.load_agent(trailers["Agent"]),
            Resumption(occasion.event or Event(), now=occasion.now),
            dry_run=True,
            scripts=scripts,
            drop_folder=folder,
            say=lambda _: None,
        )
        making_calls: list[dict[str, Any]] = []

        def look_at_call(
            name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], place: Place, answer: Any
        ) -> None:
            index = maker.find_in(answer) if not making_calls else None
            if index is not None:
                making_calls.append(
                    {
                        "primitive": name,
                        "file": place.file,
                        "line": place.line,
                        "column": place.column,
                        "from": "replay",
                        "arguments": host.redactor.redact_data(to_json(_call_arguments(args, kwargs, index))),
                    }
                )

        attempt.watch_answer = look_at_call
        with contextlib.suppress(ClearedError):
            attempt.execute_script()
    return making_calls[0] if making_calls else None


def _call_arguments(args: tuple[Any, ...], kwargs: Any, place: int) -> Any:
    if args and isinstance(args[0], list):  # several at once: of the one record
        return args[0][place] if place < len(args[0]) else None
    return {**{str(n): v for n, v in enumerate(args)}, **kwargs}


def _find_traced_call(run_trace: Mapping[str, Any], maker: _Maker) -> dict[str, Any] | None:
    makers = maker.review.maker_primitives
    for call in run_trace["calls"]:
        if call["name"] in makers and f'"{maker.record_id}"' in str(call["result"]):
            try:
                call_arguments = json.loads(call["arguments"])
                index = maker.find_in(json.loads(call["result"])) or 0
                arguments = _call_arguments(tuple(call_arguments["args"]), call_arguments["kwargs"], index)
            except (ValueError, KeyError, TypeError):  # cut off, where they were long
                arguments = call["arguments"]
            return {
                "primitive": call["name"],
                "file": call["file"],
                "line": call["line"],
                "column": call["column"],
                "arguments": arguments,
                "from": "trace",
            }
    # In no call that was kept whole: then in one of those that were summed up, where they are all of one line.
    making = [s for s in run_trace["more_calls"] if s["name"] in makers]
    if len(making) != 1 or any(makers.get(call["name"], False) for call in run_trace["calls"]):
        return None
    return {key: making[0][key] for key in ("file", "line", "column")} | {
        "primitive": making[0]["name"],
        "arguments": None,
        "from": "trace",
    }


def _later_decisions(
    host: Host,
    head: Snapshot,
    review: RecordReview,
    origin: RecordOrigin,
    made: history.CommitInfo,
    removal: history.CommitInfo | None,
) -> list[dict[str, Any]]:
    """What people decided of it since it was made, oldest first; what had its id before is another record. ``changed``:
    what they amended. ``signed``: by which reviewer, as the signature says; empty where it is wrong, None where there
    is none. ``git_revert``: what became of it, where git took it back; None where it stands. ``by_hand``: it is a
    commit by hand; who answers for it decided that."""
    repo, record_id = head.repo, origin.record_id
    whole = re.compile(rf"(?<![\w-]){re.escape(record_id)}(?![\w-])")
    since = parent_commit(repo, made.id)
    commits = history.read_log(host.root, None, grep=record_id, files=True, since=since)
    if removal is not None and removal.id not in {commit.id for commit in commits}:
        commits = sorted([*commits, removal], key=lambda commit: commit.when, reverse=True)

    def is_about(commit: history.CommitInfo) -> bool:
        texts = (commit.subject, commit.trailers.get(UNDO_TRAILER, ""), commit.trailers.get(ABOUT, ""))
        return any(whole.search(text) for text in texts) or (removal is not None and commit.id == removal.id)

    def describe_decision(commit: history.CommitInfo) -> dict[str, Any]:
        reverted = find_git_revert(host, repo, head, commit)
        return {
            "commit": commit.id,
            "by": commit.trailers.get("By"),
            "at": commit.trailers.get("Clock"),
            "what": commit.subject,
            "changed": _list_changes(host, repo, commit, review, origin),
            "signed": _find_signer(host, repo, commit.id) if KEY in commit.trailers else None,
            "git_revert": reverted.outcome if reverted is not None else None,
            "by_hand": False,
        }

    decisions = [describe_decision(each) for each in commits if "Decision" in each.trailers and is_about(each)]
    told = [each["commit"] for each in decisions if each["git_revert"]]  # and so the commit that took it back
    edits = _list_hand_edits(host, repo, review, origin, made)
    edits = [each for each in edits if not any(f"reverts commit {name}" in each[0].body for name in told)]
    for edit, changed in edits:
        facts = {"commit": edit.id, "by": edit.author, "at": format_iso(edit.when), "what": edit.subject}
        decisions.append({**facts, "changed": changed, "signed": None, "git_revert": None, "by_hand": True})
        answers = history.find_by_trailer(host.root, ACCEPTS_TRAILER, edit.id)
        decisions += [describe_decision(history.read_commit(host.root, each.id)) for each in answers]
    if edits:
        out = repo.git.run("rev-list", "--topo-order", f"{made.id}..{head.commit}").decode("ascii").split()
        places = {commit: place for place, commit in enumerate(out)}
        decisions.sort(key=lambda each: places.get(each["commit"], len(places)))
    return decisions[::-1]


def _list_hand_edits(
    host: Host, repo: Repository, review: RecordReview, origin: RecordOrigin, made: history.CommitInfo
) -> list[tuple[history.CommitInfo, list[dict[str, str]]]]:
    """The commits by hand that changed a record since it was made, newest first, each with what it changed."""
    commits = history.read_log(host.root, None, [origin.place.path], since=made.id, files=True)
    by_hand = [commit for commit in commits if not set(ORIGIN_TRAILERS) & set(commit.trailers)]
    alone = [commit for commit in by_hand if len(read_parents(repo, commit.id)) == 1]
    found = [(commit, _list_changes(host, repo, commit, review, origin, by_hand=True)) for commit in alone]
    return [each for each in found if each[1]]


def _list_changes(
    host: Host,
    repo: Repository,
    commit: history.CommitInfo,
    review: RecordReview,
    origin: RecordOrigin,
    *,
    by_hand: bool = False,
) -> list[dict[str, str]]:
    """What a commit changed where it stands: each ``field``, its ``old`` text and its ``new`` one."""
    parent = parent_commit(repo, commit.id)
    if parent is None or origin.place.path not in (commit.files or ()):
        return []
    before, after = Snapshot(repo, parent), Snapshot(repo, commit.id)
    changes = review.list_changes(host.layout, before, after, origin.record_id, by_hand=by_hand)
    return [{"field": field, "old": old, "new": new} for field, old, new in changes]


def _find_signer(host: Host, repo: Repository, commit: str) -> str:
    approvals = load_approvals(host, Snapshot(repo, repo.read_head()))
    return find_signing_reviewer(approvals, repo, commit) or find_passkey_signer(host, repo, commit)
