"""Checks every commit since the first reviewer was named: who signed it, and might they decide that?

Each commit is judged by the rules in the commit before it. Works on any clone: keys and rules are in the commits.
Trailers count only where a signature covers them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from cleared.base.effects import Effect
from cleared.base.errors import WorkspaceError
from cleared.cards import queue_files
from cleared.cards.card_events import Event, read_events
from cleared.cards.kinds import QUESTION, kind_named
from cleared.changes.attestation import load_approvals
from cleared.changes.attestation_lines import keeps_lines
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.domains.installed_domains import ManagedFiles
from cleared.domains.record_audit import RecordAudit, Violation
from cleared.git import Repository, Snapshot, history, parse_parents
from cleared.git.history import CommitInfo
from cleared.trust.approval_record import CONFIG, FOLDER, QUARANTINED, WORKSPACE, ApprovalRecord, try_parse_record
from cleared.trust.keys import verify_signature
from cleared.trust.reviewers import (
    KEY,
    SIGNATURE,
    UNRESTRICTED,
    ReviewRules,
    commit_payload,
    find_first_agreement,
    parse_agreements,
    review_rules,
    rule_change_effect,
)
from cleared.trust.verification import Approvals
from cleared.workspace.location import Layout

ACCEPTS_TRAILER: Final = "Accepts"
_REMEDY_FOR_TWO: Final = (
    "Look at it (git show COMMIT); reverse what is wrong; then two reviewers say that it is dealt "
    "with: cleared accept COMMIT --reason …"
)
_REMEDY_FOR_ONE: Final = _REMEDY_FOR_TWO.replace("two reviewers say", "a reviewer says")
_REMEDY_OTHER_BOOKS: Final = f"See who changed it: git log -p -- {WORKSPACE}. {_REMEDY_FOR_TWO}"


def find_signing_key(repo: Repository, commit: CommitInfo, workspace: str) -> str:
    """The key that a commit is signed with, with a signature that is its own; else empty. ``commit``: with its files.

    Raises ``WorkspaceError`` where the commit before it is not in this clone.
    """
    key, signature = commit.trailers.get(KEY, ""), commit.trailers.get(SIGNATURE, "")
    before = read_parents(repo, commit.id)
    if not key or not signature or len(before) != 1:
        return ""
    after = Snapshot(repo, commit.id)
    files: dict[str, bytes | None] = {}
    for path in commit.files or ():
        entry = after.find_entry(path)
        if entry is not None and not entry.is_file:
            return ""
        files[path] = after.read_file(path)
    payload = commit_payload(workspace, before[0], commit.subject, commit.trailers, files)
    return key if verify_signature(key, signature, payload) else ""


def find_signing_reviewer(approvals: Approvals, repo: Repository, commit_id: str) -> str:
    """Whose signature a decision's commit has, by the name that the rules before it had for the key; else empty.

    Only rules that count here make somebody a reviewer: whoever can push can commit such with a key of their own, and
    take them back afterwards.
    """
    commit = history.read_commit(approvals.root, commit_id)
    try:
        before = read_parents(repo, commit_id)
        parent = Snapshot(repo, before[0]) if len(before) == 1 else None
        record = try_parse_record(parent.read_file(CONFIG)) if parent is not None else None
        if record is None or not approvals.may_have_approved(record):
            return ""
        return review_rules(record.policy).reviewers.get(find_signing_key(repo, commit, record.workspace), "")
    except WorkspaceError:
        return ""


def read_parents(repo: Repository, commit: str) -> list[str]:
    """The ids of the commits before one."""
    return parse_parents(repo.objects.read_object(commit)[1])


def had_reviewers(host: Host, repo: Repository, since: str | None = None) -> bool:
    """Whether somebody was ever named to decide. ``since``: a commit up to which nobody was."""
    approvals = load_approvals(host, Snapshot(repo, repo.read_head()))
    return bool(_find_first_rules(approvals, repo, since))


def find_unauthorized_commits(host: Host, repo: Repository) -> list[tuple[str, Violation]]:
    """What was decided since there are reviewers, and not by them, or by one where it takes two; each with its commit.

    What one reviewer could have decided, one can answer for; for the rest it takes two.
    """
    head = Snapshot(repo, repo.read_head())
    approvals = load_approvals(host, head)
    firsts = _find_first_rules(approvals, repo)
    if not firsts:
        return []
    first, since = firsts[0], history.find_merge_base(host.root, [each.id for each in firsts])
    managed = ManagedFiles(host.layout)
    by_hand = managed.shared_files
    roots = [folder for folder in managed.folders if not any(path.startswith(f"{folder}/") for path in by_hand)]
    commits = history.commits_touching(host.root, roots, since=since)[::-1]
    begun = Snapshot(repo, first.id)
    judge = _HistoryJudge(host, repo, approvals, _read_workspace_id(begun), _read_rules(begun))
    judge.audits = managed.audits
    judge.approved_rules[begun.read_file(CONFIG) or b""] = judge.rules
    cases: list[tuple[str, _CommitFindings]] = []
    answers: dict[str, set[str]] = {}
    for commit in commits:
        try:
            case = judge.judge_commit(commit)
        except (WorkspaceError, ValueError) as error:
            case = _CommitFindings(
                "", needs_two=[make_violation(commit, f"it cannot be judged: {error}", _REMEDY_FOR_TWO)]
            )
        cases.append((commit.id, case))
        named = commit.trailers.get(ACCEPTS_TRAILER, "") if case.key else ""
        before = [Snapshot(repo, parent) for parent in read_parents(repo, commit.id)] if named else []
        for accepted in named.split("\n") if named and keeps_lines(head, before, Snapshot(repo, commit.id)) else ():
            answers.setdefault(accepted, set()).add(case.person)
    two = min(2, len(judge.rules.people))
    books = approvals.identity
    if books.pinned and judge.workspace_id != books.id:
        explanation = "who decided was judged by the id of other books than this clone holds"
        cases.append(
            (first.id, _CommitFindings("", needs_two=[make_violation(first, explanation, _REMEDY_OTHER_BOOKS)]))
        )
    return [
        (commit_id, v)
        for commit_id, case in cases
        for needed, violations in ((1, case.needs_one), (two, case.needs_two))
        if len(answers.get(commit_id, ())) < needed
        for v in violations
    ]


class _CommitFindings(Struct):
    """One commit, by the reviewer with this ``key`` (empty: by none). ``unsigned``: what one reviewer could have
    decided; ``alone``: what takes two."""

    key: str
    person: str = ""
    needs_one: list[Violation] = []
    needs_two: list[Violation] = []


class _HistoryJudge(Struct):
    host: Host
    repo: Repository
    approvals: Approvals
    workspace_id: str
    rules: ReviewRules
    approved_rules: dict[bytes, ReviewRules] = {}
    """Records of the policy that were made by those who may → the rules they set; oldest first."""
    audits: Sequence[RecordAudit] = ()

    def judge_commit(self, commit: CommitInfo) -> _CommitFindings:
        after = Snapshot(self.repo, commit.id)
        try:
            before = [Snapshot(self.repo, parent) for parent in read_parents(self.repo, commit.id)]
        except WorkspaceError:  # a shallow clone ends here
            before = []
        if not before:
            return _CommitFindings("")
        base = before[0]
        rules = self.approved_rules.get(base.read_file(CONFIG) or b"", self.rules)
        key = find_signing_key(self.repo, commit, self.workspace_id)
        case = _CommitFindings(key, rules.person_of(key)) if key in rules.reviewers else _CommitFindings("")
        if case.key and WORKSPACE in (commit.files or ()):
            self.workspace_id = _read_workspace_id(after)  # books made from others, by a reviewer of theirs
        is_run = "Run" in commit.trailers and "Decision" not in commit.trailers
        effects = self._find_effects(commit, before, after)
        changed = self._judge_records(commit, before, after, rules, case)
        deeds = [e for e in effects if not is_run or e.is_decided]
        rest = () if case.key else self._list_other_decisions(commit, base, after, is_run, merged=len(before) > 1)
        if rules.is_restricted and not case.key:
            what = [*([f"decided {_name_decided(deeds)}"] if deeds else []), *rest]
            if ACCEPTS_TRAILER in commit.trailers:
                what.append("answers for another commit")
            if what:
                explanation = f"it {' and '.join(what)}, without a reviewer's signature"
                case.needs_one.append(make_violation(commit, explanation, _REMEDY_FOR_ONE))
        heavy = [e for e in effects if rules.needs_two(e.weight) and (not is_run or e.is_settled)]
        heavy += changed
        if heavy:
            self._require_two(commit, base, rules, [*effects, *changed], heavy, case)
        return case

    def _find_effects(self, commit: CommitInfo, before: list[Snapshot], after: Snapshot) -> list[Effect]:
        effects: list[Effect] | None = None
        source, files = CommittedSource(after), commit.files or ()
        for each in before:  # a merge has done what none of its parents had
            earlier = CommittedSource(each)
            made = [e for audit in self.audits for e in audit.list_effects(earlier, source, files)]
            if effects is None:
                effects = made
            else:
                names = {_effect_outcome(e) for e in made}
                effects = [e for e in effects if _effect_outcome(e) in names]
        return effects or []

    def _judge_records(
        self, commit: CommitInfo, before: list[Snapshot], after: Snapshot, rules: ReviewRules, case: _CommitFindings
    ) -> list[Effect]:
        """Judge the records of approval that the commit brings; other rules of who may decide, if it sets such."""
        changed: list[Effect] = []
        for path in commit.files or ():
            inherited = [each.read_file(path) for each in before]
            data = after.read_file(path)
            if path == CONFIG and data != inherited[0]:
                record = self._accept_settings(data, inherited, rules, case.key)
                if record is None:
                    explanation = "it changed the approved settings, which no reviewer has approved"
                    case.needs_two.append(
                        make_violation(
                            commit, explanation, f"Restore {CONFIG} from the commit before. {_REMEDY_FOR_TWO}"
                        )
                    )
                elif len(before) == 1:
                    changed += _rule_change_effects(record, rules, try_parse_record(inherited[0]))
            elif path.startswith(f"{FOLDER}/") and not path.endswith(QUARANTINED) and data not in inherited:
                record = try_parse_record(data)
                # A passkey's decision has records that the key of the page's machine has signed.
                keys = {record.key, case.key or record.key} if record is not None and rules.is_restricted else set()
                if record is not None and not keys <= set(rules.approvers) and self._is_genuine(record):
                    explanation = f"{record.path} was approved by {record.by}, with a key of nobody who approves here"
                    case.needs_one.append(make_violation(commit, explanation, _REMEDY_FOR_ONE))
        return changed

    def _accept_settings(
        self, data: bytes | None, inherited: list[bytes | None], rules: ReviewRules, key: str
    ) -> ApprovalRecord | None:
        """The record of settings that a commit brings, if it may; its rules are known from then on.

        A merge takes the newest of its parents'; an older one brought back by hand is nobody's decision.
        """
        record = try_parse_record(data)
        if record is None or data is None:
            return None
        if len(inherited) > 1:
            order = list(self.approved_rules)
            newest = max((order.index(each) for each in inherited if each in self.approved_rules), default=0)
            return record if data in self.approved_rules and order.index(data) >= newest else None
        by_reviewer = self._is_genuine(record) and {key, record.key} <= set(rules.approvers)
        if not (by_reviewer if rules.is_restricted else self.approvals.may_have_approved(record)):
            return None
        self.approved_rules[data] = review_rules(record.policy)
        return record

    def _is_genuine(self, record: ApprovalRecord) -> bool:
        return record.is_genuine and record.workspace == self.workspace_id

    def _list_other_decisions(
        self, commit: CommitInfo, base: Snapshot, after: Snapshot, is_run: bool, merged: bool
    ) -> Iterator[str]:
        """What else an unsigned commit does that is for a person to decide."""
        if merged:  # append-only files of two clones, joined; what they hold was judged where it was made
            return
        layout = self.host.layout
        for audit in self.audits:
            yield from audit.name_decisions(commit.files or ())
        by_agent = commit.trailers.get("Agent") if is_run else None
        resolved = [
            e
            for e in read_settlements(self.host.layout, commit, base, after)
            if e.get("by") != by_agent or by_agent is None
        ]
        if not resolved:
            return
        cards = queue_files.load_cards(CommittedSource(after), layout.queue_dir)
        for event in resolved:
            card = cards.get(str(event.get("id")))
            if card is None or not kind_named(card.kind).person_only:
                continue
            then, resolution = card.details.get("on_timeout"), str(event.get("resolution"))
            as_asked = (then == "default" and resolution == card.details.get("default")) or (
                then == "reject" and resolution.startswith("rejected: ")
            )
            if not (
                card.kind == QUESTION.name and commit.trailers.get("By") == event.get("by") == "timeout" and as_asked
            ):
                yield f"answered the card {card.id}"

    def _require_two(
        self,
        commit: CommitInfo,
        base: Snapshot,
        rules: ReviewRules,
        effects: list[Effect],
        heavy: list[Effect],
        case: _CommitFindings,
    ) -> None:
        marks, covered = {e.mark for e in effects}, set[str]()
        cards = queue_files.load_cards(CommittedSource(base), self.host.layout.queue_dir).values() if case.key else ()
        for card in cards:
            if card.status != "open" or not card.agreed:
                continue
            agreements = parse_agreements(card.id, card.agreed)
            covers = agreements[-1].covers if agreements else ()
            if (
                set(covers) <= marks
                and find_first_agreement(agreements, covers, rules, self.workspace_id, case.key) is not None
            ):
                covered |= set(covers)
        alone = [e for e in heavy if e.mark not in covered]
        if alone:
            names = sorted({e.record for e in alone if e.record}) or ["who may decide"]
            explanation = (
                f"it decided {', '.join(names[:5])}{' …' if len(names) > 5 else ''}, which takes two reviewers"
            )
            case.needs_two.append(make_violation(commit, explanation, _REMEDY_FOR_TWO))


def read_settlements(layout: Layout, commit: CommitInfo, before: Snapshot, after: Snapshot) -> Iterator[Event]:
    """The lines by which a commit settles cards."""
    for path in commit.files or ():
        if not path.startswith(f"{layout.queue_dir}/") or not path.endswith(queue_files.SUFFIX):
            continue
        old = set((before.read_file(path) or b"").splitlines())
        lines = (after.read_file(path) or b"").splitlines()
        new = b"\n".join(line for line in lines if line not in old)
        for event in read_events(path, new, readable_only=True):
            if event.get("event") == "resolve":
                yield event


def make_violation(commit: CommitInfo, explanation: str, remedy: str) -> Violation:
    """That who decided a commit is not right. ``remedy``: with ``COMMIT`` for its id."""
    by, short = commit.trailers.get("By") or commit.author, commit.id[:10]
    explanation = f"commit {short} ({commit.subject[:60]!r}, {by}): {explanation}"
    return Violation("authority", explanation, remedy.replace("COMMIT", short))


def _effect_outcome(effect: Effect) -> object:
    """What is there afterwards, whatever was before."""
    return effect.mark if effect.outcome is None else effect.outcome


def _name_decided(effects: list[Effect]) -> str:
    names = sorted({e.record for e in effects if e.record})
    return f"{', '.join(names[:5])}{' …' if len(names) > 5 else ''}" if names else f"{len(effects)} {effects[0].plural}"


def _rule_change_effects(record: ApprovalRecord, rules: ReviewRules, before: ApprovalRecord | None) -> list[Effect]:
    new = review_rules(record.policy)
    if new == rules or rules.two_person is None:
        return []
    return [rule_change_effect(new, before.id if before is not None else "")]


def _read_rules(snapshot: Snapshot) -> ReviewRules:
    record = try_parse_record(snapshot.read_file(CONFIG))
    return review_rules(record.policy) if record is not None else UNRESTRICTED


def _read_workspace_id(snapshot: Snapshot) -> str:
    """The id in a commit: history is judged by what it says of itself, and the end of it by the pin."""
    return (snapshot.read_file(WORKSPACE) or b"").decode("ascii", "replace").strip()


def _find_first_rules(approvals: Approvals, repo: Repository, since: str | None = None) -> list[CommitInfo]:
    """The commits that named reviewers where there were none, oldest first. ``since``: only those that are not in this
    one's history.

    Where the settings at the end count here, only records that counted do: anybody can commit such with a key of their
    own, under any date, and take it back.
    """
    last = try_parse_record(approvals.source.read(CONFIG))
    is_known = last is None or approvals.may_have_approved(last)

    def has_reviewers(commit: str) -> bool:
        try:
            record = try_parse_record(Snapshot(repo, commit).read_file(CONFIG))
        except WorkspaceError:  # a shallow clone ends before it
            return False
        if record is None or (is_known and not approvals.may_have_approved(record)):
            return False
        return review_rules(record.policy).is_restricted

    commits = history.read_log(approvals.root, None, [CONFIG], since=since, full_history=True)
    return [
        each
        for each in reversed(commits)
        if has_reviewers(each.id) and not any(map(has_reviewers, read_parents(repo, each.id)))
    ]
