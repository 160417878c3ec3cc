"""Why an entry is as it is: bank file and line → event → run → line of the script → values → approval → corrections.

Everything comes from git, so it works in a fresh clone; the line of the script by running it again over the same files,
or, where these were not kept, from this machine's trace.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from cleared.base.clock import format_iso
from cleared.base.errors import ClearedError, Place, UsageError
from cleared.base.json_values import to_json
from cleared.books.decisions.entry_amending import describe_changes
from cleared.books.ledger.entry import Entry
from cleared.books.ledger.entry_json import entry_to_json
from cleared.books.ledger.receipts import parse_receipts
from cleared.books.ledger.staged_bank_lines import BankBook
from cleared.books.ledger.staged_journal import Books
from cleared.books.opened_books import open_books
from cleared.changes.book_sources import CommittedSource
from cleared.changes.decisions.decision_context import UNDO_TRAILER
from cleared.changes.decisions.passkey_signatures import find_passkey_signer
from cleared.changes.decisions.signatures import find_signing_reviewer
from cleared.changes.host import Host
from cleared.changes.trace import TraceStore
from cleared.gate.dry_run import make_drop_folder
from cleared.gate.past_runs import DryRunInput, find_past_run, parent_commit
from cleared.git import Repository, Snapshot, history
from cleared.review.undo import ABOUT
from cleared.runs.approved_scripts import Scripts
from cleared.runs.attempt import Attempt, Event
from cleared.trust.reviewers import KEY
from cleared.trust.verification import Approvals

_POSTING: Final = ("journal_add", "journal_add_double", "journal_add_many", "journal_void")


def explain_entry(host: Host, name: str) -> dict[str, Any]:
    """All that explains an entry, as plain data. Raises ``UsageError`` where there is no such entry, or where its
    commit is not in this clone."""
    with host.open_for_reading() as repo:
        head = Snapshot(repo, repo.read_head())
        books, bank = open_books(host.layout, CommittedSource(head))
        entry = books.find_entry(name)
        if entry is None:
            raise UsageError(f"there is no entry {name!r}", remedy="cleared journal list shows the ids.")
        commit = posting_commit(host, repo, entry)
        if commit is None:
            raise UsageError(
                f"the commit that posted {entry.entry_id} is not in this clone", remedy="git fetch --unshallow"
            )
        line = None
        if entry.reference and (bank_line := bank.find_line(entry.reference)):
            account, fact = bank_line
            records = [*bank.imports, *bank.all_imports]  # of an undone import, too
            source = next((r for r in records if r.file_sha256 == fact.file_sha256), None)
            line = {
                "account": account,
                "line": fact.line_id,
                "file": source.name if source else None,
                "row": fact.row,
                "date": fact.posted_date.isoformat(),
                "amount": str(fact.amount),
                "text": fact.description,
            }
        return {
            "entry": entry_to_json(entry),
            "bank_line": line,
            "receipts": _list_receipts(host, bank, entry),
            "commit": {
                "id": commit.id,
                "at": commit.trailers.get("Clock", format_iso(commit.when)),
                "subject": commit.subject,
            },
            **_run_origin(host, repo, commit, entry),
            "decisions": _later_decisions(host, repo, entry, _voiding_commit(host, repo, books, entry)),
        }


def _list_receipts(host: Host, bank: BankBook, entry: Entry) -> list[dict[str, Any]]:
    """The receipts of an entry; ``is_here``: whether this clone has the file."""
    path = bank.paths.receipts
    receipts = parse_receipts(bank.source.read(path), path).values()
    return [
        {"name": r.name, "file": r.file, "sha256": r.sha256, "is_here": (host.root / r.file).is_file()}
        for r in receipts
        if entry.entry_id in r.entries
    ]


def posting_commit(host: Host, repo: Repository, entry: Entry) -> history.CommitInfo | None:
    """The commit that posted the entry."""
    path = host.layout.journal_path(*entry.month)
    mark = f"\n{entry.entry_id}a,".encode()

    def has_entry(commit: str) -> bool:
        return mark in (Snapshot(repo, commit).read_file(path) or b"")

    def adds_entry(commit: history.CommitInfo) -> bool:
        parent = parent_commit(repo, commit.id)
        return has_entry(commit.id) and (parent is None or not has_entry(parent))

    commits = history.read_log(host.root, None, [path])
    # No row is ever removed, so on a line of commits the oldest that has it posted it; merges are gone through.
    oldest, newest = 0, len(commits) - 1
    while oldest < newest:
        middle = (oldest + newest + 1) // 2
        oldest, newest = (middle, newest) if has_entry(commits[middle].id) else (oldest, middle - 1)
    if commits and adds_entry(commits[oldest]):
        return commits[oldest]
    return next((c for c in history.commits_touching(host.root, [path]) if adds_entry(c)), None)


def _run_origin(host: Host, repo: Repository, commit: history.CommitInfo, entry: Entry) -> dict[str, Any]:
    trailers = commit.trailers
    if "Run" not in trailers:
        return {"run": None, "decision": trailers.get("Decision"), "by": trailers.get("By")}
    path, _, blob = trailers.get("Script", "").partition("@")
    snapshot = Snapshot(repo, commit.id)
    data = snapshot.read_file(path)
    approval: dict[str, Any] | None = None
    if data is not None:
        standing = Approvals(CommittedSource(snapshot), host.root, {}).verify_version(path, data)
        record = standing.record
        approval = {
            "state": standing.state,
            "by": record.by if record else None,
            "at": record.at if record else None,
            "proposal": record.proposal if record else None,
            "why": standing.reason,
        }
    occasion = find_past_run(host, repo, trailers.get("Agent", ""), trailers["Run"])
    call = _call_by_replay(host, repo, occasion, trailers, entry) if occasion is not None else None
    return {
        "run": trailers["Run"],
        "agent": trailers.get("Agent"),
        "event": trailers.get("Event"),
        "script": {"file": path, "blob": blob},
        "call": call or _call_from_trace(host, trailers["Run"], entry),
        "approval": approval,
    }


def _call_by_replay(
    host: Host, repo: Repository, occasion: DryRunInput, trailers: dict[str, str], entry: Entry
) -> dict[str, Any] | None:
    """The call that posted the entry, by running the script of that commit again over that commit's files."""
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
            occasion.event or Event(),
            dry_run=True,
            scripts=scripts,
            now=occasion.now,
            drop_folder=folder,
            say=lambda _: None,
        )
        posting_calls: list[dict[str, Any]] = []

        def look_at_call(
            name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], place: Place, answer: Any
        ) -> None:
            index = _find_entry_index(answer, entry.entry_id) if not posting_calls else None
            if index is not None:
                posting_calls.append(
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
    return posting_calls[0] if posting_calls else None


def _find_entry_index(answer: Any, entry_id: str) -> int | None:
    """Where an answer says that an entry was posted: of a list the index, else 0; None where it does not say so."""
    for index, result in enumerate(answer if isinstance(answer, list) else (answer,)):
        if isinstance(result, dict) and result.get("entry_id") == entry_id and not result.get("duplicate"):
            return index
    return None


def _call_arguments(args: tuple[Any, ...], kwargs: Any, place: int) -> Any:
    if args and isinstance(args[0], list):  # journal_add_many: of the one entry
        return args[0][place] if place < len(args[0]) else None
    return {**{str(n): v for n, v in enumerate(args)}, **kwargs}


def _call_from_trace(host: Host, run: str, entry: Entry) -> dict[str, Any] | None:
    run_trace = TraceStore(host.layout.state_dir).find_run(run) or {"calls": (), "more_calls": ()}
    for call in run_trace["calls"]:
        if f'"{entry.entry_id}"' in str(call.get("result")) or f"'{entry.entry_id}'" in str(call.get("result")):
            try:
                call_arguments = json.loads(call["arguments"])
                index = _find_entry_index(json.loads(call["result"]), entry.entry_id) or 0
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
    posting = [s for s in run_trace["more_calls"] if s["name"] in _POSTING]
    if len(posting) != 1 or any(call["name"] == "journal_add_many" for call in run_trace["calls"]):
        return None
    return {key: posting[0][key] for key in ("file", "line", "column")} | {
        "primitive": posting[0]["name"],
        "arguments": None,
        "from": "trace",
    }


def _voiding_commit(host: Host, repo: Repository, books: Books, entry: Entry) -> history.CommitInfo | None:
    """The commit that voided the entry, where it does not name it: there it was one of many."""
    if entry.status != "voided":
        return None
    mark = f"@rev={entry.entry_id}"
    months = [month for month in books.list_months() if month >= entry.month]
    reversals = (e for month in months for e in books.iter_entries(*month) if mark in e.tags.split(";"))
    reversal = next(reversals, None)
    return posting_commit(host, repo, reversal) if reversal is not None else None


def _later_decisions(
    host: Host, repo: Repository, entry: Entry, voiding: history.CommitInfo | None
) -> list[dict[str, Any]]:
    """What people decided of it since, oldest first. ``changed``: what they amended. ``signed``: by which reviewer, as
    the signature says; empty where it is wrong, None where there is none."""
    decisions = []
    whole = re.compile(rf"(?<![\w-]){re.escape(entry.entry_id)}(?![\w-])")
    commits = history.read_log(host.root, None, grep=entry.entry_id, files=True)
    if voiding is not None and voiding.id not in {commit.id for commit in commits}:
        commits = sorted([*commits, voiding], key=lambda commit: commit.when, reverse=True)
    for commit in commits:
        texts = (commit.subject, commit.trailers.get(UNDO_TRAILER, ""), commit.trailers.get(ABOUT, ""))
        is_about = any(whole.search(text) for text in texts) or (voiding is not None and commit.id == voiding.id)
        if "Decision" in commit.trailers and is_about:
            decisions.append(
                {
                    "commit": commit.id,
                    "by": commit.trailers.get("By"),
                    "at": commit.trailers.get("Clock"),
                    "what": commit.subject,
                    "changed": _list_changes(host, repo, commit, entry),
                    "signed": _find_signer(host, repo, commit.id) if KEY in commit.trailers else None,
                }
            )
    return decisions[::-1]


def _list_changes(host: Host, repo: Repository, commit: history.CommitInfo, entry: Entry) -> list[dict[str, str]]:
    """What a decision changed where it stands: each ``field``, its ``old`` text and its ``new`` one."""
    parent = parent_commit(repo, commit.id)
    if parent is None or host.layout.journal_path(*entry.month) not in (commit.files or ()):
        return []
    was, now = (
        open_books(host.layout, CommittedSource(Snapshot(repo, each)))[0].find_entry(entry.entry_id)
        for each in (parent, commit.id)
    )
    if was is None or now is None:
        return []
    return [{"field": field, "old": old, "new": new} for field, old, new in describe_changes(was, now)]


def _find_signer(host: Host, repo: Repository, commit: str) -> str:
    approvals = Approvals(CommittedSource(Snapshot(repo, repo.read_head())), host.root, {})
    return find_signing_reviewer(approvals, repo, commit) or find_passkey_signer(host, repo, commit)
