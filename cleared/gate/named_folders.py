"""Folders that settings name for what the program keeps or writes, judged before such a setting counts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from cleared.base.errors import Place, PolicyError
from cleared.changes.host import Host
from cleared.domains.installed_domains import load_domains
from cleared.domains.record_audit import RecordAudit
from cleared.git import Snapshot
from cleared.jobs.runtime_directory import refuse_loop_folders
from cleared.workspace.settings.model import Config

_RECORDS: Final = "paths.books"


def refuse_used_folders(host: Host, config: Config, changed: Collection[str], commit: Snapshot) -> None:
    """Refuse a configuration that is to hold from now on, where one of the ``changed`` keys names a folder that is used
    for something else, or hides the records that the last commit has. Raises ``PolicyError``."""
    refuse_loop_folders(host.root, config, changed)
    if _RECORDS in changed:
        layout = replace(host.layout, config=config)
        for domain in load_domains():
            _refuse_record_folder(domain.audit(host.layout), domain.audit(layout), commit)


def _refuse_record_folder(before: RecordAudit, after: RecordAudit, commit: Snapshot) -> None:
    known, named = ({*_list_files(commit, audit.list_roots(commit))} for audit in (before, after))
    rows = {path for path in named if after.find_row_kind(path)}
    lost = {path for path in known if before.find_row_kind(path)} - rows
    others = [path for path in named - known if not rows and not path.rpartition("/")[2].startswith(".")]
    books = before.layout.config.paths.books
    problem = ""
    if lost:
        problem = f"the records lie where they are, such as {min(lost)}; the setting does not move them"
    elif others:
        problem = f"the last commit has other files there, such as {min(others)}"
    if problem:
        place = Place(before.layout.config_file, field=_RECORDS)
        raise PolicyError(problem, place=place, remedy=f"Leave it as it was: cleared config set {_RECORDS} {books}.")


def _list_files(commit: Snapshot, folders: Iterable[str]) -> Iterable[str]:
    return (path for folder in folders for path in commit.list_entries(folder))
