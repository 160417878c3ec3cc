"""Verification: whether a version of a script may run on this machine, or why not and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from cleared.base.errors import Place, PolicyError
from cleared.base.file_source import FileSource
from cleared.trust import trust_store
from cleared.trust.approval_record import (
    CONFIG,
    QUARANTINED,
    WORKSPACE,
    ApprovalRecord,
    digest_of,
    quarantine_path,
    record_folder,
    record_path,
    switch_path,
    text_path,
    try_parse_record,
)
from cleared.trust.keys import own_public_key, run_public_key
from cleared.trust.reviewers import review_rules
from cleared.trust.workspace_pin import WorkspaceIdentity, identify_workspace
from cleared.workspace.template import was_shipped

UNTRUSTED: Final = "with a key that is not trusted on this machine"
UNPINNED: Final = "this clone is not trusted on this machine yet"
COPIED: Final = "this is a copy of another clone, and not trusted on this machine yet"
BY_BOOKKEEPER: Final = "with the key of a bookkeeper, who approves nothing here"
OLDER: Final = "it is older than the last that was made on this machine"
TRUST_DOUBTS: Final = frozenset({UNTRUSTED, UNPINNED, COPIED})
"""The doubts that ``cleared trust`` removes."""
State = Literal["approved", "starter", "quarantined", "untrusted", "unapproved", "elsewhere", "disabled"]


class Verification(Struct, frozen=True, eq=False):
    """``record`` is the approval, or the quarantine, where there is one. ``why``: in words."""

    state: State
    reason: str
    record: ApprovalRecord | None = None
    remedy: str = ""
    """What to do, where it follows from more than the state."""

    @property
    def may_run(self) -> bool:
        return self.state in ("approved", "starter")


class Approvals(Struct, eq=False):
    """The records of one commit (or working tree), judged by what this user trusts."""

    source: FileSource
    root: Path
    starters: Mapping[str, bytes] = {}
    """Path → the version that these books had, or would have, before anything was approved."""
    read_trust: Callable[[str], trust_store.Trust] = trust_store.load_trust
    """What this user trusts of the books with this id."""
    _trust: trust_store.Trust | None = None
    _own: str | None = None
    _own_run: str | None = None
    _books: WorkspaceIdentity | None = None
    _settings: Mapping[str, Any] | None = None
    _judged: dict[str, ApprovalRecord | None] = {}

    @property
    def workspace(self) -> str:
        """The id that records are bound to; empty before the first approval."""
        return self.identity.id

    @property
    def identity(self) -> WorkspaceIdentity:
        """Which books these are, by what is pinned outside the repository."""
        if self._books is None:
            self._books = identify_workspace(self.root, self.source.read(WORKSPACE))
        return self._books

    def use_identity(self, books: WorkspaceIdentity) -> None:
        """Judge the records as those of these books."""
        self._books, self._trust = books, None
        self._judged.clear()

    def verify_version(self, path: str, data: bytes) -> Verification:
        """Whether these bytes may run as the script at ``path``, and why."""
        if self.identity.problem is not None:
            state: State = "untrusted" if self.identity.used_elsewhere else "elsewhere"
            return Verification(state, self.identity.problem.message, remedy=self.identity.problem.remedy or "")
        digest = digest_of(data)
        barred = self.source.read(quarantine_path(path, digest))
        if barred is not None:  # a signature is asked of approvals, not of what forbids
            record = try_parse_record(barred)
            when = f" on {record.at[:10]} by {record.by}: {record.reason}" if record else ""
            return Verification("quarantined", f"this version was rolled back{when}", record)
        taken_back = self.is_taken_back(path, digest)
        is_starter = was_shipped(path, data) and not taken_back
        if is_starter and not self._has_left_starter(path):
            return Verification("starter", "it came with the program")
        where = record_path(path, digest)
        record_data = self.source.read(where)
        if record_data is None:
            why = "nobody has approved this version"
            if is_starter:
                why = (
                    "these books have had a version of their own, or have removed it: the one that came with the "
                    "program counts no more"
                )
            elif taken_back:
                why = "this version was rolled back, and nobody has approved it again"
            return Verification("unapproved", why)
        record = try_parse_record(record_data)
        if record is None or (record.kind, record.path, record.digest) != ("script", path, digest):
            return Verification("unapproved", f"{where} is not its record of approval")
        why = self.find_doubt(record)
        if why and why not in TRUST_DOUBTS:
            return Verification("unapproved", f"approved by {record.by} on {record.at[:10]}, but {why}", record)
        if why:
            return Verification("untrusted", f"approved by {record.by} on {record.at[:10]}, but {why}", record)
        proposal = f" ({record.proposal})" if record.proposal else ""
        return Verification("approved", f"approved by {record.by} on {record.at[:10]}{proposal}", record)

    def is_taken_back(self, path: str, digest: str) -> bool:
        """Whether this version was rolled back or removed, and not approved since."""
        barred = trust_store.version_key(path, digest) in self.trust.barred
        return barred or self.source.read(quarantine_path(path, digest)) is not None

    def _has_left_starter(self, path: str) -> bool:
        """Whether these books have, or had, a version of their own of what came with the program, or have removed it.

        A signature is asked of approvals, not of what forbids. ``changes.noticed_history`` keeps it on this machine.
        """
        if trust_store.starter_key(path) in self.trust.barred:
            return True
        return any(
            where.endswith(".json") and where != switch_path(path)
            for where in self.source.list_paths(record_folder(path))
        )

    def verify_agent(self, path: str, data: bytes) -> Verification:
        """The same of an agent that is to be started: one that a person has disabled may not run."""
        standing = self.verify_version(path, data)
        why = self.find_disabling(path) if standing.may_run else ""
        if why:
            return Verification("disabled", why, standing.record)
        if standing.may_run and standing.record is not None and standing.record.examined:
            return self._hold_unmet(standing, standing.record)
        return standing

    def _hold_unmet(self, standing: Verification, agent: ApprovalRecord) -> Verification:
        """Held where two of an agent's texts were never examined together: each was approved beside another version of
        the other, in two clones that were merged. In one line of history the later approval saw the other."""
        records = [agent, *(self.approved_version(path)[1] for path in agent.examined)]
        known = [each for each in records if each is not None and not self.is_brought_back(each)]
        for one, other in combinations(known, 2):
            seen = (one.examined.get(other.path, ""), other.examined.get(one.path, ""))
            if any(seen) and seen[0] != other.digest and seen[1] != one.digest:
                return Verification(
                    "unapproved",
                    f"{one.path} and {other.path} are approved, but were never examined together: each was changed "
                    "beside another version of the other",
                    agent,
                    f"Roll one back (cleared agent rollback {other.path}), and propose it again: its card shows what "
                    "both do together.",
                )
        return standing

    def find_disabling(self, path: str) -> str:
        """Why an agent counts as disabled, in words; empty where it does not.

        What disables needs no signature. What enables takes a record that counts here, later than any disabling that
        this machine has seen: neither removing a record nor bringing an old one back enables anything.
        """
        data, seen = self.source.read(switch_path(path)), self.trust.barred.get(trust_store.disabled_key(path), "")
        if data is None:
            return f"it was disabled on {seen[:10]}, and the record of that was removed" if seen else ""
        record = try_parse_record(data)
        if record is None or record.path != path or record.kind not in ("disabled", "enabled"):
            return f"{switch_path(path)} is not readable"
        if record.kind == "disabled":
            reason = f": {record.reason}" if record.reason else ""
            return f"{record.by} disabled it on {record.at[:10]}{reason}"
        if why := self.find_doubt(record):
            return f"{record.by} enabled it on {record.at[:10]}, but {why}"
        if record.at <= seen:
            return f"it was disabled on {seen[:10]}, after it was enabled on {record.at[:10]}"
        return ""

    def is_disabled_by_record(self, path: str) -> bool:
        """Whether the books themselves say that the agent is disabled, whatever this machine remembers."""
        record = try_parse_record(self.source.read(switch_path(path)))
        return record is not None and (record.path, record.kind) == (path, "disabled")

    def remember_disabling(self, path: str, now: str) -> None:
        """Note on this machine that the agent is disabled, where its record says so and it is not noted yet."""
        record = try_parse_record(self.source.read(switch_path(path)))
        if record is None or record.kind != "disabled" or record.path != path or not self.workspace:
            return
        at = min(record.at, now)
        if self.trust.barred.get(trust_store.disabled_key(path), "") < at:
            trust_store.remember_disabled(self.workspace, path, at)
            self._trust = None

    def find_doubt(self, record: ApprovalRecord) -> str:
        """Why a record does not count here; empty where it does."""
        if record.workspace != self.workspace or not record.workspace:
            return "for another workspace"
        if not record.is_genuine:
            return "its signature is wrong"
        trust = self.trust
        if record.kind == "config" and record.id in trust.withdrawn:
            return OLDER
        if record.id in trust.withdrawn or record.at < trust.barred.get(
            trust_store.version_key(record.path, record.digest), ""
        ):
            return "that approval was withdrawn by a rollback"
        if record.at < trust.newest.get(record.file, "").partition(" ")[0]:
            return OLDER
        if self.identity.problem is not None:
            return self.identity.problem.message
        if not self.identity.pinned:
            return COPIED if self.identity.copy_of else UNPINNED
        return self.find_approver_doubt(record.key)

    def find_approver_doubt(self, key: str) -> str:
        """Why this key may not approve here; empty for the own one, and those that somebody on this machine trusts.

        A bookkeeper's never may: by the settings here, which need no trust to restrict, and by those that counted last
        on this machine, so that whoever can push does not push away what restricts them.
        """
        if self._settings is None:
            here = try_parse_record(self.source.read(CONFIG))
            self._settings = here.policy if here is not None else {}
        policies = (self._settings, self.trust.settings.get("policy", {}))
        for rules in [review_rules(each) for each in policies if each.get("bookkeepers")]:
            if key in rules.reviewers and key not in rules.approvers:
                return BY_BOOKKEEPER
        if key in self.trust.keys:
            return ""
        if self._own is None:
            self._own = own_public_key(self.root)
        return "" if key == self._own else UNTRUSTED

    def may_have_approved(self, record: ApprovalRecord) -> bool:
        """Whether a record counted when it was made, as far as this machine can tell; it may have been replaced since.
        In a clone that nobody has trusted yet, each that is genuine."""
        is_known = not self.identity.pinned or not self.find_approver_doubt(record.key)
        return is_known and record.workspace == self.workspace and record.is_genuine

    def trusts_run(self, key: str) -> bool:
        """Whether questions and answers that are signed with this key of a machine's runs count here."""
        if self._own_run is None:
            self._own_run = run_public_key(self.root)
        if not self.identity.pinned or self.identity.problem is not None:
            return False
        return bool(key) and (key == self._own_run or key in self.trust.runs)

    def is_missing(self, path: str) -> bool:
        """Whether there should be a record of settings, by what this machine remembers, and is none."""
        return self.source.read(path) is None and path in self.trust.newest

    @property
    def trust(self) -> trust_store.Trust:
        """What this user trusts of the workspace."""
        if self._trust is None:
            self._trust = self.read_trust(self.workspace)
        return self._trust

    def read_record(self, path: str) -> ApprovalRecord | None:
        """The record in a file, if it counts."""
        if path not in self._judged:
            record = try_parse_record(self.source.read(path))
            counts = record is not None and record.file == path and not self.find_doubt(record)
            self._judged[path] = record if counts else None
        return self._judged[path]

    def list_versions(self, path: str) -> list[ApprovalRecord]:
        """The approvals of a script that count and are not quarantined, oldest first."""
        records = []
        for where in self.source.list_paths(record_folder(path)):
            if where.endswith(QUARANTINED) or not where.endswith(".json"):
                continue
            record = self.read_record(where)
            if record is not None and record.kind == "script" and record.path == path and record.file == where:
                records.append(record)
        barred = {p for p in self.source.list_paths(record_folder(path)) if p.endswith(QUARANTINED)}
        return sorted(
            (r for r in records if quarantine_path(path, r.digest) not in barred), key=lambda r: (r.serial, r.file)
        )

    def is_brought_back(self, record: ApprovalRecord) -> bool:
        """Whether a person's rollback, not their approval, made this version live: a signed quarantine names it."""
        for where in self.source.list_paths(record_folder(record.path)):
            taken_back = self.read_record(where) if where.endswith(QUARANTINED) else None
            if taken_back is not None and (taken_back.path, taken_back.previous) == (record.path, record.digest):
                return taken_back.at >= record.at
        return False

    def version_text(self, record: ApprovalRecord) -> bytes | None:
        """The version that a record approved; None where it is not kept here."""
        data = self.source.read(text_path(record.path, record.digest))
        return data if data is not None and digest_of(data) == record.digest else None

    def approved_version(self, path: str) -> tuple[bytes | None, ApprovalRecord | None]:
        """The approved version of a script: the committed one if it is, else the last that was; ``(None, None)``
        where there is none."""
        data = self.source.read(path)
        if data is not None:
            standing = self.verify_version(path, data)
            if standing.may_run:
                return data, standing.record
        for record in reversed(self.list_versions(path)):
            text = self.version_text(record)
            if text is not None:
                return text, record
        starter = self.starters.get(path)
        if starter is not None and self.verify_version(path, starter).may_run:
            return starter, None
        return None, None


def refusal_of(path: str, name: str, standing: Verification) -> PolicyError:
    """The error for a script that may not run. ``name`` is what the commands take."""
    return PolicyError(f"{standing.reason}; it was not run", place=Place(path), remedy=remedy_of(name, standing))


def remedy_of(name: str, standing: Verification) -> str:
    """What to do so that a script may run, with the command; empty where it may. ``name`` is what the commands take."""
    remedies = {
        "untrusted": "Look at who approved it, and say whether you trust them: cleared trust.",
        "quarantined": f"Have it approved again (cleared agent propose {name}), or restore the version before.",
        "disabled": f"If it is to run again: cleared agent enable {name}.",
        "unapproved": f"Have it checked and approved: cleared agent propose {name}. A commit alone approves nothing.",
    }
    return standing.remedy or remedies.get(standing.state, "")
