"""Confines a job's processes: Landlock for files, a seccomp filter for the network and other processes.

A job can read what its type names, less what is forbidden, and what a program needs to start. It can write what its
type names, and its scratch folder. It can never reach a key. Elsewhere than on Linux there is only ``JobContext.read``,
which a job may bypass.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import cleared
from cleared.base.errors import PolicyError, UsageError
from cleared.jobs.forbidden_files import ForbiddenFiles
from cleared.jobs.job_types import PROTECTED, JobType
from cleared.jobs.runtime_directory import RuntimeDirectory
from cleared.jobs.signing import KEY_NAME
from cleared.processes import landlock
from cleared.processes.fences import Fence, make_fence
from cleared.processes.leftovers import FOLDER_VARIABLE
from cleared.processes.system_files import holds_system
from cleared.trust.checkpoint import checkpoint_folder
from cleared.trust.clone_marks import pins_folder
from cleared.trust.keys import PUBLIC, RUN_KEY, cleared_home
from cleared.trust.person_only import JOB
from cleared.work.loop.workspace_jobs import AGENT_RUN, TASK_TURN
from cleared.workspace.location import find_git_folders, trust_folder, user_home

_PACKAGE: Final = Path(cleared.__file__).parent
_PACKAGE_DATA: Final = ("agents", "scripts", "config.yaml")
"""The package's data: beside it in a checkout, inside of it when installed."""

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"
"""Where a job's programs are looked for."""


def make_bare_environment(name: str, scratch: Path) -> dict[str, str]:
    """What every program of a job or task has of an environment: nothing of this process's own, and ``scratch`` to
    write in. ``name``: what it is inside of, for those who look; nothing in it can decide anything."""
    return {
        "PATH": PATH,
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        JOB: name,
        FOLDER_VARIABLE: str(scratch),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


def job_fence(
    forbidden: ForbiddenFiles,
    reads: Iterable[Path],
    writes: Iterable[Path],
    path: Sequence[str],
    *,
    trust: bool,
    asks: bool = False,
    root: Path | None = None,
) -> Fence | None:
    """The fence of a job that may read ``reads`` and write ``writes``; None where the kernel cannot confine.

    ``path``: where its Python finds modules, empty where it runs none. ``trust``: a job of this package, which must
    read whom this user trusts, what this machine saw last of the books, and how its worker is confined. ``asks``: it
    runs agents: it signs with the key of this machine's runs, which approves nothing, and keeps what was seen.
    ``root``: the workspace, where that is not what ``forbidden`` begins at.
    """
    rules, writes = python_rules(path) if path else [], list(writes)
    seen = checkpoint_folder(forbidden.root) if trust else None
    if trust:
        trusted = (trust_folder(), pins_folder(), *(cleared_home() / name for name in PUBLIC), seen)
        rules += [landlock.read_rule(p) for p in trusted if p is not None and p.exists()]
    if asks and (cleared_home() / RUN_KEY).exists():
        rules.append(landlock.read_rule(cleared_home() / RUN_KEY))
    if asks and seen is not None:
        seen.mkdir(parents=True, exist_ok=True)
        writes.append(seen)
    rules += [rule for top in reads if top.exists() for rule in _read_rules(forbidden, top)]
    return make_fence(
        list_closed(forbidden.root if root is None else root),
        rules,
        writes,
        outside=cleared_home() / KEY_NAME,
        own=trust,
    )


def list_closed(root: Path) -> tuple[Path, ...]:
    """The workspace, the keys, the home folder, and the history of a linked working tree: real paths."""
    folders = [root.resolve(), cleared_home().resolve(), *_history_folders(root)]
    with suppress(UsageError):  # a user without one
        home = user_home().resolve()
        folders += [home] if not holds_system(home) else []  # as "/" does, the home of some services
    return tuple(dict.fromkeys(folders))


def python_rules(path: Sequence[str]) -> list[tuple[Path, int]]:
    """Rules for the interpreter, its libraries, this package, and the packages of plug-ins."""
    prefixes = [Path(p).resolve() for p in dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix))]
    rules = [landlock.read_rule(p) for p in prefixes if p.exists() and p != Path("/")]
    rules.append(landlock.read_rule(_PACKAGE))
    for place in sorted(map(Path, dict.fromkeys(path)), key=lambda each: len(each.parts)):
        granted = {p for p, _ in filter(landlock.allows_reading, rules)}
        if not place.exists() or not granted.isdisjoint((place.resolve(), *place.resolve().parents)):
            continue
        if place.resolve() == _PACKAGE.parent.resolve():  # a checkout holds more than the package
            rules.append(landlock.list_rule(place))
            rules += [landlock.read_rule(place / name) for name in _PACKAGE_DATA if (place / name).exists()]
        else:
            rules += _read_rules(ForbiddenFiles(place), place)
    return rules


def _read_rules(forbidden: ForbiddenFiles, top: Path) -> list[tuple[Path, int]]:
    return [
        landlock.read_rule(path) if whole else landlock.list_rule(path)
        for path, whole in forbidden.grantable_paths(top)
    ]


def writable_paths(forbidden: ForbiddenFiles, job_type: JobType, runtime: RuntimeDirectory) -> list[Path]:
    """Where a job of this type may write.

    Raises ``PolicyError`` where a plug-in's job would write the loop's files or, by a link, what none may.
    """
    paths = resolve_paths(forbidden, job_type.writes)
    if not is_own(job_type):
        for protected in (runtime.folder, *((forbidden.root / name).resolve() for name in PROTECTED)):
            if any(protected.is_relative_to(path) or path.is_relative_to(protected) for path in paths):
                raise PolicyError(
                    f"a job of this type would write the loop's own files or what no plug-in's may ({protected})"
                )
    return paths


def runs_agents(job_type: JobType) -> bool:
    """Whether it is a job type of this package that runs agents or records tasks; no other job signs anything."""
    return is_own(job_type) and job_type.function in (AGENT_RUN, TASK_TURN)


def is_own(job_type: JobType) -> bool:
    """Whether its function is of this package."""
    return job_type.function.startswith("cleared.")


def resolve_paths(forbidden: ForbiddenFiles, paths: Iterable[str]) -> list[Path]:
    """The real paths of texts below the workspace. Raises ``PolicyError`` for one that is forbidden."""
    resolved = []
    for text in paths:
        resolved += (
            [forbidden.root, *_history_folders(forbidden.root)] if text == "." else [forbidden.resolve_path(text)]
        )
    return resolved


def _history_folders(root: Path) -> list[Path]:
    """The git folders of a linked working tree, which lie outside of it (gitrepository-layout: ``commondir``)."""
    folders = find_git_folders(root)
    return list(folders) if folders is not None and (root / ".git").is_file() else []
