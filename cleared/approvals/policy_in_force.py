"""The protected settings in force: those approved, whatever the working copy of ``config.yaml`` says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cleared.approvals.approval_record import CONFIG, WORKSPACE
from cleared.approvals.keys import KEY, cleared_home
from cleared.approvals.trust_store import trust_folder
from cleared.approvals.verification import Approvals
from cleared.approvals.workspace_pin import MARK, pins_folder
from cleared.config.model import Config
from cleared.config.protected_settings import (
    compare_settings,
    is_protected,
    protected_settings_of,
    with_protected_settings,
)
from cleared.errors import Place, PolicyError
from cleared.light_dataclass import dataclass
from cleared.workspace.git_directory import find_git_folders
from cleared.workspace.location import CONFIG_NAME as SETTINGS


class _WorkingFiles:
    """The records in the working tree: what they say is in their signatures, wherever they lie."""

    def __init__(self, root: Path) -> None:
        self.root = root

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SettingsInForce:
    """The configuration to work with; what in ``config.yaml`` waits for approval; why nothing may run, if so."""

    config: Config
    unapproved: tuple[tuple[str, Any, Any], ...] = ()
    """Key, value in force, value in the file."""
    problem: PolicyError | None = None


def settings_in_force(root: Path, config: Config) -> SettingsInForce:
    """The configuration with its protected settings as approved; without a record, as shipped."""
    files = _WorkingFiles(root)
    wanted = protected_settings_of(config)
    data = files.read(CONFIG)
    approved: dict[str, Any] = {}
    approvals = Approvals(files, root, {})
    if approvals.identity.problem is not None:
        return SettingsInForce(
            with_protected_settings(config, {}), tuple(compare_settings({}, wanted)), approvals.identity.problem
        )
    if data is not None or (approvals.workspace and approvals.is_missing(CONFIG)):
        record = approvals.read_record(CONFIG)
        if record is None or record.kind != "config":
            problem = PolicyError(
                "the approval of these settings cannot be verified on this machine, so nothing is run",
                place=Place(CONFIG),
                remedy="Look at who approved them and say whether you trust them: cleared trust. "
                "Or approve them yourself: cleared config approve.",
            )
            return SettingsInForce(with_protected_settings(config, {}), tuple(compare_settings({}, wanted)), problem)
        approved = {key: value for key, value in record.policy.items() if is_protected(key)}
    if wanted == approved:
        return SettingsInForce(config)
    return SettingsInForce(with_protected_settings(config, approved), tuple(compare_settings(approved, wanted)))
