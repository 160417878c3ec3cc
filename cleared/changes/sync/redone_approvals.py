"""Approvals on top of what others have approved: as they were signed, or not at all.

Nothing is signed here. A record is carried where it counts on this machine, and where all that it was approved with is
there as it was: the text, what ran with it, what it may call, the settings. Else it is stale, and a person decides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cleared.base.errors import PolicyError, UsageError
from cleared.base.file_source import FileSource
from cleared.changes.attestation import load_approvals
from cleared.changes.host import Host
from cleared.changes.record_sources import CommittedSource
from cleared.changes.sync.unpushed_work import Step
from cleared.domains.renamed_records import WorkConflict
from cleared.git import Snapshot
from cleared.sandbox.used_primitives import find_grants
from cleared.trust.approval_record import (
    CONFIG,
    FOLDER,
    WORKSPACE,
    ApprovalRecord,
    digest_of,
    quarantine_path,
    try_parse_record,
)
from cleared.trust.verification import OLDER

_FORBIDDING: Final = ("quarantine", "disabled")
"""Kinds that take no signature: they let nothing run."""
_MEANT: Final = ("kind", "path", "digest", "grants", "policy")
"""What a record says beside who made it, when, and on what grounds."""
_PROPOSED: Final = ("digest", "fingerprint", "grants")
"""What is proposed, whoever described it, beside its files."""
_UNJOINED: Final = ("business", "paths")
"""Settings without which nothing that came after them can be read."""


class StaleApproval(PolicyError):
    """What was approved here is not what it would be on top of what others did."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the approval is stale: {why}", remedy="Look at what is there now, and approve it again.")


class RedoneApprovals:
    """The approvals of one step, on top of a commit that others have approved something in."""

    def __init__(self, host: Host, step: Step, snapshot: Snapshot) -> None:
        self._host = host
        self._before, self._after, self._now = (CommittedSource(each) for each in (step.before, step.after, snapshot))
        self._paths = [path for path in step.after.list_changes(step.before) if is_approval(path)]
        self._approvals = load_approvals(host, snapshot)
        self._can_sign = load_approvals(host, step.after)

    def join_file(self, path: str) -> Mapping[str, bytes | None]:
        """What becomes of one file of the approvals; nothing where that of others stands.

        Raises ``StaleApproval`` where others have approved something else, ``WorkConflict`` for what nobody here has
        approved.
        """
        mine, theirs = self._after.read(path), self._now.read(path)
        record, others = try_parse_record(mine), try_parse_record(theirs)
        is_permit = record is not None and record.file == path and record.kind not in _FORBIDDING
        if is_permit and record is not None and not self._can_sign.may_have_approved(record):
            raise WorkConflict(f"{path} was signed with a key that approves nothing here")
        if theirs == self._before.read(path):
            return {path: mine}
        if record is None or others is None:
            raise StaleApproval(f"{path} was changed there, too")
        if record.kind == "disabled":  # what forbids stands, whoever said it
            return {} if others.kind == "disabled" else {path: mine}
        doubt = "" if others.kind in _FORBIDDING else self._approvals.find_doubt(others)
        if doubt not in ("", OLDER):
            raise StaleApproval(f"{others.by} has approved {others.path} there, too, but {doubt}")
        if all(getattr(record, name) == getattr(others, name) for name in _list_meant(record)):
            return {path: mine} if doubt else {}  # the later of the two counts wherever the other does
        word = {"disabled": "disabled", "enabled": "enabled"}.get(others.kind, "decided about")
        raise StaleApproval(f"{others.by} has {word} {others.path} there on {others.at[:10]}, in another way")

    def leave_out_record(self, path: str) -> None:
        """Have a test that decisions became, or the record of it, stay as others have it: what was decided does not
        rest on it. Two clones that correct records of one run and month write to one test."""
        self._paths = [each for each in self._paths if each != path]

    def make_conflict(self, path: str) -> PolicyError:
        """What to raise where others have changed a file that the step changed, too."""
        why = f"{path} was changed there, too"
        return StaleApproval(why) if self._paths else WorkConflict(why)

    def refuse_stale(self, files: Mapping[str, bytes | None]) -> None:
        """Raises ``StaleApproval`` where scripts or settings that the step approves would stand beside something else
        than what they were approved with. ``files``: what it changes on top of what others did."""
        records = [record for record in map(self._read_own, self._paths) if record is not None]
        scripts = {record.path: record for record in records if record.kind == "script"}
        now = _Changed(self._now, files)
        for record in records:
            if record.kind in ("script", "definition", "case") and self._after.read(record.path) != now.read(
                record.path
            ):
                raise StaleApproval(f"others have changed {record.path}")
        is_examined = any(record.kind == "config" and record.proposal for record in records)
        if not (scripts or is_examined):
            return
        if scripts and _read_policy(self._after) != _read_policy(now):
            raise StaleApproval("others have changed settings, which it was not examined with")
        for record in scripts.values():
            self._refuse_other_texts(record, now)
        for others in self._list_others():
            for path, digest in others.examined.items():
                if path in scripts and scripts[path].digest != digest:
                    raise StaleApproval(f"others have approved {others.path} beside another version of {path}")
            if is_examined:
                raise StaleApproval(f"others have approved {others.path}, which the settings were not examined with")

    def _read_own(self, path: str) -> ApprovalRecord | None:
        record = try_parse_record(self._after.read(path))
        return record if record is not None and record.file == path else None

    def _refuse_other_texts(self, record: ApprovalRecord, now: FileSource) -> None:
        was = self._after.read(record.path)
        if now.read(quarantine_path(record.path, record.digest)) is not None:
            raise StaleApproval(f"others have taken this version of {record.path} back")
        for path, digest in record.examined.items():
            if digest_of(now.read(path) or b"") != digest:
                raise StaleApproval(f"others have changed {path}, which runs with {record.path}")
        if was is not None and self._find_grants(self._after, record.path) != self._find_grants(now, record.path):
            raise StaleApproval(f"with what others did {record.path} may call something else")

    def _find_grants(self, source: FileSource, path: str) -> object:
        """What a script may call, and the texts of the shared scripts that it runs."""
        texts: dict[str, str] = {}

        def read_shared(name: str) -> tuple[str, str] | None:
            try:
                file = self._host.layout.script_path(name)
            except UsageError:
                return None
            data = source.read(file)
            if data is None:
                return None
            texts[file] = data.decode("utf-8", "replace")
            return file, texts[file]

        text = (source.read(path) or b"").decode("utf-8", "replace")
        return find_grants(text, path, self._host.registry, read_shared), texts

    def _list_others(self) -> Iterator[ApprovalRecord]:
        """The versions that others have approved since, and that are live."""
        for path in filter(is_approval, self._now.snapshot.list_changes(self._before.snapshot)):
            record = try_parse_record(self._now.read(path))
            is_script = record is not None and record.file == path and record.kind == "script"
            if is_script and record and digest_of(self._now.read(record.path) or b"") == record.digest:
                yield record


