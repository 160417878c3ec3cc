"""The protected settings in force: those approved, whatever the working copy of ``config.yaml`` says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cleared.base.errors import Place, PolicyError, WorkspaceError
from cleared.base.short_text import list_first
from cleared.trust.approval_record import CONFIG, WORKSPACE, ApprovalRecord, digest_of, try_parse_record
from cleared.trust.clone_marks import MARK, pins_folder
from cleared.trust.keys import KEY, cleared_home, own_key_mark
from cleared.trust.trust_store import Trust, remember_newest
from cleared.trust.verification import TRUST_DOUBTS, Approvals
from cleared.workspace.location import CONFIG_NAME as SETTINGS
from cleared.workspace.location import find_git_folders, trust_folder
from cleared.workspace.settings.loading import ConfigError
from cleared.workspace.settings.model import Config
from cleared.workspace.settings.protected_settings import (
    compare_settings,
    describing_settings,
    protected_settings_of,
    with_protected_settings,
)


class _WorkingFiles(Struct, frozen=True):
    """The records in the working tree: what they say is in their signatures, wherever they lie."""

    root: Path

    def read(self, path: str) -> bytes | None:
        full = self.root / path
        try:
            if full.is_symlink() or full.is_dir():
                return b""
            return full.read_bytes() if full.is_file() else None
        except OSError:
            return b""  # there, and of no use: it must not count as never approved

    def list_paths(self, prefix: str) -> list[str]:
        return []


def settings_stamp(root: Path) -> object:
    """A value that changes whenever the settings, their approval, the id of the books or this user's trust is written.

    Long-lived processes compare it to see whether they must load the settings again."""
    folders = find_git_folders(root)
    mark = folders[1] / MARK if folders is not None else root
    return [
        _file_stamp(path)
        for path in (
            root / SETTINGS,
            root / CONFIG,
            root / WORKSPACE,
            mark,
            trust_folder(),
            pins_folder(),
            cleared_home() / KEY,
        )
    ]


def _file_stamp(path: Path) -> tuple[int, int, int]:
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino


class SettingsInForce(Struct, frozen=True, eq=False):
    """The configuration to work with; what in ``config.yaml`` waits for approval; why nothing may run, if so."""

    config: Config
    unapproved: tuple[tuple[str, Any, Any], ...] = ()
    """Key, value in force, value in the file."""
    problem: PolicyError | None = None
    approved: Mapping[str, Any] | None = None
    """The protected settings that count here, as last approved; None where none do. A change begins from these."""
    fault: ConfigError | None = None
    """What in ``config.yaml`` no setting may be. Nothing runs then; the books can be read by what was approved."""

    @property
    def waiting(self) -> str:
        """What to tell a person of a file that is not valid, or of the settings in it that wait for approval; empty
        where none do, or none were approved."""
        if self.fault is not None:
            source = "" if self.approved is None else " Until then the settings that were approved last are in force."
            return f"{self.fault} Nothing is run before that.{source}"
        if not self.unapproved or self.problem is not None:
            return ""
        keys = [key for key, _, _ in self.unapproved]
        shown = list_first(keys, 5)
        is_of_gate = any(key.startswith("gate.rules") for key in keys)  # which takes a proposal
        command = "cleared agent propose config.yaml" if is_of_gate else "cleared config approve"
        return (
            f"config.yaml: not approved yet, and not in force: {shown}. "
            f"See what each was and is to be, and approve it: {command}"
        )


def settings_in_force(root: Path, config: Config, fault: ConfigError | None = None) -> SettingsInForce:
    """What counts of the settings that ``config.yaml`` says: the protected ones as approved, all others as they are.

    Where no approval can be verified nothing may run, and there is a ``problem``. The books can be read all the same:
    by what was last approved on this machine, else by those settings in the file that only describe the books. It
    refuses nothing itself, so that each command that mends this can be used. ``fault``: what is wrong in the file, of
    which ``config`` is the valid part. Raises ``WorkspaceError`` where what this machine remembers of the books is
    damaged.
    """
    force = _find_in_force(root, config)
    return force if fault is None else replace(force, unapproved=(), fault=fault)


def _find_in_force(root: Path, config: Config) -> SettingsInForce:
    approvals = Approvals(_WorkingFiles(root), root)
    wanted = protected_settings_of(config)
    approved, problem = _read_approved(approvals, wanted)
    if problem is None and approved is not None:
        try:
            return _with_approved(config, approved, wanted)
        except ConfigError as error:
            problem = PolicyError(
                f"the approved settings are not valid in this version, so nothing is run or decided: {error}",
                place=Place(CONFIG),
                remedy="Approve those in config.yaml: cleared config approve.",
            )
    known = approvals.trust.settings.get("policy") if approvals.identity.pinned else None
    for readable in (known, describing_settings(wanted)):
        if readable is not None:
            with suppress(ConfigError):
                force = _with_approved(config, readable, wanted)
                return SettingsInForce(force.config, force.unapproved, problem, known)
    return SettingsInForce(with_protected_settings(config, {}), tuple(compare_settings({}, wanted)), problem, known)


def _with_approved(config: Config, approved: Mapping[str, Any], wanted: Mapping[str, Any]) -> SettingsInForce:
    if approved == wanted:
        return SettingsInForce(config, (), None, approved)
    return SettingsInForce(
        with_protected_settings(config, approved), tuple(compare_settings(approved, wanted)), None, approved
    )


def _read_approved(
    approvals: Approvals, wanted: Mapping[str, Any]
) -> tuple[Mapping[str, Any] | None, PolicyError | None]:
    """The protected settings that a record approves which counts here; else why there is none."""
    identity = approvals.identity
    if identity.problem is not None:
        return None, identity.problem
    data = approvals.source.read(CONFIG)
    if data is None and not approvals.is_missing(CONFIG):
        if not wanted:
            return {}, None
        return None, PolicyError(
            "nobody has approved the settings of these books, so nothing is run or decided",
            place=Place(CONFIG),
            remedy="Look at config.yaml, then approve it: cleared config approve.",
        )
    if data is not None and identity.pinned and _was_verified(approvals.trust, data):
        return approvals.trust.settings["policy"], None
    try:
        record = approvals.read_record(CONFIG)
    except WorkspaceError as error:  # the key of this user is damaged, or open to others
        return None, PolicyError(f"{error.message}, so nothing is run or decided", remedy=error.remedy)
    if record is None or record.kind != "config":
        return None, _refusal_of(approvals, try_parse_record(data))
    with suppress(WorkspaceError):  # a job may write nothing there; the next command remembers it
        remember_newest(record)
    return record.policy, None


def _refusal_of(approvals: Approvals, record: ApprovalRecord | None) -> PolicyError:
    doubt = approvals.find_doubt(record) if record is not None and record.kind == "config" else ""
    if record is not None and doubt in TRUST_DOUBTS:
        return PolicyError(
            f"the settings were approved by {record.by} on {record.at[:10]}, but {doubt}, so nothing is run or decided",
            place=Place(CONFIG),
            remedy="Look at who approved what, and say whether you trust them: cleared trust.",
        )
    return PolicyError(
        "the approval of these settings cannot be verified on this machine"
        + (f" ({doubt})" if doubt else "")
        + ", so nothing is run or decided",
        place=Place(CONFIG),
        remedy="See what is in force and what config.yaml says, and approve that: cleared config approve.",
    )


def _was_verified(trust: Trust, data: bytes) -> bool:
    """Whether this very record was verified on this machine, and its key counts still. It spares each command the
    library that verifies signatures."""
    known = trust.settings
    if known.get("record") != digest_of(data):
        return False
    return known["key"] in trust.keys or known["key_file"] == own_key_mark() != ""
