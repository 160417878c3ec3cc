"""Doing again what was done: a run, a decision or a person's commit, on top of a commit that has something else, too.

What it did is done, not what it asked: no script runs a second time, and no model is asked. Its draft is checked as any
other, and its attestation is made anew. Nothing of this can be seen before the branch is moved.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.clock import format_iso
from cleared.base.csv_text import format_record
from cleared.base.errors import ClearedError
from cleared.base.file_source import MONTH_MARK, FileSource, list_dated
from cleared.cards.card import Card, card_id
from cleared.cards.card_events import CardEvents, parse_opened, read_events
from cleared.cards.kinds import LEFT_OUT, QUESTION
from cleared.cards.queue_files import list_queue_files
from cleared.changes import agent_log, commit_messages, consumed_events, draft
from cleared.changes.change_digests import find_subject_columns, is_attestation
from cleared.changes.decisions.authorization import find_authorization
from cleared.changes.decisions.decision_context import NAMING_TRAILERS, UNDO_TRAILER
from cleared.changes.decisions.keyed_decisions import find_keyed_record
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.session import make_context, new_run_id
from cleared.changes.sync.left_out_files import find_free_name, list_files_aside
from cleared.changes.sync.redone_approvals import RedoneApprovals, can_be_left_out, is_approval, is_same_proposal
from cleared.changes.sync.redone_tasks import join_task_file, list_added_tasks
from cleared.changes.sync.unpushed_work import Cancelled, Step, is_answer_wanted
from cleared.domains.installed_domains import load_domains
from cleared.domains.renamed_records import WORDS, RenamedRecords, WorkConflict, group_renames
from cleared.git import CommitHeader, Repository, Snapshot
from cleared.git.commit_text import split_message
from cleared.git.side_branch import write_commit
from cleared.primitives.context import Context, LogRow
from cleared.trust.approval_record import CASES, CORRECTED
from cleared.trust.keys import KeyLocked

RENAMED: Final = "Renamed"
"""The trailer that says which records of a commit had other ids before a sync."""
_NONE: Final = "none"
"""In the place of a card's id: others ask nothing about what it asked about."""


class RedoneStep(Struct, frozen=True):
    """``commit``: what was made of it; None where others had done all of it, or it was left out. ``conflict``: why."""

    step: Step
    commit: str | None
    conflict: str = ""