class _Changed:
    """The files of a commit, with some changed."""

    def __init__(self, source: FileSource, files: Mapping[str, bytes | None]) -> None:
        self._source, self._files = source, files

    def read(self, path: str) -> bytes | None:
        return self._files[path] if path in self._files else self._source.read(path)

    def list_paths(self, prefix: str) -> list[str]:
        return [path for path in self._source.list_paths(prefix) if self.read(path) is not None]


def is_approval(path: str) -> bool:
    """Whether a file says what was approved."""
    return path.startswith(f"{FOLDER}/") and path != WORKSPACE


def can_be_left_out(step: Step) -> bool:
    """Whether what came after a step can be read without what it approved."""
    before, after = CommittedSource(step.before), CommittedSource(step.after)
    if before.read(WORKSPACE) != after.read(WORKSPACE):
        return False
    was, now = _read_policy(before), _read_policy(after)
    return not any(was.get(key) != now.get(key) for key in {*was, *now} if key.split(".")[0] in _UNJOINED)


def is_same_proposal(mine: bytes | None, theirs: bytes | None) -> bool:
    """Whether two files of a proposal of one name propose, or decide, the same."""
    try:
        one, two = (json.loads(data or b"") for data in (mine, theirs))
        if "status" in one:
            return bool(one["status"] == two["status"])
        files = [[(file["path"], file["kind"], file["digest"]) for file in each["files"]] for each in (one, two)]
        return files[0] == files[1] and all(one[name] == two[name] for name in _PROPOSED)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _list_meant(record: ApprovalRecord) -> tuple[str, ...]:
    """How a version stood being killed is measured anew by each machine."""
    return _MEANT[:3] if record.kind in ("certificate", "quarantine") else _MEANT


def _read_policy(source: FileSource) -> Mapping[str, Any]:
    record = try_parse_record(source.read(CONFIG))
    return record.policy if record is not None else {}
