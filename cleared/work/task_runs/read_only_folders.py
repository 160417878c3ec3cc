"""Folders that a verification may read beside its tree, by the approved settings: dependencies that git ignores.

One of the workspace is linked into the tree. It is what this machine's user has installed there: no worker can write
it, and nothing that git has can be taken for it.
"""

from __future__ import annotations

import os
from pathlib import Path

from cleared.base.errors import Place, PolicyError
from cleared.changes.host import Host
from cleared.git import Repository, Snapshot
from cleared.git.untracked_files import find_ignored
from cleared.trust.keys import cleared_home

_SETTING = "tasks.read_only_folders"


def link_folders(host: Host, repo: Repository, commit: str, tree: Path) -> list[Path]:
    """Link into ``tree``, which is ``commit``, what the settings name of the workspace; the real paths of all that may
    be read. Raises as ``find_folders`` does, and ``PolicyError`` where the work has made something in its place."""
    found = find_folders(host, repo, commit)
    for name, real in found.items():
        if real.is_relative_to(host.root.resolve()):
            place = tree / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(place):
                raise _refuse(name, "the work has made something in its place")
            place.symlink_to(real, target_is_directory=True)
    return list(found.values())


def find_folders(host: Host, repo: Repository, commit: str) -> dict[str, Path]:
    """The folders that the settings name, as they are named → real paths; not those that are not there.

    Raises ``PolicyError`` for one that git has files of or does not ignore, for a link, and for one that holds the
    workspace or the keys.
    """
    found = {}
    for name in host.config.tasks.read_only_folders:
        is_elsewhere = name.startswith(("/", "~"))
        path = Path(os.path.expanduser(name)) if is_elsewhere else host.root / name  # noqa: PTH111  # no user: no folder
        if not path.is_dir():
            host.show_message(f"{_SETTING}: there is no folder {name} here")
            continue
        real = path.resolve()
        if any(each.resolve().is_relative_to(real) for each in (host.root, cleared_home())):
            raise _refuse(name, "it holds the workspace, or the keys")
        if not is_elsewhere or real.is_relative_to(host.root.resolve()):
            _require_ignored(host, repo, commit, name.rstrip("/"), real)
        found[name] = real
    return found


def _require_ignored(host: Host, repo: Repository, commit: str, inner: str, real: Path) -> None:
    if real != host.root.resolve() / inner or inner.split("/")[0] in (".git", host.layout.state_dir.name):
        raise _refuse(inner, "it is a link, or a part of the workspace itself")
    if any(entry.startswith(f"{inner}/") for entry in Snapshot(repo, commit).list_entries()):
        raise _refuse(inner, "git has files of it")
    if inner not in find_ignored(repo, [inner]):
        raise _refuse(inner, "git does not ignore it")


def _refuse(name: str, why: str) -> PolicyError:
    return PolicyError(
        f"{name}: no verification may read it: {why}",
        place=Place("config.yaml", field=_SETTING),
        remedy="Name a folder of dependencies that git ignores, such as node_modules.",
    )