class WorkRedoing:
    """Does steps again, one after another, on a commit that grows. ``renamed``: what records are called now."""

    def __init__(self, host: Host, repo: Repository, theirs: str) -> None:
        self._host, self._repo, self.snapshot = host, repo, Snapshot(repo, theirs)
        self.renamed = RenamedRecords()
        self._cards = RenamedRecords()
        """Cards that have another id now."""
        self._proposals = f"{host.layout.queue_dir}/proposals/"
        self.reverted: set[str] = set()
        """Runs that a later step takes back: their files are not wanted."""
        self.cancelled = Cancelled()
        """No card is needed for these."""

    def redo_step(self, step: Step) -> RedoneStep:
        """Do one step again. One that would mean something else, or is not possible, is left out, and so is what rests
        on it. Raises ``WorkConflict`` for settings without which nothing that came after can be read."""
        if step.is_there:
            return RedoneStep(step, None)
        renamed, cards = self.renamed, self._cards
        self.renamed, self._cards = renamed.copy(), cards.copy()
        try:
            commit = self._redo_by_hand(step) if step.said is None else self._redo_attested(step)
        except KeyLocked:
            raise
        except ClearedError as error:
            if not can_be_left_out(step):
                raise WorkConflict(
                    f"{step.commit[:10]} {step.subject[:80]}: {error.message}",
                    place=error.place,
                    remedy="Do as docs/howto/two-clones.md says. Nothing was changed.",
                ) from None
            renamed.leave_out(self.renamed.added - renamed.added)
            opened = self._cards.added - cards.added
            if step.commit in self.cancelled.reasons:  # what git took back asks nothing any more
                cards.now |= dict.fromkeys(opened, _NONE)
            else:
                cards.leave_out(opened)
            self.renamed, self._cards = renamed, cards
            return RedoneStep(step, None, f"{error}")
        return RedoneStep(step, commit)

    def _is_test(self, path: str) -> bool:
        """Whether a file is a test, or says that one counts. A correction becomes one."""
        return path.startswith((f"{CASES}/", "tests/"))

    def record_left_out(self, steps: Sequence[RedoneStep]) -> None:
        """A card for each step that was left out, in one commit, and the bank files of such an import set aside."""
        now = self._host.clock.now().replace(microsecond=0)
        made = new_run_id(now)
        context = self._prepare_context("sync", now, made, {"id": made, "kind": "decision", "name": "sync"})
        titles, files = [], dict[str, bytes | None]()
        for each in (each for each in steps if each.step.commit not in self.cancelled.reasons):
            title = f"left out by a sync: {each.step.subject[:120]}"
            commit, is_wanted = each.step.commit, each.step.kind == "run" and each.step.made_by not in self.reverted
            aside = list_files_aside(self._host.layout, self.snapshot, each.step, files) if is_wanted else {}
            facts: dict[str, Any] = {
                "commit": commit,
                "why": each.conflict,
                "did": each.step.subject,
                "files": [*aside],
            }
            context.stage_card(LEFT_OUT.name, (commit,), title, record_id=None, **facts)
            files |= aside
            titles.append(title)
        marks = [("Decision", made), ("By", "sync"), ("Clock", format_iso(now))]
        self._commit(context, draft.CommitPlan(commit_messages.cards_opened(titles), marks, files))

    # -- a person's own commit --------------------------------------------------------------------------------------

    def _redo_by_hand(self, step: Step) -> str | None:
        if step.withheld:
            is_nothing = step.commit in self.cancelled.emptied
            again = "Decide anew on top of what is there, such as by cleared journal void."
            raise WorkConflict(step.withheld, remedy="What it took back is left out, too." if is_nothing else again)
        files = self._carry_files(step, step.after.list_changes(step.before))
        if not files:
            return None
        body, trailers = split_message(step.message)
        return self._write_commit(CommitHeader(body, trailers, *step.read_author()), files, step.after)

    # -- a run or decision ------------------------------------------------------------------------------------------

    def _redo_attested(self, step: Step) -> str | None:
        assert step.said is not None
        trailers = dict(step.list_trailers())
        agent = trailers.get("Agent", "user")
        key = trailers.get("Event", "").partition(" ")[2]
        self.renamed.is_repeated = key != "" and consumed_events.is_consumed(
            self._host, self._repo, self.snapshot, agent, key, asking=False
        )
        if once := consumed_events.read_decision_key(trailers):
            self.renamed.keyed = find_keyed_record(self._host, self._repo, self.snapshot, once)
            self.renamed.is_repeated = self.renamed.keyed is not None
        context = self._make_context(step, agent, trailers)
        before, after = CommittedSource(step.before), CommittedSource(step.after)
        handled: set[str] = set()
        known = set(self.renamed.now)
        for domain in load_domains():
            handled.update(domain.redo(context, before, after, self.renamed))
        handled |= self._redo_cards(context, before, after)
        handled |= self._redo_log(context, step)
        context.attested.update(step.list_statements())
        left = [path for path in step.after.list_changes(step.before) if path not in handled]
        if step.commit in self.cancelled.reasons:  # not before: what it added is left out by its name
            raise WorkConflict(self.cancelled.reasons[step.commit])
        files = self._carry_files(step, left)
        has_effect = any(part.has_changes for part in context.parts.values())
        has_effect |= is_answer_wanted(self._host, self.snapshot, step)
        is_approved = any(map(is_approval, left)) and not (context.cards.added or context.cards.resolved)
        if not (has_effect or files or (context.has_changes and not (self.renamed.is_repeated or is_approved))):
            return None
        marks = [(key, self._rename_trailer(key, value)) for key, value in step.list_trailers()]
        new = {old: now for old, now in self.renamed.now.items() if old not in known}
        plan = draft.CommitPlan(
            commit_messages.done_again(self.renamed.rename_mentions(step.said.subject)),
            [*marks, *((RENAMED, text) for text in [" ".join(map("=".join, group_renames(new)))] if text)],
            files,
            sign=self._find_signer(step) if step.signing_key else None,
        )
        return self._commit(context, plan)

    def _commit(self, context: Context, plan: draft.CommitPlan) -> str:
        made, header = draft.prepare_commit(self._host, self._repo, self.snapshot, context, plan)
        return self._write_commit(header, made.changes)

    def _write_commit(
        self, header: CommitHeader, changes: Mapping[str, bytes | None], modes_of: Snapshot | None = None
    ) -> str:
        """Write the next commit of the chain, and go on from it."""
        said = header.author, header.when, header.message, header.trailers
        commit = write_commit(self._repo, [str(self.snapshot.commit)], changes, *said, modes_of=modes_of)
        self.snapshot = Snapshot(self._repo, commit)
        return commit

    def _make_context(self, step: Step, agent: str, trailers: Mapping[str, str]) -> Context:
        assert step.said is not None
        kind, _, key = trailers.get("Event", "decision").partition(" ")
        event: dict[str, Any] = {"id": key or step.said.made_by, "kind": kind, "name": kind, "payload": None}
        if depth := step.said.trailers.get("Depth"):
            event["depth"] = int(depth)
        now = datetime.fromisoformat(trailers.get("Clock", step.said.at))
        return self._prepare_context(agent, now, step.said.made_by, event)

    def _prepare_context(self, agent: str, now: datetime, made_by: str, event: Mapping[str, Any]) -> Context:
        return make_context(
            self._host,
            self._repo,
            self.snapshot,
            agent=agent,
            now=now,
            run_id=made_by,
            event=event,
            dry_run=False,
            on_log=self._host.show_message,
            run_script=_refuse_script,
        )

    def _find_signer(self, step: Step) -> draft.SignChanges:
        """Signs it anew, where this machine has the key of the reviewer who did. Raises ``WorkConflict`` where not."""
        assert step.said is not None
        by = step.said.trailers.get("By", "")
        right = find_authorization(self._host, self.snapshot, step.said.made_by, by, person=True)
        if not right.rules.is_restricted:
            raise WorkConflict("it was signed, and nobody is named as a reviewer there: decide it again, on top")
        if right.reviewer_key.public != step.signing_key:
            raise WorkConflict("it was signed with another key, such as a passkey's: decide it again, on top")
        return right.make_signature_trailers

    def _redo_cards(self, context: Context, before: FileSource, after: FileSource) -> set[str]:
        """Stage what it did to cards. A card about a record that has another id now gets another one, too."""
        queue = self._host.layout.queue_dir
        events: list[Mapping[str, Any]] = []
        paths = set()
        for path in list_queue_files(after, queue):
            old, new = before.read(path) or b"", after.read(path) or b""
            if old == new:
                continue
            if not new.startswith(old):
                raise WorkConflict(f"{path}: it was not only added to")
            paths.add(path)
            events += read_events(path, new[len(old) :], CardEvents().add_event)
        proofs: dict[str, dict[str, str]] = {}
        cards = context.cards
        cards.prove = lambda card, at, by, resolution: proofs.get(card.id, {})
        for event in events:
            if event["event"] == "open":
                self._open_card(context, parse_opened(event))
                continue
            if (name := self._cards.find(event["id"])) == _NONE:
                continue
            known = cards.committed_cards.get(name)
            if event["event"] == "resolve" and name not in cards.added:
                is_answer = known is not None and known.kind == QUESTION.name
                resolution = event["resolution"] if is_answer else self.renamed.rename_mentions(event["resolution"])
                if known is not None and known.status == "resolved":
                    if known.resolution != resolution:
                        raise WorkConflict(f"the card {name} is answered there: {known.resolution}")
                    continue
                proofs[name] = {key: event[key] for key in ("key", "signature") if key in event}
                cards.resolve_card(name, event["at"], event["by"], resolution)
                if name not in cards.resolved:
                    raise WorkConflict(f"the card {name} is not there any more, or nothing vouches for it")
            elif event["event"] == "went_on":
                cards.record_continuation(name, event["at"], event["by"], event["run"])
            elif event["event"] == "skip":
                cards.skip_card(name, event["at"], event["by"])
            elif event["event"] == "unskip":
                cards.bring_forward(name, event["at"], event["by"], event["of"])
            elif event["event"] in ("agree", "disagree"):
                raise WorkConflict("it was the first of two decisions; decide it again")
        return paths

    def _open_card(self, context: Context, card: Card) -> None:
        record = self.renamed.find(card.record_id) if card.record_id else card.record_id
        if card.record_id in self.renamed.doubles:  # they ask about it, or have decided
            theirs = [each for each in context.cards.committed_cards.list_kind(card.kind) if each.record_id == record]
            self._cards.note(card.id, theirs[-1].id if theirs else _NONE)
            return
        is_question = card.kind == QUESTION.name  # the words of a script, which goes on with them
        details = card.details if is_question else self._rename(card.details)
        title = card.title if is_question else self.renamed.rename_mentions(card.title)
        if not card.record_id and details != card.details:  # it names entries; theirs may ask the same about them
            asked = context.cards.committed_cards.list_kind(card.kind)
            if same := [each.id for each in asked if (each.title, each.details) == (title, details)]:
                self._cards.note(card.id, same[-1])
                return
        name = card.id
        if record != card.record_id:
            is_first = card.id == card_id(card.kind, str(card.record_id))
            name = card_id(card.kind, str(record)) if is_first else card_id(card.kind, str(record), card.id)
        if card.kind == QUESTION.name and name != card.id:
            raise WorkConflict(f"the question {card.id} is about a record that has another id there")
        self._cards.add([card.id])
        now = replace(card, id=name, record_id=record, title=title, details=details)
        self._cards.note(card.id, name)
        context.cards.add_card(now)

    def _redo_log(self, context: Context, step: Step) -> set[str]:
        """Its rows of the log, and the events that it emitted."""
        done = set()
        before, after = CommittedSource(step.before), CommittedSource(step.after)
        for path in agent_log.list_logs(after):
            old, new = before.read(path) or b"", after.read(path) or b""
            if old == new:
                continue
            done.add(path)
            for row in csv.reader(io.StringIO(new[len(old) :].decode("utf-8"), newline="")):
                if len(row) == len(agent_log.HEADER) and tuple(row) != agent_log.HEADER:
                    record = self.renamed.find(row[4])
                    context.log.add_row(LogRow(row[2], self.renamed.rename_mentions(row[3]), record))
        for path in list_dated(after, self._host.layout.events):
            old, new = before.read(path) or b"", after.read(path) or b""
            if new == old:
                continue
            done.add(path)
            for line in new[len(old) :].splitlines():
                event = json.loads(line)
                context.events.append({"name": event["name"], "payload": self._rename(event["payload"])})
        return done | {path for path in step.after.list_changes(step.before) if is_attestation(path)}

    # -- files ------------------------------------------------------------------------------------------------------

    def _carry_files(self, step: Step, paths: Iterable[str]) -> dict[str, bytes | None]:
        """What becomes of other files. Raises ``WorkConflict`` where others have changed one of them, too."""
        files: dict[str, bytes | None] = {}
        self.renamed.add(list_added_tasks(step.before, step.after))
        approvals = RedoneApprovals(self._host, step, self.snapshot)
        is_lesson = step.said is not None and UNDO_TRAILER in step.said.trailers
        for path in paths:
            old, mine, theirs = (each.read_file(path) for each in (step.before, step.after, self.snapshot))
            if (theirs == mine != old) or (self.renamed.is_repeated and theirs is not None and self._is_test(path)):
                continue
            if is_lesson and theirs not in (None, old) and self._is_test(path) and CORRECTED in path:
                approvals.leave_out_record(path)
                continue
            if is_approval(path):
                files |= approvals.join_file(path)
            elif (joined := self._join_file(path, old, mine, theirs)) is not None:
                files[path] = joined
            elif theirs == old:
                files[path] = mine
            elif path.startswith(self._proposals) and is_same_proposal(mine, theirs):
                continue
            elif old is None and path.startswith(f"{self._host.layout.processed_dir}/"):
                files[find_free_name(self.snapshot, path, str(step.after.find_blob_id(path)))] = mine
            else:
                raise approvals.make_conflict(path)
            if (entry := step.after.find_entry(path)) is not None and not entry.is_file:
                raise WorkConflict(f"{path} is no plain file")
        approvals.refuse_stale(files)
        return files

    def _join_file(self, path: str, old: bytes | None, mine: bytes | None, theirs: bytes | None) -> bytes | None:
        """A file that consists of parts, or rows that are only added, with what was done to each; None for others."""
        if (tasks := join_task_file(path, old, mine, theirs, self.renamed)) is not None:
            return tasks
        source = CommittedSource(self.snapshot)
        joined = (each.join_file(self._host.layout, source, path, old, mine, theirs) for each in load_domains())
        found = next((data for data in joined if data is not None), None)
        return self._join_rows(path, old, mine, theirs) if found is None else found

    def _join_rows(self, path: str, old: bytes | None, mine: bytes | None, theirs: bytes | None) -> bytes | None:
        """Of a file to which both have only added rows, about something else each: all of them, with what they name as
        it is called now."""
        mine = mine or b""
        old = old or mine[: mine.find(b"\n") + 1]  # its header
        theirs = theirs or old
        columns = find_subject_columns(path)
        is_handled = MONTH_MARK.sub("", path) == self._host.layout.imported_files
        if not mine.startswith(old) or not (is_handled or columns):
            return None
        before, added, there = (
            [tuple(row) for row in csv.reader(io.StringIO(data.decode("utf-8"), newline=""))]
            for data in (old, mine[len(old) :], theirs)
        )
        others = Counter(there) - Counter(tuple(self._rename(row)) for row in before)
        columns = columns or (0, 1)
        about = [
            {tuple(row[c] for c in columns) for row in each if len(row) > max(columns)} for each in (added, others)
        ]
        if about[0] & about[1]:
            return None
        for field in chain.from_iterable(added):
            self.renamed.find(field)  # which refuses what was left out
        return theirs + "".join(format_record(self._rename(row)) for row in added).encode("utf-8")

    def _rename(self, value: Any) -> Any:
        """Plain data with the ids in it as they are now."""
        return self._cards.rename_all(self.renamed.rename_all(value, texts=WORDS), texts=WORDS)

    def _rename_trailer(self, key: str, value: str) -> str:
        return " ".join(map(self._rename, value.split(" "))) if key in NAMING_TRAILERS else value


def _refuse_script(name: str, args: object) -> None:
    raise WorkConflict("a script would have to run")
